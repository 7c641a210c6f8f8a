//! Files for the broker's user only: a data directory holds password hashes and message bodies.
//!
//! Everything that the broker creates there has the modes of this module from the beginning. At the start,
//! the broker tightens the modes of files that an earlier version or a copy has left readable for others.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Mode of a file: readable and writable by its owner.
pub(crate) const FILE_MODE: u32 = 0o600;
/// Mode of a directory: accessible by its owner only.
pub(crate) const DIRECTORY_MODE: u32 = 0o700;
/// Permission bits that other users must not have.
const OTHERS: u32 = 0o077;

/// The broker's files in its data directory.
pub(super) const FILES: [&str; 13] = [
    "lock",
    "node.json",
    "node.json.new",
    "global_parameters.json",
    "global_parameters.json.new",
    "ctl.json",
    "ctl.json.new",
    "resetting",
    "standing-alone",
    "reserve",
    "backup.json",
    "cluster.json",
    "cluster.json.new",
];
/// The broker's directories there, with everything below them.
pub(super) const DIRECTORIES: [&str; 3] = [DIRECTORY, "redrives", "metadata"];
const DIRECTORY: &str = "vhosts";

/// Creates a directory in an existing one.
///
/// # Errors
/// Errors of the operating system, also if the name exists.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY_MODE).create(path)
}

/// Creates a directory and those that it lies in, as far as they are missing.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn create_dirs(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// Opens a file for writing and truncates it.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.create(true).write(true).truncate(true).mode(FILE_MODE).open(path)?;
    // A file left by a crash may be readable by others.
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Makes the names in a directory durable.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes the permissions of other users in a data directory that this process holds, and logs the changes.
pub(crate) fn tighten(data_dir: &Path) {
    let mut tightened = Tightened::default();
    if is_broker_s_alone(data_dir) {
        tightened.one(data_dir, DIRECTORY_MODE);
    }
    for name in FILES {
        tightened.one(&data_dir.join(name), FILE_MODE);
    }
    for name in DIRECTORIES {
        tightened.all(&data_dir.join(name));
    }
    if tightened.count > 0 {
        tracing::warn!(
            count = tightened.count,
            data_dir = %data_dir.display(),
            "other users of this machine could read files of the data directory; now they cannot"
        );
    }
    if let Some(problem) = tightened.problem {
        tracing::warn!(problem, "other users of this machine may read files of the data directory");
    }
}

/// True if the directory belongs to a broker only; another directory may hold things that other users need.
fn is_broker_s_alone(data_dir: &Path) -> bool {
    if data_dir.join("node.json").is_file() || data_dir.join(DIRECTORY).is_dir() {
        return true;
    }
    std::fs::read_dir(data_dir).is_ok_and(|mut entries| {
        entries.all(|entry| {
            let name = entry.map(|entry| entry.file_name());
            name.is_ok_and(|name| name == "lock" || name == "lost+found")
        })
    })
}

#[derive(Default)]
struct Tightened {
    count: u64,
    /// The first failure.
    problem: Option<String>,
}

impl Tightened {
    /// Tightens a directory and everything below it.
    fn all(&mut self, directory: &Path) {
        self.one(directory, DIRECTORY_MODE);
        let Ok(entries) = std::fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.all(&entry.path()),
                Ok(kind) if kind.is_file() => self.one(&entry.path(), FILE_MODE),
                // A link may lead to files that are not the broker's.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn one(&mut self, path: &Path, mode: u32) {
        // Links and missing files are left alone.
        let Ok(found) = path.symlink_metadata() else { return };
        if found.is_symlink() || found.mode() & OTHERS == 0 {
            return;
        }
        match std::fs::set_permissions(path, Permissions::from_mode(mode)) {
            Ok(()) => self.count += 1,
            Err(error) => {
                self.problem.get_or_insert_with(|| format!("{}: {error}", path.display()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn readable_files_are_made_private() {
        let folder = std::env::temp_dir().join(format!("leveret-private-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("vhosts/1/pages")).unwrap();
        let files = ["node.json", "vhosts/1/manifest", "vhosts/1/pages/1.page"];
        for file in files {
            std::fs::write(folder.join(file), "secret").unwrap();
            set_mode(&folder.join(file), 0o644);
        }
        for directory in ["", "vhosts", "vhosts/1", "vhosts/1/pages"] {
            set_mode(&folder.join(directory), 0o755);
        }
        std::fs::write(folder.join("my.conf"), "an operator's").unwrap();
        set_mode(&folder.join("my.conf"), 0o644);
        std::os::unix::fs::symlink("../my.conf", folder.join("vhosts/link")).unwrap();
        tighten(&folder);
        assert!(files.iter().all(|file| mode(&folder.join(file)) == FILE_MODE));
        for directory in ["", "vhosts", "vhosts/1", "vhosts/1/pages"] {
            assert_eq!(mode(&folder.join(directory)), DIRECTORY_MODE, "{directory}");
        }
        assert_eq!(mode(&folder.join("my.conf")), 0o644);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn directory_with_other_files_stays_readable() {
        let folder = std::env::temp_dir().join(format!("leveret-shared-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("lock"), "").unwrap();
        assert!(is_broker_s_alone(&folder));
        std::fs::write(folder.join("readme"), "").unwrap();
        set_mode(&folder, 0o755);
        tighten(&folder);
        assert_eq!(mode(&folder), 0o755);
        assert_eq!(mode(&folder.join("lock")), FILE_MODE);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn leftover_file_is_made_private_before_it_is_written() {
        let path = std::env::temp_dir().join(format!("leveret-left-{}", std::process::id()));
        std::fs::write(&path, "left").unwrap();
        set_mode(&path, 0o666);
        let file = create(&path).unwrap();
        assert_eq!((mode(&path), file.metadata().unwrap().len()), (FILE_MODE, 0));
        std::fs::remove_file(&path).unwrap();
    }
}
