//! The messages of one priority level that were never delivered, in order of arrival: a head and a tail in
//! memory, and pages between them if the level is long.
//!
//! Messages in a page are known by a few facts only, until the page is read. The first pages are read back
//! before the head is empty; a level with an empty head waits for a page that is being read.

use std::collections::VecDeque;

use crate::collections::SparseDeque;
use crate::ids::{Lsn, PageId};
use crate::limits::{HEAD_PAGES, PAGE_SEQS_MAX, TAIL_PAGES};
use crate::message::Message;
use crate::page::{PageMembers, PagedMessage, PagedMeta, Paging};
use crate::time::Time;

/// A message that was never delivered; its counts are zero and its sequence number is its place.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) message: Message,
    pub(super) lsn: Lsn,
    pub(super) arrived: Time,
}

/// Consecutive messages in memory.
#[derive(Default, Debug)]
struct Run {
    entries: SparseDeque<u64, Fresh>,
    memory: u64,
}

impl Run {
    fn push(&mut self, seq: u64, fresh: Fresh) {
        self.memory += fresh.message.memory_bytes();
        self.entries.push_back(seq, fresh);
    }

    fn pop_front(&mut self) -> Option<(u64, Fresh)> {
        let (seq, fresh) = self.entries.pop_front()?;
        self.memory -= fresh.message.memory_bytes();
        Some((seq, fresh))
    }

    fn remove(&mut self, seq: u64) -> Option<Fresh> {
        let fresh = self.entries.remove(seq)?;
        self.memory -= fresh.message.memory_bytes();
        Some(fresh)
    }

    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.entries.iter().map(|(seq, fresh)| Piece::Message(seq, fresh))
    }

    fn pieces_after(&self, seq: u64) -> impl Iterator<Item = Piece<'_>> {
        self.entries.iter_after(seq).map(|(seq, fresh)| Piece::Message(seq, fresh))
    }

    /// True if the run holds at least as much as `pages` pages.
    fn fills(&self, pages: usize, paging: Paging) -> bool {
        self.entries.len() >= pages * paging.page_messages
            || self.memory >= pages as u64 * paging.page_bytes
    }
}

/// Consecutive messages on disk.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) id: PageId,
    first_seq: u64,
    pub(super) last_seq: u64,
    /// The messages that are in the queue and not in memory.
    pub(super) held: PageMembers,
    /// Arrival times of the first and the last message written to the page.
    pub(super) first_arrived: Time,
    pub(super) last_arrived: Time,
    /// Bytes that the held messages count against the queue's limits.
    pub(super) bytes: u64,
    /// True if messages of unknown size left the page during recovery.
    pub(super) left_unseen: bool,
    /// The earliest expiration deadline of the held messages, as far as known.
    pub(super) next_deadline: Option<Time>,
    /// The latest expiration deadline of the messages written to the page.
    pub(super) last_deadline: Option<Time>,
    /// Number of held messages with an expiration deadline, as far as known.
    pub(super) with_deadline: usize,
    /// True while the whole page is being read.
    pub(super) is_awaited: bool,
    /// True while messages with near deadlines are being read.
    pub(super) is_asked: bool,
}

/// A message in memory, or a whole page.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Message(u64, &'a Fresh),
    Page(&'a Page),
}

impl Piece<'_> {
    pub(super) fn first_seq(&self) -> u64 {
        match self {
            Self::Message(seq, _) => *seq,
            Self::Page(page) => page.first_seq,
        }
    }
}

/// The messages of one level.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) number: u8,
    head: Run,
    pages: VecDeque<Page>,
    tail: Run,
}

