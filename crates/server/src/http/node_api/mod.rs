//! The node as the HTTP API sees it: one file per trait of `management::Node`. A read copies its result under a
//! vhost's lock.

mod backups;
mod clients;
mod leadership;
mod lifecycle;
mod logins;
mod membership;
mod messages;
mod peers;
mod schedules;
mod status;
mod topology;
mod users;

use std::collections::BTreeMap;

use management::{ChangeFuture, QueueViews};

use crate::limits::SAMPLED_PER_LOCK;
use crate::node::Node;
use crate::vhost::VhostHandle;

impl management::Node for Node {}

/// A change of users or vhosts, which waits for the disk: the runtime replaces the thread meanwhile.
fn change<'a, T: Send + 'a>(change: impl FnOnce() -> T + Send + 'a) -> ChangeFuture<'a, T> {
    Box::pin(async move { tokio::task::block_in_place(change) })
}

/// Copies the queues of a vhost, a slice at a time, so that clients never wait for all queues.
fn view_queues(handle: &VhostHandle) -> QueueViews {
    let ids = handle.read(|v, _| QueueViews::ids(v));
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
