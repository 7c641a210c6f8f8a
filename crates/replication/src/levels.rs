//! The level of record kinds of a cluster: the newest records that its nodes write, which all of them must read.
//!
//! Each node tells the others up to which level it reads. The level of the cluster begins at the first one, never falls, and
//! rises to the lowest of its nodes once all of them are connected. A node that reads less is refused from then on: it would
//! meet records that it cannot apply.

/// The level of a cluster whose metadata do not tell one.
pub const FIRST_RECORD_LEVEL: u16 = 1;

/// Level of the kinds of records that this build reads: it rises by one when kinds, or new contents of a kind, are added.
///
/// | Level | Adds |
/// | --- | --- |
/// | 1 | everything before there were levels |
/// | 2 | the level of the cluster as an item of the metadata; a vhost names the nodes that have its replicas; leaders tell the other nodes so |
pub const RECORD_LEVEL: u16 = 2;

/// The level from which a vhost may be on some of the nodes, and leaders tell the nodes that have no voter.
const PLACEMENT_LEVEL: u16 = 2;

/// A node that does not read the records of its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the cluster has level {cluster} of record kinds, and this node reads up to level {own}: upgrade the node, or remove \
     cluster.record_level from its configuration"
)]
pub struct LevelProblem {
    /// The level of the cluster.
    pub cluster: u16,
    /// The newest level that the node reads.
    pub own: u16,
}

/// A change of the nodes of a vhost that not all nodes of the cluster would read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the number of replicas can be set once all nodes read records of level {PLACEMENT_LEVEL}; the cluster has level {cluster}"
)]
pub struct PlacementLevelProblem {
    /// The level of the cluster.
    pub cluster: u16,
}

/// Checks that a node that reads up to `own` reads the records of a cluster of level `cluster`: the node itself when it
/// starts, and a peer when it opens or accepts a link or a stream.
///
/// # Errors
/// [`LevelProblem`].
pub const fn check_level(own: u16, cluster: u16) -> Result<(), LevelProblem> {
    if own < cluster { Err(LevelProblem { cluster, own }) } else { Ok(()) }
}

/// Checks that all nodes of a cluster of this level know vhosts that are on some of them.
///
/// # Errors
/// [`PlacementLevelProblem`].
pub const fn check_placement_level(cluster: u16) -> Result<(), PlacementLevelProblem> {
    if cluster < PLACEMENT_LEVEL { Err(PlacementLevelProblem { cluster }) } else { Ok(()) }
}

/// True if leaders tell the nodes that have no voter of a vhost that they lead it, in a cluster of this level.
pub const fn tells_leads(cluster: u16) -> bool {
    cluster >= PLACEMENT_LEVEL
}

/// The level to which a cluster rises from `level`, when its nodes read up to these: the lowest of them. None if it does
/// not rise, or if the level of a node is not known, because the node is not connected.
pub fn risen(level: u16, nodes: impl IntoIterator<Item = Option<u16>>) -> Option<u16> {
    let known: Option<Vec<u16>> = nodes.into_iter().collect();
    known?.into_iter().min().filter(|lowest| *lowest > level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_rises_to_the_lowest_of_all_nodes_once_all_are_connected() {
        assert_eq!(risen(1, [Some(2), Some(2), Some(2)]), Some(2));
        assert_eq!(risen(1, [Some(4), Some(3), Some(5)]), Some(3));
        assert_eq!(risen(1, [Some(2)]), Some(2));
        assert_eq!(risen(1, [Some(2), None, Some(2)]), None);
        assert_eq!(risen(1, [Some(2), Some(1), Some(2)]), None);
        assert_eq!(risen(2, [Some(2), Some(2)]), None);
        // It never falls.
        assert_eq!(risen(3, [Some(2), Some(2)]), None);
        assert_eq!(risen(1, []), None);
    }

    #[test]
    fn node_below_the_cluster_is_told_both_levels() {
        assert_eq!(check_level(2, 2), Ok(()));
        assert_eq!(check_level(3, 2), Ok(()));
        let own = check_level(1, 2).unwrap_err().to_string();
        assert!(
            own.contains("has level 2") && own.contains("up to level 1: upgrade the node"),
            "{own}"
        );
    }

    #[test]
    fn placements_and_their_notices_need_the_second_level() {
        assert!(!tells_leads(1) && tells_leads(2));
        assert_eq!(check_placement_level(2), Ok(()));
        let text = check_placement_level(1).unwrap_err().to_string();
        assert!(text.contains("read records of level 2; the cluster has level 1"), "{text}");
    }
}
