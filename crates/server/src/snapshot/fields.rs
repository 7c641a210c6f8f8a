//! Numbers that are sampled: names in RabbitMQ's API, and how to read them off an object.
//!
//! Each kind of object has one table of fields. Its numbers stand in the same order.

use broker::dead_letter::DeathReason;
use broker::statistics::ChannelCounters;
use broker::{DeathCounters, Deliveries, ExchangeCounters, Queue, QueueCounters, QueueType, Vhost};

use crate::snapshot::client::Traffic;
use crate::snapshot::node::{NodeSnapshot, ProcessSnapshot};
use crate::snapshot::queue::QueueView;
use crate::snapshot::queue_fields::{QUEUE_FIELDS, QueueField, Source};
use crate::snapshot::queue_levels::QueueLevels;

/// A kind of statistics, for which a request names a range of time (`lengths_age`, `lengths_incr`, ...).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatsKind {
    /// `lengths`: numbers of messages in queues.
    Lengths,
    /// `msg_rates`: operations on messages, shown in `message_stats`.
    Messages,
    /// `data_rates`: bytes over sockets.
    Data,
    /// `node_stats`: resources of the node, and its churn.
    Node,
}

/// A sampled number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// RabbitMQ's name.
    pub name: &'static str,
    /// The statistics that it is part of.
    pub kind: StatsKind,
}

/// Numbers of the node that rise and fall; all others count.
const LEVELS_OF_NODE: [&str; 5] = ["mem_used", "fd_used", "sockets_used", "disk_free", "proc_used"];

impl Field {
    /// True for a number that only rises, until it is counted anew.
    pub fn is_counter(&self) -> bool {
        match self.kind {
            StatsKind::Lengths => false,
            StatsKind::Messages | StatsKind::Data => true,
            StatsKind::Node => !LEVELS_OF_NODE.contains(&self.name),
        }
    }
}

const fn field(kind: StatsKind, name: &'static str) -> Field {
    Field { name, kind }
}

/// Joins lists of fields into one table, of which the lists fill every row.
const fn table<const N: usize>(parts: &[&[Field]]) -> [Field; N] {
    let mut table = [field(StatsKind::Node, ""); N];
    let (mut part, mut row) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            table[row] = parts[part][at];
            (row, at) = (row + 1, at + 1);
        }
        part += 1;
    }
    assert!(row == N, "a table is as long as its parts");
    table
}

/// The sampled numbers of a queue that one source has.
#[derive(Clone, Copy)]
enum Part {
    Lengths,
    Deliveries,
    Deaths,
    All,
}

impl Part {
    const fn has(self, row: &QueueField) -> bool {
        row.is_sampled()
            && match self {
                Self::Lengths => matches!(row.source, Source::Length(..)),
                Self::Deliveries => matches!(row.source, Source::Delivery(_)),
                Self::Deaths => matches!(row.source, Source::Death(_)),
                Self::All => true,
            }
    }

    const fn len(self) -> usize {
        let (mut len, mut row) = (0, 0);
        while row < QUEUE_FIELDS.len() {
            if self.has(&QUEUE_FIELDS[row]) {
                len += 1;
            }
            row += 1;
        }
        len
    }

    const fn fields<const N: usize>(self) -> [Field; N] {
        let mut fields = [field(StatsKind::Lengths, ""); N];
        let (mut at, mut row) = (0, 0);
        while row < QUEUE_FIELDS.len() {
            let of = &QUEUE_FIELDS[row];
            if self.has(of) {
                let kind = if of.is_count() { StatsKind::Messages } else { StatsKind::Lengths };
                fields[at] = field(kind, of.name);
                at += 1;
            }
            row += 1;
        }
        fields
    }
}

const LENGTHS: [Field; Part::Lengths.len()] = Part::Lengths.fields();

const PUBLISHES: [Field; 4] = [
    field(StatsKind::Messages, "publish"),
    field(StatsKind::Messages, "confirm"),
    field(StatsKind::Messages, "return_unroutable"),
    field(StatsKind::Messages, "drop_unroutable"),
];

const DELIVERIES: [Field; Part::Deliveries.len()] = Part::Deliveries.fields();

const DEATHS: [Field; Part::Deaths.len()] = Part::Deaths.fields();

/// Messages that full queues refused.
const REFUSED: Field = field(StatsKind::Messages, "refused");

