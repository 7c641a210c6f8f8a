//! The directory that a backup is written to.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::access::permission::with_owner;
use crate::disk::access::sandbox::{Confinement, confinement};
use crate::disk::free_space::free_bytes;
use crate::disk::json_files::cluster_file;
use crate::disk::json_files::node_file::INCOMPLETE_BACKUP;
use crate::disk::private_files::{self, DIRECTORIES, sync};
use crate::disk::stand_alone;
use crate::limits::BACKUP_PATH_BYTES_MAX;

/// The files of a backup; the mark of an incomplete one is the last.
const FILES: [&str; 6] = [
    "node.json",
    "node.json.new",
    "global_parameters.json",
    cluster_file::NAME,
    stand_alone::MARK,
    INCOMPLETE_BACKUP,
];
/// Directory for backups that the packaged unit lets the service write to.
const PERMITTED: &str = "/var/lib/leveret-backups";
const FILE: &str = "backup.json";

/// An empty directory with the mark of an incomplete backup.
#[derive(Debug)]
pub(crate) struct BackupTarget {
    pub(crate) path: PathBuf,
    /// True if the directory did not exist.
    is_created: bool,
}

impl BackupTarget {
    /// Creates the directory, or takes an empty one. Its disk must have `free_min` bytes.
    ///
    /// # Errors
    /// A sentence for the operator; nothing is changed then.
    pub(crate) fn open(path: &Path, data_dir: &Path, free_min: u64) -> Result<Self, String> {
        let shown = path.display();
        if path.as_os_str().len() > BACKUP_PATH_BYTES_MAX {
            return Err(format!("the path is longer than {BACKUP_PATH_BYTES_MAX} bytes"));
        }
        if !path.is_absolute() {
            return Err(format!("'{shown}' is not an absolute path"));
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(format!("{shown} cannot be the directory of a backup"));
        };
        // Before the system's error, which does not name the sandbox, and where there would be none.
        if let Some(found) = confinement(path) {
            return Err(unusable(&found));
        }
        let parent = parent.canonicalize();
        let parent =
            parent.map_err(|error| format!("the parent of {shown} cannot be used: {error}"))?;
        // A link leads to its target.
        let path = parent.join(name);
        let path = path.canonicalize().unwrap_or(path);
        let data_dir = data_dir
            .canonicalize()
            .map_err(|error| format!("the data directory cannot be used: {error}"))?;
        if path.starts_with(&data_dir) {
            return Err(format!("{shown} is inside the data directory {}", data_dir.display()));
        }
        if let Some(found) = confinement(&path) {
            return Err(unusable(&found));
        }
        let is_created = match std::fs::read_dir(&path) {
            Ok(mut entries) => {
                if path.join(INCOMPLETE_BACKUP).exists() {
                    return Err(format!(
                        "{shown} holds a backup that was not completed; remove it first"
                    ));
                }
                if entries.next().is_some() {
                    return Err(format!("{shown} is not empty"));
                }
                false
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => {
                return Err(format!("{shown} cannot be read: {}", with_owner(&error, &path)));
            }
        };
        check_free(&parent, free_min)?;
        if is_created {
            private_files::create_dir(&path).map_err(|error| {
                format!("{shown} cannot be made: {}", with_owner(&error, &parent))
            })?;
        }
        let target = Self { path, is_created };
        let marked = private_files::create(&target.path.join(INCOMPLETE_BACKUP))
            .and_then(|mark| mark.sync_all())
            .and_then(|()| sync(&target.path))
            .and_then(|()| if is_created { sync(&parent) } else { Ok(()) });
        if let Err(error) = marked {
            target.remove();
            let error = with_owner(&error, &target.path);
            return Err(format!("{shown} cannot be written: {error}"));
        }
        Ok(target)
    }

    /// Completes the backup: everything else in it is durable.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn complete(&self, text: &str) -> io::Result<()> {
        let new = self.path.join(INCOMPLETE_BACKUP);
        let mut file = private_files::create(&new)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        // The rename ends the mark of an incomplete backup, so that everything else is durable before it.
        std::fs::rename(&new, self.path.join(FILE))?;
        sync(&self.path)
    }

    /// Removes everything that the backup has written, the mark last. What cannot be removed is logged, and stays
    /// marked as incomplete.
    pub(crate) fn remove(&self) {
        if let Err(error) = self.try_remove() {
            let path = self.path.display();
            tracing::warn!(%path, %error, "what was written of a backup cannot be removed");
        }
    }

    fn try_remove(&self) -> io::Result<()> {
        let unless_gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        };
        for name in DIRECTORIES {
            unless_gone(std::fs::remove_dir_all(self.path.join(name)))?;
        }
        for name in FILES {
            unless_gone(std::fs::remove_file(self.path.join(name)))?;
        }
        if self.is_created { std::fs::remove_dir(&self.path) } else { Ok(()) }
    }
}

/// The sentence about a directory that the sandbox of the service takes away.
fn unusable(found: &Confinement) -> String {
    format!("{found}; the packaged service may write in {PERMITTED}")
}

/// Refuses a disk with fewer than `free_min` free bytes, for which publishers would be blocked.
///
/// # Errors
/// A sentence for the operator.
pub(crate) fn check_free(directory: &Path, free_min: u64) -> Result<(), String> {
    match free_bytes(directory) {
        Some(free) if free < free_min => Err(format!(
            "the disk of {} has {free} bytes free, fewer than disk_free_limit, which is {free_min}",
            directory.display()
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_refused_with_a_sentence() {
        let folder = std::env::temp_dir().join(format!("leveret-backup-{}", std::process::id()));
        let data_dir = folder.join("data");
        std::fs::create_dir_all(data_dir.join("vhosts")).unwrap();
        std::os::unix::fs::symlink(&data_dir, folder.join("link")).unwrap();
        std::fs::write(folder.join("file"), "").unwrap();
        let refused =
            |path: &Path, free_min| BackupTarget::open(path, &data_dir, free_min).unwrap_err();
        for (path, sentence) in [
            (PathBuf::from("relative"), "not an absolute path"),
            (PathBuf::from("/"), "cannot be the directory"),
            (folder.join("missing/backup"), "No such file"),
            (folder.join("file"), "cannot be read"),
            (data_dir.clone(), "inside the data directory"),
            (data_dir.join("backup"), "inside the data directory"),
            (folder.join("link"), "inside the data directory"),
            (folder.join("link/backup"), "inside the data directory"),
            (folder.clone(), "is not empty"),
        ] {
            let said = refused(&path, 0);
            assert!(said.contains(sentence), "{}: {said}", path.display());
        }
        assert!(refused(&folder.join("backup"), u64::MAX).contains("disk_free_limit"));
        assert!(!folder.join("backup").exists());
        let target = BackupTarget::open(&folder.join("backup"), &data_dir, 0).unwrap();
        assert!(refused(&target.path, 0).contains("was not completed"));
        target.remove();
        assert!(!folder.join("backup").exists());
        std::fs::create_dir(folder.join("empty")).unwrap();
        let target = BackupTarget::open(&folder.join("empty"), &data_dir, 0).unwrap();
        target.complete("{}").unwrap();
        assert!(refused(&target.path, 0).contains("is not empty"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
