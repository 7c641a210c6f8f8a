//! The lock of a vhost, with waits that can time out.
//!
//! The lock is usually held for a fraction of a millisecond, so most callers find it free or wait for that
//! long. Sometimes it is held for longer. Then no thread that serves several vhosts may wait for it: the
//! timer, the persister, the pager and the tasks of connections try the lock for [`LOCK_WAIT`], do other work
//! and return later; a task awaits the end of the long hold. HTTP requests wait, on a thread that the runtime
//! replaces.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;

use super::hold_watch::HoldWatch;
use crate::limits::{LOCK_WAIT, LONG_HOLD};

/// A lock around a value, with the time since when it is held.
#[derive(Debug)]
pub(super) struct TimedLock<T> {
    value: Mutex<T>,
    created: Instant,
    /// Start of the current hold, in microseconds since `created`, plus one; 0 while the lock is free.
    held_since_us: AtomicU64,
    /// Notified at the end of a hold that was longer than [`LONG_HOLD`].
    long_hold_ended: Notify,
    /// True if somebody has not got the lock since the last question.
    is_missed: AtomicBool,
    watch: Arc<HoldWatch>,
}

impl<T> TimedLock<T> {
    /// Creates a free lock, whose holds `watch` counts.
    pub(super) fn new(value: T, watch: Arc<HoldWatch>) -> Self {
        Self {
            watch,
            value: Mutex::new(value),
            created: Instant::now(),
            held_since_us: AtomicU64::new(0),
            long_hold_ended: Notify::new(),
            is_missed: AtomicBool::new(false),
        }
    }

    /// Takes the lock, however long that takes. A worker of a runtime hands its other tasks to another thread
    /// before a long wait.
    pub(super) fn lock(&self) -> TimedGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| {
            let is_worker = Handle::try_current()
                .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
            let wait = || self.value.lock();
            let value = if is_worker { tokio::task::block_in_place(wait) } else { wait() };
            self.begin(value)
        })
    }

    /// Takes the lock, unless that takes longer than [`LOCK_WAIT`] or the lock has been held for long
    /// already.
    pub(super) fn try_lock(&self) -> Option<TimedGuard<'_, T>> {
        if let Some(value) = self.value.try_lock() {
            return Some(self.begin(value));
        }
        if !self.is_held_for_long()
            && let Some(value) = self.value.try_lock_for(LOCK_WAIT)
        {
            return Some(self.begin(value));
        }
        self.is_missed.store(true, Ordering::Relaxed);
        None
    }

    /// True if somebody has not got the lock since the last call, and comes back for it.
    pub(super) fn take_missed(&self) -> bool {
        self.is_missed.swap(false, Ordering::Relaxed)
    }

    /// Waits for the end of the current hold, if it is a long one.
    pub(super) async fn long_hold_ended(&self) {
        loop {
            let ended = self.long_hold_ended.notified();
            tokio::pin!(ended);
            // From here on the end of a hold is noticed.
            ended.as_mut().enable();
            if !self.is_held_for_long() {
                return;
            }
            ended.await;
        }
    }

    /// Time since when the lock is held; zero while it is free.
    pub(super) fn held_for(&self) -> Duration {
        let now_us = self.elapsed_us();
        match self.held_since_us.load(Ordering::Acquire) {
            0 => Duration::ZERO,
            since => Duration::from_micros(now_us.saturating_sub(since - 1)),
        }
    }

    fn begin<'a>(&'a self, value: MutexGuard<'a, T>) -> TimedGuard<'a, T> {
        self.held_since_us.store(self.elapsed_us() + 1, Ordering::Release);
        self.watch.begin();
        TimedGuard { timing: HoldTiming(self), value }
    }

    fn is_held_for_long(&self) -> bool {
        self.is_held_for_long_at(|| self.elapsed_us())
    }

    /// True if the current hold is long at the time that `clock` returns.
    ///
    /// The time is read first, and [`Self::end_hold`] reads it last: a hold that is long here is long there, too,
    /// and its end is notified.
    fn is_held_for_long_at(&self, clock: impl FnOnce() -> u64) -> bool {
        let now_us = clock();
        match self.held_since_us.load(Ordering::Acquire) {
            0 => false,
            since => is_long(since, now_us),
        }
    }

    /// Ends the current hold; true if it was long at the time that `clock` returns.
    fn end_hold(&self, clock: impl FnOnce() -> u64) -> bool {
        let since = self.held_since_us.swap(0, Ordering::AcqRel);
        is_long(since, clock())
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_micros())
            .expect("a process runs for less than 500,000 years")
    }
}

