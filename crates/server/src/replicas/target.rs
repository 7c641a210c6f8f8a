//! The view of a replicated vhost for the threads of replication.

use std::sync::Arc;

use storage::{Applier, LogEntry, Lsn, RealDirectory};

use crate::disk::log_writer::LogSource;
use crate::disk::vhost_files::VhostId;

/// A vhost whose log is replicated: while this node leads, a source of batches; otherwise a replica that applies the
/// entries of another leader.
pub(crate) trait ReplicaTarget: LogSource {
    /// Applies a committed entry of another leader.
    ///
    /// # Errors
    /// The reason why the replica differs from that of the leader; it must be rebuilt.
    fn apply(&self, entry: &LogEntry, applier: &Applier<RealDirectory>) -> Result<(), String>;

    /// Makes a vhost of the replica, which has applied everything up to `last`. The axis of the vhost is `shift_us`
    /// microseconds ahead of that of the node.
    ///
    /// # Errors
    /// If a page cannot be written or read.
    fn promote(&self, shift_us: i64, last: Lsn) -> Result<(), String>;

    /// Logs a digest of the durable state, which the replicas compare with theirs.
    fn log_digest(&self);

    /// Notes the node that leads; none if no leader is known.
    fn set_leader(&self, leader: Option<Arc<str>>);

    /// Closes all clients and gives the contents up: another node leads, and what it has is the truth. May be called
    /// again.
    fn depose(&self, why: Deposition);
}

/// The reason why a node leads a vhost no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deposition {
    /// Another node leads, or may.
    LeaderChanged,
    /// The disk of this node does not answer.
    DiskStalls,
    /// The disk of this node has no room for the log.
    DiskFull,
}

/// Opens replicas anew.
pub(crate) trait Reopens: std::fmt::Debug + Send + Sync {
    /// Opens the replica of a vhost again, from its log, and passes it to the replicator.
    ///
    /// # Errors
    /// A sentence for the operator.
    fn reopen(&self, vhost: VhostId) -> Result<(), String>;
}
