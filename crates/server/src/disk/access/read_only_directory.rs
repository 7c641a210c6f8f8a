//! A directory of a log that is read and never written: also on a file system that is mounted read-only, and by a user
//! who may only read.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use storage::Directory;

use crate::disk::access::about;

/// The directory. Errors name the file.
#[derive(Debug)]
pub(crate) struct ReadOnlyDirectory(PathBuf);

impl ReadOnlyDirectory {
    /// The directory at this path; nothing is opened yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn refused(&self, name: &str) -> io::Error {
        let path = self.0.join(name);
        io::Error::new(
            io::ErrorKind::ReadOnlyFilesystem,
            format!("{} is only read", path.display()),
        )
    }
}

impl Directory for ReadOnlyDirectory {
    type File = File;

    fn create(&self, name: &str) -> io::Result<File> {
        Err(self.refused(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let path = self.0.join(name);
        File::open(&path).map_err(about(&path))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let named = about(&self.0);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.0).map_err(&named)? {
            let entry = entry.map_err(&named)?;
            if entry.file_type().map_err(&named)?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn rename(&self, from: &str, _: &str) -> io::Result<()> {
        Err(self.refused(from))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Err(self.refused(name))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use storage::DirectoryFile;

    use super::*;

    #[test]
    fn read_only_directory_reads_and_refuses_everything_else() {
        let folder = std::env::temp_dir().join(format!("leveret-read-only-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("pages")).unwrap();
        std::fs::write(folder.join("a.log"), "12345").unwrap();
        let directory = ReadOnlyDirectory::new(&folder);
        assert_eq!(directory.list().unwrap(), ["a.log"]);
        let file = directory.open("a.log").unwrap();
        assert_eq!(DirectoryFile::read_at(&file, &mut [0; 8], 2).unwrap(), 3);
        assert!(
            DirectoryFile::write_at(&file, b"x", 0).is_err()
                && DirectoryFile::truncate(&file, 0).is_err()
        );
        assert!(directory.create("b.log").is_err() && directory.remove("a.log").is_err());
        assert!(directory.rename("a.log", "b.log").is_err());
        let missing = directory.open("c.log").unwrap_err();
        assert!(missing.to_string().contains("c.log: No such file"), "{missing}");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(std::fs::read(folder.join("a.log")).unwrap(), b"12345");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
