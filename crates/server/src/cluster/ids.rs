//! Ids of a cluster, its nodes, their disks, and the groups of its vhosts.

use std::fmt;

use sha2::{Digest, Sha256};

/// Bits of a node's id: a member's id has 16 more for its incarnation.
const NODE_BITS: u32 = 48;

/// Id of a cluster: the first 64 bits of a hash of the names of its nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ClusterId(pub(crate) u64);

/// Id of a node: the first 48 bits of a hash of its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct NodeId(pub(crate) u64);

/// Id of the disk of a node: drawn at the node's first start, so that a node that lost its data is another disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DiskId(pub(crate) u64);

/// Id of the group of a vhost, which is the vhost's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct GroupId(pub(crate) u64);

impl ClusterId {
    /// The cluster of these nodes, in any order.
    pub(crate) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        let mut hash = Sha256::new();
        for name in names {
            hash.update(name);
            // Not a letter of a name.
            hash.update(b"\n");
        }
        Self(first_bits(&hash.finalize()))
    }
}

impl NodeId {
    /// The node of this name.
    pub(crate) fn of(name: &str) -> Self {
        Self(first_bits(&Sha256::digest(name)) >> (u64::BITS - NODE_BITS))
    }
}

fn first_bits(hash: &[u8]) -> u64 {
    let first = hash.first_chunk().expect("a hash has 32 bytes");
    u64::from_be_bytes(*first)
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids are on disks and in frames: they may not change.
    #[test]
    fn ids_are_hashes_of_names() {
        // The first octets of `printf a@127.0.0.1 | sha256sum`.
        let whole = Sha256::digest("a@127.0.0.1");
        let expected = whole.iter().take(6).fold(0, |id, byte| (id << 8) | u64::from(*byte));
        assert_eq!(NodeId::of("a@127.0.0.1"), NodeId(expected));
        assert_eq!(NodeId::of("a@127.0.0.1").to_string().len(), 12);
        let names = ["b@h", "a@h", "c@h"];
        let cluster = ClusterId::of(names.into_iter());
        assert_eq!(cluster, ClusterId::of(["a@h", "b@h", "c@h"].into_iter()));
        assert_ne!(cluster, ClusterId::of(["a@h", "b@h"].into_iter()));
        assert_ne!(ClusterId::of(["a@hb"].into_iter()), ClusterId::of(["a@h", "b"].into_iter()));
    }
}