const CHURN: [Field; 7] = [
    field(StatsKind::Node, "connection_created"),
    field(StatsKind::Node, "connection_closed"),
    field(StatsKind::Node, "channel_created"),
    field(StatsKind::Node, "channel_closed"),
    field(StatsKind::Node, "queue_declared"),
    field(StatsKind::Node, "queue_created"),
    field(StatsKind::Node, "queue_deleted"),
];

/// Fields of a connection.
pub const CONNECTION: [Field; 2] =
    [field(StatsKind::Data, "recv_oct"), field(StatsKind::Data, "send_oct")];

/// Fields of an exchange.
pub const EXCHANGE: [Field; 5] = [
    field(StatsKind::Messages, "publish_in"),
    field(StatsKind::Messages, "publish_out"),
    PUBLISHES[2],
    PUBLISHES[3],
    REFUSED,
];

/// Fields of a channel.
pub const CHANNEL: [Field; PUBLISHES.len() + DELIVERIES.len() + 1] =
    table(&[&PUBLISHES, &DELIVERIES, &[REFUSED]]);

/// Fields of a queue.
pub const QUEUE: [Field; Part::All.len()] = Part::All.fields();

/// Fields of a vhost, and of all vhosts together.
pub const VHOST: [Field;
    LENGTHS.len()
        + PUBLISHES.len()
        + DELIVERIES.len()
        + DEATHS.len()
        + 1
        + CONNECTION.len()
        + CHURN.len()] =
    table(&[&LENGTHS, &PUBLISHES, &DELIVERIES, &DEATHS, &[REFUSED], &CONNECTION, &CHURN]);

/// Fields of the node.
pub const NODE: [Field; 10] = [
    field(StatsKind::Node, "mem_used"),
    field(StatsKind::Node, "fd_used"),
    field(StatsKind::Node, "sockets_used"),
    field(StatsKind::Node, "disk_free"),
    field(StatsKind::Node, "proc_used"),
    field(StatsKind::Node, "io_read_count"),
    field(StatsKind::Node, "io_read_bytes"),
    field(StatsKind::Node, "io_write_count"),
    field(StatsKind::Node, "io_write_bytes"),
    field(StatsKind::Node, "io_sync_count"),
];

/// Numbers of a queue.
pub type QueueNumbers = [u64; QUEUE.len()];
/// Numbers of an exchange.
pub type ExchangeNumbers = [u64; EXCHANGE.len()];
/// Numbers of a channel.
pub type ChannelNumbers = [u64; CHANNEL.len()];
/// Numbers of a connection.
pub type ConnectionNumbers = [u64; CONNECTION.len()];
/// Numbers of a vhost.
pub type VhostNumbers = [u64; VHOST.len()];
/// Numbers of the node.
pub type NodeNumbers = [u64; NODE.len()];

/// The index in [`QUEUE`] of messages dead-lettered for `reason`.
pub const fn dead_lettered_by(reason: DeathReason) -> usize {
    // Behind the sums over all reasons.
    LENGTHS.len() + 1 + DELIVERIES.len() + 3 + reason as usize
}

/// Reads the sampled numbers of a queue for which `number` finds a value.
fn read<const N: usize>(number: impl Fn(Source) -> Option<u64>) -> [u64; N] {
    let mut numbers = [0; N];
    let rows = QUEUE_FIELDS.iter().filter(|row| row.is_sampled());
    let all = rows.filter_map(|row| number(row.source));
    numbers.iter_mut().zip(all).for_each(|(to, number)| *to = number);
    numbers
}

/// The numbers of [`DEATHS`].
fn deaths(of: &DeathCounters) -> [u64; DEATHS.len()] {
    read(|source| if let Source::Death(number) = source { Some(number(of)) } else { None })
}

/// The numbers of [`DELIVERIES`].
fn deliveries(of: &Deliveries) -> [u64; DELIVERIES.len()] {
    read(|source| if let Source::Delivery(number) = source { Some(number(of)) } else { None })
}

/// Joins lists of numbers, as [`table`] joins lists of fields.
fn join<const N: usize>(parts: &[&[u64]]) -> [u64; N] {
    debug_assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), N);
    let mut numbers = [0; N];
    let all = parts.iter().flat_map(|part| part.iter());
    numbers.iter_mut().zip(all).for_each(|(number, value)| *number = *value);
    numbers
}

fn lengths(queue: &Queue) -> [u64; LENGTHS.len()] {
    read(|source| if let Source::Length(number, _) = source { Some(number(queue)) } else { None })
}

