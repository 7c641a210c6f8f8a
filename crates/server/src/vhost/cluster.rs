//! The cluster of a node, as its replicas know it.

use std::sync::Arc;

use replication::{CommitNews, GroupId, GroupPlacement as _, MemberConfig, MemberId};

use crate::disk::recovery::MemberIdentity;
use crate::disk::vhost_files::VhostId;
use crate::membership::placement::Placement;
use crate::replicas::Replicator;

/// The cluster of a node, for its vhosts and its metadata.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) replicator: Arc<Replicator>,
    /// Bytes of entries that each vhost keeps for members that are behind.
    pub(crate) retention_bytes: u64,
}

impl Cluster {
    /// The member of a group on this node, and the members with which the group begins: `voters`, or the founders of the
    /// cluster if there are none.
    pub(crate) fn identity(&self, me: MemberId, voters: &[MemberId]) -> MemberIdentity {
        let nodes = self.replicator.nodes();
        let voters = match voters {
            [] => nodes.founders(),
            voters => voters.to_vec(),
        };
        MemberIdentity {
            cluster_id: nodes.cluster.0,
            member_id: me.get(),
            voters: voters.into_iter().map(MemberId::get).collect(),
            retention_bytes: self.retention_bytes,
        }
    }

    /// The first member that this node may have in a group; none if other nodes have the group.
    pub(crate) fn first_member(&self, placement: Option<&Placement>) -> Option<MemberId> {
        let nodes = self.replicator.nodes();
        let incarnations = nodes.placed(placement).incarnations(nodes.me);
        // One that is forgotten is not known any more.
        let is_known = nodes.known.contains_key(&nodes.me);
        match incarnations {
            Some(incarnations) => Some(nodes.me.member(*incarnations.start())),
            None if is_known => None,
            None => Some(nodes.my_first_member()),
        }
    }

    /// True if a group that begins with these voters has this member.
    pub(crate) fn begins_with(&self, voters: &[MemberId], first: MemberId) -> bool {
        let nodes = self.replicator.nodes();
        match voters {
            [] => nodes.founders().contains(&first),
            voters => voters.contains(&first),
        }
    }

    /// The configuration of the member of a group on this node.
    ///
    /// # Errors
    /// If the operating system has no randomness.
    pub(crate) fn member_config(
        &self,
        group: GroupId,
        me: MemberId,
    ) -> Result<MemberConfig, getrandom::Error> {
        let cluster = self.replicator.nodes().cluster;
        let tells_commits = match group == GroupId(VhostId::METADATA.0) {
            // Whoever declares a vhost waits until all nodes have it.
            true => CommitNews::AtOnce,
            false => CommitNews::AtTick,
        };
        Ok(MemberConfig { cluster, group, me, seed: getrandom::u64()?, tells_commits })
    }
}
