//! The nodes of a cluster, with their names and ids.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use replication::{ClusterId, GroupPlacement, MemberId, NodeId};

use crate::membership::node_list::{FIRST_INCARNATION, FOUNDER_INCARNATIONS};
use crate::membership::placement::Placement;

/// A node, as replication knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KnownNode {
    pub(crate) name: Arc<str>,
    /// The incarnations that members of the node may have.
    pub(crate) incarnations: RangeInclusive<u16>,
}

/// The nodes of a cluster at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Nodes {
    pub(crate) cluster: ClusterId,
    /// The own node.
    pub(crate) me: NodeId,
    /// Name of the own node.
    pub(crate) my_name: Arc<str>,
    /// All nodes, this one included unless it is forgotten.
    pub(crate) known: BTreeMap<NodeId, KnownNode>,
    /// The nodes that are forgotten, each with the last incarnation that its members may have had.
    pub(crate) forgotten: BTreeMap<NodeId, u16>,
    /// True if all nodes know notices of leads.
    pub(crate) tell_leads: bool,
}

impl Nodes {
    /// Names of all nodes, in order of the names.
    pub(crate) fn sorted_names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> =
            self.known.values().map(|node| Arc::clone(&node.name)).collect();
        names.sort_unstable();
        names
    }

    /// The other nodes.
    pub(crate) fn others(&self) -> impl Iterator<Item = NodeId> {
        self.known.keys().copied().filter(|node| *node != self.me)
    }

    /// Name of a node.
    pub(crate) fn name_of(&self, node: NodeId) -> Option<Arc<str>> {
        self.known.get(&node).map(|node| Arc::clone(&node.name))
    }

    /// Name of the node of a member.
    pub(crate) fn name_of_member(&self, member: MemberId) -> Option<Arc<str>> {
        self.name_of(member.node())
    }

    /// The node of this name.
    pub(crate) fn named(&self, name: &str) -> Option<NodeId> {
        self.known.iter().find(|(_, node)| *node.name == *name).map(|(id, _)| *id)
    }

    /// The nodes that a group is to be on: all, if there is no placement.
    pub(crate) fn placed<'a>(&'a self, placement: Option<&'a Placement>) -> PlacedNodes<'a> {
        PlacedNodes { nodes: self, placement }
    }

    /// The member of this node in a group that begins.
    pub(crate) fn my_first_member(&self) -> MemberId {
        let first = self.known.get(&self.me).map(|node| *node.incarnations.start());
        self.me.member(first.unwrap_or(FIRST_INCARNATION))
    }

    /// The members with which the cluster has begun.
    pub(crate) fn founders(&self) -> Vec<MemberId> {
        let founders =
            self.known.iter().filter(|(_, node)| node.incarnations == FOUNDER_INCARNATIONS);
        founders.map(|(id, _)| id.member(FIRST_INCARNATION)).collect()
    }

    /// The first member of each of the nodes that `is_wanted` by name: those of a group that begins.
    pub(crate) fn first_members(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<MemberId> {
        let wanted = self.known.iter().filter(|(_, node)| is_wanted(&node.name));
        wanted.map(|(id, node)| id.member(*node.incarnations.start())).collect()
    }
}

/// The nodes that a group is to be on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedNodes<'a> {
    nodes: &'a Nodes,
    placement: Option<&'a Placement>,
}

impl GroupPlacement for PlacedNodes<'_> {
    fn incarnations(&self, node: NodeId) -> Option<RangeInclusive<u16>> {
        let KnownNode { name, incarnations } = self.nodes.known.get(&node)?;
        match self.placement {
            None => Some(incarnations.clone()),
            Some(placement) => placement.incarnations(name, incarnations),
        }
    }

    fn first_incarnation(&self, node: NodeId) -> Option<u16> {
        let KnownNode { name, incarnations } = self.nodes.known.get(&node)?;
        let offset = self.placement.map_or(0, |placement| placement.offset(name));
        Some(*incarnations.start() + offset)
    }

    /// A member of a node that is not known here may be of one that has joined since.
    fn is_gone(&self, member: MemberId) -> bool {
        let (node, incarnation) = (member.node(), member.incarnation());
        match self.nodes.known.get(&node) {
            Some(known) => incarnation < *known.incarnations.start(),
            None => self.nodes.forgotten.get(&node).is_some_and(|last| incarnation <= *last),
        }
    }

    fn chosen(&self) -> Option<Vec<NodeId>> {
        self.placement?.names().map(|name| self.nodes.named(name)).collect()
    }
}

