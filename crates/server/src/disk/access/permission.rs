//! The file of a data directory that this process may not use, with its owner, its mode and the command that mends it.
//!
//! A restored directory often belongs to root, as a whole or in part. The system's error names neither the owner of the
//! file nor the user of the broker.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::disk::private_files::{DIRECTORIES, FILES};

/// Lists of users and groups: a name, a password, a number.
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// The use that a program makes of a data directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// Reading, as a check does.
    Read,
    /// Reading and writing, as the broker does.
    Write,
}

/// A file or directory that this process may not use, in words for the operator.
#[derive(Debug)]
pub(crate) struct Unusable {
    path: PathBuf,
    found: Metadata,
    data_dir: PathBuf,
    wanted: Use,
}

/// The first file of a data directory, or the directory that it lies in, that this process may not use in this way;
/// none if it may use all of them, or none is there.
pub(crate) fn first_unusable(data_dir: &Path, wanted: Use) -> Option<Unusable> {
    let unusable = |path: PathBuf| {
        // Links lead to files that are not the broker's.
        let found = path.symlink_metadata().ok().filter(|found| !found.is_symlink())?;
        let access = match wanted {
            _ if !path.starts_with(data_dir) => Access::EXEC_OK,
            Use::Read if found.is_dir() => Access::READ_OK | Access::EXEC_OK,
            Use::Write if found.is_dir() => Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK,
            Use::Read => Access::READ_OK,
            Use::Write => Access::READ_OK | Access::WRITE_OK,
        };
        let refused = accessat(CWD, &path, access, AtFlags::EACCESS).err()?;
        let is_permission = matches!(refused, Errno::ACCESS | Errno::PERM);
        is_permission.then(|| Unusable { path, found, data_dir: data_dir.to_owned(), wanted })
    };
    let mut above: Vec<PathBuf> = data_dir.ancestors().map(Path::to_owned).collect();
    above.reverse();
    let files = FILES.iter().map(|name| data_dir.join(name));
    let mut first = above.into_iter().chain(files).find_map(unusable);
    let mut directories: Vec<PathBuf> = DIRECTORIES.map(|name| data_dir.join(name)).into();
    while let Some(directory) = directories.pop().filter(|_| first.is_none()) {
        first = unusable(directory.clone());
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                _ => first = first.or_else(|| unusable(entry.path())),
            }
        }
    }
    first
}

/// The user of this process beside owner and mode of a file, in words.
fn user_and_owner(path: &Path, found: &Metadata) -> String {
    let [user, owner] = [geteuid().as_raw(), found.uid()].map(|id| name(USERS, id));
    let (path, mode) = (path.display(), found.mode() & 0o7777);
    format!("leveret runs as {user}, and {path} belongs to {owner}, with mode {mode:04o}")
}

/// An error about a directory that is not the broker's, with the user and the owner if these are the reason.
pub(crate) fn with_owner(error: &io::Error, directory: &Path) -> String {
    match directory.metadata() {
        Ok(found) if error.kind() == io::ErrorKind::PermissionDenied => {
            format!("{error}; {}", user_and_owner(directory, &found))
        }
        _ => error.to_string(),
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, owner) = (geteuid().as_raw(), self.found.uid());
        let data_dir = self.data_dir.display();
        let user_name = || name(USERS, user);
        f.write_str(&user_and_owner(&self.path, &self.found))?;
        if !self.path.starts_with(&self.data_dir) {
            return write!(f, ": {} may not enter it", user_name());
        }
        match self.wanted {
            Use::Read if owner == 0 || owner == user => f.write_str(": run this as root"),
            Use::Read => write!(f, ": run this as {} or as root", name(USERS, owner)),
            Use::Write if user == owner => write!(f, ": chmod -R u+rwX {data_dir}"),
            Use::Write => {
                let group_name = name(GROUPS, getegid().as_raw());
                write!(f, ": as root, chown -R {}:{group_name} {data_dir}", user_name())
            }
        }
    }
}

/// The name of a user or group; the number if it has none.
fn name(list: &str, id: u32) -> String {
    let text = std::fs::read_to_string(list).unwrap_or_default();
    let found = text.lines().find_map(|line| {
        let mut parts = line.split(':');
        let (name, number) = (parts.next()?, parts.nth(1)?);
        (number.parse() == Ok(id)).then(|| name.to_owned())
    });
    found.unwrap_or_else(|| id.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn name_is_that_of_the_list_or_the_number() {
        assert_eq!(name(USERS, 0), "root");
        assert_eq!(name(GROUPS, 0), "root");
        assert_eq!(name(USERS, u32::MAX - 7), (u32::MAX - 7).to_string());
        assert_eq!(name("/nonexistent", 3), "3");
    }

    #[test]
    fn unusable_file_is_told_with_its_owner_and_the_command() {
        let folder =
            std::env::temp_dir().join(format!("leveret-permission-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("vhosts/1")).unwrap();
        let file = folder.join("vhosts/1/manifest");
        std::fs::write(&file, "").unwrap();
        assert!(first_unusable(&folder, Use::Write).is_none());
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
        assert!(first_unusable(&folder, Use::Read).is_none());
        let user = name(USERS, geteuid().as_raw());
        let path = file.display();
        match first_unusable(&folder, Use::Write) {
            // Root may write it nevertheless.
            None => assert!(geteuid().is_root()),
            Some(unusable) => assert_eq!(
                unusable.to_string(),
                format!(
                    "leveret runs as {user}, and {path} belongs to {user}, with mode 0400: chmod -R u+rwX {}",
                    folder.display()
                )
            ),
        }
        let found = file.symlink_metadata().unwrap();
        let of = |wanted| Unusable {
            path: file.clone(),
            found: found.clone(),
            data_dir: folder.clone(),
            wanted,
        };
        let told = of(Use::Read).to_string();
        assert!(told.ends_with(", with mode 0400: run this as root"), "{told}");
        let above = Unusable { path: "/".into(), ..of(Use::Write) }.to_string();
        assert!(above.ends_with(&format!(": {user} may not enter it")), "{above}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
