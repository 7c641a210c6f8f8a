//! Access to the files of a data directory: reading them without writing, and the reason why the system refuses one.

pub(crate) mod permission;
pub(crate) mod read_only_directory;
pub(crate) mod sandbox;

use std::io;
use std::path::Path;

/// Names the path that an error is about, and keeps its kind.
pub(crate) fn about(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
