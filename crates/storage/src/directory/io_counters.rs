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
    fn add(&self, bytes: u64, began: Instant) {
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
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

/// Counters of reads, writes and syncs, shared by directories.
#[derive(Default, Debug)]
pub struct IoCounters {
    reads: Counter,
    writes: Counter,
    syncs: Counter,
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
        self.syncs.add(0, began);
        result
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
    }
}
