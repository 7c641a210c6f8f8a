//! Disk reserve: a file without meaning that reserves disk space and is removed when the disk is full.
//!
//! A full disk must not prevent the broker from starting, nor consumers, purges and deletions from freeing
//! space: all of them write a little before anything is removed. Publishers are blocked long before
//! (`disk_free_limit`), so that they do not use up the reserve. The file is created again when there is room.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use crate::limits::{RESERVE_BYTES_MAX, RESERVE_DISK_SHARE};

const NAME: &str = "reserve";

/// The state of the reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The file exists.
    Kept,
    /// The space is free for the log, or there never was any.
    Released,
}

/// The reserve of a data directory.
#[derive(Debug)]
pub(crate) struct Reserve {
    data_dir: PathBuf,
    /// The size, in bytes.
    bytes: u64,
    state: Mutex<State>,
}

impl Reserve {
    /// Creates the reserve of a data directory, or releases it at once if the disk is full.
    pub(crate) fn open(data_dir: &Path) -> Self {
        let total = statvfs(data_dir).map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        let share = total.unwrap_or(u64::MAX) / RESERVE_DISK_SHARE;
        let path = data_dir.join(NAME);
        let bytes = share.min(RESERVE_BYTES_MAX);
        let is_there = std::fs::metadata(&path).is_ok_and(|file| file.len() >= bytes);
        let state = if is_there { State::Kept } else { State::Released };
        let reserve = Self { data_dir: data_dir.to_owned(), bytes, state: Mutex::new(state) };
        reserve.tend();
        reserve
    }

    /// The size, in bytes.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Releases the space for all writes below `data_dir`; false if there was no reserve.
    pub(crate) fn release(&self) -> bool {
        let mut state = self.state.lock();
        if *state == State::Released {
            return false;
        }
        let removed = std::fs::remove_file(self.data_dir.join(NAME))
            .and_then(|()| File::open(&self.data_dir)?.sync_all());
        match removed {
            Ok(()) => {
                tracing::warn!(
                    bytes = self.bytes,
                    "the disk is full: reserve released to deletions and acknowledgements"
                );
                *state = State::Released;
                true
            }
            Err(error) => {
                tracing::error!(%error, "the disk is full, and the reserve cannot be removed");
                false
            }
        }
    }

    /// Releases the reserve when hardly any other space is free, and creates it again when there is room.
    pub(crate) fn tend(&self) {
        let Some(free) = self.free_bytes() else { return };
        if free < self.bytes / 4 {
            self.release();
            return;
        }
        let mut state = self.state.lock();
        // So much must be free that the reserve is not released again at once.
        if *state == State::Kept || free < self.bytes.saturating_mul(3) {
            return;
        }
        match self.make() {
            Ok(()) => {
                *state = State::Kept;
                tracing::debug!(bytes = self.bytes, "room on the disk is reserved");
            }
            Err(error) => {
                tracing::warn!(%error, bytes = self.bytes, "cannot reserve room on the disk");
                // A partial file would only take space; if this fails, the next start overwrites it.
                let _ = std::fs::remove_file(self.data_dir.join(NAME));
            }
        }
    }

    /// True if there is room for data that can also stay in memory.
    pub(crate) fn leaves_room(&self) -> bool {
        let needed = match *self.state.lock() {
            // So much that the reserve is not released.
            State::Kept => self.bytes / 2,
            State::Released => self.bytes.saturating_mul(2),
        };
        self.free_bytes().is_none_or(|free| free >= needed)
    }

    /// True if publishers must be blocked at this much free space, at any limit: the reserve is
    /// released, and the rest of it is not for publishers.
    pub(crate) fn is_used_up_at(&self, free: u64) -> bool {
        free < self.bytes && *self.state.lock() == State::Released
    }

    fn free_bytes(&self) -> Option<u64> {
        crate::disk::free_space::free_bytes(&self.data_dir)
    }

    fn make(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.create(true).write(true).truncate(true).mode(0o600);
        let file = options.open(self.data_dir.join(NAME))?;
        match fallocate(&file, FallocateFlags::empty(), 0, self.bytes) {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.fill(&file)?,
            Err(error) => return Err(error.into()),
        }
        file.sync_all()?;
        File::open(&self.data_dir)?.sync_all()
    }

    /// Writes zeros, for file systems that cannot reserve space otherwise.
    fn fill(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::FileExt as _;
        let zeros = vec![0; 64 * 1024];
        let mut at = 0;
        while at < self.bytes {
            let len = usize::try_from(self.bytes - at).unwrap_or(zeros.len()).min(zeros.len());
            file.write_all_at(&zeros[..len], at)?;
            at += len as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_is_there_until_released() {
        let folder = std::env::temp_dir().join(format!("leveret-reserve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let reserve = Reserve::open(&folder);
        let path = folder.join(NAME);
        assert_eq!(path.metadata().unwrap().len(), reserve.bytes());
        assert!(reserve.bytes() <= RESERVE_BYTES_MAX && reserve.leaves_room());
        assert!(!reserve.is_used_up_at(0));
        assert!(reserve.release() && !path.exists());
        assert!(reserve.is_used_up_at(1) && !reserve.is_used_up_at(reserve.bytes()));
        assert!(!reserve.release(), "released once");
        reserve.tend();
        assert!(path.exists(), "made again, for there is room");
        drop(reserve);
        assert!(Reserve::open(&folder).release());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
