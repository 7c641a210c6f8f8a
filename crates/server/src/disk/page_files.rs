//! Where the pages of one vhost are: files beside its log, and in memory what the disk had no room for.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use broker::page::{PageRead, PagedFacts, PagedMessage, Wanted};
use broker::time::Time;
use broker::{Envelopes, Lsn, PageId};
use parking_lot::Mutex;
use storage::{PageEntry, PageStore, PageWriter, RealDirectory};

use crate::disk::reserve::Reserve;
use crate::limits::PAGE_BUFFER_BYTES;

/// The pages of a vhost.
#[derive(Debug)]
pub(crate) struct PageFiles {
    store: PageStore<RealDirectory>,
    /// What the last room of the disk is kept for, if that is so: not for pages.
    reserve: Option<Arc<Reserve>>,
    /// Pages that could not be written.
    unwritten: Mutex<HashMap<PageId, Vec<PagedMessage>>>,
    /// For the octets of one page at a time: fresh memory costs as much as the copy into it.
    buffer: Mutex<Vec<u8>>,
}

impl PageFiles {
    /// Uses the directory of pages of the vhost whose files are at `path`; what is in it is written
    /// over. `life` is a number that no earlier use of it had.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(path: &Path, life: u64, reserve: Option<Arc<Reserve>>) -> io::Result<Self> {
        let directory = RealDirectory::open(&path.join("pages"))?;
        Ok(Self {
            store: PageStore::open(directory, life)?,
            reserve,
            unwritten: Mutex::default(),
            buffer: Mutex::default(),
        })
    }

    /// Keeps messages, in memory if the disk does not take them.
    pub(crate) fn write(&self, page: PageId, messages: Vec<PagedMessage>) {
        if self.reserve.as_ref().is_some_and(|reserve| !reserve.leaves_room()) {
            tracing::debug!(page = page.0, "a page stays in memory: the disk is full");
            self.unwritten.lock().insert(page, messages);
            return;
        }
        let mut buffer = self.buffer.lock();
        let mut writer = PageWriter::new(messages.len(), std::mem::take(&mut *buffer));
        for message in &messages {
            writer.push(&entry(&message.facts), |out| message.encode(out));
        }
        let (octets, written) = self.store.write(page.0, writer);
        *buffer = octets;
        shorten(&mut buffer);
        if let Err(error) = written {
            tracing::warn!(page = page.0, %error, "a page stays in memory");
            self.unwritten.lock().insert(page, messages);
        }
    }

    /// Reads messages of a page.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn read(&self, page: PageId, wanted: Wanted) -> Result<PageRead, String> {
        let mut buffer = self.buffer.lock();
        let read = self.read_with(page, wanted, &mut buffer);
        shorten(&mut buffer);
        read
    }

    /// Reads all messages of a page beside whoever keeps the pages: it may be written over meanwhile, and
    /// then nothing is wrong.
    ///
    /// # Errors
    /// A sentence for the operator, if the page is still there.
    pub(crate) fn look(&self, page: PageId) -> Result<Vec<PagedMessage>, String> {
        Ok(self.read_with(page, Wanted::Whole, &mut Vec::new())?.messages)
    }

    /// Whether a page is kept.
    pub(crate) fn has(&self, page: PageId) -> bool {
        self.unwritten.lock().contains_key(&page) || self.store.has(page.0)
    }

    fn read_with(
        &self,
        page: PageId,
        wanted: Wanted,
        buffer: &mut Vec<u8>,
    ) -> Result<PageRead, String> {
        if let Some(messages) = self.unwritten.lock().get(&page) {
            let known: Vec<PagedFacts> = messages.iter().map(|message| message.facts).collect();
            let (chosen, next_deadline) = wanted.choose(&known);
            let messages = chosen.into_iter().filter_map(|at| messages.get(at).cloned()).collect();
            return Ok(PageRead { wanted, messages, next_deadline });
        }
        let mut messages = Vec::new();
        let mut next_deadline = None;
        let mut envelopes = Envelopes::default();
        let mut problem = None;
        let choose = |entries: &[PageEntry]| {
            let known: Vec<PagedFacts> = entries.iter().map(facts).collect();
            let (chosen, next) = wanted.choose(&known);
            next_deadline = next;
            chosen
        };
        let mut keep = |entry, octets: &[u8]| match PagedMessage::decode(
            facts(&entry),
            octets,
            &mut envelopes,
        ) {
            Ok(message) => messages.push(message),
            Err(error) => problem = Some(error.to_string()),
        };
        let read = self.store.read(page.0, buffer, choose, &mut keep);
        match (read, problem) {
            (Ok(()), None) => Ok(PageRead { wanted, messages, next_deadline }),
            (Err(error), _) => Err(error.to_string()),
            (_, Some(problem)) => Err(problem),
        }
    }

    /// What is known of the messages of a page.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn facts(&self, page: PageId) -> Result<Vec<PagedFacts>, String> {
        if let Some(messages) = self.unwritten.lock().get(&page) {
            return Ok(messages.iter().map(|message| message.facts).collect());
        }
        let entries = self.store.entries(page.0).map_err(|error| error.to_string())?;
        Ok(entries.iter().map(facts).collect())
    }

    /// The vhost is back: files of an earlier life that were of no use go.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn restored(&self) -> io::Result<()> {
        self.store.trim()
    }

    /// Forgets a page.
    pub(crate) fn remove(&self, page: PageId) {
        if self.unwritten.lock().remove(&page).is_none()
            && let Err(error) = self.store.remove(page.0)
        {
            tracing::warn!(page = page.0, %error, "a page cannot be removed before the next start");
        }
    }
}

/// Gives back what a page of large messages needed.
fn shorten(buffer: &mut Vec<u8>) {
    buffer.truncate(PAGE_BUFFER_BYTES);
    buffer.shrink_to(PAGE_BUFFER_BYTES);
}

fn entry(facts: &PagedFacts) -> PageEntry {
    PageEntry {
        seq: facts.seq,
        lsn: storage::Lsn(facts.lsn.0),
        arrived_us: facts.arrived.as_micros(),
        deadline_us: facts.deadline.map(Time::as_micros),
        bytes: u32::try_from(facts.bytes).expect("a message is far shorter than 4 GiB"),
    }
}

fn facts(entry: &PageEntry) -> PagedFacts {
    PagedFacts {
        seq: entry.seq,
        lsn: Lsn(entry.lsn.0),
        arrived: Time::from_micros(entry.arrived_us),
        deadline: entry.deadline_us.map(Time::from_micros),
        bytes: u64::from(entry.bytes),
    }
}
