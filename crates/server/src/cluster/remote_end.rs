//! The other end of a connection between nodes, in logs.

use std::fmt;
use std::net::IpAddr;

use super::refusal::Refusal;

/// The other end of a connection: a node, once its name is proved or it was dialed, or an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RemoteEnd<'a> {
    Node(&'a str),
    Address(IpAddr),
}

impl<'a> RemoteEnd<'a> {
    /// The end that has connected from an address, and was refused.
    pub(super) fn refused(from: IpAddr, refusal: &'a Refusal) -> Self {
        refusal.node().map_or(Self::Address(from), Self::Node)
    }
}

impl fmt::Display for RemoteEnd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node '{name}'"),
            Self::Address(address) => write!(f, "a peer at {address}"),
        }
    }
}
