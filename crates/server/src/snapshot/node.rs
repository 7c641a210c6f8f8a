//! The node at one moment.

use std::net::SocketAddr;

/// Version of RabbitMQ that Leveret reports, unless the configuration sets another.
pub const RABBITMQ_VERSION: &str = "4.3.6";

/// The node, without its vhosts.
#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    /// Name of the node.
    pub name: String,
    /// Leveret's own version.
    pub leveret_version: &'static str,
    /// The newest level of record kinds that the node reads.
    pub record_level: u16,
    /// The level of record kinds that the cluster has.
    pub cluster_record_level: u16,
    /// Product and version that clients see.
    pub identity: Identity,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Durability of confirmed persistent messages: `fsync` or `os`.
    pub durability: &'static str,
    /// Open listeners.
    pub listeners: Vec<Listener>,
    /// Offered SASL mechanisms.
    pub mechanisms: Vec<&'static str>,
    /// Milliseconds since the broker started.
    pub uptime_ms: u64,
    /// Resident memory of the process, in bytes.
    pub resident_bytes: Option<u64>,
    /// Memory at which publishers are blocked, in bytes.
    pub memory_watermark_bytes: Option<u64>,
    /// The setting that this follows from.
    pub memory_watermark: MemoryWatermark,
    /// True while the node is short of memory, which blocks publishers.
    pub memory_alarm: bool,
    /// Free space on the disk of the data directory, in bytes.
    pub disk_free_bytes: Option<u64>,
    /// Free space below which publishers are blocked, in bytes.
    pub disk_free_limit_bytes: u64,
    /// True while the node is short of disk space, which blocks publishers.
    pub disk_alarm: bool,
    /// True while publishers are blocked on this node, by its alarms or by those of other nodes.
    pub blocks_publishers: bool,
}

/// Memory of the process above which publishers are blocked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MemoryWatermark {
    /// A share of the machine's memory, from 0 to 1.
    Relative(f64),
    /// A number of bytes.
    Absolute(u64),
}

/// Product and version that clients see, and by which they choose their features.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The product: `identity.product`.
    pub product: String,
    /// The product's version: `identity.version`.
    pub version: String,
}

impl Default for Identity {
    /// The RabbitMQ version whose clients work unchanged.
    fn default() -> Self {
        Self { product: "RabbitMQ".to_owned(), version: RABBITMQ_VERSION.to_owned() }
    }
}

/// A listening socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listener {
    /// RabbitMQ's name of the protocol: `amqp`, `amqp/ssl`, `http`, `https`.
    pub protocol: &'static str,
    /// Address of the socket.
    pub address: SocketAddr,
}

impl Listener {
    /// True if clients must use TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.protocol, "amqp/ssl" | "https")
    }
}

/// The operating system's view of the node's process.
#[derive(Clone, Debug)]
pub struct ProcessSnapshot {
    /// Process id.
    pub id: u32,
    /// Open file descriptors.
    pub fd_used: Option<u64>,
    /// Maximum number of open file descriptors.
    pub fd_total: Option<u64>,
    /// Number of threads.
    pub threads: Option<u64>,
    /// Maximum number of threads of the process's user over all processes; none if unlimited.
    pub threads_max: Option<u64>,
    /// Number of usable processors.
    pub processors: usize,
    /// The data directory.
    pub data_dir: String,
    /// The configuration files that were read, in order.
    pub config_files: Vec<String>,
    /// Destinations of the log: a file, `<stdout>`, `<stderr>`.
    pub log_files: Vec<String>,
    /// The resident memory that mirrors files, as the program's code does, in bytes.
    pub code_bytes: Option<u64>,
    /// Bytes for clients that no socket has taken yet.
    pub unsent_bytes: u64,
    /// Operations on the files of all vhosts since the start.
    pub io: IoTotals,
}

/// Operations of one kind on files.
#[derive(Clone, Copy, Default, Debug)]
pub struct IoTotal {
    /// Number of operations.
    pub count: u64,
    /// Bytes read or written.
    pub bytes: u64,
    /// Sum of their durations, in microseconds.
    pub micros: u64,
}

impl IoTotal {
    /// Mean duration in microseconds; 0 without operations.
    pub fn mean_us(self) -> u64 {
        self.micros.checked_div(self.count).unwrap_or_default()
    }

    /// The same in whole milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "a mean needs no more digits")]
    pub fn mean_ms(self) -> f64 {
        (self.mean_us() as f64 / 1000.0).round()
    }
}

/// Operations on files.
#[derive(Clone, Default, Debug)]
pub struct IoTotals {
    /// Reads, of pages of long queues and at a start.
    pub reads: IoTotal,
    /// Writes of logs and pages.
    pub writes: IoTotal,
    /// Syncs of files and directories.
    pub syncs: IoTotal,
    /// Durations in microseconds, each with the number of syncs that took at most as long.
    pub syncs_within: Vec<(u64, u64)>,
}
