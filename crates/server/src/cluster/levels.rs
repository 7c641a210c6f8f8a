//! The level of record kinds of a cluster: the newest records that its nodes write, which all of them must read.
//!
//! Each node tells in its hello up to which level it reads. The cluster has the level in its metadata, and every node in
//! `cluster.json`. It begins at the first one, never falls, and rises to the lowest of its nodes once all of them are
//! connected. A node that reads less is refused from then on: it would meet records that it cannot apply.

use super::refusal::Refusal;

/// The level of a cluster whose metadata do not tell one.
pub(crate) const FIRST_RECORD_LEVEL: u16 = 1;

/// A node that does not read the records of its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the cluster has level {cluster} of record kinds, and this node reads up to level {own}: upgrade the node, or remove \
     cluster.record_level from its configuration"
)]
pub(crate) struct LevelProblem {
    pub(crate) cluster: u16,
    pub(crate) own: u16,
}

/// Checks that a node reads the records of its cluster.
///
/// # Errors
/// [`LevelProblem`].
pub(crate) const fn check_own(own: u16, cluster: u16) -> Result<(), LevelProblem> {
    if own < cluster { Err(LevelProblem { cluster, own }) } else { Ok(()) }
}

/// Checks that a peer reads the records of the cluster.
///
/// # Errors
/// [`Refusal::RecordLevel`].
pub(crate) fn check_peer(name: &str, theirs: u16, ours: u16) -> Result<(), Refusal> {
    if theirs < ours {
        return Err(Refusal::RecordLevel { name: name.to_owned(), ours, theirs });
    }
    Ok(())
}

/// The level to which a cluster rises from `level`, when its nodes read up to these: the lowest of them. None if it does
/// not rise, or if the level of a node is not known, because the node is not connected.
pub(crate) fn risen(level: u16, nodes: impl IntoIterator<Item = Option<u16>>) -> Option<u16> {
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
        assert_eq!(check_own(2, 2), Ok(()));
        assert_eq!(check_own(3, 2), Ok(()));
        let own = check_own(1, 2).unwrap_err().to_string();
        assert!(
            own.contains("has level 2") && own.contains("up to level 1: upgrade the node"),
            "{own}"
        );
        assert_eq!(check_peer("b@h", 3, 2), Ok(()));
        let peer = check_peer("b@h", 1, 2).unwrap_err().to_string();
        assert!(
            peer.contains("'b@h' reads records up to level 1") && peer.contains("level 2: upgrade"),
            "{peer}"
        );
    }
}
