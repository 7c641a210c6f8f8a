//! The entries of a log as far as background work needs to know them: which there are, which are committed,
//! which are applied, and which members still need.

use std::sync::{Arc, Weak};

use super::entry::{EntryIndex, Term};
use super::entry_map::{EntryMap, EntryMark};
use crate::format::{EntryHeader, Layout, Lsn};
use crate::manifest::{FileEntry, GroupFacts, Manifest};
use crate::segment_reader::ScannedEntry;

/// State of the entries of a replicated log.
#[derive(Debug)]
pub(crate) struct EntryState {
    pub(crate) map: EntryMap,
    /// Entries up to this one are committed.
    pub(crate) commit: EntryIndex,
    /// Entries up to this one are applied: their records are in the liveness.
    pub(crate) applied: EntryIndex,
    /// Last position of the last entry that was applied.
    pub(crate) applied_position: Lsn,
    /// First entry that a member still needs.
    pub(crate) needed_from: EntryIndex,
    /// Bytes of entries in sealed files that are kept for members that need them.
    pub(crate) retention_bytes: u64,
    /// Shipments on their way: whoever has one needs the entries behind it next.
    pub(crate) shipped: Vec<Weak<ShippedEnd>>,
}

/// The end of a shipment that is on its way.
#[derive(Debug)]
pub(crate) struct ShippedEnd {
    /// Last entry whose effects are in the files.
    pub(crate) index: EntryIndex,
    /// Bytes of the files.
    pub(crate) bytes: u64,
}

impl EntryState {
    /// Ids of the sealed files that a compaction may rewrite: all their entries are applied, and no member needs
    /// them or the bytes that members need are too many. Behind a shipment, as many bytes as it has itself are not too
    /// many: a member that gets files more slowly than entries are written would never become level otherwise.
    pub(crate) fn compactable(&self, manifest: &Manifest) -> Vec<u64> {
        let on_their_way: Vec<Arc<ShippedEnd>> =
            self.shipped.iter().filter_map(Weak::upgrade).collect();
        let mut free = Vec::new();
        let mut needed_bytes = 0_u64;
        // The last entry of a file is the one before the next.
        let mut last = self.map.last();
        for file in manifest.files.iter().rev() {
            let is_needed = file.layout == Layout::Entries && last >= self.needed_from;
            if is_needed {
                needed_bytes = needed_bytes.saturating_add(file.bytes);
            }
            let mut shipped = on_their_way.iter();
            let is_behind_shipment =
                shipped.any(|shipped| last > shipped.index && needed_bytes <= shipped.bytes);
            let is_retained =
                is_needed && (needed_bytes <= self.retention_bytes || is_behind_shipment);
            if file.is_sealed() && last <= self.applied && !is_retained {
                free.push(file.id);
            }
            last = file.before.0;
        }
        free
    }
}

/// The entries of a log while its files are read.
#[derive(Debug)]
pub(crate) struct EntryReading {
    /// Entries up to this one are committed.
    commit: EntryIndex,
    map: EntryMap,
    applied: EntryIndex,
    applied_position: Lsn,
    /// True if the entry that is being read is committed.
    is_committed: bool,
}

impl EntryReading {
    /// Begins to read; entries up to `commit` are committed.
    pub(crate) fn new(commit: EntryIndex) -> Self {
        Self {
            commit,
            map: EntryMap::default(),
            applied: EntryIndex(0),
            applied_position: Lsn(0),
            is_committed: true,
        }
    }

    /// True if the record that is being read belongs to a committed entry.
    pub(crate) fn is_committed(&self) -> bool {
        self.is_committed
    }

    /// Begins a file. Records of a rewritten file are committed, because it was rewritten.
    pub(crate) fn begin_file(&mut self, file: &FileEntry) {
        self.is_committed = true;
        self.continue_behind(file.before, Lsn(file.first.0.saturating_sub(1)));
    }

    /// Notes that everything up to an entry, whose last position is `position`, is in the files so far.
    fn continue_behind(&mut self, before: (EntryIndex, Term), position: Lsn) {
        // A gap is a file that was rewritten, and has no entries any more.
        if before.0 > self.map.last() {
            self.map.begin_behind(before);
        }
        self.note_applied(before.0, position);
    }

    fn note_applied(&mut self, index: EntryIndex, position: Lsn) {
        if index <= self.commit {
            self.applied = self.applied.max(index);
            self.applied_position = self.applied_position.max(position);
        }
    }

    /// Begins an entry of the file with the id `file`.
    pub(crate) fn begin_entry(&mut self, file: u64, entry: &ScannedEntry) {
        let EntryHeader { index, term, .. } = entry.header;
        let (index, term) = (EntryIndex(index), Term(term));
        // Entries before it were damaged; the term of the one before is unknown.
        if index.0 > self.map.last().0 + 1 {
            self.map.begin_behind((EntryIndex(index.0 - 1), Term(0)));
        }
        // Damage may have repeated an index; the report tells it.
        if index > self.map.last() {
            self.map.push(term, EntryMark { index, file, offset: entry.offset });
        }
        self.is_committed = index <= self.commit;
        self.note_applied(index, entry.last);
    }

    /// Ends the reading of files whose last position is `end`. Returns the last position with that of the base.
    pub(crate) fn finish(mut self, facts: &GroupFacts, end: Lsn) -> (EntryState, Lsn) {
        let (index, term, position) = facts.base;
        let end = end.max(position);
        self.continue_behind((index, term), position);
        if self.map.last() <= self.commit {
            // Everything is applied, also what rewritten files at the end have lost.
            self.applied_position = end;
        }
        let state = EntryState {
            map: self.map,
            commit: self.applied,
            applied: self.applied,
            applied_position: self.applied_position,
            needed_from: EntryIndex(0),
            retention_bytes: 0,
            shipped: Vec::new(),
        };
        (state, end)
    }

    /// The last position that is known to be applied, if entries that were committed are in no file.
    pub(crate) fn lacks_committed_behind(&self, facts: &GroupFacts) -> Option<Lsn> {
        let is_lacking = self.map.last().max(facts.base.0) < self.commit;
        is_lacking.then_some(self.applied_position)
    }
}
