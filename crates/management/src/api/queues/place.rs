//! The nodes that have a queue: those of its vhost.

use std::collections::BTreeMap;

use broker::QueueType;
use server::requests::VhostPlacement;
use server::snapshot::replication::{ReplicaGroup, ReplicaSnapshot};

use crate::http::extract::SharedNode;

/// The nodes of the cluster as this one sees them, for the queues of several vhosts.
#[derive(Debug)]
pub(super) struct Places {
    own: String,
    /// The other nodes that this one is connected to.
    connected: Vec<String>,
    /// The replicas of this node by vhost.
    replicas: BTreeMap<String, ReplicaSnapshot>,
}

impl Places {
    pub(super) fn of(node: &SharedNode) -> Self {
        let replicas = node.cluster().replication.replicas.into_iter();
        let of_vhosts = replicas.filter(|replica| replica.group == ReplicaGroup::Vhost);
        Self {
            own: node.snapshot().name,
            connected: node.connected_peers(),
            replicas: of_vhosts.map(|replica| (replica.vhost.clone(), replica)).collect(),
        }
    }

    /// The place of the queues of a vhost.
    pub(super) fn of_vhost(&self, node: &SharedNode, vhost: &str) -> QueuePlace {
        self.place(node.vhost_placement(vhost).unwrap_or_default(), vhost)
    }

    fn place(&self, placement: VhostPlacement, vhost: &str) -> QueuePlace {
        let VhostPlacement { leader, members, .. } = placement;
        let replica = self.replicas.get(vhost);
        let is_healthy = |member: &str| match replica {
            // A member that does not vote is being rebuilt.
            Some(replica) if replica.state == "leader" => {
                replica.heard.iter().any(|heard| heard == member)
            }
            Some(replica) => {
                (member != self.own || replica.is_voter && replica.state != "quarantined")
                    && (replica.voters.is_empty() || replica.voters.iter().any(|it| it == member))
            }
            None => true,
        };
        let is_up =
            |member: &str| member == self.own || self.connected.iter().any(|it| it == member);
        let online = members.iter().filter(|member| is_up(member) && is_healthy(member)).cloned();
        let voters = replica.map_or(0, |replica| replica.voters.len());
        QueuePlace {
            online: online.collect(),
            voters: if voters == 0 { members.len() } else { voters },
            leader,
            members,
        }
    }
}

/// The nodes that have the queues of a vhost.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct QueuePlace {
    /// The leader; none while a majority of the members is not up.
    pub(super) leader: Option<String>,
    pub(super) members: Vec<String>,
    /// The members that are up, have a replica that can be used, and vote.
    pub(super) online: Vec<String>,
    /// Number of members that vote.
    voters: usize,
}

impl QueuePlace {
    /// Name of the leader; empty without one, because clients expect a text.
    pub(super) fn node(&self) -> &str {
        self.leader.as_deref().unwrap_or_default()
    }

    /// State of a queue as RabbitMQ names it: of a quorum queue without a leader `minority` if too few of its members are
    /// online, of any other queue without one `down`.
    pub(super) fn state(&self, kind: QueueType) -> &'static str {
        match (&self.leader, kind) {
            (Some(_), _) => "running",
            (None, QueueType::Quorum) if self.online.len() <= self.voters / 2 => "minority",
            (None, QueueType::Quorum | QueueType::Classic) => "down",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(letters: &str) -> Vec<String> {
        letters.chars().map(String::from).collect()
    }

    fn replica(state: &'static str, voters: &str, heard: &str) -> ReplicaSnapshot {
        ReplicaSnapshot {
            is_voter: voters.contains('a'),
            voters: names(voters),
            heard: names(heard),
            ..ReplicaSnapshot::empty(state)
        }
    }

    /// The place as node `a` tells it.
    fn place(
        replica: Option<ReplicaSnapshot>,
        connected: &str,
        leader: Option<&str>,
    ) -> QueuePlace {
        let replicas =
            replica.into_iter().map(|replica| (replica.vhost.clone(), replica)).collect();
        let places = Places { own: "a".to_owned(), connected: names(connected), replicas };
        let leader = leader.map(str::to_owned);
        places.place(VhostPlacement { leader, members: names("abc"), is_down: false }, "v")
    }

    #[test]
    fn member_that_is_rebuilt_is_not_online() {
        let at_leader = place(Some(replica("leader", "ab", "ab")), "bc", Some("a"));
        assert_eq!((at_leader.online, at_leader.members), (names("ab"), names("abc")));
        let unheard = place(Some(replica("leader", "abc", "ab")), "bc", Some("a"));
        assert_eq!(unheard.online, names("ab"));
        let at_follower = place(Some(replica("follower", "ab", "")), "bc", Some("b"));
        assert_eq!(at_follower.online, names("ab"));
        let own = place(Some(replica("quarantined", "", "")), "bc", Some("b"));
        assert_eq!(own.online, names("bc"));
        assert_eq!(place(None, "bc", Some("b")).online, names("abc"));
    }

    #[test]
    fn follower_without_a_leader_names_nobody() {
        let minority = place(Some(replica("candidate", "abc", "")), "", None);
        assert_eq!((minority.node(), minority.online.len()), ("", 1));
        assert_eq!(minority.state(QueueType::Quorum), "minority");
        assert_eq!(minority.state(QueueType::Classic), "down");
        let majority = place(Some(replica("candidate", "abc", "")), "b", None);
        assert_eq!(majority.state(QueueType::Quorum), "down");
        let two_vote = place(Some(replica("candidate", "ab", "")), "c", None);
        assert_eq!(two_vote.state(QueueType::Quorum), "minority");
        assert_eq!(place(None, "bc", Some("b")).state(QueueType::Quorum), "running");
    }
}
