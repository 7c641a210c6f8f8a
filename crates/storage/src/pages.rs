//! Pages: messages put aside together while their queue is long, each page a file of its own.
//!
//! Nothing of them outlives the process: what is durable is in the log. So nothing is synced, and what
//! an earlier process left behind is removed. A page is written once, read as a whole or in parts, and
//! removed; whatever is read is checked against what was written. The format is in
//! `docs/formats/pages.md`.

use std::io;

use crc32c::{crc32c, crc32c_append};

use crate::directory::{Directory, DirectoryFile};
use crate::format::{Lsn, put, u32_at, u64_at};

const MAGIC: [u8; 8] = *b"LVRTPAG\0";
const HEADER_BYTES: usize = 24;
const ENTRY_BYTES: usize = 48;

/// No deadline.
const NEVER: u64 = u64::MAX;

/// What is known of a message in a page without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageEntry {
    /// Its number in its queue.
    pub seq: u64,
    /// The record that brought it; 0 without one.
    pub lsn: Lsn,
    /// When it arrived, in microseconds.
    pub arrived_us: u64,
    /// When its own time is over, in microseconds.
    pub deadline_us: Option<u64>,
    /// Octets that it counts.
    pub bytes: u32,
}

/// The octets of a page while it is put together.
#[derive(Debug)]
pub struct PageWriter {
    octets: Vec<u8>,
    id: u64,
    written: usize,
}

impl PageWriter {
    /// A page of so many messages, in a buffer whose octets do not matter.
    #[must_use]
    pub fn new(id: u64, count: usize, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(HEADER_BYTES + count * ENTRY_BYTES, 0);
        Self { octets: buffer, id, written: 0 }
    }

    /// The next message, with what `payload` writes; one of as many as were announced.
    pub fn push(&mut self, entry: &PageEntry, payload: impl FnOnce(&mut Vec<u8>)) {
        let start = self.octets.len();
        payload(&mut self.octets);
        let payload = self.octets.get(start..).unwrap_or_default();
        let (len, crc) = (payload.len(), crc32c(payload));
        let at = HEADER_BYTES + self.written * ENTRY_BYTES;
        self.written += 1;
        let numbers = [
            entry.seq,
            entry.lsn.0,
            entry.arrived_us,
            entry.deadline_us.unwrap_or(NEVER),
            u64::from(entry.bytes),
            start as u64,
        ];
        let Some(place) = self.octets.get_mut(at..at + ENTRY_BYTES) else { return };
        let [seq, lsn, arrived, deadline, bytes, offset] = numbers.map(u64::to_le_bytes);
        let [bytes, offset] = [bytes, offset].map(|octets| u32_at(&octets, 0).to_le_bytes());
        let len = u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
        let parts: [&[u8]; 8] =
            [&seq, &lsn, &arrived, &deadline, &bytes, &offset, &len, &crc.to_le_bytes()];
        place.copy_from_slice(&parts.concat());
    }

    /// The whole page.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let count = u32::try_from(self.written).unwrap_or(u32::MAX);
        let header = [&MAGIC[..], &self.id.to_le_bytes(), &count.to_le_bytes()].concat();
        let index = HEADER_BYTES..HEADER_BYTES + self.written * ENTRY_BYTES;
        let crc = crc32c_append(crc32c(&header), self.octets.get(index).unwrap_or_default());
        if let Some(front) = self.octets.get_mut(..header.len()) {
            front.copy_from_slice(&header);
        }
        put(&mut self.octets, header.len(), crc);
        self.octets
    }
}

/// Why a page cannot be read.
#[derive(thiserror::Error, Debug)]
pub enum PageError {
    /// The disk refuses.
    #[error("read {name}: {error}")]
    Io {
        /// The file.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// It is not what was written.
    #[error("{name} at {offset}: octets have changed")]
    Damaged {
        /// The file.
        name: String,
        /// Where in it, in octets.
        offset: u64,
    },
}

/// An entry and where its message is.
#[derive(Clone, Copy, Debug)]
struct Indexed {
    entry: PageEntry,
    offset: u32,
    len: u32,
    crc: u32,
}

/// The pages in a directory.
#[derive(Debug)]
pub struct PageStore<D> {
    directory: D,
}

impl<D: Directory> PageStore<D> {
    /// Uses a directory, from which what is left of an earlier use is removed.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(directory: D) -> io::Result<Self> {
        for name in directory.list()? {
            if name.ends_with(".page") {
                directory.remove(&name)?;
            }
        }
        Ok(Self { directory })
    }

    /// Keeps a page. When this fails nothing of it is left.
    ///
    /// # Errors
    /// What the system says, when the disk is full, say.
    pub fn write(&self, id: u64, page: &[u8]) -> io::Result<()> {
        let name = file_name(id);
        let written = self.directory.create(&name).and_then(|file| file.write_at(page, 0));
        if written.is_err() {
            // It is no use, whether it can be removed now or at the next start.
            let _ = self.directory.remove(&name);
        }
        written
    }

