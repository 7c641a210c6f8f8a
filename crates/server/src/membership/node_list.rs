//! The list of the nodes of a cluster: a part of the metadata, with a copy in `cluster.json`.
//!
//! The nodes that have founded the cluster are the first ones. A node *joins* when the list has it, and is *forgotten*
//! when an operator says so. A forgotten node keeps its place in the list, because nothing that its members have been may
//! be used again: when a node of this name joins another time, its members begin with incarnations, and its disk with a
//! generation, that no earlier one had.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::config::ClusterNode;
use crate::limits::{CLUSTER_NODES_MAX, FORGOTTEN_NODES_MAX, HOST_NAME_BYTES_MAX};
use crate::membership::fields::{FieldWriter, Fields, Malformed};
use crate::membership::ids::{DiskId, NodeId};

/// Incarnations that the members of a node have for each time that it joins.
const INCARNATIONS_PER_JOIN: u16 = 1024;

/// Times that a node may join under one name: there are no more incarnations.
pub(crate) const JOINS_MAX: u16 = u16::MAX / INCARNATIONS_PER_JOIN;

/// The incarnations of members of a founder.
pub(crate) const FOUNDER_INCARNATIONS: RangeInclusive<u16> =
    FIRST_INCARNATION..=INCARNATIONS_PER_JOIN - 1;

/// Incarnation of the members with which a cluster begins.
pub(crate) const FIRST_INCARNATION: u16 = 1;

/// A node in the list, as `cluster.json` and the metadata have it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedNode {
    /// Host and port for links.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The disk with which the node has joined. One that has replaced it later is of a higher generation.
    pub(crate) disk: DiskId,
    /// Number of times that the node has joined; 0 for a founder.
    #[serde(deserialize_with = "joins")]
    pub(crate) joins: u16,
    #[serde(rename = "forgotten")]
    pub(crate) is_forgotten: bool,
}

fn joins<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let joins = u16::deserialize(from)?;
    let problem = || D::Error::custom(format_args!("{joins} joins, of at most {JOINS_MAX}"));
    (joins <= JOINS_MAX).then_some(joins).ok_or_else(problem)
}

impl ListedNode {
    /// The incarnations that members of the node may have now.
    pub(crate) fn incarnations(&self) -> RangeInclusive<u16> {
        let before = self.joins.checked_mul(INCARNATIONS_PER_JOIN).expect("joins are bounded");
        let (first, last) = (FOUNDER_INCARNATIONS.start(), FOUNDER_INCARNATIONS.end());
        before + first..=before + last
    }
}

/// The nodes of a cluster by name, those included that are forgotten. Empty until the metadata are known.
///
/// Of two lists that differ, the newer one was known at a later position of the log of the metadata.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct NodeList(pub(crate) BTreeMap<String, ListedNode>);

/// Bytes of a node in a frame, without the texts: their lengths, the port, the disk, the joins, the flag.
const NODE_BYTES_MIN: usize = 2 + 2 + 8 + 2 + 1;

/// Writes a host and a port.
pub(crate) fn put_place(out: &mut FieldWriter, host: &str, port: u16) {
    out.text(host).u16(port);
}

/// Reads a host and a port.
///
/// # Errors
/// [`Malformed`].
pub(crate) fn place(fields: &mut Fields<'_>) -> Result<(String, u16), Malformed> {
    Ok((fields.text()?, fields.u16()?))
}

/// A node that asks to join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Joining {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The disk that the node has drawn.
    pub(crate) disk: DiskId,
}

/// The decision about a node that asks to join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// The node is in the list already, with this disk.
    Listed(DiskId),
    /// The node is to be put into the list.
    New(ListedNode),
    /// The node is in the list with another disk: it has lost its data.
    LostDisk,
}

/// The reason why a node cannot join.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ListProblem {
    #[error("{0:?} is not the name of a node with a host")]
    Name(String),
    #[error("the node has no usable address")]
    Address,
    #[error("node '{0}' has the same address")]
    SameAddress(String),
    #[error("node '{0}' has the same id; rename the node that joins")]
    SameId(String),
    #[error("the cluster has {CLUSTER_NODES_MAX} nodes, as many as it can have")]
    Full,
    #[error(
        "the cluster has had {FORGOTTEN_NODES_MAX} names of nodes; take one that was forgotten"
    )]
    TooManyNames,
    #[error("the node has joined too often under this name; rename the node")]
    TooManyJoins,
}

