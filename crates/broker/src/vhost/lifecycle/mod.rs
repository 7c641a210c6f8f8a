//! The life of a message, and all events that need no command: messages are enqueued, delivered, expired,
//! dead-lettered, written to pages and redriven.

mod alarm;
mod death;
mod death_record;
mod delayed;
mod deliver;
mod direct_reply;
pub(super) mod enqueue;
pub(super) mod firehose;
pub(super) mod growth;
mod hand_over;
mod paging;
pub(super) mod policies;
mod redrive;
mod redrive_jobs;
mod route;
mod schedules;
mod time;
mod unacked;
