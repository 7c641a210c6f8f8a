//! The consumers of a queue and which of them gets the next message.
//!
//! Higher consumer priority first, round-robin among equals, and only those with room: a consumer
//! that has none is parked and costs nothing until something frees room for it. Whether its channel
//! or connection has room is not known here; the caller says so for each candidate. Single active
//! consumer replaces all of that: one consumer is active, the others wait (spec 7.3).

use std::collections::VecDeque;

use amqp::table::Table;

use crate::ids::{ChannelNumber, ConnectionId, ConsumerId};
use crate::message::Name;

/// A consumer.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// Its identity within the queue.
    pub id: ConsumerId,
    /// The connection it is on.
    pub connection: ConnectionId,
    /// The channel it is on.
    pub channel: ChannelNumber,
    /// Its tag, unique on its channel.
    pub tag: Name,
    /// Deliveries count as acknowledged at once.
    pub no_ack: bool,
    /// It asked to be the only consumer.
    pub exclusive: bool,
    /// `x-priority`; higher gets messages first.
    pub priority: i64,
    /// Unacknowledged deliveries it may have; 0 is unlimited.
    pub prefetch_count: u16,
    /// Unacknowledged deliveries it has.
    pub unacked: u32,
    /// How long a delivery may stay unacknowledged, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Its arguments as given.
    pub arguments: Table,
    state: Waiting,
}

/// Where a consumer waits for its next message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waiting {
    /// In the ring of its priority, or as the single active one.
    Here,
    /// Nowhere: its prefetch is used up.
    Full,
    /// Nowhere: its channel or connection is full.
    Parked,
}

impl Consumer {
    /// A consumer with these properties, that has no delivery yet. The queue sets `id`.
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
            arguments: Table::default(),
            state: Waiting::Full,
        }
    }

    /// Whether there is room for it outside; if not, it is parked.
    fn ask(&mut self, room: &mut impl FnMut(&Self) -> Room) -> bool {
        let has_room = room(self) == Room::Yes;
        if !has_room {
            self.state = Waiting::Parked;
        }
        has_room
    }

    /// Whether its own prefetch leaves room for another delivery.
    pub(crate) fn has_room(&self) -> bool {
        self.no_ack || self.prefetch_count == 0 || self.unacked < u32::from(self.prefetch_count)
    }
}

/// How a queue chooses the active consumer among several, if only one may be active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Activation {
    /// Every consumer is active.
    All,
    /// The one that has been there longest (classic queues).
    OldestFirst,
    /// The one of highest priority; it takes over once the active one has nothing unacknowledged
    /// (quorum queues).
    PriorityFirst,
}

/// What asking for the next consumer's room answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// It can take a delivery.
    Yes,
    /// Its channel or connection is full; it is parked until `unpark`.
    No,
}

/// The consumers of one queue.
#[derive(Debug)]
pub(crate) struct Consumers {
    activation: Activation,
    /// In order of id, which is the order in which they came.
    all: Vec<Consumer>,
    /// Consumers with room by priority, highest first.
    rings: Vec<(i64, VecDeque<ConsumerId>)>,
    active: Option<ConsumerId>,
    last_id: u64,
}

