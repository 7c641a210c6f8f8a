//! The nodes that have the replicas of a vhost: their choice by the node that leads the metadata.
//!
//! The choice is part of the vhost's item. Nodes that are chosen and have no replica get one from the leader of the
//! vhost. That leader removes the member of a node that is not chosen any more once all chosen ones vote, and the node
//! its replica after that: a vhost has at no time fewer replicas than it should have because of a change.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Incarnations that the members of a node have while it has the replica of a vhost for the first time: one for each
/// time that this replica is rebuilt.
const FIRST_INCARNATIONS: u16 = 512;

/// Incarnations that the members of a node have for each time that it gets the replica of a vhost anew.
const LATER_INCARNATIONS: u16 = 16;

/// Number of incarnations from an offset on.
const fn incarnations_from(offset: u16) -> u16 {
    if offset == 0 { FIRST_INCARNATIONS } else { LATER_INCARNATIONS }
}

const _: () = assert!(
    crate::limits::REPLICAS_MAX as usize == replication::limits::VOTERS_MAX,
    "each replica of a vhost votes"
);

/// The nodes that have the replicas of a vhost, each with the offset of its incarnations among those of the node: no
/// member is the second one of its id.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Placement {
    nodes: BTreeMap<String, u16>,
    /// Nodes that have had a replica before, each with the offset for the next one.
    former: BTreeMap<String, u16>,
}

/// The facts that a choice depends on.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// The number of replicas that the vhost should have, if there are enough nodes.
    pub(crate) wanted: usize,
    /// The nodes of the cluster, each with the number of replicas that it has.
    pub(crate) nodes: &'a BTreeMap<String, usize>,
    /// A node that keeps its replica if others can give theirs up.
    pub(crate) leader: Option<&'a str>,
    /// True for a node that can vote at once.
    pub(crate) is_ready: &'a dyn Fn(&str) -> bool,
}

