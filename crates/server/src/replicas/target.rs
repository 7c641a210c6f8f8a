//! The view of a replicated vhost for the threads of replication.

use std::sync::Arc;

use replica::{Deposition, HandOverTask};
use replication::MemberId;
use storage::{Applier, LogEntry, Lsn, RealDirectory};

use crate::disk::log::log_writer::LogSource;
use crate::disk::vhost_files::VhostId;
use crate::membership::placement::Placement;

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

    /// Does the part of the vhost in a planned change of the leader. False, with nothing done, if the vhost's lock is held
    /// for long.
    fn hand_over(&self, task: HandOverTask) -> bool;

    /// The nodes that have the group; none for all.
    fn placement(&self) -> Option<Arc<Placement>>;

    /// Name of the node that leads, as it was noted last, or known before the replica was opened anew.
    fn leader(&self) -> Option<Arc<str>>;

    /// Notes the node that leads; none if no leader is known.
    fn set_leader(&self, leader: Option<Arc<str>>);

    /// Closes all clients and gives the contents up: another node leads, and what it has is the truth. May be called
    /// again.
    fn depose(&self, why: Deposition);
}

/// The replicas of the node, of vhosts and of the metadata. The rooms of replication are below those of vhosts, so that
/// they know the registry as a trait.
pub(crate) trait ReplicaRegistry: std::fmt::Debug + Send + Sync {
    /// Opens the replica of a vhost again, from its log, and passes it to the replicator. Nothing happens if the vhost
    /// is deleted.
    ///
    /// # Errors
    /// A sentence for the operator.
    fn reopen(&self, vhost: VhostId) -> Result<(), String>;

    /// Removes the files of the replica of a vhost, which its group does without. Nothing happens if the vhost is
    /// deleted.
    ///
    /// # Errors
    /// A sentence for the operator.
    fn leave(&self, vhost: VhostId) -> Result<(), String>;

    /// Name of a vhost; none if it is deleted, or on other nodes.
    fn name_of(&self, vhost: VhostId) -> Option<String>;

    /// True if a replica that is lost may be replaced by this member: not by one that the node had before.
    fn may_become(&self, vhost: VhostId, member: MemberId) -> bool;

    /// Lets `install` put the files of a replica in their place, and opens it. Nothing else opens or removes it meanwhile.
    ///
    /// # Errors
    /// A sentence for the operator.
    fn open_installed(
        &self,
        vhost: VhostId,
        install: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), String>;
}
