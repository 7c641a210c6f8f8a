//! A backup on its way from the data directory into a directory of its own.

pub(crate) mod copy;
pub(crate) mod target;
