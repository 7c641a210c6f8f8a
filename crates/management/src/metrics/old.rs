//! Metrics in Prometheus' text format, under RabbitMQ's names where RabbitMQ has them.
//!
//! What RabbitMQ does not count has names of the same kind: messages expired, dead-lettered and
//! dropped by queue and reason, and how late expiry is.

use std::fmt::Write as _;

use broker::dead_letter::DeathReason;
use broker::statistics::{Lateness, VhostCounters};
use broker::{ByCause, ByReason, DropCause, QueueCounters};

use crate::snapshot::{NodeSnapshot, QueueSnapshot, VhostSnapshot};

/// Whether queues are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Sums over all queues.
    Totals,
    /// Every queue for itself.
    PerQueue,
}

/// One number of a queue.
type QueueValue = fn(&QueueSnapshot) -> u64;

/// Gauges of queues: name, help, value.
const QUEUE_GAUGES: [(&str, &str, QueueValue); 9] = [
    ("rabbitmq_queue_messages_ready", "Messages ready to be delivered to consumers", |q| q.ready),
    (
        "rabbitmq_queue_messages_unacked",
        "Messages delivered to consumers but not yet acknowledged",
        |q| q.unacked,
    ),
    (
        "rabbitmq_queue_messages_delayed",
        "Messages that were returned and wait before they are delivered again",
        |q| q.delayed,
    ),
    ("rabbitmq_queue_messages", "Messages in the queue", QueueSnapshot::messages),
    ("rabbitmq_queue_messages_ready_bytes", "Bytes of ready messages", |q| q.ready_bytes),
    ("rabbitmq_queue_messages_paged_out", "Ready messages that wait on disk", |q| q.paged_out),
    ("rabbitmq_queue_messages_paged_out_bytes", "Bytes of these", |q| q.paged_out_bytes),
    ("rabbitmq_queue_consumers", "Consumers on a queue", |q| u64::from(q.consumers)),
    (
        "rabbitmq_queue_messages_dlx_pending",
        "Messages that died and wait for a dead-letter exchange that takes them",
        |q| q.pending,
    ),
];

/// The metrics of the node.
pub(crate) fn text(node: &NodeSnapshot, vhosts: &[VhostSnapshot], detail: Detail) -> String {
    let mut out = Text::default();
    node_metrics(&mut out, node, vhosts);
    for (name, help, value) in QUEUE_GAUGES {
        out.family(name, "gauge", help);
        each_queue(vhosts, detail, |labels, queues| {
            out.sample(name, labels, queues.iter().map(|queue| value(queue)).sum());
        });
    }
    deaths(&mut out, vhosts, detail);
    for (name, help, lateness) in [
        (
            "rabbitmq_message_expiry_lateness_seconds",
            "How long after its deadline a message expired",
            (|v: &VhostSnapshot| v.counters.message_expiry) as fn(&VhostSnapshot) -> Lateness,
        ),
        (
            "rabbitmq_queue_expiry_lateness_seconds",
            "How long after the end of its lease an unused queue expired",
            |v| v.counters.queue_expiry,
        ),
    ] {
        out.family(name, "histogram", help);
        for vhost in vhosts {
            out.histogram(name, &format!("vhost=\"{}\"", escaped(&vhost.name)), &lateness(vhost));
        }
    }
    out.0
}

