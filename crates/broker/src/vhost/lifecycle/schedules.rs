//! Schedules by name: older messages are replaced, and waiting messages are cancelled or get another delivery time. See
//! `docs/guides/deliver-later.md`.

use std::borrow::Cow;

use crate::ids::{EntryId, Lsn, QueueNumber};
use crate::limits::{SCHEDULE_CHANGE_WORK, SCHEDULES_PER_ID_MAX};
use crate::publish_properties::schedule_headers::NamedSchedule;
use crate::record::Record;
use crate::schedule::{ScheduleId, ScheduleMode, ScheduleOperation, ScheduleSelector};
use crate::scheduled::pages::RemovedMessage;
use crate::scheduled::{Move, Scheduled};
use crate::time::Time;
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::DelayedPlace;
use crate::vhost::state::holder::Holder;

/// The meaning of a schedule id at one target.
enum NameUse {
    /// The message may wait there.
    Open,
    /// An older message has the name, and stays instead.
    Kept,
    /// As many messages as allowed have the name.
    Full,
}

/// The targets of a publish that may wait.
pub(in crate::vhost) struct Admitted<'a, Id: Copy> {
    /// The targets in which the message may wait.
    pub(in crate::vhost) targets: Cow<'a, [Id]>,
    /// True if one of the others has no room for the name.
    pub(in crate::vhost) has_no_room: bool,
    /// The position of the log behind the older messages that stay instead of the new one; none if there are none. If one of
    /// them was lost after the new one was confirmed, both would be gone.
    pub(in crate::vhost) older: Option<Lsn>,
}

/// Publishes with a schedule id.
impl Vhost {
    /// The targets of a publish in which it may wait.
    pub(in crate::vhost) fn admit<'a, Id: Copy>(
        &mut self,
        named: Option<&NamedSchedule>,
        targets: &'a [Id],
        holder: impl Fn(Id) -> Holder,
    ) -> Admitted<'a, Id> {
        let (mut has_no_room, mut older) = (false, None);
        let Some(named) = named else {
            return Admitted { targets: Cow::Borrowed(targets), has_no_room, older };
        };
        let mut open = Vec::with_capacity(targets.len());
        for target in targets {
            match self.name_use(holder(*target), named) {
                NameUse::Open => open.push(*target),
                NameUse::Kept => {
                    self.counters.schedules.kept += 1;
                    older = Some(self.log.last());
                }
                NameUse::Full => has_no_room = true,
            }
        }
        Admitted { targets: Cow::Owned(open), has_no_room, older }
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
        self.work_done += older.len() as u64 * SCHEDULE_CHANGE_WORK;
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
        self.work_done += selected.len() as u64 * SCHEDULE_CHANGE_WORK;
        for id in &selected {
            match operation {
                ScheduleOperation::Cancel => self.cancel_scheduled(holder, *id),
                ScheduleOperation::Reschedule { delivery_time_ms } => {
                    let ready_at = self.now.time_at(delivery_time_ms).max(self.now.time);
                    self.reschedule(holder, *id, ready_at);
                }
                ScheduleOperation::Deliver => self.reschedule(holder, *id, self.now.time),
            }
        }
        self.schedules_changed(holder);
        selected.into_iter().map(|id| id.seq).collect()
    }

    /// Does what fewer messages, or earlier delivery times, allow or require.
    fn schedules_changed(&mut self, holder: Holder) {
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
    }

    /// Gives messages the earlier delivery times whose records are durable now.
    pub(in crate::vhost) fn finish_moves(&mut self) {
        let mut changed = None;
        while let Some((lsn, holder, id)) = self.log.pop_move() {
            // The queue or exchange may be gone.
            if self.schedules_mut(holder).is_none_or(|schedules| !schedules.finish_move(id, lsn)) {
                continue;
            }
            if let Some(before) = changed.replace(holder).filter(|before| *before != holder) {
                self.schedules_changed(before);
            }
        }
        if let Some(holder) = changed {
            self.schedules_changed(holder);
            self.finish_deaths();
        }
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

    fn reschedule(&mut self, holder: Holder, id: EntryId, ready_at: Time) {
        let scheduled_for_ms = match holder {
            Holder::Queue(_) => Some(self.now.wall_ms_at(ready_at)),
            Holder::Exchange(_) => None,
        };
        let queue = self.holder_number(holder);
        self.counters.schedules.rescheduled += 1;
        let known = self.schedules(holder).and_then(|schedules| schedules.known(id));
        let known = known.expect("the message was selected in this call");
        if known.lsn.0 > 0 {
            let logged_for_ms = scheduled_for_ms.filter(|_| self.options.delivers_after_commit);
            let record = Record::Reschedule {
                queue,
                entry: known.id,
                ready_at,
                scheduled_for_ms: logged_for_ms,
            };
            let lsn = self.log_about(known.lsn, record);
            if ready_at < known.ready_at {
                let is_leaving = ready_at <= self.now.time;
                let to = Move { lsn, ready_at, scheduled_for_ms, is_leaving };
                self.known_schedules_mut(holder).begin_move(known.id, to);
                self.log.note_move(lsn, holder, known.id);
                return;
            }
        }
        let rescheduled =
            self.known_schedules_mut(holder).reschedule(known.id, ready_at, scheduled_for_ms);
        rescheduled.expect("the message was found in this call");
    }

    fn known_schedules_mut(&mut self, holder: Holder) -> &mut Scheduled {
        self.schedules_mut(holder).expect("the message was found there in this call")
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
