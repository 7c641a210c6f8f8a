//! The level of record kinds of a cluster, between its nodes: each tells in its hello up to which level it reads, and one that
//! reads less than the cluster writes is refused. `replication::levels` has the rules. The cluster has the level in its
//! metadata, and every node in `cluster.json`.

use replication::levels::{LevelProblem, check_level};

use crate::cluster::refusal::Refusal;

/// Checks that a peer reads the records of the cluster.
///
/// # Errors
/// [`Refusal::RecordLevel`].
pub(crate) fn check_peer(name: &str, theirs: u16, ours: u16) -> Result<(), Refusal> {
    check_level(theirs, ours).map_err(|LevelProblem { cluster: ours, own: theirs }| {
        Refusal::RecordLevel { name: name.to_owned(), ours, theirs }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_below_the_cluster_is_told_both_levels() {
        assert_eq!(check_peer("b@h", 3, 2), Ok(()));
        let peer = check_peer("b@h", 1, 2).unwrap_err().to_string();
        assert!(
            peer.contains("'b@h' reads records up to level 1") && peer.contains("level 2: upgrade"),
            "{peer}"
        );
    }
}
