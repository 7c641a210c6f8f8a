//! The vhosts of the node, each behind one lock.
//!
//! The lock is taken once per batch: commands are applied, effects are encoded into the outboxes of their
//! connections while the lock keeps them in order, and writers are woken after it is released. No thread
//! waits for anything while it holds the lock.

mod cluster;
mod definition;
mod found_member;
mod handle;
mod hold_watch;
pub(crate) mod internal_channel;
mod lock;
mod not_leading;
mod place;
mod pressure;
mod registry;
mod replica;
#[cfg(test)]
mod tests;
mod timer;

pub(crate) use cluster::Cluster;
pub(crate) use definition::VhostDefinition;
pub(crate) use found_member::{
    FoundMember, GroupAge, found_member, is_loss_of_log, loss_at_begin, tell_lost,
};
pub(crate) use handle::browse::BrowseProblem;
pub(crate) use handle::{OpenRefused, OpeningClient, Threads, VhostHandle};
pub(crate) use hold_watch::HoldWatch;
pub(crate) use not_leading::NotLeading;
pub(crate) use registry::{VhostError, Vhosts};
pub(crate) use timer::Timer;
