//! The messages of a queue that wait for a consumer, now or after a delay.
//!
//! A returned message that waits keeps its place and its deadline. A scheduled message gets its place when it
//! becomes ready, and expires no earlier than its TTL after that.

use super::delayed::Delayed;
use super::entry::{Entry, ExpiryKey};
use super::ready::Ready;
use super::scheduled::Scheduled;
use super::totals::CountedBytes;
use crate::ids::EntryId;
use crate::time::Time;

/// Ready, delayed and scheduled messages.
#[derive(Debug)]
pub(super) struct WaitingMessages {
    pub(super) ready: Ready,
    /// Returned messages before they are delivered again.
    pub(super) delayed: Delayed,
    /// Messages before their delivery time; none for the many queues that never had one.
    scheduled: Option<Box<Scheduled>>,
}

/// The scheduled messages of a queue that never had one.
static NONE_SCHEDULED: Scheduled = Scheduled::new(CountedBytes::Body);

impl WaitingMessages {
    pub(super) fn new(ready: Ready, counted: CountedBytes) -> Self {
        Self { ready, delayed: Delayed::new(counted), scheduled: None }
    }

    /// The messages before their delivery time.
    pub(super) fn schedules(&self) -> &Scheduled {
        self.scheduled.as_deref().unwrap_or(&NONE_SCHEDULED)
    }

    /// The messages before their delivery time, by time.
    pub(super) fn scheduled(&self) -> &Delayed {
        self.schedules().waiting()
    }

    /// Lets a message wait for its delivery time.
    pub(super) fn schedule(&mut self, ready_at: Time, entry: Entry) {
        let counted = self.ready.counted();
        let scheduled = self.scheduled.get_or_insert_with(|| Box::new(Scheduled::new(counted)));
        scheduled.insert(ready_at, entry);
    }

    /// Takes a message before or at its delivery time, which `choose` selects.
    pub(super) fn take_scheduled<T>(
        &mut self,
        choose: impl FnOnce(&mut Scheduled) -> Option<T>,
    ) -> Option<T> {
        choose(self.scheduled.as_deref_mut()?)
    }

    /// Marks the durable messages whose delivery time has come as possibly delivered before a crash.
    pub(super) fn mark_due_as_seen(&mut self, now: Time) {
        if let Some(scheduled) = &mut self.scheduled {
            scheduled.mark_due_as_seen(now);
        }
    }

    /// Removes all messages before their delivery time.
    pub(super) fn clear_scheduled(&mut self) {
        self.scheduled = None;
    }

    /// True if the message waits in memory and may expire.
    pub(super) fn contains(&self, id: EntryId) -> bool {
        self.ready.contains(id) || self.delayed.contains(id)
    }

    /// Takes a message that waits in memory.
    pub(super) fn take(&mut self, id: EntryId) -> Option<Entry> {
        self.ready.take(id).or_else(|| self.delayed.take(id))
    }

    /// The expiry keys of all messages in memory that may expire.
    pub(super) fn iter(&self) -> impl Iterator<Item = ExpiryKey> {
        self.ready.iter().chain(self.delayed.iter())
    }

    /// The messages among which the one is that waits longest, as far as it is not being read from disk.
    pub(super) fn oldest(&self) -> impl Iterator<Item = ExpiryKey> {
        self.ready.oldest().chain(self.delayed.oldest())
    }
}
