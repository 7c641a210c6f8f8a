//! Pages: messages of a long queue on disk, each page a file of its own.
//!
//! Pages do not outlive the process, because durable messages are in the log. So no page is synced, and
//! the pages of an earlier process are not read. A page is written once, read as a whole or in parts, and
//! removed; checksums cover all of it. Files are reused: creating a file takes longer than overwriting
//! one. The format is in `docs/internals/formats/pages.md`.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crc32c::{crc32c, crc32c_append};

use crate::directory::{Directory, DirectoryFile};
use crate::format::{Lsn, put, u32_at, u64_at};
use crate::limits::{FREE_PAGE_FILE_BYTES_MAX, FREE_PAGE_FILES_MAX};

const MAGIC: [u8; 8] = *b"LVRTPAG\0";
const HEADER_BYTES: usize = 32;
/// Offset of the header's CRC, which covers the bytes before it and all entries.
const CRC_AT: usize = 28;
const ENTRY_BYTES: usize = 48;

/// Deadline of a message that has none.
const NEVER: u64 = u64::MAX;

/// Facts about a message in a page, known without reading the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageEntry {
    /// Number of the message in its queue.
    pub seq: u64,
    /// Position of the message's record in the log; 0 without one.
    pub lsn: Lsn,
    /// Time of arrival, in microseconds.
    pub arrived_us: u64,
    /// Deadline from the message's own expiration, in microseconds.
    pub deadline_us: Option<u64>,
    /// Bytes that the message counts against the queue's limits.
    pub bytes: u32,
}

/// Encoder of a page.
#[derive(Debug)]
pub struct PageWriter {
    bytes: Vec<u8>,
    /// Number of messages that were announced.
    count: usize,
    written: usize,
    /// A length or an offset does not fit into the numbers of the format.
    is_too_large: bool,
}

impl PageWriter {
    /// A page of `count` messages. `buffer` is reused; its content is discarded.
    #[must_use]
    pub fn new(count: usize, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(HEADER_BYTES + count * ENTRY_BYTES, 0);
        Self { bytes: buffer, count, written: 0, is_too_large: false }
    }

    /// Appends a message, whose bytes `payload` writes.
    ///
    /// # Panics
    /// If there are more messages than were announced.
    pub fn push(&mut self, entry: &PageEntry, payload: impl FnOnce(&mut Vec<u8>)) {
        assert!(self.written < self.count, "a page of {} messages is full", self.count);
        let start = self.bytes.len();
        payload(&mut self.bytes);
        let payload = self.bytes.get(start..).unwrap_or_default();
        let (len, crc) = (payload.len(), crc32c(payload));
        let at = HEADER_BYTES + self.written * ENTRY_BYTES;
        self.written += 1;
        let numbers = [u64::from(entry.bytes), start as u64, len as u64];
        let [Ok(bytes), Ok(offset), Ok(len)] = numbers.map(u32::try_from) else {
            self.is_too_large = true;
            return;
        };
        let longs = [entry.seq, entry.lsn.0, entry.arrived_us, entry.deadline_us.unwrap_or(NEVER)];
        let place = self.bytes.get_mut(at..at + ENTRY_BYTES);
        let place = place.expect("there is room for every message that was announced");
        let (front, back) = place.split_at_mut(32);
        for (place, number) in front.chunks_exact_mut(8).zip(longs) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        for (place, number) in back.chunks_exact_mut(4).zip([bytes, offset, len, crc]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }

    /// The bytes of the page with number `id`, in the store of `epoch`.
    fn finish(mut self, epoch: u64, id: u64) -> Vec<u8> {
        let count = u32::try_from(self.written).expect("a page is a small part of a queue");
        let count = count.to_le_bytes();
        let parts: [&[u8]; 4] = [&MAGIC, &epoch.to_le_bytes(), &id.to_le_bytes(), &count];
        let header = parts.concat();
        let index = HEADER_BYTES..HEADER_BYTES + self.written * ENTRY_BYTES;
        let crc = crc32c_append(crc32c(&header), self.bytes.get(index).unwrap_or_default());
        if let Some(front) = self.bytes.get_mut(..header.len()) {
            front.copy_from_slice(&header);
        }
        put(&mut self.bytes, CRC_AT, crc);
        self.bytes
    }
}

/// Reason for which a page cannot be read.
#[derive(thiserror::Error, Debug)]
pub enum PageError {
    /// An operation on the disk failed.
    #[error("read {name}: {error}")]
    Io {
        /// Name of the file.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// The bytes differ from those that were written.
    #[error("{name} at {offset}: bytes have changed")]
    Damaged {
        /// Name of the file.
        name: String,
        /// Offset in the file, in bytes.
        offset: u64,
    },
}

/// An entry, and the place of its message in the page.
#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    entry: PageEntry,
    offset: u32,
    len: u32,
    crc: u32,
}

/// Files in use and free files.
#[derive(Default, Debug)]
struct FileTable {
    /// Number and size of the file of each page, by the number of the page.
    of_pages: HashMap<u64, (u64, u64)>,
    /// Numbers of the files without a page.
    free: Vec<u64>,
    /// Number of the next new file.
    next: u64,
}

/// Pages in a directory.
#[derive(Debug)]
pub struct PageStore<D> {
    directory: D,
    epoch: u64,
    files: Mutex<FileTable>,
}

impl<D: Directory> PageStore<D> {
    /// Opens a store. Files of earlier processes are reused; `epoch` must be a number that none of them
    /// had, so that their pages do not look valid.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(directory: D, epoch: u64) -> io::Result<Self> {
        let mut free: Vec<u64> = directory.list()?.iter().filter_map(|n| file_number(n)).collect();
        free.sort_unstable_by(|one, other| other.cmp(one));
        let next = free.first().map_or(1, |last| last + 1);
        let files = Mutex::new(FileTable { of_pages: HashMap::new(), free, next });
        Ok(Self { directory, epoch, files })
    }

