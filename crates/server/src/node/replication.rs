//! The replication of the node's vhosts: the replicator's thread, and its place between links and vhosts.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

use bytes::Bytes;
use parking_lot::Mutex;
use replication::{MemberId, RunId};

use crate::clock::Clock;
use crate::cluster::{LinkEvents, Links, LostCause};
use crate::disk::vhost_files::VhostId;
use crate::limits::LOG_RETENTION_BYTES;
use crate::membership::ids::NodeId;
use crate::membership::node_list::{FOUNDER_INCARNATIONS, ListedNode};
use crate::membership::placement::Placement;
use crate::metadata::Metadata;
use crate::replicas::{KnownNode, Nodes, ReplicaRegistry, ReplicaStatus, Replicator};
use crate::shipments::Shipments;
use crate::snapshot::replication::{ReplicaGroup, ReplicaSnapshot, ReplicationSnapshot};
use crate::vhost::{Cluster, VhostHandle, Vhosts};

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
    /// Held while the replicator follows the list of the nodes.
    following: Mutex<()>,
    /// Shipments of files, once the node serves.
    pub(crate) shipments: OnceLock<Arc<Shipments>>,
}

impl Replication {
    /// Starts the replicator for the nodes that `links` connects.
    ///
    /// # Errors
    /// If the operating system has no randomness or cannot start a thread.
    pub(crate) fn start(links: &Arc<Links>, clock: Clock) -> Result<Self, ReplicationError> {
        let nodes = nodes_of(links);
        let run = RunId(getrandom::u64()?);
        let (replicator, thread) = Replicator::start(
            nodes,
            clock,
            run,
            links.options.disk_stall_timeout,
            Some(Arc::clone(links)),
        )
        .map_err(ReplicationError::Thread)?;
        if links.is_founded() {
            replicator.founded();
        }
        let retention_bytes = links.options.log_retention_bytes.unwrap_or(LOG_RETENTION_BYTES);
        let (thread, shipments) = (Mutex::new(Some(thread)), OnceLock::new());
        Ok(Self { replicator, thread, retention_bytes, following: Mutex::default(), shipments })
    }

    /// The cluster, for the vhosts of the node.
    pub(crate) fn cluster(&self) -> Cluster {
        let replicator = Arc::clone(&self.replicator);
        Cluster { replicator, retention_bytes: self.retention_bytes }
    }

    /// The members with which the group of a new vhost begins: those of its nodes that vote for the metadata, because one
    /// that has just joined, or is away for long, must not be needed for a majority.
    pub(crate) fn first_voters(&self, placement: Option<&Placement>) -> Vec<MemberId> {
        let nodes = self.replicator.nodes();
        let is_placed = |name: &str| placement.is_none_or(|placement| placement.has(name));
        let voters = self.metadata_voters();
        let votes = |name: &str| voters.iter().any(|voter| **voter == *name);
        match nodes.first_members(|name| is_placed(name) && votes(name)) {
            members if members.is_empty() => nodes.first_members(is_placed),
            members => members,
        }
    }

    /// Names of the nodes that vote for the metadata, as far as this node knows.
    pub(crate) fn metadata_voters(&self) -> Vec<Arc<str>> {
        let status = self.replicator.statuses().of(VhostId::METADATA);
        status.map(|status| status.voters).unwrap_or_default()
    }

    /// Lets the replicator follow the nodes of these links.
    pub(crate) fn follow_nodes(&self, links: &Links) {
        // Not twice at once: an older list must not be the last one.
        let _in_order = self.following.lock();
        self.replicator.set_nodes(nodes_of(links));
    }

    /// Sets the vhosts and the metadata whose replicas are opened anew.
    pub(crate) fn set_replicas(&self, vhosts: &Arc<Vhosts>, metadata: &Arc<Metadata>) {
        let (vhosts, metadata) = (Arc::downgrade(vhosts), Arc::downgrade(metadata));
        self.replicator.set_registry(Arc::new(Replicas { vhosts, metadata }));
    }

