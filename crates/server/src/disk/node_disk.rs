//! The data directory in the hands of a node.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Durability;
use crate::disk::data_dir::{DataDir, DataDirError};
use crate::disk::reserve::Reserve;
use crate::disk::{private_files, reset, vhost_files};

/// The data directory of a node, locked for this process.
#[derive(Debug)]
pub(crate) struct NodeDisk {
    pub(crate) data_dir: PathBuf,
    pub(crate) lock: DataDir,
    pub(crate) reserve: Arc<Reserve>,
    pub(crate) durability: Durability,
}

/// The reason why a data directory cannot be used.
#[derive(Debug)]
pub(crate) enum NodeDiskError {
    DataDir(DataDirError),
    /// A reset cannot be finished.
    Reset(io::Error),
}

impl NodeDisk {
    /// Locks a data directory for this process, finishes a reset that was interrupted, and makes room:
    /// everything that a start does next writes a little.
    ///
    /// # Errors
    /// When another process has the directory, or the disk refuses.
    pub(crate) fn open(data_dir: &Path, durability: Durability) -> Result<Self, NodeDiskError> {
        let lock = DataDir::open(data_dir).map_err(NodeDiskError::DataDir)?;
        private_files::tighten(data_dir);
        reset::finish(data_dir).map_err(NodeDiskError::Reset)?;
        vhost_files::remove_stale_pages(data_dir);
        let reserve = Arc::new(Reserve::open(data_dir));
        Ok(Self { data_dir: data_dir.to_owned(), lock, reserve, durability })
    }
}
