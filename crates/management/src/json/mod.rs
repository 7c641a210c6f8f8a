//! JSON that is neither answer nor request: how types of the broker are written and read.

pub(crate) mod bounded;
pub(crate) mod limits;
pub(crate) mod policy;
pub(crate) mod table;
pub(crate) mod timestamp;
pub(crate) mod vhost;
