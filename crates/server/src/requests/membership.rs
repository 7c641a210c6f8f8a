//! The nodes of a cluster: who leads, members that come and go, and nodes that are forgotten.

use std::fmt;

use crate::requests::change::ChangeError;

/// The node that makes the changes of a vhost, or of the metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Leader {
    /// The node itself; without a cluster always.
    Here,
    /// Another node, by name.
    Node(String),
    /// No node leads now.
    None,
}

/// The reason why a node is not forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ForgetError {
    /// The node that was asked is in no cluster.
    NoCluster,
    /// No node of the cluster has this name.
    NoSuchNode,
    /// The node is up, and could serve on.
    IsUp,
    /// Vhosts that have no majority, or no replica, without the node.
    NeededBy(Vec<String>),
    /// The metadata cannot be changed.
    Change(ChangeError),
}

impl fmt::Display for ForgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCluster => f.write_str("this node is in no cluster"),
            Self::NoSuchNode => f.write_str("no node of the cluster has this name"),
            Self::IsUp => f.write_str("the node is up: stop it first"),
            Self::NeededBy(vhosts) => {
                let names: Vec<String> = vhosts.iter().map(|name| format!("'{name}'")).collect();
                write!(
                    f,
                    "these vhosts have no leader without the node, and would have none for ever: {}. Start the node again \
                     and give them more replicas, or delete them, and then forget it",
                    names.join(", ")
                )
            }
            Self::Change(error) => error.fmt(f),
        }
    }
}

impl From<ChangeError> for ForgetError {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}

/// A node gets a replica of a vhost, or gives it up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberChange {
    /// Name of the vhost.
    pub vhost: String,
    /// Name of the node.
    pub node: String,
    /// The replica comes or goes.
    pub kind: MemberChangeKind,
}

/// The direction of a [`MemberChange`]. One that is the case already changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberChangeKind {
    /// The node is to have a replica.
    Add,
    /// The node is to have none.
    Remove,
}

/// The reason why the members of vhosts do not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberError {
    /// No node of the cluster has this name.
    NoSuchNode,
    /// The vhost of this name has no other replica.
    LastMember(String),
    /// The metadata cannot be changed.
    Change(ChangeError),
}

impl From<ChangeError> for MemberError {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}
