//! Browsing the messages of a queue, with pages read from the disk.

use std::collections::BTreeSet;

use broker::page::{PageSelection, PagedMessage, Pages};
use broker::{
    BrowseCursor, BrowsedMessage, ExpiryCursor, ExpirySlice, MessageState, PageId, Queue, Vhost,
};

use super::page_store::PageStore;

/// All messages of a queue in a state, looked at so many at a time.
pub(crate) fn browse_all(
    vhost: &Vhost,
    page_store: &mut PageStore,
    (name, state): (&str, MessageState),
    count: usize,
) -> Vec<BrowsedMessage> {
    let queue = vhost.queue_id(name).unwrap();
    let mut messages = Vec::new();
    let mut next = Some(BrowseCursor::start(state));
    let mut read: Vec<(PageId, Vec<PagedMessage>)> = Vec::new();
    let mut asked = BTreeSet::new();
    while let Some(from) = next {
        let browsed = vhost.browse(queue, from, &read, count).unwrap();
        assert!(browsed.messages.len() <= count, "{} messages", browsed.messages.len());
        if let Some(at) = browsed.page {
            assert!(asked.insert((from.to_string(), at.page)), "{from} asks for a page twice");
            read.push((at.page, page_store.read(at.page, PageSelection::Whole).messages));
        }
        let progress = browsed.page.is_some() || browsed.next != Some(from);
        assert!(progress, "{from} leads nowhere");
        next = browsed.next.map(|next| next.to_string().parse().unwrap());
        messages.extend(browsed.messages);
    }
    messages
}

/// The deadlines of all messages of a queue, read in slices of `count`.
pub(crate) fn expiry_of(queue: &Queue, count: usize) -> ExpirySlice {
    let mut all = queue.expiry(ExpiryCursor::START, count);
    while let Some(next) = all.next {
        let more = queue.expiry(next, count);
        all.deadlines.extend(more.deadlines);
        all.spans.extend(more.spans);
        all.never += more.never;
        all.oldest = all.oldest.into_iter().chain(more.oldest).min();
        all.next = more.next;
    }
    all
}
