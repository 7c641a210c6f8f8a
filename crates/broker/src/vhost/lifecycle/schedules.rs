//! Schedules by name: older messages are replaced, and waiting messages are cancelled or get another delivery time. See
//! `docs/guides/deliver-later.md`.

use std::borrow::Cow;

use crate::ids::{EntryId, QueueNumber};
use crate::limits::SCHEDULES_PER_ID_MAX;
use crate::publish_properties::schedule_headers::NamedSchedule;
use crate::queue::scheduled::Scheduled;
use crate::queue::scheduled_pages::RemovedMessage;
use crate::record::Record;
use crate::schedule::{ScheduleId, ScheduleMode, ScheduleOperation, ScheduleSelector};
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::{DelayedPlace, Holder};

/// The meaning of a schedule id at one target.
enum NameUse {
    /// The message may wait there.
    Open,
    /// An older message has the name, and stays instead.
    Kept,
    /// As many messages as allowed have the name.
    Full,
}

/// Publishes with a schedule id.
impl Vhost {
    /// The targets of a publish in which it may wait, and whether one of the others has no room for the name.
    pub(in crate::vhost) fn admit<'a, Id: Copy>(
        &mut self,
        named: Option<&NamedSchedule>,
        targets: &'a [Id],
        holder: impl Fn(Id) -> Holder,
    ) -> (Cow<'a, [Id]>, bool) {
        let Some(named) = named else { return (Cow::Borrowed(targets), false) };
        let mut is_full = false;
        let mut open = Vec::with_capacity(targets.len());
        for target in targets {
            match self.name_use(holder(*target), named) {
                NameUse::Open => open.push(*target),
                NameUse::Kept => self.counters.schedules.kept += 1,
                NameUse::Full => is_full = true,
            }
        }
        (Cow::Owned(open), is_full)
    }

    fn name_use(&self, holder: Holder, named: &NamedSchedule) -> NameUse {
        // A transaction may hold the id of a deleted queue or exchange.
        let Some(schedules) = self.schedules(holder) else { return NameUse::Open };
        let mut same = schedules.named(&named.id);
        match named.mode {
            ScheduleMode::Replace => NameUse::Open,
            ScheduleMode::Keep if same.next().is_some() => NameUse::Kept,
            ScheduleMode::Add if same.nth(SCHEDULES_PER_ID_MAX - 1).is_some() => NameUse::Full,
            ScheduleMode::Keep | ScheduleMode::Add => NameUse::Open,
        }
    }

    /// Removes the older messages that the message of these places, which is about to enter them, replaces. The log
    /// has the record of the message; those of the removals continue it.
    pub(in crate::vhost) fn replace_older(&mut self, places: &[DelayedPlace]) {
        let is_logged = places.iter().any(|place| place.is_durable);
        for place in places {
            let Some(id) = &place.replaces else { continue };
            for entry in self.take_named(place.holder, id) {
                self.counters.schedules.replaced += 1;
                if entry.lsn.0 > 0 {
                    let record = Record::Settle { queue: place.number, entry: entry.id };
                    if is_logged {
                        self.log_joined_about(entry.lsn, record);
                    } else {
                        self.log_about(entry.lsn, record);
                    }
                }
            }
        }
    }

    fn take_named(&mut self, holder: Holder, id: &ScheduleId) -> Vec<RemovedMessage> {
        let Some(schedules) = self.schedules(holder) else { return Vec::new() };
        let older: Vec<EntryId> = schedules.named(id).take(SCHEDULES_PER_ID_MAX).collect();
        older.into_iter().filter_map(|entry| self.remove_scheduled(holder, entry)).collect()
    }
}

