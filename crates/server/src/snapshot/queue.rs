//! A queue at one moment.

use std::sync::Arc;

use amqp::table::Table;
use broker::time::Now;
use broker::{
    EffectivePolicies, Name, Queue, QueueCounters, QueueId, QueueNumber, QueueType, Settings, Vhost,
};

use crate::snapshot::client::{ClientDescription, ClientOf, ConsumerSnapshot};
use crate::snapshot::fields;
use crate::snapshot::moment::wall_ms;
use crate::snapshot::queue_levels::QueueLevels;

/// A queue in a list, before its fields are copied.
#[derive(Clone, Debug)]
pub struct QueueKey {
    /// Name of the vhost.
    pub vhost: Name,
    /// The name.
    pub name: Name,
    /// Id in the vhost.
    pub id: QueueId,
    /// The type.
    pub kind: QueueType,
    /// The user who declared it.
    pub declared_by: Name,
}

impl QueueKey {
    /// All queues of `vhost`.
    pub fn all(vhost: &Vhost) -> Vec<Self> {
        let key = |(id, queue): (QueueId, &Queue)| Self {
            vhost: vhost.name().clone(),
            name: queue.name.clone(),
            id,
            kind: queue.kind(),
            declared_by: queue.ownership.declared_by.clone(),
        };
        vhost.queues().map(key).collect()
    }
}

/// A queue with all fields that the API shows.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the answer")]
pub struct QueueSnapshot {
    /// Name of the vhost.
    pub vhost: Name,
    /// The name.
    pub name: Name,
    /// The number.
    pub number: QueueNumber,
    /// The type.
    pub kind: QueueType,
    /// True if it survives a restart.
    pub durable: bool,
    /// True if it is deleted with its last user.
    pub auto_delete: bool,
    /// True if it belongs to one connection.
    pub exclusive: bool,
    /// The client that owns the exclusive queue.
    pub owner: Option<Arc<ClientDescription>>,
    /// Arguments of the declaration.
    pub arguments: Table,
    /// The policies in force.
    pub policies: EffectivePolicies,
    /// The settings in force.
    pub settings: Settings,
    /// Messages by state.
    pub levels: QueueLevels,
    /// The time until which returned messages in strict order hold the queue, in milliseconds of the epoch.
    pub held_until_ms: Option<u64>,
    /// The times at which the first and the last returned message that waits are ready, in milliseconds of the epoch.
    pub returned_ready_ms: Option<(u64, u64)>,
    /// True if the queue is full and refuses publishes.
    pub refuses_publishes: bool,
    /// Tag of the exclusive consumer.
    pub exclusive_consumer: Option<Name>,
    /// Tag of the single active consumer.
    pub single_active_consumer: Option<Name>,
    /// The sampled numbers, in the order of [`fields::QUEUE`].
    pub numbers: fields::QueueNumbers,
    /// Counts since the start.
    pub counters: QueueCounters,
}

impl QueueSnapshot {
    /// Copies some queues of `vhost`; none for a queue that is gone.
    pub fn some(
        vhost: &Vhost,
        keys: &[QueueKey],
        client_of: ClientOf<'_>,
        now: Now,
    ) -> Vec<Option<Self>> {
        // The vhost may have been made anew, in which an id is that of another queue.
        let queues = keys.iter().map(|key| vhost.queue_of(key.id).filter(|q| q.name == key.name));
        queues.map(|queue| Some(Self::of(vhost, queue?, client_of, now))).collect()
    }

    /// Copies a queue of `vhost` with its consumers; none without such a queue.
    pub fn one(
        vhost: &Vhost,
        name: &str,
        client_of: ClientOf<'_>,
        now: Now,
    ) -> Option<(Self, Vec<ConsumerSnapshot>)> {
        let queue = vhost.queue(name)?;
        let consumers = ConsumerSnapshot::of(vhost, queue, client_of);
        Some((Self::of(vhost, queue, client_of, now), consumers))
    }

    fn of(vhost: &Vhost, queue: &Queue, client_of: ClientOf<'_>, now: Now) -> Self {
        Self {
            vhost: vhost.name().clone(),
            name: queue.name.clone(),
            number: queue.number,
            numbers: fields::of_queue(queue),
            kind: queue.kind(),
            durable: queue.ownership.durable,
            auto_delete: queue.ownership.auto_delete,
            exclusive: queue.ownership.exclusive_owner.is_some(),
            owner: queue.ownership.exclusive_owner.and_then(client_of),
            arguments: queue.arguments.table.clone(),
            policies: queue.policies.clone(),
            settings: queue.settings.clone(),
            levels: QueueLevels::of(queue, now),
            held_until_ms: queue.held_until().map(|at| wall_ms(now, at)),
            returned_ready_ms: queue
                .returned_ready_at()
                .map(|(next, last)| (wall_ms(now, next), wall_ms(now, last))),
            refuses_publishes: queue.refuses_publishes(),
            exclusive_consumer: queue
                .consumers()
                .find(|consumer| consumer.exclusive)
                .map(|consumer| consumer.tag.clone()),
            single_active_consumer: queue
                .single_active_consumer()
                .map(|consumer| consumer.tag.clone()),
            counters: queue.counters.clone(),
        }
    }
}
