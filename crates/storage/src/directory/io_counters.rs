//! Counters of operations on the disk, with their durations.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::traits::DirectoryFile;

/// Operations of one kind.
#[derive(Default, Debug)]
struct Counter {
    count: AtomicU64,
    bytes: AtomicU64,
    micros: AtomicU64,
}

impl Counter {
    /// Counts an operation. Returns its duration in microseconds.
    fn add(&self, bytes: u64, began: Instant) -> u64 {
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        micros
    }

    fn total(&self) -> IoTotal {
        IoTotal {
            count: self.count.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            micros: self.micros.load(Ordering::Relaxed),
        }
    }
}

/// Operations of one kind since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IoTotal {
    /// Number of operations.
    pub count: u64,
    /// Bytes read or written.
    pub bytes: u64,
    /// Sum of their durations, in microseconds.
    pub micros: u64,
}

/// Upper bounds of the counted durations of syncs, in microseconds: from a disk with a cache of its own to one that
/// hangs.
pub const SYNC_BOUNDS_US: [u64; 12] = [
    100, 500, 1_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    30_000_000,
];

/// Counters of reads, writes and syncs, shared by directories.
#[derive(Default, Debug)]
pub struct IoCounters {
    reads: Counter,
    writes: Counter,
    syncs: Counter,
    /// Syncs by duration: at most the bound at the index, and more than the one before.
    syncs_within: [AtomicU64; SYNC_BOUNDS_US.len()],
}

impl IoCounters {
    /// Reads so far.
    pub fn reads(&self) -> IoTotal {
        self.reads.total()
    }

    /// Writes so far.
    pub fn writes(&self) -> IoTotal {
        self.writes.total()
    }

    /// Syncs of files and directories so far.
    pub fn syncs(&self) -> IoTotal {
        self.syncs.total()
    }

    /// Syncs a file or directory, and counts it.
    pub(crate) fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let began = Instant::now();
        let result = sync();
        let micros = self.syncs.add(0, began);
        let bucket = SYNC_BOUNDS_US.iter().position(|bound| micros <= *bound);
        if let Some(count) = bucket.and_then(|at| self.syncs_within.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// For each of [`SYNC_BOUNDS_US`], the number of syncs so far that took at most as long.
    pub fn syncs_within(&self) -> [u64; SYNC_BOUNDS_US.len()] {
        let mut sum = 0;
        self.syncs_within.each_ref().map(|count| {
            sum += count.load(Ordering::Relaxed);
            sum
        })
    }
}

/// A file whose operations are counted.
#[derive(Debug)]
pub struct CountedFile {
    file: File,
    counters: Arc<IoCounters>,
}

impl CountedFile {
    pub(crate) fn new(file: File, counters: &Arc<IoCounters>) -> Self {
        Self { file, counters: Arc::clone(counters) }
    }
}

impl DirectoryFile for CountedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let began = Instant::now();
        let result = self.file.read_at(bytes, offset);
        self.counters.reads.add(result.as_ref().map_or(0, |read| *read as u64), began);
        result
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let began = Instant::now();
        let result = self.file.write_at(bytes, offset);
        self.counters.writes.add(bytes.len() as u64, began);
        result
    }

    fn sync(&self) -> io::Result<()> {
        self.counters.sync(|| DirectoryFile::sync(&self.file))
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{Directory as _, RealDirectory};

    #[test]
    fn reads_writes_and_syncs_are_counted_over_directories() {
        let path = std::env::temp_dir().join(format!("leveret-io-{}", std::process::id()));
        let counters = Arc::new(IoCounters::default());
        let directory = RealDirectory::open(&path).unwrap().with_counters(&counters);
        let file = directory.create("a").unwrap();
        file.write_at(b"12345", 0).unwrap();
        file.sync().unwrap();
        directory.sync().unwrap();
        assert_eq!(file.read_at(&mut [0; 8], 2).unwrap(), 3);
        std::fs::remove_dir_all(&path).unwrap();
        let of = |total: IoTotal| (total.count, total.bytes);
        assert_eq!(of(counters.writes()), (1, 5));
        assert_eq!(of(counters.reads()), (1, 3));
        assert_eq!(of(counters.syncs()), (2, 0));
        let within = counters.syncs_within();
        assert!(within.is_sorted() && within.last() == Some(&2), "{within:?}");
    }
}