impl Level {
    pub(super) fn new(number: u8) -> Self {
        Self { number, head: Run::default(), pages: VecDeque::new(), tail: Run::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.entries.is_empty() && self.pages.is_empty()
    }

    /// True if the next page is being read as a whole.
    pub(super) fn awaits_page(&self) -> bool {
        self.pages.front().is_some_and(|page| page.is_awaited)
    }

    /// Memory of the level's messages, in bytes.
    pub(super) fn memory(&self) -> u64 {
        self.head.memory + self.tail.memory
    }

    /// The first message, if it is in memory.
    pub(super) fn front(&self) -> Option<(u64, &Fresh)> {
        self.head.entries.front()
    }

    /// A lower bound for the sequence number of the first message, in memory or not.
    pub(super) fn first_seq(&self) -> Option<u64> {
        let paged = || self.pages.front().map(|page| page.first_seq);
        self.head.entries.front().map(|(seq, _)| seq).or_else(paged)
    }

    /// The number of the last message, if it is in memory.
    pub(super) fn last_in_memory(&self) -> Option<u64> {
        self.tail.entries.last_key().or_else(|| self.head.entries.last_key())
    }

    pub(super) fn push(&mut self, seq: u64, fresh: Fresh) {
        let run = if self.pages.is_empty() { &mut self.head } else { &mut self.tail };
        run.push(seq, fresh);
    }

    /// Removes and returns a message that is in memory.
    pub(super) fn remove(&mut self, seq: u64) -> Option<Fresh> {
        let is_behind = self.pages.front().is_some_and(|page| seq >= page.first_seq);
        if is_behind { self.tail.remove(seq) } else { self.head.remove(seq) }
    }

    /// A message that is in memory.
    pub(super) fn get(&self, seq: u64) -> Option<&Fresh> {
        self.head.entries.get(seq).or_else(|| self.tail.entries.get(seq))
    }

    /// True if a message is in memory.
    pub(super) fn contains(&self, seq: u64) -> bool {
        self.get(seq).is_some()
    }

    /// The messages in memory.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Fresh)> {
        self.head.entries.iter().chain(self.tail.entries.iter())
    }

