//! Replicated vhosts: the thread that drives the members of groups, and those that apply committed entries to replicas.
//!
//! A vhost in a cluster has a *member* on each node. The replicator takes the member of every vhost through its turns:
//! frames in, a write, frames out. While this node leads a vhost, the replicator plays the part of the persister for
//! it: it takes the batches of the vhost and reports what a majority has on disk. Otherwise it passes committed entries
//! to a thread of the vhost, which applies them to a replica; when this node is elected, the same thread makes a vhost
//! of the replica. A leader that another has replaced gives everything up and opens its replica anew from its log.
//!
//! This module knows a vhost as [`ReplicaTarget`].

mod apply;
mod disk_watch;
mod driver;
mod electing;
mod member_links;
mod member_log;
mod nodes;
mod rebuild_queue;
#[cfg(test)]
mod replica_tests;
mod replicator;
mod report;
mod status;
mod target;

pub(crate) use driver::PreparedShipment;
pub(crate) use nodes::{KnownNode, Nodes};
pub(crate) use rebuild_queue::{RebuildQueue, RebuildRequest};
pub(crate) use replica::{Deposition, HandOverTask, ShipmentNeed, TransferError};
pub(crate) use replicator::Replicator;
pub(crate) use status::ReplicaStatus;
pub(crate) use target::{ReplicaRegistry, ReplicaTarget};