#[cfg(test)]
impl Nodes {
    /// A cluster of one node.
    pub(crate) fn alone(me: NodeId, name: &str) -> Self {
        let my_name: Arc<str> = name.into();
        let name = Arc::clone(&my_name);
        let node = KnownNode { name, incarnations: FOUNDER_INCARNATIONS };
        Self {
            cluster: ClusterId(5),
            me,
            my_name,
            known: [(me, node)].into(),
            forgotten: BTreeMap::new(),
            tell_leads: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::placement::Choice;

    #[test]
    fn members_of_forgotten_nodes_are_gone_and_strangers_are_not() {
        let id = |id| NodeId::new(id).unwrap();
        let mut nodes = Nodes::alone(id(1), "a@h");
        let incarnations = 1025..=2047;
        nodes.known.insert(id(2), KnownNode { name: "b@h".into(), incarnations });
        nodes.forgotten.insert(id(3), 2047);
        let is_gone =
            |node: u64, incarnation| nodes.placed(None).is_gone(id(node).member(incarnation));
        assert!(!is_gone(1, 1) && !is_gone(1, 9));
        // It was forgotten once, and has joined again.
        assert!(is_gone(2, 1) && is_gone(2, 1023) && !is_gone(2, 1025));
        // It may have joined again, which this node does not know yet.
        assert!(is_gone(3, 1) && is_gone(3, 2047) && !is_gone(3, 2049));
        assert!(!is_gone(4, 1));
    }

    #[test]
    fn members_leave_where_the_placement_has_others() {
        let id = |id| NodeId::new(id).unwrap();
        let mut nodes = Nodes::alone(id(1), "a@h");
        nodes
            .known
            .insert(id(2), KnownNode { name: "b@h".into(), incarnations: FOUNDER_INCARNATIONS });
        let names = ["a@h", "b@h"].map(str::to_owned);
        let mut placement = Placement::on_all(&names);
        let [a, b] = [id(1).member(1), id(2).member(7)];
        let placed = nodes.placed(Some(&placement));
        assert!(placed.have_all(&[a, b]) && !placed.have_all(&[a]));
        assert!(![a, b].iter().any(|member| placed.is_leaving(*member)));
        assert_eq!(nodes.placed(None).incarnations(id(2)), Some(FOUNDER_INCARNATIONS));
        let mut choose = |wanted| {
            let nodes = names.iter().map(|name| (name.clone(), 1)).collect();
            let is_ready = &|_: &str| true;
            placement.choose(&Choice { wanted, nodes: &nodes, leader: Some("a@h"), is_ready });
            placement.clone()
        };
        let on_one = choose(1);
        let placed = nodes.placed(Some(&on_one));
        assert!(placed.have_all(&[a]) && placed.is_leaving(b));
        // It may be chosen again already.
        assert!(!placed.is_leaving(id(2).member(513)));
        // It is chosen again: if its member has left, it comes back as another one.
        let on_both = choose(2);
        let placed = nodes.placed(Some(&on_both));
        assert!(placed.have_all(&[a, b]) && !placed.have_all(&[a]) && !placed.is_leaving(b));
        assert!(placed.may_be_left_out(b) && !placed.may_be_left_out(id(2).member(513)));
        // It may have joined since.
        assert!(!placed.is_leaving(id(3).member(1)) && !placed.may_be_left_out(id(3).member(1)));
    }
}
