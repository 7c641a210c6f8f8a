//! Access to the disk: a directory of files, with the operations that the log needs.

mod io_counters;
mod real;
mod traits;

pub use io_counters::{CountedFile, IoCounters, IoTotal, SYNC_BOUNDS_US};
pub use real::RealDirectory;
pub use traits::{Directory, DirectoryFile};
pub(crate) use traits::{create_or_open, is_full, with_room};
