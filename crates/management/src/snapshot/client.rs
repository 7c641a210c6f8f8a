//! Clients at one moment: connections, channels and consumers.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use amqp::table::Table;
use broker::statistics::ChannelCounters;
use broker::{Channel, ChannelNumber, Connection, ConnectionId, Consumer, Name, Queue, Vhost};

/// Names a connection the way RabbitMQ names its process: unique for the life of the node, and never
/// used again after a restart, because the time of the start is part of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClientPid {
    node: Arc<str>,
    /// Seconds of the epoch at which the node started.
    creation_s: u64,
    number: u64,
}

impl ClientPid {
    /// The `number`th client of a node that started then.
    pub fn new(node: Arc<str>, creation_s: u64, number: u64) -> Self {
        Self { node, creation_s, number }
    }

    /// Its number on the node.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Names a channel of the connection.
    pub(crate) fn of_channel(&self, channel: ChannelNumber) -> String {
        format!("<{}.{}.{}.{channel}>", self.node, self.creation_s, self.number)
    }
}

impl fmt::Display for ClientPid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}.{}.{}.0>", self.node, self.creation_s, self.number)
    }
}

/// What is agreed with a client before it opens its vhost, and never changes.
#[derive(Clone, Debug)]
pub struct ClientDescription {
    /// Its name in RabbitMQ's form of a process.
    pub pid: ClientPid,
    /// Both ends of its socket; the name of the connection.
    pub name: String,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// Where it was accepted.
    pub local: SocketAddr,
    /// Who has logged in.
    pub user: String,
    /// How.
    pub mechanism: &'static str,
    /// The vhost that it has opened.
    pub vhost: String,
    /// What it says of itself.
    pub properties: Table,
    /// The name that its user gave it.
    pub connection_name: Option<String>,
    /// Channels that it may open; 0 is unlimited.
    pub channel_max: u16,
    /// The largest frame, in bytes.
    pub frame_max: u32,
    /// The interval of heartbeats, in seconds; 0 is none.
    pub heartbeat_s: u16,
    /// How it speaks TLS, if it does.
    pub tls: Option<TlsDetails>,
    /// When it opened the vhost, in milliseconds of the epoch.
    pub connected_at_ms: u64,
}

/// How a client speaks TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsDetails {
    /// `tlsv1.2` or `tlsv1.3`.
    pub protocol: &'static str,
    /// RabbitMQ's words for how keys are agreed on, `any` in TLS 1.3.
    pub key_exchange: &'static str,
    /// RabbitMQ's word for the cipher.
    pub cipher: &'static str,
    /// RabbitMQ's word for how messages are authenticated.
    pub hash: &'static str,
    /// Its certificate, which was verified.
    pub certificate: Option<CertificateDetails>,
}

/// What is told of a client's certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateDetails {
    /// Whose it is.
    pub subject: String,
    /// Who signed it.
    pub issuer: String,
    /// From when until when it is valid.
    pub validity: String,
}

/// The name of a connection: both ends of its socket, as RabbitMQ writes them.
pub fn connection_name(peer: SocketAddr, local: SocketAddr) -> String {
    format!("{peer} -> {local}")
}

/// Finds the client on a connection of the vhost that is looked at.
pub type ClientOf<'a> = &'a dyn Fn(ConnectionId) -> Option<Arc<ClientDescription>>;

/// Whether a client is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// It is.
    Running,
    /// It will not be when it publishes: an alarm is on.
    Blocking,
    /// It has published since an alarm is on, and is not read.
    Blocked,
    /// It is held back until the disk, or its own socket, has caught up.
    Flow,
}

impl ConnectionState {
    /// RabbitMQ's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Blocking => "blocking",
            Self::Blocked => "blocked",
            Self::Flow => "flow",
        }
    }
}

/// What went over a client's socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Bytes that came.
    pub received_bytes: u64,
    /// Reads that brought them.
    pub reads: u64,
    /// Bytes that went.
    pub sent_bytes: u64,
    /// Writes that took them.
    pub writes: u64,
    /// Bytes that wait for the socket.
    pub unsent_bytes: u64,
}

impl Traffic {
    /// Adds what went over another socket; what waits for it is nobody else's.
    pub fn add(&mut self, other: &Self) {
        self.received_bytes += other.received_bytes;
        self.reads += other.reads;
        self.sent_bytes += other.sent_bytes;
        self.writes += other.writes;
    }
}

