//! Invariants that hold between any two calls. Tests, the model and fuzzing check them after every step.

use std::collections::{BTreeMap, BTreeSet};

use crate::channel::ConsumerAt;
use crate::channel_key::ChannelKey;
use crate::exchange::{Destination, Exchange};
use crate::ids::{ConsumerId, EntryId, ExchangeId, Lsn, QueueId, QueueNumber};
use crate::limits::OUTBOX_BYTES_MAX;
use crate::message::Name;
use crate::page::{PageLocation, PageOwner};
use crate::queue::{Entry, PersistentMessages, Queue};
use crate::setting::ExpiryOrder;
use crate::time::Time;
use crate::timers::Wake;
use crate::vhost::Vhost;
use crate::vhost::state::pending_death::PendingDeath;

impl Vhost {
    /// Every invariant that does not hold, as a sentence. The check reads all of the vhost, so it is for tests.
    pub fn broken_invariants(&self) -> Vec<String> {
        let mut broken = Vec::new();
        self.check_conservation(&mut broken);
        self.check_unacked(&mut broken);
        self.check_persistent(&mut broken);
        self.check_progress(&mut broken);
        self.check_timers(&mut broken);
        self.check_consumers(&mut broken);
        self.check_bindings(&mut broken);
        self.check_policies(&mut broken);
        self.check_unacked_bytes(&mut broken);
        self.check_sums(&mut broken);
        if !self.firehose.is_empty() {
            broken.push("the firehose has copies left".to_owned());
        }
        broken
    }

    /// All pages, with the messages that each still holds.
    pub fn pages(&self) -> Vec<(PageLocation, QueueNumber, BTreeSet<EntryId>)> {
        let of_queue = |(id, queue): (QueueId, &Queue)| {
            let number = queue.number;
            let ready = queue.paged().map(move |(level, page, held)| {
                let owner = PageOwner::Ready { queue: id, level };
                let ids = held.seqs().map(|seq| EntryId { seq, level });
                (PageLocation { owner, page }, number, ids.collect())
            });
            let scheduled = queue.schedules().members().map(move |(page, ids)| {
                (PageLocation { owner: PageOwner::Scheduled(id), page }, number, ids)
            });
            ready.chain(scheduled).collect::<Vec<_>>()
        };
        let of_exchange = |(id, exchange): (ExchangeId, &Exchange)| {
            let held = exchange.held.iter().flat_map(|held| {
                let owner = PageOwner::Exchange(id);
                let pages = held.schedules().members();
                pages.map(move |(page, ids)| (PageLocation { owner, page }, held.number, ids))
            });
            held.collect::<Vec<_>>()
        };
        let queues = self.queues().flat_map(of_queue);
        queues.chain(self.topology.exchanges().flat_map(of_exchange)).collect()
    }

    /// Every durable message that is not in a page, by queue. Together with those in pages, replaying the log
    /// must give the same.
    pub fn durable_entries(&self) -> BTreeMap<QueueNumber, BTreeSet<EntryId>> {
        let durable =
            self.topology.queues().map(|(_, queue)| queue).filter(|queue| queue.ownership.durable);
        let mut entries: BTreeMap<QueueNumber, BTreeSet<EntryId>> = durable
            .map(|queue| (queue.number, queue.durable_waiting().map(|(id, _)| id).collect()))
            .collect();
        for unacked in self.connections.channels().flat_map(|(_, channel)| channel.deliveries()) {
            let queue = self.topology.queue(unacked.queue);
            if let Some(queue) = queue.filter(|_| unacked.entry.is_durable()) {
                entries.entry(queue.number).or_default().insert(unacked.entry.id);
            }
        }
        for held in self
            .topology
            .exchanges()
            .filter(|(_, exchange)| exchange.durable)
            .filter_map(|(_, exchange)| exchange.held.as_ref())
        {
            entries.entry(held.number).or_default().extend(held.durable().map(|entry| entry.id));
        }
        let died = self.dead_lettering.iter().chain(self.alarm.waiting());
        for (queue, entry) in died.filter_map(PendingDeath::entry) {
            if let Some(queue) =
                self.topology.queue(queue).filter(|q| q.is_durable_for(&entry.message))
            {
                entries.entry(queue.number).or_default().insert(entry.id);
            }
        }
        entries
    }

