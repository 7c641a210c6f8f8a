//! Families of the node.

use crate::metrics::text::{Kind, Namespace, Text, Value, labels};
use crate::snapshot::scrape::{Scrape, VhostScrape};

/// A family without labels: name, type, help, and value.
type Single = (&'static str, Kind, &'static str, fn(&Scrape) -> Option<Value>);

/// The sum of a number over all vhosts.
fn sum(scrape: &Scrape, value: impl Fn(&VhostScrape) -> u64) -> Option<Value> {
    Some(scrape.vhosts.iter().map(value).sum::<u64>().into())
}

/// Families of `connection_churn_metrics`.
pub(super) const CHURN: [Single; 7] = [
    ("connections_opened_total", Kind::Counter, "Connections opened", |s| {
        sum(s, |v| v.counters.connections_opened)
    }),
    ("connections_closed_total", Kind::Counter, "Connections that have ended", |s| {
        sum(s, |v| v.counters.connections_closed)
    }),
    ("channels_opened_total", Kind::Counter, "Channels opened", |s| {
        sum(s, |v| v.counters.channels_opened)
    }),
    ("channels_closed_total", Kind::Counter, "Channels that have ended", |s| {
        sum(s, |v| v.counters.channels_closed)
    }),
    ("queues_declared_total", Kind::Counter, "Queues declared, those included that were there", {
        |s| sum(s, |v| v.counters.queues_declared)
    }),
    ("queues_created_total", Kind::Counter, "Queues made", |s| {
        sum(s, |v| v.counters.queues_created)
    }),
    ("queues_deleted_total", Kind::Counter, "Queues deleted, in whichever way", |s| {
        sum(s, |v| v.counters.queues_deleted)
    }),
];

/// Families of `node_coarse_metrics`.
pub(super) const COARSE: [Single; 4] = [
    ("process_open_fds", Kind::Gauge, "Open file descriptors", |s| {
        s.process.fd_used.map(Value::Whole)
    }),
    // No longer in RabbitMQ 4.3, but used by dashboards.
    ("process_open_tcp_sockets", Kind::Gauge, "Sockets of clients that have opened a vhost", |s| {
        sum(s, |v| v.connections.len() as u64)
    }),
    ("process_resident_memory_bytes", Kind::Gauge, "Memory that the process holds", |s| {
        s.node.resident_bytes.map(Value::Whole)
    }),
    ("disk_space_available_bytes", Kind::Gauge, "Free on the disk of the data", |s| {
        s.node.disk_free_bytes.map(Value::Whole)
    }),
];

/// Families of `node_metrics`.
pub(super) const METRICS: [Single; 4] = [
    ("process_max_fds", Kind::Gauge, "File descriptors that may be open", |s| {
        s.process.fd_total.map(Value::Whole)
    }),
    ("resident_memory_limit_bytes", Kind::Gauge, "Memory at which publishers are blocked", |s| {
        s.node.memory_watermark_bytes.map(Value::Whole)
    }),
    (
        "disk_space_available_limit_bytes",
        Kind::Gauge,
        "Free disk space below which publishers are blocked",
        |s| Some(s.node.disk_free_limit_bytes.into()),
    ),
    ("erlang_uptime_seconds", Kind::Gauge, "Time since the start", |s| {
        Some(Value::Micros(s.node.uptime_ms.saturating_mul(1000)))
    }),
];

/// Numbers of objects.
pub(super) const TOTALS: [Single; 4] = [
    ("connections", Kind::Gauge, "Connections", |s| sum(s, |v| v.connections.len() as u64)),
    ("channels", Kind::Gauge, "Channels", |s| sum(s, |v| v.channels.len() as u64)),
    ("consumers", Kind::Gauge, "Consumers of queues", |s| {
        sum(s, |v| v.queues.iter().map(|queue| queue.consumers).sum())
    }),
    ("queues", Kind::Gauge, "Queues", |s| sum(s, |v| v.queues.len() as u64)),
];

/// Families of alarms.
pub(super) const ALARMS: [Single; 4] = [
    (
        "alarms_free_disk_space_watermark",
        Kind::Untyped,
        "1 while publishers are blocked because the disk is full",
        |s| Some(u64::from(s.node.disk_alarm).into()),
    ),
    (
        "alarms_memory_used_watermark",
        Kind::Untyped,
        "1 while publishers are blocked because memory is short",
        |s| Some(u64::from(s.node.memory_alarm).into()),
    ),
    // No longer in RabbitMQ 4.3, but used by alert rules.
    ("alarms_file_descriptor_limit", Kind::Untyped, "0: descriptors raise no alarm", |_| {
        Some(Value::Whole(0))
    }),
    (
        "unreachable_cluster_peers_count",
        Kind::Gauge,
        "Other nodes that cannot be reached: there are none",
        |_| Some(Value::Whole(0)),
    ),
];

/// Writes families without labels.
pub(super) fn write(text: &mut Text, namespace: Namespace, families: &[Single], scrape: &Scrape) {
    for (name, kind, help, value) in families {
        let mut samples = text.family(namespace, name, *kind, help);
        if let Some(value) = value(scrape) {
            samples.put("", value);
        }
    }
}

/// Writes the families of `auth_attempt_metrics`.
pub(super) fn logins(text: &mut Text, namespace: Namespace, scrape: &Scrape) {
    for (name, help, counts) in [
        ("auth_attempts_total", "Logins", [true, true]),
        ("auth_attempts_succeeded_total", "Logins accepted", [true, false]),
        ("auth_attempts_failed_total", "Logins refused", [false, true]),
    ] {
        let mut samples = text.family(namespace, name, Kind::Counter, help);
        for logins in &scrape.logins {
            let [succeeded, failed] = counts.map(u64::from);
            let count = succeeded * logins.succeeded + failed * logins.failed;
            samples.put(&labels(&[("protocol", logins.protocol.as_str())]), count);
        }
    }
}

/// Writes the identity of the node, for queries to join with. `endpoint` names the path.
pub(super) fn identity(text: &mut Text, endpoint: &str, scrape: &Scrape) {
    let node = &scrape.node;
    let build = labels(&[
        ("rabbitmq_version", &node.identity.version),
        ("prometheus_plugin_version", &node.identity.version),
        ("product_name", &node.identity.product),
        ("product_version", &node.identity.version),
        ("leveret_version", node.leveret_version),
        ("durability", node.durability),
    ]);
    let help = "Version of the broker";
    text.family(Namespace::Plain, "build_info", Kind::Untyped, help).put(&build, 1);
    let identity = labels(&[
        ("rabbitmq_node", &node.name),
        ("rabbitmq_cluster", &node.cluster_name),
        ("rabbitmq_endpoint", endpoint),
    ]);
    let help = "Names of the node, its cluster and what was asked";
    text.family(Namespace::Plain, "identity_info", Kind::Untyped, help).put(&identity, 1);
}

/// Writes the start time of the process.
pub(super) fn started(text: &mut Text, scrape: &Scrape) {
    let name = "process_start_time_seconds".to_owned();
    let help = "When the process started, in seconds of the epoch";
    text.family_named(name, Kind::Gauge, help).put("", scrape.started_s);
}
