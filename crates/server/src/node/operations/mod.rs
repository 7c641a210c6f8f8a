//! Operations on a running node: methods of [`Node`](super::Node), one file per subject.
//!
//! A read copies its result under a vhost's lock; it is formatted without the lock. A write completes when the change is on
//! disk. Changes of users and vhosts wait for the disk, and the runtime replaces their thread meanwhile.

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

pub use peers::VhostContents;

use std::collections::BTreeMap;

/// Sets a limit, or clears it.
fn set_limit<L: Ord>(limits: &mut BTreeMap<L, i64>, limit: L, to: Option<i64>) {
    match to {
        Some(max) => limits.insert(limit, max),
        None => limits.remove(&limit),
    };
}