    /// The number of durable queues, exchanges, bindings and policies; for tests.
    pub fn durable_definitions(&self) -> usize {
        let queues = self
            .topology
            .queues()
            .map(|(_, queue)| queue)
            .filter(|queue| queue.registration.lsn != Lsn(0))
            .count();
        let exchanges =
            self.topology.exchanges().filter(|(_, exchange)| exchange.lsn != Lsn(0)).count();
        queues
            + exchanges
            + self.topology.durable_binding_count()
            + self.policies.durable_count()
            + self.redrives.len()
    }

    /// Each durable message that is not in a page, with everything that a restart must restore, as text; for tests.
    pub fn durable_messages(&self) -> Vec<String> {
        let told = |holder: &Name, entry: &Entry| {
            let Entry { id, message, lsn, arrived, .. } = entry;
            // The log stores milliseconds.
            let age_s = (self.now.time.micros_since(*arrived) + 10_999) / 1_000_000;
            let properties = message.properties();
            let deaths = message.deaths();
            format!("{holder} {id:?} {lsn} {age_s} {message:?} {properties:?} {deaths:?}")
        };
        let mut out = Vec::new();
        for (_, queue) in self.topology.queues() {
            out.extend(queue.durable_messages().iter().map(|entry| told(&queue.name, entry)));
        }
        for (_, exchange) in self.topology.exchanges() {
            let held = exchange.held.iter().flat_map(|held| held.durable());
            out.extend(held.map(|entry| told(&exchange.name, entry)));
        }
        for unacked in self.connections.channels().flat_map(|(_, channel)| channel.deliveries()) {
            let queue = self.topology.queue(unacked.queue).filter(|_| unacked.entry.is_durable());
            out.extend(queue.map(|queue| told(&queue.name, &unacked.entry)));
        }
        out
    }

    /// Every message that entered a queue is in exactly one place.
    fn check_conservation(&self, broken: &mut Vec<String>) {
        for (_, queue) in self.topology.queues() {
            let here = queue.message_count() + queue.dead_letters.dying();
            let (entered, left) = (queue.counters.entered, queue.counters.left());
            if entered != here + left {
                let name = &queue.name;
                broken.push(format!("{name}: {entered} entered, {here} are there, {left} left"));
            }
        }
    }

    /// The unacknowledged counts of queues and consumers match the deliveries that channels hold.
    fn check_unacked(&self, broken: &mut Vec<String>) {
        let mut held: BTreeMap<(QueueId, Option<ConsumerId>), u64> = BTreeMap::new();
        for (at, channel) in self.connections.channels() {
            let deliveries = channel.deliveries().filter(|unacked| unacked.consumer.is_some());
            if deliveries.count() as u64 != u64::from(channel.unacked_by_consumers) {
                let counted = channel.unacked_by_consumers;
                broken.push(format!("{at:?} counts {counted} deliveries, but holds others"));
            }
            for unacked in channel.deliveries() {
                *held.entry((unacked.queue, unacked.consumer)).or_default() += 1;
            }
        }
        for (id, queue) in self.topology.queues() {
            let of_queue = held.iter().filter(|((queue, _), _)| *queue == id);
            let of_queue: u64 = of_queue.map(|(_, count)| count).sum();
            if of_queue != queue.unacked_count() {
                let (name, counted) = (&queue.name, queue.unacked_count());
                broken.push(format!("{name}: counts {counted} unacked, channels hold {of_queue}"));
            }
            for consumer in queue.consumers() {
                let held = held.get(&(id, Some(consumer.id))).copied().unwrap_or_default();
                let limit = u64::from(consumer.prefetch_count);
                if held != u64::from(consumer.unacked) || limit > 0 && held > limit {
                    let (tag, counted) = (&consumer.tag, consumer.unacked);
                    broken.push(format!("{tag} counts {counted} of {limit}, holds {held}"));
                }
            }
        }
    }

