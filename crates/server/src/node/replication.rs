//! The replication of the node's vhosts: the replicator's thread, and its place between links and vhosts.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use bytes::Bytes;
use management::{ReplicaSnapshot, ReplicationSnapshot};
use parking_lot::Mutex;
use replication::{FrameClass, RunId};

use crate::clock::Clock;
use crate::cluster::ids::{GroupId, NodeId};
use crate::cluster::{self, LinkEvents, Links, LostCause};
use crate::disk::vhost_files::VhostId;
use crate::limits::LOG_RETENTION_BYTES;
use crate::replicas::{FrameSender, Nodes, Reopens, ReplicaStatus, Replicator};
use crate::vhost::Cluster;

/// The reason why replication cannot start.
#[derive(thiserror::Error, Debug)]
pub(crate) enum ReplicationError {
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    #[error("cannot start the replicator: {0}")]
    Thread(std::io::Error),
}

/// The replication of a node with a cluster.
#[derive(Debug)]
pub(crate) struct Replication {
    pub(crate) replicator: Arc<Replicator>,
    /// The replicator's thread, until the node is closed.
    thread: Mutex<Option<JoinHandle<()>>>,
    retention_bytes: u64,
}

impl Replication {
    /// Starts the replicator for the nodes that `links` connects.
    ///
    /// # Errors
    /// If the operating system has no randomness or cannot start a thread.
    pub(crate) fn start(links: &Arc<Links>, clock: Clock) -> Result<Self, ReplicationError> {
        let own = (links.own, links.name.clone());
        let others = links.peers().iter().map(|peer| (peer.id, peer.node.name.clone()));
        let names = others.chain([own]).map(|(id, name)| (replica_node(id), name.into()));
        let nodes = Nodes {
            cluster: replication::ClusterId(links.cluster().0),
            me: replica_node(links.own),
            names: names.collect(),
        };
        let run = RunId(getrandom::u64()?);
        let (replicator, thread) =
            Replicator::start(nodes, clock, run, links.options.disk_stall_timeout)
                .map_err(ReplicationError::Thread)?;
        if links.is_founded() {
            replicator.founded();
        }
        replicator.set_sender(Arc::new(LinkSender(Arc::clone(links))));
        let retention_bytes = links.options.log_retention_bytes.unwrap_or(LOG_RETENTION_BYTES);
        Ok(Self { replicator, thread: Mutex::new(Some(thread)), retention_bytes })
    }

    /// The cluster, for the vhosts of the node.
    pub(crate) fn cluster(&self) -> Cluster {
        let replicator = Arc::clone(&self.replicator);
        Cluster { replicator, retention_bytes: self.retention_bytes }
    }

    /// Sets the registry that opens replicas anew.
    pub(crate) fn set_reopener(&self, reopener: Weak<dyn Reopens>) {
        self.replicator.set_reopener(reopener);
    }

    /// The part of this node in the replication of its vhosts.
    pub(crate) fn snapshot(&self) -> ReplicationSnapshot {
        let statuses = self.replicator.statuses();
        let shown = |(status, leaders): (ReplicaStatus, u64)| ReplicaSnapshot {
            vhost: status.vhost,
            state: status.state.as_str(),
            term: status.term,
            committed_index: status.committed,
            written_index: status.written,
            applied_index: status.applied,
            compacted_index: status.compacted,
            unapplied_bytes: status.unapplied_bytes,
            leaders,
            lags: status.lags.into_iter().map(|(node, lag)| (node.to_string(), lag)).collect(),
        };
        ReplicationSnapshot {
            replicas: statuses.replicas().into_iter().map(shown).collect(),
            refused_frames: statuses.refused_frames(),
            disk_stalls: self.replicator.disk_stalls(),
        }
    }

    /// Writes what there is, as far as a majority can be reached, and ends the thread.
    pub(crate) fn stop(&self) {
        self.replicator.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the replicator has failed");
        }
    }
}

/// A node as replication names it.
fn replica_node(node: NodeId) -> replication::NodeId {
    replication::NodeId::new(node.0).expect("the hash of a name has 48 bits and is not 0")
}

/// Frames of members on the links.
#[derive(Debug)]
struct LinkSender(Arc<Links>);

impl FrameSender for LinkSender {
    fn send(&self, node: replication::NodeId, frame: Bytes, class: FrameClass) -> bool {
        let class = match class {
            FrameClass::Control => cluster::FrameClass::Ordered,
            FrameClass::Entries => cluster::FrameClass::Bulk,
        };
        self.0.send(NodeId(node.get()), frame, class)
    }

    fn differs(&self, vhost: VhostId) -> bool {
        !self.0.differences(GroupId(vhost.0)).is_empty()
    }
}

/// Events of links for the replicator.
#[derive(Debug)]
pub(crate) struct ReplicaLinks(pub(crate) Arc<Replicator>);

impl LinkEvents for ReplicaLinks {
    fn connected(&self, peer: NodeId) {
        self.0.link_changed(replica_node(peer));
    }

    fn lost(&self, peer: NodeId, cause: &LostCause) {
        let node = replica_node(peer);
        match cause {
            LostCause::Closed(_) | LostCause::PeerStops => self.0.node_lost(node),
            LostCause::Silent
            | LostCause::Stalled
            | LostCause::Damaged(_)
            | LostCause::Replaced
            | LostCause::Refused(_)
            | LostCause::Stopping => self.0.link_changed(node),
        }
    }

    fn frame(&self, peer: NodeId, frame: Bytes) {
        self.0.frame(replica_node(peer), frame);
    }

    // Members send pings of their own, which also tell the run of the process.
    fn clock(&self, _: NodeId, _: u64, _: u64, _: i64) {}

    fn founded(&self) {
        self.0.founded();
    }
}
