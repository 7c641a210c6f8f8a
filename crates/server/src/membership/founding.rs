//! The founding of a cluster, and what its nodes remember of each other's disks: a state machine without files and
//! clocks.
//!
//! Each node draws the id of its disk at its first start, and remembers the disks of the nodes that it meets. A node
//! that has met all others is *complete*: from then on it refuses a node that comes with another disk, because that
//! node has lost its data and could vote twice. The cluster is *founded* when a node knows that all nodes are complete
//! and remember the same disks; only then may it vote. From then on a majority suffices.
//!
//! Why completeness alone is not enough: if A counts as founded once it has met B and C, it may work with B while C
//! has never met B. Should B then lose its disk, C would take the new B for the first one, and the two could elect a
//! leader that knows nothing of what A and the old B have confirmed.
//!
//! Until then the nodes are those of the configuration, and later those of the [list](super::node_list) in the metadata:
//! nodes join and are forgotten. A node that joins is told the list and the disks, and counts as founded from then on.
//!
//! A node of a founded cluster that lost its disk may *replace* it, if its operator agrees: a founded peer tells it the
//! disk that it had, and it draws one of the next generation, which founded peers accept and tell each other. It gives
//! up all that its first start has begun, and votes only as the next incarnation of its members, which the leaders of
//! their groups add: what was on the lost disk never votes again, nor is it forgotten that it has voted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Not;
use std::sync::Arc;

use replication::levels::FIRST_RECORD_LEVEL;
use serde::{Deserialize, Serialize};

use super::node_list::{ListedNode, NodeList};
use crate::membership::ids::{ClusterId, DiskId, NodeId};

/// The memory of a node of its cluster, as `cluster.json` has it. The first builds with clusters did not write the members
/// that have a default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterRecord {
    /// Name of the node.
    pub(crate) node: String,
    pub(crate) cluster: ClusterId,
    /// The node's own disk.
    pub(crate) disk: DiskId,
    #[serde(rename = "founded")]
    pub(crate) is_founded: bool,
    /// True if the node has come later than its cluster: it has joined, or its disk has replaced one that was lost.
    #[serde(rename = "newcomer", default)]
    pub(crate) is_newcomer: bool,
    /// The disks of the other nodes that were met or told, by name.
    #[serde(rename = "disks")]
    pub(crate) peers: BTreeMap<String, DiskId>,
    /// The nodes of the cluster as the metadata list them; empty until they are known.
    #[serde(default)]
    pub(crate) nodes: Arc<NodeList>,
    /// Position of the log of the metadata at which this list was known.
    #[serde(default)]
    pub(crate) nodes_position: u64,
    /// Level of record kinds that the cluster has, as far as this node knows.
    #[serde(default = "first_record_level")]
    pub(crate) record_level: u16,
    /// True if the metadata are to list the nodes as this record does: the node goes on without the others.
    #[serde(rename = "nodes_due", default, skip_serializing_if = "Not::not")]
    pub(crate) are_nodes_due: bool,
}

const fn first_record_level() -> u16 {
    FIRST_RECORD_LEVEL
}

impl ClusterRecord {
    /// The record of a node whose disk is `disk`, before it has met any other node.
    pub(crate) fn new(node: &str, cluster: ClusterId, disk: DiskId) -> Self {
        Self {
            node: node.to_owned(),
            cluster,
            disk,
            is_founded: false,
            is_newcomer: false,
            peers: BTreeMap::new(),
            nodes: Arc::default(),
            nodes_position: 0,
            record_level: FIRST_RECORD_LEVEL,
            are_nodes_due: false,
        }
    }
}

/// The facts that a peer tells of itself in its hello and its introduction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PeerStatement {
    pub(crate) disk: DiskId,
    pub(crate) is_founded: bool,
    /// The disks that the peer remembers, its own included.
    pub(crate) disks: BTreeMap<NodeId, DiskId>,
}

/// The effect of what a peer has told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StatementEffect {
    /// No change.
    Unchanged,
    /// The record has changed: it must be on the disk before anything else is done.
    Changed,
    /// The node has taken a new disk in place of the one that it lost: its links must be opened anew, and what its
    /// start has begun must not be used.
    TookNewDisk,
}

