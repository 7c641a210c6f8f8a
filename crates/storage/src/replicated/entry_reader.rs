//! Reading of entries from the files, each behind a place that the log remembers.

use std::io;

use bytes::Bytes;
use crc32c::crc32c;

use super::entry::{EntryContent, EntryIndex, EntryRecords, LogEntry, Term};
use super::entry_map::EntryMark;
use super::options::EntryError;
use crate::directory::{Directory, DirectoryFile};
use crate::format::{BatchHeader, ENTRY_HEADER_BYTES, EntryKind, Layout};
use crate::manifest::file_name;

/// Reader of entries that follow each other.
#[derive(Debug)]
pub(super) struct EntryReader<'a, D: Directory> {
    directory: &'a D,
    /// The file that is read, and the place of its next entry.
    at: Option<(D::File, EntryMark)>,
}

impl<'a, D: Directory> EntryReader<'a, D> {
    pub(super) fn new(directory: &'a D) -> Self {
        Self { directory, at: None }
    }

    /// Header and offset of the entry `index`, which stands at `mark` or behind it in the same file.
    ///
    /// # Errors
    /// [`EntryError::Damaged`] or [`EntryError::Io`].
    pub(super) fn find(
        &mut self,
        index: EntryIndex,
        mark: EntryMark,
    ) -> Result<(BatchHeader, u64), EntryError> {
        let is_near = self.at.as_ref().is_some_and(|(_, at)| {
            at.file == mark.file && mark.index <= at.index && at.index <= index
        });
        if !is_near {
            let name = file_name(mark.file);
            let file = self.directory.open(&name).map_err(io_failed("open", &name))?;
            self.at = Some((file, mark));
        }
        let Some((file, at)) = &mut self.at else { unreachable!("a file was opened") };
        loop {
            let name = file_name(at.file);
            let mut bytes = [0; ENTRY_HEADER_BYTES];
            file.read_at(&mut bytes, at.offset).map_err(io_failed("read", &name))?;
            let header = BatchHeader::read(Layout::Entries, at.file, &bytes)
                .map(|(header, _)| header)
                .filter(|header| header.entry.is_some_and(|entry| entry.index == at.index.0));
            let Some(header) = header else {
                return Err(EntryError::Damaged { file: name, offset: at.offset, index: at.index });
            };
            if at.index == index {
                return Ok((header, at.offset));
            }
            at.index.0 += 1;
            at.offset += header.whole_len();
        }
    }

    /// Reads the entry `index`, which stands at `mark` or behind it in the same file.
    ///
    /// # Errors
    /// [`EntryError::Damaged`] or [`EntryError::Io`].
    pub(super) fn read(
        &mut self,
        index: EntryIndex,
        mark: EntryMark,
    ) -> Result<LogEntry, EntryError> {
        let (header, offset) = self.find(index, mark)?;
        let Some((file, at)) = &self.at else { unreachable!("the entry was found in a file") };
        let Some(entry) = header.entry else { unreachable!("an entry was found") };
        let name = file_name(at.file);
        let mut octets = vec![0; header.length as usize];
        let content = offset + ENTRY_HEADER_BYTES as u64;
        let count = file.read_at(&mut octets, content).map_err(io_failed("read", &name))?;
        if count != octets.len() || crc32c(&octets) != entry.octets_crc {
            return Err(EntryError::Damaged { file: name, offset, index });
        }
        let bytes = Bytes::from(octets);
        let BatchHeader { first, last, count, .. } = header;
        let content = match entry.kind {
            EntryKind::Records => EntryContent::Records(EntryRecords { first, last, count, bytes }),
            EntryKind::Empty => EntryContent::Empty,
            EntryKind::Membership => EntryContent::Membership(bytes),
        };
        Ok(LogEntry { index, term: Term(entry.term), axis_us: entry.axis_us, content })
    }
}

fn io_failed(operation: &str, name: &str) -> impl FnOnce(io::Error) -> EntryError {
    let doing = format!("{operation} {name}");
    |error| EntryError::Io { doing, error }
}
