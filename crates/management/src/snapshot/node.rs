//! What is the case at one moment, copied out of the broker.

use std::net::SocketAddr;

/// Version of RabbitMQ that Leveret reports, unless the configuration sets another.
pub const RABBITMQ_VERSION: &str = "4.3.6";

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
