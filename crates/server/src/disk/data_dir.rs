//! The data directory: there, writable, and ours alone.
//!
//! The directory itself is locked, which nobody can remove, and a file in it, which programs look at
//! that know no better. A file that is removed is made again.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::disk::private_files::{FILE_MODE, create_dir};

const LOCK: &str = "lock";

/// A data directory that this process holds.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    /// The locks go with the files.
    directory: File,
    lock: Mutex<File>,
}

/// Why a data directory cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum DataDirError {
    #[error("cannot make data directory {path}: {error}")]
    Make { path: PathBuf, error: io::Error },
    #[error("cannot write in data directory {path}: {error}")]
    Write { path: PathBuf, error: io::Error },
    #[error("data directory {path} is in use by another process")]
    InUse { path: PathBuf },
}

impl DataDir {
    /// Makes the directory if there is none and takes its locks.
    pub(crate) fn open(path: &Path) -> Result<Self, DataDirError> {
        let owned = || path.to_owned();
        let unusable = |error| DataDirError::Write { path: owned(), error };
        make(path).map_err(|error| DataDirError::Make { path: owned(), error })?;
        let directory = File::open(path).map_err(unusable)?;
        match directory.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DataDirError::InUse { path: owned() }),
            // Some file systems of networks lock files only.
            Err(TryLockError::Error(error)) => tracing::warn!(
                %error,
                "this file system cannot lock a directory: a second broker is kept out by the file \
                 {LOCK} alone"
            ),
        }
        let lock = open_lock(path).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: owned(), directory, lock: Mutex::new(lock) }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse { path: owned() }),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }

    /// Whether the directory is still where it was: if it was moved, another one may be in its place. A
    /// lock that was removed or replaced is made again.
    pub(crate) fn is_there(&self) -> bool {
        if !is_same(&self.path, &self.directory) {
            return false;
        }
        let mut lock = self.lock.lock();
        let path = self.path.join(LOCK);
        if !is_same(&path, &lock) {
            match open_lock(&self.path).map(|new| (new.try_lock(), new)) {
                Ok((Ok(()), new)) => {
                    *lock = new;
                    tracing::warn!(path = %path.display(), "the lock was removed; it is made again");
                }
                // It is tried again with the next look.
                Ok((Err(error), _)) => tracing::error!(%error, "somebody else holds {LOCK}"),
                Err(error) => {
                    tracing::error!(%error, "{LOCK} was removed and cannot be made again")
                }
            }
        }
        true
    }
}

fn open_lock(data_dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).mode(FILE_MODE).open(data_dir.join(LOCK))
}

/// Whether what is at `path` is this open file.
fn is_same(path: &Path, open: &File) -> bool {
    let of_path = std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    let of_open = open.metadata().map(|found| (found.dev(), found.ino()));
    matches!((of_path, of_open), (Ok(path), Ok(open)) if path == open)
}

/// Makes a directory that is missing, and all above it, durably.
fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    make(parent)?;
    create_dir(path)?;
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("leveret-data-dir-{name}-{}", std::process::id()))
    }

    #[test]
    fn nobody_else_gets_in_whatever_becomes_of_the_lock() {
        let folder = folder("lock");
        let held = DataDir::open(&folder).unwrap();
        let lock = folder.join(LOCK);
        let refused = |what| {
            let second = DataDir::open(&folder);
            assert!(matches!(second, Err(DataDirError::InUse { .. })), "{what}: {second:?}");
        };
        refused("as it is");
        std::fs::remove_file(&lock).unwrap();
        refused("removed");
        assert!(held.is_there() && lock.exists());
        std::fs::remove_file(&lock).unwrap();
        std::fs::write(&lock, "another").unwrap();
        refused("replaced");
        assert!(held.is_there());
        // A program that knows of the file alone.
        assert!(open_lock(&folder).unwrap().try_lock().is_err());
        drop(held);
        DataDir::open(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_directory_that_was_moved_is_seen() {
        let (folder, aside) = (folder("moved"), folder("aside"));
        let held = DataDir::open(&folder).unwrap();
        std::fs::rename(&folder, &aside).unwrap();
        assert!(!held.is_there());
        let second = DataDir::open(&folder).unwrap();
        assert!(!held.is_there() && second.is_there());
        for folder in [folder, aside] {
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
