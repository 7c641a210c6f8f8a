//! The numbers behind the metrics at one moment.

use broker::statistics::{ChannelCounters, VhostCounters};
use broker::time::Time;
use broker::{
    Deliveries, Exchange, ExchangeCounters, ExchangeType, GivenReasons, Name, QueueType, Vhost,
};

use crate::requests::{BackupTotals, FileCheck};
use crate::snapshot::client::{ChannelSnapshot, ClientDescription, ClientOf, Traffic};
use crate::snapshot::cluster::ClusterSnapshot;
use crate::snapshot::logins::LoginAttempts;
use crate::snapshot::node::{NodeSnapshot, ProcessSnapshot};
use crate::snapshot::queue::{QueueView, QueueViews};

/// All numbers at one moment.
#[derive(Debug)]
pub struct Scrape {
    /// The node.
    pub node: NodeSnapshot,
    /// The other nodes of the cluster.
    pub cluster: ClusterSnapshot,
    /// The node's process.
    pub process: ProcessSnapshot,
    /// Start time of the process, in seconds of the epoch.
    pub started_s: u64,
    /// Login attempts by protocol.
    pub logins: Vec<LoginAttempts>,
    /// Steps of the system's clock since the start.
    pub clock_steps: u64,
    /// Backups since the start.
    pub backups: BackupTotals,
    /// The check of files that runs, or the last one.
    pub file_check: FileCheck,
    /// The selected vhosts.
    pub vhosts: Vec<VhostScrape>,
}

/// A vhost at one moment.
#[derive(Debug)]
pub struct VhostScrape {
    /// The name.
    pub name: Name,
    /// Counts since the start.
    pub counters: VhostCounters,
    /// Reasons that consumers gave for rejections.
    pub given_reasons: GivenReasons,
    /// Deliveries by type of queue, including deleted queues.
    pub deliveries: [Deliveries; QueueType::ALL.len()],
    /// The queues.
    pub queues: Vec<QueueView>,
    /// The exchanges.
    pub exchanges: Vec<ExchangeScrape>,
    /// The channels.
    pub channels: Vec<ChannelScrape>,
    /// The connections.
    pub connections: Vec<ConnectionScrape>,
    /// Traffic over all sockets, including closed ones.
    pub traffic: Traffic,
}

/// An exchange, or the sum over all exchanges.
#[derive(Clone, Debug)]
pub struct ExchangeScrape {
    /// The name.
    pub name: Name,
    /// The type.
    pub kind: ExchangeType,
    /// Number of bindings.
    pub bindings: u64,
    /// Counts since the start.
    pub counters: ExchangeCounters,
    /// Messages that a delayed exchange holds.
    pub delayed: u64,
    /// Time at which the delayed exchange routes its next message.
    pub next_delivery_us: Option<u64>,
}

/// A channel, or the sum over all channels.
#[derive(Clone, Default, Debug)]
pub struct ChannelScrape {
    /// Id in the form of RabbitMQ's process ids.
    pub pid: String,
    /// Number of consumers.
    pub consumers: u64,
    /// Messages delivered and not acknowledged.
    pub unacked: u64,
    /// Publishes not confirmed yet.
    pub unconfirmed: u64,
    /// Publishes of the open transaction.
    pub uncommitted: u64,
    /// Acknowledgements of the open transaction.
    pub acks_uncommitted: u64,
    /// Prefetch limit of a consumer.
    pub prefetch: u64,
    /// Prefetch limit of the whole channel.
    pub global_prefetch: u64,
    /// Counts since the start.
    pub counters: ChannelCounters,
    /// Direct replies, which `counters` does not have.
    pub direct_replies: u64,
}

/// A connection, or the sum over all connections.
#[derive(Clone, Default, Debug)]
pub struct ConnectionScrape {
    /// Id in the form of RabbitMQ's process ids.
    pub pid: String,
    /// Traffic over the socket.
    pub traffic: Traffic,
    /// Number of open channels.
    pub channels: u64,
    /// 1 if bytes are queued for the socket.
    pub pending: u64,
}

impl ConnectionScrape {
    /// A client's connection with its traffic and its number of open channels.
    pub fn new(client: &ClientDescription, traffic: Traffic, channels: usize) -> Self {
        let pending = u64::from(traffic.unsent_bytes > 0);
        Self { pid: client.pid.to_string(), traffic, channels: channels as u64, pending }
    }
}

