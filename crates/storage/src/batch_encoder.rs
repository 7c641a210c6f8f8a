//! Encoding of a batch: its records one behind the other, and the header in front.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;

use crate::directory::DirectoryFile;
use crate::format::{
    BATCH_ALIGN, BATCH_HEADER_BYTES, BatchHeader, Lsn, RECORD_HEADER_BYTES, RecordHeader,
    mark_spent, put, put_record_crc,
};
use crate::limits::RECORD_BYTES_MAX;

/// Bytes at the end of a record that the batch shares with their owner instead of copying them.
pub struct Body(Box<dyn AsRef<[u8]> + Send + Sync>);

impl Body {
    /// Shares the bytes of `owner`, and keeps it until they are written.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Box::new(owner))
    }

    fn as_bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.as_bytes().len())
    }
}

/// Encoded records, with room for the batch's header in front.
#[derive(Debug)]
pub(crate) struct BatchEncoder {
    bytes: Vec<u8>,
    /// Offset of each record in `bytes`, and its length without its body.
    records: Vec<(usize, usize)>,
    /// Bodies, each with the number of its record, ascending.
    bodies: Vec<(usize, Body)>,
    /// Bytes of all bodies.
    body_bytes: usize,
}

impl Default for BatchEncoder {
    fn default() -> Self {
        Self {
            bytes: vec![0; BATCH_HEADER_BYTES],
            records: Vec::new(),
            bodies: Vec::new(),
            body_bytes: 0,
        }
    }
}

