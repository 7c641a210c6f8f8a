//! Findings about the cluster as a node sees it: nodes that are away, vhosts without a leader, replicas, clocks.

use broker::{Severity, words};
use server::limits::CLOCKS_DIFFER_MS;
use server::snapshot::cluster::{ClusterSnapshot, PeerSnapshot};
use server::snapshot::replication::{ReplicaGroup, ReplicaSnapshot};

use super::alarms::{disk_alarm_of, memory_alarm_of};
use super::{Finding, FindingKind, Resource, ResourceKind, subject};

/// Facts about the cluster of a node.
#[derive(Clone, Default, Debug)]
pub(crate) struct ClusterFacts {
    pub(crate) cluster: ClusterSnapshot,
    /// Vhosts without a leader, as far as the node knows.
    pub(crate) leaderless: Vec<String>,
    /// Vhosts that other nodes lead.
    pub(crate) led_elsewhere: Vec<String>,
    /// True if users, vhosts and parameters have no leader.
    pub(crate) is_metadata_leaderless: bool,
}

/// All findings about the cluster; none without one.
pub(super) fn find(facts: &ClusterFacts) -> Vec<Finding> {
    let ClusterFacts { cluster, leaderless, is_metadata_leaderless, .. } = facts;
    let mut all = Vec::new();
    all.extend(is_metadata_leaderless.then(|| metadata(cluster)));
    all.extend(without_leader(leaderless));
    all.extend(standing_still(cluster));
    all.extend(cluster.peers.iter().flat_map(alarms));
    all.extend(cluster.peers.iter().filter(|peer| peer.is_doubled).map(doubled));
    all.extend(unreachable(&cluster.peers));
    all.extend(not_rebuilt(cluster));
    all.extend(clocks(&cluster.peers));
    all
}

fn metadata(cluster: &ClusterSnapshot) -> Finding {
    let connected = cluster.peers.iter().filter(|peer| peer.link.is_some()).count() + 1;
    let nodes = cluster.peers.len() + 1;
    let text = format!(
        "Users, vhosts and parameters have no leader, and cannot be changed: {connected} of {nodes} nodes are connected."
    );
    Finding::of_node(FindingKind::MetadataWithoutLeader, Severity::Error, text)
}

fn without_leader(names: &[String]) -> Option<Finding> {
    let kind = FindingKind::VhostWithoutLeader;
    let resources = names.iter().map(|name| Resource::of_vhost(name)).collect();
    Finding::of(kind, Severity::Error, resources, |count, _| {
        let vhosts = subject(count, "vhost", ["has", "have"]);
        format!("{vhosts} no leader: nothing is confirmed or delivered, and clients wait.")
    })
}

fn standing_still(cluster: &ClusterSnapshot) -> Option<Finding> {
    let replicas = cluster.replication.replicas.iter().filter(|one| one.stands_still);
    let resources = replicas.map(resource_of).collect();
    Finding::of(FindingKind::VhostStandsStill, Severity::Error, resources, |count, _| {
        let vhosts = subject(count, "vhost", ["has", "have"]);
        format!(
            "{vhosts} a leader on this node that confirms nothing, although work waits for it. It gives up the lead soon."
        )
    })
}

/// The alarms of another node that block publishers on this one.
fn alarms(peer: &PeerSnapshot) -> impl Iterator<Item = Finding> {
    let alarms = [
        (FindingKind::MemoryAlarm, memory_alarm_of(peer)),
        (FindingKind::DiskAlarm, disk_alarm_of(peer)),
    ];
    alarms
        .into_iter()
        .filter_map(|(kind, text)| Some(Finding::of_node(kind, Severity::Error, text?)))
}

fn doubled(peer: &PeerSnapshot) -> Finding {
    let text = format!(
        "Two processes say that they are node '{}': one runs on a copy of the data directory of the other one. Stop the copy \
         at once, and remove it.",
        peer.name
    );
    Finding::of_node(FindingKind::NodeDoubled, Severity::Error, text)
}

fn resource(peer: &PeerSnapshot, detail: String) -> Resource {
    let (kind, name) = (ResourceKind::Node, peer.name.clone());
    Resource { kind, name, detail, ..Resource::default() }
}

fn unreachable(peers: &[PeerSnapshot]) -> Option<Finding> {
    let away: Vec<&PeerSnapshot> = peers.iter().filter(|peer| peer.link.is_none()).collect();
    let problem = |peer: &PeerSnapshot| peer.problem.clone().unwrap_or_default();
    let resources = away.iter().map(|peer| resource(peer, problem(peer))).collect();
    Finding::of(FindingKind::NodeUnreachable, Severity::Warning, resources, |count, _| match &*away
    {
        [PeerSnapshot { name, problem: Some(problem), .. }] => {
            format!("Node '{name}' is not connected: {problem}.")
        }
        _ => format!("{} not connected.", subject(count, "other node", ["is", "are"])),
    })
}

fn resource_of(replica: &ReplicaSnapshot) -> Resource {
    match replica.group {
        ReplicaGroup::Vhost => Resource::of_vhost(&replica.vhost),
        // Users, vhosts and parameters: those of the node.
        ReplicaGroup::Metadata => Resource { name: replica.vhost.clone(), ..Resource::default() },
    }
}

fn not_rebuilt(cluster: &ClusterSnapshot) -> Option<Finding> {
    let replicas = cluster.replication.replicas.iter();
    let behind = replicas.filter(|one| one.state == "quarantined" || !one.is_voter);
    let kind = FindingKind::ReplicaNotRebuilt;
    let resources = behind.map(resource_of).collect();
    Finding::of(kind, Severity::Warning, resources, |count, _| {
        let replicas = subject(count, "replica", ["is", "are"]);
        format!(
            "{replicas} not complete on this node, which does not count for the majority there."
        )
    })
}

fn clocks(peers: &[PeerSnapshot]) -> Option<Finding> {
    let skew = |peer: &PeerSnapshot| {
        let skew_ms = peer.link.as_ref()?.clock_skew_ms?;
        (skew_ms.unsigned_abs() > CLOCKS_DIFFER_MS).then_some(skew_ms)
    };
    let differs = |peer: &PeerSnapshot| {
        let skew_ms = skew(peer)?;
        let direction = if skew_ms < 0 { "behind" } else { "ahead" };
        Some(resource(peer, format!("{} {direction}", words::duration(skew_ms.unsigned_abs()))))
    };
    let resources = peers.iter().filter_map(differs).collect();
    Finding::of(FindingKind::ClocksDiffer, Severity::Warning, resources, |count, _| {
        let clocks = subject(count, "other node", ["has", "have"]);
        format!(
            "{clocks} a clock that differs from this node's: set the clocks of all nodes by NTP."
        )
    })
}
