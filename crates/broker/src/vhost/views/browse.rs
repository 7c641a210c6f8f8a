//! Browsing the messages of a queue changes nothing: no order, no flag, no counter.
//!
//! A call takes a limited number of messages and returns a cursor to continue from. Messages in pages are read by
//! the shell, which then browses again with what was read.

use std::sync::Arc;

use amqp::reply_code::ReplyCode;
use slotmap::Key;

use crate::access::{Access, Permission};
use crate::browse::{
    BrowseCursor, Browsed, BrowsedMessage, CursorPosition, DeliveryDetails, Holder, MessageState,
};
use crate::channel::Channel;
use crate::channel::transaction::Transaction;
use crate::channel::unacked::Unacked;
use crate::ids::{ConnectionId, DeliveryTag, PageId, QueueId};
use crate::page::{PageLocation, PageOwner, PagedMessage};
use crate::queue::Queue;
use crate::queue::browse::Found;
use crate::refusal::Refusal;
use crate::vhost::state::holder;
use crate::vhost::{Connection, Vhost};

impl Vhost {
    /// Checks that a user may browse the messages of a queue.
    ///
    /// # Errors
    /// The refusal of a `basic.get` there: the user may not read, or the queue belongs to one connection.
    pub fn check_browse(&self, queue: QueueId, access: &Access) -> Result<(), Refusal> {
        let queue = self
            .topology
            .queue(queue)
            .ok_or_else(|| Refusal::new(ReplyCode::NotFound, "the queue is gone"))?;
        let resource = self.queue_resource(&queue.name);
        access.require(Permission::Read, resource)?;
        match queue.ownership.exclusive_owner {
            Some(_) => Err(Refusal::locked_queue(resource)),
            None => Ok(()),
        }
    }

    /// Browses up to `count` messages of a queue from a cursor on, in the order of delivery, or
    /// unacknowledged ones by holder. `read` holds the messages of pages that were read as a whole
    /// ([`Browsed::page`]); those that have left their page since are left out. None if the queue is gone.
    pub fn browse(
        &self,
        queue: QueueId,
        from: BrowseCursor,
        read: &[(PageId, Vec<PagedMessage>)],
        count: usize,
    ) -> Option<Browsed> {
        let known = self.topology.queue(queue)?;
        Some(match from.0 {
            CursorPosition::Ready(place) => {
                collect(queue, from, known.browse_ready(place, read), count)
            }
            CursorPosition::Delayed(at, seq) => {
                collect(queue, from, known.browse_delayed((at, seq), read), count)
            }
            CursorPosition::Dead(passed) => collect(queue, from, known.browse_dead(passed), count),
            CursorPosition::Unacknowledged(holder) => self.browse_held(queue, known, holder, count),
        })
    }

    /// True if a queue still has messages in the page.
    pub fn has_page(&self, at: PageLocation) -> bool {
        if let PageOwner::Ready { queue, level } = at.owner {
            return self.topology.queue(queue).is_some_and(|queue| queue.has_page(level, at.page));
        }
        let scheduled = holder::Holder::of_pages(at.owner).and_then(|at| self.schedules(at));
        scheduled.is_some_and(|scheduled| scheduled.has_page(at.page))
    }

    /// Messages of a state in a queue; none if the queue is gone.
    pub fn count_of(&self, queue: QueueId, state: MessageState) -> Option<u64> {
        let queue = self.topology.queue(queue)?;
        Some(match state {
            MessageState::Ready => queue.ready_count(),
            MessageState::Unacknowledged => queue.unacked_count(),
            MessageState::Delayed => queue.delayed_count(),
            MessageState::Dead => queue.pending_count(),
        })
    }

    /// Goes through up to `count` deliveries and returns those of the queue; the end of a channel counts as
    /// one, too.
    fn browse_held(&self, id: QueueId, queue: &Queue, after: Holder, count: usize) -> Browsed {
        let mut messages = Vec::new();
        let mut passed = after;
        let mut steps = self.held_after(after);
        for (holder, held) in steps.by_ref().take(count) {
            passed = holder;
            messages.extend(held.filter(|held| held.unacked.queue == id).map(|h| h.browsed(queue)));
        }
        let next = steps.next().map(|_| BrowseCursor(CursorPosition::Unacknowledged(passed)));
        Browsed { messages, next, page: None }
    }

