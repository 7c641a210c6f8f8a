//! Operations on a running node: methods of [`Node`](super::Node), one file per subject.
//!
//! A read copies its result under a vhost's lock; it is formatted without the lock. A write completes when the change is on
//! disk. Changes of users and vhosts wait for the disk, and the runtime replaces their thread meanwhile.

mod backups;
mod barrier;
mod clients;
mod lifecycle;
mod logins;
mod membership;
mod messages;
mod peers;
mod schedules;
mod status;
mod topology;
mod users;

pub use peers::VhostContents;

use std::collections::BTreeMap;

use crate::limits::SAMPLED_PER_LOCK;
use crate::snapshot::queue::QueueViews;
use crate::vhost::VhostHandle;

/// Copies the queues of a vhost, a slice at a time, so that clients never wait for all queues.
fn view_queues(handle: &VhostHandle) -> QueueViews {
    let ids = handle.queue_ids();
    let mut views = QueueViews::of(ids.len());
    for slice in ids.chunks(SAMPLED_PER_LOCK) {
        handle.measure(|v, now| views.add(v, now, slice));
    }
    views
}

/// Sets a limit, or clears it.
fn set_limit<L: Ord>(limits: &mut BTreeMap<L, i64>, limit: L, to: Option<i64>) {
    match to {
        Some(max) => limits.insert(limit, max),
        None => limits.remove(&limit),
    };
}
