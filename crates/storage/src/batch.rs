//! The octets of a batch while it is put together.

use crate::format::{
    BATCH_ALIGN, BATCH_HEADER_BYTES, BatchHeader, Lsn, RECORD_HEADER_BYTES, RecordHeader, guard,
    put, spend,
};

/// Records one behind the other, with room for the batch's header in front.
#[derive(Debug)]
pub(crate) struct Batch {
    octets: Vec<u8>,
    /// Where each record stands.
    records: Vec<(usize, usize)>,
}

impl Default for Batch {
    fn default() -> Self {
        Self { octets: vec![0; BATCH_HEADER_BYTES], records: Vec::new() }
    }
}

impl Batch {
    /// Octets of its records.
    pub(crate) fn len(&self) -> usize {
        self.octets.len() - BATCH_HEADER_BYTES
    }

    /// How many records.
    pub(crate) fn count(&self) -> usize {
        self.records.len()
    }

    /// Appends a record; the length in `header` becomes what `payload` writes.
    pub(crate) fn push(&mut self, header: &RecordHeader, payload: impl FnOnce(&mut Vec<u8>)) {
        let start = self.octets.len();
        self.octets.extend(header.encode());
        payload(&mut self.octets);
        let len = self.octets.len() - start;
        let length = u32::try_from(len - RECORD_HEADER_BYTES).unwrap_or(u32::MAX);
        if let Some(header) = self.octets.get_mut(start..) {
            put(header, 0, length);
        }
        self.records.push((start, len));
    }

    /// The references of the record with this number have ended.
    pub(crate) fn mark_spent(&mut self, number: usize) {
        if let Some((start, _)) = self.records.get(number)
            && let Some(header) = self.octets.get_mut(*start..)
        {
            spend(header);
        }
    }

    /// Takes out the records for which `keep` does not hold; it is given their numbers.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut end = BATCH_HEADER_BYTES;
        let mut number = 0;
        let octets = &mut self.octets;
        self.records.retain_mut(|(start, len)| {
            let is_kept = keep(number);
            number += 1;
            if is_kept {
                octets.copy_within(*start..*start + *len, end);
                *start = end;
                end += *len;
            }
            is_kept
        });
        self.octets.truncate(end);
    }

    /// Guards every record and gives what to write, with the batch's CRC. `describe` makes the header
    /// of so many records in so many octets.
    pub(crate) fn seal(
        &mut self,
        file_id: u64,
        (first, last): (Lsn, Lsn),
        synced: Lsn,
        previous_crc: u32,
    ) -> (&[u8], u32) {
        let header = BatchHeader {
            length: u32::try_from(self.len()).unwrap_or(u32::MAX),
            count: u32::try_from(self.count()).unwrap_or(u32::MAX),
            first,
            last,
            synced,
            previous_crc,
        };
        let crc = header.write(file_id, &mut self.octets);
        for (start, len) in &self.records {
            if let Some(record) = self.octets.get_mut(*start..*start + *len) {
                guard(crc, record);
            }
        }
        let whole = self.octets.len().next_multiple_of(BATCH_ALIGN);
        self.octets.resize(whole, 0);
        (&self.octets, crc)
    }

    /// Forgets everything and keeps the buffers, if they are not larger than `bytes`.
    pub(crate) fn clear(&mut self, bytes: usize) {
        self.octets.truncate(BATCH_HEADER_BYTES);
        self.octets.shrink_to(bytes);
        self.records.clear();
    }
}