/// What the API tells of a connection, as it was at one moment.
#[derive(Clone, Debug)]
pub struct ConnectionSnapshot {
    /// What does not change.
    pub client: Arc<ClientDescription>,
    /// Whether it is read.
    pub state: ConnectionState,
    /// What went over its socket.
    pub traffic: Traffic,
    /// Its open channels.
    pub channels: usize,
}

/// What the API tells of a channel, as it was at one moment.
#[derive(Clone, Debug)]
pub struct ChannelSnapshot {
    pub(crate) client: Arc<ClientDescription>,
    pub(crate) number: ChannelNumber,
    pub(crate) prefetch_count: u16,
    pub(crate) global_prefetch_count: u16,
    pub(crate) confirms: bool,
    pub(crate) is_transactional: bool,
    pub(crate) consumers: usize,
    pub(crate) unacked: usize,
    pub(crate) unconfirmed: usize,
    pub(crate) uncommitted: usize,
    pub(crate) acks_uncommitted: usize,
    pub(crate) counters: ChannelCounters,
}

impl ChannelSnapshot {
    /// Copies the open channels of every connection of `vhost`.
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

    /// Its name: that of its connection, and its number.
    pub(crate) fn name(&self) -> String {
        channel_name(&self.client.name, self.number)
    }
}

/// The name of a channel.
pub(crate) fn channel_name(connection: &str, number: ChannelNumber) -> String {
    format!("{connection} ({number})")
}

/// The connection and the number that the name of a channel consists of.
pub(crate) fn parse_channel_name(name: &str) -> Option<(&str, ChannelNumber)> {
    let (connection, number) = name.strip_suffix(')')?.rsplit_once(" (")?;
    Some((connection, ChannelNumber(number.parse().ok()?)))
}

/// Whether a consumer gets messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Activity {
    /// It does.
    Up,
    /// It alone does.
    SingleActive,
    /// Another one alone does.
    Waiting,
    /// It has as many deliveries as it may.
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

    /// RabbitMQ's word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::SingleActive => "single_active",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
        }
    }
}

/// What the API tells of a consumer, as it was at one moment.
#[derive(Clone, Debug)]
pub struct ConsumerSnapshot {
    pub(crate) vhost: Name,
    pub(crate) queue: Name,
    pub(crate) tag: Name,
    pub(crate) client: Option<Arc<ClientDescription>>,
    pub(crate) channel: ChannelNumber,
    pub(crate) ack_required: bool,
    pub(crate) active: bool,
    pub(crate) activity: Activity,
    pub(crate) exclusive: bool,
    pub(crate) prefetch_count: u16,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) arguments: Table,
}

impl ConsumerSnapshot {
    /// Copies the consumers of every queue of `vhost`.
    pub fn all(vhost: &Vhost, client_of: ClientOf<'_>) -> Vec<Self> {
        vhost.queues().flat_map(|(_, queue)| Self::of(vhost, queue, client_of)).collect()
    }

    /// Copies the consumers of one queue.
    pub(crate) fn of(vhost: &Vhost, queue: &Queue, client_of: ClientOf<'_>) -> Vec<Self> {
        queue.consumers().map(|one| Self::one(vhost, queue, one, client_of)).collect()
    }

    fn one(vhost: &Vhost, queue: &Queue, consumer: &Consumer, client_of: ClientOf<'_>) -> Self {
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
            timeout_ms: consumer.timeout_ms,
            arguments: consumer.arguments.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_channels_are_read_as_they_are_written() {
        let name = channel_name("[::1]:5 -> [::1]:5672", ChannelNumber(7));
        assert_eq!(parse_channel_name(&name), Some(("[::1]:5 -> [::1]:5672", ChannelNumber(7))));
        for none in ["", "a", "a (", "a (x)", "a (1", "a (70000)"] {
            assert_eq!(parse_channel_name(none), None, "{none}");
        }
    }

    #[test]
    fn processes_are_told_apart() {
        let pid = ClientPid::new("leveret@host".into(), 1_700_000_000, 3);
        assert_eq!(pid.to_string(), "<leveret@host.1700000000.3.0>");
        assert_eq!(pid.of_channel(ChannelNumber(2)), "<leveret@host.1700000000.3.2>");
    }
}
