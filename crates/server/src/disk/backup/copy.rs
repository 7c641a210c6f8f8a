//! Files of the data directory on their way into a backup: linked where the file system can, copied at a bounded rate
//! where it cannot.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use storage::limits::SNAPSHOT_COPY_BYTES;
use storage::{LogSnapshot, RealDirectory, SnapshotCopy};

use crate::disk::access::about;
use crate::disk::backup::target::check_free;
use crate::disk::private_files::{self, sync};
use crate::limits::BACKUP_COPY_PAUSE;

/// Files and bytes of a backup so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CopyCounts {
    pub(crate) files_linked: u64,
    pub(crate) bytes_linked: u64,
    pub(crate) bytes_copied: u64,
}

/// Links and copies files.
pub(crate) struct Copier<'a> {
    pub(crate) is_cancelled: &'a AtomicBool,
    /// Receives the counts after each step.
    pub(crate) progress: &'a mut dyn FnMut(CopyCounts),
    /// The directory of the backup, and the free bytes that its disk must keep.
    pub(crate) target: &'a Path,
    pub(crate) free_min: u64,
    pub(crate) counts: CopyCounts,
}

impl Copier<'_> {
    /// Writes the log of a vhost into a new directory, durably.
    ///
    /// # Errors
    /// The system's error, or that the backup was cancelled or needs too much room.
    pub(crate) fn log(
        &mut self,
        snapshot: &LogSnapshot<RealDirectory>,
        from: &Path,
        to: &Path,
    ) -> io::Result<()> {
        private_files::create_dir(to).map_err(about(to))?;
        let target = RealDirectory::open(to).map_err(about(to))?;
        snapshot.write_to(&target, &mut LogFiles { copier: self, from, to })
    }

    /// Copies the files of a directory whose names end with `suffix`, durably. A file that is gone meanwhile, and a
    /// directory that is missing, are left out.
    ///
    /// # Errors
    /// As [`Copier::log`].
    pub(crate) fn directory(&mut self, from: &Path, to: &Path, suffix: &str) -> io::Result<()> {
        let entries = match std::fs::read_dir(from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(about(from))?,
        };
        private_files::create_dir(to).map_err(about(to))?;
        for entry in entries {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| name.ends_with(suffix)) {
                self.file(&from.join(&name), &to.join(&name))?;
            }
        }
        sync(to).map_err(about(to))
    }

    /// Copies a file, which may grow or be replaced meanwhile; none if it is missing.
    ///
    /// # Errors
    /// As [`Copier::log`].
    pub(crate) fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        match std::fs::metadata(from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            found => match self.copy(from, to, found?.len()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !from.exists() => Ok(()),
                copied => copied,
            },
        }
    }

    /// Copies the first `bytes` bytes of a file, piece by piece.
    fn copy(&mut self, from: &Path, to: &Path, bytes: u64) -> io::Result<()> {
        let (at_from, at_to) = (about(from), about(to));
        let mut from = File::open(from).map_err(&at_from)?;
        let mut to = private_files::create(to).map_err(&at_to)?;
        let mut left = bytes;
        let mut piece = Vec::with_capacity(SNAPSHOT_COPY_BYTES);
        while left > 0 {
            piece.clear();
            let wanted = left.min(SNAPSHOT_COPY_BYTES as u64);
            let count = (&mut from).take(wanted).read_to_end(&mut piece).map_err(&at_from)? as u64;
            if count == 0 {
                break;
            }
            to.write_all(&piece).and_then(|()| to.sync_data()).map_err(&at_to)?;
            left -= count;
            self.copied(count)?;
        }
        to.sync_all().map_err(&at_to)
    }

    /// Notes a step, and gives up if the backup is cancelled.
    fn step(&mut self) -> io::Result<()> {
        (self.progress)(self.counts);
        match self.is_cancelled.load(Ordering::Acquire) {
            true => Err(io::Error::other("the backup was cancelled")),
            false => Ok(()),
        }
    }

    /// Notes copied bytes, and leaves the disk to others for a moment.
    fn copied(&mut self, bytes: u64) -> io::Result<()> {
        self.counts.bytes_copied += bytes;
        self.step()?;
        std::thread::sleep(BACKUP_COPY_PAUSE);
        check_free(self.target, self.free_min).map_err(io::Error::other)
    }
}

/// The files of a log, linked or copied from its directory.
struct LogFiles<'a, 'b> {
    copier: &'a mut Copier<'b>,
    from: &'a Path,
    to: &'a Path,
}

impl SnapshotCopy for LogFiles<'_, '_> {
    fn link(&mut self, name: &str, bytes: u64) -> io::Result<()> {
        let (from, to) = (self.from.join(name), self.to.join(name));
        match std::fs::hard_link(&from, &to) {
            Ok(()) => {
                self.copier.counts.files_linked += 1;
                self.copier.counts.bytes_linked += bytes;
                self.copier.step()
            }
            Err(error) if cannot_link(&error) => self.copier.copy(&from, &to, bytes),
            Err(error) => Err(about(&to)(error)),
        }
    }

    fn copied(&mut self, bytes: u64) -> io::Result<()> {
        self.copier.copied(bytes)
    }
}

/// True if another file system, or one without links, is no fault of the file.
fn cannot_link(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_copy_names_the_file() {
        let folder =
            std::env::temp_dir().join(format!("leveret-backup-copy-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("from.json")).unwrap();
        let mut copier = Copier {
            is_cancelled: &AtomicBool::new(false),
            progress: &mut |_| {},
            target: &folder,
            free_min: 0,
            counts: CopyCounts::default(),
        };
        let (from, to) = (folder.join("from.json"), folder.join("missing/to.json"));
        let refused = copier.file(&from, &to).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("{}: No such", to.display())), "{refused}");
        let refused = copier.file(&from, &folder.join("to.json")).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("{}: Is a directory", from.display())), "{refused}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
