//! Replays the records of the log: as they come into nothing but sets of entries, and at the end of a
//! history, from their bytes, into a vhost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use broker::time::Now;
use broker::{
    Effect, Entries, EntryId, Envelopes, Lsn, Name, QueueNumber, QueueRecord, Record, RecordRole,
    Vhost, VhostOptions,
};

use super::page_store::PageStore;

/// The log on disk: bytes, and who refers to what.
#[derive(Default)]
pub(crate) struct Disk {
    records: Vec<(Lsn, u8, Vec<u8>)>,
    /// References left, by record.
    references: BTreeMap<Lsn, u16>,
    /// Times are those of the axis, as in the log of a replicated vhost.
    is_on_axis: bool,
}

impl Disk {
    /// The disk of a vhost with these options.
    pub(crate) fn of(options: &VhostOptions) -> Self {
        Self { is_on_axis: options.delivers_after_commit, ..Self::default() }
    }

    /// References left, by record.
    pub(crate) fn references_left(&self) -> &BTreeMap<Lsn, u16> {
        &self.references
    }

    /// Writes what an effect logs.
    pub(crate) fn write(&mut self, effect: &Effect) {
        let Effect::Log { lsn, at, about, ended, record, .. } = effect else { return };
        let mut bytes = Vec::new();
        record.encode(if self.is_on_axis { at.on_axis() } else { *at }, &mut bytes);
        self.records.push((*lsn, record.kind(), bytes));
        if record.references() > 0 {
            self.references.insert(*lsn, record.references());
        }
        let meaning = record.role();
        if matches!(meaning, RecordRole::Releases | RecordRole::ReleasesMany) && *about != Lsn(0) {
            self.end(*about);
        }
        ended.iter().for_each(|lsn| self.end(*lsn));
    }

    /// One reference of a record ends.
    pub(crate) fn end(&mut self, lsn: Lsn) {
        let left = self.references.get_mut(&lsn).expect("a record that is referred to");
        *left -= 1;
        if *left == 0 {
            self.references.remove(&lsn);
        }
    }

    /// Leaves out the publishes of ended messages, but not the records of the end, as a compaction may.
    pub(crate) fn compact(&mut self) {
        let publish = 1;
        let references = &self.references;
        self.records.retain(|(lsn, kind, _)| *kind != publish || references.contains_key(lsn));
    }

    /// The number of references to all records.
    pub(crate) fn references(&self) -> u64 {
        self.references.values().map(|count| u64::from(*count)).sum()
    }

    /// The vhost that comes back, and what of it was put aside on the way.
    pub(crate) fn restart(&self, now: Now, before: &Vhost) -> (Vhost, PageStore) {
        let (replay, last, mut page_store) = self.replayed(now, before);
        (replay.finish(now, last, &mut page_store), page_store)
    }

    /// The vhost that comes back after a crash, which may have lost records.
    pub(crate) fn restart_after_crash(&self, now: Now, before: &Vhost) -> (Vhost, PageStore) {
        let (mut replay, last, mut page_store) = self.replayed(now, before);
        replay.records_lost();
        (replay.finish(now, last, &mut page_store), page_store)
    }

    fn replayed(&self, now: Now, before: &Vhost) -> (broker::Replay, Lsn, PageStore) {
        let mut page_store = PageStore::default();
        let mut envelopes = Envelopes::default();
        let options = before.options();
        let vhost = Vhost::new(before.name(), [1; 32], options);
        let mut replay = broker::Replay::new(vhost, now.time);
        let mut last = Lsn(0);
        for (lsn, kind, bytes) in &self.records {
            let decoded = Record::decode(*kind, bytes, &mut envelopes).unwrap();
            replay.apply(*lsn, decoded, false, &mut page_store, &mut |_| {}).unwrap();
            last = *lsn;
        }
        (replay, last, page_store)
    }
}

