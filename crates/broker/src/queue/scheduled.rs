//! Messages that wait for their delivery time, in a queue or in a delayed exchange, by time and by schedule id.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::delayed::Delayed;
use super::entry::Entry;
use super::totals::CountedBytes;
use crate::ids::EntryId;
use crate::limits::SCHEDULES_PER_ID_MAX;
use crate::publish_properties::schedule_headers::schedule_id_of;
use crate::schedule::{ScheduleId, ScheduleSelector};
use crate::time::Time;

/// Scheduled messages of one queue or delayed exchange.
#[derive(Default, Debug)]
pub(crate) struct Scheduled {
    waiting: Delayed,
    /// The messages with a schedule id.
    named: BTreeSet<(ScheduleId, u64)>,
}

impl Scheduled {
    pub(crate) const fn new(counted: CountedBytes) -> Self {
        Self { waiting: Delayed::new(counted), named: BTreeSet::new() }
    }

    /// The messages by time.
    pub(crate) fn waiting(&self) -> &Delayed {
        &self.waiting
    }

    /// Lets a message wait until `ready_at`.
    pub(crate) fn insert(&mut self, ready_at: Time, entry: Entry) {
        if let Some(id) = schedule_id_of(&entry.message) {
            self.named.insert((id, entry.id.seq));
        }
        self.waiting.insert(ready_at, entry);
    }

    /// Takes the next message that is ready at `now`, with the time since which it is.
    pub(crate) fn pop_ready(&mut self, now: Time) -> Option<(Time, Entry)> {
        let (ready_at, entry) = self.waiting.pop_ready(now)?;
        self.forget_name(&entry);
        Some((ready_at, entry))
    }

    /// Takes the message with the earliest delivery time.
    pub(crate) fn pop_first(&mut self) -> Option<Entry> {
        let entry = self.waiting.pop_first()?;
        self.forget_name(&entry);
        Some(entry)
    }

    pub(crate) fn take(&mut self, id: EntryId) -> Option<Entry> {
        let entry = self.waiting.take(id)?;
        self.forget_name(&entry);
        Some(entry)
    }

    /// The messages with this name, in order of arrival.
    pub(crate) fn named(&self, id: &ScheduleId) -> impl Iterator<Item = EntryId> {
        let name = self.named.range(all_of(id));
        name.map(|(_, seq)| EntryId { seq: *seq, level: 0 })
    }

    /// The messages that `selector` selects, in order of arrival.
    pub(crate) fn select(&self, selector: &ScheduleSelector) -> Vec<EntryId> {
        match selector {
            ScheduleSelector::Id(id) => self.named(id).collect(),
            ScheduleSelector::Handle(handle) => {
                let id = EntryId { seq: *handle, level: 0 };
                self.waiting.contains(id).then_some(id).into_iter().collect()
            }
        }
    }

    /// Up to [`SCHEDULES_PER_ID_MAX`] messages that `selector` selects, by delivery time.
    pub(crate) fn places(&self, selector: &ScheduleSelector) -> Vec<((Time, u64), &Entry)> {
        let selected = self.select(selector).into_iter().take(SCHEDULES_PER_ID_MAX);
        let mut found: Vec<_> = selected.filter_map(|id| self.waiting.get(id)).collect();
        found.sort_unstable_by_key(|(at, _)| *at);
        found
    }

    /// Marks the durable messages whose delivery time has come as possibly delivered before a crash.
    pub(crate) fn mark_due_as_seen(&mut self, now: Time) {
        self.waiting.mark_due_as_seen(now);
    }

    /// Removes all messages.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.named.clear();
    }

    fn forget_name(&mut self, entry: &Entry) {
        if !self.named.is_empty()
            && let Some(id) = schedule_id_of(&entry.message)
        {
            let was_known = self.named.remove(&(id, entry.id.seq));
            assert!(was_known, "the name of a waiting message is known");
        }
    }
}

fn all_of(id: &ScheduleId) -> RangeInclusive<(ScheduleId, u64)> {
    (id.clone(), 0)..=(id.clone(), u64::MAX)
}
