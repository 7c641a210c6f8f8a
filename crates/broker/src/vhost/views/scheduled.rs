//! The scheduled messages of a vhost, in all queues and delayed exchanges, by delivery time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::access::{Access, Permission};
use crate::ids::QueueNumber;
use crate::limits::SCHEDULED_LISTED_MAX;
use crate::publish_properties::schedule_headers::schedule_id_of;
use crate::queue::Entry;
use crate::queue::scheduled::Scheduled;
use crate::schedule::{
    ScheduleTarget, ScheduledCursor, ScheduledFilter, ScheduledMessage, ScheduledPage,
};
use crate::time::Time;
use crate::vhost::Vhost;

/// The scheduled messages of one queue or delayed exchange.
struct Source<'a> {
    number: QueueNumber,
    target: ScheduleTarget,
    scheduled: &'a Scheduled,
}

/// A message of a source.
type Found<'a> = ((Time, u64), &'a Entry);

impl Vhost {
    /// Up to `count` scheduled messages behind a position, in the order of delivery times, from the queues and delayed
    /// exchanges that the user may read. At most [`SCHEDULED_LISTED_MAX`] messages are looked at; the list may be
    /// shorter although more messages follow.
    pub fn scheduled_messages(
        &self,
        filter: &ScheduledFilter,
        access: &Access,
        behind: Option<ScheduledCursor>,
        count: usize,
    ) -> ScheduledPage {
        let behind = behind.unwrap_or_default();
        let sources = self.sources(filter, access);
        let mut iterators: Vec<_> =
            sources.iter().map(|source| source.after(filter, behind)).collect();
        let mut heads: BinaryHeap<_> = BinaryHeap::new();
        let mut found: Vec<Option<Found<'_>>> = Vec::with_capacity(iterators.len());
        for (index, iterator) in iterators.iter_mut().enumerate() {
            found.push(iterator.next());
            push_head(&mut heads, &sources, index, found[index]);
        }
        let mut messages = Vec::new();
        let mut passed = None;
        for _ in 0..SCHEDULED_LISTED_MAX {
            if messages.len() == count {
                break;
            }
            let Some(Reverse((cursor, index))) = heads.pop() else { break };
            let ((ready_at, _), entry) = found[index].expect("a head is a message that was found");
            if let Some(message) = sources[index].message(filter, ready_at, entry) {
                messages.push(message);
            }
            passed = Some(cursor);
            found[index] = iterators[index].next();
            push_head(&mut heads, &sources, index, found[index]);
        }
        let next = passed.filter(|_| !heads.is_empty());
        ScheduledPage { messages, next }
    }

    /// The queues and delayed exchanges with scheduled messages that the user may read.
    fn sources(&self, filter: &ScheduledFilter, access: &Access) -> Vec<Source<'_>> {
        let is_wanted =
            |target: &ScheduleTarget| filter.target.as_ref().is_none_or(|wanted| wanted == target);
        let has_any = |scheduled: &Scheduled| match &filter.id {
            Some(id) => scheduled.named(id).next().is_some(),
            None => !scheduled.waiting().is_empty(),
        };
        let queues = self.topology.queues().filter_map(|(_, queue)| {
            let scheduled = queue.schedules();
            if !has_any(scheduled) || queue.ownership.exclusive_owner.is_some() {
                return None;
            }
            let target = ScheduleTarget::Queue(queue.name.clone());
            let is_readable =
                access.require(Permission::Read, self.queue_resource(&queue.name)).is_ok();
            let source = Source { number: queue.number, target, scheduled };
            (is_readable && is_wanted(&source.target)).then_some(source)
        });
        let exchanges = self.topology.exchanges().filter_map(|(_, exchange)| {
            let held = exchange.held.as_ref().filter(|held| has_any(held.schedules()))?;
            let target = ScheduleTarget::Exchange(exchange.name.clone());
            let is_readable =
                access.require(Permission::Read, self.exchange_resource(&exchange.name)).is_ok();
            let source = Source { number: held.number, target, scheduled: held.schedules() };
            (is_readable && is_wanted(&source.target)).then_some(source)
        });
        queues.chain(exchanges).collect()
    }
}

impl<'a> Source<'a> {
    /// The messages behind a position, within the times of the filter.
    fn after(
        &self,
        filter: &ScheduledFilter,
        behind: ScheduledCursor,
    ) -> impl Iterator<Item = Found<'a>> + use<'a> {
        let seq = match self.number.0.cmp(&behind.target) {
            std::cmp::Ordering::Less => u64::MAX,
            std::cmp::Ordering::Equal => behind.handle,
            std::cmp::Ordering::Greater => 0,
        };
        let from = filter.from.map(|from| (from.just_before(), u64::MAX)).unwrap_or_default();
        let passed = (behind.ready_at, seq).max(from);
        let before = filter.before.unwrap_or(Time::MAX);
        self.scheduled.waiting().after(passed).take_while(move |((at, _), _)| *at < before)
    }

    /// The message, if the filter wants it.
    fn message(
        &self,
        filter: &ScheduledFilter,
        ready_at: Time,
        entry: &Entry,
    ) -> Option<ScheduledMessage> {
        let id = schedule_id_of(&entry.message);
        if filter.id.is_some() && filter.id != id {
            return None;
        }
        Some(ScheduledMessage {
            target: self.target.clone(),
            handle: entry.id.seq,
            id,
            ready_at,
            message: entry.message.clone(),
            is_durable: entry.is_durable(),
        })
    }
}

/// Notes the next message of a source.
fn push_head(
    heads: &mut BinaryHeap<Reverse<(ScheduledCursor, usize)>>,
    sources: &[Source<'_>],
    index: usize,
    found: Option<Found<'_>>,
) {
    if let Some(((ready_at, handle), _)) = found {
        let cursor = ScheduledCursor { ready_at, target: sources[index].number.0, handle };
        heads.push(Reverse((cursor, index)));
    }
}
