//! The cluster of a node, as its replicas know it.

use std::sync::Arc;

use replication::{GroupId, MemberConfig, MemberId};

use crate::disk::recovery::MemberIdentity;
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

    /// True if a group that begins with these voters has a member on this node.
    pub(crate) fn begins_here(&self, voters: &[MemberId]) -> bool {
        let nodes = self.replicator.nodes();
        let first = nodes.my_first_member();
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
        Ok(MemberConfig { cluster, group, me, seed: getrandom::u64()? })
    }
}
