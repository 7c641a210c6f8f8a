//! The cluster in one thread: several nodes with their disks, links and clocks, clients, and faults, all from one seed.
//!
//! The session, the core, the log and replication are those that ship. Only the threads between them are
//! replaced, by events in the order of their time: `cluster::process` is the replicator, `cluster::serving` the vhost
//! behind its lock, `cluster::metadata` the metadata behind theirs. The checks of `checks` hold at every moment; `docs/internals/simulator.md` lists them.
//!
//! A fault of the simulation itself panics, and so does one that the code under test reports by a panic.

#![allow(
    clippy::indexing_slicing,
    reason = "the numbers of nodes, clients and queues are the run's own"
)]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "of long lists of methods and records, a few matter to a check"
)]

mod checks;
mod clients;
mod cluster;
mod event;
mod faults;
mod moves;
mod plan;
mod relays;
mod run;
mod shipments;
mod shrink;
mod story;
mod world;

pub use cluster::content::group_content::GroupContent;
pub use faults::sabotage::{SABOTAGES, Sabotage};
pub use plan::{Nemesis, Plan};
pub use run::{Counts, Outcome, run};
pub use shrink::shrink;
pub use story::Story;
