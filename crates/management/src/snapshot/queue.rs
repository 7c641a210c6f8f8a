//! A queue at one moment.

use std::sync::Arc;

use amqp::table::Table;
use broker::time::Now;
use broker::{
    DeadLetterStrategy, EffectivePolicies, Name, Overflow, Queue, QueueCounters, QueueId,
    QueueNumber, QueueType, Settings, Vhost,
};

use crate::snapshot::client::{ClientDescription, ClientOf, ConsumerSnapshot};
use crate::snapshot::moment::wall_ms;
use crate::snapshot::queue_levels::QueueLevels;

/// A queue in a list, before its fields are copied.
#[derive(Clone, Debug)]
pub struct QueueKey {
    pub(crate) vhost: Name,
    pub(crate) name: Name,
    pub(crate) id: QueueId,
    pub(crate) kind: QueueType,
    pub(crate) declared_by: Name,
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

/// A queue at one moment: what the API, the metrics and the findings need of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueView {
    pub(crate) name: Name,
    pub(crate) number: QueueNumber,
    pub(crate) kind: QueueType,
    pub(crate) levels: QueueLevels,
    pub(crate) counters: QueueCounters,
    pub(crate) rules: QueueRules,
}

/// Rules of a queue for messages that no consumer takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct QueueRules {
    /// True if messages of the queue expire.
    pub(crate) has_ttl: bool,
    pub(crate) has_dead_letter_exchange: bool,
    /// True if the queue keeps dead letters that it cannot deliver.
    pub(crate) keeps_dead_letters: bool,
    pub(crate) overflow: Overflow,
    /// True if no further message fits under the length limit.
    pub(crate) is_full: bool,
    /// True if the queue is full and refuses publishes.
    pub(crate) refuses_publishes: bool,
}

/// The queues of a vhost, copied a slice at a time, so that clients do not wait for all queues.
#[derive(Default, Debug)]
pub struct QueueViews(Vec<(QueueId, QueueView)>);

/// A queue with all fields that the API shows.
#[derive(Clone, Debug)]
pub struct QueueSnapshot {
    pub(crate) view: QueueView,
    pub(crate) vhost: Name,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) exclusive: bool,
    /// The client that owns the exclusive queue.
    pub(crate) owner: Option<Arc<ClientDescription>>,
    pub(crate) arguments: Table,
    pub(crate) policies: EffectivePolicies,
    pub(crate) settings: Settings,
    /// The time until which returned messages in strict order hold the queue, in milliseconds of the epoch.
    pub(crate) held_until_ms: Option<u64>,
    /// The times at which the first and the last returned message that waits are ready, in milliseconds of the epoch.
    pub(crate) returned_ready_ms: Option<(u64, u64)>,
    pub(crate) exclusive_consumer: Option<Name>,
    pub(crate) single_active_consumer: Option<Name>,
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
    pub(crate) fn sum() -> Self {
        let rules = QueueRules {
            has_ttl: false,
            has_dead_letter_exchange: false,
            keeps_dead_letters: false,
            overflow: Overflow::DropHead,
            is_full: false,
            refuses_publishes: false,
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
}

impl QueueRules {
    fn of(queue: &Queue) -> Self {
        let settings = &queue.settings;
        Self {
            has_ttl: settings.message_ttl_ms.is_some(),
            has_dead_letter_exchange: settings.dead_letter.is_some(),
            keeps_dead_letters: settings.dead_letter_strategy == DeadLetterStrategy::AtLeastOnce,
            overflow: settings.overflow,
            is_full: is_full(queue),
            refuses_publishes: queue.refuses_publishes(),
        }
    }
}

/// True if a message of the mean size would exceed a length limit.
fn is_full(queue: &Queue) -> bool {
    let settings = &queue.settings;
    let messages = queue.ready_count() + queue.delayed_count() + queue.pending_count();
    let bytes = queue.ready_bytes() + queue.delayed_bytes() + queue.pending_bytes();
    let mean = bytes.checked_div(messages).unwrap_or_default();
    settings.max_length.is_some_and(|max| messages >= max)
        || settings.max_length_bytes.is_some_and(|max| messages > 0 && bytes + mean > max)
}

impl QueueViews {
    /// The queues to copy.
    pub fn ids(vhost: &Vhost) -> Vec<QueueId> {
        vhost.queues().map(|(id, _)| id).collect()
    }

    /// Copies some queues. Deleted queues are left out.
    pub fn add(&mut self, vhost: &mut Vhost, now: Now, ids: &[QueueId]) {
        for id in ids {
            vhost.forget_gone_deadlines(*id);
            self.0.extend(vhost.queue_of(*id).map(|queue| (*id, QueueView::of(queue, now))));
        }
    }

    /// The copies of queues that `vhost` still has.
    pub(crate) fn present(self, vhost: &Vhost) -> Vec<QueueView> {
        let present = self.0.into_iter().filter(|(id, _)| vhost.queue_of(*id).is_some());
        present.map(|(_, queue)| queue).collect()
    }

    /// All copies.
    pub fn into_views(self) -> Vec<QueueView> {
        self.0.into_iter().map(|(_, queue)| queue).collect()
    }
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
