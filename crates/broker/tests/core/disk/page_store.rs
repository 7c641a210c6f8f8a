//! Pages of a vhost in memory, as bytes: what a disk would hold.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use broker::page::{
    PageLocation, PageRead, PageSelection, PageTask, PagedMessage, PagedMeta, Pages, Paging,
};
use broker::time::Now;
use broker::{EntryId, Envelopes, Lsn, PageId, QueueNumber, Vhost};

use super::log::Disk;

/// The smallest possible pages, with as many messages as possible in them.
pub(crate) const SMALL_PAGES: Paging =
    Paging { resident_bytes_max: 0, page_bytes: 256, page_messages: 1 };

/// The pages by name.
#[derive(Default, Debug)]
pub(crate) struct PageStore {
    pages: BTreeMap<PageId, Vec<(PagedMeta, Vec<u8>)>>,
    /// The number of pages ever written.
    pub(crate) written: usize,
}

impl PageStore {
    /// Does what the vhost wants done.
    pub(crate) fn perform(&mut self, task: PageTask, vhost: &mut Vhost, now: Now, disk: &mut Disk) {
        match task {
            PageTask::Write { page, messages } => self.write(page, messages),
            PageTask::Read { at, wanted } => {
                let read = self.read(at.page, wanted);
                vhost.page_read(now, at, read);
            }
            PageTask::Drop { page, ended } => {
                if let Some(ended) = ended {
                    let Ok(records) = ended.records(|| Ok::<_, Infallible>(self.meta(page)));
                    records.into_iter().for_each(|lsn| disk.end(lsn));
                }
                self.remove(page);
            }
        }
    }

    /// Durable messages in pages, by queue.
    pub(crate) fn add_durable(
        &self,
        vhost: &Vhost,
        entries: &mut BTreeMap<QueueNumber, BTreeSet<EntryId>>,
    ) {
        let pages = vhost.pages();
        assert_eq!(pages.len(), self.pages.len(), "no page is left over");
        for (PageLocation { page, .. }, queue, held) in pages {
            let durable = |seq: u64| {
                let meta = self.pages[&page].iter().map(|(meta, _)| meta);
                meta.clone().any(|meta| meta.seq == seq && meta.lsn != Lsn(0))
            };
            for entry in held.into_iter().filter(|entry| durable(entry.seq)) {
                assert!(
                    entries.entry(queue).or_default().insert(entry),
                    "{entry:?} is there twice"
                );
            }
        }
    }

    /// Asserts that `back` holds the same durable messages as this vhost, which has these pages: all
    /// of them, and each as it was, as far as it is in memory in both.
    pub(crate) fn assert_same(&self, vhost: &Vhost, (back, pages): &(Vhost, Self)) {
        let everything = |vhost: &Vhost, pages: &Self| {
            let mut entries = vhost.durable_entries();
            pages.add_durable(vhost, &mut entries);
            entries
        };
        let expected = everything(vhost, self);
        assert_eq!(everything(back, pages), expected, "after a restart");
        assert_eq!(back.durable_definitions(), vhost.durable_definitions(), "after a restart");
        let broken = back.broken_invariants();
        assert!(broken.is_empty(), "after a restart: {broken:?}");
        let (mut before, mut after) = (vhost.durable_messages(), back.durable_messages());
        before.sort();
        after.sort();
        if vhost.pages().is_empty() && back.pages().is_empty() {
            assert_eq!(after, before, "after a restart");
        }
        assert_eq!(back.queue_digests(), vhost.queue_digests(), "after a restart");
        let name = |told: &String| told.split(" Message").next().map(str::to_owned);
        let before: BTreeMap<_, _> = before.iter().map(|told| (name(told), told)).collect();
        for told in &after {
            let known = before.get(&name(told));
            assert!(known.is_none_or(|known| *known == told), "{known:?} comes back as {told}");
        }
    }
}

impl Pages for PageStore {
    fn write(&mut self, page: PageId, messages: Vec<PagedMessage>) {
        let bytes = |message: &PagedMessage| {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            (message.meta, bytes)
        };
        let before = self.pages.insert(page, messages.iter().map(bytes).collect());
        assert!(before.is_none(), "{page} is written twice");
        self.written += 1;
    }

    fn meta(&mut self, page: PageId) -> Vec<PagedMeta> {
        self.pages[&page].iter().map(|(meta, _)| *meta).collect()
    }

    fn read(&mut self, page: PageId, wanted: PageSelection) -> PageRead {
        let (chosen, next_deadline) = wanted.choose(&self.meta(page));
        let mut envelopes = Envelopes::default();
        let messages = chosen.into_iter().map(|at| {
            let (meta, bytes) = &self.pages[&page][at];
            PagedMessage::decode(*meta, bytes, &mut envelopes).unwrap()
        });
        PageRead { messages: messages.collect(), wanted, next_deadline }
    }

    fn remove(&mut self, page: PageId) {
        assert!(self.pages.remove(&page).is_some(), "{page} is removed twice");
    }
}