impl Placement {
    /// The placement of a vhost that is on all nodes.
    pub(crate) fn on_all<'a>(nodes: impl IntoIterator<Item = &'a String>) -> Self {
        let nodes = nodes.into_iter().map(|name| (name.clone(), 0)).collect();
        Self { nodes, former: BTreeMap::new() }
    }

    /// True if a node is chosen.
    pub(crate) fn has(&self, node: &str) -> bool {
        self.nodes.contains_key(node)
    }

    /// Names of the chosen nodes, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// The incarnations that the member of a chosen node may have, of those that members of the node may have.
    pub(crate) fn incarnations(
        &self,
        node: &str,
        all: &RangeInclusive<u16>,
    ) -> Option<RangeInclusive<u16>> {
        let offset = *self.nodes.get(node)?;
        let first = all.start() + offset;
        Some(first..=first + incarnations_from(offset) - 1)
    }

    /// The offset of the incarnations that a node has since it was chosen, or will have once it is chosen.
    pub(crate) fn offset(&self, node: &str) -> u16 {
        let offset = self.nodes.get(node).or_else(|| self.former.get(node));
        offset.copied().unwrap_or_default()
    }

    /// Chooses nodes: those of the cluster that are chosen stay as far as they are wanted, and those with the fewest
    /// replicas come.
    pub(crate) fn choose(&mut self, choice: &Choice<'_>) {
        let Choice { wanted, nodes, leader, is_ready } = choice;
        // A node that is forgotten has other incarnations when it comes again.
        self.nodes.retain(|name, _| nodes.contains_key(name));
        self.former.retain(|name, _| nodes.contains_key(name));
        while self.nodes.len() < *wanted {
            let free = nodes.iter().filter(|(name, _)| !self.has(name) && self.can_have(name));
            let next = free.min_by_key(|(name, replicas)| (!is_ready(name), **replicas));
            let Some((name, _)) = next else { break };
            self.add(name);
        }
        while self.nodes.len() > *wanted {
            let key = |name: &String| (Some(name.as_str()) != *leader, nodes.get(name).copied());
            let Some(most) = self.nodes.keys().max_by_key(|name| key(name)).cloned() else { break };
            self.remove(&most);
        }
    }

    /// Chooses a node, too. False if its incarnations are used up in this vhost.
    pub(crate) fn add(&mut self, node: &str) -> bool {
        if !self.has(node) {
            if !self.can_have(node) {
                return false;
            }
            let offset = self.former.remove(node).unwrap_or_default();
            self.nodes.insert(node.to_owned(), offset);
        }
        true
    }

    /// Chooses a node no more.
    pub(crate) fn remove(&mut self, node: &str) {
        if let Some((name, offset)) = self.nodes.remove_entry(node) {
            self.former.insert(name, offset + incarnations_from(offset));
        }
    }

    /// False if all incarnations of a node are used up in this vhost.
    fn can_have(&self, node: &str) -> bool {
        let all = crate::membership::node_list::FOUNDER_INCARNATIONS;
        let offset = self.former.get(node).copied().unwrap_or_default();
        all.start() + offset + incarnations_from(offset) - 1 <= *all.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn nodes(replicas: &[(&str, usize)]) -> BTreeMap<String, usize> {
        replicas.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    fn choose(placement: &mut Placement, wanted: usize, replicas: &[(&str, usize)]) {
        let nodes = nodes(replicas);
        let (leader, is_ready) = (Some("b"), &|name: &str| name != "late");
        placement.choose(&Choice { wanted, nodes: &nodes, leader, is_ready });
    }

    fn chosen(placement: &Placement) -> Vec<&str> {
        placement.names().collect()
    }

    #[test]
    fn nodes_with_the_fewest_replicas_come_and_those_with_most_go() {
        let mut placement = Placement::default();
        choose(&mut placement, 2, &[("a", 5), ("b", 1), ("c", 2), ("late", 0)]);
        assert_eq!(chosen(&placement), ["b", "c"]);
        choose(&mut placement, 4, &[("a", 5), ("b", 1), ("c", 2), ("late", 0)]);
        assert_eq!(chosen(&placement), ["a", "b", "c", "late"]);
        choose(&mut placement, 3, &[("a", 5), ("b", 9), ("c", 2), ("late", 0)]);
        assert_eq!(chosen(&placement), ["b", "c", "late"]);
        // As many as there are.
        choose(&mut placement, 7, &[("a", 5), ("b", 9)]);
        assert_eq!(chosen(&placement), ["a", "b"]);
        // The leader stays.
        choose(&mut placement, 1, &[("a", 5), ("b", 9)]);
        assert_eq!(chosen(&placement), ["b"]);
    }

    #[test]
    fn node_that_is_forgotten_is_replaced_by_another() {
        let all = ["a", "b", "c"].map(str::to_owned);
        let mut placement = Placement::on_all(&all);
        choose(&mut placement, 3, &[("b", 1), ("c", 1), ("d", 0)]);
        assert_eq!(chosen(&placement), ["b", "c", "d"]);
    }

    #[test]
    fn member_that_comes_back_has_an_incarnation_that_none_had() {
        let all = &crate::membership::node_list::FOUNDER_INCARNATIONS;
        let mut placement = Placement::on_all(&["a", "b"].map(str::to_owned));
        let (mut last, mut times) = (0, 0);
        while let Some(incarnations) = placement.incarnations("a", all) {
            assert!(*incarnations.start() > last && incarnations.end() <= all.end());
            (last, times) = (*incarnations.end(), times + 1);
            choose(&mut placement, 1, &[("a", 2), ("b", 1)]);
            assert_eq!(placement.incarnations("a", all), None);
            choose(&mut placement, 2, &[("a", 2), ("b", 1)]);
        }
        assert_eq!((times, chosen(&placement)), (32, vec!["b"]), "all are used up");
        // It is another node after it has been forgotten.
        choose(&mut placement, 2, &[("b", 1)]);
        choose(&mut placement, 2, &[("a", 0), ("b", 1)]);
        assert_eq!(placement.incarnations("a", &(1025..=2047)), Some(1025..=1536));
    }

    #[test]
    fn placement_reads_back_and_is_refused_when_damaged() {
        let mut placement = Placement::on_all(&["a", "b", "c"].map(str::to_owned));
        choose(&mut placement, 2, &[("a", 1), ("b", 1), ("c", 2)]);
        let value = serde_json::to_value(&placement).unwrap();
        let read = |value: Value| serde_json::from_value::<Placement>(value);
        assert_eq!(read(value).unwrap(), placement);
        for damaged in [
            json!({}),
            json!({"nodes": {}, "former": {}, "later": {}}),
            json!({"nodes": {}}),
            json!({"nodes": {"a": -1}, "former": {}}),
            json!({"nodes": {"a": 70_000}, "former": {}}),
            json!({"nodes": ["a"], "former": {}}),
        ] {
            assert!(read(damaged.clone()).is_err(), "{damaged}");
        }
    }
}
