//! Settings in force, and the nodes of a vhost.

use broker::Explanation;

/// The settings in force for a queue or exchange, and their sources.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Type of the queue or exchange.
    pub kind: &'static str,
    /// The settings, each with its source.
    pub explanation: Explanation,
}

/// The nodes that have the log of a vhost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VhostPlacement {
    /// Name of the node that leads the vhost; none if this node knows no leader.
    pub leader: Option<String>,
    /// Names of all nodes with the log, in order.
    pub members: Vec<String>,
    /// True if no other node has the vhost, and this one cannot read its files.
    pub is_down: bool,
}
