//! Long queues: cutting pages, reading them back, and the consumers and `basic.get`s that wait for that.
//!
//! The shell writes and reads pages without blocking the vhost. A queue whose next message is still being read
//! delivers nothing until it is there; `basic.get` is answered then.

use smallvec::SmallVec;

use crate::channel_key::ChannelKey;
use crate::effect::Effect;
use crate::ids::{ConnectionId, PageId, QueueId};
use crate::limits::{EXPIRY_SLICE, PAGES_PER_ARRIVAL};
use crate::page::{
    EndedMessages, PageLocation, PageOwner, PageRead, PageSelection, PageTask, PagedMessage,
};
use crate::queue::Queue;
use crate::time::Now;
use crate::timers::Wake;
use crate::vhost::Vhost;
use crate::vhost::state::holder::Holder;

/// Pages to write.
type Written = SmallVec<[(PageId, Vec<PagedMessage>); PAGES_PER_ARRIVAL]>;

/// Scheduled messages.
impl Vhost {
    /// Cuts a page of scheduled messages, if much is in memory.
    pub(in crate::vhost) fn cut_scheduled_page(
        &mut self,
        holder: Holder,
    ) -> Option<(PageId, Vec<PagedMessage>)> {
        let now = self.now.time;
        let page = self.paging.next_page();
        let messages = self.schedules_mut(holder)?.cut_page(page, now)?;
        self.paging.page_cut(page);
        Some((page, messages))
    }

    /// Cuts a page after a message began to wait for its delivery time, and requests writing it.
    pub(in crate::vhost) fn page_out_scheduled(&mut self, holder: Holder) {
        if let Some((page, messages)) = self.cut_scheduled_page(holder) {
            self.effects.page(PageTask::Write { page, messages });
        }
    }

    /// Requests reading pages of scheduled messages whose delivery times are near.
    pub(in crate::vhost) fn read_scheduled_pages(&mut self, holder: Holder) {
        let now = self.now.time;
        while let Some(scheduled) = self.schedules_mut(holder)
            && let Some((page, wanted)) = scheduled.ask(now)
        {
            let at = PageLocation { owner: holder.page_owner(), page };
            self.effects.page(PageTask::Read { at, wanted });
        }
    }
}

