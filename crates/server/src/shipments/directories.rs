//! The directories of a vhost while its replica is rebuilt.
//!
//! ```text
//! vhosts/ID             the replica in use, or what is left of it
//! vhosts/ID.incoming    files of a leader that arrive; without a manifest they are not complete
//! vhosts/ID.outdated    a replica that was too far behind, about to be removed
//! vhosts/ID.damaged-N   replicas that must not be used any more, for the operator: the newest few
//! ```
//!
//! The metadata of a cluster have the same, with `metadata` in place of `vhosts/ID`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use storage::RealDirectory;

use crate::disk::vhost_files::{VhostId, has_files, replica_path};
use crate::limits::DAMAGED_REPLICAS_KEPT;

/// The fate of the replica in use when another one takes its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Old {
    /// Removed: it was too far behind.
    Outdated,
    /// Kept under another name, if there is anything of a log.
    Damaged,
}

/// Directory of files that arrive.
pub(crate) fn incoming_path(data_dir: &Path, vhost: VhostId) -> PathBuf {
    with_suffix(data_dir, vhost, "incoming")
}

/// The path beside that of a replica, with more behind its name.
fn with_suffix(data_dir: &Path, vhost: VhostId, suffix: &str) -> PathBuf {
    let path = replica_path(data_dir, vhost);
    let mut name = path.file_name().map(OsStr::to_owned).unwrap_or_default();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

/// The directory of replicas.
fn parent(data_dir: &Path, vhost: VhostId) -> PathBuf {
    replica_path(data_dir, vhost).parent().map_or_else(|| data_dir.to_owned(), Path::to_owned)
}

/// Puts the files that have arrived in the place of the replica, durably.
///
/// # Errors
/// The system's error. The next start, or the next attempt, goes on.
pub(crate) fn take_over(data_dir: &Path, vhost: VhostId, old: Old) -> io::Result<()> {
    let (path, incoming) = (replica_path(data_dir, vhost), incoming_path(data_dir, vhost));
    let outdated = with_suffix(data_dir, vhost, "outdated");
    if path.exists() {
        match old {
            Old::Damaged if !has_files(&path)? => remove(&path)?,
            Old::Outdated => {
                remove(&outdated)?;
                fs::rename(&path, &outdated)?;
            }
            Old::Damaged => {
                let kept = damaged(data_dir, vhost)?;
                let number = kept.last().map_or(1, |(number, _)| number + 1);
                fs::rename(&path, with_suffix(data_dir, vhost, &format!("damaged-{number}")))?;
                let room = DAMAGED_REPLICAS_KEPT - 1;
                for (_, surplus) in kept.iter().rev().skip(room) {
                    remove(surplus)?;
                }
            }
        }
    }
    fs::rename(&incoming, &path)?;
    // Both names must be durable before the old files are removed: a power cut leaves one of the two.
    fs::File::open(parent(data_dir, vhost))?.sync_all()?;
    remove(&outdated)
}

/// Finishes at a start what a process has begun: a complete newer incarnation takes its place; what else has arrived
/// of a replica that is there is removed, unless it is incomplete and may go on.
///
/// # Errors
/// The system's error.
pub(crate) fn resume(data_dir: &Path, vhost: VhostId) -> io::Result<()> {
    let (path, incoming) = (replica_path(data_dir, vhost), incoming_path(data_dir, vhost));
    remove(&with_suffix(data_dir, vhost, "outdated"))?;
    if !incoming.exists() {
        return Ok(());
    }
    let arrived = RealDirectory::open(&incoming)?;
    if !storage::has_log(&arrived)? {
        return Ok(());
    }
    let member_of = |directory: &RealDirectory| {
        storage::saved_member(directory).ok().flatten().map(|saved| saved.member_id)
    };
    let present = path.exists().then(|| RealDirectory::open(&path)).transpose()?;
    let present = present.as_ref().and_then(member_of);
    match (member_of(&arrived), present) {
        (Some(_), None) => take_over(data_dir, vhost, Old::Damaged),
        (Some(newer), Some(present)) if newer > present => take_over(data_dir, vhost, Old::Damaged),
        // The replica that is there may have voted since.
        _ => remove(&incoming),
    }
}

/// Damaged replicas that are kept, with their numbers, oldest first.
fn damaged(data_dir: &Path, vhost: VhostId) -> io::Result<Vec<(u64, PathBuf)>> {
    let prefix = with_suffix(data_dir, vhost, "damaged-");
    let prefix = prefix.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let mut found = Vec::new();
    for entry in fs::read_dir(parent(data_dir, vhost))? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse().ok());
        found.extend(number.map(|number: u64| (number, entry.path())));
    }
    found.sort_unstable();
    Ok(found)
}

/// Removes a directory, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("leveret-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(path.join("vhosts")).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn make(path: &Path, content: &str) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("x"), content).unwrap();
    }

    fn content(path: &Path) -> String {
        fs::read_to_string(path.join("x")).unwrap()
    }

    #[test]
    fn newest_damaged_replicas_are_kept() {
        let folder = Folder::new("damaged-replicas");
        let (data_dir, vhost) = (folder.0.as_path(), VhostId(1));
        for round in 0..DAMAGED_REPLICAS_KEPT + 2 {
            make(&replica_path(data_dir, vhost), &round.to_string());
            make(&incoming_path(data_dir, vhost), "new");
            take_over(data_dir, vhost, Old::Damaged).unwrap();
            assert_eq!(content(&replica_path(data_dir, vhost)), "new");
        }
        let kept = damaged(data_dir, vhost).unwrap();
        let kept: Vec<String> = kept.iter().map(|(_, path)| content(path)).collect();
        let expected: Vec<String> = (2..DAMAGED_REPLICAS_KEPT + 2).map(|r| r.to_string()).collect();
        assert_eq!(kept, expected);
        assert!(!incoming_path(data_dir, vhost).exists());
        // A node that gets its first replica has nothing to be kept.
        fs::remove_dir_all(replica_path(data_dir, vhost)).unwrap();
        fs::create_dir_all(replica_path(data_dir, vhost).join("pages")).unwrap();
        make(&incoming_path(data_dir, vhost), "new");
        take_over(data_dir, vhost, Old::Damaged).unwrap();
        assert_eq!(content(&replica_path(data_dir, vhost)), "new");
        assert_eq!(damaged(data_dir, vhost).unwrap().len(), DAMAGED_REPLICAS_KEPT);
    }

    #[test]
    fn outdated_replica_is_removed_and_incomplete_files_stay() {
        let folder = Folder::new("outdated-replica");
        let (data_dir, vhost) = (folder.0.as_path(), VhostId(1));
        make(&replica_path(data_dir, vhost), "old");
        make(&incoming_path(data_dir, vhost), "part");
        resume(data_dir, vhost).unwrap();
        assert_eq!(content(&incoming_path(data_dir, vhost)), "part");
        take_over(data_dir, vhost, Old::Outdated).unwrap();
        assert_eq!(content(&replica_path(data_dir, vhost)), "part");
        assert_eq!(fs::read_dir(data_dir.join("vhosts")).unwrap().count(), 1);
    }
}
