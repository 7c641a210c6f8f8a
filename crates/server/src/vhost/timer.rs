//! The timer: a thread that sleeps until the earliest wake-up of any vhost.
//!
//! It is a thread of its own, because deadlines are kept to fractions of a millisecond, which neither the
//! runtime's timer wheel nor a busy worker can guarantee.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use broker::time::Time;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::clock::Clock;
use crate::disk::vhost_files::VhostId;
use crate::limits::{TIMER_PAUSE_US, TIMER_REST_US};

/// A vhost that the timer can wake.
pub(crate) trait TimerTarget: fmt::Debug + Send + Sync {
    /// Does the work that is due.
    fn tick(&self);
}

#[derive(Default, Debug)]
struct Wakes {
    due: BTreeSet<(Time, VhostId)>,
    targets: BTreeMap<VhostId, Weak<dyn TimerTarget>>,
    /// True from a question whether the thread lives to its answer.
    is_asked: bool,
    stopping: bool,
}

/// The wake-ups of all vhosts.
#[derive(Default, Debug)]
pub(crate) struct Timer {
    wakes: Mutex<Wakes>,
    changed: Condvar,
}

impl Timer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start(clock: Clock) -> io::Result<Arc<Self>> {
        let timer = Arc::new(Self::default());
        let runs = Arc::clone(&timer);
        std::thread::Builder::new().name("timer".to_owned()).spawn(move || runs.run(clock))?;
        Ok(timer)
    }

    /// Registers a vhost, before its first wake-up is armed.
    pub(crate) fn add(&self, id: VhostId, target: Weak<dyn TimerTarget>) {
        let mut wakes = self.wakes.lock();
        wakes.targets.retain(|_, target| target.strong_count() > 0);
        let before = wakes.targets.insert(id, target);
        assert!(before.is_none(), "ids of vhosts are never used again");
    }

    /// Forgets a vhost, so that another handle of the same vhost can be registered.
    pub(crate) fn remove(&self, id: VhostId) {
        let mut wakes = self.wakes.lock();
        wakes.targets.remove(&id);
        wakes.due.retain(|(_, due)| *due != id);
    }

    /// Moves the wake-up of a vhost to an earlier time.
    fn arm(&self, id: VhostId, before: Time, at: Time) {
        let mut wakes = self.wakes.lock();
        wakes.due.remove(&(before, id));
        wakes.due.insert((at, id));
        if wakes.due.first() == Some(&(at, id)) {
            self.changed.notify_one();
        }
    }

    /// True if the thread has made a turn since the previous call. The first call returns true.
    pub(crate) fn has_answered(&self) -> bool {
        let was_asked = std::mem::replace(&mut self.wakes.lock().is_asked, true);
        self.changed.notify_one();
        !was_asked
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.wakes.lock().stopping = true;
        self.changed.notify_one();
    }

    fn run(&self, clock: Clock) {
        let mut wakes = self.wakes.lock();
        let mut last_turn_ended = Time::default();
        while !wakes.stopping {
            wakes.is_asked = false;
            let Some((at, id)) = wakes.due.first().copied() else {
                self.changed.wait(&mut wakes);
                continue;
            };
            let wait = clock.until(turn_begins(at, last_turn_ended));
            if !wait.is_zero() {
                self.changed.wait_for(&mut wakes, wait);
                continue;
            }
            wakes.due.pop_first();
            // The wake-up of a deleted vhost is skipped.
            let target = wakes.targets.get(&id).and_then(Weak::upgrade);
            if let Some(target) = target {
                // The lock is released, because the vhost arms the timer again.
                MutexGuard::unlocked(&mut wakes, move || target.tick());
                last_turn_ended = clock.time();
            }
        }
    }
}

/// The next wake-up of one vhost.
#[derive(Debug)]
pub(super) struct WakeUp {
    vhost: VhostId,
    clock: Clock,
    /// The time for which the timer is armed, in microseconds; `u64::MAX` if it is not.
    armed_us: AtomicU64,
}

impl WakeUp {
    pub(super) fn new(vhost: VhostId, clock: Clock) -> Self {
        Self { vhost, clock, armed_us: AtomicU64::new(u64::MAX) }
    }

    /// Arms the timer for `at`, unless it is armed for an earlier time. Overdue work counts as due now:
    /// otherwise a vhost with a backlog would always be first.
    pub(super) fn arm(&self, timer: &Timer, at: Time) {
        if at.as_micros() >= self.armed_us.load(Ordering::Acquire) {
            return;
        }
        let at = at.max(self.clock.time());
        let before = self.armed_us.fetch_min(at.as_micros(), Ordering::AcqRel);
        if at.as_micros() < before {
            timer.arm(self.vhost, Time::from_micros(before), at);
        }
    }

    /// Notes that the timer has fired: the next call of [`Self::arm`] takes effect, at any time.
    pub(super) fn fired(&self) {
        self.armed_us.store(u64::MAX, Ordering::Release);
    }
}

/// The time to do work that is due at `at`: soon, if the last turn has left it over; otherwise when it is
/// due, but after a rest, so that everything that becomes due meanwhile shares one turn.
fn turn_begins(at: Time, last_turn_ended: Time) -> Time {
    let rest_us = if at <= last_turn_ended { TIMER_PAUSE_US } else { TIMER_REST_US };
    at.max(Time::from_micros(last_turn_ended.as_micros() + rest_us))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A vhost whose turn tells that it has begun, and lasts until it is ended.
    #[derive(Debug)]
    struct LongTurn(Sender<()>, Mutex<Receiver<()>>);

    impl TimerTarget for LongTurn {
        fn tick(&self) {
            self.0.send(()).unwrap();
            self.1.lock().recv().unwrap();
        }
    }

    fn until(done: impl Fn() -> bool) {
        while !done() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn has_answered_is_false_while_a_turn_does_not_end() {
        let clock = Clock::start();
        let timer = Timer::start(clock).unwrap();
        assert!(timer.has_answered(), "nothing was asked before");
        until(|| timer.has_answered());
        let ((begun, begins), (end, ends)) = (channel(), channel());
        let target: Arc<dyn TimerTarget> = Arc::new(LongTurn(begun, Mutex::new(ends)));
        timer.add(VhostId(1), Arc::downgrade(&target));
        timer.arm(VhostId(1), Time::default(), clock.time());
        begins.recv().unwrap();
        // The question may have been answered before the turn began.
        timer.has_answered();
        assert!(!timer.has_answered() && !timer.has_answered());
        end.send(()).unwrap();
        until(|| timer.has_answered());
        timer.stop();
    }

    #[test]
    fn turn_begins_after_a_rest_for_deadlines_close_to_each_other() {
        let begins = |at_us, ended_us| {
            turn_begins(Time::from_micros(at_us), Time::from_micros(ended_us)).as_micros()
        };
        assert_eq!(begins(5_000, 0), 5_000, "alone");
        assert_eq!(begins(1_001, 1_000), 1_000 + TIMER_REST_US, "close behind");
        assert_eq!(begins(900, 1_000), 1_000 + TIMER_PAUSE_US, "left over");
        assert_eq!(
            begins(1_000 + 2 * TIMER_REST_US, 1_000),
            1_000 + 2 * TIMER_REST_US,
            "behind the rest"
        );
    }
}
