//! The node as HTTP sees it, one file for each trait of `management::Node`: what is the case is copied
//! under the vhosts' locks.

mod alarm_limits;
mod audit;
mod browse;
mod channels;
mod clients;
mod dead_letters;
mod definitions;
mod explain;
mod limits;
mod logins;
mod metrics;
mod parameters;
mod permissions;
mod policies;
mod redrives;
mod statistics;
mod status;
mod topology;
mod users;
mod vhosts;

use management::Change;

/// A change of users or vhosts: it waits for the disk, so that the thread is lent for it.
fn change<'a, T: Send + 'a>(change: impl FnOnce() -> T + Send + 'a) -> Change<'a, T> {
    Box::pin(async move { tokio::task::block_in_place(change) })
}