    fn files(&self) -> MutexGuard<'_, FileTable> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a page and returns its buffer. A failed write leaves no page.
    ///
    /// # Errors
    /// The system's error, for example because the disk is full; or the page is longer than 4 GiB.
    pub fn write(&self, id: u64, page: PageWriter) -> (Vec<u8>, io::Result<()>) {
        if page.is_too_large {
            let problem = "a page is longer than its format has room for";
            return (page.bytes, Err(io::Error::other(problem)));
        }
        let bytes = page.finish(self.epoch, id);
        let mut files = self.files();
        let used = files.free.pop();
        let number = used.unwrap_or(files.next);
        files.next = files.next.max(number + 1);
        drop(files);
        let name = file_name(number);
        let file = match used {
            Some(_) => self.directory.open(&name),
            None => self.directory.create(&name),
        };
        let written = file.and_then(|file| file.write_at(&bytes, 0));
        match written {
            Ok(()) => {
                let place = (number, bytes.len() as u64);
                let before = self.files().of_pages.insert(id, place);
                debug_assert!(before.is_none(), "page {id} is written twice");
            }
            Err(_) => {
                // If it cannot be removed now, the next process overwrites it.
                let _ = self.directory.remove(&name);
            }
        }
        (bytes, written)
    }

    /// Removes a page, if there is one with this number.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self, id: u64) -> io::Result<()> {
        let mut files = self.files();
        let Some((number, bytes)) = files.of_pages.remove(&id) else {
            return Ok(());
        };
        if files.free.len() < FREE_PAGE_FILES_MAX && bytes <= FREE_PAGE_FILE_BYTES_MAX {
            files.free.push(number);
            return Ok(());
        }
        drop(files);
        self.directory.remove(&file_name(number))
    }

    /// Removes free files beyond [`FREE_PAGE_FILES_MAX`].
    ///
    /// # Errors
    /// The system's error.
    pub fn trim(&self) -> io::Result<()> {
        let mut files = self.files();
        let kept = files.free.len().min(FREE_PAGE_FILES_MAX);
        let rest = files.free.split_off(kept);
        drop(files);
        rest.into_iter().try_for_each(|number| self.directory.remove(&file_name(number)))
    }

    /// True if there is a page with this number.
    pub fn has(&self, id: u64) -> bool {
        self.files().of_pages.contains_key(&id)
    }

    fn open_page(&self, id: u64) -> Result<OpenPage<D::File>, PageError> {
        let number = self.files().of_pages.get(&id).map(|(number, _)| *number);
        // No file has number 0.
        OpenPage::open(&self.directory, number.unwrap_or(0), self.epoch, id)
    }

    /// Entries of all messages of a page.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn entries(&self, id: u64) -> Result<Vec<PageEntry>, PageError> {
        let page = self.open_page(id)?;
        Ok(page.index.iter().map(|indexed| indexed.entry).collect())
    }

    /// Reads some messages of a page: `choose` gets the entries and returns the indexes of the messages
    /// to read, and `each` gets these in that order. `buffer` is reused; its content is discarded.
    ///
    /// # Errors
    /// [`PageError`], perhaps after some messages.
    pub fn read(
        &self,
        id: u64,
        buffer: &mut Vec<u8>,
        choose: impl FnOnce(&[PageEntry]) -> Vec<usize>,
        each: &mut dyn FnMut(PageEntry, &[u8]),
    ) -> Result<(), PageError> {
        let page = self.open_page(id)?;
        let entries: Vec<PageEntry> = page.index.iter().map(|indexed| indexed.entry).collect();
        let chosen = choose(&entries);
        let chosen: Vec<IndexEntry> =
            chosen.into_iter().filter_map(|at| page.index.get(at).copied()).collect();
        // If more than half of the messages are chosen, one read of all is cheaper than many reads.
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

fn file_name(number: u64) -> String {
    format!("{number:016x}.page")
}

fn file_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".page").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// A page that is open for reading.
struct OpenPage<F> {
    name: String,
    file: F,
    index: Vec<IndexEntry>,
}

