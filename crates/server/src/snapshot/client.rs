//! Clients at one moment: connections, channels and consumers.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use amqp::table::Table;
use broker::statistics::ChannelCounters;
use broker::{Channel, ChannelNumber, Connection, ConnectionId, Consumer, Name, Queue, Vhost};

/// Identifies a connection in the form of RabbitMQ's process ids. Unique across restarts, because the start
/// time of the node is part of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClientPid {
    node: Arc<str>,
    /// Start time of the node, in seconds of the epoch.
    creation_s: u64,
    number: u64,
}

impl ClientPid {
    /// Identifies the `number`th client of a node with that start time.
    pub fn new(node: Arc<str>, creation_s: u64, number: u64) -> Self {
        Self { node, creation_s, number }
    }

    /// Number of the client on its node.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The id of a channel of the connection.
    pub fn of_channel(&self, channel: ChannelNumber) -> String {
        format!("<{}.{}.{}.{channel}>", self.node, self.creation_s, self.number)
    }
}

impl fmt::Display for ClientPid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}.{}.{}.0>", self.node, self.creation_s, self.number)
    }
}

/// Properties of a connection that are fixed when it opens its vhost.
#[derive(Clone, Debug)]
pub struct ClientDescription {
    /// Id in the form of RabbitMQ's process ids.
    pub pid: ClientPid,
    /// Name of the connection: both addresses of its socket.
    pub name: String,
    /// Address of the client.
    pub peer: SocketAddr,
    /// Address of the listener.
    pub local: SocketAddr,
    /// Name of the node that the client has connected to, if that is another one.
    pub entry_node: Option<Arc<str>>,
    /// Name of the user.
    pub user: String,
    /// SASL mechanism of the login.
    pub mechanism: &'static str,
    /// Name of the vhost.
    pub vhost: String,
    /// Client properties.
    pub properties: Table,
    /// Name that the client application set.
    pub connection_name: Option<String>,
    /// Maximum number of channels; 0 is unlimited.
    pub channel_max: u16,
    /// Maximum frame size, in bytes.
    pub frame_max: u32,
    /// Heartbeat interval, in seconds; 0 is none.
    pub heartbeat_s: u16,
    /// TLS parameters; none without TLS.
    pub tls: Option<TlsDetails>,
    /// Time of opening the vhost, in milliseconds of the epoch.
    pub connected_at_ms: u64,
}

/// TLS parameters of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsDetails {
    /// Version: `tlsv1.2` or `tlsv1.3`.
    pub protocol: &'static str,
    /// RabbitMQ's name of the key exchange; `any` in TLS 1.3.
    pub key_exchange: &'static str,
    /// RabbitMQ's name of the cipher.
    pub cipher: &'static str,
    /// RabbitMQ's name of the message authentication.
    pub hash: &'static str,
    /// Verified certificate of the client.
    pub certificate: Option<CertificateDetails>,
}

/// A client's certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateDetails {
    /// Subject of the certificate.
    pub subject: String,
    /// Issuer of the certificate.
    pub issuer: String,
    /// Period of validity.
    pub validity: String,
}

/// The name of a connection: both addresses of its socket, in RabbitMQ's format.
pub fn connection_name(peer: SocketAddr, local: SocketAddr) -> String {
    format!("{peer} -> {local}")
}

/// Finds the client on a connection of the vhost being read.
pub type ClientOf<'a> = &'a dyn Fn(ConnectionId) -> Option<Arc<ClientDescription>>;

/// State of reading from a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// Reads from the client.
    Running,
    /// Reading until the next publish: an alarm is on.
    Blocking,
    /// Not reading: the client has published during an alarm.
    Blocked,
    /// Not reading until the disk, or the client's own socket, has caught up.
    Flow,
}

impl ConnectionState {
    /// RabbitMQ's name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Blocking => "blocking",
            Self::Blocked => "blocked",
            Self::Flow => "flow",
        }
    }
}