/// Operations on messages that wait.
impl Vhost {
    /// Performs an operation on up to [`SCHEDULES_PER_ID_MAX`] messages of a queue or delayed exchange. Returns the
    /// handles of the messages.
    pub(in crate::vhost) fn operate_in(
        &mut self,
        holder: Holder,
        selector: &ScheduleSelector,
        operation: ScheduleOperation,
    ) -> Vec<u64> {
        let Some(schedules) = self.schedules(holder) else { return Vec::new() };
        let mut selected = schedules.select(selector);
        selected.truncate(SCHEDULES_PER_ID_MAX);
        if selected.is_empty() {
            return Vec::new();
        }
        for id in &selected {
            match operation {
                ScheduleOperation::Cancel => self.cancel_scheduled(holder, *id),
                ScheduleOperation::Reschedule { delivery_time_ms } => {
                    let wait_ms = delivery_time_ms.saturating_sub(self.now.wall_ms);
                    self.reschedule(holder, *id, wait_ms);
                }
                ScheduleOperation::Deliver => self.reschedule(holder, *id, 0),
            }
        }
        match holder {
            Holder::Queue(id) => {
                self.scheduled_left(id);
                self.left(id);
            }
            Holder::Exchange(id) => {
                self.read_scheduled_pages(holder);
                self.arm_exchange(id);
            }
        }
        selected.into_iter().map(|id| id.seq).collect()
    }

    fn cancel_scheduled(&mut self, holder: Holder, id: EntryId) {
        let number = self.holder_number(holder);
        let entry = self.remove_scheduled(holder, id);
        let entry = entry.expect("the message was selected in this call");
        self.counters.schedules.cancelled += 1;
        if entry.lsn.0 > 0 {
            self.log_about(entry.lsn, Record::Settle { queue: number, entry: entry.id });
        }
    }

    fn reschedule(&mut self, holder: Holder, id: EntryId, wait_ms: u64) {
        let ready_at = self.now.time.plus_ms(wait_ms);
        let scheduled_for_ms = self.now.wall_ms.saturating_add(wait_ms);
        let number = self.holder_number(holder);
        self.counters.schedules.rescheduled += 1;
        let entry = match holder {
            Holder::Queue(queue) => {
                let queue = self.topology.known_queue_mut(queue);
                queue.reschedule(id, ready_at, scheduled_for_ms)
            }
            Holder::Exchange(exchange) => {
                let exchange = self.topology.known_exchange_mut(exchange);
                let held = exchange.held.as_mut().expect("only delayed exchanges hold messages");
                held.reschedule(id, ready_at)
            }
        };
        let (entry, lsn) = entry.expect("the message was selected in this call");
        if lsn.0 > 0 {
            self.log_about(lsn, Record::Reschedule { queue: number, entry, ready_at });
        }
    }

    /// The number of a queue or delayed exchange in the log.
    pub(in crate::vhost) fn holder_number(&self, holder: Holder) -> QueueNumber {
        match holder {
            Holder::Queue(id) => self.topology.known_queue(id).number,
            Holder::Exchange(id) => {
                let held = self.topology.known_exchange(id).held.as_ref();
                held.expect("only delayed exchanges hold messages").number
            }
        }
    }

    /// The scheduled messages of a queue or delayed exchange; none if it is gone.
    pub(in crate::vhost) fn schedules(&self, holder: Holder) -> Option<&Scheduled> {
        match holder {
            Holder::Queue(id) => self.topology.queue(id).map(|queue| queue.schedules()),
            Holder::Exchange(id) => {
                let held = self.topology.exchange(id)?.held.as_ref()?;
                Some(held.schedules())
            }
        }
    }

    /// The scheduled messages of a queue or delayed exchange; none if it is gone, or never had one.
    pub(in crate::vhost) fn schedules_mut(&mut self, holder: Holder) -> Option<&mut Scheduled> {
        match holder {
            Holder::Queue(id) => self.topology.queue_mut(id)?.schedules_mut(),
            Holder::Exchange(id) => {
                let held = self.topology.exchange_mut(id)?.held.as_mut()?;
                Some(held.schedules_mut())
            }
        }
    }

    /// Removes a message that is not to be delivered, and counts it.
    fn remove_scheduled(&mut self, holder: Holder, entry: EntryId) -> Option<RemovedMessage> {
        let removed = match holder {
            Holder::Queue(id) => {
                let queue = self.topology.queue_mut(id)?;
                let removed = queue.remove_scheduled(entry)?;
                queue.counters.deaths_mut().cancelled += 1;
                removed
            }
            Holder::Exchange(id) => {
                let held = self.topology.exchange_mut(id)?.held.as_mut()?;
                held.remove(entry)?
            }
        };
        self.drop_page(removed.empty_page);
        Some(removed)
    }
}
