//! A batch of records becomes an entry.

use bytes::Bytes;

use super::entry::{EntryContent, EntryFacts, EntryIndex, EntryRecords, LogEntry, Term};
use crate::format::entry_seed;
use crate::write_batch::WriteBatch;

impl WriteBatch {
    /// Makes an entry of the records of the batch. `None` if all were elided and no reference ends: then no entry
    /// is needed. The batch stays as it is; [`WriteBatch::clear`] readies it for the next records.
    pub fn seal_as_entry(
        &mut self,
        log_id: u64,
        index: EntryIndex,
        term: Term,
        axis_us: u64,
    ) -> Option<(LogEntry, EntryFacts)> {
        self.remove_dropped();
        let records = self.records().iter().map(|record| (record.lsn, record.references)).collect();
        let facts = EntryFacts { records, released: self.released().to_vec() };
        let content = match facts.records.first() {
            Some((first, _)) => {
                let (first, last) = (*first, self.last());
                let (bytes, count) = self.encoder.records_with(entry_seed(log_id, term.0, index.0));
                EntryContent::Records(EntryRecords {
                    first,
                    last,
                    count,
                    bytes: Bytes::from(bytes),
                })
            }
            None if facts.released.is_empty() => return None,
            None => EntryContent::Empty,
        };
        Some((LogEntry { index, term, axis_us, content }, facts))
    }
}