/// The reason why a peer, or this node, may not take part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DiskProblem {
    /// The peer has another disk than the one that is remembered.
    PeerLostDisk,
    /// The peer remembers another disk of this node.
    OwnDiskLost,
    /// Both remember different disks of a third node, and nothing was founded.
    Disagreement { of: String },
    /// The peer is not one of the cluster any more.
    Forgotten,
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
         {configured}: the list cannot change before all of its nodes have met once"
    )]
    OtherCluster { recorded: ClusterId, configured: ClusterId },
    #[error(
        "the data directory belongs to cluster {0}, whose nodes have not all met yet, and the configuration lists no nodes"
    )]
    NoCluster(ClusterId),
}

/// The state of the founding on one node.
#[derive(Clone, Debug)]
pub(crate) struct Founding {
    record: ClusterRecord,
    /// Names of the other nodes.
    peers: BTreeSet<String>,
    /// Random bits for the disk that replaces a lost one; none if the operator has not agreed.
    replacement: Option<u64>,
    /// The disks that peers have told in this run of the process.
    told: BTreeMap<String, BTreeMap<NodeId, DiskId>>,
}

impl Founding {
    /// The founding of node `me` among `names`. `known` is the record of an earlier start; `fresh` is the disk of a
    /// first one. With random bits in `replacement`, a node that has lost its disk may get another one.
    ///
    /// # Errors
    /// [`RecordProblem`].
    pub(crate) fn new(
        me: &str,
        names: &[&str],
        known: Option<ClusterRecord>,
        fresh: DiskId,
        replacement: Option<u64>,
    ) -> Result<Self, RecordProblem> {
        let cluster = ClusterId::of(names.iter().copied());
        let peers = names.iter().filter(|name| **name != me).map(|name| (*name).to_owned());
        let mut record = known.unwrap_or_else(|| ClusterRecord::new(me, cluster, fresh));
        if record.cluster == ClusterId::UNKNOWN {
            record.cluster = cluster;
        }
        if record.node != me {
            let configured = me.to_owned();
            return Err(RecordProblem::OtherNode { recorded: record.node, configured });
        }
        if record.cluster != cluster && record.nodes.is_empty() {
            let recorded = record.cluster;
            return Err(RecordProblem::OtherCluster { recorded, configured: cluster });
        }
        let (peers, told) = (peers.collect(), BTreeMap::new());
        let mut founding = Self { record, peers, replacement, told };
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

    /// Takes what a peer tells.
    ///
    /// # Errors
    /// [`DiskProblem`]: the link is closed, and nothing has changed.
    pub(crate) fn hear(
        &mut self,
        peer: &str,
        told: &PeerStatement,
    ) -> Result<StatementEffect, DiskProblem> {
        if !self.peers.contains(peer) {
            return Err(DiskProblem::Forgotten);
        }
        let before = self.record.clone();
        // Lists of founded nodes differ while a node joins or is forgotten.
        let peer_is_complete = told.is_founded || told.disks.len() > self.peers.len();
        if peer_is_complete && let Some(heard) = self.hear_of_own_disk(told)? {
            return Ok(heard);
        }
        let remembered = self.record.peers.get(peer);
        if let Some(remembered) = remembered.filter(|disk| **disk != told.disk)
            && self.is_complete()
            && !(self.is_founded() && replaces(told.disk, *remembered))
        {
            return Err(DiskProblem::PeerLostDisk);
        }
        let others = match peer_is_complete && self.is_complete() {
            true => self.disks_of_others(peer, told)?,
            false => Vec::new(),
        };
        self.record.peers.extend(others);
        self.record.peers.insert(peer.to_owned(), told.disk);
        self.told.insert(peer.to_owned(), told.disks.clone());
        let is_taken_in = told.disks.get(&NodeId::of(&self.record.node)) == Some(&self.record.disk);
        if told.is_founded && self.record.is_newcomer && !self.is_founded() && is_taken_in {
            // The peer knows the new disk, and all others.
            let others = self.peers.iter().filter(|name| *name != peer);
            let disks =
                others.filter_map(|name| Some((name.clone(), *told.disks.get(&NodeId::of(name))?)));
            self.record.peers.extend(disks);
        }
        if told.is_founded && self.is_complete() && told.disks == self.disks() {
            // The peer has heard it from all.
            self.record.is_founded = true;
        }
        self.found_if_agreed();
        Ok(if self.record == before {
            StatementEffect::Unchanged
        } else {
            StatementEffect::Changed
        })
    }

    /// Takes what a complete peer remembers of the disk of this node, which it may have lost.
    fn hear_of_own_disk(
        &mut self,
        told: &PeerStatement,
    ) -> Result<Option<StatementEffect>, DiskProblem> {
        let own = self.record.disk;
        let remembered = told.disks.get(&NodeId::of(&self.record.node));
        let Some(remembered) = remembered.filter(|disk| **disk != own) else { return Ok(None) };
        if told.is_founded && replaces(own, *remembered) {
            // The peer learns it by this link.
            return Ok(None);
        }
        let new = self.replacement.and_then(|random| remembered.replaced(random));
        match new.filter(|_| told.is_founded && !self.is_founded()) {
            Some(disk) => {
                self.record.disk = disk;
                self.record.is_newcomer = true;
                self.record.peers.clear();
                self.told.clear();
                Ok(Some(StatementEffect::TookNewDisk))
            }
            None => Err(DiskProblem::OwnDiskLost),
        }
    }

    /// The disks of third nodes that have replaced those which this node remembers.
    fn disks_of_others(
        &self,
        peer: &str,
        told: &PeerStatement,
    ) -> Result<Vec<(String, DiskId)>, DiskProblem> {
        let mut newer = Vec::new();
        for (name, ours) in self.record.peers.iter().filter(|(name, _)| *name != peer) {
            let theirs = told.disks.get(&NodeId::of(name)).copied();
            let both_are_founded = told.is_founded && self.is_founded();
            match theirs.filter(|_| both_are_founded) {
                Some(theirs) if replaces(theirs, *ours) => newer.push((name.clone(), theirs)),
                Some(theirs) if replaces(*ours, theirs) => {}
                // One of the two knows earlier that the node has joined, or is forgotten.
                None if both_are_founded => {}
                _ if theirs == Some(*ours) => {}
                _ => return Err(DiskProblem::Disagreement { of: name.clone() }),
            }
        }
        Ok(newer)
    }

    /// Takes a list of the nodes, which the metadata had at this position of their log. True if it is another one, and not
    /// older: the record must be on the disk before anything else is done.
    pub(crate) fn set_nodes(&mut self, nodes: &NodeList, position: u64) -> bool {
        if *nodes == *self.record.nodes || position < self.record.nodes_position {
            return false;
        }
        let others = nodes.members().filter(|(name, _)| *name != self.record.node);
        let others: BTreeMap<&str, &ListedNode> = others.collect();
        self.peers = others.keys().map(|name| (*name).to_owned()).collect();
        self.record.peers.retain(|name, _| self.peers.contains(name));
        self.told.retain(|name, _| self.peers.contains(name));
        for (name, node) in others {
            let known = self.record.peers.entry(name.to_owned()).or_insert(node.disk);
            if replaces(node.disk, *known) {
                *known = node.disk;
            }
        }
        self.record.nodes = Arc::new(nodes.clone());
        self.record.nodes_position = position;
        true
    }

    /// Takes the level of record kinds that the metadata have. True if it is a higher one: the record must be on the disk
    /// before anything else is done.
    pub(crate) fn raise_record_level(&mut self, level: u16) -> bool {
        let is_higher = level > self.record.record_level;
        self.record.record_level = self.record.record_level.max(level);
        is_higher
    }

    /// Notes that the metadata list the nodes as this record does.
    pub(crate) fn nodes_are_listed(&mut self) {
        self.record.are_nodes_due = false;
    }

    fn found_if_agreed(&mut self) {
        let ours = self.disks();
        let agrees = |name: &String| self.told.get(name).is_some_and(|disks| *disks == ours);
        if self.is_complete() && self.peers.iter().all(agrees) {
            self.record.is_founded = true;
        }
    }
}

/// True if a disk has replaced another one of the same node.
fn replaces(newer: DiskId, older: DiskId) -> bool {
    newer.generation() > older.generation()
}

#[cfg(test)]
#[path = "founding_tests.rs"]
mod tests;
