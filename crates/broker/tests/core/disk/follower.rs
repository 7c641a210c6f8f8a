//! A replica that follows a vhost: it gets the records of each batch as the log of the leader writes them, from their
//! bytes, and is promoted at any moment.

use std::collections::BTreeMap;

use broker::time::{Now, Time};
use broker::{
    Divergence, Effect, Envelopes, Lsn, QueueDigest, Record, RecordRole, Replay, Vhost,
    VhostOptions,
};

use super::page_store::PageStore;

/// A record of a batch, with what the log knows of it.
#[derive(Clone, Debug)]
struct BatchRecord {
    lsn: Lsn,
    kind: u8,
    bytes: Vec<u8>,
    references: u16,
    references_left: u16,
    is_required: bool,
    is_spent: bool,
}

impl BatchRecord {
    fn is_dropped(&self) -> bool {
        self.references > 0 && self.references_left == 0
    }
}

/// A batch of the leader, without the records that ended before it was written.
#[derive(Default, Clone, Debug)]
struct Entry {
    records: Vec<BatchRecord>,
    last: Lsn,
    /// The time of the axis at which the batch was written.
    axis: Time,
    /// True for the empty entry with which a term begins.
    begins_term: bool,
}

impl Entry {
    /// Adds a record as a batch of the log does: one whose last reference ends is dropped, with the record that says so.
    fn add(&mut self, effect: &Effect) {
        let Effect::Log { lsn, at, about, ended, record, .. } = effect else { return };
        self.last = *lsn;
        for lsn in ended {
            self.release(*lsn);
        }
        let role = record.role();
        let releases = matches!(role, RecordRole::Releases | RecordRole::ReleasesMany);
        let is_target_dropped = releases && self.release(*about);
        let references = record.references();
        if is_target_dropped && references == 0 && role == RecordRole::Releases {
            return;
        }
        let mut bytes = Vec::new();
        record.encode(at.on_axis(), &mut bytes);
        self.records.push(BatchRecord {
            lsn: *lsn,
            kind: record.kind(),
            bytes,
            references,
            references_left: references,
            is_required: releases && *about != Lsn(0) && !is_target_dropped,
            is_spent: false,
        });
    }

    fn release(&mut self, target: Lsn) -> bool {
        let found = self.records.binary_search_by_key(&target, |record| record.lsn);
        let Ok(at) = found else { return false };
        let record = &mut self.records[at];
        if record.references_left == 0 {
            return false;
        }
        record.references_left -= 1;
        if record.references_left > 0 {
            return false;
        }
        if record.is_required {
            (record.references, record.is_spent) = (0, true);
        }
        true
    }
}

/// A replica.
pub(crate) struct Follower {
    options: VhostOptions,
    replay: Replay,
    pages: PageStore,
    envelopes: Envelopes,
    /// All entries that the leader has written.
    entries: Vec<Entry>,
    /// The batch that the leader fills.
    open: Entry,
    /// The kind of records that this replica misses, to see that a digest finds it.
    misses: Option<u8>,
    digests: usize,
}

impl Follower {
    pub(crate) fn new(options: VhostOptions) -> Self {
        assert!(options.delivers_after_commit, "only a replicated vhost has replicas");
        let mut replay = Replay::new(Vhost::new("/", [9; 32], options), Time::default());
        replay.follow(Lsn(0)).unwrap();
        Self {
            options,
            replay,
            pages: PageStore::default(),
            envelopes: Envelopes::default(),
            entries: Vec::new(),
            open: Entry::default(),
            misses: None,
            digests: 0,
        }
    }

    /// A replica that misses the records of a kind.
    pub(crate) fn that_misses(options: VhostOptions, kind: u8) -> Self {
        Self { misses: Some(kind), ..Self::new(options) }
    }

    /// Takes note of what the leader logs.
    pub(crate) fn write(&mut self, effect: &Effect) {
        self.open.add(effect);
    }

    /// The batch of the leader is durable on a majority, at this time of the axis.
    pub(crate) fn end_entry(&mut self, axis: Time) -> Result<(), Divergence> {
        if self.open.last == Lsn(0) {
            return Ok(());
        }
        let mut entry = Entry { axis, ..std::mem::take(&mut self.open) };
        entry.records.retain(|record| !record.is_dropped());
        if entry.records.is_empty() {
            // An entry without records is not written.
            return Ok(());
        }
        let applied = self.apply(&entry);
        self.entries.push(entry);
        applied
    }

