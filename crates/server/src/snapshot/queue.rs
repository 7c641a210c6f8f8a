//! A queue at one moment.

use std::sync::Arc;

use amqp::table::Table;
use broker::time::Now;
use broker::{
    DeadLetterStrategy, EffectivePolicies, Name, Overflow, Queue, QueueCounters, QueueId,
    QueueNumber, QueueType, Settings, Vhost,
};

use crate::snapshot::amount::Amount;
use crate::snapshot::client::{ClientDescription, ClientOf, ConsumerSnapshot};
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
    pub(crate) fn all(vhost: &Vhost) -> Vec<Self> {
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

/// A queue at one moment: what the API, the metrics and the findings need of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueView {
    /// The name.
    pub name: Name,
    /// The number.
    pub number: QueueNumber,
    /// The type.
    pub kind: QueueType,
    /// Messages by state, consumers, ages and times.
    pub levels: QueueLevels,
    /// Counts since the start.
    pub counters: QueueCounters,
    /// The rules.
    pub rules: QueueRules,
}

/// Rules of a queue for messages that no consumer takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueRules {
    /// True if messages of the queue expire.
    pub has_ttl: bool,
    /// True if the queue has a dead-letter exchange.
    pub has_dead_letter_exchange: bool,
    /// True if the queue keeps dead letters that it cannot deliver.
    pub keeps_dead_letters: bool,
    /// Most messages.
    pub max_length: Option<u64>,
    /// Most bytes of bodies.
    pub max_length_bytes: Option<u64>,
    /// The effect of a full queue on a publish.
    pub overflow: Overflow,
}

/// The queues of a vhost, copied a slice at a time, so that clients do not wait for all queues.
#[derive(Debug)]
pub(crate) struct QueueViews {
    ids: Vec<QueueId>,
    views: Vec<QueueView>,
}

/// A queue with all fields that the API shows.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the answer")]
pub struct QueueSnapshot {
    /// The queue as metrics and findings have it.
    pub view: QueueView,
    /// Name of the vhost.
    pub vhost: Name,
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
}

impl QueueView {
    fn of(queue: &Queue, now: Now) -> Self {
        Self {
            name: queue.name.clone(),
            number: queue.number,
            kind: queue.kind(),
            levels: QueueLevels::of(queue, now),
            counters: queue.counters.clone(),
            rules: QueueRules::of(queue),
        }
    }

    /// The sum over no queues, for metrics over all queues.
    pub fn sum() -> Self {
        let rules = QueueRules {
            has_ttl: false,
            has_dead_letter_exchange: false,
            keeps_dead_letters: false,
            max_length: None,
            max_length_bytes: None,
            overflow: Overflow::DropHead,
        };
        Self {
            name: Name::default(),
            number: QueueNumber(0),
            kind: QueueType::default(),
            levels: QueueLevels::default(),
            counters: QueueCounters::default(),
            rules,
        }
    }

    /// True if a message of the mean size would exceed a length limit.
    pub fn is_full(&self) -> bool {
        let Amount { messages, bytes } = self.levels.limited();
        let mean = bytes.checked_div(messages).unwrap_or_default();
        let is_reached = |max| messages > 0 && bytes + mean > max;
        self.rules.max_length.is_some_and(|max| messages >= max)
            || self.rules.max_length_bytes.is_some_and(is_reached)
    }
}

impl QueueRules {
    fn of(queue: &Queue) -> Self {
        let settings = &queue.settings;
        Self {
            has_ttl: settings.message_ttl_ms.is_some(),
            has_dead_letter_exchange: settings.dead_letter.is_some(),
            keeps_dead_letters: settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce,
            max_length: settings.max_length,
            max_length_bytes: settings.max_length_bytes,
            overflow: settings.overflow,
        }
    }
}

impl QueueViews {
    /// Starts a copy of so many queues, with room for all: a buffer that doubles is copied each time.
    pub(crate) fn of(queues: usize) -> Self {
        Self { ids: Vec::with_capacity(queues), views: Vec::with_capacity(queues) }
    }

    /// Copies some queues. Deleted queues are left out.
    pub(crate) fn add(&mut self, vhost: &mut Vhost, now: Now, ids: &[QueueId]) {
        for id in ids {
            vhost.forget_gone_deadlines(*id);
            if let Some(queue) = vhost.queue_of(*id) {
                self.ids.push(*id);
                self.views.push(QueueView::of(queue, now));
            }
        }
    }

    /// The copies of queues that `vhost` still has.
    pub(crate) fn present(self, vhost: &Vhost) -> Vec<QueueView> {
        let Self { ids, mut views } = self;
        let mut ids = ids.into_iter();
        views.retain(|_| ids.next().is_some_and(|id| vhost.queue_of(id).is_some()));
        views
    }

    /// All copies.
    pub(crate) fn into_views(self) -> Vec<QueueView> {
        self.views
    }
}

impl QueueSnapshot {
    /// Copies some queues of `vhost`; none for a queue that is gone.
    pub(crate) fn some(
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
    pub(crate) fn one(
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
            view: QueueView::of(queue, now),
            vhost: vhost.name().clone(),
            durable: queue.ownership.durable,
            auto_delete: queue.ownership.auto_delete,
            exclusive: queue.ownership.exclusive_owner.is_some(),
            owner: queue.ownership.exclusive_owner.and_then(client_of),
            arguments: queue.arguments.table.clone(),
            policies: queue.policies.clone(),
            settings: queue.settings.clone(),
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
        }
    }
}
