//! The data directory: created, writable, and locked against other brokers.
//!
//! The directory itself is locked, because a lock on it cannot be removed, and so is a file in it, for
//! programs that check only the file. A removed lock file is recreated.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::disk::private_files::{FILE_MODE, create_dir};

const LOCK: &str = "lock";

/// A data directory locked by this process.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    /// Holds the lock on the directory, which ends with the file.
    directory: File,
    lock: Mutex<File>,
}

/// The reason why a data directory cannot be used.
#[derive(thiserror::Error, Debug)]
pub(crate) enum DataDirError {
    #[error("cannot make data directory {path}: {error}")]
    Make { path: PathBuf, error: io::Error },
    #[error("cannot read data directory {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    #[error("cannot write {path} in the data directory: {error}")]
    Write { path: PathBuf, error: io::Error },
    #[error("data directory {path} is in use by another process")]
    InUse { path: PathBuf },
}

impl DataDir {
    /// Creates the directory if missing, and takes its locks.
    pub(crate) fn open(path: &Path) -> Result<Self, DataDirError> {
        let owned = || path.to_owned();
        let unusable = |error| DataDirError::Write { path: path.join(LOCK), error };
        make(path).map_err(|error| DataDirError::Make { path: owned(), error })?;
        let directory =
            File::open(path).map_err(|error| DataDirError::Read { path: owned(), error })?;
        match directory.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DataDirError::InUse { path: owned() }),
            // Some network file systems can lock only files.
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

    /// True if the directory is still in place: if it was moved, another one may have taken its place.
    /// Recreates a lock file that was removed or replaced.
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
                // The next check tries again.
                Ok((Err(error), _)) => tracing::error!(%error, "another process holds {LOCK}"),
                Err(error) => {
                    tracing::error!(%error, "{LOCK} was removed and cannot be made again")
                }
            }
        }
        true
    }
}

/// A data directory that is read: as long as this exists, no broker uses it. Nothing in it is written, made or touched.
#[derive(Debug)]
pub(crate) struct IdleDataDir {
    /// Hold the locks, which end with the files; no lock file if there is none.
    _directory: File,
    _lock: Option<File>,
}

impl IdleDataDir {
    /// Takes the locks of a directory that exists, beside others who read it.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] if a broker has them, [`DataDirError::Read`] if they cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self, DataDirError> {
        let read = |path: &Path| {
            File::open(path).map_err(|error| DataDirError::Read { path: path.to_owned(), error })
        };
        let in_use = || DataDirError::InUse { path: path.to_owned() };
        let directory = read(path)?;
        if matches!(directory.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return Err(in_use());
        }
        let lock = match read(&path.join(LOCK)) {
            Ok(lock) => Some(lock),
            // A directory that no broker uses needs none.
            Err(DataDirError::Read { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                None
            }
            Err(error) => return Err(error),
        };
        match lock.as_ref().map(File::try_lock_shared) {
            Some(Err(TryLockError::WouldBlock)) => Err(in_use()),
            // Where nothing can be locked, no broker runs.
            None | Some(Ok(()) | Err(TryLockError::Error(_))) => {
                Ok(Self { _directory: directory, _lock: lock })
            }
        }
    }
}

fn open_lock(data_dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).mode(FILE_MODE).open(data_dir.join(LOCK))
}

/// True if `path` refers to this open file.
fn is_same(path: &Path, open: &File) -> bool {
    let of_path = std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    let of_open = open.metadata().map(|found| (found.dev(), found.ino()));
    matches!((of_path, of_open), (Ok(path), Ok(open)) if path == open)
}

/// Creates a directory with all missing parents, durably.
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
    fn data_dir_refuses_others_even_without_its_lock_file() {
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
        // A program that checks only the file.
        assert!(open_lock(&folder).unwrap().try_lock().is_err());
        drop(held);
        DataDir::open(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn idle_data_dir_is_read_without_a_trace_and_not_beside_a_broker() {
        let folder = folder("idle");
        std::fs::create_dir_all(&folder).unwrap();
        let idle = IdleDataDir::open(&folder).unwrap();
        let second = IdleDataDir::open(&folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        assert!(matches!(DataDir::open(&folder), Err(DataDirError::InUse { .. })));
        drop((idle, second));
        let held = DataDir::open(&folder).unwrap();
        let in_use = |what| {
            let idle = IdleDataDir::open(&folder);
            assert!(matches!(idle, Err(DataDirError::InUse { .. })), "{what}: {idle:?}");
        };
        in_use("as it is");
        std::fs::remove_file(folder.join(LOCK)).unwrap();
        in_use("removed");
        drop(held);
        // A broker where only files can be locked.
        let lock = open_lock(&folder).unwrap();
        lock.try_lock().unwrap();
        in_use("the file alone");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn is_there_notices_a_moved_directory() {
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
