//! Resets a node: removes vhosts with their messages, users, permissions and policies.
//!
//! A mark file exists while a reset runs; if it exists at a start, the start first finishes the reset. A
//! crash in between therefore leaves no partial node.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::disk::private_files;

/// The mark file.
const MARK: &str = "resetting";
/// The directories and files to remove.
const DIRECTORIES: [&str; 2] = ["vhosts", "redrives"];
// `cluster.json`, too: a node without its data is another disk for its peers.
const FILES: [&str; 4] = ["node.json", "node.json.new", "cluster.json", "cluster.json.new"];

/// Empties a data directory that is not in use, durably.
///
/// # Errors
/// If the disk refuses; the next start tries again.
pub(crate) fn reset(data_dir: &Path) -> io::Result<()> {
    private_files::create(&data_dir.join(MARK))?.sync_all()?;
    sync(data_dir)?;
    finish(data_dir)
}

/// Finishes a reset that a crash interrupted.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn finish(data_dir: &Path) -> io::Result<()> {
    let mark = data_dir.join(MARK);
    if !mark.exists() {
        return Ok(());
    }
    let unless_gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    for name in DIRECTORIES {
        unless_gone(std::fs::remove_dir_all(data_dir.join(name)))?;
    }
    for name in FILES {
        unless_gone(std::fs::remove_file(data_dir.join(name)))?;
    }
    // The removals must be durable before the mark is removed.
    sync(data_dir)?;
    std::fs::remove_file(mark)?;
    sync(data_dir)
}

fn sync(data_dir: &Path) -> io::Result<()> {
    File::open(data_dir)?.sync_all()
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
        assert_eq!(names(&folder), ["lock", "my.conf", "node.json", "vhosts"]);
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
