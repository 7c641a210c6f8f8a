//! Vhosts that have no member on this node: the nodes that lead them tell so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use replication::NodeId;

use crate::disk::vhost_files::VhostId;
use crate::replicas::target::ReplicaTarget;

/// Time after which a leader that tells nothing may lead no more: several notices are lost, or an election is won.
const LEAD_TIME: Duration = Duration::from_secs(1);

/// A node that leads a vhost, as it has told.
#[derive(Clone, Copy, Debug)]
struct LeadReport {
    leader: NodeId,
    term: u64,
    at: Instant,
}

/// A vhost without a member on this node.
#[derive(Debug)]
struct Elsewhere {
    target: Arc<dyn ReplicaTarget>,
    told: Option<LeadReport>,
}

/// The vhosts without a member on this node.
#[derive(Default, Debug)]
pub(super) struct VhostsElsewhere(BTreeMap<VhostId, Elsewhere>);

impl VhostsElsewhere {
    /// Takes a vhost over, in place of an earlier one, whose leader may be known from before `at`: then it counts until
    /// another one tells that it leads, or this one tells nothing for long.
    pub(super) fn add(
        &mut self,
        target: Arc<dyn ReplicaTarget>,
        leader: Option<NodeId>,
        at: Instant,
    ) {
        let told = leader.map(|leader| LeadReport { leader, term: 0, at });
        self.0.insert(target.id(), Elsewhere { target, told });
    }

    /// The vhost has a member now, or is deleted.
    pub(super) fn remove(&mut self, vhost: VhostId) {
        self.0.remove(&vhost);
    }

    /// Takes what a node tells at a time: it leads the vhost in this term. True if the leader is another one than before.
    pub(super) fn tell(
        &mut self,
        vhost: VhostId,
        (leader, name): (NodeId, Option<Arc<str>>),
        term: u64,
        at: Instant,
    ) -> bool {
        let Some(vhost) = self.0.get_mut(&vhost) else { return false };
        // A leader that does not know yet that it has lost the lead.
        if vhost.told.is_some_and(|told| told.term > term) {
            return false;
        }
        let is_new = vhost.told.is_none_or(|told| told.leader != leader);
        vhost.told = Some(LeadReport { leader, term, at });
        if is_new {
            vhost.target.set_leader(name);
        }
        is_new
    }

    /// The vhosts whose leaders have told nothing for long, or are of a node that is gone. They have none from now on.
    pub(super) fn leaderless(&mut self, now: Instant, gone: Option<NodeId>) -> Vec<VhostId> {
        let mut leaderless = Vec::new();
        for (id, vhost) in &mut self.0 {
            let is_over = |told: &mut LeadReport| {
                Some(told.leader) == gone || now.saturating_duration_since(told.at) > LEAD_TIME
            };
            if vhost.told.take_if(is_over).is_some() {
                vhost.target.set_leader(None);
                leaderless.push(*id);
            }
        }
        leaderless
    }
}
