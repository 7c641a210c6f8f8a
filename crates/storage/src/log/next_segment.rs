//! The segment after the active one, created in advance: its size, and writing the zeros.

use std::io;
use std::sync::Arc;

use super::options::LogOptions;
use crate::directory::{Directory, DirectoryFile, is_full, with_room};
use crate::limits::SEGMENT_BYTES_ON_FULL_DISK;
use crate::manifest::file_name;

/// State of the segment after the active one.
#[derive(Debug)]
pub(super) enum NextSegment<F> {
    /// Not needed yet.
    None,
    /// Another thread is creating it.
    Preparing,
    /// Creating it in advance has failed. It is created when it is needed; on a full disk more attempts
    /// would only cost time.
    Failed,
    /// Created, not in use.
    Ready(Preallocated<F>),
}

/// A file of zeros that is not in use yet.
#[derive(Debug)]
pub(super) struct Preallocated<F> {
    pub(super) file: Arc<F>,
    pub(super) id: u64,
    /// Size of the file, in bytes.
    pub(super) capacity: u64,
}

/// Sizes that a new segment may have, in bytes: the first one for which the disk has room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    wanted: u64,
    /// Smallest size of a segment that is created in advance.
    least: u64,
    /// Smallest size of a segment without which the log cannot continue.
    needed: u64,
}

impl Capacity {
    /// Capacity for a log that uses `total` bytes, whose next batch and header take `needed` bytes.
    pub(super) fn new(options: &LogOptions, total: u64, needed: u64) -> Self {
        let wanted = (total / 4).clamp(options.segment_bytes_min, options.segment_bytes_max);
        let least = options.segment_bytes_min;
        let in_blocks = |bytes: u64| bytes.max(needed).next_multiple_of(4096);
        Self {
            wanted: in_blocks(wanted),
            least: in_blocks(least),
            needed: in_blocks(least.min(SEGMENT_BYTES_ON_FULL_DISK)),
        }
    }
}

/// Background work: creating the next segment of a log.
#[derive(Debug)]
pub struct Preparation<D> {
    pub(super) directory: Arc<D>,
    pub(super) id: u64,
    pub(super) capacity: Capacity,
}

/// A segment that is ready to be used; see [`Log::install_next_segment`](super::Log).
#[derive(Debug)]
pub struct Prepared<D: Directory>(pub(super) Preallocated<D::File>);

impl<D: Directory> Preparation<D> {
    /// Creates the segment.
    ///
    /// # Errors
    /// The system's error, for example because the disk is full.
    pub fn run(self) -> io::Result<Prepared<D>> {
        preallocate(&*self.directory, self.id, self.capacity).map(Prepared)
    }
}

/// Creates a segment of the wanted size, or of the least size if the disk has no room for that.
fn preallocate<D: Directory>(
    directory: &D,
    id: u64,
    capacity: Capacity,
) -> io::Result<Preallocated<D::File>> {
    let Capacity { wanted, least, .. } = capacity;
    let created = match create_zeroed(directory, id, wanted) {
        Err(error) if is_full(&error) && least < wanted => {
            create_zeroed(directory, id, least).map(|file| (file, least))
        }
        created => created.map(|file| (file, wanted)),
    };
    created.map(|(file, capacity)| Preallocated { file: Arc::new(file), id, capacity })
}

/// Creates a segment without which the log cannot continue. On a full disk it is as small as possible,
/// and takes the reserved room.
pub(super) fn preallocate_needed<D: Directory>(
    directory: &D,
    id: u64,
    capacity: Capacity,
) -> io::Result<Preallocated<D::File>> {
    match preallocate(directory, id, capacity) {
        Err(error) if is_full(&error) => {
            let Capacity { needed, .. } = capacity;
            let file = with_room(directory, || create_zeroed(directory, id, needed))?;
            Ok(Preallocated { file: Arc::new(file), id, capacity: needed })
        }
        created => created,
    }
}

/// Creates a file of zeros. Leaves no file behind if that fails.
fn create_zeroed<D: Directory>(directory: &D, id: u64, capacity: u64) -> io::Result<D::File> {
    let name = file_name(id);
    let file = directory.create(&name)?;
    write_zeros(&file, capacity).inspect_err(|_| {
        // Half a file would only take room. If it cannot be removed now, the next opening removes it.
        let _ = directory.remove(&name);
    })?;
    Ok(file)
}

/// Writes zeros and syncs them: overwriting is several times cheaper for the disk than growing a file.
fn write_zeros<F: DirectoryFile>(file: &F, capacity: u64) -> io::Result<()> {
    let zeros = vec![0; 256 * 1024];
    let mut at = 0;
    while at < capacity {
        let len = (capacity - at).min(zeros.len() as u64);
        let part = usize::try_from(len).unwrap_or(zeros.len());
        file.write_at(zeros.get(..part).unwrap_or(&zeros), at)?;
        at += len;
    }
    file.sync()
}
