//! Which numbers of what are sampled, under RabbitMQ's names.

use broker::ExchangeCounters;
use broker::dead_letter::DeathReason;
use broker::statistics::ChannelCounters;
use broker::{Deaths, Deliveries, Queue, QueueType, Vhost};

use crate::snapshot::client::Traffic;
use crate::snapshot::node::{NodeSnapshot, ProcessSnapshot};

/// Which of a request's spans is about a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum About {
    /// `lengths_age`: how much waits.
    Lengths,
    /// `msg_rates_age`: what is done with messages; stands in `message_stats`.
    Messages,
    /// `data_rates_age`: what goes over sockets.
    Data,
    /// `node_stats_age`: the node and its churn.
    Node,
}

/// A number that is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) about: About,
}

const fn lengths(name: &'static str) -> Field {
    Field { name, about: About::Lengths }
}

const fn messages(name: &'static str) -> Field {
    Field { name, about: About::Messages }
}

const fn data(name: &'static str) -> Field {
    Field { name, about: About::Data }
}

const fn node(name: &'static str) -> Field {
    Field { name, about: About::Node }
}

/// Of a queue. What is 0 for most queues stands at the end, where it takes no memory.
pub(crate) const QUEUE: [Field; 23] = [
    lengths("messages"),
    lengths("messages_ready"),
    lengths("messages_unacknowledged"),
    messages("publish"),
    messages("deliver"),
    messages("deliver_no_ack"),
    messages("get"),
    messages("get_no_ack"),
    messages("get_empty"),
    messages("deliver_get"),
    messages("redeliver"),
    messages("ack"),
    messages("expired"),
    messages("dead_lettered"),
    messages("dropped"),
    messages("dead_lettered_rejected"),
    messages("dead_lettered_expired"),
    messages("dead_lettered_maxlen"),
    messages("dead_lettered_delivery_limit"),
    messages("dropped_rejected"),
    messages("dropped_expired"),
    messages("dropped_maxlen"),
    messages("dropped_delivery_limit"),
];

/// Where [`QUEUE`] has the dead letters by reason, in the order of [`DeathReason::ALL`].
pub(crate) const DEAD_LETTERED_BY_REASON: usize = 15;

/// Of an exchange.
pub(crate) const EXCHANGE: [Field; 2] = [messages("publish_in"), messages("publish_out")];

/// Of a channel.
pub(crate) const CHANNEL: [Field; 12] = [
    messages("publish"),
    messages("confirm"),
    messages("return_unroutable"),
    messages("drop_unroutable"),
    messages("deliver"),
    messages("deliver_no_ack"),
    messages("get"),
    messages("get_no_ack"),
    messages("get_empty"),
    messages("deliver_get"),
    messages("redeliver"),
    messages("ack"),
];

/// Of a connection.
pub(crate) const CONNECTION: [Field; 2] = [data("recv_oct"), data("send_oct")];

/// Of a vhost, and of all together.
pub(crate) const VHOST: [Field; 35] = [
    lengths("messages"),
    lengths("messages_ready"),
    lengths("messages_unacknowledged"),
    messages("publish"),
    messages("confirm"),
    messages("return_unroutable"),
    messages("drop_unroutable"),
    messages("deliver"),
    messages("deliver_no_ack"),
    messages("get"),
    messages("get_no_ack"),
    messages("get_empty"),
    messages("deliver_get"),
    messages("redeliver"),
    messages("ack"),
    messages("expired"),
    messages("dead_lettered"),
    messages("dropped"),
    messages("dead_lettered_rejected"),
    messages("dead_lettered_expired"),
    messages("dead_lettered_maxlen"),
    messages("dead_lettered_delivery_limit"),
    messages("dropped_rejected"),
    messages("dropped_expired"),
    messages("dropped_maxlen"),
    messages("dropped_delivery_limit"),
    data("recv_oct"),
    data("send_oct"),
    node("connection_created"),
    node("connection_closed"),
    node("channel_created"),
    node("channel_closed"),
    node("queue_declared"),
    node("queue_created"),
    node("queue_deleted"),
];

/// Of the node.
pub(crate) const NODE: [Field; 5] =
    [node("mem_used"), node("fd_used"), node("sockets_used"), node("disk_free"), node("proc_used")];

/// The numbers of a queue.
pub(crate) type QueueNumbers = [u64; QUEUE.len()];
/// The numbers of an exchange.
pub(crate) type ExchangeNumbers = [u64; EXCHANGE.len()];
/// The numbers of a channel.
pub(crate) type ChannelNumbers = [u64; CHANNEL.len()];
/// The numbers of a connection.
pub(crate) type ConnectionNumbers = [u64; CONNECTION.len()];
/// The numbers of a vhost.
pub(crate) type VhostNumbers = [u64; VHOST.len()];
/// The numbers of the node.
pub(crate) type NodeNumbers = [u64; NODE.len()];

/// Messages that expired, died and became dead letters, died and left nothing; then the second and the
/// third by reason.
fn fates(deaths: &Deaths) -> [u64; 11] {
    let dead_lettered = DeathReason::ALL.map(|reason| deaths.dead_lettered.get(reason));
    let dropped = DeathReason::ALL.map(|reason| deaths.dropped.get(reason).total());
    let expired = DeathReason::Expired as usize;
    let expired = [&dead_lettered, &dropped].map(|of| of.get(expired).copied().unwrap_or_default());
    let sums = [expired.iter().sum(), dead_lettered.iter().sum(), dropped.iter().sum()];
    joined(&[&sums, &dead_lettered, &dropped])
}