impl<F: DirectoryFile> OpenPage<F> {
    fn open<D: Directory<File = F>>(
        directory: &D,
        number: u64,
        epoch: u64,
        id: u64,
    ) -> Result<Self, PageError> {
        let name = file_name(number);
        let file = match directory.open(&name) {
            Ok(file) => file,
            Err(error) => return Err(PageError::Io { name, error }),
        };
        let mut page = Self { name, file, index: Vec::new() };
        let header = page.bytes(0, HEADER_BYTES)?;
        let count = u32_at(&header, 24) as usize;
        let size = page.file.size().map_err(|error| page.io_error(error))?;
        let index_bytes = count.saturating_mul(ENTRY_BYTES);
        let is_ours = u64_at(&header, 8) == epoch && u64_at(&header, 16) == id;
        if !header.starts_with(&MAGIC) || !is_ours || index_bytes as u64 > size {
            return Err(page.damaged(0));
        }
        let index = page.bytes(HEADER_BYTES as u64, index_bytes)?;
        let guarded = header.get(..CRC_AT).unwrap_or_default();
        if crc32c_append(crc32c(guarded), &index) != u32_at(&header, CRC_AT) {
            return Err(page.damaged(0));
        }
        let (entries, _) = index.as_chunks::<ENTRY_BYTES>();
        page.index = entries.iter().map(decode_entry).collect();
        Ok(page)
    }

    fn bytes(&self, offset: u64, len: usize) -> Result<Vec<u8>, PageError> {
        let mut bytes = Vec::new();
        self.read_into(offset, len, &mut bytes)?;
        Ok(bytes)
    }

    /// Replaces `bytes` by `len` bytes of the file.
    fn read_into(&self, offset: u64, len: usize, bytes: &mut Vec<u8>) -> Result<(), PageError> {
        bytes.resize(len, 0);
        let count = self.file.read_at(bytes, offset).map_err(|error| self.io_error(error))?;
        if count < len {
            return Err(self.damaged(offset + count as u64));
        }
        Ok(())
    }

    fn checked<'a>(&self, indexed: &IndexEntry, bytes: &'a [u8]) -> Result<&'a [u8], PageError> {
        let is_whole = bytes.len() == indexed.len as usize && crc32c(bytes) == indexed.crc;
        if is_whole { Ok(bytes) } else { Err(self.damaged(u64::from(indexed.offset))) }
    }

    fn io_error(&self, error: io::Error) -> PageError {
        PageError::Io { name: self.name.clone(), error }
    }

    fn damaged(&self, offset: u64) -> PageError {
        PageError::Damaged { name: self.name.clone(), offset }
    }
}

fn decode_entry(bytes: &[u8; ENTRY_BYTES]) -> IndexEntry {
    let deadline_us = u64_at(bytes, 24);
    IndexEntry {
        entry: PageEntry {
            seq: u64_at(bytes, 0),
            lsn: Lsn(u64_at(bytes, 8)),
            arrived_us: u64_at(bytes, 16),
            deadline_us: (deadline_us != NEVER).then_some(deadline_us),
            bytes: u32_at(bytes, 32),
        },
        offset: u32_at(bytes, 36),
        len: u32_at(bytes, 40),
        crc: u32_at(bytes, 44),
    }
}
