//! Replays the records of the log into nothing but sets of entries.

use std::collections::{BTreeMap, BTreeSet};

use broker::{Entries, EntryId, QueueNumber, Record};

/// What a restart would find.
#[derive(Default)]
pub(crate) struct Replay(BTreeMap<QueueNumber, BTreeSet<EntryId>>);

impl Replay {
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::DeclareQueue { queue, .. } => {
                self.0.insert(*queue, BTreeSet::new());
            }
            Record::DeleteQueue { queue } => {
                self.0.remove(queue);
            }
            Record::Purge { queue, kept } => {
                self.0.get_mut(queue).unwrap().retain(|e| kept.contains(e))
            }
            Record::Pend { queue, entry, .. } => self.stays(*queue, *entry),
            Record::Publish { entries, .. } => self.enter(entries),
            Record::Settle { queue, entry } => self.leave(*queue, *entry),
            Record::DeadLetter { queue, entry, entries, .. } => {
                self.leave(*queue, *entry);
                self.enter(entries);
            }
            Record::Requeue { queue, entry, .. } => self.stays(*queue, *entry),
            Record::DeclareExchange { .. }
            | Record::DeleteExchange { .. }
            | Record::Bind(_)
            | Record::Unbind(_) => {}
        }
    }

    fn enter(&mut self, entries: &Entries) {
        for (queue, entry) in entries {
            let is_new = self.0.get_mut(queue).unwrap().insert(*entry);
            assert!(is_new, "{entry:?} enters {queue} twice");
        }
    }

    fn leave(&mut self, queue: QueueNumber, entry: EntryId) {
        let was_there = self.0.get_mut(&queue).unwrap().remove(&entry);
        assert!(was_there, "{entry:?} leaves {queue} without being there");
    }

    fn stays(&self, queue: QueueNumber, entry: EntryId) {
        assert!(self.0[&queue].contains(&entry), "{entry:?} stays in {queue} without being there");
    }

    pub(crate) fn entries(&self) -> &BTreeMap<QueueNumber, BTreeSet<EntryId>> {
        &self.0
    }
}
