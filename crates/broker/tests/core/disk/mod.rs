//! A disk that a test keeps in memory: the log of a vhost, and the pages of its long queues.

pub(crate) mod driven;
pub(crate) mod follower;
pub(crate) mod log;
pub(crate) mod look;
mod page_store;
pub(crate) mod record_list;

pub(crate) use follower::Follower;
pub(crate) use log::{Disk, Replay};
pub(crate) use page_store::{PageStore, SMALL_PAGES};

/// The options of a replicated vhost.
pub(crate) fn replicated() -> broker::VhostOptions {
    broker::VhostOptions { delivers_after_commit: true, ..broker::VhostOptions::default() }
}
