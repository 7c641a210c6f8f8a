//! The node as the HTTP API sees it: one file per trait of `crate::requests::Node`. A read copies its result under a
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

use crate::node::Node;
use crate::requests::ChangeFuture;

impl crate::requests::Node for Node {}

/// A change of users or vhosts, which waits for the disk: the runtime replaces the thread meanwhile.
fn change<'a, T: Send + 'a>(change: impl FnOnce() -> T + Send + 'a) -> ChangeFuture<'a, T> {
    Box::pin(async move { tokio::task::block_in_place(change) })
}

/// Sets a limit, or clears it.
fn set_limit<L: Ord>(limits: &mut BTreeMap<L, i64>, limit: L, to: Option<i64>) {
    match to {
        Some(max) => limits.insert(limit, max),
        None => limits.remove(&limit),
    };
}