impl BatchEncoder {
    /// Bytes of all records, with their bodies.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - BATCH_HEADER_BYTES + self.body_bytes
    }

    /// Number of records.
    pub(crate) fn count(&self) -> usize {
        self.records.len()
    }

    /// Appends a record: what `payload` writes, then `body`. Sets the length in the header to that of
    /// both.
    ///
    /// # Panics
    /// If the payload is longer than [`RECORD_BYTES_MAX`], which no message is.
    pub(crate) fn push(
        &mut self,
        header: &RecordHeader,
        payload: impl FnOnce(&mut Vec<u8>),
        body: Option<Body>,
    ) {
        let start = self.bytes.len();
        self.bytes.extend(header.encode());
        payload(&mut self.bytes);
        let len = self.bytes.len() - start;
        let body_len = body.as_ref().map_or(0, |body| body.as_bytes().len());
        let payload_len = len - RECORD_HEADER_BYTES + body_len;
        assert!(
            payload_len <= RECORD_BYTES_MAX,
            "record {} of {payload_len} bytes is longer than the log allows",
            header.lsn
        );
        let length = in_32_bits(payload_len);
        put(self.part_mut(start, len), 0, length);
        if let Some(body) = body {
            self.bodies.push((self.records.len(), body));
            self.body_bytes += body_len;
        }
        self.records.push((start, len));
    }

    /// Offset and length, without its body, of the record with this number.
    fn record(&self, number: usize) -> (usize, usize) {
        *self.records.get(number).expect("the number of a record in this batch")
    }

    /// The bytes of a record without its body.
    fn part_mut(&mut self, start: usize, len: usize) -> &mut [u8] {
        self.bytes.get_mut(start..start + len).expect("a record lies within the batch")
    }

    /// Bytes of the record with this number, without its body.
    pub(crate) fn record_len(&self, number: usize) -> usize {
        self.record(number).1
    }

    /// Marks the record with this number as spent: its references have ended.
    pub(crate) fn mark_spent(&mut self, number: usize) {
        let (start, len) = self.record(number);
        mark_spent(self.part_mut(start, len));
    }

    /// Drops the body of the record with this number, which will not be written.
    pub(crate) fn drop_body(&mut self, number: usize) {
        if let Ok(at) = self.bodies.binary_search_by_key(&number, |(number, _)| *number) {
            let (_, body) = self.bodies.remove(at);
            let left = self.body_bytes.checked_sub(body.as_bytes().len());
            self.body_bytes = left.expect("the bytes of each body are counted");
        }
    }

    /// Removes the records for whose numbers `keep` is false.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let Self { bytes, records, bodies, body_bytes } = self;
        let mut old_bodies = std::mem::take(bodies).into_iter().peekable();
        *body_bytes = 0;
        let mut end = BATCH_HEADER_BYTES;
        let mut number = 0;
        let mut kept = 0;
        records.retain_mut(|(start, len)| {
            let is_kept = keep(number);
            let body = old_bodies.next_if(|(of, _)| *of == number).map(|(_, body)| body);
            number += 1;
            if is_kept {
                bytes.copy_within(*start..*start + *len, end);
                *start = end;
                end += *len;
                if let Some(body) = body {
                    *body_bytes += body.as_bytes().len();
                    bodies.push((kept, body));
                }
                kept += 1;
            }
            is_kept
        });
        bytes.truncate(end);
        assert!(old_bodies.next().is_none(), "a body without a record");
    }

    /// Writes the header and the CRC of every record. Returns the CRC of the batch.
    pub(crate) fn seal(
        &mut self,
        file_id: u64,
        positions: RangeInclusive<Lsn>,
        synced: Lsn,
        previous_crc: u32,
    ) -> u32 {
        let header = BatchHeader {
            length: in_32_bits(self.len()),
            count: in_32_bits(self.count()),
            first: *positions.start(),
            last: *positions.end(),
            synced: synced.0,
            previous_crc,
            entry: None,
        };
        let crc = header.write(file_id, &mut self.bytes);
        let mut bodies = self.bodies.iter().peekable();
        for (number, (start, len)) in self.records.iter().enumerate() {
            let body = bodies.next_if(|(of, _)| *of == number).map(|(_, body)| body.as_bytes());
            let record = self.bytes.get_mut(*start..*start + *len);
            let record = record.expect("a record lies within the batch");
            put_record_crc(crc, record, body.unwrap_or_default());
        }
        crc
    }

    /// The octets of all records with their bodies, whose CRCs begin with `seed`, and the number of records.
    pub(crate) fn records_with(&self, seed: u32) -> (Vec<u8>, u32) {
        let mut out = Vec::with_capacity(self.len());
        let mut bodies = self.bodies.iter().peekable();
        for (number, (start, len)) in self.records.iter().enumerate() {
            let body = bodies.next_if(|(of, _)| *of == number).map(|(_, body)| body.as_bytes());
            let record = self.bytes.get(*start..*start + *len);
            let at = out.len();
            out.extend_from_slice(record.expect("a record lies within the batch"));
            out.extend_from_slice(body.unwrap_or_default());
            put_record_crc(seed, out.get_mut(at..).unwrap_or_default(), &[]);
        }
        (out, in_32_bits(self.count()))
    }

    /// Writes the sealed batch at `offset`. Returns its length with the gap behind it, in bytes.
    ///
    /// # Errors
    /// The system's error, perhaps after a part was written.
    pub(crate) fn write_to<F: DirectoryFile>(&mut self, file: &F, offset: u64) -> io::Result<u64> {
        let gap = (self.bytes.len() + self.body_bytes).next_multiple_of(BATCH_ALIGN)
            - (self.bytes.len() + self.body_bytes);
        let used = self.bytes.len();
        self.bytes.resize(used + gap, 0);
        let written = self.write_parts(file, offset);
        self.bytes.truncate(used);
        written
    }

    /// Writes the bytes between two bodies in one call, and each body behind its record.
    fn write_parts<F: DirectoryFile>(&self, file: &F, offset: u64) -> io::Result<u64> {
        let mut at = offset;
        let mut from = 0;
        let mut put = |bytes: &[u8]| {
            file.write_at(bytes, at)?;
            at += bytes.len() as u64;
            Ok::<(), io::Error>(())
        };
        for (number, body) in &self.bodies {
            let (start, len) = self.record(*number);
            let end = start + len;
            put(self.bytes.get(from..end).expect("bodies stand in the order of their records"))?;
            put(body.as_bytes())?;
            from = end;
        }
        let rest = self.bytes.get(from..).unwrap_or_default();
        if !rest.is_empty() {
            put(rest)?;
        }
        Ok(at - offset)
    }

    /// Removes all records and keeps at most `bytes` bytes of buffer.
    pub(crate) fn clear(&mut self, bytes: usize) {
        self.bytes.truncate(BATCH_HEADER_BYTES);
        self.bytes.shrink_to(bytes);
        self.records.clear();
        self.records.shrink_to(bytes / RECORD_HEADER_BYTES);
        self.bodies.clear();
        self.body_bytes = 0;
    }
}

/// A length or a count in the 32 bits of the format.
///
/// # Panics
/// If it does not fit: a smaller number on the disk would hide the bytes behind it.
fn in_32_bits(number: usize) -> u32 {
    u32::try_from(number).expect("batches are cut far below 4 GiB")
}
