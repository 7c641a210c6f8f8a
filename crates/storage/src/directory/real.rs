//! A directory of the file system.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::io_counters::{CountedFile, IoCounters};
use super::traits::{Directory, DirectoryFile};

/// Modes of new files and directories: only their owner may read bodies of messages.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// Frees reserved room; true if there was any.
type MakeRoom = Box<dyn Fn() -> bool + Send + Sync>;

/// A directory of the file system.
pub struct RealDirectory {
    path: PathBuf,
    directory: File,
    make_room: Option<MakeRoom>,
    counters: Arc<IoCounters>,
}

impl fmt::Debug for RealDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealDirectory").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RealDirectory {
    /// Opens a directory, and creates it if it is missing.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
            if let Some(parent) = path.parent() {
                File::open(parent)?.sync_all()?;
            }
        }
        let directory = File::open(path)?;
        Ok(Self { path: path.to_owned(), directory, make_room: None, counters: Arc::default() })
    }

    /// Sets the function that frees reserved room when the disk is full; it returns true if there was any.
    #[must_use]
    pub fn with_room(mut self, make_room: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.make_room = Some(Box::new(make_room));
        self
    }

    /// Counts operations in counters that other directories share.
    #[must_use]
    pub fn with_counters(mut self, counters: &Arc<IoCounters>) -> Self {
        self.counters = Arc::clone(counters);
        self
    }
}

impl Directory for RealDirectory {
    type File = CountedFile;

    fn create(&self, name: &str) -> io::Result<CountedFile> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(FILE_MODE);
        Ok(CountedFile::new(options.open(self.path.join(name))?, &self.counters))
    }

    fn open(&self, name: &str) -> io::Result<CountedFile> {
        let file = OpenOptions::new().read(true).write(true).open(self.path.join(name))?;
        Ok(CountedFile::new(file, &self.counters))
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
        self.counters.sync(|| self.directory.sync_all())
    }

    fn make_room(&self) -> bool {
        self.make_room.as_ref().is_some_and(|make_room| make_room())
    }
}

impl DirectoryFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(self, rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        if self.metadata()?.len() > bytes { self.set_len(bytes) } else { Ok(()) }
    }
}