fn node_metrics(out: &mut Text, node: &NodeSnapshot, vhosts: &[VhostSnapshot]) {
    out.family("rabbitmq_build_info", "untyped", "Version of the broker");
    let labels = format!(
        "rabbitmq_version=\"{}\",product_name=\"Leveret\",durability=\"{}\"",
        node.version, node.durability
    );
    out.sample("rabbitmq_build_info", &labels, 1);
    out.family("rabbitmq_identity_info", "untyped", "Name of the node");
    let labels = format!("rabbitmq_cluster=\"{}\"", escaped(&node.cluster_name));
    out.sample("rabbitmq_identity_info", &labels, 1);
    let sum = |value: fn(&VhostSnapshot) -> u64| vhosts.iter().map(value).sum::<u64>();
    for (name, help, value) in [
        ("rabbitmq_connections", "Connections currently open", sum(|v| v.connections as u64)),
        ("rabbitmq_channels", "Channels currently open", sum(|v| v.channels as u64)),
        ("rabbitmq_queues", "Queues available", sum(|v| v.queues.len() as u64)),
        (
            "rabbitmq_consumers",
            "Consumers currently connected",
            sum(|v| v.queues.iter().map(|q| u64::from(q.consumers)).sum()),
        ),
        ("rabbitmq_alarms_memory_used_watermark", "1 if the memory alarm is on", {
            u64::from(node.memory_alarm)
        }),
        ("rabbitmq_alarms_free_disk_space_watermark", "1 if the disk alarm is on", {
            u64::from(node.disk_alarm)
        }),
        (
            "rabbitmq_disk_space_available_limit_bytes",
            "Free disk space low watermark in bytes",
            node.disk_free_limit_bytes,
        ),
        ("rabbitmq_erlang_uptime_seconds", "Node uptime", node.uptime_ms / 1000),
    ] {
        out.family(name, "gauge", help);
        out.sample(name, "", value);
    }
    for (name, help, value) in [
        ("rabbitmq_process_resident_memory_bytes", "Memory used in bytes", node.resident_bytes),
        ("rabbitmq_disk_space_available_bytes", "Disk space available in bytes", {
            node.disk_free_bytes
        }),
        (
            "rabbitmq_resident_memory_limit_bytes",
            "Memory high watermark in bytes",
            node.memory_watermark_bytes,
        ),
    ] {
        if let Some(value) = value {
            out.family(name, "gauge", help);
            out.sample(name, "", value);
        }
    }
    for (name, help, value) in [
        ("rabbitmq_global_messages_received_total", "Messages received from publishers", {
            sum(|v| v.counters.published)
        }),
        ("rabbitmq_global_messages_confirmed_total", "Messages confirmed to publishers", {
            sum(|v| v.counters.confirmed)
        }),
        (
            "rabbitmq_global_messages_unroutable_dropped_total",
            "Messages published as non-mandatory and dropped as unroutable",
            sum(|v| v.counters.dropped_unroutable),
        ),
        (
            "rabbitmq_global_messages_unroutable_returned_total",
            "Messages published as mandatory and returned as unroutable",
            sum(|v| v.counters.returned_unroutable),
        ),
        (
            "rabbitmq_global_messages_direct_replies_dropped_total",
            "Direct replies whose requester was gone or did not read",
            sum(|v| v.counters.direct_replies_dropped),
        ),
        ("rabbitmq_queues_declared_total", "Queues declared", sum(|v| v.counters.queues_declared)),
        ("rabbitmq_queues_deleted_total", "Queues deleted", sum(|v| v.counters.queues_deleted)),
    ] {
        out.family(name, "counter", help);
        out.sample(name, "", value);
    }
}

/// What did not stay in a queue and why.
struct Fate {
    labels: String,
    refused: u64,
    dead_lettered: ByReason<u64>,
    dropped: ByReason<ByCause>,
    copies_dropped: ByCause,
}

impl Fate {
    fn of_vhost(vhost: &VhostSnapshot) -> Self {
        let VhostCounters { refused, dead_lettered, dropped, copies_dropped, .. } = vhost.counters;
        let labels = format!("vhost=\"{}\"", escaped(&vhost.name));
        Self { labels, refused, dead_lettered, dropped, copies_dropped }
    }

    fn of_queue(vhost: &VhostSnapshot, queue: &QueueSnapshot) -> Self {
        let QueueCounters { refused, dead_lettered, dropped, copies_dropped, .. } = queue.counters;
        let labels = queue_labels(&vhost.name, queue);
        Self { labels, refused, dead_lettered, dropped, copies_dropped }
    }
}

/// Deaths by reason and what became of them; totals include queues that are gone.
fn deaths(out: &mut Text, vhosts: &[VhostSnapshot], detail: Detail) {
    let fates: Vec<Fate> = match detail {
        Detail::Totals => vhosts.iter().map(Fate::of_vhost).collect(),
        Detail::PerQueue => vhosts
            .iter()
            .flat_map(|vhost| vhost.queues.iter().map(|queue| Fate::of_queue(vhost, queue)))
            .collect(),
    };
    let name = "rabbitmq_queue_messages_refused_total";
    out.family(name, "counter", "Messages that a full queue refused");
    for fate in &fates {
        out.sample(name, &fate.labels, fate.refused);
    }
    let name = "rabbitmq_queue_messages_dead_lettered_total";
    out.family(name, "counter", "Messages that died and became dead letters");
    for Fate { labels, dead_lettered, .. } in &fates {
        for reason in DeathReason::ALL {
            let labels = format!("{labels},reason=\"{reason}\"");
            out.sample(name, &labels, dead_lettered.get(reason));
        }
    }
    // Of a queue only what has happened is told: most of these never happen.
    let is_told = |count: u64| count > 0 || detail == Detail::Totals;
    let name = "rabbitmq_queue_messages_dropped_total";
    out.family(name, "counter", "Messages that died and left nothing");
    for Fate { labels, dropped, .. } in &fates {
        for reason in DeathReason::ALL {
            for cause in DropCause::ALL {
                let count = dropped.get(reason).get(cause);
                if is_told(count) {
                    let cause = cause.as_str();
                    let labels = format!("{labels},reason=\"{reason}\",cause=\"{cause}\"");
                    out.sample(name, &labels, count);
                }
            }
        }
    }
    let name = "rabbitmq_queue_dead_letter_copies_dropped_total";
    out.family(name, "counter", "Dead letters that one of several targets did not take");
    for Fate { labels, copies_dropped, .. } in &fates {
        for cause in DropCause::ALL {
            let count = copies_dropped.get(cause);
            if is_told(count) {
                out.sample(name, &format!("{labels},cause=\"{}\"", cause.as_str()), count);
            }
        }
    }
}

