//! Families of the links to other nodes. Without a cluster there are none of them, but for the number of peers.

use server::snapshot::cluster::{ClusterSnapshot, PeerSnapshot};

use crate::metrics::text::{Kind, Namespace, Text, Value, labels};

/// A family with a value for each peer.
struct PerPeer {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&PeerSnapshot) -> Option<Value>,
}

const FAMILIES: [PerPeer; 9] = [
    PerPeer {
        name: "leveret_link_up",
        kind: Kind::Gauge,
        help: "1 while there is a link with the node",
        value: |peer| Some(Value::Whole(peer.link.is_some().into())),
    },
    PerPeer {
        name: "leveret_link_rtt_seconds",
        kind: Kind::Gauge,
        help: "Round-trip time to the node",
        value: |peer| peer.link.as_ref()?.rtt_us.map(Value::Micros),
    },
    PerPeer {
        name: "leveret_link_down_seconds_total",
        kind: Kind::Counter,
        help: "Time without a link with the node",
        value: |peer| Some(Value::Micros(peer.down_us)),
    },
    PerPeer {
        name: "leveret_link_lost_total",
        kind: Kind::Counter,
        help: "Links with the node that were lost",
        value: |peer| Some(Value::Whole(peer.lost_links)),
    },
    PerPeer {
        name: "leveret_link_sent_bytes_total",
        kind: Kind::Counter,
        help: "Bytes sent to the node",
        value: |peer| Some(Value::Whole(peer.sent_bytes)),
    },
    PerPeer {
        name: "leveret_link_received_bytes_total",
        kind: Kind::Counter,
        help: "Bytes received from the node",
        value: |peer| Some(Value::Whole(peer.received_bytes)),
    },
    PerPeer {
        name: "leveret_link_dropped_frames_total",
        kind: Kind::Counter,
        help: "Frames for the node that found no room",
        value: |peer| Some(Value::Whole(peer.dropped_frames)),
    },
    PerPeer {
        name: "leveret_link_queued_bytes",
        kind: Kind::Gauge,
        help: "Bytes that wait for the link with the node",
        value: |peer| Some(Value::Whole(peer.link.as_ref()?.queued_bytes)),
    },
    PerPeer {
        name: "leveret_peer_alarm_blocks",
        kind: Kind::Gauge,
        help: "1 while an alarm of the node blocks publishers on this one",
        value: |peer| {
            Some(Value::Whole((peer.memory_alarm_blocks || peer.disk_alarm_blocks).into()))
        },
    },
];

/// Writes the families. Those with names of nodes only if names are allowed.
pub(super) fn write(
    text: &mut Text,
    namespace: Namespace,
    cluster: &ClusterSnapshot,
    names_allowed: bool,
) {
    let unreachable = cluster.peers.iter().filter(|peer| peer.link.is_none()).count();
    let help = "Other nodes of the cluster that cannot be reached";
    let mut samples = text.family(namespace, "unreachable_cluster_peers_count", Kind::Gauge, help);
    samples.put("", unreachable as u64);
    if cluster.peers.is_empty() {
        return;
    }
    let help = "Clients that are connected to the node and whose vhost another node leads";
    let name = "leveret_relayed_connections".to_owned();
    text.family_named(name, Kind::Gauge, help).put("", cluster.relayed_connections);
    if !names_allowed {
        return;
    }
    for PerPeer { name, kind, help, value } in FAMILIES {
        let mut samples = text.family_named(name.to_owned(), kind, help);
        for peer in &cluster.peers {
            if let Some(value) = value(peer) {
                samples.put(&labels(&[("peer", &peer.name)]), value);
            }
        }
    }
    let help =
        "How far the system's clock of the node is ahead of this node's; negative if it is behind";
    let mut samples = text.family_named("leveret_clock_skew_seconds".to_owned(), Kind::Gauge, help);
    for peer in &cluster.peers {
        if let Some(skew_ms) = peer.link.as_ref().and_then(|link| link.clock_skew_ms) {
            samples.put_signed_ms(&labels(&[("peer", &peer.name)]), skew_ms);
        }
    }
    let help = "Links that were refused, by this node or by the other one";
    let mut samples =
        text.family_named("leveret_link_refused_total".to_owned(), Kind::Counter, help);
    for (reason, count) in &cluster.refused_links {
        samples.put(&labels(&[("reason", reason)]), *count);
    }
    let help = "1 if all nodes of the cluster have met, so that a majority suffices";
    let mut samples = text.family_named("leveret_cluster_founded".to_owned(), Kind::Gauge, help);
    samples.put("", u64::from(cluster.is_founded));
    let help = "Level of record kinds of the cluster: its nodes write no newer ones";
    let mut samples = text.family_named("leveret_record_level".to_owned(), Kind::Gauge, help);
    samples.put("", u64::from(cluster.record_level));
}