impl Vhost {
    /// Memory of the messages that wait in all queues, without those in pages, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.paging.resident_bytes()
    }

    /// Cuts pages from a level of a queue that has become long, if much is in memory.
    pub(in crate::vhost) fn cut_pages(&mut self, id: QueueId, level: u8) -> Written {
        let mut written = Written::new();
        let queue = self.topology.known_queue_mut(id);
        while written.len() < PAGES_PER_ARRIVAL
            && let page = self.paging.next_page()
            && let Some(messages) = queue.page_out(level, page)
        {
            self.paging.page_cut(page);
            written.push((page, messages));
        }
        written
    }

    /// Cuts pages after an arrival, and requests writing them.
    pub(in crate::vhost) fn page_out(&mut self, id: QueueId, level: u8) {
        let written = self.cut_pages(id, level);
        if written.is_empty() {
            return;
        }
        for (page, messages) in written {
            self.effects.page(PageTask::Write { page, messages });
        }
        // Messages in a page must be read before they expire.
        self.arm_queue(id);
    }

    /// Requests reading pages of a queue that are needed soon: for the next deliveries, and for messages that
    /// expire.
    pub(in crate::vhost) fn read_pages(&mut self, id: QueueId) {
        self.read_scheduled_pages(Holder::Queue(id));
        let queue = self.topology.known_queue_mut(id);
        if !queue.has_pages() {
            return;
        }
        while let Some((level, page)) = queue.await_page() {
            let at = PageLocation { owner: PageOwner::Ready { queue: id, level }, page };
            self.effects.page(PageTask::Read { at, wanted: PageSelection::Whole });
        }
        while let Some(((level, page), wanted)) = queue.ask_due(self.now.time) {
            let at = PageLocation { owner: PageOwner::Ready { queue: id, level }, page };
            self.effects.page(PageTask::Read { at, wanted });
        }
    }

    /// Puts messages that were read from a page back into their queue, in answer to [`PageTask::Read`].
    pub fn page_read(&mut self, now: Now, at: PageLocation, read: PageRead) {
        self.advance(now);
        let PageLocation { owner, page } = at;
        let empty_page = match owner {
            PageOwner::Ready { queue, level } => {
                let queue = self.topology.queue_mut(queue);
                queue.and_then(|queue| queue.read_back((level, page), read))
            }
            PageOwner::Scheduled(_) | PageOwner::Exchange(_) => {
                let scheduled = Holder::of_pages(owner).and_then(|at| self.schedules_mut(at));
                scheduled.and_then(|scheduled| scheduled.read_back(page, read.messages))
            }
        };
        self.drop_page(empty_page);
        match owner {
            PageOwner::Ready { queue, .. } | PageOwner::Scheduled(queue) => {
                if self.topology.queue(queue).is_some() {
                    self.head_changed(queue);
                }
            }
            PageOwner::Exchange(exchange) => {
                self.release_held(exchange, EXPIRY_SLICE);
            }
        }
        self.finish_deaths();
    }

    /// Drops a page that is empty.
    pub(in crate::vhost) fn drop_page(&mut self, empty: Option<PageId>) {
        if let Some(page) = empty {
            self.effects.page(PageTask::Drop { page, ended: None });
        }
    }

    /// Does what a new head of the queue allows or requires: pages are read, consumers and `basic.get`s served.
    pub(in crate::vhost) fn head_changed(&mut self, id: QueueId) {
        let queue = self.topology.known_queue_mut(id);
        self.timers.disarm(&mut queue.expiry.armed, Wake::Queue(id));
        self.read_pages(id);
        self.wake_queue(id, EXPIRY_SLICE);
        // The queue is gone if its lease was over.
        self.answer_gets(id);
    }

    /// Drops the pages of a queue or delayed exchange that was purged or deleted; their messages have left.
    pub(in crate::vhost) fn end_pages(&mut self, pages: Vec<(PageId, EndedMessages)>) {
        for (page, ended) in pages {
            let ended = Some(ended);
            self.effects.page(PageTask::Drop { page, ended });
        }
    }

    // ---- basic.get ----

    /// Lets a `basic.get` wait until the next message has been read. The shell applies no further command of its
    /// connection until it is answered.
    pub(in crate::vhost) fn await_get(&mut self, at: ChannelKey, id: QueueId, no_ack: bool) {
        let Some(channel) = self.connections.channel_mut(at) else {
            return;
        };
        channel.awaited_gets += 1;
        self.topology
            .known_queue_mut(id)
            .delivery
            .awaited_gets
            .or_default()
            .push_back((at, no_ack));
        self.effects.push(Effect::AwaitGet(at.connection));
    }

    /// True if a `basic.get` of the connection waits for its answer.
    pub fn awaits_get(&self, connection: ConnectionId) -> bool {
        let connection = self.connections.get(connection);
        connection.is_some_and(|known| known.channels().any(|(_, c)| c.awaited_gets > 0))
    }

    /// Answers waiting `basic.get`s as long as the next message is in memory, or the queue is empty. The queue may be
    /// gone.
    pub(in crate::vhost) fn answer_gets(&mut self, id: QueueId) {
        if self.hand_over.is_halted {
            return;
        }
        let awaited = |queue: &mut Queue| {
            if queue.is_away() { None } else { queue.delivery.awaited_gets.get_mut()?.pop_front() }
        };
        while let Some((at, no_ack)) = self.topology.queue_mut(id).and_then(awaited) {
            if self.is_awaited(at) {
                self.answer_get(at, id, no_ack);
            }
        }
    }

    /// Answers the `basic.get`s that wait for a queue that is deleted.
    pub(in crate::vhost) fn answer_gets_empty(&mut self, queue: &mut Queue) {
        for (at, _) in queue.delivery.awaited_gets.take() {
            if self.is_awaited(at) {
                queue.counters.deliveries.got_nothing += 1;
                self.send_get_empty(at);
            }
        }
    }

    /// True if the channel is open and waits for a `basic.get`, which is counted as answered then.
    fn is_awaited(&mut self, at: ChannelKey) -> bool {
        let channel = self.connections.channel_mut(at).filter(|channel| channel.awaited_gets > 0);
        channel.map(|channel| channel.awaited_gets -= 1).is_some()
    }
}
