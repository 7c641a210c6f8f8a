//! The one door to the disk: a directory of flat files, as small as the log needs it.
//!
//! Everything the log does to a disk goes through here, so that a test can cut the power between any
//! two operations. A name is made by the log, never by a user.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A directory of files.
pub trait Directory: Send + Sync {
    /// Its files.
    type File: DirectoryFile;

    /// Makes a file that does not exist yet.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file that exists.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// The names of its files, in no order.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Gives a file another name; a file of that name is replaced.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all of the above durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&self) -> io::Result<()>;

    /// The disk is full: gives back room that was reserved for that, if there is any. True if what
    /// failed is worth another attempt.
    fn make_room(&self) -> bool {
        false
    }
}

/// Whether the disk has no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Does something that can be repeated; once more if the disk is full and room can be made.
pub(crate) fn with_room<D: Directory, T>(
    directory: &D,
    mut action: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    match action() {
        Err(error) if is_full(&error) && directory.make_room() => action(),
        result => result,
    }
}

/// A file of a directory.
pub trait DirectoryFile: Send + Sync {
    /// Reads as many octets as there are at `offset`, up to the length of `octets`.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, octets: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all octets at `offset`.
    ///
    /// # Errors
    /// What the system says.
    fn write_at(&self, octets: &[u8], offset: u64) -> io::Result<()>;

    /// Makes its octets and its length durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&self) -> io::Result<()>;

    /// Its size in octets.
    ///
    /// # Errors
    /// What the system says.
    fn size(&self) -> io::Result<u64>;

    /// Gives back what it has behind so many octets.
    ///
    /// # Errors
    /// What the system says.
    fn shorten(&self, bytes: u64) -> io::Result<()>;
}

/// Of new files and directories: bodies of messages are for their owner alone.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Gives back reserved room; true if there was any.
type MakeRoom = Box<dyn Fn() -> bool + Send + Sync>;

/// A directory of the file system.
pub struct RealDirectory {
    path: PathBuf,
    directory: File,
    make_room: Option<MakeRoom>,
}

impl fmt::Debug for RealDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealDirectory").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RealDirectory {
    /// Opens a directory, which is made if it is missing.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
            if let Some(parent) = path.parent() {
                File::open(parent)?.sync_all()?;
            }
        }
        Ok(Self { path: path.to_owned(), directory: File::open(path)?, make_room: None })
    }

    /// When the disk is full, `make_room` gives back reserved room; it says whether there was any.
    #[must_use]
    pub fn with_room(mut self, make_room: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.make_room = Some(Box::new(make_room));
        self
    }
}

impl Directory for RealDirectory {
    type File = File;

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(FILE_MODE);
        options.open(self.path.join(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn make_room(&self) -> bool {
        self.make_room.as_ref().is_some_and(|make_room| make_room())
    }
}

impl DirectoryFile for File {
    fn read_at(&self, octets: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = octets.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(self, rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, octets: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(octets, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn shorten(&self, bytes: u64) -> io::Result<()> {
        if self.metadata()?.len() > bytes { self.set_len(bytes) } else { Ok(()) }
    }
}
