//! Families of the node.

use server::snapshot::scrape::{Scrape, VhostScrape};

use crate::metrics::family::{self, Family, Objects, counter, gauge, untyped, whole};
use crate::metrics::text::{Kind, Namespace, Text, Value, labels};

/// The sum of a number over all vhosts.
fn sum(scrape: &Scrape, value: impl Fn(&VhostScrape) -> u64) -> Option<Value> {
    Some(scrape.vhosts.iter().map(value).sum::<u64>().into())
}

/// Families of `connection_churn_metrics`.
pub(super) const CHURN: [Family<Scrape>; 7] = [
    counter("connections_opened_total", "Connections opened", |s| {
        sum(s, |v| v.counters.connections_opened)
    }),
    counter("connections_closed_total", "Connections that have ended", |s| {
        sum(s, |v| v.counters.connections_closed)
    }),
    counter("channels_opened_total", "Channels opened", |s| sum(s, |v| v.counters.channels_opened)),
    counter("channels_closed_total", "Channels that have ended", |s| {
        sum(s, |v| v.counters.channels_closed)
    }),
    counter("queues_declared_total", "Queues declared, those included that were there", {
        |s| sum(s, |v| v.counters.queues_declared)
    }),
    counter("queues_created_total", "Queues made", |s| sum(s, |v| v.counters.queues_created)),
    counter("queues_deleted_total", "Queues deleted, in whichever way", |s| {
        sum(s, |v| v.counters.queues_deleted)
    }),
];

/// Families of `node_coarse_metrics`.
pub(super) const COARSE: [Family<Scrape>; 4] = [
    gauge("process_open_fds", "Open file descriptors", |s| s.process.fd_used.map(Value::Whole)),
    // No longer in RabbitMQ 4.3, but used by dashboards.
    gauge("process_open_tcp_sockets", "Sockets of clients that have opened a vhost", |s| {
        sum(s, |v| v.connections.len() as u64)
    }),
    gauge("process_resident_memory_bytes", "Memory that the process holds", |s| {
        s.node.resident_bytes.map(Value::Whole)
    }),
    gauge("disk_space_available_bytes", "Free on the disk of the data", |s| {
        s.node.disk_free_bytes.map(Value::Whole)
    }),
];

/// Families of `node_metrics`.
pub(super) const METRICS: [Family<Scrape>; 4] = [
    gauge("process_max_fds", "File descriptors that may be open", |s| {
        s.process.fd_total.map(Value::Whole)
    }),
    gauge("resident_memory_limit_bytes", "Memory at which publishers are blocked", |s| {
        s.node.memory_watermark_bytes.map(Value::Whole)
    }),
    gauge(
        "disk_space_available_limit_bytes",
        "Free disk space below which publishers are blocked",
        |s| Some(s.node.disk_free_limit_bytes.into()),
    ),
    gauge("erlang_uptime_seconds", "Time since the start", |s| {
        Some(Value::Micros(s.node.uptime_ms.saturating_mul(1000)))
    }),
];

/// Numbers of objects.
pub(super) const TOTALS: [Family<Scrape>; 4] = [
    gauge("connections", "Connections", |s| sum(s, |v| v.connections.len() as u64)),
    gauge("channels", "Channels", |s| sum(s, |v| v.channels.len() as u64)),
    gauge("consumers", "Consumers of queues", |s| {
        sum(s, |v| v.queues.iter().map(|queue| queue.levels.consumers).sum())
    }),
    gauge("queues", "Queues", |s| sum(s, |v| v.queues.len() as u64)),
];

/// Families of alarms.
pub(super) const ALARMS: [Family<Scrape>; 3] = [
    untyped(
        "alarms_free_disk_space_watermark",
        "1 while publishers are blocked because the disk is full",
        |s| Some(u64::from(s.node.disk_alarm).into()),
    ),
    untyped(
        "alarms_memory_used_watermark",
        "1 while publishers are blocked because memory is short",
        |s| Some(u64::from(s.node.memory_alarm).into()),
    ),
    // No longer in RabbitMQ 4.3, but used by alert rules.
    untyped("alarms_file_descriptor_limit", "0: descriptors raise no alarm", |_| {
        Some(Value::Whole(0))
    }),
];

/// Families of `node_persister_metrics`: operations on files, steps of the clock, and backups. In RabbitMQ 4 those on files
/// are always 0.
const FILES: [Family<Scrape>; 14] = [
    counter("io_read_ops_total", "Reads of files", |s| whole(s.process.io.reads.count)),
    counter("io_read_bytes_total", "Bytes read from files", |s| whole(s.process.io.reads.bytes)),
    counter("io_read_time_seconds_total", "Time spent with reads", |s| {
        Some(Value::Micros(s.process.io.reads.micros))
    }),
    counter("io_write_ops_total", "Writes of logs and pages", |s| whole(s.process.io.writes.count)),
    counter("io_write_bytes_total", "Bytes written to logs and pages", |s| {
        whole(s.process.io.writes.bytes)
    }),
    counter("io_write_time_seconds_total", "Time spent with writes", |s| {
        Some(Value::Micros(s.process.io.writes.micros))
    }),
    counter("io_sync_ops_total", "Syncs of files and directories", |s| {
        whole(s.process.io.syncs.count)
    }),
    counter("io_sync_time_seconds_total", "Time spent with syncs", |s| {
        Some(Value::Micros(s.process.io.syncs.micros))
    }),
    counter("clock_steps_total", "Steps of the system's clock by a second or more", |s| {
        whole(s.clock_steps)
    }),
    counter("file_check_bytes_total", "Bytes that checks of files have read", |s| {
        whole(s.file_check.bytes_ever)
    }),
    gauge("damaged_files", "Files that a check has found changed, and that nobody mends", |s| {
        whole(s.file_check.not_repaired().count() as u64)
    }),
    counter("backups_finished_total", "Backups completed", |s| whole(s.backups.finished)),
    counter("backups_failed_total", "Backups that failed", |s| whole(s.backups.failed)),
    gauge("backup_running", "1 while a backup runs", |s| whole(u64::from(s.backups.is_running))),
];

/// Writes the families of `node_persister_metrics`.
pub(super) fn files(text: &mut Text, namespace: Namespace, scrape: &Scrape) {
    write(text, namespace, &FILES, scrape);
    let io = &scrape.process.io;
    let within = io.syncs_within.iter().map(|(bound, count)| (Some(Value::Micros(*bound)), *count));
    let buckets = within.chain([(None, io.syncs.count)]);
    let help = "How long syncs of files and directories took";
    let mut samples = text.family(namespace, "io_sync_duration_seconds", Kind::Histogram, help);
    samples.histogram("", buckets, Value::Micros(io.syncs.micros));
}

/// Writes families of the node.
pub(super) fn write(
    text: &mut Text,
    namespace: Namespace,
    families: &[Family<Scrape>],
    scrape: &Scrape,
) {
    family::write(text, namespace, families, &Objects::Sum(scrape));
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
