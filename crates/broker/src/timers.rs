//! Wake-ups of a vhost: one ordered set for the timer thread.
//!
//! The set holds at most one wake-up per queue and per channel, the earliest, one for dead messages, one for
//! the history of dead letters, and one for policies. The owner of a wake-up knows the work that is due. A wake-up may find nothing to do, because
//! its cause is gone; it is never late.

use std::collections::BTreeSet;

use crate::ids::{ChannelNumber, ConnectionId, ExchangeId, QueueId};
use crate::time::Time;

/// The target of a wake-up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Wake {
    /// A queue's deadlines, delayed messages or lease.
    Queue(QueueId),
    /// The messages that a delayed exchange holds.
    Exchange(ExchangeId),
    /// A channel's acknowledgement timeouts.
    Channel(ConnectionId, ChannelNumber),
    /// Dead messages that still have to be moved.
    Deaths,
    /// Deaths in the history of dead letters whose time is over.
    DeadLetterHistory,
    /// Changed policies that are not yet applied to all queues and exchanges.
    Policies,
}

/// The wake-ups of a vhost.
#[derive(Default, Debug)]
pub(crate) struct Timers(BTreeSet<(Time, Wake)>);

impl Timers {
    /// Ensures a wake-up at `at` or earlier. `armed` is the field in which the owner remembers the time.
    pub(crate) fn arm(&mut self, armed: &mut Option<Time>, at: Time, wake: Wake) {
        match *armed {
            Some(earlier) if earlier <= at => {}
            Some(later) => {
                self.0.remove(&(later, wake));
                self.0.insert((at, wake));
                *armed = Some(at);
            }
            None => {
                self.0.insert((at, wake));
                *armed = Some(at);
            }
        }
    }

    /// Removes the wake-up of an owner that is deleted.
    pub(crate) fn disarm(&mut self, armed: &mut Option<Time>, wake: Wake) {
        if let Some(at) = armed.take() {
            self.0.remove(&(at, wake));
        }
    }

    /// The earliest wake-up.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    /// All wake-ups, the earliest first; for consistency checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Time, Wake)> {
        self.0.iter().copied()
    }

    /// Removes and returns the earliest wake-up if it is due; the owner clears its `armed` field.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Wake> {
        let (_, wake) = self.0.first().copied().filter(|(at, _)| *at <= now)?;
        self.0.pop_first();
        Some(wake)
    }
}
