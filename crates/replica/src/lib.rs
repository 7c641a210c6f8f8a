//! One vhost on one node: its contents and clients, and the part of the node in the group of the vhost.
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
//! The vhost itself, [`LocalVhost`], is behind a lock, because its clients wait for it and must not wait for the log:
//! see [`Vhost`]. A node without a cluster has no [`Replica`].

mod clients;
mod leading;
pub mod limits;
mod local;
mod log;
mod log_queue;
pub mod metadata;
mod output;
mod pages;
pub mod relay;
mod replica;
mod request;
mod service;
mod standstill;
mod vhost;

pub use clients::{Batch, ClientEnd, Link, Links, Surroundings, Wait};
pub use leading::preparation::{Files, PreparedShipment};
pub use leading::transfer::TransferError;
pub use local::{Contents, DecodedRecord, EntrySink, LocalVhost, LogReplay, Ticked};
pub use log::GroupLog;
pub use log_queue::{LogQueue, QueuedRecord};
pub use output::{Deposition, Event, Output};
pub use pages::{JobProgress, NoPages, PageError, PageJob, PagedVhost, ReplayPages, StoredPages};
pub use replica::turn::{Next, Turn};
pub use replica::{Replica, ReplicaOptions};
pub use request::{RequestId, ShipmentNeed, ShipmentRequest};
pub use service::{Effects, Service};
pub use vhost::{HandOverTask, Vhost};
