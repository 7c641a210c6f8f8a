//! The places in which a publish of the node itself waits for its delivery time, so that an operator gets handles.

use crate::ids::EntryId;
use crate::publish_properties::schedule_headers::NamedSchedule;
use crate::schedule::{ScheduleId, ScheduleTarget, ScheduledPlace};
use crate::time::{Now, Time};
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::DelayedPlace;
use crate::vhost::state::holder::Holder;
use crate::{ConnectionId, Request};

impl Vhost {
    /// Applies one command of a client, as [`Vhost::apply`]. Returns the places in which its message, if it is a
    /// publish, waits for its delivery time.
    pub fn apply_and_collect_places(
        &mut self,
        now: Now,
        connection: ConnectionId,
        request: Request<'_>,
    ) -> Vec<ScheduledPlace> {
        self.scheduled_places = Some(Vec::new());
        self.apply(now, connection, request);
        self.scheduled_places.take().unwrap_or_default()
    }

    /// Adds the places in which a publish waits, if the caller asked for them.
    pub(in crate::vhost) fn collect_places(
        &mut self,
        places: &[DelayedPlace],
        named: Option<&NamedSchedule>,
    ) {
        if self.scheduled_places.is_none() {
            return;
        }
        // A message whose time has come waits only until the end of the call.
        let waiting = places.iter().filter(|place| place.ready_at > self.now.time);
        let id = named.map(|named| named.id.clone());
        let added: Vec<ScheduledPlace> = waiting
            .map(|place| {
                self.scheduled_place(place.holder, place.entry, id.clone(), place.ready_at)
            })
            .collect();
        if let Some(all) = &mut self.scheduled_places {
            all.extend(added);
        }
    }

    fn scheduled_place(
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
