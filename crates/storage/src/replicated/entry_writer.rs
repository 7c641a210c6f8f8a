//! Writing of entries: headers and octets one behind the other, in few writes.

use std::io;

use crc32c::crc32c;

use super::entry::{EntryContent, EntryIndex, LogEntry};
use crate::directory::DirectoryFile;
use crate::format::{BatchHeader, ENTRY_HEADER_BYTES, EntryHeader, Layout, Lsn, batch_len};
use crate::limits::GATHERED_BYTES_MAX;

/// Bytes that an entry takes in a file.
pub(super) fn entry_len(entry: &LogEntry) -> u64 {
    batch_len(Layout::Entries, entry.content.octets().len())
}

/// Place and chain of the entries that are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryChain {
    /// Id of the file.
    pub(super) file: u64,
    /// Offset of the next entry, in bytes.
    pub(super) offset: u64,
    /// CRC of the entry before in the file.
    pub(super) previous_crc: u32,
    /// Last position of the entry before.
    pub(super) last: Lsn,
    /// Entries up to this one are durable.
    pub(super) synced: EntryIndex,
}

impl EntryChain {
    /// Writes an entry behind the chain.
    ///
    /// # Errors
    /// The system's error, perhaps after a part was written.
    pub(super) fn write<F: DirectoryFile>(
        &mut self,
        out: &mut GatheredWrite<'_, F>,
        entry: &LogEntry,
    ) -> io::Result<()> {
        let octets = entry.content.octets();
        let (first, last, count) = match &entry.content {
            EntryContent::Records(records) => (records.first, records.last, records.count),
            EntryContent::Empty | EntryContent::Membership(_) => {
                (Lsn(self.last.0 + 1), self.last, 0)
            }
        };
        let header = BatchHeader {
            length: u32::try_from(octets.len()).expect("an entry is verified before it is written"),
            count,
            first,
            last,
            synced: self.synced.0,
            previous_crc: self.previous_crc,
            entry: Some(EntryHeader {
                index: entry.index.0,
                term: entry.term.0,
                axis_us: entry.axis_us,
                kind: entry.content.kind(),
                octets_crc: crc32c(octets),
            }),
        };
        let mut front = [0; ENTRY_HEADER_BYTES];
        self.previous_crc = header.write(self.file, &mut front);
        self.last = last;
        out.put(&front)?;
        out.put(octets)?;
        let len = entry_len(entry);
        let gap = usize::try_from(len).expect("an entry fits into memory")
            - (ENTRY_HEADER_BYTES + octets.len());
        out.put([0; 8].get(..gap).expect("a gap is shorter than the alignment"))?;
        self.offset += len;
        Ok(())
    }
}

/// Consecutive writes to a file: short pieces are gathered, long ones are written without a copy.
#[derive(Debug)]
pub(super) struct GatheredWrite<'a, F> {
    file: &'a F,
    /// Offset of the gathered bytes.
    offset: u64,
    bytes: Vec<u8>,
}

impl<'a, F: DirectoryFile> GatheredWrite<'a, F> {
    pub(super) fn new(file: &'a F, offset: u64) -> Self {
        Self { file, offset, bytes: Vec::new() }
    }

    fn put(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.bytes.len() + piece.len() <= GATHERED_BYTES_MAX {
            self.bytes.extend_from_slice(piece);
            return Ok(());
        }
        self.finish()?;
        if piece.len() < GATHERED_BYTES_MAX {
            self.bytes.extend_from_slice(piece);
            return Ok(());
        }
        self.file.write_at(piece, self.offset)?;
        self.offset += piece.len() as u64;
        Ok(())
    }

    /// Writes what is gathered.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if !self.bytes.is_empty() {
            self.file.write_at(&self.bytes, self.offset)?;
            self.offset += self.bytes.len() as u64;
            self.bytes.clear();
        }
        Ok(())
    }
}
