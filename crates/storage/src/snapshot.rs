//! Snapshots: the files of a log at one position, for a backup while the log is written.
//!
//! Sealed files never change, so that a backup may link them. Of the active segment, the bytes up to the end of the
//! last batch never change either: they are copied. Nothing is rolled or synced for a snapshot. The copy of the
//! active segment stays unsealed in the manifest of the backup: whoever opens the backup recovers it as after a
//! crash at this position, and truncates only the copy.
//!
//! While a snapshot exists, compactions leave the files in place that they have replaced.

use std::io;
use std::sync::{Arc, Mutex};

use crate::directory::{Directory, DirectoryFile};
use crate::format::Lsn;
use crate::limits::SNAPSHOT_COPY_BYTES;
use crate::log::{Log, Shared, lock};
use crate::manifest::{Manifest, StoreError, file_name};

/// The active segment at the time of a snapshot.
#[derive(Debug)]
struct ActiveCopy<F> {
    file: Arc<F>,
    id: u64,
    /// Bytes in use.
    bytes: u64,
}

/// The files of a log at one position. They are not removed before the snapshot is dropped.
#[derive(Debug)]
pub struct LogSnapshot<D: Directory> {
    directory: Arc<D>,
    shared: Arc<Mutex<Shared<D::File>>>,
    manifest: Manifest,
    active: ActiveCopy<D::File>,
    position: Lsn,
}

/// Steps of writing a snapshot that are not the log's own.
pub trait SnapshotCopy {
    /// Links the sealed file `name` of the log's directory, of which `bytes` bytes are in use, into the target.
    ///
    /// # Errors
    /// The system's error, or another reason to give up.
    fn link(&mut self, name: &str, bytes: u64) -> io::Result<()>;

    /// Notes that `bytes` bytes were copied and synced; called after at most [`SNAPSHOT_COPY_BYTES`].
    ///
    /// # Errors
    /// A reason to give up.
    fn copied(&mut self, bytes: u64) -> io::Result<()>;
}

impl<D: Directory> Log<D> {
    /// The files of the log as they are now, between two batches. Takes no access to the disk.
    ///
    /// Every record that was confirmed is in the snapshot, because nothing is confirmed that is not written.
    #[must_use]
    pub fn snapshot(&self) -> LogSnapshot<D> {
        let (file, id, bytes) = self.active();
        let mut shared = lock(self.shared());
        shared.snapshots += 1;
        let (manifest, position) = (shared.manifest.clone(), shared.written);
        drop(shared);
        let last = manifest.files.last().map(|file| file.id);
        assert_eq!(last, Some(id), "the active segment is listed last");
        LogSnapshot {
            directory: Arc::clone(self.directory()),
            shared: Arc::clone(self.shared()),
            manifest,
            active: ActiveCopy { file: Arc::clone(file), id, bytes },
            position,
        }
    }
}

impl<D: Directory> LogSnapshot<D> {
    /// Position of the last record.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Number of files without the manifest.
    #[must_use]
    pub fn files(&self) -> usize {
        self.manifest.files.len()
    }

    /// Bytes in use of all files without the manifest.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum::<u64>() + self.active.bytes
    }

    /// Writes the snapshot into an empty directory, durably: sealed files by `copy`, then the active segment, then
    /// the manifest. Without the manifest the directory holds no log.
    ///
    /// # Errors
    /// Errors of the system and of `copy`; the target is incomplete then.
    pub fn write_to<T: Directory>(
        &self,
        target: &T,
        copy: &mut dyn SnapshotCopy,
    ) -> io::Result<()> {
        for file in self.manifest.files.iter().filter(|file| file.is_sealed()) {
            copy.link(&file.name(), file.bytes)?;
        }
        let to = target.create(&file_name(self.active.id))?;
        let mut bytes = vec![0; SNAPSHOT_COPY_BYTES];
        let mut at = 0;
        while at < self.active.bytes {
            let wanted = usize::try_from(self.active.bytes - at).unwrap_or(usize::MAX);
            let piece = bytes.get_mut(..wanted.min(SNAPSHOT_COPY_BYTES)).unwrap_or_default();
            if self.active.file.read_at(piece, at)? != piece.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            to.write_at(piece, at)?;
            to.sync()?;
            at += piece.len() as u64;
            copy.copied(piece.len() as u64)?;
        }
        // The names of the files are durable before the manifest lists them.
        target.sync()?;
        self.manifest.store(target).map_err(StoreError::into_io)
    }
}

impl<D: Directory> Drop for LogSnapshot<D> {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.snapshots -= 1;
        if shared.snapshots > 0 {
            return;
        }
        let replaced = std::mem::take(&mut shared.replaced);
        drop(shared);
        for name in replaced {
            // If it cannot be removed now, the next opening does it.
            let _ = self.directory.remove(&name);
        }
    }
}
