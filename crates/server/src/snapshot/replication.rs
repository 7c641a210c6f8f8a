//! The part of a node in the replication of its vhosts at one moment.

/// The replicas of a node.
#[derive(Clone, Default, Debug)]
pub struct ReplicationSnapshot {
    /// One for each vhost; none without a cluster.
    pub replicas: Vec<ReplicaSnapshot>,
    /// Frames of other nodes that were refused since the start, by reason.
    pub refused_frames: Vec<(&'static str, u64)>,
    /// Writes that the disk did not answer in time, since the start.
    pub disk_stalls: u64,
    /// Files of vhosts that are shipped between nodes.
    pub shipments: ShipmentSnapshot,
}

/// Shipments of files for replicas that are rebuilt.
#[derive(Clone, Copy, Default, Debug)]
pub struct ShipmentSnapshot {
    /// Octets that the node has sent since its start.
    pub sent_bytes: u64,
    /// Octets that the node has received since its start.
    pub received_bytes: u64,
    /// Shipments that it sends.
    pub sending: u64,
    /// Shipments that it receives.
    pub receiving: u64,
}

/// The thing that a replica is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplicaGroup {
    /// A vhost.
    Vhost,
    /// Users, vhosts and parameters. The group is called `metadata`, as a vhost may be.
    Metadata,
}

impl ReplicaGroup {
    /// The group in JSON and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vhost => "vhost",
            Self::Metadata => "metadata",
        }
    }
}

/// The files of a replica that is rebuilt, as far as they have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RebuildSnapshot {
    /// Octets that are there.
    pub received_bytes: u64,
    /// Octets of all files.
    pub total_bytes: u64,
}

/// The replica of a vhost, or of the metadata. Entries are numbered from 1 on, the same on all nodes.
#[derive(Clone, Debug)]
pub struct ReplicaSnapshot {
    /// Name of the vhost; `metadata` for the group of that name.
    pub vhost: String,
    /// The thing that the replica is of.
    pub group: ReplicaGroup,
    /// The files, while they come from the leader.
    pub rebuild: Option<RebuildSnapshot>,
    /// `leader`, `promoting`, `follower`, `candidate`, `deposed` or `quarantined`.
    pub state: &'static str,
    /// Newest term that the node knows.
    pub term: u64,
    /// Last entry that a majority has, as far as the node knows.
    pub committed_index: u64,
    /// Last entry in the log of the node.
    pub written_index: u64,
    /// Last entry whose effects the replica has.
    pub applied_index: u64,
    /// Last entry of which only the records that are needed are kept.
    pub compacted_index: u64,
    /// Bytes of committed entries that wait for their application.
    pub unapplied_bytes: u64,
    /// At the leader: work waits, and nothing was committed for long.
    pub stands_still: bool,
    /// Leaders that the node has seen since its start, each change counted.
    pub leaders: u64,
    /// At the leader: entries that each other node is not known to have.
    pub lags: Vec<(String, u64)>,
    /// True if the member of the node votes.
    pub is_voter: bool,
    /// Nodes of the members that vote, as far as the node knows.
    pub voters: Vec<String>,
    /// At the leader: those of them that were heard lately, the leader included.
    pub heard: Vec<String>,
}

impl ReplicaSnapshot {
    /// A replica of the vhost `v` with nothing in it, for tests.
    #[must_use]
    pub fn empty(state: &'static str) -> Self {
        Self {
            vhost: "v".to_owned(),
            group: ReplicaGroup::Vhost,
            rebuild: None,
            state,
            term: 1,
            committed_index: 0,
            written_index: 0,
            applied_index: 0,
            compacted_index: 0,
            unapplied_bytes: 0,
            stands_still: false,
            leaders: 1,
            lags: Vec::new(),
            is_voter: true,
            voters: Vec::new(),
            heard: Vec::new(),
        }
    }
}