/// Traffic over a client's socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Bytes received.
    pub received_bytes: u64,
    /// Number of reads.
    pub reads: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Number of writes.
    pub writes: u64,
    /// Bytes queued for the socket.
    pub unsent_bytes: u64,
}

impl Traffic {
    /// Adds the traffic over another socket, but not its queued bytes.
    pub fn add(&mut self, other: &Self) {
        self.received_bytes += other.received_bytes;
        self.reads += other.reads;
        self.sent_bytes += other.sent_bytes;
        self.writes += other.writes;
    }
}

/// A connection with all fields that the API shows.
#[derive(Clone, Debug)]
pub struct ConnectionSnapshot {
    /// Fixed properties.
    pub client: Arc<ClientDescription>,
    /// State of reading.
    pub state: ConnectionState,
    /// Traffic over the socket.
    pub traffic: Traffic,
    /// Number of open channels.
    pub channels: usize,
}

/// A channel with all fields that the API shows.
#[derive(Clone, Debug)]
pub struct ChannelSnapshot {
    /// The client.
    pub client: Arc<ClientDescription>,
    /// Number of the channel.
    pub number: ChannelNumber,
    /// Unacknowledged messages of a consumer, at most; 0 for no limit.
    pub prefetch_count: u16,
    /// Unacknowledged messages of the whole channel, at most; 0 for no limit.
    pub global_prefetch_count: u16,
    /// True if publishes are confirmed.
    pub confirms: bool,
    /// True if the channel has transactions.
    pub is_transactional: bool,
    /// Number of consumers.
    pub consumers: usize,
    /// Messages delivered and not acknowledged.
    pub unacked: usize,
    /// Publishes not confirmed yet.
    pub unconfirmed: usize,
    /// Publishes of the open transaction.
    pub uncommitted: usize,
    /// Acknowledgements of the open transaction.
    pub acks_uncommitted: usize,
    /// Counts since the start.
    pub counters: ChannelCounters,
}

impl ChannelSnapshot {
    /// Copies the open channels of all connections of `vhost`.
    pub fn all(vhost: &Vhost, client_of: ClientOf<'_>) -> Vec<Self> {
        let of = |(id, connection)| Some(Self::of(&client_of(id)?, connection));
        vhost.connections().filter_map(of).flatten().collect()
    }

    /// Copies the open channels of one connection.
    pub fn of(client: &Arc<ClientDescription>, connection: &Connection) -> Vec<Self> {
        let open = connection.open_channels();
        open.map(|(number, channel)| Self::one(client, number, channel)).collect()
    }

    fn one(client: &Arc<ClientDescription>, number: ChannelNumber, channel: &Channel) -> Self {
        let uncommitted = channel.uncommitted_counts();
        let (publishes, acks) = uncommitted.unwrap_or_default();
        Self {
            client: Arc::clone(client),
            number,
            prefetch_count: channel.prefetch_count(),
            global_prefetch_count: channel.global_prefetch_count(),
            confirms: channel.is_confirming(),
            is_transactional: uncommitted.is_some(),
            consumers: channel.consumer_count(),
            unacked: channel.unacked_count(),
            unconfirmed: channel.unconfirmed_count(),
            uncommitted: publishes,
            acks_uncommitted: acks,
            counters: channel.counters,
        }
    }

    /// Name of the channel: the connection's name, and the channel's number.
    pub fn name(&self) -> String {
        channel_name(&self.client.name, self.number)
    }
}

/// The name of a channel: the connection's name, and the channel's number.
pub fn channel_name(connection: &str, number: ChannelNumber) -> String {
    format!("{connection} ({number})")
}

/// Splits the name of a channel into the connection's name and the channel's number.
pub fn parse_channel_name(name: &str) -> Option<(&str, ChannelNumber)> {
    let (connection, number) = name.strip_suffix(')')?.rsplit_once(" (")?;
    Some((connection, ChannelNumber(number.parse().ok()?)))
}

