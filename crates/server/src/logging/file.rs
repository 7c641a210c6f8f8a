//! A log file that is rotated at a given size, and reopened after another program has moved it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tracing_subscriber::fmt::MakeWriter;

/// A log file with its rotation.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    /// Size at which the file is rotated, in bytes.
    bytes_max: Option<u64>,
    /// The number of rotated files to keep.
    kept_max: u32,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
}

impl LogFile {
    /// Opens the file; creates the file and its directory if missing.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(crate) fn open(path: PathBuf, bytes_max: Option<u64>, kept_max: u32) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let open = Mutex::new(open(&path)?);
        Ok(Self { path, bytes_max, kept_max, open })
    }

    /// Locks the file for writing a line.
    fn line(&self) -> Line<'_> {
        Line { file: self, open: self.open.lock() }
    }

    /// Opens the file by its name again, because another program may have moved it.
    ///
    /// # Errors
    /// If the operating system refuses; the old file then stays open.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        *self.open.lock() = open(&self.path)?;
        Ok(())
    }

    /// The path of a rotated file; `NAME.0` is the newest.
    fn aside(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }

    /// Rotates the files and starts a new one.
    fn rotate(&self, now: &mut Open) -> io::Result<()> {
        let ignore_missing = |result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        match self.kept_max.checked_sub(1) {
            None => std::fs::remove_file(&self.path)?,
            Some(last) => {
                for number in (0..last).rev() {
                    let renamed = std::fs::rename(self.aside(number), self.aside(number + 1));
                    ignore_missing(renamed)?;
                }
                std::fs::rename(&self.path, self.aside(0))?;
            }
        }
        *now = open(&self.path)?;
        Ok(())
    }
}

/// Readable by the broker's user and group, writable by the user.
const LOG_MODE: u32 = 0o640;

fn open(path: &Path) -> io::Result<Open> {
    let file = OpenOptions::new().create(true).append(true).mode(LOG_MODE).open(path)?;
    let bytes = file.metadata()?.len();
    Ok(Open { file, bytes })
}

/// The file, locked while a line is written.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    file: &'a LogFile,
    open: MutexGuard<'a, Open>,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let bytes = self.open.bytes.saturating_add(line.len() as u64);
        if self.open.bytes > 0 && self.file.bytes_max.is_some_and(|max| bytes > max) {
            // If the rotation fails, the file grows: the lines matter more than the size.
            let _ = self.file.rotate(&mut self.open);
        }
        let count = self.open.file.write(line)?;
        self.open.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open.file.flush()
    }
}

/// Makes writers for a log file.
#[derive(Debug)]
pub(crate) struct ToFile(pub(crate) Arc<LogFile>);

impl<'a> MakeWriter<'a> for ToFile {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        self.0.line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is deleted at the end of the test.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("leveret-log-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn texts(&self) -> Vec<(String, String)> {
            let read = std::fs::read_dir(&self.0).unwrap().map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read_to_string(path).unwrap())
            });
            let mut texts: Vec<_> = read.collect();
            texts.sort();
            texts
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn full_file_is_rotated_and_old_ones_are_removed() {
        let directory = Directory::new("rotation");
        let file = LogFile::open(directory.0.join("a.log"), Some(10), 2).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n", "five is longer\n", "six\n"] {
            file.line().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(
            directory.texts(),
            texts(&[("a.log", "six\n"), ("a.log.0", "five is longer\n"), ("a.log.1", "four\n")])
        );
    }

    #[test]
    fn rotation_may_keep_no_files() {
        let directory = Directory::new("none");
        let file = LogFile::open(directory.0.join("a.log"), Some(4), 0).unwrap();
        for line in ["one\n", "two\n"] {
            file.line().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(directory.texts(), texts(&[("a.log", "two\n")]));
    }

    #[test]
    fn reopen_begins_a_moved_file_and_continues_an_existing_one() {
        let directory = Directory::new("moved");
        let path = directory.0.join("a.log");
        let file = LogFile::open(path.clone(), None, 1).unwrap();
        file.line().write_all(b"one\n").unwrap();
        std::fs::rename(&path, directory.0.join("old")).unwrap();
        file.line().write_all(b"two\n").unwrap();
        file.reopen().unwrap();
        file.line().write_all(b"three\n").unwrap();
        drop(file);
        let file = LogFile::open(path, None, 1).unwrap();
        file.line().write_all(b"four\n").unwrap();
        assert_eq!(directory.texts(), texts(&[("a.log", "three\nfour\n"), ("old", "one\ntwo\n")]));
    }
}
