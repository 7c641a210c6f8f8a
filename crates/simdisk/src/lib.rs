//! A directory in memory whose power can be cut, for tests and simulations.
//!
//! A test that panics is the way in which this crate reports its wrong use.

#![allow(clippy::indexing_slicing, reason = "what is out of range is a fault of the test")]

mod disk;
mod inode;
mod random;

pub use disk::{Disk, DiskFile};
pub use random::Random;