    /// The persistent counts of queues match their durable messages; of messages in pages only the number is known.
    fn check_persistent(&self, broken: &mut Vec<String>) {
        let mut found: BTreeMap<QueueId, PersistentMessages> = BTreeMap::new();
        let one = |queue: &Queue, entry: &Entry| PersistentMessages {
            messages: 1,
            bytes: queue.kind().counted_bytes().of(&entry.message),
        };
        for (id, queue) in self.topology.queues() {
            for entry in &queue.durable_messages() {
                let sum = found.entry(id).or_default();
                *sum = *sum + one(queue, entry);
            }
        }
        for (_, channel) in self.connections.channels() {
            for unacked in channel.deliveries().filter(|unacked| unacked.entry.is_durable()) {
                if let Some(queue) = self.topology.queue(unacked.queue) {
                    let sum = found.entry(unacked.queue).or_default();
                    *sum = *sum + one(queue, &unacked.entry);
                }
            }
        }
        for (id, queue) in self.topology.queues() {
            let (counted, found) = (queue.persistent(), found.remove(&id).unwrap_or_default());
            let (paged, paged_bytes) = queue.paged_out();
            let waiting = queue.ready_bytes() + queue.delayed_bytes() + queue.pending_bytes();
            let all = PersistentMessages {
                messages: queue.message_count(),
                bytes: waiting + queue.unacked_bytes(),
            };
            let is_possible = (found.messages..=found.messages + paged).contains(&counted.messages)
                && (found.bytes..=found.bytes + paged_bytes).contains(&counted.bytes)
                && (queue.ownership.durable || counted == PersistentMessages::default())
                && (!queue.kind().persists_everything() || counted == all);
            if !is_possible {
                let name = &queue.name;
                broken.push(format!("{name}: counts {counted:?} as persistent, holds {found:?}"));
            }
        }
    }

    /// No delivery, expiry or dead letter that is possible now is left undone, and a wake-up is armed for each later
    /// one.
    fn check_progress(&self, broken: &mut Vec<String>) {
        if !self.dead_lettering.is_empty()
            && !self.is_armed(self.dead_lettering.armed(), Some(self.now.time))
        {
            broken.push(format!("{} dead messages are not moved", self.dead_lettering.len()));
        }
        for (id, queue) in self.topology.queues() {
            let name = &queue.name;
            let expired = queue.front_is_expired(self.now.time);
            let is_at_hand = !queue.has_none_ready() && !queue.is_away();
            let stalled = self.alarm.has_stalled(id);
            let held = queue.holds_deliveries();
            if is_at_hand && !expired && !stalled && !held && queue.consumers.any_waits() {
                broken.push(format!("{name}: messages and a consumer wait for each other"));
            }
            if queue.pending_count() > 0 && !self.dead_lettering.has_source(id) {
                broken.push(format!("{name}: its dead letters are not offered again"));
            }
            let earliest = queue.earliest_deadline();
            if queue.settings.expiry_order == ExpiryOrder::Deadline
                && let Some(first) = queue.first_deadline()
                && (!queue.has_pages() && Some(first) != earliest
                    || earliest.is_some_and(|earliest| first > earliest))
            {
                broken.push(format!("{name}: first deadline {first:?}, found {earliest:?}"));
            }
            // If due work waits for the end of an alarm, all work of the queue does.
            let waits = stalled && queue.next_wake().is_some_and(|due| due <= self.now.time);
            for due in [queue.next_wake(), earliest] {
                if !waits && !self.is_armed(queue.expiry.armed, due) {
                    let armed = queue.expiry.armed;
                    broken.push(format!("{name}: due {due:?}, armed {armed:?}"));
                }
            }
        }
        for (_, exchange) in self.topology.exchanges() {
            if let Some(held) = &exchange.held
                && let due = held.schedules().next_wake()
                && !self.is_armed(held.armed, due)
            {
                let (name, armed) = (&exchange.name, held.armed);
                broken.push(format!("exchange {name}: due {due:?}, armed {armed:?}"));
            }
        }
        for (at, channel) in self.connections.channels() {
            let due = channel.unacked.iter().filter_map(|unacked| unacked.timeout).min();
            if !self.is_armed(channel.armed, due) {
                broken.push(format!("{at:?}: due {due:?}, armed {:?}", channel.armed));
            }
        }
    }

