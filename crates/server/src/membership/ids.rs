//! Ids of a cluster, its nodes, and their disks.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Bits of a node's id: a member's id has 16 more for its incarnation.
const NODE_BITS: u32 = 48;

/// Id of a cluster: the first 64 bits of a hash of the names of its nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct ClusterId(pub(crate) u64);

/// Id of a node: the first 48 bits of a hash of its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct NodeId(pub(crate) u64);

/// Bits of a disk's id that are drawn; the generation is above.
const DRAWN_BITS: u32 = 48;

/// Id of the disk of a node: drawn at the node's first start, so that a node that lost its data is another disk. A disk
/// that replaces another one has a higher generation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct DiskId(pub(crate) u64);

impl ClusterId {
    /// No cluster: the node has drawn the id of its disk, and does not know its nodes yet.
    pub(crate) const UNKNOWN: Self = Self(0);

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

    /// The cluster of a text, 16 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        hexadecimal(text).map(Self)
    }
}

impl NodeId {
    /// The node of this name.
    pub(crate) fn of(name: &str) -> Self {
        Self(first_bits(&Sha256::digest(name)) >> (u64::BITS - NODE_BITS))
    }
}

impl DiskId {
    /// The first disk of a node. `random` is drawn.
    pub(crate) fn first(random: u64) -> Self {
        Self(random & ((1 << DRAWN_BITS) - 1))
    }

    /// The disk that replaces this one; none after 65,535 of them.
    pub(crate) fn replaced(self, random: u64) -> Option<Self> {
        let generation = self.generation().checked_add(1)?;
        Some(Self((u64::from(generation) << DRAWN_BITS) | Self::first(random).0))
    }

    /// True if both were drawn from the same random bits.
    pub(crate) fn is_drawn_as(self, other: Self) -> bool {
        Self::first(self.0) == Self::first(other.0)
    }

    /// Number of disks that this one and those before it have replaced.
    pub(crate) fn generation(self) -> u16 {
        let [high, low, ..] = self.0.to_be_bytes();
        u16::from_be_bytes([high, low])
    }
}

/// The number of 16 hexadecimal digits.
fn hexadecimal(text: &str) -> Option<u64> {
    Some(text).filter(|text| text.len() == 16).and_then(|text| u64::from_str_radix(text, 16).ok())
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

impl From<ClusterId> for String {
    fn from(id: ClusterId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for ClusterId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not the id of a cluster"))
    }
}

impl From<DiskId> for String {
    fn from(id: DiskId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for DiskId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        hexadecimal(&text).map(Self).ok_or_else(|| format!("{text:?} is not the id of a disk"))
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

    #[test]
    fn disk_that_replaces_another_has_a_higher_generation() {
        let first = DiskId::first(u64::MAX);
        assert_eq!((first.generation(), first.0), (0, (1 << 48) - 1));
        let second = first.replaced(5).unwrap();
        assert_eq!((second.generation(), second.0), (1, (1 << 48) | 5));
        assert_eq!(DiskId(u64::MAX).replaced(1), None);
    }

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
