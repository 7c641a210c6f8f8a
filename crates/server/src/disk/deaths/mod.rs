//! The history of dead letters on disk.

pub(crate) mod files;
mod line;
