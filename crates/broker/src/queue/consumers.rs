//! The consumers of a queue, and the choice of the consumer that gets the next message.
//!
//! Higher consumer priority first, round-robin among equals, and only consumers with room: a consumer without
//! room is parked and costs nothing until room is freed for it. The caller passes whether the channel and
//! connection of each candidate have room. With a single active consumer, one consumer is active and the
//! others wait. See `docs/concepts/consumers.md`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use amqp::table::Table;

use super::capacity::Capacity;
use crate::collections::{Rare, SparseDeque};
use crate::ids::{ChannelNumber, ConnectionId, ConsumerId};
use crate::message::Name;
use crate::time::Time;

/// A consumer of a queue.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// The identity within the queue.
    pub id: ConsumerId,
    /// The connection of the consumer.
    pub connection: ConnectionId,
    /// The channel of the consumer.
    pub channel: ChannelNumber,
    /// The consumer tag, unique on its channel.
    pub tag: Name,
    /// True if deliveries count as acknowledged at once.
    pub no_ack: bool,
    /// True if the consumer asked to be the only one.
    pub exclusive: bool,
    /// `x-priority`; higher gets messages first.
    pub priority: i64,
    /// Limit of unacknowledged deliveries; 0 is unlimited.
    pub prefetch_count: u16,
    /// Number of unacknowledged deliveries.
    pub unacked: u32,
    /// Longest time that a delivery may stay unacknowledged, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The delay of what the consumer gives back, in milliseconds; none if the queue decides.
    pub requeue_delay_ms: Option<u64>,
    /// The consumer arguments as given.
    pub arguments: Table,
    state: Waiting,
}

/// The place where a consumer waits for its next message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waiting {
    /// In the ring of its priority, or as the single active consumer.
    Here,
    /// Not waiting: the prefetch is used up.
    Full,
    /// Not waiting: the channel or connection is full.
    Parked,
}

impl Consumer {
    /// Creates a consumer without deliveries. The queue sets `id`.
    pub(crate) fn new(
        at: (ConnectionId, ChannelNumber),
        tag: Name,
        no_ack: bool,
        exclusive: bool,
        prefetch_count: u16,
    ) -> Self {
        Self {
            id: ConsumerId(0),
            connection: at.0,
            channel: at.1,
            tag,
            no_ack,
            exclusive,
            priority: 0,
            prefetch_count,
            unacked: 0,
            timeout_ms: None,
            requeue_delay_ms: None,
            arguments: Table::default(),
            state: Waiting::Full,
        }
    }

    /// Asks for room on the channel and connection; parks the consumer if there is none.
    fn ask(&mut self, room: &mut impl FnMut(&Self) -> Room) -> bool {
        let has_room = room(self) == Room::Yes;
        if !has_room {
            self.state = Waiting::Parked;
        }
        has_room
    }

    /// True if the consumer cannot take another delivery: its own prefetch, its channel or its connection
    /// leaves no room.
    pub fn is_full(&self) -> bool {
        self.is_parked() || !self.has_room()
    }

    /// True if the consumer waits for room on its channel or connection.
    pub(crate) fn is_parked(&self) -> bool {
        self.state == Waiting::Parked
    }

    /// True if the consumer's own prefetch leaves room for another delivery.
    pub(crate) fn has_room(&self) -> bool {
        self.no_ack || self.prefetch_count == 0 || self.unacked < u32::from(self.prefetch_count)
    }
}

/// The rule for choosing active consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Activation {
    /// Every consumer is active.
    All,
    /// Only one consumer is active, until it is gone; then the one of the highest priority (single active consumer in
    /// classic queues).
    UntilGone,
    /// Only the consumer of the highest priority is active; it takes over once the active one has no
    /// unacknowledged deliveries (single active consumer in quorum queues).
    PriorityFirst,
}

/// The room that a consumer's channel and connection have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// The consumer can take a delivery.
    Yes,
    /// The channel or connection is full; the consumer is parked until `unpark`.
    No,
}

