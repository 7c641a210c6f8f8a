//! Free space of the disk.

use std::path::Path;

/// Free bytes on the disk of a directory; none if unknown.
pub(crate) fn free_bytes(directory: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
