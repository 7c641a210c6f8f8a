//! Reasons for which a frame is refused.

use storage::EntryFault;

/// Reason for which a frame is refused. Nothing of it has any effect.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// The frame ends before its header says, or before its header does.
    #[error("a frame is cut after {bytes} octets")]
    Cut {
        /// Octets that are there.
        bytes: usize,
    },
    /// The frame, or the message of which it is a part, is longer than the protocol allows.
    #[error("a frame or message of {bytes} octets is longer than {max}")]
    TooLong {
        /// Octets that it claims.
        bytes: u64,
        /// Octets that are allowed.
        max: usize,
    },
    /// The octets are no frame, or do not match their checksum.
    #[error("a frame is malformed: {0}")]
    Malformed(&'static str),
    /// A version that this build does not know.
    #[error("a frame has protocol version {version}, which is newer than this build")]
    NewerVersion {
        /// The version.
        version: u8,
    },
    /// A frame of another cluster.
    #[error("a frame is of cluster {cluster:016x}")]
    OtherCluster {
        /// Id of that cluster.
        cluster: u64,
    },
    /// A frame of another group.
    #[error("a frame is of group {group}")]
    OtherGroup {
        /// Id of that group.
        group: u64,
    },
    /// A frame for another node, or one that another node than the one at the end of the link claims to have sent.
    #[error("a frame is from or for member {member:016x}, which is not at this end of the link")]
    OtherMember {
        /// Id of that member.
        member: u64,
    },
    /// The sender or the receiver is an incarnation of a replica that was rebuilt since.
    #[error("a frame is from or for incarnation {incarnation}, and {current} is known")]
    OlderIncarnation {
        /// The incarnation in the frame.
        incarnation: u16,
        /// The newest one.
        current: u16,
    },
    /// A frame for an incarnation of this replica that does not exist yet.
    #[error("a frame is for incarnation {incarnation}, and this is {current}")]
    NewerIncarnation {
        /// The incarnation in the frame.
        incarnation: u16,
        /// Incarnation of this replica.
        current: u16,
    },
    /// An entry is damaged.
    #[error("an entry came damaged: {0}")]
    DamagedEntry(EntryFault),
    /// The content contradicts the protocol: the sender has a fault.
    #[error("a frame contradicts the protocol: {0}")]
    Impossible(&'static str),
}

impl FrameError {
    /// The reason in a word, for metrics.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::TooLong { .. } => "too_long",
            Self::Malformed(_) => "malformed",
            Self::NewerVersion { .. } => "newer_version",
            Self::OtherCluster { .. } => "other_cluster",
            Self::OtherGroup { .. } => "other_group",
            Self::OtherMember { .. } => "other_member",
            Self::OlderIncarnation { .. } => "older_incarnation",
            Self::NewerIncarnation { .. } => "newer_incarnation",
            Self::DamagedEntry(_) => "damaged_entry",
            Self::Impossible(_) => "impossible",
        }
    }
}
