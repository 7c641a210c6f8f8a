//! Messages with a delivery time: they wait in a queue, or in a delayed exchange, and are ready when the time comes.
//!
//! In a queue the message then gets a place behind all others, as if it arrived at that moment. A delayed exchange
//! routes the message at that moment; one record of the log covers its departure and its arrivals.

use smallvec::SmallVec;

use crate::exchange::Exchange;
use crate::ids::{ExchangeId, Lsn, QueueId, QueueNumber};
use crate::limits::ENTRIES_PER_RECORD_MAX;
use crate::message::Message;
use crate::publish_properties::delivery_time::{
    DeliveryTime, ExchangeDelay, released_headers, scheduled_message,
};
use crate::queue::Entry;
use crate::record::Record;
use crate::schedule::ScheduleId;
use crate::time::Time;
use crate::timers::Wake;
use crate::vhost::Vhost;
use crate::vhost::state::enqueue_plan::{DelayedPlace, EnqueuePlan};
use crate::vhost::state::holder::Holder;

/// Messages with a delivery time arrive.
impl Vhost {
    /// Reserves places in the delayed exchanges that hold a message, which takes the place of older ones with the
    /// schedule id `replaces`.
    pub(in crate::vhost) fn hold_in_exchanges(
        &mut self,
        holders: &[ExchangeId],
        message: &Message,
        replaces: Option<&ScheduleId>,
        plan: &mut EnqueuePlan,
    ) {
        for id in holders {
            // A transaction may hold the id of a deleted exchange.
            let Some(exchange) = self.topology.exchange_mut(*id) else { continue };
            let is_durable = exchange.durable && message.meta().persistent;
            let held = exchange.held.as_mut().expect("only delayed exchanges hold messages");
            let (number, entry) = (held.number, held.assign());
            let delay = ExchangeDelay::of(message.properties()).millis();
            let delay_ms = delay.expect("the message was found to be delayed");
            let ready_at = self.now.time.plus_ms(delay_ms);
            let (holder, replaces) = (Holder::Exchange(*id), replaces.cloned());
            plan.hold(DelayedPlace { holder, number, entry, is_durable, ready_at, replaces });
        }
    }

    /// The message as it waits in a queue until `ready_at`.
    pub(in crate::vhost) fn scheduled(&self, message: &Message, ready_at: Time) -> Message {
        scheduled_message(message, self.now.wall_ms_at(ready_at))
    }

    /// Lets a message wait in each of the places; `is_first` if the log has no record of it yet.
    pub(in crate::vhost) fn enqueue_delayed(
        &mut self,
        message: &Message,
        places: &[DelayedPlace],
        is_first: bool,
    ) {
        let lsns = self.log_delayed(message, places, is_first);
        self.counters.schedules.scheduled += places.len() as u64;
        self.replace_older(places);
        for (place, lsn) in places.iter().zip(lsns) {
            self.enqueue_delayed_one(place, message.clone(), lsn);
        }
    }

    /// Logs the arrival of a message in these places. Returns the position of the record for each; 0 where the message
    /// does not survive a restart.
    fn log_delayed(
        &mut self,
        message: &Message,
        places: &[DelayedPlace],
        is_first: bool,
    ) -> SmallVec<[Lsn; 1]> {
        let mut lsns = SmallVec::new();
        let mut is_first = is_first;
        let is_together = |one: &DelayedPlace, next: &DelayedPlace| {
            one.ready_at == next.ready_at && one.is_durable == next.is_durable
        };
        let together = places.chunk_by(is_together);
        for places in together.flat_map(|places| places.chunks(ENTRIES_PER_RECORD_MAX)) {
            let DelayedPlace { ready_at, is_durable, .. } = places[0];
            let mut lsn = Lsn(0);
            if is_durable {
                let entries = places.iter().map(|place| (place.number, place.entry)).collect();
                let record = Record::Schedule { message: message.clone(), entries, ready_at };
                lsn = if is_first { self.log(record) } else { self.log_joined(record) };
                is_first = false;
            }
            lsns.extend(std::iter::repeat_n(lsn, places.len()));
        }
        lsns
    }

    fn enqueue_delayed_one(&mut self, place: &DelayedPlace, message: Message, lsn: Lsn) {
        let entry = Entry::new(place.entry, message, lsn, self.now.time);
        match place.holder {
            Holder::Queue(id) => {
                self.topology.known_queue_mut(id).schedule(entry, place.ready_at);
                self.page_out_scheduled(place.holder);
                self.arm_queue(id);
                self.enforce_limits(id);
            }
            Holder::Exchange(id) => {
                let exchange = self.topology.known_exchange_mut(id);
                let held = exchange.held.as_mut().expect("only delayed exchanges hold messages");
                held.hold(entry, place.ready_at);
                self.page_out_scheduled(place.holder);
                self.arm_exchange(id);
            }
        }
    }
}

