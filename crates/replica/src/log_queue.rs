//! Records of one vhost that wait for the thread that writes the log, behind the vhost's lock.

use broker::time::Now;
use broker::{Lsn, Message, Record, RecordRole};
use storage::{Body, Flags, NewRecord, WriteBatch, WriteQueue};

use crate::limits::UNCOPIED_LOG_BODY_BYTES_MIN;

/// Records that wait for the writer of the log: the persister, or the replicator.
#[derive(Default, Debug)]
pub struct LogQueue {
    records: WriteQueue,
    /// True if the writer was notified of records and has not taken all of them yet.
    writer_knows: bool,
    /// True if the records tell times of the vhost's axis, because nodes with other clocks will read them.
    is_on_axis: bool,
}

/// A record as the core reports it.
#[derive(Clone, Copy, Debug)]
pub struct QueuedRecord<'a> {
    /// Position of the record.
    pub lsn: Lsn,
    /// Time of the record, for values stored as wall-clock time.
    pub at: Now,
    /// The record that this one is about; 0 for none.
    pub about: Lsn,
    /// True if the record belongs in one batch with its predecessor.
    pub is_joined: bool,
    /// The record.
    pub record: &'a Record,
}

impl LogQueue {
    /// Records of a replicated vhost, whose times are on the axis of the vhost.
    #[must_use]
    pub fn on_axis() -> Self {
        Self { is_on_axis: true, ..Self::default() }
    }

    /// Appends a record. A long body is shared with its message, not copied.
    pub fn append(&mut self, queued: QueuedRecord<'_>) {
        let QueuedRecord { lsn, at, about, is_joined, record } = queued;
        let at = if self.is_on_axis { at.on_axis() } else { at };
        let new = NewRecord {
            lsn: storage::Lsn(lsn.0),
            target: storage::Lsn(about.0),
            kind: record.kind(),
            flags: flags(record.role(), about),
            references: record.references(),
            format_version: record.format_version(),
            is_joined,
        };
        match record.message().filter(|it| it.body().len() >= UNCOPIED_LOG_BODY_BYTES_MIN) {
            Some(message) => {
                let body = Body::new(LongBody(message.clone()));
                let encode = |out: &mut Vec<u8>| record.encode_without_body(at, out);
                self.records.push_with_body(new, encode, body);
            }
            None => self.records.push(new, |out| record.encode(at, out)),
        }
        if matches!(record, Record::Digest(_)) {
            // A later record could drop a message that the digest counts.
            self.records.end_batch();
        }
    }

    /// Ends one reference to the record at `lsn`. A record that still waits here and loses its last reference
    /// is never written.
    pub fn release(&mut self, lsn: Lsn) {
        self.records.release(storage::Lsn(lsn.0));
    }

    /// Bytes of waiting records.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.bytes()
    }

    /// True if the writer must be notified now that records wait; it counts as notified from then on.
    pub fn wakes_writer(&mut self) -> bool {
        !self.records.is_empty() && !std::mem::replace(&mut self.writer_knows, true)
    }

    /// Takes the first batch into `batch`, which must be empty. True if more records wait, which the writer then knows
    /// of.
    pub fn take_batch(&mut self, batch: &mut WriteBatch) -> bool {
        let has_more = self.records.take_batch(batch);
        self.writer_knows = has_more;
        has_more
    }
}

/// A message whose body is written to the log without a copy.
struct LongBody(Message);

impl AsRef<[u8]> for LongBody {
    fn as_ref(&self) -> &[u8] {
        self.0.body()
    }
}

/// Flags of a record for the log, which does not know the meaning of records.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_that_ends_another_says_so_if_there_is_one() {
        assert_eq!(flags(RecordRole::Releases, Lsn(7)), Flags::RELEASES);
        assert_eq!(flags(RecordRole::Releases, Lsn(0)), Flags::NONE);
        let both = Flags::RELEASES.and(Flags::ENDS_MANY);
        assert_eq!(flags(RecordRole::ReleasesMany, Lsn(7)), both);
        assert_eq!(flags(RecordRole::ReleasesMany, Lsn(0)), Flags::ENDS_MANY);
        assert_eq!(flags(RecordRole::Annotates, Lsn(7)), Flags::ANNOTATES);
    }
}
