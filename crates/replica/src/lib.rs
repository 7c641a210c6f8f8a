//! The part of a node in the group of one vhost: what it does as a leader, as a follower and in between, with its member.
//!
//! What is absent: threads, locks, sockets, files other than those of the log, clocks, randomness. Inputs are calls, with
//! the time as an argument; everything that follows is an [`Output`], for a driver to carry out. The server drives replicas
//! on the thread of the replicator, the simulator in simulated time.
//!
//! ```text
//!            frames, ticks, links                    Output: apply, promote, depose, answers, events
//!                    |                                              ^
//!                    v                                              |
//!  vhost <--Vhost--> Replica --begin--> Turn::Write --write--> end --> follow --> Next
//!  (behind a lock)   |                                              |
//!                    +-- Member (consensus) -- log ------ frames ---+
//! ```
//!
//! The vhost itself is behind a lock, because its clients wait for it and must not wait for the log: see [`Vhost`]. What its
//! effects become, and what is held until a majority has it, is in [`VhostOutputs`], behind the same lock.

mod clients;
mod leading;
pub mod limits;
mod log;
mod output;
mod replica;
mod request;
mod service;
mod standstill;
mod vhost;

pub use clients::{
    Batch, ClientEnd, DeferredReply, Link, Links, Surroundings, VhostOutputs, Wait, close_all,
};
pub use leading::preparation::{Files, PreparedShipment};
pub use leading::transfer::TransferError;
pub use log::GroupLog;
pub use output::{Deposition, Event, Output};
pub use replica::turn::{Next, Turn};
pub use replica::{Replica, ReplicaOptions};
pub use request::{RequestId, ShipmentNeed, ShipmentRequest};
pub use service::{Effects, Service};
pub use vhost::{HandOverTask, Vhost};
