//! The places in which a publish of the node itself waits for its delivery time, so that an operator gets handles.

use crate::ids::EntryId;
use crate::publish_properties::schedule_headers::NamedSchedule;
use crate::schedule::{ScheduleId, ScheduleTarget, ScheduledPlace};
use crate::time::{Now, Time};
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::{DelayedPlace, Holder};
use crate::{ConnectionId, Request};

impl Vhost {
    /// Applies one command of a client, as [`Vhost::apply`]. Returns the places in which its message, if it is a
    /// publish, waits for its delivery time.
    pub fn apply_and_tell_schedules(
        &mut self,
        now: Now,
        connection: ConnectionId,
        request: Request<'_>,
    ) -> Vec<ScheduledPlace> {
        self.told_schedules = Some(Vec::new());
        self.apply(now, connection, request);
        self.told_schedules.take().unwrap_or_default()
    }

    /// Notes the places in which a publish waits, if they are to be told.
    pub(in crate::vhost) fn tell_schedules(
        &mut self,
        places: &[DelayedPlace],
        named: Option<&NamedSchedule>,
    ) {
        if self.told_schedules.is_none() {
            return;
        }
        // A message whose time has come waits only until the end of the call.
        let waiting = places.iter().filter(|place| place.ready_at > self.now.time);
        let id = named.map(|named| named.id.clone());
        let told: Vec<ScheduledPlace> = waiting
            .map(|place| self.told(place.holder, place.entry, id.clone(), place.ready_at))
            .collect();
        if let Some(all) = &mut self.told_schedules {
            all.extend(told);
        }
    }

    fn told(
        &self,
        holder: Holder,
        entry: EntryId,
        id: Option<ScheduleId>,
        ready_at: Time,
    ) -> ScheduledPlace {
        let target = match holder {
            Holder::Queue(queue) => {
                ScheduleTarget::Queue(self.topology.known_queue(queue).name.clone())
            }
            Holder::Exchange(exchange) => {
                ScheduleTarget::Exchange(self.topology.known_exchange(exchange).name.clone())
            }
        };
        ScheduledPlace { target, handle: entry.seq, id, ready_at }
    }
}
