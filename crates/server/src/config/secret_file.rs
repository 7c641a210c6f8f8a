//! Files with secrets, which the configuration names.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// True if every user of the machine may read the file.
pub(crate) fn is_readable_by_all(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.mode() & 0o004 != 0)
}