impl NodeList {
    /// True if the list is not known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The nodes that are not forgotten, by name.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &ListedNode)> {
        let members = self.0.iter().filter(|(_, node)| !node.is_forgotten);
        members.map(|(name, node)| (name.as_str(), node))
    }

    /// The member of this name.
    pub(crate) fn member(&self, name: &str) -> Option<&ListedNode> {
        self.0.get(name).filter(|node| !node.is_forgotten)
    }

    /// The members as a configuration lists them. The address of a founder in `configured` wins: the list has it as the
    /// first leader saw it. A node that has joined has told its address itself.
    pub(crate) fn to_config(&self, configured: &[ClusterNode]) -> Vec<ClusterNode> {
        let nodes = self.members().map(|(name, node)| {
            let own = configured.iter().find(|own| own.name == name && node.joins == 0);
            own.cloned().unwrap_or_else(|| ClusterNode {
                name: name.to_owned(),
                host: node.host.clone(),
                port: node.port,
                key: "the list of nodes".to_owned(),
            })
        });
        nodes.collect()
    }

    /// Writes the list.
    pub(crate) fn encode(&self, out: &mut FieldWriter) {
        out.count(self.0.len());
        for (name, node) in &self.0 {
            put_place(out.text(name), &node.host, node.port);
            out.u64(node.disk.0).u16(node.joins).flag(node.is_forgotten);
        }
    }

    /// Reads a list.
    ///
    /// # Errors
    /// [`Malformed`].
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let mut nodes = Self::default();
        for _ in 0..fields.count(NODE_BYTES_MIN)? {
            let name = fields.text()?;
            let (host, port) = place(fields)?;
            let (disk, joins) = (DiskId(fields.u64()?), fields.u16()?);
            let is_forgotten = fields.flag()?;
            if !ClusterNode::is_name(&name) || joins > JOINS_MAX {
                return Err(Malformed);
            }
            nodes.0.insert(name, ListedNode { host, port, disk, joins, is_forgotten });
        }
        Ok(nodes)
    }

    /// Decides about a node that asks to join.
    ///
    /// # Errors
    /// [`ListProblem`]: the node cannot join.
    pub(crate) fn admit(&self, joining: &Joining) -> Result<Admission, ListProblem> {
        let Joining { name, host, port, disk } = joining;
        if !ClusterNode::is_name(name) {
            return Err(ListProblem::Name(name.clone()));
        }
        let known = self.0.get(name);
        if let Some(known) = known.filter(|known| !known.is_forgotten) {
            return Ok(match known.disk.is_drawn_as(*disk) {
                true => Admission::Listed(known.disk),
                false => Admission::LostDisk,
            });
        }
        if host.is_empty() || host.len() > HOST_NAME_BYTES_MAX || *port == 0 {
            return Err(ListProblem::Address);
        }
        let mut members = self.members();
        if let Some((other, _)) = members.find(|(_, it)| it.host == *host && it.port == *port) {
            return Err(ListProblem::SameAddress(other.to_owned()));
        }
        let same_id = |other: &&String| **other != *name && NodeId::of(other) == NodeId::of(name);
        if let Some(other) = self.0.keys().find(same_id) {
            return Err(ListProblem::SameId(other.clone()));
        }
        if self.members().count() >= CLUSTER_NODES_MAX {
            return Err(ListProblem::Full);
        }
        if known.is_none() && self.0.len() >= FORGOTTEN_NODES_MAX {
            return Err(ListProblem::TooManyNames);
        }
        let joins = known.map_or(0, |known| known.joins) + 1;
        if joins > JOINS_MAX {
            return Err(ListProblem::TooManyJoins);
        }
        let disk = match known {
            Some(known) => known.disk.replaced(disk.0).ok_or(ListProblem::TooManyJoins)?,
            None => DiskId::first(disk.0),
        };
        let (host, port) = (host.clone(), *port);
        Ok(Admission::New(ListedNode { host, port, disk, joins, is_forgotten: false }))
    }

    /// The entry of a member that is forgotten, whose last disk was `disk` as far as known; none if there is no such
    /// member.
    pub(crate) fn forgotten(&self, name: &str, disk: Option<DiskId>) -> Option<ListedNode> {
        let known = self.member(name)?;
        let disk = disk.filter(|disk| disk.generation() > known.disk.generation());
        Some(ListedNode { disk: disk.unwrap_or(known.disk), is_forgotten: true, ..known.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joining(name: &str, port: u16, disk: u64) -> Joining {
        Joining { name: name.to_owned(), host: "h".to_owned(), port, disk: DiskId::first(disk) }
    }

    fn founders() -> NodeList {
        let founder = |port| ListedNode {
            host: "h".to_owned(),
            port,
            disk: DiskId::first(u64::from(port)),
            joins: 0,
            is_forgotten: false,
        };
        NodeList(
            [("a@h", 1), ("b@h", 2), ("c@h", 3)].map(|(n, p)| (n.to_owned(), founder(p))).into(),
        )
    }

    fn put(list: &mut NodeList, name: &str, node: ListedNode) {
        list.0.insert(name.to_owned(), node);
    }

    #[test]
    fn node_joins_once_and_is_told_the_same_again() {
        let mut list = founders();
        let asks = joining("d@h", 4, 77);
        let Ok(Admission::New(node)) = list.admit(&asks) else { panic!("not admitted") };
        assert_eq!((node.joins, node.disk, node.incarnations()), (1, asks.disk, 1025..=2047));
        put(&mut list, "d@h", node);
        assert_eq!(list.admit(&asks), Ok(Admission::Listed(asks.disk)));
        assert_eq!(list.admit(&joining("d@h", 4, 78)), Ok(Admission::LostDisk));
    }

    #[test]
    fn node_that_joins_again_has_nothing_of_what_it_was() {
        let mut list = founders();
        let replaced = DiskId::first(3).replaced(30).unwrap();
        let node = list.forgotten("c@h", Some(replaced)).unwrap();
        assert!(node.is_forgotten);
        put(&mut list, "c@h", node);
        assert_eq!(list.members().count(), 2);
        assert_eq!(list.forgotten("c@h", None), None);
        let asks = joining("c@h", 9, 31);
        let Ok(Admission::New(node)) = list.admit(&asks) else { panic!("not admitted") };
        assert_eq!((node.joins, node.disk.generation(), node.port), (1, 2, 9));
        put(&mut list, "c@h", node.clone());
        // Asked again before the answer was on its disk.
        assert_eq!(list.admit(&asks), Ok(Admission::Listed(node.disk)));
        let ranges: Vec<RangeInclusive<u16>> =
            (0..64).map(|joins| ListedNode { joins, ..node.clone() }.incarnations()).collect();
        assert!(ranges.windows(2).all(|two| two[0].end() < two[1].start()));
        put(&mut list, "c@h", ListedNode { joins: 63, is_forgotten: true, ..node });
        assert_eq!(list.admit(&asks), Err(ListProblem::TooManyJoins));
    }

    #[test]
    fn configured_addresses_of_founders_win() {
        let mut list = founders();
        let c = list.0["c@h"].clone();
        put(&mut list, "d@h", ListedNode { port: 4, joins: 1, ..c.clone() });
        put(&mut list, "c@h", ListedNode { is_forgotten: true, ..c });
        let own = |name| ClusterNode::parse(&format!("{name}:99"), "a key").unwrap();
        let nodes = list.to_config(&[own("b@h"), own("c@h"), own("d@h")]);
        let ports: Vec<(&str, u16)> =
            nodes.iter().map(|node| (node.name.as_str(), node.port)).collect();
        assert_eq!(ports, [("a@h", 1), ("b@h", 99), ("d@h", 4)]);
    }

    #[test]
    fn wrong_nodes_do_not_join() {
        let list = founders();
        let full = (4..=CLUSTER_NODES_MAX).fold(founders(), |mut list, n| {
            let port = u16::try_from(n).unwrap();
            let Ok(Admission::New(node)) = list.admit(&joining(&format!("n{n}@h"), port, 1)) else {
                panic!("not admitted")
            };
            put(&mut list, &format!("n{n}@h"), node);
            list
        });
        assert_eq!(full.admit(&joining("x@h", 99, 1)), Err(ListProblem::Full));
        let no_host = Joining { host: String::new(), ..joining("d@h", 4, 1) };
        for (asks, expected) in [
            (joining("d", 4, 1), ListProblem::Name("d".to_owned())),
            (joining("d@h", 0, 1), ListProblem::Address),
            (no_host, ListProblem::Address),
            (joining("d@h", 2, 1), ListProblem::SameAddress("b@h".to_owned())),
        ] {
            assert_eq!(list.admit(&asks), Err(expected));
        }
    }
}
