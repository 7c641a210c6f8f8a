//! The member of a group on this node, as its directory tells: the incarnation that may be used, or none.

use std::io;
use std::path::Path;

use replication::MemberId;
use storage::{OpenError, RealDirectory, SavedMember};

use crate::cluster::node_list::FIRST_INCARNATION;
use crate::disk::vhost_files::{VhostId, replica_path};

/// The group of a directory, as the node knows it before it looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GroupAge {
    /// The group may begin: a missing log is created.
    New,
    /// The group has begun: without its log, the replica is lost.
    Old,
    /// The group has begun on other nodes, before this one was to have it: a missing replica is to be built.
    Elsewhere,
    /// The group has begun before this node, or this disk of it, has come: the first incarnation of a founder is not this
    /// one.
    OnLostDisk,
}

/// The reason why a node that has joined, or has another disk, or is to have the group too, has no replica yet.
const CAME_LATER: &str = "this node, or its disk, has come later than the group";

/// The member that a directory belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FoundMember {
    /// The log of this member, or none where a group begins.
    Member(MemberId),
    /// The replica is lost, for this reason: it may have voted, and must be rebuilt under another incarnation.
    Lost(String),
}

impl FoundMember {
    /// True if the replica is lost.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

/// Finds the member of a group. `first` is the one that the node has where a group begins, and `oldest` the first one that it
/// can have had since it is a node of the cluster: one from before it was chosen again may still be needed.
///
/// # Errors
/// If the disk fails.
pub(crate) fn found_member(
    data_dir: &Path,
    group: VhostId,
    (first, oldest): (MemberId, MemberId),
    age: GroupAge,
) -> io::Result<FoundMember> {
    let (node, path) = (first.node(), replica_path(data_dir, group));
    if !path.exists() {
        return Ok(match age {
            GroupAge::New => FoundMember::Member(first),
            GroupAge::Old => FoundMember::Lost("its directory is gone".to_owned()),
            GroupAge::Elsewhere | GroupAge::OnLostDisk => FoundMember::Lost(CAME_LATER.to_owned()),
        });
    }
    let directory = RealDirectory::open(&path)?;
    match storage::saved_member(&directory) {
        Ok(saved)
            if age == GroupAge::OnLostDisk
                && saved.as_ref().is_none_or(|saved| {
                    saved.member_id == node.member(FIRST_INCARNATION).get()
                }) =>
        {
            Ok(FoundMember::Lost(CAME_LATER.to_owned()))
        }
        Ok(Some(SavedMember { member_id: id, .. })) => {
            match MemberId::new(id).filter(|member| member.node() == node) {
                // The node was forgotten, and has joined again.
                Some(member) if member < oldest => Ok(FoundMember::Lost(CAME_LATER.to_owned())),
                Some(member) => Ok(FoundMember::Member(member)),
                None => Ok(FoundMember::Lost(format!("it belongs to member {id} of another node"))),
            }
        }
        // The log of a node without a cluster, or a group that begins.
        Ok(None) if age == GroupAge::Elsewhere => Ok(FoundMember::Lost(CAME_LATER.to_owned())),
        Ok(None) if age == GroupAge::New || storage::has_log(&directory)? => {
            Ok(FoundMember::Member(first))
        }
        Ok(None) => Ok(FoundMember::Lost("its log is gone".to_owned())),
        Err(OpenError::Io { error, .. }) => Err(error),
        Err(error) => Ok(FoundMember::Lost(error.to_string())),
    }
}

/// Logs that a replica must be rebuilt.
pub(crate) fn tell_lost(vhost: &str, why: &str) {
    match why {
        CAME_LATER => tracing::info!(vhost, "the replica of this node is to be built: {why}"),
        _ => tracing::error!(vhost, "the replica of this node must be rebuilt: {why}"),
    }
}

/// True if a log cannot be opened because the replica is lost, and not because the disk fails or the build is too old.
pub(crate) fn is_loss(error: &OpenError) -> bool {
    match error {
        OpenError::Manifest { .. } | OpenError::DoesNotVote { .. } => true,
        OpenError::Io { .. } | OpenError::Version { .. } | OpenError::HasContent { .. } => false,
    }
}