    /// True if the wake-up at `armed` comes in time; overdue work may wait for its turn now.
    fn is_armed(&self, armed: Option<Time>, due: Option<Time>) -> bool {
        let due = due.map(|due| due.max(self.now.time));
        due.is_none_or(|due| armed.is_some_and(|armed| armed <= due))
    }

    /// Every wake-up belongs to a queue, channel or list that has noted it.
    fn check_timers(&self, broken: &mut Vec<String>) {
        for (time, wake) in self.timers.iter() {
            let armed = match wake {
                Wake::Deaths => self.dead_lettering.armed(),
                Wake::DeadLetterHistory => self.death_ledger.armed(),
                Wake::Policies => self.policies.armed(),
                Wake::Queue(id) => self.topology.queue(id).and_then(|queue| queue.expiry.armed),
                Wake::Exchange(id) => {
                    let exchange = self.topology.exchange(id);
                    exchange.and_then(|exchange| exchange.held.as_ref()).and_then(|held| held.armed)
                }
                Wake::Channel(connection, channel) => {
                    let key = ChannelKey { connection, channel };
                    self.connections.channel(key).and_then(|channel| channel.armed)
                }
            };
            if armed != Some(time) {
                broken.push(format!("{wake:?} comes at {time:?} and is expected at {armed:?}"));
            }
        }
    }

    /// Queues and channels have the same consumers, and parked consumers are on the list of their channel.
    fn check_consumers(&self, broken: &mut Vec<String>) {
        for (at, channel) in self.connections.channels() {
            for (tag, consumer) in &channel.consumers {
                let queue = self.topology.queue(consumer.queue);
                if queue.and_then(|queue| queue.consumers.get(consumer.consumer)).is_none() {
                    broken.push(format!("{at:?}: {tag} consumes from nothing"));
                }
            }
        }
        for (id, queue) in self.topology.queues() {
            for consumer in queue.consumers() {
                let tag = &consumer.tag;
                let connection = self.connections.get(consumer.connection);
                let channel = connection.and_then(|c| c.channels.get(&consumer.channel));
                let (Some(connection), Some(channel)) = (connection, channel) else {
                    broken.push(format!("{tag}: its channel is gone"));
                    continue;
                };
                let known = ConsumerAt { queue: id, consumer: consumer.id };
                if channel.consumers.get(tag) != Some(&known) {
                    broken.push(format!("{tag}: its channel does not know it"));
                }
                let has_room = connection.backlog.bytes < OUTBOX_BYTES_MAX
                    && channel.has_room()
                    && !self.unacked_memory.is_waiting(ChannelKey {
                        connection: consumer.connection,
                        channel: consumer.channel,
                    });
                if consumer.is_parked() && (has_room || !channel.parked.contains(&known)) {
                    broken.push(format!("{tag}: nothing will wake it"));
                }
            }
        }
    }

    /// Both ends of each binding have it.
    fn check_bindings(&self, broken: &mut Vec<String>) {
        for (id, exchange) in self.topology.exchanges() {
            for binding in exchange.bindings() {
                let known = (id, binding.clone());
                let is_known = match binding.destination {
                    Destination::Queue(queue) => self
                        .topology
                        .queue(queue)
                        .is_some_and(|q| q.registration.bindings.contains(&known)),
                    Destination::Exchange(exchange) => self
                        .topology
                        .exchange(exchange)
                        .is_some_and(|e| e.bound_from.contains(&known)),
                };
                if !is_known {
                    broken.push(format!("{}: {binding:?} leads nowhere", exchange.name));
                }
            }
        }
    }
}
