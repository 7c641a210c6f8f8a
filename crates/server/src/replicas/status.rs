//! The part of this node in the replication of its vhosts, for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use replication::FrameError;

use crate::disk::vhost_files::VhostId;

/// State of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReplicaState {
    /// The node serves clients of the vhost.
    Leader,
    /// The node is elected, and applies what is left.
    Promoting,
    /// The node applies what the leader sends.
    Follower,
    /// The node asks for votes.
    Candidate,
    /// The node led, and opens its replica anew.
    Deposed,
    /// The replica must be rebuilt.
    Quarantined,
}

impl ReplicaState {
    /// The state in metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Promoting => "promoting",
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Deposed => "deposed",
            Self::Quarantined => "quarantined",
        }
    }
}

/// Status of a replica.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaStatus {
    pub(crate) vhost: String,
    pub(crate) state: ReplicaState,
    pub(crate) term: u64,
    /// Last entry that a majority has, as far as this node knows.
    pub(crate) committed: u64,
    /// Last entry of the own log.
    pub(crate) written: u64,
    /// Last entry whose effects the replica has.
    pub(crate) applied: u64,
    /// Last entry that is kept only as far as its records are needed.
    pub(crate) compacted: u64,
    /// Octets of committed entries that wait for their application.
    pub(crate) unapplied_bytes: u64,
    /// At the leader: work waits, and nothing was committed for long.
    pub(crate) stands_still: bool,
    /// At the leader: entries that each other member is not known to have, by the name of its node.
    pub(crate) lags: Vec<(Arc<str>, u64)>,
    /// True if the member of this node votes.
    pub(crate) is_voter: bool,
    /// Nodes of the members that vote, as far as this node knows.
    pub(crate) voters: Vec<Arc<str>>,
    /// At the leader: those of them that were heard lately, the leader included.
    pub(crate) heard: Vec<Arc<str>>,
}

/// The statuses of all replicas, as the replicator told them last.
#[derive(Default, Debug)]
pub(crate) struct Statuses(Mutex<StatusTable>);

#[derive(Default, Debug)]
struct StatusTable {
    replicas: BTreeMap<VhostId, ReplicaStatus>,
    /// Leaders seen since the start, by vhost: the last one, and the number of changes.
    leaders: BTreeMap<VhostId, (Option<Arc<str>>, u64)>,
    refused_frames: BTreeMap<&'static str, u64>,
}

impl Statuses {
    /// Notes the status of a replica.
    pub(super) fn note(&self, vhost: VhostId, status: ReplicaStatus) {
        self.0.lock().replicas.insert(vhost, status);
    }

    /// Forgets a vhost that is deleted, or on other nodes.
    pub(crate) fn forget(&self, vhost: VhostId) {
        let mut told = self.0.lock();
        told.replicas.remove(&vhost);
        told.leaders.remove(&vhost);
    }

    /// Notes a replica that is lost, until it is rebuilt.
    pub(crate) fn note_lost(&self, vhost: VhostId, name: &str) {
        let status = ReplicaStatus {
            vhost: name.to_owned(),
            state: ReplicaState::Quarantined,
            term: 0,
            committed: 0,
            written: 0,
            applied: 0,
            compacted: 0,
            unapplied_bytes: 0,
            stands_still: false,
            lags: Vec::new(),
            is_voter: false,
            voters: Vec::new(),
            heard: Vec::new(),
        };
        self.note(vhost, status);
    }

    /// Notes the leader of a vhost.
    pub(super) fn leads(&self, vhost: VhostId, leader: &Arc<str>) {
        let mut told = self.0.lock();
        let (last, changes) = told.leaders.entry(vhost).or_default();
        if last.as_ref() != Some(leader) {
            *changes += 1;
            *last = Some(Arc::clone(leader));
        }
    }

    /// Counts a frame that was refused.
    pub(super) fn refused(&self, error: &FrameError) {
        *self.0.lock().refused_frames.entry(error.code()).or_default() += 1;
    }

    /// Status of each replica with the number of leaders that its vhost has had.
    pub(crate) fn replicas(&self) -> Vec<(VhostId, ReplicaStatus, u64)> {
        let told = self.0.lock();
        let changes = |vhost| told.leaders.get(vhost).map_or(0, |(_, changes)| *changes);
        told.replicas.iter().map(|(id, status)| (*id, status.clone(), changes(id))).collect()
    }

    /// Status of a replica, if it was told.
    pub(crate) fn of(&self, vhost: VhostId) -> Option<ReplicaStatus> {
        self.0.lock().replicas.get(&vhost).cloned()
    }

    /// Refused frames, by the code of the error.
    pub(crate) fn refused_frames(&self) -> Vec<(&'static str, u64)> {
        self.0.lock().refused_frames.iter().map(|(code, count)| (*code, *count)).collect()
    }
}
