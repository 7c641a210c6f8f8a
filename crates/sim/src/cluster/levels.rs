//! The levels of record kinds: what each node reads, what it knows of the cluster, and what the metadata have, which are not
//! simulated themselves.

use replication::levels::{FIRST_RECORD_LEVEL, LevelProblem, RECORD_LEVEL, check_level};

/// The level of a node.
#[derive(Clone, Copy, Debug)]
struct NodeLevel {
    /// The newest level that its version reads.
    reads: u16,
    /// The level of the cluster as its disk has it.
    known: u16,
}

/// The levels of a cluster and its nodes.
#[derive(Debug)]
pub(crate) struct Levels {
    /// The level as the metadata have it.
    level: u16,
    nodes: Vec<NodeLevel>,
    /// True if some nodes began with an older version.
    is_drawn: bool,
    /// True if older peers are accepted, as a sabotage says.
    pub(crate) accepts_older: bool,
    /// Times that the level has risen.
    pub(crate) risen: u64,
    /// Changes of the nodes of the vhost that were refused.
    pub(crate) refused: u64,
}

impl Levels {
    /// The levels of a new cluster; these nodes have an older version. With none, the cluster has risen before the run.
    pub(crate) fn new(nodes: usize, older: &[usize]) -> Self {
        let is_drawn = !older.is_empty();
        let level = if is_drawn { FIRST_RECORD_LEVEL } else { RECORD_LEVEL };
        let reads = |node| if older.contains(&node) { FIRST_RECORD_LEVEL } else { RECORD_LEVEL };
        let nodes = (0..nodes).map(|node| NodeLevel { reads: reads(node), known: level }).collect();
        Self { level, nodes, is_drawn, accepts_older: false, risen: 0, refused: 0 }
    }

    pub(crate) fn is_drawn(&self) -> bool {
        self.is_drawn
    }

    /// The level of the cluster as the metadata have it.
    pub(crate) fn level(&self) -> u16 {
        self.level
    }

    /// The newest level that a node reads.
    pub(crate) fn reads(&self, node: usize) -> u16 {
        self.nodes[node].reads
    }

    /// The level of the cluster as a node knows it.
    pub(crate) fn known(&self, node: usize) -> u16 {
        self.nodes[node].known
    }

    /// Checks that a process of the version that a node has can start.
    pub(crate) fn check_start(&self, node: usize) -> Result<(), LevelProblem> {
        check_level(self.reads(node), self.known(node))
    }

    /// True if two nodes have links and streams with each other: each reads what the other knows to be the cluster's.
    pub(crate) fn are_compatible(&self, one: usize, other: usize) -> bool {
        let reads = |node: usize, peer: usize| check_level(self.reads(node), self.known(peer));
        reads(one, other).is_ok() && reads(other, one).is_ok()
    }

    /// True if two nodes accept each other.
    pub(crate) fn accept(&self, one: usize, other: usize) -> bool {
        self.accepts_older || self.are_compatible(one, other)
    }

    /// Another version is installed on a node that has ended.
    pub(crate) fn set_version(&mut self, node: usize, reads: u16) {
        self.nodes[node].reads = reads;
    }

    /// The disk of a node is another one.
    pub(crate) fn lose(&mut self, node: usize) {
        if self.is_drawn {
            self.nodes[node].known = FIRST_RECORD_LEVEL;
        }
    }

    /// The metadata have a higher level.
    pub(crate) fn rise(&mut self, level: u16) {
        assert!(level > self.level, "the level never falls");
        self.level = level;
        self.risen += 1;
    }

    /// A node learns the level of the metadata.
    pub(crate) fn learn(&mut self, node: usize) {
        assert!(self.level >= self.nodes[node].known, "the level never falls");
        self.nodes[node].known = self.level;
    }

    /// True if the cluster has the newest level, and these nodes know it.
    pub(crate) fn is_newest(&self, mut nodes: impl Iterator<Item = usize>) -> bool {
        self.level == RECORD_LEVEL && nodes.all(|node| self.known(node) == self.level)
    }
}
