//! The vhosts of the node, each behind one lock.
//!
//! The lock is taken once per batch: commands are applied, effects become bytes in the outboxes of their
//! connections while the lock keeps them in order, and writers are woken after it is given back. Nothing
//! waits while the lock is held.

mod alarm;
mod batch;
mod browse;
mod changes;
mod effects;
mod handle;
pub(crate) mod internal_channel;
mod links;
mod lock;
mod log_and_pages;
mod pressure;
mod registry;
#[cfg(test)]
mod tests;
mod timer;
mod waits;

pub(crate) use browse::BrowseProblem;
pub(crate) use effects::Wait;
pub(crate) use handle::{OpenRefused, OpeningClient, Threads, VhostHandle};
pub(crate) use registry::{VhostError, Vhosts};
pub(crate) use timer::Timer;
