//! The life of a message, and everything that happens to it without a command: it enters queues, is delivered,
//! expires, is dead-lettered, paged out and redriven.

mod alarm;
mod death;
mod deliver;
mod direct_reply;
pub(super) mod enqueue;
pub(super) mod firehose;
pub(super) mod growth;
mod paging;
pub(super) mod policies;
mod redrive;
mod route;
mod time;
mod unacked;
