//! The receiver of the records of a log that is read.

use super::References;
use crate::segment_reader::Record;

/// Takes the records of a log, in order, while the log is read. A closure is one.
pub trait RecordSink {
    /// Takes a record. References of this and earlier records that the record ends are released now or later.
    fn record(&mut self, record: Record<'_>, references: &mut References<'_>);

    /// All records have been passed: the last call, in which every reference that ended is released. Not called if
    /// the log cannot be read to its end.
    fn end(&mut self, references: &mut References<'_>) {
        let _ = references;
    }
}

impl<F: FnMut(Record<'_>, &mut References<'_>)> RecordSink for F {
    fn record(&mut self, record: Record<'_>, references: &mut References<'_>) {
        self(record, references);
    }
}

/// Ignores all records, for an examination of the log itself.
#[derive(Clone, Copy, Debug)]
pub struct IgnoreRecords;

impl RecordSink for IgnoreRecords {
    fn record(&mut self, _: Record<'_>, _: &mut References<'_>) {}
}
