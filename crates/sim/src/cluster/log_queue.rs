//! Records of the vhost that wait for the replicator, as the server keeps them.

use broker::time::Now;
use broker::{Lsn, Record, RecordRole};
use storage::{Flags, NewRecord, WriteBatch, WriteQueue};

/// Records that wait for the replicator.
#[derive(Default, Debug)]
pub(crate) struct LogQueue {
    records: WriteQueue,
}

/// A record as the core reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedRecord<'a> {
    pub(crate) lsn: Lsn,
    pub(crate) at: Now,
    pub(crate) about: Lsn,
    pub(crate) is_joined: bool,
    pub(crate) record: &'a Record,
}

impl LogQueue {
    pub(crate) fn append(&mut self, queued: QueuedRecord<'_>) {
        let QueuedRecord { lsn, at, about, is_joined, record } = queued;
        let new = NewRecord {
            lsn: storage::Lsn(lsn.0),
            target: storage::Lsn(about.0),
            kind: record.kind(),
            flags: flags(record.role(), about),
            references: record.references(),
            format_version: record.format_version(),
            is_joined,
        };
        self.records.push(new, |out| record.encode(at.on_axis(), out));
        if matches!(record, Record::Digest(_)) {
            self.records.end_batch();
        }
    }

    pub(crate) fn release(&mut self, lsn: Lsn) {
        self.records.release(storage::Lsn(lsn.0));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes the first batch. True if more records wait.
    pub(crate) fn take_batch(&mut self, batch: &mut WriteBatch) -> bool {
        self.records.take_batch(batch)
    }
}

fn flags(meaning: RecordRole, about: Lsn) -> Flags {
    let releases = if about == Lsn(0) { Flags::NONE } else { Flags::RELEASES };
    match meaning {
        RecordRole::Stands => Flags::NONE,
        RecordRole::Releases => releases,
        RecordRole::Annotates => Flags::ANNOTATES,
        RecordRole::EndsMany => Flags::ENDS_MANY,
        RecordRole::ReleasesMany => releases.and(Flags::ENDS_MANY),
    }
}