impl Consumers {
    pub(crate) fn new(activation: Activation) -> Self {
        Self { activation, all: Vec::new(), rings: Vec::new(), active: None, last_id: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Consumer> {
        self.all.iter()
    }

    pub(crate) fn get(&self, id: ConsumerId) -> Option<&Consumer> {
        self.all.get(self.find(id)?)
    }

    fn find(&self, id: ConsumerId) -> Option<usize> {
        match self.all.first() {
            Some(first) if first.id == id => Some(0),
            _ => self.all.binary_search_by_key(&id, |c| c.id).ok(),
        }
    }

    /// Whether only one consumer is active at a time.
    pub(crate) fn is_single_active(&self) -> bool {
        self.activation != Activation::All
    }

    /// Whether a consumer asked to be alone here.
    pub(crate) fn has_exclusive(&self) -> bool {
        self.all.iter().any(|c| c.exclusive)
    }

    /// Adds a consumer and gives it its id.
    pub(crate) fn add(&mut self, mut consumer: Consumer) -> ConsumerId {
        self.last_id += 1;
        let id = ConsumerId(self.last_id);
        consumer.id = id;
        self.all.push(consumer);
        self.activate();
        self.wait(self.all.len() - 1);
        id
    }

    /// Removes a consumer; its unacknowledged deliveries are its channel's business.
    pub(crate) fn remove(&mut self, id: ConsumerId) -> Option<Consumer> {
        let consumer = self.all.remove(self.find(id)?);
        for (_, ring) in &mut self.rings {
            ring.retain(|other| *other != id);
        }
        self.rings.retain(|(priority, _)| self.all.iter().any(|c| c.priority == *priority));
        if self.active == Some(id) {
            self.active = None;
        }
        self.activate();
        Some(consumer)
    }

    /// The consumer that gets the next message: the first with room of its own for which `room` says
    /// yes. It goes to the end of its round.
    pub(crate) fn next(
        &mut self,
        mut room: impl FnMut(&Consumer) -> Room,
    ) -> Option<&mut Consumer> {
        if self.is_single_active() {
            if self.is_quiescing() {
                return None;
            }
            let at = self.find(self.active?)?;
            let consumer = self.all.get_mut(at)?;
            let can_ask = consumer.state != Waiting::Parked && consumer.has_room();
            return (can_ask && consumer.ask(&mut room)).then_some(consumer);
        }
        let mut chosen = None;
        for (_, ring) in &mut self.rings {
            while let Some(id) = ring.pop_front() {
                let Ok(at) = self.all.binary_search_by_key(&id, |c| c.id) else {
                    continue;
                };
                let consumer = &mut self.all[at];
                if !consumer.has_room() {
                    consumer.state = Waiting::Full;
                } else if consumer.ask(&mut room) {
                    ring.push_back(id);
                    chosen = Some(at);
                    break;
                }
            }
            if chosen.is_some() {
                break;
            }
        }
        self.all.get_mut(chosen?)
    }

    /// A delivery of `id` was acknowledged, rejected or returned.
    pub(crate) fn settled(&mut self, id: ConsumerId) {
        let Some(at) = self.find(id) else { return };
        let consumer = &mut self.all[at];
        consumer.unacked = consumer.unacked.saturating_sub(1);
        if consumer.state == Waiting::Full {
            self.wait(at);
        }
        self.activate();
    }

    /// Something outside made room for `id`.
    pub(crate) fn unpark(&mut self, id: ConsumerId) {
        if let Some(at) = self.find(id)
            && self.all[at].state == Waiting::Parked
        {
            self.wait(at);
        }
    }

    /// Lets the consumer at `at` wait for a message, if its prefetch leaves room.
    fn wait(&mut self, at: usize) {
        let is_single_active = self.is_single_active();
        let consumer = &mut self.all[at];
        if !is_single_active && !consumer.has_room() {
            consumer.state = Waiting::Full;
            return;
        }
        consumer.state = Waiting::Here;
        if is_single_active {
            return;
        }
        let id = consumer.id;
        let priority = consumer.priority;
        let at = self.rings.partition_point(|(p, _)| *p > priority);
        if self.rings.get(at).is_none_or(|(p, _)| *p != priority) {
            self.rings.insert(at, (priority, VecDeque::new()));
        }
        self.rings[at].1.push_back(id);
    }

    /// Whether a consumer would take a message, as far as is known here.
    pub(crate) fn any_waits(&self) -> bool {
        let waits = |c: &Consumer| c.state == Waiting::Here && c.has_room();
        match self.is_single_active() {
            true => {
                !self.is_quiescing() && self.active.and_then(|id| self.get(id)).is_some_and(waits)
            }
            false => self.all.iter().any(waits),
        }
    }

    /// Chooses the active consumer where only one may be.
    fn activate(&mut self) {
        match self.activation {
            Activation::All => {}
            Activation::OldestFirst => {
                self.active = self.active.or_else(|| self.all.first().map(|c| c.id));
            }
            Activation::PriorityFirst => {
                // The first of the highest priority, for ids ascend and max_by_key keeps the last.
                let best = self.all.iter().rev().max_by_key(|c| c.priority);
                let Some(best) = best else { return };
                let active = self.active.and_then(|id| self.get(id));
                let stays = active
                    .is_some_and(|active| active.priority >= best.priority || active.unacked > 0);
                if !stays {
                    self.active = Some(best.id);
                }
            }
        }
    }

    /// Whether the active consumer must drain before one of higher priority takes over.
    fn is_quiescing(&self) -> bool {
        self.activation == Activation::PriorityFirst
            && self
                .active
                .and_then(|id| self.get(id))
                .is_some_and(|active| self.all.iter().any(|c| c.priority > active.priority))
    }
}
