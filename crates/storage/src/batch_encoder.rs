//! The octets of a batch while it is put together.

use std::fmt;
use std::io;

use crate::directory::DirectoryFile;
use crate::format::{
    BATCH_ALIGN, BATCH_HEADER_BYTES, BatchHeader, Lsn, RECORD_HEADER_BYTES, RecordHeader, guard,
    put, spend,
};
use crate::limits::RECORD_BYTES_MAX;

/// Octets at the end of a record which the batch shares with their owner and does not copy.
pub struct Body(Box<dyn AsRef<[u8]> + Send + Sync>);

impl Body {
    /// The octets of `owner`, which lives until they are written.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Box::new(owner))
    }

    fn octets(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets", self.octets().len())
    }
}

/// Records one behind the other, with room for the batch's header in front.
#[derive(Debug)]
pub(crate) struct Batch {
    octets: Vec<u8>,
    /// Where each record stands in `octets`: where it begins, and its length without its body.
    records: Vec<(usize, usize)>,
    /// The bodies of some records, by the numbers of these, ascending.
    bodies: Vec<(usize, Body)>,
    /// Octets in all bodies.
    body_bytes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            octets: vec![0; BATCH_HEADER_BYTES],
            records: Vec::new(),
            bodies: Vec::new(),
            body_bytes: 0,
        }
    }
}

impl Batch {
    /// Octets of its records.
    pub(crate) fn len(&self) -> usize {
        self.octets.len() - BATCH_HEADER_BYTES + self.body_bytes
    }

    /// How many records.
    pub(crate) fn count(&self) -> usize {
        self.records.len()
    }

    /// Appends a record: what `payload` writes, then `body`. The length in `header` becomes that of
    /// both. The octets of the record.
    ///
    /// # Panics
    /// When the record is longer than [`RECORD_BYTES_MAX`]: no message is so long.
    pub(crate) fn push(
        &mut self,
        header: &RecordHeader,
        payload: impl FnOnce(&mut Vec<u8>),
        body: Option<Body>,
    ) -> usize {
        let start = self.octets.len();
        self.octets.extend(header.encode());
        payload(&mut self.octets);
        let len = self.octets.len() - start;
        let body_len = body.as_ref().map_or(0, |body| body.octets().len());
        let payload_len = len - RECORD_HEADER_BYTES + body_len;
        assert!(
            payload_len <= RECORD_BYTES_MAX,
            "record {} of {payload_len} octets is longer than the log allows",
            header.lsn
        );
        let length = in_32_bits(payload_len);
        if let Some(header) = self.octets.get_mut(start..) {
            put(header, 0, length);
        }
        if let Some(body) = body {
            self.bodies.push((self.records.len(), body));
            self.body_bytes += body_len;
        }
        self.records.push((start, len));
        len + body_len
    }

    /// Octets of the record with this number.
    pub(crate) fn record_len(&self, number: usize) -> usize {
        self.records.get(number).map_or(0, |(_, len)| *len)
    }

    /// The references of the record with this number have ended.
    pub(crate) fn mark_spent(&mut self, number: usize) {
        if let Some((start, _)) = self.records.get(number)
            && let Some(header) = self.octets.get_mut(*start..)
        {
            spend(header);
        }
    }

    /// Lets go of the body of the record with this number, which will not be written.
    pub(crate) fn forget_body(&mut self, number: usize) {
        if let Ok(at) = self.bodies.binary_search_by_key(&number, |(number, _)| *number) {
            let (_, body) = self.bodies.remove(at);
            self.body_bytes -= body.octets().len();
        }
    }

    /// Takes out the records for which `keep` does not hold; it is given their numbers.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let Self { octets, records, bodies, body_bytes } = self;
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
                octets.copy_within(*start..*start + *len, end);
                *start = end;
                end += *len;
                if let Some(body) = body {
                    *body_bytes += body.octets().len();
                    bodies.push((kept, body));
                }
                kept += 1;
            }
            is_kept
        });
        octets.truncate(end);
    }

    /// Guards every record and completes the header. The batch's CRC.
    pub(crate) fn seal(
        &mut self,
        file_id: u64,
        (first, last): (Lsn, Lsn),
        synced: Lsn,
        previous_crc: u32,
    ) -> u32 {
        let header = BatchHeader {
            length: in_32_bits(self.len()),
            count: in_32_bits(self.count()),
            first,
            last,
            synced,
            previous_crc,
        };
        let crc = header.write(file_id, &mut self.octets);
        let mut bodies = self.bodies.iter().peekable();
        for (number, (start, len)) in self.records.iter().enumerate() {
            let body = bodies.next_if(|(of, _)| *of == number).map(|(_, body)| body.octets());
            if let Some(record) = self.octets.get_mut(*start..*start + *len) {
                guard(crc, record, body.unwrap_or_default());
            }
        }
        crc
    }

    /// Writes the sealed batch at `offset`; the octets it takes there.
    ///
    /// # Errors
    /// What the system says, perhaps after a part of it.
    pub(crate) fn write_to<F: DirectoryFile>(&mut self, file: &F, offset: u64) -> io::Result<u64> {
        let gap = (self.octets.len() + self.body_bytes).next_multiple_of(BATCH_ALIGN)
            - (self.octets.len() + self.body_bytes);
        let used = self.octets.len();
        self.octets.resize(used + gap, 0);
        let written = self.write_parts(file, offset);
        self.octets.truncate(used);
        written
    }

    /// Writes what stands between two bodies at once, and each body where it belongs.
    fn write_parts<F: DirectoryFile>(&self, file: &F, offset: u64) -> io::Result<u64> {
        let mut at = offset;
        let mut from = 0;
        let mut put = |octets: &[u8]| {
            file.write_at(octets, at)?;
            at += octets.len() as u64;
            Ok::<(), io::Error>(())
        };
        for (number, body) in &self.bodies {
            let end = self.records.get(*number).map_or(from, |(start, len)| start + len);
            put(self.octets.get(from..end).unwrap_or_default())?;
            put(body.octets())?;
            from = end;
        }
        let rest = self.octets.get(from..).unwrap_or_default();
        if !rest.is_empty() {
            put(rest)?;
        }
        Ok(at - offset)
    }

    /// Forgets everything and keeps the buffers, if they are not larger than `bytes`.
    pub(crate) fn clear(&mut self, bytes: usize) {
        self.octets.truncate(BATCH_HEADER_BYTES);
        self.octets.shrink_to(bytes);
        self.records.clear();
        self.records.shrink_to(bytes / RECORD_HEADER_BYTES);
        self.bodies.clear();
        self.body_bytes = 0;
    }
}

/// A length or a count as the format has room for it.
///
/// # Panics
/// When it does not fit: a shorter one on the disk would hide what is behind it.
fn in_32_bits(number: usize) -> u32 {
    u32::try_from(number).expect("batches are cut far below 4 GiB")
}