impl VhostScrape {
    /// Copies a vhost, after its queues. Queues deleted since count among the deleted queues only, so that sums never
    /// shrink and nothing counts twice.
    pub(crate) fn of(
        queues: QueueViews,
        vhost: &Vhost,
        client_of: ClientOf<'_>,
        connections: Vec<ConnectionScrape>,
        traffic: Traffic,
    ) -> Self {
        let queues = queues.present(vhost);
        let mut deliveries = vhost.counters().delivered_from_gone;
        for queue in &queues {
            if let Some(of_type) = deliveries.get_mut(queue.kind as usize) {
                of_type.add(&queue.counters.deliveries);
            }
        }
        Self {
            name: vhost.name().clone(),
            counters: *vhost.counters(),
            given_reasons: vhost.given_reasons().clone(),
            deliveries,
            queues,
            exchanges: vhost.exchanges().map(|(_, exchange)| exchange.into()).collect(),
            channels: ChannelSnapshot::all(vhost, client_of).iter().map(Into::into).collect(),
            connections,
            traffic,
        }
    }
}

impl From<&ChannelSnapshot> for ChannelScrape {
    fn from(channel: &ChannelSnapshot) -> Self {
        Self {
            pid: channel.client.pid.of_channel(channel.number),
            consumers: channel.consumers as u64,
            unacked: channel.unacked as u64,
            unconfirmed: channel.unconfirmed as u64,
            uncommitted: channel.uncommitted as u64,
            acks_uncommitted: channel.acks_uncommitted as u64,
            prefetch: channel.prefetch_count.into(),
            global_prefetch: channel.global_prefetch_count.into(),
            counters: channel.counters,
            direct_replies: 0,
        }
    }
}

impl From<&Exchange> for ExchangeScrape {
    fn from(exchange: &Exchange) -> Self {
        Self {
            name: exchange.name.clone(),
            kind: exchange.kind,
            bindings: exchange.bindings().count() as u64,
            counters: exchange.counters,
            delayed: exchange.delayed_count().unwrap_or_default(),
            next_delivery_us: exchange.next_delayed_at().map(Time::as_micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amqp::method::MethodId;
    use amqp::table::Table;
    use broker::access::Access;
    use broker::time::Now;
    use broker::{
        ChannelNumber, Command, ConnectionId, DeclareQueue, DeleteQueue, Request, VhostOptions,
    };

    use super::*;

    const NOW: Now = Now::from_millis(1000);

    fn vhost() -> (Vhost, ConnectionId) {
        let mut vhost = Vhost::new("/", [3; 32], VhostOptions::default());
        let access = Access::matching("guest".into(), ".*").unwrap();
        let connection = vhost.open_connection(Arc::new(access), true);
        (vhost, connection)
    }

    fn apply(vhost: &mut Vhost, connection: ConnectionId, command: Command<'_>) {
        let request = Request { channel: ChannelNumber(1), method: MethodId::NONE, command };
        vhost.apply(NOW, connection, request);
        drop(vhost.drain_effects());
    }

    #[test]
    fn queue_deleted_between_two_slices_counts_once() {
        let (mut vhost, connection) = vhost();
        let arguments = Table::default();
        apply(&mut vhost, connection, Command::OpenChannel);
        for queue in ["stays", "goes"] {
            let declare = DeclareQueue {
                queue,
                passive: false,
                durable: false,
                exclusive: false,
                auto_delete: false,
                nowait: false,
                arguments: arguments.as_ref(),
            };
            apply(&mut vhost, connection, Command::DeclareQueue(declare));
            apply(&mut vhost, connection, Command::Get { queue, no_ack: true });
        }
        let ids: Vec<_> = vhost.queues().map(|(id, _)| id).collect();
        let mut queues = QueueViews::of(ids.len());
        queues.add(&mut vhost, NOW, &ids);
        let delete =
            DeleteQueue { queue: "goes", if_unused: false, if_empty: false, nowait: false };
        apply(&mut vhost, connection, Command::DeleteQueue(delete));
        let none = |_| None;
        let scrape = VhostScrape::of(queues, &vhost, &none, Vec::new(), Traffic::default());
        let names: Vec<&str> = scrape.queues.iter().map(|queue| &*queue.name).collect();
        assert_eq!(names, ["stays"]);
        assert_eq!(scrape.deliveries[QueueType::Classic as usize].got_nothing, 2);
    }
}
