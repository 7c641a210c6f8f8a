//! Pages: messages put aside together while their queue is long, each page a file of its own.
//!
//! Nothing of them outlives the process: what is durable is in the log. So nothing is synced, and what
//! an earlier process left behind means nothing. A page is written once, read as a whole or in parts,
//! and forgotten; whatever is read is checked against what was written. Files are used again: a file
//! system takes longer to make a file than to write over one. The format is in `docs/internals/formats/pages.md`.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crc32c::{crc32c, crc32c_append};

use crate::directory::{Directory, DirectoryFile};
use crate::format::{Lsn, put, u32_at, u64_at};
use crate::limits::{FREE_PAGE_FILE_BYTES_MAX, FREE_PAGE_FILES_MAX};

const MAGIC: [u8; 8] = *b"LVRTPAG\0";
const HEADER_BYTES: usize = 32;
/// Where the header's CRC is; it guards what is before it, and all entries.
const CRC_AT: usize = 28;
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
    /// How many messages were announced.
    count: usize,
    written: usize,
    /// Something of it does not fit into the numbers of the format.
    is_too_large: bool,
}

impl PageWriter {
    /// A page of so many messages, in a buffer whose octets do not matter.
    #[must_use]
    pub fn new(count: usize, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(HEADER_BYTES + count * ENTRY_BYTES, 0);
        Self { octets: buffer, count, written: 0, is_too_large: false }
    }

