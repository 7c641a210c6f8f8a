//! The one timer: a thread that sleeps until the earliest wake-up of any vhost.
//!
//! A thread of its own, because deadlines are kept to fractions of a millisecond, which neither the
//! runtime's timer wheel nor a busy worker can promise.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Weak};

use broker::time::Time;
use parking_lot::{Condvar, Mutex};

use crate::clock::Clock;
use crate::limits::{TIMER_PAUSE_US, TIMER_REST_US};
use crate::vhost::VhostHandle;

/// Names a vhost to the timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TimerId(usize);

#[derive(Default, Debug)]
struct Wakes {
    due: BTreeSet<(Time, TimerId)>,
    handles: Vec<Weak<VhostHandle>>,
    stopping: bool,
}

/// Wakes vhosts when something in them is due.
#[derive(Default, Debug)]
pub(crate) struct Timer {
    wakes: Mutex<Wakes>,
    changed: Condvar,
}

impl Timer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(clock: Clock) -> io::Result<Arc<Self>> {
        let timer = Arc::new(Self::default());
        let runs = Arc::clone(&timer);
        std::thread::Builder::new().name("timer".to_owned()).spawn(move || runs.run(clock))?;
        Ok(timer)
    }

    /// Makes a vhost known.
    pub(crate) fn register(
        &self,
        make: impl FnOnce(TimerId) -> Arc<VhostHandle>,
    ) -> Arc<VhostHandle> {
        let mut wakes = self.wakes.lock();
        // The place of a vhost that is gone is free; a wake-up that is left of it comes for nothing.
        let free = wakes.handles.iter().position(|handle| handle.strong_count() == 0);
        let at = free.unwrap_or(wakes.handles.len());
        let handle = make(TimerId(at));
        let known = Arc::downgrade(&handle);
        match wakes.handles.get_mut(at) {
            Some(place) => *place = known,
            None => wakes.handles.push(known),
        }
        handle
    }

    /// Moves the wake-up of a vhost to an earlier time.
    pub(crate) fn arm(&self, id: TimerId, before: Time, at: Time) {
        let mut wakes = self.wakes.lock();
        wakes.due.remove(&(before, id));
        wakes.due.insert((at, id));
        if wakes.due.first() == Some(&(at, id)) {
            self.changed.notify_one();
        }
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
            let handle = wakes.handles.get(id.0).and_then(Weak::upgrade);
            if let Some(handle) = handle {
                // The vhost arms the timer again, which needs the lock.
                parking_lot::MutexGuard::unlocked(&mut wakes, || handle.tick());
                last_turn_ended = clock.time();
            }
        }
    }
}

/// When to do what is due at `at`: soon if the last turn has left it over, else when it is due, but not
/// before there has been a rest, so that what falls due meanwhile has one turn together.
fn turn_begins(at: Time, last_turn_ended: Time) -> Time {
    let rest_us = if at <= last_turn_ended { TIMER_PAUSE_US } else { TIMER_REST_US };
    at.max(Time::from_micros(last_turn_ended.as_micros() + rest_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_that_follow_each_other_closely_have_one_turn() {
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
