//! Bounded parsing of JSON, and types of the broker in JSON that only handlers need.

pub(crate) mod bounded;
pub(crate) mod severity;
pub(crate) mod table;
pub(crate) mod taken;
pub(crate) mod timestamp;