/// The numbers of a queue.
pub(crate) fn of_queue(queue: &Queue) -> QueueNumbers {
    numbers(&queue.counters, |of_queue, _| of_queue(queue))
}

/// The numbers of a copied queue.
pub fn of_view(view: &QueueView) -> QueueNumbers {
    numbers(&view.counters, |_, of_levels| of_levels(&view.levels))
}

fn numbers(
    counters: &QueueCounters,
    length: impl Fn(fn(&Queue) -> u64, fn(&QueueLevels) -> u64) -> u64,
) -> QueueNumbers {
    let deaths = counters.deaths();
    read(|source| match source {
        Source::Length(of_queue, of_levels) => Some(length(of_queue, of_levels)),
        Source::Level(_) => None,
        Source::Counter(number) => Some(number(counters)),
        Source::Delivery(number) => Some(number(&counters.deliveries)),
        Source::Death(number) => Some(number(&deaths)),
    })
}

/// The numbers of an exchange.
pub fn of_exchange(counters: &ExchangeCounters) -> ExchangeNumbers {
    [
        counters.published_in,
        counters.published_out,
        counters.returned_unroutable,
        counters.dropped_unroutable,
        counters.refused,
    ]
}

/// The numbers of a channel.
pub fn of_channel(counters: &ChannelCounters) -> ChannelNumbers {
    let published = [
        counters.published,
        counters.confirmed,
        counters.returned_unroutable,
        counters.dropped_unroutable,
    ];
    join(&[&published, &deliveries(&counters.deliveries), &[counters.refused]])
}

/// The numbers of a connection.
pub fn of_connection(traffic: &Traffic) -> ConnectionNumbers {
    [traffic.received_bytes, traffic.sent_bytes]
}

/// The numbers of the node, which has that many open sockets of clients.
pub fn of_node(node: &NodeSnapshot, process: &ProcessSnapshot, sockets: u64) -> NodeNumbers {
    [
        node.resident_bytes.unwrap_or_default(),
        process.fd_used.unwrap_or_default(),
        sockets,
        node.disk_free_bytes.unwrap_or_default(),
        process.threads.unwrap_or_default(),
        process.io.reads.count,
        process.io.reads.bytes,
        process.io.writes.count,
        process.io.writes.bytes,
        process.io.syncs.count,
    ]
}

/// Sums over the queues of a vhost.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct QueueSums {
    lengths: [u64; LENGTHS.len()],
    /// Deliveries by type of queue.
    pub(crate) deliveries: [Deliveries; QueueType::ALL.len()],
}

impl QueueSums {
    /// Adds a queue.
    pub(crate) fn add(&mut self, queue: &Queue) {
        self.lengths.iter_mut().zip(lengths(queue)).for_each(|(sum, length)| *sum += length);
        let kind = queue.kind() as usize;
        if let Some(of_type) = self.deliveries.get_mut(kind) {
            of_type.add(&queue.counters.deliveries);
        }
    }

    /// Adds the deliveries from deleted queues.
    pub(crate) fn with_deleted(mut self, vhost: &Vhost) -> Self {
        let deleted = &vhost.counters().delivered_from_gone;
        self.deliveries.iter_mut().zip(deleted).for_each(|(sum, deleted)| sum.add(deleted));
        self
    }
}

/// The numbers of a vhost, given the sums over its queues and over the sockets of its clients.
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
    let died = DeathCounters {
        dead_lettered: counters.dead_lettered,
        dropped: counters.dropped,
        copies_dropped: counters.copies_dropped,
        redriven: counters.redriven,
        cancelled: counters.schedules.cancelled,
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
    let (deliveries, deaths) = (deliveries(&all), deaths(&died));
    join(&[&sums.lengths, &published, &deliveries, &deaths, &[counters.refused], &data, &churn])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_numbers_stand_at_their_names() {
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
    }

    #[test]
    fn death_fields_follow_the_order_of_reasons() {
        for (at, reason) in DeathReason::ALL.into_iter().enumerate() {
            assert_eq!(QUEUE[dead_lettered_by(reason)].name, format!("dead_lettered_{reason}"));
            assert_eq!(DEATHS[3 + at].name, format!("dead_lettered_{reason}"));
            assert_eq!(DEATHS[3 + 4 + at].name, format!("dropped_{reason}"));
        }
    }
}