/// State of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Receives messages.
    Up,
    /// The active one of several consumers.
    SingleActive,
    /// Waits while another consumer is the single active one.
    Waiting,
    /// The prefetch limit is reached.
    Blocked,
}

impl Activity {
    fn of(queue: &Queue, consumer: &Consumer) -> Self {
        match (queue.single_active_consumer(), queue.is_active(consumer)) {
            (_, false) => Self::Waiting,
            (Some(_), true) => Self::SingleActive,
            (None, true) if consumer.is_full() => Self::Blocked,
            (None, true) => Self::Up,
        }
    }

    /// RabbitMQ's name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::SingleActive => "single_active",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
        }
    }
}

/// A consumer with all fields that the API shows.
#[derive(Clone, Debug)]
pub struct ConsumerSnapshot {
    /// Name of the vhost.
    pub vhost: Name,
    /// Name of the queue.
    pub queue: Name,
    /// The consumer tag.
    pub tag: Name,
    /// The client; none for one that has left.
    pub client: Option<Arc<ClientDescription>>,
    /// Number of the channel.
    pub channel: ChannelNumber,
    /// True if deliveries must be acknowledged.
    pub ack_required: bool,
    /// True if the consumer receives messages.
    pub active: bool,
    /// State of the consumer.
    pub activity: Activity,
    /// True if no other consumer may consume.
    pub exclusive: bool,
    /// Unacknowledged messages of a consumer, at most; 0 for no limit.
    pub prefetch_count: u16,
    /// Messages delivered to the consumer and not acknowledged.
    pub unacked: u32,
    /// Time for an acknowledgement, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Arguments of the declaration.
    pub arguments: Table,
}

impl ConsumerSnapshot {
    /// Copies the consumers of all queues of `vhost`.
    pub(crate) fn all(vhost: &Vhost, client_of: ClientOf<'_>) -> Vec<Self> {
        vhost.queues().flat_map(|(_, queue)| Self::of(vhost, queue, client_of)).collect()
    }

    /// Copies the consumers of one queue.
    pub(crate) fn of(vhost: &Vhost, queue: &Queue, client_of: ClientOf<'_>) -> Vec<Self> {
        queue.consumers().map(|one| Self::one(vhost, queue, one, client_of)).collect()
    }

    pub(crate) fn one(
        vhost: &Vhost,
        queue: &Queue,
        consumer: &Consumer,
        client_of: ClientOf<'_>,
    ) -> Self {
        Self {
            vhost: vhost.name().clone(),
            queue: queue.name.clone(),
            tag: consumer.tag.clone(),
            client: client_of(consumer.connection),
            channel: consumer.channel,
            ack_required: !consumer.no_ack,
            active: queue.is_active(consumer),
            activity: Activity::of(queue, consumer),
            exclusive: consumer.exclusive,
            prefetch_count: consumer.prefetch_count,
            unacked: consumer.unacked,
            timeout_ms: consumer.timeout_ms,
            arguments: consumer.arguments.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_names_are_parsed_as_they_are_written() {
        let name = channel_name("[::1]:5 -> [::1]:5672", ChannelNumber(7));
        assert_eq!(parse_channel_name(&name), Some(("[::1]:5 -> [::1]:5672", ChannelNumber(7))));
        for none in ["", "a", "a (", "a (x)", "a (1", "a (70000)"] {
            assert_eq!(parse_channel_name(none), None, "{none}");
        }
    }

    #[test]
    fn client_pids_identify_connections_and_channels() {
        let pid = ClientPid::new("leveret@host".into(), 1_700_000_000, 3);
        assert_eq!(pid.to_string(), "<leveret@host.1700000000.3.0>");
        assert_eq!(pid.of_channel(ChannelNumber(2)), "<leveret@host.1700000000.3.2>");
    }
}
