//! Looking at the messages of a queue as whoever has the disk does.

use broker::page::{PagedMessage, Pages, Wanted};
use broker::{BrowseCursor, BrowsedMessage, MessageState, PageId, Vhost};

use super::shelf::Shelf;

/// All messages of a queue in a state, looked at so many at a time.
pub(crate) fn browse_all(
    vhost: &Vhost,
    shelf: &mut Shelf,
    (name, state): (&str, MessageState),
    count: usize,
) -> Vec<BrowsedMessage> {
    let queue = vhost.queue_id(name).unwrap();
    let mut messages = Vec::new();
    let mut next = Some(BrowseCursor::start(state));
    let mut read: Option<(PageId, Vec<PagedMessage>)> = None;
    while let Some(from) = next {
        let page = read.as_ref().map(|(page, messages)| (*page, messages.as_slice()));
        let browsed = vhost.browse(queue, from, page, count).unwrap();
        assert!(browsed.messages.len() <= count, "{} messages", browsed.messages.len());
        if let Some(at) = browsed.page {
            read = Some((at.page, shelf.read(at.page, Wanted::Whole).messages));
        }
        let progress = browsed.page.is_some() || browsed.next != Some(from);
        assert!(progress, "{from} leads nowhere");
        next = browsed.next.map(|next| next.to_string().parse().unwrap());
        messages.extend(browsed.messages);
    }
    messages
}