    fn apply(&mut self, entry: &Entry) -> Result<(), Divergence> {
        if entry.begins_term {
            self.replay.begin_term();
            return Ok(());
        }
        self.replay.set_now(entry.axis);
        for record in &entry.records {
            if self.misses == Some(record.kind) {
                continue;
            }
            let decoded = Record::decode(record.kind, &record.bytes, &mut self.envelopes).unwrap();
            self.digests += usize::from(matches!(decoded.record, Record::Digest(_)));
            let (replay, pages) = (&mut self.replay, &mut self.pages);
            replay.apply(record.lsn, decoded, record.is_spent, pages, &mut |_| {})?;
        }
        self.replay.end_entry(entry.last)
    }

    /// A new replica that gets the same entries, so many at once.
    pub(crate) fn again(&self, at_once: &mut dyn FnMut() -> usize) -> Self {
        let mut again = Self::new(self.options);
        let mut entries = self.entries.iter();
        loop {
            if entries.as_slice().first().is_some_and(|entry| entry.begins_term) {
                entries.next();
                again.replay.begin_term();
            }
            let is_of_term = entries.as_slice().iter().take_while(|entry| !entry.begins_term);
            let count = is_of_term.count().min(at_once().max(1));
            let together: Vec<&Entry> = entries.by_ref().take(count).collect();
            let Some(newest) = together.last() else {
                if entries.as_slice().is_empty() {
                    break;
                }
                continue;
            };
            let joined = Entry {
                records: together.iter().flat_map(|entry| entry.records.clone()).collect(),
                last: newest.last,
                axis: newest.axis,
                begins_term: false,
            };
            again.apply(&joined).unwrap();
        }
        again.entries.clone_from(&self.entries);
        again
    }

    /// A new replica that reads the same entries as its own log, as far as a compaction leaves them: without the
    /// publishes of messages that are gone.
    pub(crate) fn read_back(&self, references: &BTreeMap<Lsn, u16>) -> Self {
        let vhost = Vhost::new("/", [9; 32], self.options);
        let now = self.entries.last().map(|entry| entry.axis).unwrap_or_default();
        let mut replay = Replay::new(vhost, now);
        let mut pages = PageStore::default();
        let publish = 1;
        for record in self.entries.iter().flat_map(|entry| &entry.records) {
            if record.kind == publish && !references.contains_key(&record.lsn) {
                continue;
            }
            let decoded = Record::decode(record.kind, &record.bytes, &mut Envelopes::default());
            let decoded = decoded.unwrap();
            replay.apply(record.lsn, decoded, record.is_spent, &mut pages, &mut |_| {}).unwrap();
        }
        replay.follow(self.entries.last().map(|entry| entry.last).unwrap_or_default()).unwrap();
        let entries = self.entries.clone();
        Self { replay, pages, entries, ..Self::new(self.options) }
    }

    /// The sums of its queues.
    pub(crate) fn queue_digests(&self) -> Vec<QueueDigest> {
        self.replay.vhost().queue_digests()
    }

    /// The number of digests that it has compared.
    pub(crate) fn digests(&self) -> usize {
        self.digests
    }

    /// The term of another leader begins.
    pub(crate) fn begin_term(&mut self) {
        self.replay.begin_term();
        let (axis, last) =
            self.entries.last().map(|entry| (entry.axis, entry.last)).unwrap_or_default();
        self.entries.push(Entry { records: Vec::new(), last, axis, begins_term: true });
    }

    /// The replica leads from now on, and finds in the log whether the leader before has handed over.
    pub(crate) fn take_over(mut self, now: Now) -> (Vhost, PageStore) {
        self.replay.leader_changed(now.time);
        let last = self.replay.vhost().last_lsn();
        let vhost = self.replay.finish(now, last, &mut self.pages);
        (vhost, self.pages)
    }

    /// The replica leads from now on; `is_planned` if the leader before it has handed over.
    pub(crate) fn promote(mut self, now: Now, is_planned: bool) -> (Vhost, PageStore) {
        if !is_planned {
            self.replay.leader_lost(now.time);
        }
        let last = self.replay.vhost().last_lsn();
        let vhost = self.replay.finish(now, last, &mut self.pages);
        (vhost, self.pages)
    }
}