/// Waiting consumers of one priority, in the order of their turns.
#[derive(Debug)]
struct Ring {
    priority: i64,
    ids: VecDeque<ConsumerId>,
    /// Number of removed consumers still in `ids`. They are dropped together, so that removing a hundred
    /// thousand consumers needs no search for each.
    gone: usize,
}

/// The consumers of one queue.
#[derive(Debug)]
pub(crate) struct Consumers {
    activation: Activation,
    /// In order of id, which is the order in which they came.
    all: SparseDeque<ConsumerId, Consumer>,
    /// Consumers with room by priority, highest first.
    rings: Vec<Ring>,
    /// Highest priority first, oldest first among equals; used only if a single consumer is active.
    ranking: Rare<BTreeSet<(Reverse<i64>, ConsumerId)>>,
    active: Option<ConsumerId>,
    /// The id of the last consumer; 0 if there was none.
    last_id: u64,
    capacity: Capacity,
}

impl Consumers {
    pub(crate) fn new(activation: Activation) -> Self {
        Self {
            activation,
            all: SparseDeque::default(),
            rings: Vec::new(),
            ranking: Rare::default(),
            active: None,
            last_id: 0,
            capacity: Capacity::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Consumer> {
        self.all.iter().map(|(_, consumer)| consumer)
    }

    pub(crate) fn get(&self, id: ConsumerId) -> Option<&Consumer> {
        self.all.get(id)
    }

    /// True if the queue ever had a consumer.
    pub(crate) fn had_any(&self) -> bool {
        self.last_id > 0
    }

    /// True if only one consumer is active at a time.
    pub(crate) fn is_single_active(&self) -> bool {
        self.activation != Activation::All
    }

    /// True if there is an exclusive consumer.
    pub(crate) fn has_exclusive(&self) -> bool {
        self.all.front().is_some_and(|(_, consumer)| consumer.exclusive)
    }

    /// Adds a consumer and assigns its id.
    pub(crate) fn add(&mut self, mut consumer: Consumer, now: Time) -> ConsumerId {
        match self.is_empty() {
            true => self.capacity.reset(now),
            false => self.capacity.freed(now),
        }
        self.last_id += 1;
        let id = ConsumerId(self.last_id);
        consumer.id = id;
        if self.is_single_active() {
            self.ranking.or_default().insert((Reverse(consumer.priority), id));
        }
        self.all.push_back(id, consumer);
        self.activate();
        self.wait(id);
        id
    }

    /// Removes a consumer; its channel handles the unacknowledged deliveries.
    pub(crate) fn remove(&mut self, id: ConsumerId) -> Option<Consumer> {
        let consumer = self.all.remove(id)?;
        if let Some(ranking) = self.ranking.get_mut() {
            ranking.remove(&(Reverse(consumer.priority), id));
        }
        let at = self.rings.partition_point(|ring| ring.priority > consumer.priority);
        if consumer.state == Waiting::Here
            && let Some(ring) = self.rings.get_mut(at)
            && ring.priority == consumer.priority
        {
            ring.gone += 1;
            if ring.gone > ring.ids.len() / 2 {
                ring.ids.retain(|id| self.all.contains_key(*id));
                ring.gone = 0;
            }
            if ring.ids.is_empty() {
                self.rings.remove(at);
            }
        }
        if self.active == Some(id) {
            self.active = None;
        }
        self.activate();
        Some(consumer)
    }

    /// The consumer that gets the next message: the first with room of its own for which `room` answers yes.
    /// The consumer moves to the end of its ring.
    pub(crate) fn next(
        &mut self,
        mut room: impl FnMut(&Consumer) -> Room,
    ) -> Option<&mut Consumer> {
        if self.is_single_active() {
            if self.is_quiescing() {
                return None;
            }
            let consumer = self.all.get_mut(self.active?)?;
            let can_ask = consumer.state != Waiting::Parked && consumer.has_room();
            return (can_ask && consumer.ask(&mut room)).then_some(consumer);
        }
        let mut chosen = None;
        for ring in &mut self.rings {
            while let Some(id) = ring.ids.pop_front() {
                let Some(consumer) = self.all.get_mut(id) else {
                    ring.gone -= 1;
                    continue;
                };
                if !consumer.has_room() {
                    consumer.state = Waiting::Full;
                } else if consumer.ask(&mut room) {
                    ring.ids.push_back(id);
                    chosen = Some(id);
                    break;
                }
            }
            if chosen.is_some() {
                break;
            }
        }
        self.all.get_mut(chosen?)
    }

    /// Notes that a delivery of `id` was settled, and lets the consumer wait again.
    pub(crate) fn settled(&mut self, id: ConsumerId, now: Time) {
        // A consumer may be cancelled while it has deliveries.
        let Some(consumer) = self.all.get_mut(id) else { return };
        consumer.unacked -= 1;
        self.capacity.freed(now);
        if consumer.state == Waiting::Full {
            self.wait(id);
        }
        self.activate();
    }

    /// Notes that the channel or connection of `id` may have room, and lets the consumer wait again.
    pub(crate) fn unpark(&mut self, id: ConsumerId, now: Time) {
        if self.get(id).is_some_and(|consumer| consumer.state == Waiting::Parked) {
            self.wait(id);
            self.capacity.freed(now);
        }
    }

    /// Notes that a message found no consumer with room.
    pub(crate) fn none_had_room(&mut self, now: Time) {
        if !self.is_empty() {
            self.capacity.exhausted(now);
        }
    }

    /// The share of the recent past in which a consumer could have taken a message, in parts per million; 0
    /// without consumers.
    pub(crate) fn capacity_ppm(&self, now: Time) -> u64 {
        if self.is_empty() { 0 } else { self.capacity.ppm(now) }
    }

    /// Lets a consumer wait for a message, if its prefetch leaves room.
    fn wait(&mut self, id: ConsumerId) {
        let is_single_active = self.is_single_active();
        let Some(consumer) = self.all.get_mut(id) else { return };
        if !is_single_active && !consumer.has_room() {
            consumer.state = Waiting::Full;
            return;
        }
        consumer.state = Waiting::Here;
        if is_single_active {
            return;
        }
        let priority = consumer.priority;
        let at = self.rings.partition_point(|ring| ring.priority > priority);
        if self.rings.get(at).is_none_or(|ring| ring.priority != priority) {
            self.rings.insert(at, Ring { priority, ids: VecDeque::new(), gone: 0 });
        }
        self.rings[at].ids.push_back(id);
    }

    /// True if a consumer would take a message, as far as its own prefetch is concerned.
    pub(crate) fn any_waits(&self) -> bool {
        let waits = |c: &Consumer| c.state == Waiting::Here && c.has_room();
        match self.is_single_active() {
            true => !self.is_quiescing() && self.active().is_some_and(waits),
            false => self.iter().any(waits),
        }
    }

    /// The active consumer, if only one may be active.
    pub(crate) fn active(&self) -> Option<&Consumer> {
        self.get(self.active?)
    }

    /// The consumer that should be active, if only one may be active.
    fn best(&self) -> Option<&Consumer> {
        self.get(self.ranking.get()?.first()?.1)
    }

    /// Chooses the active consumer, if only one may be active.
    fn activate(&mut self) {
        let Some(best) = self.best() else { return };
        let stays = self.active().is_some_and(|active| match self.activation {
            Activation::PriorityFirst => active.priority >= best.priority || active.unacked > 0,
            Activation::All | Activation::UntilGone => true,
        });
        if !stays {
            self.active = Some(best.id);
        }
    }

    /// True if the active consumer must settle its deliveries before one of higher priority takes over.
    fn is_quiescing(&self) -> bool {
        self.activation == Activation::PriorityFirst
            && self
                .active()
                .zip(self.best())
                .is_some_and(|(active, best)| best.priority > active.priority)
    }
}
