//! The nodes that are to have a replica, as the metadata of a cluster say, which are not simulated themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use replication::levels::FIRST_RECORD_LEVEL;
use replication::{GroupPlacement, MemberId, NodeId};

use crate::cluster::ids::{node_id, node_number};
use crate::faults::sabotage::Sabotage;

/// Incarnations that the members of a node have for each time that it has a replica.
const INCARNATIONS: u16 = 64;

/// The nodes that are to have a replica.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    /// Number of changes that have led to it.
    pub(crate) version: usize,
    /// The level of record kinds of the metadata that tell of it.
    pub(crate) level: u16,
    /// The nodes, each with the first incarnation of its members.
    chosen: BTreeMap<usize, u16>,
    /// Nodes that were chosen before, each with the first incarnation for the next time.
    former: BTreeMap<usize, u16>,
    forgotten: BTreeSet<usize>,
}

impl Placement {
    /// The first nodes have a replica.
    pub(crate) fn on_founders(founders: usize) -> Self {
        Self {
            version: 0,
            level: FIRST_RECORD_LEVEL,
            chosen: (0..founders).map(|node| (node, 1)).collect(),
            former: BTreeMap::new(),
            forgotten: BTreeSet::new(),
        }
    }

    pub(crate) fn has(&self, node: usize) -> bool {
        self.chosen.contains_key(&node)
    }

    pub(crate) fn is_forgotten(&self, node: usize) -> bool {
        self.forgotten.contains(&node)
    }

    /// The chosen nodes.
    pub(crate) fn nodes(&self) -> Vec<usize> {
        self.chosen.keys().copied().collect()
    }

    pub(crate) fn add(&mut self, node: usize) {
        let first = self.former.remove(&node).unwrap_or(1);
        self.chosen.entry(node).or_insert(first);
    }

    pub(crate) fn remove(&mut self, node: usize) {
        if let Some(first) = self.chosen.remove(&node) {
            self.former.insert(node, first + INCARNATIONS);
        }
    }

    /// Nodes that are chosen again begin with their first members, as a sabotage says.
    pub(crate) fn forget_former(&mut self) {
        self.former.clear();
    }

    /// A node is gone for good.
    pub(crate) fn forget(&mut self, node: usize) {
        self.remove(node);
        self.forgotten.insert(node);
    }
}

impl GroupPlacement for Placement {
    fn incarnations(&self, node: NodeId) -> Option<RangeInclusive<u16>> {
        let first = *self.chosen.get(&node_number(node))?;
        Some(first..=first + INCARNATIONS - 1)
    }

    fn first_incarnation(&self, node: NodeId) -> Option<u16> {
        let number = node_number(node);
        let first = self.chosen.get(&number).or_else(|| self.former.get(&number));
        (!self.is_forgotten(number)).then(|| first.copied().unwrap_or(1))
    }

    fn is_gone(&self, member: MemberId) -> bool {
        self.is_forgotten(node_number(member.node()))
    }

    fn chosen(&self) -> Option<Vec<NodeId>> {
        Some(self.chosen.keys().copied().map(node_id).collect())
    }
}

/// The nodes that are to have a replica, as a leader sees them that a sabotage deceives.
pub(super) struct Seen<'a> {
    pub(super) placement: &'a Placement,
    /// The member of the node itself.
    pub(super) me: MemberId,
    pub(super) sabotage: Option<Sabotage>,
}

impl GroupPlacement for Seen<'_> {
    fn incarnations(&self, node: NodeId) -> Option<RangeInclusive<u16>> {
        self.placement.incarnations(node)
    }

    fn first_incarnation(&self, node: NodeId) -> Option<u16> {
        self.placement.first_incarnation(node)
    }

    fn is_gone(&self, member: MemberId) -> bool {
        self.placement.is_gone(member)
    }

    fn chosen(&self) -> Option<Vec<NodeId>> {
        match self.sabotage {
            // They all have a voter.
            Some(Sabotage::LeaverRemovedEarly) => Some(Vec::new()),
            _ => self.placement.chosen(),
        }
    }

    fn is_leaving(&self, member: MemberId) -> bool {
        let stays = self.sabotage == Some(Sabotage::LeaverKeepsLead) && member == self.me;
        !stays && self.placement.is_leaving(member)
    }
}
