//! The data directory: there, writable, and ours alone.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A data directory that this process holds.
#[derive(Debug)]
pub(crate) struct DataDir {
    /// The lock goes with the file.
    _lock: File,
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
    /// Makes the directory if there is none and takes its lock.
    pub(crate) fn open(path: &Path) -> Result<Self, DataDirError> {
        let owned = || path.to_owned();
        make(path).map_err(|error| DataDirError::Make { path: owned(), error })?;
        let lock = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path.join("lock"))
            .map_err(|error| DataDirError::Write { path: owned(), error })?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse { path: owned() }),
            Err(TryLockError::Error(error)) => Err(DataDirError::Write { path: owned(), error }),
        }
    }
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
    std::fs::create_dir(path)?;
    File::open(parent)?.sync_all()
}
