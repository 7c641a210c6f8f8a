//! Operations of a queue that only the replay of records needs.

use super::ready::Place;
use super::{Entry, Queue};
use crate::ids::EntryId;
use crate::page::Pages;
use crate::time::Time;

/// An unacknowledged message that stays in a queue that is purged, as it was.
#[derive(Debug)]
pub(crate) struct KeptMessage {
    /// The place of a message that was returned.
    returned: Option<Place>,
    /// The time at which a message that was returned is ready.
    ready_at: Option<Time>,
    entry: Entry,
}

impl Queue {
    /// Prepares for a message with the number `seq`, which is about to enter.
    ///
    /// A leader continues after the last number that its own log has. If a compaction took the newest messages from
    /// there, which were gone, it gives their numbers to new messages. The deadlines that are still listed for the old
    /// ones would end the new ones early.
    pub(crate) fn accept_number(&mut self, seq: u64) {
        if seq > self.waiting.ready.last_seq() {
            return;
        }
        self.expiry.squeeze(&self.waiting);
        let others =
            self.waiting.delayed().oldest().is_none() && self.waiting.scheduled().is_empty();
        if others {
            self.waiting.ready.continue_after(seq);
        }
    }

    /// Takes the messages that stay, as far as they are here.
    pub(crate) fn take_kept(
        &mut self,
        kept: &[EntryId],
        pages: &mut dyn Pages,
    ) -> Vec<KeptMessage> {
        let mut messages: Vec<KeptMessage> = Vec::new();
        for id in kept {
            let returned = self.waiting.ready.returned_places.get(&id.seq).copied();
            let ready_at = self.waiting.delayed().get(*id).map(|((ready_at, _), _)| ready_at);
            let entry = self.take(*id, pages);
            messages.extend(entry.map(|entry| KeptMessage { returned, ready_at, entry }));
        }
        // In the order of their return.
        messages.sort_by_key(|message| (message.returned, message.entry.id));
        messages
    }

    /// Puts messages that stay back into the queue, which is empty.
    pub(crate) fn put_kept(&mut self, messages: Vec<KeptMessage>) {
        for KeptMessage { returned, ready_at, entry } in messages {
            match (returned, ready_at) {
                (_, Some(ready_at)) => self.delay(entry, ready_at),
                (Some(_), None) => self.give_back(entry),
                (None, None) => self.push(entry.id, entry.message, entry.lsn, entry.arrived),
            }
        }
    }
}

impl KeptMessage {
    /// The number of the message.
    pub(crate) fn seq(&self) -> u64 {
        self.entry.id.seq
    }
}
