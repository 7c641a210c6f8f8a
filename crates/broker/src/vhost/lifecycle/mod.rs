//! The life of a message, and everything that happens to it without a command: it enters queues, is delivered,
//! expires, is dead-lettered, paged out and redriven.

pub(super) mod alarm;
pub(super) mod death;
mod deliver;
pub(super) mod firehose;
pub(super) mod growth;
mod paging;
pub(super) mod placed;
pub(super) mod policies;
mod redrive;
mod route;
mod time;
pub(super) mod unacked;
