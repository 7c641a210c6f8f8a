//! The scheduled messages of a vhost, in all queues and delayed exchanges, by delivery time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::access::{Access, Permission};
use crate::ids::QueueNumber;
use crate::limits::SCHEDULED_LISTED_MAX;
use crate::page::{PageLocation, PageOwner};
use crate::refusal::Refusal;
use crate::schedule::{
    ScheduleSelector, ScheduleTarget, ScheduledContent, ScheduledCursor, ScheduledFilter,
    ScheduledMessage, ScheduledPage,
};
use crate::scheduled::{Scheduled, ScheduledAt};
use crate::time::Time;
use crate::vhost::Vhost;

/// The scheduled messages of one queue or delayed exchange.
struct Source<'a> {
    number: QueueNumber,
    target: ScheduleTarget,
    /// The owner of the pages.
    owner: PageOwner,
    scheduled: &'a Scheduled,
}

impl Vhost {
    /// Up to `count` scheduled messages behind a position, in the order of delivery times, from the queues and delayed
    /// exchanges that the user may read; at most [`SCHEDULED_LISTED_MAX`].
    pub fn scheduled_messages(
        &self,
        filter: &ScheduledFilter,
        access: &Access,
        behind: Option<ScheduledCursor>,
        count: usize,
    ) -> ScheduledPage<ScheduledContent> {
        let behind = behind.unwrap_or_default();
        let sources = self.sources(filter, access);
        let mut iterators: Vec<_> =
            sources.iter().map(|source| source.after(filter, behind)).collect();
        let mut heads: BinaryHeap<_> = BinaryHeap::new();
        let mut found: Vec<Option<ScheduledAt<'_>>> = Vec::with_capacity(iterators.len());
        for (index, iterator) in iterators.iter_mut().enumerate() {
            found.push(iterator.next());
            push_head(&mut heads, &sources, index, found[index]);
        }
        let mut messages = Vec::new();
        let mut passed = None;
        while messages.len() < count.min(SCHEDULED_LISTED_MAX) {
            let Some(Reverse((cursor, index))) = heads.pop() else { break };
            let message = found[index].expect("a head is a message that was found");
            messages.push(sources[index].message(message));
            passed = Some(cursor);
            found[index] = iterators[index].next();
            push_head(&mut heads, &sources, index, found[index]);
        }
        let next = passed.filter(|_| !heads.is_empty());
        ScheduledPage { messages, next }
    }

    /// The messages of one target that `selector` selects, by delivery time; at most `SCHEDULES_PER_ID_MAX`.
    ///
    /// # Errors
    /// 403 if the user may not read the target, 404 if it does not exist, 405 if it belongs to one connection.
    pub fn find_scheduled(
        &self,
        target: &ScheduleTarget,
        selector: &ScheduleSelector,
        access: &Access,
    ) -> Result<Vec<ScheduledMessage<ScheduledContent>>, Refusal> {
        access.require(Permission::Read, self.target_resource(target))?;
        let holder = self.shared_holder(target)?;
        let scheduled = self.schedules(holder).expect("the target was found in this call");
        let source = Source {
            number: self.holder_number(holder),
            target: target.clone(),
            owner: holder.page_owner(),
            scheduled,
        };
        let found = scheduled.places(selector);
        Ok(found.into_iter().map(|found| source.message(found)).collect())
    }

    /// The queues and delayed exchanges with scheduled messages that the user may read.
    fn sources(&self, filter: &ScheduledFilter, access: &Access) -> Vec<Source<'_>> {
        let is_wanted =
            |target: &ScheduleTarget| filter.target.as_ref().is_none_or(|wanted| wanted == target);
        let has_any = |scheduled: &Scheduled| match &filter.id {
            Some(id) => scheduled.named(id).next().is_some(),
            None => !scheduled.is_empty(),
        };
        let queues = self.topology.queues().filter_map(|(id, queue)| {
            let scheduled = queue.schedules();
            if !has_any(scheduled) || queue.ownership.exclusive_owner.is_some() {
                return None;
            }
            let target = ScheduleTarget::Queue(queue.name.clone());
            let is_readable =
                || access.require(Permission::Read, self.queue_resource(&queue.name)).is_ok();
            let is_shown = is_wanted(&target) && is_readable();
            let (number, owner) = (queue.number, PageOwner::Scheduled(id));
            is_shown.then_some(Source { number, target, owner, scheduled })
        });
        let exchanges = self.topology.exchanges().filter_map(|(id, exchange)| {
            let held = exchange.held.as_ref().filter(|held| has_any(held.schedules()))?;
            let target = ScheduleTarget::Exchange(exchange.name.clone());
            let is_readable =
                || access.require(Permission::Read, self.exchange_resource(&exchange.name)).is_ok();
            let is_shown = is_wanted(&target) && is_readable();
            let (number, scheduled) = (held.number, held.schedules());
            let owner = PageOwner::Exchange(id);
            is_shown.then_some(Source { number, target, owner, scheduled })
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
    ) -> impl Iterator<Item = ScheduledAt<'a>> + use<'a> {
        let seq = match self.number.0.cmp(&behind.target) {
            std::cmp::Ordering::Less => u64::MAX,
            std::cmp::Ordering::Equal => behind.handle,
            std::cmp::Ordering::Greater => 0,
        };
        let from = filter.from.map(|from| (from.just_before(), u64::MAX)).unwrap_or_default();
        let passed = (behind.ready_at, seq).max(from);
        let before = filter.before.unwrap_or(Time::MAX);
        let found: Box<dyn Iterator<Item = ScheduledAt<'a>> + 'a> = match &filter.id {
            None => Box::new(self.scheduled.after(passed)),
            Some(id) => {
                let named = self.scheduled.places(&ScheduleSelector::Id(id.clone()));
                Box::new(named.into_iter().filter(move |found| found.place() > passed))
            }
        };
        found.take_while(move |found| found.place().0 < before)
    }

    fn message(&self, found: ScheduledAt<'_>) -> ScheduledMessage<ScheduledContent> {
        let (ready_at, handle) = found.place();
        let (is_durable, message) = match found {
            ScheduledAt::Here(_, entry) => {
                (entry.is_durable(), ScheduledContent::Here(entry.message.clone()))
            }
            ScheduledAt::Paged(paged) => {
                let at = PageLocation { owner: self.owner, page: paged.page };
                (paged.is_durable, ScheduledContent::Paged(at))
            }
        };
        ScheduledMessage {
            target: self.target.clone(),
            handle,
            id: self.scheduled.name_of(found),
            ready_at,
            message,
            is_durable,
            behind: ScheduledCursor { ready_at, target: self.number.0, handle },
        }
    }
}

/// Notes the next message of a source.
fn push_head(
    heads: &mut BinaryHeap<Reverse<(ScheduledCursor, usize)>>,
    sources: &[Source<'_>],
    index: usize,
    found: Option<ScheduledAt<'_>>,
) {
    if let Some(found) = found {
        let (ready_at, handle) = found.place();
        let cursor = ScheduledCursor { ready_at, target: sources[index].number.0, handle };
        heads.push(Reverse((cursor, index)));
    }
}
