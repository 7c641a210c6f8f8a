//! A node that forgets everything: vhosts with their messages, users, permissions, policies.
//!
//! A file says that it has begun; while that is there, the next start ends it first. So a crash in the
//! middle leaves no half of a node behind.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::disk::private_files;

/// The file that says so.
const MARK: &str = "resetting";
/// What is forgotten: directories, then files.
const DIRECTORIES: [&str; 1] = ["vhosts"];
const FILES: [&str; 2] = ["node.json", "node.json.new"];

/// Empties a data directory that nobody uses; when this returns it is durable.
///
/// # Errors
/// When the disk refuses: the next start tries again.
pub(crate) fn reset(data_dir: &Path) -> io::Result<()> {
    private_files::create(&data_dir.join(MARK))?.sync_all()?;
    sync(data_dir)?;
    finish(data_dir)
}

/// Ends what a crash has left half done.
///
/// # Errors
/// When the disk refuses.
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
    // What is gone must be so before the mark is.
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
    fn only_what_the_node_keeps_is_forgotten() {
        let folder = filled("reset");
        finish(&folder).unwrap();
        assert_eq!(names(&folder), ["lock", "my.conf", "node.json", "vhosts"]);
        reset(&folder).unwrap();
        assert_eq!(names(&folder), ["lock", "my.conf"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_crash_at_any_step_is_made_good() {
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
