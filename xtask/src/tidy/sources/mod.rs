//! The files and crates of the repository, taken apart as far as the rules need it.

pub(super) mod rust_source;
pub(super) mod tree;
pub(super) mod workspace;
