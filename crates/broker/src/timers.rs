//! When what in a vhost has to be looked at: one ordered set that one timer sleeps on.
//!
//! It holds at most one wake-up per queue and per channel, the earliest, one for dead messages, and one
//! for policies. What is due there is their own knowledge. A wake-up may come to nothing, because what it was for has gone; it never comes late.

use std::collections::BTreeSet;

use crate::ids::{ChannelNumber, ConnectionId, QueueId};
use crate::time::Time;

/// What to look at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Wake {
    /// A queue's deadlines, delayed messages or lease.
    Queue(QueueId),
    /// A channel's acknowledgement timeouts.
    Channel(ConnectionId, ChannelNumber),
    /// Messages that died and are still to be moved.
    Deaths,
    /// Policies have changed and are not in force for everything yet.
    Policies,
}

/// The wake-ups of a vhost.
#[derive(Default, Debug)]
pub(crate) struct Timers(BTreeSet<(Time, Wake)>);

impl Timers {
    /// Makes sure that `wake` comes at `at` at the latest. `armed` is where its owner remembers it.
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

    /// Forgets the wake-up of something that is gone.
    pub(crate) fn disarm(&mut self, armed: &mut Option<Time>, wake: Wake) {
        if let Some(at) = armed.take() {
            self.0.remove(&(at, wake));
        }
    }

    /// The earliest wake-up.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }

    /// All wake-ups, the earliest first; for checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Time, Wake)> {
        self.0.iter().copied()
    }

    /// Takes the earliest wake-up if it is due; its owner forgets it.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Wake> {
        let (_, wake) = self.0.first().copied().filter(|(at, _)| *at <= now)?;
        self.0.pop_first();
        Some(wake)
    }
}