/// Calls `each` with the labels and queues of every sample: one queue each, or all of them at once.
fn each_queue(
    vhosts: &[VhostSnapshot],
    detail: Detail,
    mut each: impl FnMut(&str, &[&QueueSnapshot]),
) {
    match detail {
        Detail::Totals => {
            let all: Vec<&QueueSnapshot> = vhosts.iter().flat_map(|v| &v.queues).collect();
            each("", &all);
        }
        Detail::PerQueue => {
            for vhost in vhosts {
                for queue in &vhost.queues {
                    each(&queue_labels(&vhost.name, queue), &[queue]);
                }
            }
        }
    }
}

fn queue_labels(vhost: &str, queue: &QueueSnapshot) -> String {
    format!("vhost=\"{}\",queue=\"{}\"", escaped(vhost), escaped(&queue.name))
}

/// A label's value: names are data, never syntax.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Prometheus' text format.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: u64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn histogram(&mut self, name: &str, labels: &str, lateness: &Lateness) {
        for (bound_us, count) in lateness.cumulative() {
            let bound = bound_us.map_or_else(|| "+Inf".to_owned(), seconds);
            self.sample(&format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), count);
        }
        let sum = seconds(lateness.sum_us());
        let _ = writeln!(self.0, "{name}_sum{{{labels}}} {sum}");
        self.sample(&format!("{name}_count"), labels, lateness.count());
    }
}

/// Microseconds as seconds.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use broker::QueueType;

    use super::*;

    fn node() -> NodeSnapshot {
        NodeSnapshot {
            name: "leveret@host".to_owned(),
            version: "0.1.0",
            cluster_name: "leveret@host".to_owned(),
            durability: "fsync",
            listeners: Vec::new(),
            uptime_ms: 5999,
            resident_bytes: Some(1000),
            memory_watermark_bytes: None,
            memory_alarm: false,
            disk_free_bytes: Some(3000),
            disk_free_limit_bytes: 50,
            disk_alarm: false,
        }
    }

    fn vhost() -> VhostSnapshot {
        let mut counters = VhostCounters::default();
        counters.message_expiry.record(1500);
        *counters.dead_lettered.get_mut(DeathReason::Expired) = 7;
        let mut queue_counters = QueueCounters::default();
        *queue_counters.dead_lettered.get_mut(DeathReason::Expired) = 3;
        let queue = |name: &str| QueueSnapshot {
            name: name.to_owned(),
            kind: QueueType::Classic,
            ready: 2,
            ready_bytes: 20,
            paged_out: 1,
            paged_out_bytes: 10,
            unacked: 1,
            delayed: 0,
            pending: 0,
            consumers: 1,
            counters: queue_counters.clone(),
        };
        VhostSnapshot {
            name: "/".to_owned(),
            connections: 1,
            channels: 2,
            counters,
            queues: vec![queue("a"), queue("quote\" and\nline")],
        }
    }

    #[test]
    fn totals_are_sums_and_remember_queues_that_are_gone() {
        let text = text(&node(), &[vhost()], Detail::Totals);
        assert!(text.contains("\nrabbitmq_queue_messages_ready 4\n"));
        assert!(text.contains("\nrabbitmq_queue_messages 6\n"));
        assert!(text.contains("\nrabbitmq_queue_messages_paged_out 2\n"));
        let died = "rabbitmq_queue_messages_dead_lettered_total{vhost=\"/\",reason=\"expired\"} 7";
        assert!(text.contains(died));
        assert!(text.contains("lateness_seconds_bucket{vhost=\"/\",le=\"0.002048\"} 1\n"));
        assert!(text.contains("lateness_seconds_bucket{vhost=\"/\",le=\"0.001024\"} 0\n"));
        assert!(
            text.contains("rabbitmq_message_expiry_lateness_seconds_sum{vhost=\"/\"} 0.001500")
        );
    }

    #[test]
    fn names_of_queues_are_data() {
        let text = text(&node(), &[vhost()], Detail::PerQueue);
        assert!(text.contains("queue=\"quote\\\" and\\nline\"} 2\n"));
        let died = "dead_lettered_total{vhost=\"/\",queue=\"a\",reason=\"expired\"} 3\n";
        assert!(text.contains(died));
    }
}