    /// Begins to ship files to other nodes, and to rebuild replicas of this one.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub(crate) fn start_shipments(
        &self,
        links: &Arc<Links>,
        data_dir: &Path,
    ) -> std::io::Result<()> {
        let runtime = tokio::runtime::Handle::current();
        let bandwidth = links.options.shipment_bandwidth_bytes;
        let shipments = Shipments::new(
            data_dir.to_owned(),
            &self.replicator,
            links,
            bandwidth,
            runtime.clone(),
        );
        let shipments = Arc::new(shipments);
        shipments.start(runtime)?;
        let is_first = self.shipments.set(shipments).is_ok();
        assert!(is_first, "a node starts its shipments once");
        Ok(())
    }

    /// The part of this node in the replication of its vhosts.
    pub(crate) fn snapshot(&self) -> ReplicationSnapshot {
        let statuses = self.replicator.statuses();
        let names = |names: Vec<Arc<str>>| names.iter().map(ToString::to_string).collect();
        let shown = |(id, status, leaders): (VhostId, ReplicaStatus, u64)| ReplicaSnapshot {
            vhost: status.vhost,
            group: if id == VhostId::METADATA {
                ReplicaGroup::Metadata
            } else {
                ReplicaGroup::Vhost
            },
            rebuild: self.shipments.get().and_then(|shipments| shipments.rebuild_of(id)),
            state: status.state.as_str(),
            term: status.term,
            committed_index: status.committed,
            written_index: status.written,
            applied_index: status.applied,
            compacted_index: status.compacted,
            unapplied_bytes: status.unapplied_bytes,
            stands_still: status.stands_still,
            leaders,
            lags: status.lags.into_iter().map(|(node, lag)| (node.to_string(), lag)).collect(),
            is_voter: status.is_voter,
            voters: names(status.voters),
            heard: names(status.heard),
        };
        ReplicationSnapshot {
            replicas: statuses.replicas().into_iter().map(shown).collect(),
            refused_frames: statuses.refused_frames(),
            disk_stalls: self.replicator.disk_stalls(),
            shipments: self.shipments.get().map(|it| it.snapshot()).unwrap_or_default(),
        }
    }

    /// Writes what there is, as far as a majority can be reached, and ends the thread.
    pub(crate) fn stop(&self) {
        if let Some(shipments) = self.shipments.get() {
            shipments.stop();
        }
        self.replicator.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the replicator has failed");
        }
    }
}

/// The replicas of the node; none after its end.
#[derive(Debug)]
struct Replicas {
    vhosts: Weak<Vhosts>,
    metadata: Weak<Metadata>,
}

impl ReplicaRegistry for Replicas {
    fn reopen(&self, vhost: VhostId) -> Result<(), String> {
        if vhost == VhostId::METADATA {
            let metadata = self.metadata.upgrade();
            return metadata.map_or(Ok(()), |it| it.reopen().map_err(|error| error.to_string()));
        }
        self.vhosts.upgrade().map_or(Ok(()), |vhosts| vhosts.reopen(vhost))
    }

    fn leave(&self, vhost: VhostId) -> Result<(), String> {
        assert_ne!(vhost, VhostId::METADATA, "every node has the metadata");
        self.vhosts.upgrade().map_or(Ok(()), |vhosts| vhosts.leave(vhost))
    }

    fn name_of(&self, vhost: VhostId) -> Option<String> {
        if vhost == VhostId::METADATA {
            return Some("metadata".to_owned());
        }
        let handle = self.handle(vhost).filter(|handle| handle.is_placed_here())?;
        Some(handle.name().to_owned())
    }

    fn may_become(&self, vhost: VhostId, member: MemberId) -> bool {
        self.handle(vhost).is_none_or(|handle| handle.may_become(member))
    }

    fn open_installed(
        &self,
        vhost: VhostId,
        install: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        if vhost == VhostId::METADATA {
            install()?;
            return self.reopen(vhost);
        }
        let Some(vhosts) = self.vhosts.upgrade() else { return Ok(()) };
        vhosts.open_installed(vhost, |_| install())
    }
}

impl Replicas {
    fn handle(&self, vhost: VhostId) -> Option<Arc<VhostHandle>> {
        self.vhosts.upgrade()?.of_id(vhost)
    }
}

/// The nodes of the cluster of these links: those of the list, or the founders as long as it is not known.
fn nodes_of(links: &Links) -> Nodes {
    let list = links.nodes();
    let known = |name: &str| {
        let incarnations = list.member(name).map_or(FOUNDER_INCARNATIONS, ListedNode::incarnations);
        (replica_node(NodeId::of(name)), KnownNode { name: name.into(), incarnations })
    };
    let forgotten = list.0.iter().filter(|(_, node)| node.is_forgotten);
    let forgotten =
        forgotten.map(|(name, node)| (replica_node(NodeId::of(name)), *node.incarnations().end()));
    let me = (list.is_empty() || list.member(&links.name).is_some()).then(|| known(&links.name));
    let peers = links.peers();
    Nodes {
        cluster: replication::ClusterId(links.cluster().0),
        me: replica_node(links.own),
        my_name: links.name.as_str().into(),
        known: peers.iter().map(|peer| known(&peer.node.name)).chain(me).collect(),
        forgotten: forgotten.collect(),
        tell_leads: replication::levels::tells_leads(links.record_level()),
    }
}

/// A node as replication names it.
fn replica_node(node: NodeId) -> replication::NodeId {
    replication::NodeId::new(node.0).expect("the hash of a name has 48 bits and is not 0")
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
            LostCause::Closed(_) | LostCause::PeerStops | LostCause::Silent => {
                self.0.node_lost(node);
            }
            LostCause::Stalled
            | LostCause::Damaged(_)
            | LostCause::Replaced
            | LostCause::Refused(_)
            | LostCause::Stopping => self.0.link_changed(node),
        }
    }

    fn frames(&self, peer: NodeId, frames: Vec<Bytes>) {
        self.0.frames(replica_node(peer), frames);
    }

    // Members send pings of their own, which also tell the run of the process.
    fn clock(&self, _: NodeId, _: u64, _: u64, _: i64) {}

    fn lost_disk(&self) {
        self.0.lost_disk();
    }

    fn founded(&self) {
        self.0.founded();
    }
}