    /// All messages and pages in order.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let pages = self.pages.iter().map(Piece::Page);
        self.head.pieces().chain(pages).chain(self.tail.pieces())
    }

    /// The messages and pages after a sequence number, in order; a page counts by the last message in it.
    pub(super) fn pieces_after(&self, seq: u64) -> impl Iterator<Item = Piece<'_>> {
        let first = self.pages.partition_point(|page| page.last_seq <= seq);
        let pages = self.pages.range(first..).filter(move |page| page.held.has_after(seq));
        let pages = pages.map(Piece::Page);
        self.head.pieces_after(seq).chain(pages).chain(self.tail.pieces_after(seq))
    }

    /// The pages, in order.
    pub(super) fn pages(&self) -> impl Iterator<Item = &Page> {
        self.pages.iter()
    }

    pub(super) fn knows_page(&self, id: PageId) -> bool {
        self.pages.binary_search_by_key(&id, |page| page.id).is_ok()
    }

    pub(super) fn page_mut(&mut self, id: PageId) -> Option<&mut Page> {
        let at = self.pages.binary_search_by_key(&id, |page| page.id).ok()?;
        self.pages.get_mut(at)
    }

    /// The page that holds a message.
    pub(super) fn page_of(&self, seq: u64) -> Option<&Page> {
        let at = self.pages.partition_point(|page| page.last_seq < seq);
        self.pages.get(at).filter(|page| page.held.contains(seq))
    }

    /// Cuts a page named `id` out of the messages behind the head, if these fill two pages, and returns the
    /// messages to write. `facts` gives the facts to keep of each message.
    pub(super) fn page_out(
        &mut self,
        id: PageId,
        paging: Paging,
        meta: impl Fn(u64, &Fresh) -> PagedMeta,
    ) -> Option<Vec<PagedMessage>> {
        if self.pages.is_empty() {
            if !self.head.fills(HEAD_PAGES + 2, paging) {
                return None;
            }
            self.cut_head(paging);
        }
        if !self.tail.fills(2, paging) {
            self.join_tail();
            return None;
        }
        let mut messages: Vec<PagedMessage> = Vec::new();
        let mut memory = 0;
        while let Some((seq, fresh)) = self.tail.entries.front()
            && messages.len() < paging.page_messages
            && (memory == 0 || memory + fresh.message.memory_bytes() <= paging.page_bytes)
            && messages.first().is_none_or(|first| seq - first.meta.seq < PAGE_SEQS_MAX)
        {
            let meta = meta(seq, fresh);
            let (_, Fresh { message, .. }) = self.tail.pop_front().expect("the tail has a front");
            memory += message.memory_bytes();
            messages.push(PagedMessage { meta, message });
        }
        let (first, last) = (messages.first()?.meta, messages.last()?.meta);
        let deadlines = || messages.iter().filter_map(|message| message.meta.deadline);
        self.pages.push_back(Page {
            id,
            first_seq: first.seq,
            last_seq: last.seq,
            first_arrived: first.arrived,
            last_arrived: last.arrived,
            held: PageMembers::all(messages.iter().map(|message| message.meta.seq)),
            bytes: messages.iter().map(|message| message.meta.bytes).sum(),
            left_unseen: false,
            next_deadline: deadlines().min(),
            last_deadline: deadlines().max(),
            with_deadline: deadlines().count(),
            is_awaited: false,
            is_asked: false,
        });
        Some(messages)
    }

    /// True if the tail behind the pages holds more than a level with pages needs in memory.
    pub(super) fn has_long_tail(&self, paging: Paging) -> bool {
        !self.pages.is_empty() && self.tail.fills(TAIL_PAGES, paging)
    }

    /// Keeps a few pages' worth of messages in the head and makes the rest the tail.
    fn cut_head(&mut self, paging: Paging) {
        let (mut count, mut memory) = (0, 0);
        for (_, fresh) in self.head.entries.iter() {
            if count >= HEAD_PAGES * paging.page_messages
                || count > 0 && memory >= HEAD_PAGES as u64 * paging.page_bytes
            {
                break;
            }
            count += 1;
            memory += fresh.message.memory_bytes();
        }
        let entries = self.head.entries.split_off(count);
        self.tail = Run { entries, memory: self.head.memory - memory };
        self.head.memory = memory;
    }

    /// Joins head and tail if there are no pages between them.
    fn join_tail(&mut self) {
        if !self.pages.is_empty() {
            return;
        }
        if self.head.entries.is_empty() {
            std::mem::swap(&mut self.head, &mut self.tail);
        }
        while let Some((seq, fresh)) = self.tail.pop_front() {
            self.head.push(seq, fresh);
        }
    }

    /// The next page to read, so that the head does not become empty.
    pub(super) fn wanted_page(&self, paging: Paging) -> Option<PageId> {
        let (mut pages, mut count) = (0, self.head.entries.len());
        for page in self.pages.iter().take_while(|page| page.is_awaited) {
            pages += 1;
            count += page.held.count();
        }
        let is_long = count >= HEAD_PAGES * paging.page_messages;
        if is_long || pages >= HEAD_PAGES || self.head.fills(HEAD_PAGES, paging) {
            return None;
        }
        self.pages.get(pages).map(|page| page.id)
    }

    /// Moves the messages of a page, which was read as a whole, to the head. False if the page is not the
    /// first.
    pub(super) fn arrived(&mut self, id: PageId, messages: Vec<PagedMessage>) -> bool {
        let Some(page) = self.pages.pop_front_if(|page| page.id == id) else {
            return false;
        };
        for PagedMessage { meta, message } in messages {
            if page.held.contains(meta.seq) {
                let fresh = Fresh { message, lsn: meta.lsn, arrived: meta.arrived };
                self.head.push(meta.seq, fresh);
            }
        }
        self.join_tail();
        true
    }

    /// Removes a message from its page, because it was read back alone or has left the queue. False if the
    /// page does not hold it.
    pub(super) fn leaves_page(&mut self, id: PageId, seq: u64, meta: Option<PagedMeta>) -> bool {
        let Some(page) = self.page_mut(id) else {
            return false;
        };
        if !page.held.remove(seq) {
            return false;
        }
        match meta {
            Some(PagedMeta { bytes, deadline, .. }) => {
                page.bytes -= bytes;
                page.with_deadline -= usize::from(deadline.is_some());
            }
            None => page.left_unseen = true,
        }
        true
    }

    /// Removes an empty page.
    pub(super) fn remove_page(&mut self, id: PageId) {
        if let Ok(at) = self.pages.binary_search_by_key(&id, |page| page.id) {
            self.pages.remove(at);
            self.join_tail();
        }
    }

    /// Corrects the facts of a page from which messages of unknown size left. `facts` covers all messages
    /// written to the page. Returns the counted bytes before and after.
    pub(super) fn look_again(&mut self, id: PageId, meta: &[PagedMeta]) -> (u64, u64) {
        let Some(page) = self.page_mut(id) else { return (0, 0) };
        let left = || meta.iter().filter(|meta| page.held.contains(meta.seq));
        let bytes = left().map(|meta| meta.bytes).sum();
        let deadlines = || left().filter_map(|meta| meta.deadline);
        let (next, last, count) = (deadlines().min(), deadlines().max(), deadlines().count());
        (page.next_deadline, page.last_deadline, page.with_deadline) = (next, last, count);
        page.left_unseen = false;
        (std::mem::replace(&mut page.bytes, bytes), bytes)
    }

    /// Removes everything, and returns the pages with the messages they held.
    pub(super) fn clear(&mut self) -> Vec<(PageId, PageMembers)> {
        (self.head, self.tail) = (Run::default(), Run::default());
        self.pages.drain(..).map(|page| (page.id, page.held)).collect()
    }

    /// The pages with the messages they hold; for consistency checks.
    pub(super) fn paged(&self) -> impl Iterator<Item = (PageId, &PageMembers)> {
        self.pages.iter().map(|page| (page.id, &page.held))
    }
}
