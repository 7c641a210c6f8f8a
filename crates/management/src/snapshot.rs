//! What is the case at one moment, copied out of the broker.

use broker::statistics::VhostCounters;
use broker::{Queue, QueueCounters, QueueType, Vhost};

/// The node at one moment.
#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    /// Version of the broker.
    pub version: &'static str,
    /// Name of the node's cluster.
    pub cluster_name: String,
    /// Seconds since the broker started.
    pub uptime_s: u64,
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
    /// Every vhost.
    pub vhosts: Vec<VhostSnapshot>,
}

/// A vhost at one moment.
#[derive(Clone, Debug)]
pub struct VhostSnapshot {
    /// Its name.
    pub name: String,
    /// Connections to it.
    pub connections: usize,
    /// Channels of these.
    pub channels: usize,
    /// What it has counted.
    pub counters: VhostCounters,
    /// Its queues.
    pub queues: Vec<QueueSnapshot>,
}

/// A queue at one moment.
#[derive(Clone, Debug)]
pub struct QueueSnapshot {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: QueueType,
    /// Messages ready for delivery.
    pub ready: u64,
    /// Bytes of these.
    pub ready_bytes: u64,
    /// Messages delivered and not acknowledged.
    pub unacked: u64,
    /// Messages that were returned and wait.
    pub delayed: u64,
    /// Messages that died and wait for somewhere to go.
    pub pending: u64,
    /// Consumers.
    pub consumers: u32,
    /// What has happened in it.
    pub counters: QueueCounters,
}

impl VhostSnapshot {
    /// Copies what is the case in `vhost`.
    pub fn of(vhost: &Vhost) -> Self {
        Self {
            name: vhost.name().to_string(),
            connections: vhost.connections().count(),
            channels: vhost.connections().map(|(_, c)| c.channels().count()).sum(),
            counters: *vhost.counters(),
            queues: vhost.queues().map(|(_, queue)| QueueSnapshot::of(queue)).collect(),
        }
    }
}

impl QueueSnapshot {
    fn of(queue: &Queue) -> Self {
        Self {
            name: queue.name.to_string(),
            kind: queue.kind(),
            ready: queue.ready_count(),
            ready_bytes: queue.ready_bytes(),
            unacked: queue.unacked_count(),
            delayed: queue.delayed_count(),
            pending: queue.pending_count(),
            consumers: queue.consumer_count(),
            counters: queue.counters.clone(),
        }
    }

    /// Every message in it.
    pub fn messages(&self) -> u64 {
        self.ready + self.unacked + self.delayed + self.pending
    }
}