/// In the order in which they stand in the lists above.
fn delivered(of: &Deliveries) -> [u64; 8] {
    [
        of.delivered(),
        of.delivered_no_ack(),
        of.got(),
        of.got_no_ack(),
        of.got_nothing,
        of.all(),
        of.redelivered,
        of.acknowledged,
    ]
}

/// Two lists, one behind the other.
fn joined<const N: usize>(parts: &[&[u64]]) -> [u64; N] {
    let mut numbers = [0; N];
    let all = parts.iter().flat_map(|part| part.iter());
    numbers.iter_mut().zip(all).for_each(|(number, value)| *number = *value);
    numbers
}

pub(crate) fn of_queue(queue: &Queue) -> QueueNumbers {
    let lengths = [queue.message_count(), queue.ready_count(), queue.unacked_count()];
    let counters = &queue.counters;
    joined(&[
        &lengths,
        &[counters.entered],
        &delivered(&counters.deliveries),
        &fates(&counters.deaths()),
    ])
}

pub(crate) fn of_exchange(counters: &ExchangeCounters) -> ExchangeNumbers {
    [counters.published_in, counters.published_out]
}

pub(crate) fn of_channel(counters: &ChannelCounters) -> ChannelNumbers {
    let ChannelCounters { published, confirmed, returned_unroutable, dropped_unroutable, .. } =
        *counters;
    let published = [published, confirmed, returned_unroutable, dropped_unroutable];
    joined(&[&published, &delivered(&counters.deliveries)])
}

pub(crate) fn of_connection(traffic: &Traffic) -> ConnectionNumbers {
    [traffic.received_bytes, traffic.sent_bytes]
}

/// Of the node, to which so many clients are connected.
pub(crate) fn of_node(node: &NodeSnapshot, process: &ProcessSnapshot, sockets: u64) -> NodeNumbers {
    [
        node.resident_bytes.unwrap_or_default(),
        process.fd_used.unwrap_or_default(),
        sockets,
        node.disk_free_bytes.unwrap_or_default(),
        process.threads.unwrap_or_default(),
    ]
}

/// What the queues of a vhost add up to.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct QueueSums {
    lengths: [u64; 3],
    /// By type.
    pub(crate) deliveries: [Deliveries; QueueType::ALL.len()],
}

impl QueueSums {
    pub(crate) fn add(&mut self, queue: &Queue) {
        let lengths = [queue.message_count(), queue.ready_count(), queue.unacked_count()];
        self.lengths.iter_mut().zip(lengths).for_each(|(sum, length)| *sum += length);
        let kind = queue.kind() as usize;
        if let Some(of_type) = self.deliveries.get_mut(kind) {
            of_type.add(&queue.counters.deliveries);
        }
    }

    /// Also what was delivered from queues that are gone.
    pub(crate) fn and_gone(mut self, vhost: &Vhost) -> Self {
        let gone = &vhost.counters().delivered_from_gone;
        self.deliveries.iter_mut().zip(gone).for_each(|(sum, gone)| sum.add(gone));
        self
    }
}

/// The numbers of a vhost whose queues add up to `sums`, and whose clients' sockets to `data`.
pub(crate) fn of_vhost(vhost: &Vhost, sums: &QueueSums, data: ConnectionNumbers) -> VhostNumbers {
    let counters = vhost.counters();
    let published = [
        counters.published,
        counters.confirmed,
        counters.returned_unroutable,
        counters.dropped_unroutable,
    ];
    let mut all = Deliveries::default();
    sums.deliveries.iter().for_each(|of_type| all.add(of_type));
    let deaths = Deaths {
        dead_lettered: counters.dead_lettered,
        dropped: counters.dropped,
        copies_dropped: counters.copies_dropped,
        redriven: counters.redriven,
    };
    let churn = [
        counters.connections_opened,
        counters.connections_closed,
        counters.channels_opened,
        counters.channels_closed,
        counters.queues_declared,
        counters.queues_created,
        counters.queues_deleted,
    ];
    joined(&[&sums.lengths, &published, &delivered(&all), &fates(&deaths), &data, &churn])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_stands_at_its_name() {
        let mut deliveries = Deliveries::default();
        (deliveries.redelivered, deliveries.acknowledged) = (11, 12);
        let counters = ChannelCounters {
            published: 1,
            dropped_unroutable: 4,
            deliveries,
            ..ChannelCounters::default()
        };
        let numbers = of_channel(&counters);
        let of =
            |name| CHANNEL.iter().zip(numbers).find(|(field, _)| field.name == name).unwrap().1;
        assert_eq!((of("publish"), of("drop_unroutable")), (1, 4));
        assert_eq!((of("redeliver"), of("ack"), of("get_empty")), (11, 12, 0));
        // The parts are as long as the lists.
        assert_eq!(3 + 1 + 8 + 11, QUEUE.len());
        assert_eq!(3 + 4 + 8 + 11 + 2 + 7, VHOST.len());
        for (at, reason) in DeathReason::ALL.iter().enumerate() {
            let name = format!("dead_lettered_{reason}");
            assert_eq!(QUEUE[DEAD_LETTERED_BY_REASON + at].name, name);
            assert_eq!(QUEUE[DEAD_LETTERED_BY_REASON + 4 + at].name, format!("dropped_{reason}"));
        }
    }
}
