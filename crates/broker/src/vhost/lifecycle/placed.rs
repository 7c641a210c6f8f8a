//! The queues that a message is about to enter, and the records that say so.

use std::slice::Chunks;

use smallvec::SmallVec;

use crate::ids::{EntryId, Lsn, QueueId, QueueNumber};
use crate::limits::ENTRIES_PER_RECORD_MAX;
use crate::message::Message;
use crate::queue::{Entry, Queue};
use crate::record::{Entries, Record};
use crate::vhost::Vhost;

/// Queues with the place that a message gets in each.
#[derive(Default, Debug)]
pub(in crate::vhost) struct Placed {
    places: SmallVec<[Place; 4]>,
    durable: Entries,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    queue: QueueId,
    entry: EntryId,
    /// It outlives a restart there.
    is_durable: bool,
}

impl Placed {
    /// The message gets a place in `queue`.
    pub(in crate::vhost) fn assign(&mut self, id: QueueId, queue: &mut Queue, message: &Message) {
        let entry = queue.assign(message);
        let is_durable = queue.is_durable_for(message);
        self.places.push(Place { queue: id, entry, is_durable });
        if is_durable {
            self.durable.push((queue.number, entry));
        }
    }
}

impl Vhost {
    /// A message enters its queues; what outlives a restart is in the log then. The position that a
    /// confirm waits for, if any.
    pub(in crate::vhost) fn enter_placed(
        &mut self,
        message: Message,
        placed: &Placed,
    ) -> Option<Lsn> {
        let first = Lsn(self.last_lsn().0 + 1);
        let mut chunks = placed.durable.chunks(ENTRIES_PER_RECORD_MAX);
        if let Some(entries) = chunks.next() {
            let entries = Entries::from_slice(entries);
            self.log(Record::Publish { message: message.clone(), entries });
        }
        self.continue_record(&message, chunks);
        let last = (!placed.durable.is_empty()).then(|| self.last_lsn());
        self.place_all(message, first, placed);
        last
    }

    /// A dead letter enters its queues; with the same record the message that died has left its own.
    pub(in crate::vhost) fn enter_placed_dead(
        &mut self,
        message: Message,
        placed: &Placed,
        died: &Entry,
        source: QueueId,
    ) {
        let Some(source) = self.queues.get(source).filter(|_| died.is_durable()) else {
            self.enter_placed(message, placed);
            return;
        };
        let (queue, entry) = (source.number, died.id);
        let first = Lsn(self.last_lsn().0 + 1);
        let mut chunks = placed.durable.chunks(ENTRIES_PER_RECORD_MAX);
        let entries = Entries::from_slice(chunks.next().unwrap_or_default());
        self.log_about(
            died.lsn,
            Record::DeadLetter { queue, entry, message: message.clone(), entries },
        );
        self.continue_record(&message, chunks);
        self.place_all(message, first, placed);
    }

    /// The same message entered more queues than one record names.
    fn continue_record(&mut self, message: &Message, chunks: Chunks<'_, (QueueNumber, EntryId)>) {
        for entries in chunks {
            let entries = Entries::from_slice(entries);
            self.log_joined(Record::Publish { message: message.clone(), entries });
        }
    }

    /// Lets the message into each queue; `first` is the first of the records about it.
    fn place_all(&mut self, message: Message, first: Lsn, placed: &Placed) {
        let mut durable = 0;
        let mut lsn_of = |place: &Place| {
            if !place.is_durable {
                return Lsn(0);
            }
            durable += 1;
            Lsn(first.0 + ((durable - 1) / ENTRIES_PER_RECORD_MAX) as u64)
        };
        let Some((last, others)) = placed.places.split_last() else {
            return;
        };
        for place in others {
            let lsn = lsn_of(place);
            self.place(place.queue, place.entry, message.clone(), lsn);
        }
        let lsn = lsn_of(last);
        self.place(last.queue, last.entry, message, lsn);
    }
}
