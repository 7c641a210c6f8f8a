//! The messages of a queue that wait for a consumer, now or after a delay.

use super::delayed::Delayed;
use super::entry::{Entry, ExpiryKey};
use super::ready::Ready;
use crate::ids::EntryId;

/// Ready and delayed messages.
#[derive(Debug)]
pub(super) struct WaitingMessages {
    pub(super) ready: Ready,
    pub(super) delayed: Delayed,
}

impl WaitingMessages {
    /// True if the message waits in memory.
    pub(super) fn contains(&self, id: EntryId) -> bool {
        self.ready.contains(id) || self.delayed.contains(id)
    }

    /// Takes a message that waits in memory.
    pub(super) fn take(&mut self, id: EntryId) -> Option<Entry> {
        self.ready.take(id).or_else(|| self.delayed.take(id))
    }

    /// The expiry keys of all messages in memory.
    pub(super) fn iter(&self) -> impl Iterator<Item = ExpiryKey> {
        self.ready.iter().chain(self.delayed.iter())
    }

    /// The messages among which the one is that waits longest, as far as it is not being read from disk.
    pub(super) fn oldest(&self) -> impl Iterator<Item = ExpiryKey> {
        self.ready.oldest().chain(self.delayed.oldest())
    }
}
