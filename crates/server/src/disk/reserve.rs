//! Room on the disk that is always there: a file of octets that mean nothing, and go when the disk is full.
//!
//! A full disk must not keep the broker from starting, nor consumers, purges and deletions from giving
//! room back: all of them write a little before anything is removed. Publishers are blocked long before
//! (`disk_free_limit`), so that the reserve is left for them. It is made again when there is room.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use crate::limits::{RESERVE_BYTES_MAX, RESERVE_DISK_SHARE};

const NAME: &str = "reserve";

/// Where the reserve is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In its file.
    Kept,
    /// The room is free for the log, or there was none to begin with.
    Given,
}

/// The reserve of a data directory.
#[derive(Debug)]
pub(crate) struct Reserve {
    data_dir: PathBuf,
    /// Its size, in bytes.
    bytes: u64,
    state: Mutex<State>,
}

impl Reserve {
    /// Makes the reserve of a data directory, or gives it back at once if the disk is full.
    pub(crate) fn open(data_dir: &Path) -> Self {
        let total = statvfs(data_dir).map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        let share = total.unwrap_or(u64::MAX) / RESERVE_DISK_SHARE;
        let path = data_dir.join(NAME);
        let bytes = share.min(RESERVE_BYTES_MAX);
        let is_there = std::fs::metadata(&path).is_ok_and(|file| file.len() >= bytes);
        let state = if is_there { State::Kept } else { State::Given };
        let reserve = Self { data_dir: data_dir.to_owned(), bytes, state: Mutex::new(state) };
        reserve.tend();
        reserve
    }

    /// Its size, in bytes.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives the room back; false if there was none. Everybody who writes below `data_dir` has it then.
    pub(crate) fn give(&self) -> bool {
        let mut state = self.state.lock();
        if *state == State::Given {
            return false;
        }
        let removed = std::fs::remove_file(self.data_dir.join(NAME))
            .and_then(|()| File::open(&self.data_dir)?.sync_all());
        match removed {
            Ok(()) => {
                tracing::warn!(
                    bytes = self.bytes,
                    "the disk is full: the reserve is given to what makes room again"
                );
                *state = State::Given;
                true
            }
            Err(error) => {
                tracing::error!(%error, "the disk is full, and the reserve cannot be removed");
                false
            }
        }
    }

    /// Gives the reserve back when hardly anything else is free, and makes it again when there is room.
    pub(crate) fn tend(&self) {
        let Some(free) = self.free_bytes() else { return };
        if free < self.bytes / 4 {
            self.give();
            return;
        }
        let mut state = self.state.lock();
        // As much must be free behind it that it is not given back at once.
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
                // Half of it would only take room; the next start writes over it otherwise.
                let _ = std::fs::remove_file(self.data_dir.join(NAME));
            }
        }
    }

    /// Whether there is room for what can stay in memory as well, and need not be on the disk.
    pub(crate) fn leaves_room(&self) -> bool {
        let needed = match *self.state.lock() {
            // So much that it is not given.
            State::Kept => self.bytes / 2,
            State::Given => self.bytes.saturating_mul(2),
        };
        self.free_bytes().is_none_or(|free| free >= needed)
    }

    /// Whether publishers must be blocked when so many bytes are free, whatever the limit says: the
    /// reserve is given, and what is left of it is not for them.
    pub(crate) fn is_used_up_at(&self, free: u64) -> bool {
        free < self.bytes && *self.state.lock() == State::Given
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

    /// For file systems that cannot reserve room without writing to it.
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
    fn it_is_there_until_it_is_given() {
        let folder = std::env::temp_dir().join(format!("leveret-reserve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let reserve = Reserve::open(&folder);
        let path = folder.join(NAME);
        assert_eq!(path.metadata().unwrap().len(), reserve.bytes());
        assert!(reserve.bytes() <= RESERVE_BYTES_MAX && reserve.leaves_room());
        assert!(!reserve.is_used_up_at(0));
        assert!(reserve.give() && !path.exists());
        assert!(reserve.is_used_up_at(1) && !reserve.is_used_up_at(reserve.bytes()));
        assert!(!reserve.give(), "there is only one");
        reserve.tend();
        assert!(path.exists(), "there is room for it again");
        drop(reserve);
        assert!(Reserve::open(&folder).give());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