    /// The next message, with what `payload` writes; one of as many as were announced.
    ///
    /// # Panics
    /// When there are more messages than were announced.
    pub fn push(&mut self, entry: &PageEntry, payload: impl FnOnce(&mut Vec<u8>)) {
        assert!(self.written < self.count, "a page of {} messages is full", self.count);
        let start = self.octets.len();
        payload(&mut self.octets);
        let payload = self.octets.get(start..).unwrap_or_default();
        let (len, crc) = (payload.len(), crc32c(payload));
        let at = HEADER_BYTES + self.written * ENTRY_BYTES;
        self.written += 1;
        let numbers = [u64::from(entry.bytes), start as u64, len as u64];
        let [Ok(bytes), Ok(offset), Ok(len)] = numbers.map(u32::try_from) else {
            self.is_too_large = true;
            return;
        };
        let longs = [entry.seq, entry.lsn.0, entry.arrived_us, entry.deadline_us.unwrap_or(NEVER)];
        let place = self.octets.get_mut(at..at + ENTRY_BYTES);
        let place = place.expect("there is room for every message that was announced");
        let (front, back) = place.split_at_mut(32);
        for (place, number) in front.chunks_exact_mut(8).zip(longs) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        for (place, number) in back.chunks_exact_mut(4).zip([bytes, offset, len, crc]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }

    /// The whole page, the one with that number of that life of the store.
    fn finish(mut self, life: u64, id: u64) -> Vec<u8> {
        let count = u32::try_from(self.written).expect("a page is a small part of a queue");
        let count = count.to_le_bytes();
        let parts: [&[u8]; 4] = [&MAGIC, &life.to_le_bytes(), &id.to_le_bytes(), &count];
        let header = parts.concat();
        let index = HEADER_BYTES..HEADER_BYTES + self.written * ENTRY_BYTES;
        let crc = crc32c_append(crc32c(&header), self.octets.get(index).unwrap_or_default());
        if let Some(front) = self.octets.get_mut(..header.len()) {
            front.copy_from_slice(&header);
        }
        put(&mut self.octets, CRC_AT, crc);
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

/// Which file has which page.
#[derive(Default, Debug)]
struct Files {
    /// Numbers of files by numbers of pages, with their sizes.
    of_pages: HashMap<u64, (u64, u64)>,
    /// Files of which nothing is needed.
    free: Vec<u64>,
    /// The number of the next new file.
    next: u64,
}

/// The pages in a directory.
#[derive(Debug)]
pub struct PageStore<D> {
    directory: D,
    life: u64,
    files: Mutex<Files>,
}

impl<D: Directory> PageStore<D> {
    /// Uses a directory. What an earlier life left there is written over; `life` is a number that none
    /// of them had.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(directory: D, life: u64) -> io::Result<Self> {
        let mut free: Vec<u64> = directory.list()?.iter().filter_map(|n| file_number(n)).collect();
        free.sort_unstable_by(|one, other| other.cmp(one));
        let next = free.first().map_or(1, |last| last + 1);
        let files = Mutex::new(Files { of_pages: HashMap::new(), free, next });
        Ok(Self { directory, life, files })
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a page, and gives its buffer back. When this fails nothing of the page is kept.
    ///
    /// # Errors
    /// What the system says, when the disk is full, say; or that the page is longer than 4 GiB.
    pub fn write(&self, id: u64, page: PageWriter) -> (Vec<u8>, io::Result<()>) {
        if page.is_too_large {
            let problem = "a page is longer than its format has room for";
            return (page.octets, Err(io::Error::other(problem)));
        }
        let octets = page.finish(self.life, id);
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
        let written = file.and_then(|file| file.write_at(&octets, 0));
        match written {
            Ok(()) => {
                self.files().of_pages.insert(id, (number, octets.len() as u64));
            }
            Err(_) => {
                // It is no use, whether it can be removed now or is written over in the next life.
                let _ = self.directory.remove(&name);
            }
        }
        (octets, written)
    }

    /// Forgets a page.
    ///
    /// # Errors
    /// What the system says.
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

    /// Removes files that are free beyond those that are kept for later use.
    ///
    /// # Errors
    /// What the system says.
    pub fn trim(&self) -> io::Result<()> {
        let mut files = self.files();
        let kept = files.free.len().min(FREE_PAGE_FILES_MAX);
        let rest = files.free.split_off(kept);
        drop(files);
        rest.into_iter().try_for_each(|number| self.directory.remove(&file_name(number)))
    }

    /// Whether a page is kept.
    pub fn has(&self, id: u64) -> bool {
        self.files().of_pages.contains_key(&id)
    }

    fn open_page(&self, id: u64) -> Result<OpenPage<D::File>, PageError> {
        let number = self.files().of_pages.get(&id).map(|(number, _)| *number);
        // No file has number 0.
        OpenPage::open(&self.directory, number.unwrap_or(0), self.life, id)
    }

    /// What is known of the messages of a page.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn entries(&self, id: u64) -> Result<Vec<PageEntry>, PageError> {
        let page = self.open_page(id)?;
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
        let page = self.open_page(id)?;
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

fn file_name(number: u64) -> String {
    format!("{number:016x}.page")
}

fn file_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".page").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// A page that is being read.
struct OpenPage<F> {
    name: String,
    file: F,
    index: Vec<Indexed>,
}

impl<F: DirectoryFile> OpenPage<F> {
    fn open<D: Directory<File = F>>(
        directory: &D,
        number: u64,
        life: u64,
        id: u64,
    ) -> Result<Self, PageError> {
        let name = file_name(number);
        let file = match directory.open(&name) {
            Ok(file) => file,
            Err(error) => return Err(PageError::Io { name, error }),
        };
        let mut page = Self { name, file, index: Vec::new() };
        let header = page.octets(0, HEADER_BYTES)?;
        let count = u32_at(&header, 24) as usize;
        let size = page.file.size().map_err(|error| page.io_error(error))?;
        let index_bytes = count.saturating_mul(ENTRY_BYTES);
        let is_ours = u64_at(&header, 8) == life && u64_at(&header, 16) == id;
        if !header.starts_with(&MAGIC) || !is_ours || index_bytes as u64 > size {
            return Err(page.damaged(0));
        }
        let index = page.octets(HEADER_BYTES as u64, index_bytes)?;
        let guarded = header.get(..CRC_AT).unwrap_or_default();
        if crc32c_append(crc32c(guarded), &index) != u32_at(&header, CRC_AT) {
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
