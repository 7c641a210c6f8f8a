//! What must hold between any two calls, checked from outside by tests and simulation.

use std::collections::{BTreeMap, BTreeSet};

use super::Vhost;
use crate::exchange::Destination;
use crate::ids::{EntryId, QueueId, QueueNumber};
use crate::queue::Queue;
use crate::time::Time;

impl Vhost {
    /// Every invariant that does not hold, as a sentence; none if all is well. It looks at
    /// everything, so it is for tests.
    pub fn broken_invariants(&self) -> Vec<String> {
        let mut broken = Vec::new();
        self.check_conservation(&mut broken);
        self.check_unacked(&mut broken);
        self.check_progress(&mut broken);
        self.check_bindings(&mut broken);
        broken
    }

    /// Every durable message there is, by queue: what replaying the log must give.
    pub fn durable_entries(&self) -> BTreeMap<QueueNumber, BTreeSet<EntryId>> {
        let durable = self.queues.values().filter(|queue| queue.durable);
        let mut entries: BTreeMap<QueueNumber, BTreeSet<EntryId>> =
            durable.map(|queue| (queue.number, queue.durable_waiting().collect())).collect();
        for connection in self.connections.values() {
            for channel in connection.channels.values() {
                for unacked in channel.deliveries() {
                    let queue = self.queues.get(unacked.queue);
                    let is_durable = |q: &&Queue| q.is_durable_for(&unacked.entry.message);
                    if let Some(queue) = queue.filter(is_durable) {
                        entries.entry(queue.number).or_default().insert(unacked.entry.id);
                    }
                }
            }
        }
        entries
    }

    /// Every message that entered a queue is in exactly one place (C-1, C-2).
    fn check_conservation(&self, broken: &mut Vec<String>) {
        for queue in self.queues.values() {
            let (entered, here, left) =
                (queue.counters.entered, queue.message_count(), queue.counters.left());
            if entered != here + left {
                let name = &queue.name;
                broken.push(format!("{name}: {entered} entered, {here} are there, {left} left"));
            }
        }
    }

    /// What queues count as unacknowledged is what channels hold, and so is each consumer's share.
    fn check_unacked(&self, broken: &mut Vec<String>) {
        let mut held: BTreeMap<QueueId, u64> = BTreeMap::new();
        for connection in self.connections.values() {
            for channel in connection.channels.values() {
                for unacked in channel.deliveries() {
                    *held.entry(unacked.queue).or_default() += 1;
                }
            }
        }
        for (id, queue) in &self.queues {
            let held = held.get(&id).copied().unwrap_or_default();
            if held != queue.unacked_count() {
                let (name, counted) = (&queue.name, queue.unacked_count());
                broken.push(format!("{name}: counts {counted} unacked, channels hold {held}"));
            }
            for consumer in queue.consumers() {
                let limit = u32::from(consumer.prefetch_count);
                if !consumer.no_ack && limit > 0 && consumer.unacked > limit {
                    let (tag, unacked) = (&consumer.tag, consumer.unacked);
                    broken.push(format!("{tag} holds {unacked} of {limit} it may have"));
                }
            }
        }
    }

    /// Nothing that could be done is left undone, and nothing due is forgotten.
    fn check_progress(&self, broken: &mut Vec<String>) {
        if !self.dying.is_empty() {
            broken.push(format!("{} dead messages are not moved", self.dying.len()));
        }
        for queue in self.queues.values() {
            let name = &queue.name;
            let expired = queue.front_is_expired(self.now.time);
            if !queue.has_none_ready() && !expired && queue.consumers.any_waits() {
                broken.push(format!("{name}: messages and a consumer wait for each other"));
            }
            if !self.is_armed(queue.armed, queue.next_wake()) {
                let (due, armed) = (queue.next_wake(), queue.armed);
                broken.push(format!("{name}: due {due:?}, armed {armed:?}"));
            }
        }
        for connection in self.connections.values() {
            for (number, channel) in &connection.channels {
                let due = channel.unacked.iter().filter_map(|unacked| unacked.timeout).min();
                if !self.is_armed(channel.armed, due) {
                    let armed = channel.armed;
                    broken.push(format!("channel {number}: due {due:?}, armed {armed:?}"));
                }
            }
        }
    }

    /// Whether the wake-up at `armed` comes in time; what is overdue may wait for its turn now.
    fn is_armed(&self, armed: Option<Time>, due: Option<Time>) -> bool {
        let due = due.map(|due| due.max(self.now.time));
        due.is_none_or(|due| armed.is_some_and(|armed| armed <= due))
    }

    /// Bindings are known at both ends.
    fn check_bindings(&self, broken: &mut Vec<String>) {
        for (id, exchange) in &self.exchanges {
            for binding in exchange.bindings() {
                let known = (id, binding.clone());
                let is_known = match binding.destination {
                    Destination::Queue(queue) => {
                        self.queues.get(queue).is_some_and(|q| q.bindings.contains(&known))
                    }
                    Destination::Exchange(exchange) => {
                        self.exchanges.get(exchange).is_some_and(|e| e.bound_from.contains(&known))
                    }
                };
                if !is_known {
                    broken.push(format!("{}: {binding:?} leads nowhere", exchange.name));
                }
            }
        }
    }
}
