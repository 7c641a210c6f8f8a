//! The lock of a vhost, and how a thread waits for it.
//!
//! A turn of the lock takes a fraction of a millisecond, so most callers find it free or wait for that
//! long. When one turn is long nevertheless, no thread that serves several vhosts may wait for its end:
//! the timer, the writer of logs, the pager and the tasks of connections try the lock for
//! [`LOCK_WAIT`], do other work and come back; a task awaits the end of the turn. Requests over HTTP
//! wait, on a thread that the runtime replaces.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;

use crate::limits::{LOCK_WAIT, LONG_HOLD};

/// A value behind a lock whose turns are timed.
#[derive(Debug)]
pub(super) struct TimedLock<T> {
    value: Mutex<T>,
    created: Instant,
    /// When the current turn began, in microseconds since `created`, plus one; 0 while the lock is free.
    began_us: AtomicU64,
    /// The end of a turn that was longer than [`LONG_HOLD`].
    long_turn_ended: Notify,
}

impl<T> TimedLock<T> {
    /// A lock that is free.
    pub(super) fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            created: Instant::now(),
            began_us: AtomicU64::new(0),
            long_turn_ended: Notify::new(),
        }
    }

    /// Begins a turn, however long that takes. A worker of a runtime hands its other tasks to another
    /// thread before it waits for long.
    pub(super) fn lock(&self) -> Turn<'_, T> {
        self.try_lock().unwrap_or_else(|| {
            let is_worker = Handle::try_current()
                .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
            let wait = || self.value.lock();
            let value = if is_worker { tokio::task::block_in_place(wait) } else { wait() };
            self.begin(value)
        })
    }

    /// Begins a turn, unless that takes longer than [`LOCK_WAIT`] or the current turn is a long one.
    pub(super) fn try_lock(&self) -> Option<Turn<'_, T>> {
        if let Some(value) = self.value.try_lock() {
            return Some(self.begin(value));
        }
        if self.is_in_long_turn() {
            return None;
        }
        Some(self.begin(self.value.try_lock_for(LOCK_WAIT)?))
    }

    /// Waits for the end of the current turn if it is a long one.
    pub(super) async fn long_hold_ended(&self) {
        loop {
            let ended = self.long_turn_ended.notified();
            tokio::pin!(ended);
            // From now on the end of a turn is noticed.
            ended.as_mut().enable();
            if !self.is_in_long_turn() {
                return;
            }
            ended.await;
        }
    }

    fn begin<'a>(&'a self, value: MutexGuard<'a, T>) -> Turn<'a, T> {
        self.began_us.store(self.elapsed_us() + 1, Ordering::Release);
        Turn { timing: TurnTiming(self), value }
    }

    fn is_in_long_turn(&self) -> bool {
        match self.began_us.load(Ordering::Acquire) {
            0 => false,
            began => {
                u128::from(self.elapsed_us().saturating_sub(began - 1)) >= LONG_HOLD.as_micros()
            }
        }
    }

    fn elapsed_us(&self) -> u64 {
        // 500,000 years fit in.
        u64::try_from(self.created.elapsed().as_micros()).unwrap_or(u64::MAX - 1)
    }
}

/// The value while its lock is held. The fields are dropped in this order.
#[derive(Debug)]
pub(super) struct Turn<'a, T> {
    timing: TurnTiming<'a, T>,
    value: MutexGuard<'a, T>,
}

impl<T> Turn<'_, T> {
    /// Ends the turn and gives the lock to the thread that has waited longest, which would otherwise
    /// find it taken again by a caller with many turns in a row.
    pub(super) fn end_fair(self) {
        let Self { timing, value } = self;
        drop(timing);
        MutexGuard::unlock_fair(value);
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// Times a turn until it is dropped, which is just before the lock is given back.
#[derive(Debug)]
struct TurnTiming<'a, T>(&'a TimedLock<T>);

impl<T> Drop for TurnTiming<'_, T> {
    fn drop(&mut self) {
        let is_long = self.0.is_in_long_turn();
        self.0.began_us.store(0, Ordering::Release);
        if is_long {
            self.0.long_turn_ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    /// Holds the lock in a long turn until the returned sender is dropped.
    fn long_turn(
        lock: &Arc<TimedLock<u32>>,
    ) -> (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
        let (end, ends) = channel();
        let (begun, begins) = channel();
        let lock = Arc::clone(lock);
        let thread = std::thread::spawn(move || {
            let mut value = lock.lock();
            *value += 1;
            while !lock.is_in_long_turn() {
                std::thread::yield_now();
            }
            begun.send(()).unwrap();
            ends.recv().unwrap_err();
        });
        begins.recv().unwrap();
        (end, thread)
    }

    #[test]
    fn try_lock_in_a_long_turn_gives_up_and_lock_waits() {
        let lock = Arc::new(TimedLock::new(0));
        let (end, thread) = long_turn(&lock);
        assert!(lock.try_lock().is_none());
        drop(end);
        assert_eq!(*lock.lock(), 1);
        thread.join().unwrap();
        assert_eq!(*lock.try_lock().unwrap(), 1);
        assert!(!lock.is_in_long_turn());
    }

    #[tokio::test]
    async fn no_long_turn_is_over_when_the_turn_is() {
        let lock = Arc::new(TimedLock::new(0));
        lock.long_hold_ended().await;
        let (end, thread) = long_turn(&lock);
        let waits = lock.long_hold_ended();
        tokio::pin!(waits);
        let first =
            std::future::poll_fn(|context| std::task::Poll::Ready(waits.as_mut().poll(context)));
        assert!(first.await.is_pending());
        drop(end);
        waits.await;
        lock.lock().end_fair();
        thread.join().unwrap();
    }

    #[test]
    fn a_worker_that_waits_for_a_long_turn_does_not_keep_its_tasks() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let lock = Arc::new(TimedLock::new(0));
        let (end, thread) = long_turn(&lock);
        let waits = {
            let lock = Arc::clone(&lock);
            runtime.spawn(async move { *lock.lock() })
        };
        // With the only worker taken this would never be answered.
        assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
        drop(end);
        assert_eq!(runtime.block_on(waits).unwrap(), 1);
        thread.join().unwrap();
    }
}
