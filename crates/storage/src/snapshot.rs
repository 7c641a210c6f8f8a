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
use crate::log::{Log, LogEnd, Segments, Shared, lock};
use crate::manifest::{Manifest, StoreError, file_name};
use crate::replicated::{Slot, store_slot};

/// The active segment at the time of a snapshot.
#[derive(Debug)]
struct ActiveCopy<F> {
    file: Arc<F>,
    id: u64,
    /// Bytes in use.
    bytes: u64,
}

/// The files of a log at one position. They are not removed before the snapshot is dropped.
pub struct LogSnapshot<D: Directory> {
    directory: Arc<D>,
    shared: Arc<Mutex<Shared<D::File>>>,
    manifest: Manifest,
    /// The active segment; `None` if the snapshot ends before it.
    active: Option<ActiveCopy<D::File>>,
    position: Lsn,
    /// Hard state of a member.
    hard_state: Option<Slot>,
}

impl<D: Directory> std::fmt::Debug for LogSnapshot<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSnapshot").field("position", &self.position).finish_non_exhaustive()
    }
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
        let segments = self.segments();
        let mut shared = lock(&segments.shared);
        let (manifest, position) = (shared.manifest.clone(), shared.written);
        let last = manifest.files.last().map(|file| file.id);
        assert_eq!(last, Some(segments.active.id), "the active segment is listed last");
        LogSnapshot::new(segments, &mut shared, manifest, position, None)
    }
}

impl<D: Directory> LogSnapshot<D> {
    /// Holds the files of `manifest`, which may end before the active segment.
    pub(crate) fn new(
        segments: &Segments<D>,
        shared: &mut Shared<D::File>,
        manifest: Manifest,
        position: Lsn,
        hard_state: Option<Slot>,
    ) -> Self {
        shared.snapshots += 1;
        let active = &segments.active;
        let has_active = manifest.files.last().is_some_and(|last| last.id == active.id);
        let copy =
            ActiveCopy { file: Arc::clone(&active.file), id: active.id, bytes: active.offset };
        Self {
            directory: Arc::clone(&segments.directory),
            shared: Arc::clone(&segments.shared),
            manifest,
            active: has_active.then_some(copy),
            position,
            hard_state,
        }
    }

    /// The part of the snapshot up to the end of an entry, which is the last then.
    pub(crate) fn ending_at(mut self, end: LogEnd) -> Self {
        let LogEnd { dropped, sealed_at, first, before } = end;
        self.position = Lsn(first.0 - 1);
        let kept = self.manifest.files.len().saturating_sub(dropped);
        self.manifest.files.truncate(kept);
        self.manifest.group.commit = before.0;
        self.manifest.group.base = (before.0, before.1, self.position);
        let last = self.manifest.files.last_mut();
        let is_active =
            |active: &ActiveCopy<D::File>| last.as_ref().is_some_and(|last| last.id == active.id);
        self.active = self.active.take().filter(is_active);
        match (&mut self.active, last, sealed_at) {
            (Some(active), _, Some(bytes)) => active.bytes = bytes,
            (None, Some(last), Some(bytes)) => {
                last.end = first;
                last.bytes = bytes;
            }
            (_, _, None) | (_, None, _) => {}
        }
        self
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(crate) fn directory(&self) -> &Arc<D> {
        &self.directory
    }

    /// Bytes in use of the active segment; 0 if the snapshot ends before it.
    pub(crate) fn active_bytes(&self) -> u64 {
        self.active.as_ref().map_or(0, |active| active.bytes)
    }

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
        let sealed: u64 = self.manifest.files.iter().map(|file| file.bytes).sum();
        sealed + self.active_bytes()
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
        if let Some(active) = &self.active {
            copy_active(active, target, copy)?;
        }
        if let Some(slot) = &self.hard_state {
            store_slot(target, slot)?;
        }
        // The names of the files are durable before the manifest lists them.
        target.sync()?;
        self.manifest.store(target).map_err(StoreError::into_io)
    }
}

/// Copies the bytes in use of the active segment.
fn copy_active<F: DirectoryFile, T: Directory>(
    active: &ActiveCopy<F>,
    target: &T,
    copy: &mut dyn SnapshotCopy,
) -> io::Result<()> {
    let to = target.create(&file_name(active.id))?;
    let mut bytes = vec![0; SNAPSHOT_COPY_BYTES];
    let mut at = 0;
    while at < active.bytes {
        let wanted = usize::try_from(active.bytes - at).unwrap_or(usize::MAX);
        let piece = bytes.get_mut(..wanted.min(SNAPSHOT_COPY_BYTES)).unwrap_or_default();
        if active.file.read_at(piece, at)? != piece.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_at(piece, at)?;
        to.sync()?;
        at += piece.len() as u64;
        copy.copied(piece.len() as u64)?;
    }
    Ok(())
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