    /// Every unsettled delivery of the vhost behind one of them, and behind those of a channel nothing.
    fn held_after(
        &self,
        after: Holder,
    ) -> impl Iterator<Item = (Holder, Option<UnackedDelivery<'_>>)> {
        // Connections are in the order of their slots, which is the lower half of their keys.
        let slot = |key: u64| key & u64::from(u32::MAX);
        let key = |id: ConnectionId| id.data().as_ffi();
        let connections = self.connections.iter();
        let connections =
            connections.skip_while(move |(id, _)| slot(key(*id)) < slot(after.connection));
        connections.flat_map(move |(id, connection)| {
            let first = Holder { connection: key(id), ..Holder::default() };
            let after = if key(id) == after.connection { after } else { first };
            let channels = connection.channels.range(after.channel..);
            channels.flat_map(move |(number, channel)| {
                let first = Holder { channel: *number, ..first };
                let after = if *number == after.channel { after } else { first };
                held_by_channel(channel, after).map(move |(holder, held)| {
                    let held = held.map(|(tag, unacked)| UnackedDelivery {
                        id,
                        connection,
                        holder,
                        tag,
                        unacked,
                    });
                    (holder, held)
                })
            })
        })
    }
}

/// The unsettled deliveries of a channel after the given one, with a `None` at the end.
fn held_by_channel(
    channel: &Channel,
    after: Holder,
) -> impl Iterator<Item = (Holder, Option<(DeliveryTag, &Unacked)>)> {
    let Holder { in_transaction, number, .. } = after;
    let unacked = (!in_transaction).then(|| channel.unacked.iter_after(DeliveryTag(number)));
    let unacked = unacked.into_iter().flatten();
    let unacked = unacked
        .map(move |(tag, unacked)| (Holder { number: tag.0, ..after }, Some((tag, unacked))));
    let settled = channel.in_transaction().into_iter().flat_map(Transaction::tagged_deliveries);
    let passed = if in_transaction { usize::try_from(number).unwrap_or(usize::MAX) } else { 0 };
    let settled = (1_u64..).zip(settled).skip(passed).map(move |(number, (tag, unacked))| {
        (Holder { in_transaction: true, number, ..after }, Some((*tag, unacked)))
    });
    let end = Holder { in_transaction: true, number: u64::MAX, ..after };
    let end = (after != end).then_some((end, None));
    unacked.chain(settled).chain(end)
}

/// An unsettled delivery, and where it is.
struct UnackedDelivery<'a> {
    id: ConnectionId,
    connection: &'a Connection,
    holder: Holder,
    tag: DeliveryTag,
    unacked: &'a Unacked,
}

impl UnackedDelivery<'_> {
    fn browsed(&self, queue: &Queue) -> BrowsedMessage {
        let consumer = self.unacked.consumer.and_then(|consumer| queue.consumers.get(consumer));
        let held_by = DeliveryDetails {
            connection: self.id,
            connection_name: Arc::clone(&self.connection.name),
            channel: self.holder.channel,
            tag: self.tag,
            consumer_tag: consumer.map(|consumer| Arc::clone(&consumer.tag)),
        };
        let passed = CursorPosition::Unacknowledged(self.holder);
        let entry = self.unacked.entry.clone();
        let may_have_been_delivered =
            entry.delivery_count == 0 && queue.may_have_been_delivered(&entry);
        let held_by = Some(held_by);
        BrowsedMessage { held_by, may_have_been_delivered, ..queue.browsed(entry, passed) }
    }
}

/// Collects at most `count` messages, up to the first page that must be read.
fn collect(
    queue: QueueId,
    from: BrowseCursor,
    mut found: impl Iterator<Item = Found>,
    count: usize,
) -> Browsed {
    let mut browsed = Browsed { messages: Vec::new(), next: Some(from), page: None };
    loop {
        match found.next() {
            Some(Found::Message(message)) if browsed.messages.len() < count => {
                browsed.next = Some(message.behind);
                browsed.messages.push(*message);
            }
            Some(Found::Message(_)) => return browsed,
            Some(Found::Page(level, page)) => {
                let owner = PageOwner::Ready { queue, level };
                browsed.page = Some(PageLocation { owner, page });
                return browsed;
            }
            Some(Found::ScheduledPage(page)) => {
                browsed.page = Some(PageLocation { owner: PageOwner::Scheduled(queue), page });
                return browsed;
            }
            None => return Browsed { next: None, ..browsed },
        }
    }
}