/// The delivery time comes.
impl Vhost {
    /// Makes up to `budget` messages of a queue ready whose delivery time has come; returns their number.
    pub(in crate::vhost) fn deliver_scheduled(&mut self, id: QueueId, budget: usize) -> usize {
        for delivered in 0..budget {
            let queue = self.topology.known_queue_mut(id);
            let Some((ready_at, entry, to)) = queue.pop_scheduled(self.now.time) else {
                return delivered;
            };
            self.counters.scheduled_delivery.record(self.now.time.micros_since(ready_at));
            queue.renew_lease(self.now.time);
            let (number, from) = (queue.number, entry.id);
            let entry = Entry { id: to, ..entry };
            if queue.maybe_handed_out(&entry) {
                self.log.note_delivered(id);
            }
            if entry.is_durable() {
                self.log_about(entry.lsn, Record::Ready { queue: number, entry: from, to });
            }
            self.counters.schedules.released += 1;
            self.enqueue_one(id, to, entry.message, entry.lsn);
        }
        budget
    }

    /// A command removed messages from a queue, of which some waited for their delivery time: until now they kept the
    /// queue from expiring.
    #[cold]
    pub(in crate::vhost) fn scheduled_left(&mut self, id: QueueId) {
        self.topology.known_queue_mut(id).renew_lease(self.now.time);
        self.arm_queue(id);
    }

    /// Routes up to `budget` messages of a delayed exchange whose delay is over; returns the amount done. The exchange
    /// may be gone.
    pub(in crate::vhost) fn release_held(&mut self, id: ExchangeId, budget: usize) -> usize {
        let mut released = 0;
        while released < budget {
            let now = self.now.time;
            let Some(exchange) = self.topology.exchange_mut(id) else { return 1 };
            let held = exchange.held.as_mut().expect("only delayed exchanges have a wake-up");
            self.timers.disarm(&mut held.armed, Wake::Exchange(id));
            let number = held.number;
            let Some((ready_at, entry)) = held.pop_ready(now) else { break };
            self.counters.scheduled_delivery.record(now.micros_since(ready_at));
            self.counters.schedules.released += 1;
            self.route_held(id, number, &entry);
            released += 1;
        }
        if self.topology.exchange(id).is_none() {
            return released.max(1);
        }
        self.read_scheduled_pages(Holder::Exchange(id));
        self.arm_exchange(id);
        released.max(1)
    }

    /// Routes a message that an exchange has held.
    fn route_held(&mut self, id: ExchangeId, number: QueueNumber, entry: &Entry) {
        let message = released(&entry.message);
        let headers = message.decoded_properties().headers.unwrap_or_default();
        let delivery_time = DeliveryTime::of(headers);
        let ready_at = delivery_time.and_then(|time| time.ready_at(entry.arrived, self.now));
        let message = match ready_at {
            Some(ready_at) => self.scheduled(&message, ready_at),
            None => message,
        };
        let route = self.route(id, message.envelope(), message.properties());
        let exchange = self.topology.known_exchange_mut(id);
        exchange.counters.published_out += route.queues.len() as u64;
        if route.is_empty() {
            exchange.counters.dropped_unroutable += 1;
            self.counters.dropped_unroutable += 1;
        }
        self.counters.routed += route.queues.len() as u64;
        for requester in &route.requesters {
            self.deliver_reply(*requester, &message);
        }
        let mut plan = EnqueuePlan::default();
        self.hold_in_exchanges(&route.holders, &message, None, &mut plan);
        let mut refused = false;
        for queue_id in &route.queues {
            if self.refuses(*queue_id, &message) {
                refused = true;
                continue;
            }
            let queue = self.topology.known_queue_mut(*queue_id);
            queue.counters.published += 1;
            match ready_at {
                None => plan.add(*queue_id, queue, &message),
                Some(ready_at) => plan.schedule(*queue_id, queue, &message, ready_at, None),
            }
        }
        if refused {
            self.topology.known_exchange_mut(id).counters.refused += 1;
            self.counters.publishes_refused += 1;
        }
        self.enqueue_moved(message, &plan, entry, number);
    }

    /// Arms the timer for the next message of a delayed exchange.
    pub(in crate::vhost) fn arm_exchange(&mut self, id: ExchangeId) {
        let exchange = self.topology.known_exchange_mut(id);
        if let Some(held) = &mut exchange.held
            && let Some(at) = held.schedules().next_wake()
        {
            self.timers.arm(&mut held.armed, at.max(self.now.time), Wake::Exchange(id));
        }
    }

    /// Drops the messages that a deleted exchange holds.
    pub(in crate::vhost) fn drop_held(&mut self, id: ExchangeId, exchange: &mut Exchange) {
        let Some(held) = &mut exchange.held else { return };
        self.timers.disarm(&mut held.armed, Wake::Exchange(id));
        self.counters.dropped_unroutable += held.len() as u64;
        let ended: Vec<Lsn> = held.durable().map(|entry| entry.lsn).collect();
        let has_durable = held.schedules().persistent().messages > 0;
        let pages = held.clear();
        if has_durable {
            let record = Record::Purge { queue: held.number, kept: Vec::new() };
            self.log_ending(Lsn(0), ended, record);
        }
        self.end_pages(pages);
    }
}

/// The message as a delayed exchange routes it.
fn released(message: &Message) -> Message {
    match ExchangeDelay::of(message.properties()).millis() {
        None => message.clone(),
        Some(delay_ms) => {
            let headers = message.decoded_properties().headers.unwrap_or_default();
            message.with_headers(released_headers(headers, delay_ms).as_ref())
        }
    }
}
