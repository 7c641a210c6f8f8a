//! What is the case at one moment, copied out of the broker.

use std::net::SocketAddr;

use broker::Vhost;
use broker::statistics::VhostCounters;

use crate::RABBITMQ_VERSION;
use crate::snapshot::client::Traffic;
use crate::snapshot::fields::{QueueSums, VHOST, VhostNumbers, of_connection, of_vhost};

/// The node at one moment, without its vhosts.
#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    /// Name of the node.
    pub name: String,
    /// Leveret's own version.
    pub leveret_version: &'static str,
    /// What the node is called towards clients.
    pub identity: Identity,
    /// Name of the node's cluster.
    pub cluster_name: String,
    /// When a persistent message counts as safe: `fsync` or `os`.
    pub durability: &'static str,
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// What clients can log in with: names of SASL mechanisms.
    pub mechanisms: Vec<&'static str>,
    /// Milliseconds since the broker started.
    pub uptime_ms: u64,
    /// Bytes of memory the process holds.
    pub resident_bytes: Option<u64>,
    /// Bytes of memory at which publishers are blocked.
    pub memory_watermark_bytes: Option<u64>,
    /// Whether they are.
    pub memory_alarm: bool,
    /// Bytes free on the disk of the data.
    pub disk_free_bytes: Option<u64>,
    /// Bytes that must be free there.
    pub disk_free_limit_bytes: u64,
    /// Whether less is.
    pub disk_alarm: bool,
}

/// What the node is called towards clients, which decide by it what they may ask for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The product: `identity.product`.
    pub product: String,
    /// The product's version: `identity.version`.
    pub version: String,
}

impl Default for Identity {
    /// The RabbitMQ whose clients work with Leveret unchanged.
    fn default() -> Self {
        Self { product: "RabbitMQ".to_owned(), version: RABBITMQ_VERSION.to_owned() }
    }
}

/// A socket that clients connect to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listener {
    /// RabbitMQ's word for what is spoken there: `amqp`, `amqp/ssl`, `http`, `https`.
    pub protocol: &'static str,
    /// Where.
    pub address: SocketAddr,
}

impl Listener {
    /// Whether clients must speak TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.protocol, "amqp/ssl" | "https")
    }
}

/// What the operating system knows of the node's process.
#[derive(Clone, Debug)]
pub struct ProcessSnapshot {
    /// Its id.
    pub id: u32,
    /// File descriptors that are open.
    pub fd_used: Option<u64>,
    /// File descriptors that it may open.
    pub fd_total: Option<u64>,
    /// Threads that it has.
    pub threads: Option<u64>,
    /// Threads that its user may have, with all processes; none for any number.
    pub threads_max: Option<u64>,
    /// Processors that it may use.
    pub processors: usize,
    /// The data directory.
    pub data_dir: String,
}

/// The sums of a vhost at one moment.
#[derive(Clone, Debug)]
pub struct VhostTotals {
    /// Its name.
    pub name: String,
    /// Connections to it.
    pub connections: u64,
    /// Channels of these.
    pub channels: u64,
    /// Exchanges, the predeclared ones included.
    pub exchanges: u64,
    /// Queues.
    pub queues: u64,
    /// Consumers.
    pub consumers: u64,
    /// Messages in its queues.
    pub messages: u64,
    /// Those of them that are ready for delivery.
    pub messages_ready: u64,
    /// Those of them that were delivered and are not acknowledged.
    pub messages_unacknowledged: u64,
    /// What it has counted.
    pub counters: VhostCounters,
    /// A queue that others may use does not survive a restart.
    pub(crate) has_transient_queue: bool,
    /// A channel limits the deliveries of all its consumers together.
    pub(crate) has_global_prefetch: bool,
    /// Bytes of memory that the waiting messages take.
    pub resident_bytes: u64,
    /// What is sampled of it.
    pub(crate) numbers: VhostNumbers,
}

impl VhostTotals {
    /// Adds up what is the case in `vhost`; with a user, of connections and channels only his.
    /// `traffic` is what went over the sockets of its clients.
    pub fn of(vhost: &Vhost, user: Option<&str>, traffic: &Traffic) -> Self {
        let mut sums = QueueSums::default();
        let mut totals = Self {
            name: vhost.name().to_string(),
            connections: 0,
            channels: 0,
            exchanges: vhost.exchanges().count() as u64,
            queues: 0,
            consumers: 0,
            messages: 0,
            messages_ready: 0,
            messages_unacknowledged: 0,
            counters: *vhost.counters(),
            has_transient_queue: false,
            has_global_prefetch: false,
            resident_bytes: vhost.resident_bytes(),
            numbers: [0; VHOST.len()],
        };
        for (_, connection) in vhost.connections() {
            if user.is_none_or(|user| *connection.access.user == *user) {
                totals.connections += 1;
                totals.channels += connection.open_channels().count() as u64;
            }
        }
        let channels = vhost.connections().flat_map(|(_, connection)| connection.open_channels());
        totals.has_global_prefetch =
            channels.into_iter().any(|(_, channel)| channel.global_prefetch_count() > 0);
        for (_, queue) in vhost.queues() {
            totals.queues += 1;
            totals.has_transient_queue |= !queue.durable && queue.exclusive_owner.is_none();
            totals.consumers += u64::from(queue.consumer_count());
            totals.messages += queue.message_count();
            totals.messages_ready += queue.ready_count();
            totals.messages_unacknowledged += queue.unacked_count();
            sums.add(queue);
        }
        let data = of_connection(traffic);
        totals.numbers = of_vhost(vhost, &sums.and_gone(vhost), data);
        totals
    }
}
