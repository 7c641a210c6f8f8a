//! Watches the replicator's writes for a disk that does not answer.
//!
//! A leader whose disk does not answer confirms nothing, and the other members elect another leader, because it is
//! silent. Its clients would wait for the disk all the same: the watch closes them, so that they look for the new leader,
//! and the replica is opened anew as soon as the disk answers. A member that follows has nothing to give up: nobody waits
//! for it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use replica::Deposition;

use super::target::ReplicaTarget;
use crate::clock::own_time::{self, RunTime};
use crate::disk::vhost_files::VhostId;

/// Looks at a write within the time after which the disk counts as stalled.
const LOOKS: u32 = 4;

/// The writes of the replicator, for the thread that watches them.
#[derive(Debug)]
pub(super) struct DiskWatch {
    timeout: Duration,
    state: Mutex<State>,
    changed: Condvar,
    /// Stalls since the start; outside the lock, because every turn of a replica reads the number.
    stalls: AtomicU64,
    /// Milliseconds of the longest write since it was asked for.
    longest_ms: AtomicU64,
}

#[derive(Default, Debug)]
struct State {
    /// Begin of the write that is under way, by the time that this process has run: a process that stood still itself
    /// accuses no disk.
    writing_since: Option<RunTime>,
    /// The write that is under way counts as stalled.
    is_stalled: bool,
    /// Vhosts that this node leads.
    led: BTreeMap<VhostId, Arc<dyn ReplicaTarget>>,
    is_ending: bool,
}

impl DiskWatch {
    /// Starts the thread, which ends with [`DiskWatch::end`]. A write counts as stalled after `timeout`.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(super) fn start(timeout: Duration) -> io::Result<Arc<Self>> {
        let watch = Arc::new(Self {
            timeout,
            state: Mutex::default(),
            changed: Condvar::new(),
            stalls: AtomicU64::new(0),
            longest_ms: AtomicU64::new(0),
        });
        let run = Arc::clone(&watch);
        std::thread::Builder::new().name("disk-watch".to_owned()).spawn(move || run.watch())?;
        Ok(watch)
    }

    /// A write begins.
    pub(super) fn begin(&self) {
        self.state.lock().writing_since = Some(own_time::now());
    }

    /// The write has ended. Returns the number of stalls so far: if that has grown since this node began to lead a vhost,
    /// the clients of the vhost are gone, and the lead with them.
    pub(super) fn finish(&self) -> u64 {
        let mut state = self.state.lock();
        let began = state.writing_since.take();
        if let Some(began) = began {
            let took = own_time::now().since(began);
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            self.longest_ms.fetch_max(took_ms, Ordering::Relaxed);
        }
        if std::mem::take(&mut state.is_stalled)
            && let Some(began) = began
        {
            let after_ms = own_time::now().since(began).as_millis();
            tracing::info!(after_ms, "the disk answers again");
        }
        self.stalls()
    }

    /// Milliseconds of the longest write since the last question.
    pub(super) fn take_longest_ms(&self) -> u64 {
        self.longest_ms.swap(0, Ordering::Relaxed)
    }

    /// Stalls since the start.
    pub(super) fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Acquire)
    }

    /// Notes that the node leads a vhost. Returns the number of stalls so far.
    pub(super) fn leads(&self, target: &Arc<dyn ReplicaTarget>) -> u64 {
        let mut state = self.state.lock();
        state.led.insert(target.id(), Arc::clone(target));
        // Under the lock: a stall that this number does not count takes the vhost from the list.
        self.stalls()
    }

    /// Notes that the node does not lead a vhost any more.
    pub(super) fn leads_no_more(&self, vhost: VhostId) {
        self.state.lock().led.remove(&vhost);
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.state.lock().is_ending = true;
        self.changed.notify_one();
    }

    fn watch(&self) {
        let mut state = self.state.lock();
        while !state.is_ending {
            let is_late = |since| own_time::now().since(since) > self.timeout;
            let stalled = state.writing_since.is_some_and(is_late);
            if stalled && !state.is_stalled {
                state.is_stalled = true;
                self.stalls.fetch_add(1, Ordering::AcqRel);
                let led = std::mem::take(&mut state.led);
                tracing::error!(
                    timeout_ms = self.timeout.as_millis(),
                    led_vhosts = led.len(),
                    "the disk does not answer; this node gives up the lead of its vhosts"
                );
                // Without the lock: the locks of vhosts may take long to get.
                parking_lot::MutexGuard::unlocked(&mut state, || {
                    for target in led.values() {
                        target.set_leader(None);
                        target.depose(Deposition::DiskStalls);
                    }
                });
                continue;
            }
            self.changed.wait_for(&mut state, self.timeout / LOOKS);
        }
    }
}
