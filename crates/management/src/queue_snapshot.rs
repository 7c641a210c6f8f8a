//! A queue at one moment with everything that the API tells of it.

use amqp::table::Table;
use broker::{Consumer, InForce, Name, Queue, QueueCounters, QueueType, Settings, Vhost};

/// What the API tells of a queue, as it was at one moment.
#[derive(Clone, Debug)]
pub struct QueueDetails {
    pub(crate) vhost: Name,
    pub(crate) name: Name,
    pub(crate) kind: QueueType,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) exclusive: bool,
    pub(crate) arguments: Table,
    pub(crate) policies: InForce,
    pub(crate) settings: Settings,
    pub(crate) ready: Amount,
    pub(crate) unacked: Amount,
    pub(crate) delayed: Amount,
    pub(crate) pending: Amount,
    pub(crate) paged_out: Amount,
    pub(crate) consumers: u32,
    pub(crate) exclusive_consumer: Option<Name>,
    pub(crate) single_active_consumer: Option<Name>,
    pub(crate) counters: QueueCounters,
}

/// Some messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Amount {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// What the API tells of a consumer, as it was at one moment.
#[derive(Clone, Debug)]
pub struct ConsumerDetails {
    pub(crate) tag: Name,
    pub(crate) user: Option<Name>,
    pub(crate) channel: u16,
    pub(crate) ack_required: bool,
    pub(crate) active: bool,
    pub(crate) exclusive: bool,
    pub(crate) prefetch_count: u16,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) arguments: Table,
}

impl QueueDetails {
    /// Copies every queue of `vhost`.
    pub fn all(vhost: &Vhost) -> Vec<Self> {
        vhost.queues().map(|(_, queue)| Self::of(vhost, queue)).collect()
    }

    /// Copies one queue of `vhost` with its consumers, if there is one of that name.
    pub fn one(vhost: &Vhost, name: &str) -> Option<(Self, Vec<ConsumerDetails>)> {
        let queue = vhost.queue(name)?;
        let consumers = queue.consumers().map(|one| ConsumerDetails::of(vhost, queue, one));
        Some((Self::of(vhost, queue), consumers.collect()))
    }

    fn of(vhost: &Vhost, queue: &Queue) -> Self {
        let amount = |messages, bytes| Amount { messages, bytes };
        let (paged_out, paged_out_bytes) = queue.paged_out();
        Self {
            vhost: vhost.name().clone(),
            name: queue.name.clone(),
            kind: queue.kind(),
            durable: queue.durable,
            auto_delete: queue.auto_delete,
            exclusive: queue.exclusive_owner.is_some(),
            arguments: queue.arguments.table.clone(),
            policies: queue.policies.clone(),
            settings: queue.settings.clone(),
            ready: amount(queue.ready_count(), queue.ready_bytes()),
            unacked: amount(queue.unacked_count(), queue.unacked_bytes()),
            delayed: amount(queue.delayed_count(), queue.delayed_bytes()),
            pending: amount(queue.pending_count(), queue.pending_bytes()),
            paged_out: amount(paged_out, paged_out_bytes),
            consumers: queue.consumer_count(),
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

    /// Every message in it.
    pub(crate) fn total(&self) -> Amount {
        let all = [self.ready, self.unacked, self.delayed, self.pending];
        Amount {
            messages: all.iter().map(|amount| amount.messages).sum(),
            bytes: all.iter().map(|amount| amount.bytes).sum(),
        }
    }
}

impl ConsumerDetails {
    fn of(vhost: &Vhost, queue: &Queue, consumer: &Consumer) -> Self {
        Self {
            tag: consumer.tag.clone(),
            user: vhost.connection(consumer.connection).map(|on| on.access.user.clone()),
            channel: consumer.channel.0,
            ack_required: !consumer.no_ack,
            active: queue.is_active(consumer),
            exclusive: consumer.exclusive,
            prefetch_count: consumer.prefetch_count,
            timeout_ms: consumer.timeout_ms,
            arguments: consumer.arguments.clone(),
        }
    }
}
