//! Resets a node: removes vhosts with their messages, users, permissions and policies.
//!
//! A mark file exists while a reset runs; if it exists at a start, the start first finishes the reset. A
//! crash in between therefore leaves no partial node. A node that joins a cluster is reset, too, but keeps what it
//! remembers of the cluster: the mark says so.

use std::io::{self, Write as _};
use std::path::Path;

use crate::disk::access::about;
use crate::disk::private_files::{self, DIRECTORIES, sync};
use crate::disk::{content, stand_alone};

/// The mark file.
const MARK: &str = "resetting";
/// Text of the mark of a node that joins a cluster.
const JOINS: &str = "joins a cluster\n";
/// The files to remove, beside all directories of the broker.
const FILES: [&str; 3] = ["node.json", "node.json.new", stand_alone::MARK];
/// The files that a node keeps that joins a cluster. All others lose them: a node without its data is another disk for
/// its peers.
const CLUSTER_FILES: [&str; 2] = ["cluster.json", "cluster.json.new"];

/// Empties a data directory that is not in use, durably.
///
/// # Errors
/// If the disk refuses; the next start tries again.
pub(crate) fn reset(data_dir: &Path) -> io::Result<()> {
    let mark = data_dir.join(MARK);
    private_files::create(&mark).and_then(|mark| mark.sync_all()).map_err(about(&mark))?;
    // The mark must be durable before anything is removed: without it, the next start would open what is left.
    sync(data_dir).map_err(about(data_dir))?;
    finish(data_dir)
}

/// Lets the next start empty the data directory of a node that joins a cluster, but for `cluster.json`.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn reset_at_start(data_dir: &Path) -> io::Result<()> {
    let mut mark = private_files::create(&data_dir.join(MARK))?;
    mark.write_all(JOINS.as_bytes())?;
    mark.sync_all()?;
    sync(data_dir)
}

/// Finishes a reset that was begun. A node that joins a cluster was empty when it was admitted: should it have content
/// now, nothing is removed.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn finish(data_dir: &Path) -> io::Result<()> {
    let mark = data_dir.join(MARK);
    let joins = match std::fs::read(&mark) {
        Ok(text) => text == JOINS.as_bytes(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(about(&mark)(error)),
    };
    if joins && let Ok(Some(content)) = content::of(data_dir) {
        return Err(io::Error::other(format!(
            "{content}, which came while the node joined a cluster: move {} and cluster.json away to keep what is there",
            mark.display()
        )));
    }
    let unless_gone = |path: &Path, result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(about(path)),
    };
    for name in DIRECTORIES {
        let path = data_dir.join(name);
        unless_gone(&path, std::fs::remove_dir_all(&path))?;
    }
    let cluster_files = CLUSTER_FILES.iter().filter(|_| !joins);
    for name in FILES.iter().chain(cluster_files) {
        let path = data_dir.join(name);
        unless_gone(&path, std::fs::remove_file(&path))?;
    }
    // The removals must be durable before the mark is removed.
    sync(data_dir).map_err(about(data_dir))?;
    std::fs::remove_file(&mark).map_err(about(&mark))?;
    sync(data_dir).map_err(about(data_dir))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn filled(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("leveret-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("vhosts/1/pages")).unwrap();
        std::fs::write(folder.join("vhosts/1/log"), "records").unwrap();
        std::fs::write(folder.join("node.json"), "{}").unwrap();
        std::fs::write(folder.join("standing-alone"), "").unwrap();
        std::fs::write(folder.join("lock"), "").unwrap();
        std::fs::write(folder.join("my.conf"), "kept").unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn reset_removes_the_nodes_files_only() {
        let folder = filled("reset");
        finish(&folder).unwrap();
        assert_eq!(names(&folder), ["lock", "my.conf", "node.json", "standing-alone", "vhosts"]);
        reset(&folder).unwrap();
        assert_eq!(names(&folder), ["lock", "my.conf"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn reset_that_the_disk_refuses_names_the_file() {
        let folder = filled("reset-refused");
        std::fs::create_dir(folder.join("node.json.new")).unwrap();
        let refused = reset(&folder).unwrap_err().to_string();
        assert!(refused.contains("node.json.new: "), "{refused}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn node_that_joins_keeps_what_it_remembers_of_the_cluster() {
        let folder = filled("reset-joins");
        std::fs::write(folder.join("cluster.json"), "{}").unwrap();
        reset_at_start(&folder).unwrap();
        assert!(folder.join("node.json").exists());
        finish(&folder).unwrap();
        assert_eq!(names(&folder), ["cluster.json", "lock", "my.conf"]);
        reset(&folder).unwrap();
        assert_eq!(names(&folder), ["lock", "my.conf"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn finish_completes_a_reset_after_a_crash_at_any_step() {
        for step in 0..3 {
            let folder = filled(&format!("reset-{step}"));
            std::fs::write(folder.join(MARK), "").unwrap();
            if step > 0 {
                std::fs::remove_dir_all(folder.join("vhosts")).unwrap();
            }
            if step > 1 {
                std::fs::remove_file(folder.join("node.json")).unwrap();
            }
            finish(&folder).unwrap();
            assert_eq!(names(&folder), ["lock", "my.conf"], "step {step}");
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
