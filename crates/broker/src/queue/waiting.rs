//! The messages of a queue that wait for a consumer, now or after a delay.
//!
//! A returned message that waits keeps its place and its deadline. A scheduled message gets its place when it
//! becomes ready, and expires no earlier than its TTL after that.

use super::ready::Ready;
use crate::entry::totals::CountedBytes;
use crate::entry::{Entry, ExpiryKey};
use crate::ids::{EntryId, PageId};
use crate::page::EndedMessages;
use crate::scheduled::Scheduled;
use crate::scheduled::delayed::Delayed;
use crate::time::Time;

/// Ready, delayed and scheduled messages.
#[derive(Debug)]
pub(super) struct WaitingMessages {
    pub(super) ready: Ready,
    /// Returned messages before they are delivered again; none in a queue that never had one.
    delayed: Option<Box<Delayed>>,
    /// Messages before their delivery time; none for the many queues that never had one.
    scheduled: Option<Box<Scheduled>>,
}

/// The returned messages of a queue in which none ever waited.
static NONE_DELAYED: Delayed = Delayed::new(CountedBytes::Body);

/// The scheduled messages of a queue that never had one.
static NONE_SCHEDULED: Scheduled = Scheduled::new(CountedBytes::Body);

impl WaitingMessages {
    pub(super) const fn new(ready: Ready) -> Self {
        Self { ready, delayed: None, scheduled: None }
    }

    /// The returned messages that wait before they are delivered again.
    pub(super) fn delayed(&self) -> &Delayed {
        self.delayed.as_deref().unwrap_or(&NONE_DELAYED)
    }

    /// The returned messages that wait, unless the queue never had one.
    pub(super) fn delayed_mut(&mut self) -> Option<&mut Delayed> {
        self.delayed.as_deref_mut()
    }

    /// Lets a returned message wait.
    pub(super) fn delay(&mut self, ready_at: Time, entry: Entry) {
        let counted = self.ready.counted();
        self.delayed.get_or_insert_with(|| Box::new(Delayed::new(counted))).insert(ready_at, entry);
    }

    /// The messages before their delivery time.
    pub(super) fn scheduled(&self) -> &Scheduled {
        self.scheduled.as_deref().unwrap_or(&NONE_SCHEDULED)
    }

    /// The messages before their delivery time, unless the queue never had one.
    pub(super) fn scheduled_mut(&mut self) -> Option<&mut Scheduled> {
        self.scheduled.as_deref_mut()
    }

    /// Lets a message wait for its delivery time.
    pub(super) fn schedule(&mut self, ready_at: Time, entry: Entry) {
        let (counted, memory) = (self.ready.counted(), self.ready.queue_memory());
        let scheduled = self
            .scheduled
            .get_or_insert_with(|| Box::new(Scheduled::new(counted).with_memory(memory)));
        scheduled.insert(ready_at, entry);
    }

    /// Marks the durable messages whose delivery time has come as possibly delivered before a crash.
    pub(super) fn mark_due_as_seen(&mut self, now: Time) {
        if let Some(scheduled) = &mut self.scheduled {
            scheduled.mark_due_as_seen(now);
        }
    }

    /// Removes all messages before their delivery time. Returns their pages with what was in them.
    pub(super) fn clear_scheduled(&mut self) -> Vec<(PageId, EndedMessages)> {
        self.scheduled.take().map(|mut scheduled| scheduled.clear()).unwrap_or_default()
    }

    /// True if the message waits in memory and may expire.
    pub(super) fn contains(&self, id: EntryId) -> bool {
        self.ready.contains(id) || self.delayed.as_ref().is_some_and(|delayed| delayed.contains(id))
    }

    /// Takes a message that waits in memory.
    pub(super) fn take(&mut self, id: EntryId) -> Option<Entry> {
        self.ready.take(id).or_else(|| self.delayed.as_mut()?.take(id))
    }

    /// The expiry keys of all messages in memory that may expire.
    pub(super) fn iter(&self) -> impl Iterator<Item = ExpiryKey> {
        self.ready.iter().chain(self.delayed().iter())
    }

    /// The messages among which the one is that waits longest, as far as it is not being read from disk.
    pub(super) fn oldest(&self) -> impl Iterator<Item = ExpiryKey> {
        self.ready.oldest().chain(self.delayed().oldest())
    }
}
