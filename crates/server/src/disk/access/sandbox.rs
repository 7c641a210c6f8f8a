//! The places that the sandbox of a service of systemd takes away: directories that are read-only for the service,
//! hidden from it, or replaced by private ones which nobody else sees and which end with it.
//!
//! The system's error says that a file system is read-only, or that something is missing, and an operator who looks
//! finds neither. A private directory gives no error at all.

use std::fmt;
use std::path::{Path, PathBuf};

/// The mounts that this process sees.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The harm that a sandbox does to a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    ReadOnly,
    Hidden,
    Private,
}

/// A directory that a service cannot use as others do, in words for the operator.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Confinement {
    path: PathBuf,
    harm: Harm,
}

/// The harm that the sandbox of this service does to a path; none if this process is no service.
pub(crate) fn confinement(path: &Path) -> Option<Confinement> {
    // systemd sets it for a unit of `Type=notify`.
    std::env::var_os("NOTIFY_SOCKET")?;
    let mounts = std::fs::read_to_string(MOUNTS).ok()?;
    let harm = harm(&mounts, path)?;
    Some(Confinement { path: path.to_owned(), harm })
}

/// The harm of the mount that a path lies in.
fn harm(mounts: &str, path: &Path) -> Option<Harm> {
    let mounts = mounts.lines().filter_map(|line| {
        // Number, number of the parent, device, root within the file system, place, options.
        let mut words = line.split(' ').skip(3);
        let (root, place, options) = (words.next()?, words.next()?, words.next()?);
        Some((root, place.replace("\\040", " "), options))
    });
    let around = mounts.filter(|(_, place, _)| path.starts_with(place));
    // Of two mounts at one place the later one counts.
    let (root, _, options) = around.max_by_key(|(_, place, _)| Path::new(place).iter().count())?;
    if root.contains("/systemd-private-") {
        Some(Harm::Private)
    } else if root.contains("/systemd/inaccessible/") {
        Some(Harm::Hidden)
    } else {
        options.split(',').any(|option| option == "ro").then_some(Harm::ReadOnly)
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.harm {
            Harm::ReadOnly => write!(
                f,
                "the service may not write in {path} unless `systemctl edit leveret` permits it, with [Service] and \
                 ReadWritePaths= of a directory that exists, and a restart"
            ),
            Harm::Hidden => write!(f, "the service does not see {path}"),
            Harm::Private => {
                write!(
                    f,
                    "the service has a private directory at {path}, which is removed when it stops"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mounts that the service of the packaged unit sees.
    const SERVICE: &str = "\
100 90 8:1 / / ro,relatime master:1 - ext4 /dev/sda1 rw
101 100 8:1 /var/lib/leveret /var/lib/leveret rw,relatime - ext4 /dev/sda1 rw
102 100 8:1 /var/lib/leveret-backups /var/lib/leveret-backups rw,relatime - ext4 /dev/sda1 rw
103 100 0:40 /systemd-private-0123-leveret.service-abc/tmp /tmp rw,nosuid - tmpfs tmpfs rw
104 100 0:41 /systemd/inaccessible/dir /home ro,nosuid - tmpfs tmpfs rw
105 100 8:2 / /mnt/big\\040disk rw,relatime - ext4 /dev/sdb1 rw
106 105 8:3 / /mnt/big\\040disk ro,relatime - ext4 /dev/sdc1 rw
malformed
";

    #[test]
    fn harm_is_that_of_the_innermost_mount() {
        let of = |path: &str| harm(SERVICE, Path::new(path));
        assert_eq!(of("/var/lib/leveret-backups/monday"), None);
        assert_eq!(of("/var/lib/leveret-backup"), Some(Harm::ReadOnly));
        assert_eq!(of("/backup"), Some(Harm::ReadOnly));
        assert_eq!(of("/tmp"), Some(Harm::Private));
        assert_eq!(of("/home"), Some(Harm::Hidden));
        assert_eq!(of("/mnt/big disk/monday"), Some(Harm::ReadOnly));
        assert_eq!(harm("", Path::new("/backup")), None);
    }

    #[test]
    fn confinement_is_told_in_words() {
        let told = |harm| Confinement { path: PathBuf::from("/backup"), harm }.to_string();
        let read_only = told(Harm::ReadOnly);
        assert!(
            read_only.starts_with("the service may not write in /backup unless "),
            "{read_only}"
        );
        assert_eq!(told(Harm::Hidden), "the service does not see /backup");
        assert!(told(Harm::Private).contains("private directory at /backup, which is removed"));
    }
}
