//! The founding of a cluster whose nodes are listed: a state machine without files and clocks.
//!
//! Each node draws the id of its disk at its first start, and remembers the disks of the nodes that it meets. A node
//! that has met all others is *complete*: from then on it refuses a node that comes with another disk, because that
//! node has lost its data and could vote twice. The cluster is *founded* when a node knows that all nodes are complete
//! and remember the same disks; only then may it vote. From then on a majority suffices.
//!
//! Why completeness alone is not enough: if A counts as founded once it has met B and C, it may work with B while C
//! has never met B. Should B then lose its disk, C would take the new B for the first one, and the two could elect a
//! leader that knows nothing of what A and the old B have confirmed.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{ClusterId, DiskId, NodeId};

/// The memory of a node of its cluster, in `cluster.json`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClusterRecord {
    /// Name of the node.
    pub(crate) node: String,
    pub(crate) cluster: ClusterId,
    /// The node's own disk.
    pub(crate) disk: DiskId,
    pub(crate) is_founded: bool,
    /// The disks of the other nodes that were met, by name.
    pub(crate) peers: BTreeMap<String, DiskId>,
}

/// The facts that a peer tells of itself in its hello and its introduction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) disk: DiskId,
    pub(crate) is_founded: bool,
    /// The disks that the peer remembers, its own included.
    pub(crate) disks: BTreeMap<NodeId, DiskId>,
}

/// The reason why a peer, or this node, may not take part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DiskProblem {
    /// The peer has another disk than the one that is remembered.
    PeerLostDisk,
    /// The peer remembers another disk of this node.
    OwnDiskLost,
    /// Both remember different disks of this node, and nothing was founded.
    Disagreement { of: String },
}

/// The reason why the record on the disk does not fit the configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum RecordProblem {
    #[error(
        "the data directory belongs to node '{recorded}', and this node is '{configured}': a directory is not copied \
         from node to node"
    )]
    OtherNode { recorded: String, configured: String },
    #[error(
        "the data directory belongs to cluster {recorded}, and the configuration lists the nodes of cluster \
         {configured}: the list of nodes of a cluster cannot change"
    )]
    OtherCluster { recorded: ClusterId, configured: ClusterId },
    #[error(
        "the data directory belongs to cluster {0}, and the configuration lists no nodes: alone, the node would go on \
         with what the others may have replaced"
    )]
    NoCluster(ClusterId),
}

/// The state of the founding on one node.
#[derive(Clone, Debug)]
pub(crate) struct Founding {
    record: ClusterRecord,
    /// Names of the other nodes.
    peers: BTreeSet<String>,
    /// The disks that peers have told in this run of the process.
    told: BTreeMap<String, BTreeMap<NodeId, DiskId>>,
}

impl Founding {
    /// The founding of node `me` among `names`. `known` is the record of an earlier start; `fresh` is the disk of a
    /// first one.
    ///
    /// # Errors
    /// [`RecordProblem`].
    pub(crate) fn new(
        me: &str,
        names: &[&str],
        known: Option<ClusterRecord>,
        fresh: DiskId,
    ) -> Result<Self, RecordProblem> {
        let cluster = ClusterId::of(names.iter().copied());
        let peers = names.iter().filter(|name| **name != me).map(|name| (*name).to_owned());
        let record = known.unwrap_or_else(|| ClusterRecord {
            node: me.to_owned(),
            cluster,
            disk: fresh,
            is_founded: false,
            peers: BTreeMap::new(),
        });
        if record.node != me {
            let configured = me.to_owned();
            return Err(RecordProblem::OtherNode { recorded: record.node, configured });
        }
        if record.cluster != cluster {
            let recorded = record.cluster;
            return Err(RecordProblem::OtherCluster { recorded, configured: cluster });
        }
        let mut founding = Self { record, peers: peers.collect(), told: BTreeMap::new() };
        founding.found_if_agreed();
        Ok(founding)
    }

    /// The record that must be on the disk.
    pub(crate) fn record(&self) -> &ClusterRecord {
        &self.record
    }

    /// True if this node may vote.
    pub(crate) fn is_founded(&self) -> bool {
        self.record.is_founded
    }

    /// Names of the nodes that this node has not met yet.
    pub(crate) fn unmet(&self) -> Vec<&str> {
        let met = &self.record.peers;
        let names = self.peers.iter().filter(|name| !met.contains_key(*name));
        names.map(String::as_str).collect()
    }

    /// The disks that this node remembers, its own included.
    pub(crate) fn disks(&self) -> BTreeMap<NodeId, DiskId> {
        let met = self.record.peers.iter().map(|(name, disk)| (NodeId::of(name), *disk));
        met.chain([(NodeId::of(&self.record.node), self.record.disk)]).collect()
    }

    fn is_complete(&self) -> bool {
        self.record.peers.len() == self.peers.len()
    }

    /// Takes what a peer tells. True if the record has changed: it must be on the disk before anything else is done.
    ///
    /// # Errors
    /// [`DiskProblem`]: the link is closed, and nothing has changed.
    ///
    /// # Panics
    /// If the peer is not a listed one.
    pub(crate) fn hear(&mut self, peer: &str, told: &Told) -> Result<bool, DiskProblem> {
        assert!(self.peers.contains(peer), "a node that is not listed");
        let own = NodeId::of(&self.record.node);
        let peer_is_complete = told.disks.len() > self.peers.len();
        // A peer that is not complete takes the new disk.
        if peer_is_complete && told.disks.get(&own).is_some_and(|disk| *disk != self.record.disk) {
            return Err(DiskProblem::OwnDiskLost);
        }
        let remembered = self.record.peers.get(peer);
        if remembered.is_some_and(|disk| *disk != told.disk) && self.is_complete() {
            return Err(DiskProblem::PeerLostDisk);
        }
        if peer_is_complete && self.is_complete() {
            let ours = self.disks();
            let differs = |name: &&String| {
                let node = NodeId::of(name);
                ours.get(&node) != told.disks.get(&node)
            };
            if let Some(of) = self.peers.iter().find(differs) {
                return Err(DiskProblem::Disagreement { of: of.clone() });
            }
        }
        let before = self.record.clone();
        self.record.peers.insert(peer.to_owned(), told.disk);
        self.told.insert(peer.to_owned(), told.disks.clone());
        if told.is_founded && self.is_complete() && told.disks == self.disks() {
            // The peer has heard it from all.
            self.record.is_founded = true;
        }
        self.found_if_agreed();
        Ok(self.record != before)
    }

    fn found_if_agreed(&mut self) {
        let ours = self.disks();
        let agrees = |name: &String| self.told.get(name).is_some_and(|disks| *disks == ours);
        if self.is_complete() && self.peers.iter().all(agrees) {
            self.record.is_founded = true;
        }
    }
}

#[cfg(test)]
#[path = "founding_tests.rs"]
mod tests;
