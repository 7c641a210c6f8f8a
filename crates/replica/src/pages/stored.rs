//! The messages of the pages of one vhost, as the files of a store.

use std::io;

use broker::page::{PageRead, PageSelection, PagedMessage, PagedMeta};
use broker::record::DecodeError;
use broker::time::Time;
use broker::{Envelopes, Lsn, PageId};
use storage::{Directory, PageEntry, PageStore, PageWriter};

/// Reason why a page cannot be read.
#[derive(thiserror::Error, Debug)]
pub enum PageError {
    /// The file cannot be read, or has changed.
    #[error(transparent)]
    Disk(#[from] storage::PageError),
    /// A message in it cannot be decoded.
    #[error(transparent)]
    Message(#[from] DecodeError),
}

/// The pages of a vhost.
#[derive(Debug)]
pub struct StoredPages<D: Directory> {
    store: PageStore<D>,
}

impl<D: Directory> StoredPages<D> {
    /// Opens the pages in `directory`; existing ones are overwritten. `life` is a number that no earlier process used for it.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn open(directory: D, life: u64) -> io::Result<Self> {
        Ok(Self { store: PageStore::open(directory, life)? })
    }

    /// Writes a page. Returns `buffer`, whose memory it uses.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(
        &self,
        page: PageId,
        messages: &[PagedMessage],
        buffer: Vec<u8>,
    ) -> (Vec<u8>, io::Result<()>) {
        let mut writer = PageWriter::new(messages.len(), buffer);
        for message in messages {
            writer.push(&entry(&message.meta), |out| message.encode(out));
        }
        self.store.write(page.0, writer)
    }

    /// Reads messages of a page, by way of `buffer`.
    ///
    /// # Errors
    /// If the page cannot be read or is damaged.
    pub fn read(
        &self,
        page: PageId,
        wanted: PageSelection,
        buffer: &mut Vec<u8>,
    ) -> Result<PageRead, PageError> {
        let mut messages = Vec::new();
        let mut next_deadline = None;
        let mut envelopes = Envelopes::default();
        let mut problem = None;
        let choose = |entries: &[PageEntry]| {
            let known: Vec<PagedMeta> = entries.iter().map(meta).collect();
            let (chosen, next) = wanted.choose(&known);
            next_deadline = next;
            chosen
        };
        let mut keep =
            |entry, bytes: &[u8]| match PagedMessage::decode(meta(&entry), bytes, &mut envelopes) {
                Ok(message) => messages.push(message),
                Err(error) => problem = Some(error),
            };
        let read = self.store.read(page.0, buffer, choose, &mut keep);
        match (read, problem) {
            (Ok(()), None) => Ok(PageRead { wanted, messages, next_deadline }),
            (Err(error), _) => Err(error.into()),
            (_, Some(problem)) => Err(problem.into()),
        }
    }

    /// Facts about the messages of a page, read without the bodies.
    ///
    /// # Errors
    /// If the page cannot be read or is damaged.
    pub fn meta(&self, page: PageId) -> Result<Vec<PagedMeta>, PageError> {
        let entries = self.store.entries(page.0)?;
        Ok(entries.iter().map(meta).collect())
    }

    /// True if a page exists.
    pub fn has(&self, page: PageId) -> bool {
        self.store.has(page.0)
    }

    /// Removes a page.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn remove(&self, page: PageId) -> io::Result<()> {
        self.store.remove(page.0)
    }

    /// Removes files of an earlier process that recovery did not use.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn trim(&self) -> io::Result<()> {
        self.store.trim()
    }
}

fn entry(meta: &PagedMeta) -> PageEntry {
    PageEntry {
        seq: meta.seq,
        lsn: storage::Lsn(meta.lsn.0),
        arrived_us: meta.arrived.as_micros(),
        deadline_us: meta.deadline.map(Time::as_micros),
        bytes: u32::try_from(meta.bytes).expect("a message is far shorter than 4 GiB"),
    }
}

fn meta(entry: &PageEntry) -> PagedMeta {
    PagedMeta {
        seq: entry.seq,
        lsn: Lsn(entry.lsn.0),
        arrived: Time::from_micros(entry.arrived_us),
        deadline: entry.deadline_us.map(Time::from_micros),
        bytes: u64::from(entry.bytes),
    }
}
