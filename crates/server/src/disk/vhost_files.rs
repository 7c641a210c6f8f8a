//! Directories of the vhosts.
//!
//! ```text
//! lock                    held by the process that uses the data directory
//! node.json               format version, users, permissions, and each vhost with its id
//! global_parameters.json  global parameters
//! backup.json             time and positions of the backup that the directory began as, if it did
//! redrives/ID.json        redrive jobs that run, and the last that ended
//! reserve                 room for what must be written on a full disk
//! cluster.json            cluster that the node belongs to, and the disks of its nodes
//! metadata/               the log of users, vhosts and parameters of a cluster
//! vhosts/ID/              the log of a vhost; names never become paths
//! vhosts/ID/deaths/       the history of dead letters
//! vhosts/ID/pages/        messages of long queues; not used by the next process
//! vhosts/ID.*             replicas that arrive, or must not be used any more (`shipments/directories.rs`)
//! ```

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use storage::RealDirectory;

use crate::disk::free_space::free_bytes;
use crate::limits::REUSED_PAGES_FREE_BYTES_MIN;

/// The id of a vhost on this node, also the name of its directory; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct VhostId(pub(crate) u64);

impl VhostId {
    /// The place of a vhost's id for the metadata of a cluster.
    pub(crate) const METADATA: Self = Self(replication::GroupId::METADATA.0);
}

/// Directory of a vhost.
pub(crate) fn vhost_path(data_dir: &Path, id: VhostId) -> PathBuf {
    data_dir.join("vhosts").join(id.0.to_string())
}

/// Directory of the metadata of a cluster.
pub(crate) fn metadata_path(data_dir: &Path) -> PathBuf {
    data_dir.join("metadata")
}

/// Directory of the replica of a vhost, or of the metadata of a cluster.
pub(crate) fn replica_path(data_dir: &Path, id: VhostId) -> PathBuf {
    if id == VhostId::METADATA { metadata_path(data_dir) } else { vhost_path(data_dir, id) }
}

/// True if a directory has files. That of a vhost without a replica has directories at the most.
///
/// # Errors
/// The system's error.
pub(crate) fn has_files(path: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(path)? {
        if entry?.file_type()?.is_file() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if a vhost has a log on this node, as far as can be told.
pub(crate) fn has_log(data_dir: &Path, id: VhostId) -> bool {
    let path = vhost_path(data_dir, id);
    let has_log = || storage::has_log(&RealDirectory::open(&path)?);
    path.exists() && has_log().unwrap_or(true)
}

/// Removes the files of a deleted vhost.
pub(crate) fn remove_vhost(data_dir: &Path, id: VhostId) -> io::Result<()> {
    std::fs::remove_dir_all(vhost_path(data_dir, id))?;
    // What a rebuilt replica has left.
    let prefix = format!("{}.", id.0);
    for entry in std::fs::read_dir(data_dir.join("vhosts"))?.flatten() {
        let name = entry.file_name();
        let suffix = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let is_left = |suffix: &str| {
            suffix == "incoming" || suffix == "outdated" || suffix.starts_with("damaged-")
        };
        if suffix.is_some_and(is_left) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    std::fs::File::open(data_dir.join("vhosts"))?.sync_all()
}

/// Renames the directory of a vhost that is not used any more, so that no later vhost finds it. Returns the new path.
pub(crate) fn set_aside(data_dir: &Path, id: VhostId) -> io::Result<PathBuf> {
    let path = vhost_path(data_dir, id);
    let names = (1..).map(|number| path.with_extension(format!("unused-{number}")));
    let free = names.into_iter().find(|name| !name.exists());
    let free = free.expect("directories are fewer than numbers");
    std::fs::rename(&path, &free)?;
    std::fs::File::open(data_dir.join("vhosts"))?.sync_all()?;
    Ok(free)
}

/// Removes the directories of vhosts that were being deleted when the broker ended: those that are not
/// `known` and have ids below `next_id`. Other directories are left alone.
pub(crate) fn remove_leftovers(data_dir: &Path, known: &[VhostId], next_id: u64) {
    let Ok(entries) = std::fs::read_dir(data_dir.join("vhosts")) else { return };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for id in ids.filter(|id| *id < next_id).map(VhostId).filter(|id| !known.contains(id)) {
        match remove_vhost(data_dir, id) {
            Ok(()) => tracing::info!(id = id.0, "removed what was left of a deleted vhost"),
            Err(error) => {
                tracing::warn!(id = id.0, %error, "cannot remove what is left of a deleted vhost")
            }
        }
    }
}

/// Removes the page files of an earlier process if the disk has little room: this process does not use them,
/// and the start needs room for writing.
pub(crate) fn remove_stale_pages(data_dir: &Path) {
    let free = free_bytes(data_dir);
    if free.is_none_or(|free| free >= REUSED_PAGES_FREE_BYTES_MIN) {
        return;
    }
    let Ok(vhosts) = std::fs::read_dir(data_dir.join("vhosts")) else { return };
    let (mut files, mut bytes) = (0_u64, 0);
    for vhost in vhosts.flatten() {
        let Ok(pages) = std::fs::read_dir(vhost.path().join("pages")) else { continue };
        for page in pages.flatten() {
            if page.path().extension().is_none_or(|extension| extension != "page") {
                continue;
            }
            let len = page.metadata().map_or(0, |page| page.len());
            match std::fs::remove_file(page.path()) {
                Ok(()) => (files, bytes) = (files + 1, bytes + len),
                Err(error) => {
                    tracing::warn!(path = %page.path().display(), %error, "cannot remove a page");
                }
            }
        }
    }
    if files > 0 {
        tracing::info!(
            files,
            bytes,
            free,
            "removed pages of an earlier process to free their space"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_this_nodes_deleted_vhosts_are_removed() {
        let name = format!("leveret-leftovers-{}", std::process::id());
        let data_dir = std::env::temp_dir().join(name);
        for name in ["1", "2", "5", "lost+found"] {
            std::fs::create_dir_all(data_dir.join("vhosts").join(name).join("pages")).unwrap();
        }
        remove_leftovers(&data_dir, &[VhostId(1)], 5);
        let is_there = |name| data_dir.join("vhosts").join(name).exists();
        assert!(is_there("1") && is_there("5") && is_there("lost+found"));
        assert!(!is_there("2"));
        std::fs::remove_dir_all(&data_dir).unwrap();
    }
}
