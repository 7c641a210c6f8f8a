//! Operations of the log on a disk.
//!
//! All of them go through these traits, so that a test can cut the power between any two of them. File names come
//! from the log, never from a user.

use std::io;

/// A directory of files.
pub trait Directory: Send + Sync {
    /// A file of this directory.
    type File: DirectoryFile;

    /// Creates a file that does not exist yet.
    ///
    /// # Errors
    /// The system's error.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file that exists.
    ///
    /// # Errors
    /// The system's error.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Names of all files, in any order.
    ///
    /// # Errors
    /// The system's error.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Renames a file; an existing file `to` is replaced.
    ///
    /// # Errors
    /// The system's error.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The system's error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes created, renamed and removed files durable.
    ///
    /// # Errors
    /// The system's error.
    fn sync(&self) -> io::Result<()>;

    /// Frees room that was reserved for a full disk, if there is any. True if the failed operation is
    /// worth another attempt.
    fn make_room(&self) -> bool {
        false
    }
}

/// True if the disk has no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Performs an operation, and once more if the disk is full and room can be freed.
pub(crate) fn with_room<D: Directory, T>(
    directory: &D,
    mut action: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    match action() {
        Err(error) if is_full(&error) && directory.make_room() => action(),
        result => result,
    }
}

/// Creates a file, or opens the one that an attempt before has left.
pub(crate) fn create_or_open<D: Directory>(directory: &D, name: &str) -> io::Result<D::File> {
    with_room(directory, || match directory.create(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => directory.open(name),
        created => created,
    })
}

/// A file of a directory.
pub trait DirectoryFile: Send + Sync {
    /// Reads bytes at `offset`, until `bytes` is full or the file ends. Returns the number of bytes read.
    ///
    /// # Errors
    /// The system's error.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes at `offset`.
    ///
    /// # Errors
    /// The system's error.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the bytes and the length of the file durable.
    ///
    /// # Errors
    /// The system's error.
    fn sync(&self) -> io::Result<()>;

    /// Size of the file, in bytes.
    ///
    /// # Errors
    /// The system's error.
    fn size(&self) -> io::Result<u64>;

    /// Cuts the file to `bytes` bytes if it is longer.
    ///
    /// # Errors
    /// The system's error.
    fn truncate(&self, bytes: u64) -> io::Result<()>;
}