/// True if a hold is long at `now_us`; `since` is its start as in [`TimedLock::held_since_us`].
fn is_long(since: u64, now_us: u64) -> bool {
    u128::from(now_us.saturating_sub(since - 1)) >= LONG_HOLD.as_micros()
}

/// Access to the value while the lock is held. The fields are dropped in this order.
#[derive(Debug)]
pub(super) struct TimedGuard<'a, T> {
    timing: HoldTiming<'a, T>,
    value: MutexGuard<'a, T>,
}

impl<T> TimedGuard<'_, T> {
    /// Passes the lock to the thread that has waited longest. A caller that takes the lock repeatedly would
    /// otherwise take it again before that thread wakes up.
    pub(super) fn unlock_fair(self) {
        let Self { timing, value } = self;
        drop(timing);
        MutexGuard::unlock_fair(value);
    }
}

impl<T> Deref for TimedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for TimedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// Ends the measurement of the hold when dropped, just before the lock is released.
#[derive(Debug)]
struct HoldTiming<'a, T>(&'a TimedLock<T>);

impl<T> Drop for HoldTiming<'_, T> {
    fn drop(&mut self) {
        self.0.watch.end_hold();
        if self.0.end_hold(|| self.0.elapsed_us()) {
            self.0.long_hold_ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Holds the lock for long until the returned sender is dropped.
    fn long_hold(
        lock: &Arc<TimedLock<u32>>,
    ) -> (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
        let (end, ends) = channel();
        let (begun, begins) = channel();
        let lock = Arc::clone(lock);
        let thread = std::thread::spawn(move || {
            let mut value = lock.lock();
            *value += 1;
            while !lock.is_held_for_long() {
                std::thread::yield_now();
            }
            begun.send(()).unwrap();
            ends.recv().unwrap_err();
        });
        begins.recv().unwrap();
        (end, thread)
    }

    #[test]
    fn try_lock_gives_up_during_a_long_hold_and_lock_waits() {
        let lock = Arc::new(TimedLock::new(0, Arc::default()));
        assert_eq!(lock.held_for(), Duration::ZERO);
        let (end, thread) = long_hold(&lock);
        assert!(!lock.take_missed());
        assert!(lock.try_lock().is_none());
        assert!(lock.take_missed() && !lock.take_missed());
        assert!(lock.held_for() >= LONG_HOLD);
        drop(end);
        assert_eq!(*lock.lock(), 1);
        thread.join().unwrap();
        assert_eq!(*lock.try_lock().unwrap(), 1);
        assert!(!lock.is_held_for_long());
    }

    #[tokio::test]
    async fn long_hold_ended_returns_when_the_hold_ends() {
        let lock = Arc::new(TimedLock::new(0, Arc::default()));
        lock.long_hold_ended().await;
        let (end, thread) = long_hold(&lock);
        let waits = lock.long_hold_ended();
        tokio::pin!(waits);
        let first =
            std::future::poll_fn(|context| std::task::Poll::Ready(waits.as_mut().poll(context)));
        assert!(first.await.is_pending());
        drop(end);
        waits.await;
        lock.lock().unlock_fair();
        thread.join().unwrap();
    }

    #[test]
    fn hold_that_ends_as_it_becomes_long_leaves_no_waiter_behind() {
        let lock = TimedLock::new(0, Arc::default());
        let long_us = u64::try_from(LONG_HOLD.as_micros()).unwrap();
        // The waiter looks while the hold ends.
        lock.held_since_us.store(1, Ordering::Release);
        let was_long = lock.end_hold(|| {
            assert!(!lock.is_held_for_long_at(|| long_us));
            long_us - 1
        });
        assert!(!was_long);
        // The hold ends while the waiter looks.
        lock.held_since_us.store(1, Ordering::Release);
        let waits = lock.is_held_for_long_at(|| {
            assert!(!lock.end_hold(|| long_us - 1));
            long_us
        });
        assert!(!waits);
    }

    #[test]
    fn worker_that_waits_for_a_long_hold_gives_its_tasks_away() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let lock = Arc::new(TimedLock::new(0, Arc::default()));
        let (end, thread) = long_hold(&lock);
        let waits = {
            let lock = Arc::clone(&lock);
            runtime.spawn(async move { *lock.lock() })
        };
        // If the only worker were blocked, this would never be answered.
        assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
        drop(end);
        assert_eq!(runtime.block_on(waits).unwrap(), 1);
        thread.join().unwrap();
    }
}