/// The core's invariants hold, the log's replay has exactly the durable messages there are (with a page_store those
/// in its pages, too), and the log keeps what these and the definitions need.
pub(crate) fn check(
    vhost: &Vhost,
    page_store: Option<&PageStore>,
    replay: &Replay,
    disk: &Disk,
    after: &str,
) {
    let broken = vhost.broken_invariants();
    assert!(broken.is_empty(), "after `{after}`: {broken:?}");
    let mut durable = vhost.durable_entries();
    if let Some(page_store) = page_store {
        page_store.add_durable(vhost, &mut durable);
    }
    assert_eq!(replay.entries(), &durable, "the log's replay after `{after}`");
    if page_store.is_some() && vhost.options().delivers_after_commit {
        let sums = |entries: &BTreeSet<EntryId>| {
            let seqs = entries.iter().map(|entry| entry.seq);
            (entries.len() as u64, seqs.fold(0, u64::wrapping_add))
        };
        let expected: Vec<_> =
            durable.iter().map(|(queue, entries)| (*queue, sums(entries))).collect();
        let told = vhost.queue_digests().into_iter();
        let told: Vec<_> = told.map(|told| (told.queue, (told.messages, told.seq_sum))).collect();
        assert_eq!(told, expected, "the sums after `{after}`");
    }
    let copies: usize = durable.values().map(BTreeSet::len).sum();
    let kept = (copies + vhost.durable_definitions()) as u64;
    assert_eq!(disk.references(), kept, "what the log keeps after `{after}`");
}

/// The entries that a restart would restore.
#[derive(Default)]
pub(crate) struct Replay {
    entries: BTreeMap<QueueNumber, BTreeSet<EntryId>>,
    /// The numbers of delayed exchanges.
    stores: BTreeMap<Name, QueueNumber>,
}

impl Replay {
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::DeclareQueue(QueueRecord { queue, .. }) => {
                self.entries.insert(*queue, BTreeSet::new());
            }
            Record::DeleteQueue { queue } => {
                self.entries.remove(queue);
            }
            Record::Purge { queue, kept } => {
                self.entries.get_mut(queue).unwrap().retain(|e| kept.contains(e))
            }
            Record::Pend { queue, entry, .. } => self.stays(*queue, *entry),
            Record::Publish { entries, .. } | Record::Schedule { entries, .. } => {
                self.enter(entries)
            }
            Record::Ready { queue, entry, to } => {
                self.leave(*queue, *entry);
                self.enter(&Entries::from_slice(&[(*queue, *to)]));
            }
            Record::Reschedule { queue, entry, .. } => self.stays(*queue, *entry),
            Record::Settle { queue, entry } => self.leave(*queue, *entry),
            Record::DeadLetter { queue, entry, entries, .. } => {
                self.leave(*queue, *entry);
                self.enter(entries);
            }
            Record::Requeue { queue, entry, .. } | Record::Annotate { queue, entry, .. } => {
                self.stays(*queue, *entry)
            }
            Record::Delivered { queue, .. } => assert!(self.entries.contains_key(queue)),
            Record::DeclareExchange(exchange) => {
                if let Some(store) = exchange.store {
                    self.entries.insert(store, BTreeSet::new());
                    self.stores.insert(Arc::clone(&exchange.name), store);
                }
            }
            Record::DeleteExchange { name } => {
                if let Some(store) = self.stores.remove(name) {
                    assert_eq!(self.entries.remove(&store), Some(BTreeSet::new()));
                }
            }
            Record::Bind(_)
            | Record::Unbind(_)
            | Record::SetPolicy { .. }
            | Record::ClearPolicy { .. }
            | Record::SetRedrive { .. }
            | Record::ClearRedrive { .. }
            | Record::Digest(_)
            | Record::HandOver { .. } => {}
        }
    }

    fn enter(&mut self, entries: &Entries) {
        for (queue, entry) in entries {
            let is_new = self.entries.get_mut(queue).unwrap().insert(*entry);
            assert!(is_new, "{entry:?} enters {queue} twice");
        }
    }

    fn leave(&mut self, queue: QueueNumber, entry: EntryId) {
        let was_there = self.entries.get_mut(&queue).unwrap().remove(&entry);
        assert!(was_there, "{entry:?} leaves {queue} without being there");
    }

    fn stays(&self, queue: QueueNumber, entry: EntryId) {
        assert!(
            self.entries[&queue].contains(&entry),
            "{entry:?} stays in {queue} without being there"
        );
    }

    pub(crate) fn entries(&self) -> &BTreeMap<QueueNumber, BTreeSet<EntryId>> {
        &self.entries
    }
}
