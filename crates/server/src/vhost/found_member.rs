//! The member of a group on this node, as its directory tells: the incarnation that may be used, or none.

use std::io;
use std::path::Path;

use replication::{BeginError, MemberId};
use storage::{EntryError, OpenError, RealDirectory, SavedMember};

use crate::disk::pages::page_files::PageError;
use crate::disk::recovery::RestoreError;
use crate::disk::vhost_files::{VhostId, has_files, replica_path};
use crate::membership::node_list::FIRST_INCARNATION;

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

/// As [`CAME_LATER`], for a directory without files: none have come so far, or all are gone.
const NO_FILES: &str = "its directory has no files";

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
        // The node may have ended before its first replica was there.
        Ok(None) if !has_files(&path)? => Ok(FoundMember::Lost(NO_FILES.to_owned())),
        Ok(None) => Ok(FoundMember::Lost("its log is gone".to_owned())),
        Err(OpenError::Io { error, .. }) if !is_damage(&error) => Err(error),
        Err(error) => Ok(FoundMember::Lost(error.to_string())),
    }
}

/// Logs that a replica must be built, as an error if the node had it.
pub(crate) fn tell_lost(vhost: &str, why: &str) {
    match why {
        CAME_LATER | NO_FILES => {
            tracing::info!(vhost, "the replica of this node is to be built: {why}")
        }
        _ => tracing::error!(vhost, "the replica of this node must be rebuilt: {why}"),
    }
}

/// The reason why the files of a vhost cannot be read, which costs this vhost and no other one of the node: a replica is
/// rebuilt from the files of other nodes, and a vhost that no other node has is down. None if the node may have to be
/// started otherwise: the build is too old, or what the operating system lacks may be there at the next start.
pub(crate) fn loss(error: &RestoreError) -> Option<String> {
    let is_loss = match error {
        RestoreError::Log { error, .. } => is_loss_of_log(error),
        RestoreError::Pages { error, .. } => match error {
            PageError::Page(replica::PageError::Disk(storage::PageError::Io { error, .. })) => {
                is_damage(error)
            }
            PageError::Page(_) => true,
            PageError::WriterFailed => false,
        },
        RestoreError::Directory { error, .. } => {
            is_damage(error) || error.kind() == io::ErrorKind::NotFound
        }
        RestoreError::WrittenAlone { .. } => false,
    };
    is_loss.then(|| error.to_string())
}

/// As [`loss`], for a log that was opened and whose member cannot begin.
pub(crate) fn loss_at_begin(error: &BeginError) -> Option<String> {
    let is_loss = match error {
        BeginError::Read(EntryError::Io { error, .. }) => is_damage(error),
        BeginError::Read(
            EntryError::Damaged { .. }
            | EntryError::Fault(_)
            | EntryError::Compacted { .. }
            | EntryError::Unavailable { .. },
        )
        | BeginError::Contradiction(_) => true,
        BeginError::Save(_) => false,
    };
    is_loss.then(|| error.to_string())
}

/// True if a log cannot be opened because the replica is lost.
pub(crate) fn is_loss_of_log(error: &OpenError) -> bool {
    match error {
        OpenError::Manifest { .. } | OpenError::DoesNotVote { .. } => true,
        // A disk that does not take the files of one vhost takes those of no other either.
        OpenError::Io { error, is_write, .. } => !is_write && is_damage(error),
        OpenError::Version { .. } | OpenError::HasContent { .. } => false,
    }
}

/// True if the disk cannot read what it has stored, which no later start changes.
fn is_damage(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

#[cfg(test)]
mod tests {
    use storage::EntryIndex;

    use super::*;

    fn io_error(error: rustix::io::Errno) -> BeginError {
        let doing = "read 7.log".to_owned();
        BeginError::Read(EntryError::Io { doing, error: error.into() })
    }

    /// Otherwise one damaged octet would keep a node with many vhosts from starting.
    #[test]
    fn error_that_no_later_start_could_mend_costs_one_replica() {
        let (file, index) = ("7.log".to_owned(), EntryIndex(255_789));
        let damaged = EntryError::Damaged { file, offset: 524_288, index };
        let lost = [
            BeginError::Read(damaged),
            BeginError::Read(EntryError::Unavailable { last: index }),
            BeginError::Read(EntryError::Compacted { first: index }),
            BeginError::Contradiction("two votes in one term".to_owned()),
            io_error(rustix::io::Errno::IO),
        ];
        for error in lost {
            assert_eq!(loss_at_begin(&error), Some(error.to_string()));
        }
        // The next start may find what this one lacks.
        for error in [rustix::io::Errno::MFILE, rustix::io::Errno::NOMEM, rustix::io::Errno::ACCESS]
        {
            assert_eq!(loss_at_begin(&io_error(error)), None);
        }
    }

    /// Otherwise a node that ends while it waits for its first replica would tell of a loss at its next start.
    #[test]
    fn directory_without_files_is_no_loss() {
        let data_dir =
            std::env::temp_dir().join(format!("leveret-found-member-{}", std::process::id()));
        let (group, path) = (VhostId(1), replica_path(&data_dir, VhostId(1)));
        std::fs::create_dir_all(path.join("pages")).unwrap();
        let me = replication::NodeId::new(7).unwrap().member(1);
        let found = || found_member(&data_dir, group, (me, me), GroupAge::Old).unwrap();
        assert_eq!(found(), FoundMember::Lost(NO_FILES.to_owned()));
        std::fs::write(path.join("raft"), "").unwrap();
        assert!(found().is_lost() && found() != FoundMember::Lost(NO_FILES.to_owned()));
        std::fs::remove_dir_all(&data_dir).unwrap();
    }
}
