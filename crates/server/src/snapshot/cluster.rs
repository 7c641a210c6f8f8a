//! The other nodes of the cluster at one moment.

use std::net::SocketAddr;

use super::replication::ReplicationSnapshot;

/// The cluster as this node sees it.
#[derive(Clone, Default, Debug)]
pub struct ClusterSnapshot {
    /// The other nodes; none without a cluster.
    pub peers: Vec<PeerSnapshot>,
    /// True if all nodes have met, so that a majority suffices from now on.
    pub is_founded: bool,
    /// The level of record kinds that the cluster has.
    pub record_level: u16,
    /// Nodes that the cluster is to have: `cluster_formation.target_cluster_size_hint`.
    pub target_size: usize,
    /// Refused links since the start, by reason.
    pub refused_links: Vec<(&'static str, u64)>,
    /// Clients that are connected to this node and whose vhost another node leads.
    pub relayed_connections: u64,
    /// The replicas of this node.
    pub replication: ReplicationSnapshot,
}

/// Another node of the cluster.
#[derive(Clone, Default, Debug)]
pub struct PeerSnapshot {
    /// Name of the node.
    pub name: String,
    /// The link with the node; none while it cannot be reached.
    pub link: Option<PeerLink>,
    /// The reason why there is no link, as far as known.
    pub problem: Option<String>,
    /// True while two processes say that they are this node.
    pub is_doubled: bool,
    /// Facts that the node told of itself; none while it cannot be reached.
    pub facts: Option<PeerFacts>,
    /// True while the memory alarm of the node blocks publishers on this one.
    pub memory_alarm_blocks: bool,
    /// True while the disk alarm of the node blocks publishers on this one.
    pub disk_alarm_blocks: bool,
    /// Microseconds without a link since the start of this node.
    pub down_us: u64,
    /// Bytes sent to the node.
    pub sent_bytes: u64,
    /// Bytes received from the node.
    pub received_bytes: u64,
    /// Frames that were not sent because too many waited.
    pub dropped_frames: u64,
    /// Links that were lost.
    pub lost_links: u64,
}

/// An open link.
#[derive(Clone, Debug)]
pub struct PeerLink {
    /// Address of this end.
    pub local: SocketAddr,
    /// Address of the other end.
    pub remote: SocketAddr,
    /// The newest level of record kinds that the node reads.
    pub record_level: u16,
    /// Round-trip time in microseconds.
    pub rtt_us: Option<u64>,
    /// Milliseconds by which the wall clock of the peer is ahead; negative if it is behind.
    pub clock_skew_ms: Option<i64>,
    /// Bytes that wait for the link.
    pub queued_bytes: u64,
}

/// Facts that a node tells of itself every few seconds, and when its alarms change.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[expect(missing_docs, reason = "as in `NodeSnapshot` and `ProcessSnapshot`")]
pub struct PeerFacts {
    pub rabbitmq_version: String,
    pub leveret_version: String,
    pub os_pid: u64,
    pub uptime_ms: u64,
    pub processors: u64,
    pub memory_bytes: Option<u64>,
    pub memory_watermark_bytes: Option<u64>,
    pub memory_alarm: bool,
    pub disk_free_bytes: Option<u64>,
    pub disk_free_limit_bytes: u64,
    pub disk_alarm: bool,
    pub fd_used: Option<u64>,
    pub fd_total: Option<u64>,
}
