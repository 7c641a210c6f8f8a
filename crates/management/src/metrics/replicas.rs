//! Families of the replicas of vhosts. Without a cluster there are none of them.

use server::snapshot::replication::{ReplicaGroup, ReplicaSnapshot, ReplicationSnapshot};

use crate::metrics::text::{Kind, Text, Value, labels};

/// A family with a value for each vhost.
struct PerVhost {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&ReplicaSnapshot) -> u64,
}

const FAMILIES: [PerVhost; 8] = [
    PerVhost {
        name: "leveret_replica_term",
        kind: Kind::Gauge,
        help: "Newest term that the node knows",
        value: |replica| replica.term,
    },
    PerVhost {
        name: "leveret_replica_committed_index",
        kind: Kind::Counter,
        help: "Last entry of the log that a majority has, as far as the node knows",
        value: |replica| replica.committed_index,
    },
    PerVhost {
        name: "leveret_replica_written_index",
        kind: Kind::Gauge,
        help: "Last entry in the log of the node",
        value: |replica| replica.written_index,
    },
    PerVhost {
        name: "leveret_replica_applied_index",
        kind: Kind::Counter,
        help: "Last entry whose effects the replica has",
        value: |replica| replica.applied_index,
    },
    PerVhost {
        name: "leveret_replica_compacted_index",
        kind: Kind::Counter,
        help: "Last entry of which only the records that are needed are kept",
        value: |replica| replica.compacted_index,
    },
    PerVhost {
        name: "leveret_replica_unapplied_bytes",
        kind: Kind::Gauge,
        help: "Bytes of committed entries that wait for their application",
        value: |replica| replica.unapplied_bytes,
    },
    PerVhost {
        name: "leveret_replica_stands_still",
        kind: Kind::Gauge,
        help: "At the leader: 1 if work waits and nothing was committed for five seconds",
        value: |replica| u64::from(replica.stands_still),
    },
    PerVhost {
        name: "leveret_leader_changes_total",
        kind: Kind::Counter,
        help: "Leaders that the node has seen, each change counted",
        value: |replica| replica.leaders,
    },
];

/// Writes the families. Those with names of vhosts and nodes only if names are allowed.
pub(super) fn write(text: &mut Text, replication: &ReplicationSnapshot, names_allowed: bool) {
    if replication.replicas.is_empty() {
        return;
    }
    let help =
        "Writes that the disk did not answer in time: the node gave up the lead of its vhosts";
    let mut samples = family(text, "leveret_replica_disk_stalls_total", Kind::Counter, help);
    samples.put("", replication.disk_stalls);
    let help = "Frames of other nodes that were refused";
    let mut samples = family(text, "leveret_replica_refused_frames_total", Kind::Counter, help);
    for (reason, count) in &replication.refused_frames {
        samples.put(&labels(&[("reason", reason)]), *count);
    }
    let shipments = &replication.shipments;
    let help = "Bytes of files that were shipped between nodes, to rebuild replicas";
    let mut samples = family(text, "leveret_shipment_bytes_total", Kind::Counter, help);
    samples.put(&labels(&[("direction", "sent")]), shipments.sent_bytes);
    samples.put(&labels(&[("direction", "received")]), shipments.received_bytes);
    let help = "Shipments of files that are under way";
    let mut samples = family(text, "leveret_shipments", Kind::Gauge, help);
    samples.put(&labels(&[("direction", "sent")]), shipments.sending);
    samples.put(&labels(&[("direction", "received")]), shipments.receiving);
    if !names_allowed {
        return;
    }
    for PerVhost { name, kind, help, value } in FAMILIES {
        let mut samples = family(text, name, kind, help);
        for replica in &replication.replicas {
            samples.put(&labels_of(replica, &[]), Value::Whole(value(replica)));
        }
    }
    let help = "1 for the state of the replica of the vhost on the node";
    let mut samples = family(text, "leveret_replica_state", Kind::Gauge, help);
    for replica in &replication.replicas {
        samples.put(&labels_of(replica, &[("state", replica.state)]), 1);
    }
    let help = "Entries that a node is not known to have, at the leader";
    let mut samples = family(text, "leveret_replica_lag_entries", Kind::Gauge, help);
    for replica in &replication.replicas {
        for (peer, lag) in &replica.lags {
            samples.put(&labels_of(replica, &[("peer", peer)]), *lag);
        }
    }
}

/// The labels of a replica, and more. A vhost may be called as the metadata are: these have a label of their own.
fn labels_of(replica: &ReplicaSnapshot, more: &[(&str, &str)]) -> String {
    let mut all = vec![("vhost", replica.vhost.as_str())];
    if replica.group == ReplicaGroup::Metadata {
        all.push(("group", replica.group.as_str()));
    }
    all.extend_from_slice(more);
    labels(&all)
}

fn family<'a>(
    text: &'a mut Text,
    name: &str,
    kind: Kind,
    help: &str,
) -> crate::metrics::text::Samples<'a> {
    text.family_named(name.to_owned(), kind, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vhost_that_is_called_as_the_metadata_has_series_of_its_own() {
        let vhost = ReplicaSnapshot {
            vhost: "metadata".to_owned(),
            lags: vec![("b".to_owned(), 3)],
            ..ReplicaSnapshot::empty("leader")
        };
        let metadata = ReplicaSnapshot { group: ReplicaGroup::Metadata, ..vhost.clone() };
        let replication = ReplicationSnapshot {
            replicas: vec![vhost, metadata],
            ..ReplicationSnapshot::default()
        };
        let mut text = Text::whole("rabbitmq");
        write(&mut text, &replication, true);
        let text = text.into_string();
        let mut series: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' ').map(|(series, _)| series))
            .collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all, "{text}");
        for labels in ["{vhost=\"metadata\",state", "{vhost=\"metadata\",group=\"metadata\",state"]
        {
            assert!(text.contains(&format!("leveret_replica_state{labels}=\"leader\"}} 1")));
        }
    }
}