    /// Forgets a page.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(&self, id: u64) -> io::Result<()> {
        self.directory.remove(&file_name(id))
    }

    /// What is known of the messages of a page.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn entries(&self, id: u64) -> Result<Vec<PageEntry>, PageError> {
        let page = OpenPage::open(&self.directory, id)?;
        Ok(page.index.iter().map(|indexed| indexed.entry).collect())
    }

    /// Reads those messages of a page that `choose` names by their numbers in the list it is given,
    /// and hands them to `each` in that order. `buffer` is used; its octets do not matter.
    ///
    /// # Errors
    /// [`PageError`], perhaps after some of them.
    pub fn read(
        &self,
        id: u64,
        buffer: &mut Vec<u8>,
        choose: impl FnOnce(&[PageEntry]) -> Vec<usize>,
        each: &mut dyn FnMut(PageEntry, &[u8]),
    ) -> Result<(), PageError> {
        let page = OpenPage::open(&self.directory, id)?;
        let entries: Vec<PageEntry> = page.index.iter().map(|indexed| indexed.entry).collect();
        let chosen = choose(&entries);
        let chosen: Vec<Indexed> =
            chosen.into_iter().filter_map(|at| page.index.get(at).copied()).collect();
        // Most of a page is read at once.
        if chosen.len() * 2 > page.index.len() {
            let first = HEADER_BYTES + page.index.len() * ENTRY_BYTES;
            let len = page.index.iter().map(|indexed| indexed.len as usize).sum();
            page.read_into(first as u64, len, buffer)?;
            for indexed in chosen {
                let start = (indexed.offset as usize).saturating_sub(first);
                let message = buffer.get(start..start.saturating_add(indexed.len as usize));
                each(indexed.entry, page.checked(&indexed, message.unwrap_or_default())?);
            }
            return Ok(());
        }
        for indexed in chosen {
            page.read_into(u64::from(indexed.offset), indexed.len as usize, buffer)?;
            each(indexed.entry, page.checked(&indexed, buffer)?);
        }
        Ok(())
    }
}

fn file_name(id: u64) -> String {
    format!("{id:016x}.page")
}

/// A page that is being read.
struct OpenPage<F> {
    name: String,
    file: F,
    index: Vec<Indexed>,
}

impl<F: DirectoryFile> OpenPage<F> {
    fn open<D: Directory<File = F>>(directory: &D, id: u64) -> Result<Self, PageError> {
        let name = file_name(id);
        let file = match directory.open(&name) {
            Ok(file) => file,
            Err(error) => return Err(PageError::Io { name, error }),
        };
        let mut page = Self { name, file, index: Vec::new() };
        let header = page.octets(0, HEADER_BYTES)?;
        let count = u32_at(&header, 16) as usize;
        let size = page.file.size().map_err(|error| page.io_error(error))?;
        let index_bytes = count.saturating_mul(ENTRY_BYTES);
        if !header.starts_with(&MAGIC) || u64_at(&header, 8) != id || index_bytes as u64 > size {
            return Err(page.damaged(0));
        }
        let index = page.octets(HEADER_BYTES as u64, index_bytes)?;
        let guarded = header.get(..20).unwrap_or_default();
        if crc32c_append(crc32c(guarded), &index) != u32_at(&header, 20) {
            return Err(page.damaged(0));
        }
        let (entries, _) = index.as_chunks::<ENTRY_BYTES>();
        page.index = entries.iter().map(indexed).collect();
        Ok(page)
    }

    fn octets(&self, offset: u64, len: usize) -> Result<Vec<u8>, PageError> {
        let mut octets = Vec::new();
        self.read_into(offset, len, &mut octets)?;
        Ok(octets)
    }

    /// Replaces `octets` by so many of the file.
    fn read_into(&self, offset: u64, len: usize, octets: &mut Vec<u8>) -> Result<(), PageError> {
        octets.resize(len, 0);
        let count = self.file.read_at(octets, offset).map_err(|error| self.io_error(error))?;
        if count < len {
            return Err(self.damaged(offset + count as u64));
        }
        Ok(())
    }

    fn checked<'a>(&self, indexed: &Indexed, octets: &'a [u8]) -> Result<&'a [u8], PageError> {
        let is_whole = octets.len() == indexed.len as usize && crc32c(octets) == indexed.crc;
        if is_whole { Ok(octets) } else { Err(self.damaged(u64::from(indexed.offset))) }
    }

    fn io_error(&self, error: io::Error) -> PageError {
        PageError::Io { name: self.name.clone(), error }
    }

    fn damaged(&self, offset: u64) -> PageError {
        PageError::Damaged { name: self.name.clone(), offset }
    }
}

fn indexed(octets: &[u8; ENTRY_BYTES]) -> Indexed {
    let deadline_us = u64_at(octets, 24);
    Indexed {
        entry: PageEntry {
            seq: u64_at(octets, 0),
            lsn: Lsn(u64_at(octets, 8)),
            arrived_us: u64_at(octets, 16),
            deadline_us: (deadline_us != NEVER).then_some(deadline_us),
            bytes: u32_at(octets, 32),
        },
        offset: u32_at(octets, 36),
        len: u32_at(octets, 40),
        crc: u32_at(octets, 44),
    }
}
