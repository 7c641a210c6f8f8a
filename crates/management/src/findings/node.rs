//! Findings about the node: alarms, disk, certificates, clock.

use broker::{Severity, words};
use server::requests::ServerCertificate;
use server::snapshot::condition::NodeCondition;
use server::snapshot::node::{NodeSnapshot, ProcessSnapshot};

use super::alarms::{disk_alarm, memory_alarm};
use super::cluster::ClusterFacts;
use super::{Finding, FindingKind, Resource, ResourceKind, subject};
use crate::limits::{
    CERTIFICATE_EXPIRES_SOON_S, CLOCK_STEP_SHOWN_MS, SHORT_DESCRIPTORS_PERCENT, SHORT_PERCENT,
    SLOW_WRITE_US,
};

/// Facts about the node.
#[derive(Clone, Debug)]
pub(crate) struct NodeFacts {
    pub(crate) node: NodeSnapshot,
    pub(crate) process: ProcessSnapshot,
    pub(crate) certificates: Vec<ServerCertificate>,
    pub(crate) condition: NodeCondition,
    pub(crate) cluster: ClusterFacts,
}

/// All findings about the node.
pub(super) fn find(facts: &NodeFacts) -> Vec<Finding> {
    let NodeFacts { node, process, certificates, condition, cluster } = facts;
    let mut all = Vec::new();
    let mut put = |kind, severity, text: Option<String>| {
        all.extend(text.map(|text| Finding::of_node(kind, severity, text)));
    };
    put(FindingKind::MemoryAlarm, Severity::Error, memory_alarm(node));
    put(FindingKind::DiskAlarm, Severity::Error, disk_alarm(node));
    put(FindingKind::MemoryShort, Severity::Warning, memory_short(node));
    put(FindingKind::DiskShort, Severity::Warning, disk_short(node));
    put(FindingKind::DescriptorsShort, Severity::Warning, descriptors_short(process));
    put(FindingKind::SlowDisk, Severity::Warning, slow_disk(condition));
    put(FindingKind::ClockStep, Severity::Warning, clock_step(condition));
    let suspended = "The AMQP listeners are suspended: clients cannot connect.".to_owned();
    let is_drained = condition.is_drained;
    put(
        FindingKind::ListenersSuspended,
        Severity::Warning,
        (condition.are_listeners_suspended && !is_drained).then_some(suspended),
    );
    let drained =
        "The node is drained: it leads only what no other node can, and accepts no AMQP clients.";
    put(FindingKind::NodeDrained, Severity::Warning, is_drained.then(|| drained.to_owned()));
    all.extend(expiring(certificates));
    all.extend(disk_troubles(condition, cluster));
    all.extend(super::refusals::find(condition));
    all.extend(super::cluster::find(cluster));
    all
}

/// True if `used` is more than this share of `limit`.
fn is_short(used: u64, limit: u64, percent: u64) -> bool {
    limit > 0 && u128::from(used) * 100 > u128::from(limit) * u128::from(percent)
}

fn memory_short(node: &NodeSnapshot) -> Option<String> {
    let (used, limit) = (node.resident_bytes?, node.memory_watermark_bytes?);
    (!node.memory_alarm && is_short(used, limit, SHORT_PERCENT)).then(|| {
        let (used, limit) = (words::bytes(used), words::bytes(limit));
        format!("Memory is short: {used} of {limit} used; at the limit, publishers are blocked.")
    })
}

fn disk_short(node: &NodeSnapshot) -> Option<String> {
    let (free, limit) = (node.disk_free_bytes?, node.disk_free_limit_bytes);
    (!node.disk_alarm && is_short(limit, free, SHORT_PERCENT)).then(|| {
        let (free, limit) = (words::bytes(free), words::bytes(limit));
        format!("Disk space is short: {free} free; below {limit}, publishers are blocked.")
    })
}

fn descriptors_short(process: &ProcessSnapshot) -> Option<String> {
    let (used, total) = (process.fd_used?, process.fd_total?);
    is_short(used, total, SHORT_DESCRIPTORS_PERCENT).then(|| {
        let (used, total) = (words::number(used), words::number(total));
        format!(
            "File descriptors are short: {used} of {total} used; without any, connections are refused."
        )
    })
}

fn slow_disk(condition: &NodeCondition) -> Option<String> {
    let duration = |us: u64| words::duration(us / 1000);
    let NodeCondition { slowest_write_us: slowest, running_write_us: running, .. } = *condition;
    match (running >= SLOW_WRITE_US, slowest >= SLOW_WRITE_US) {
        (true, _) => Some(format!(
            "The disk is slow: a write has been running for {}, and confirms wait for it.",
            duration(running)
        )),
        (false, true) => Some(format!(
            "The disk is slow: a write took {} within the last minutes, and confirms waited for it.",
            duration(slowest)
        )),
        (false, false) => None,
    }
}

fn clock_step(condition: &NodeCondition) -> Option<String> {
    let step = condition.clock_step.filter(|step| step.ago_ms <= CLOCK_STEP_SHOWN_MS)?;
    let direction = if step.step_ms < 0 { "back" } else { "forward" };
    Some(format!(
        "The clock of the system was set {direction} by {}, {} ago. Deadlines are not affected.",
        words::duration(step.step_ms.unsigned_abs()),
        words::duration(step.ago_ms)
    ))
}

fn expiring(certificates: &[ServerCertificate]) -> Vec<Finding> {
    let resource = |one: &ServerCertificate| Resource {
        kind: ResourceKind::Listener,
        vhost: None,
        name: one.file.clone(),
        rate: None,
        detail: format!("{} {}", one.listener.protocol, one.listener.address),
    };
    let with = |is_wanted: &dyn Fn(i64) -> bool| -> Vec<Resource> {
        let all = certificates.iter();
        all.filter(|one| one.expires_in_s.is_some_and(is_wanted)).map(resource).collect()
    };
    let kind = FindingKind::CertificateExpires;
    let unreadable = certificates.iter().filter(|one| one.expires_in_s.is_none());
    let unreadable =
        Finding::of(kind, Severity::Warning, unreadable.map(resource).collect(), |count, _| {
            let files = subject(count, "certificate file", ["cannot", "cannot"]);
            format!("{files} be read.")
        });
    let expired = Finding::of(kind, Severity::Error, with(&|left_s| left_s <= 0), |count, _| {
        format!("{} expired.", subject(count, "certificate", ["has", "have"]))
    });
    let soon = |left_s| left_s > 0 && left_s <= CERTIFICATE_EXPIRES_SOON_S;
    let first = certificates.iter().filter_map(|one| one.expires_in_s).filter(|left| soon(*left));
    let first_ms = first.min().unwrap_or_default().unsigned_abs() * 1000;
    let expiring = Finding::of(kind, Severity::Warning, with(&soon), |count, _| {
        let certificates = subject(count, "certificate", ["expires", "expire"]);
        format!("{certificates} soon, the first in {}.", words::duration(first_ms))
    });
    [unreadable, expired, expiring].into_iter().flatten().collect()
}

fn disk_troubles(
    condition: &NodeCondition,
    cluster: &ClusterFacts,
) -> impl Iterator<Item = Finding> {
    let resource = |name: &String, detail| Resource { detail, ..Resource::of_vhost(name) };
    let full = condition.vhosts_without_room.iter().map(|name| resource(name, String::new()));
    let (followed, full): (Vec<_>, Vec<_>) =
        full.partition(|one| cluster.led_elsewhere.contains(&one.name));
    let full = Finding::of(FindingKind::DiskFull, Severity::Error, full, |count, _| {
        let vhosts = subject(count, "vhost", ["finds", "find"]);
        format!("{vhosts} no room on the disk: nothing more is confirmed.")
    });
    let followed = Finding::of(FindingKind::DiskFull, Severity::Error, followed, |count, _| {
        let replicas = subject(count, "replica", ["finds", "find"]);
        format!(
            "{replicas} no room on the disk of this node: its vhost goes on with the other nodes."
        )
    });
    let pages = condition.unwritten_pages.iter();
    let pages = pages.map(|(name, pages)| resource(name, words::count(*pages, "page")));
    let pages =
        Finding::of(FindingKind::PagesInMemory, Severity::Warning, pages.collect(), |count, _| {
            let vhosts = subject(count, "vhost", ["keeps", "keep"]);
            format!("{vhosts} messages of long queues in memory that the disk did not take.")
        });
    let down = condition.vhosts_down.iter().map(|(name, why)| resource(name, why.clone()));
    let down = Finding::of(FindingKind::VhostDown, Severity::Error, down.collect(), |count, _| {
        let vhosts = subject(count, "vhost", ["is", "are"]);
        format!(
            "{vhosts} down: files cannot be read. Stop the node and restore them, or delete the vhost."
        )
    });
    let damaged = condition.damaged_vhosts.iter();
    let damaged = damaged.map(|(name, damages)| resource(name, words::count(*damages, "problem")));
    let damaged =
        Finding::of(FindingKind::LogDamaged, Severity::Error, damaged.collect(), |count, _| {
            let logs = subject(count, "vhost", ["was", "were"]);
            format!("{logs} restored from a damaged log at the last start; messages may be lost.")
        });
    let changed = condition.damaged_files.iter();
    let changed = changed.map(|(name, detail)| resource(name, detail.clone()));
    let changed =
        Finding::of(FindingKind::FilesDamaged, Severity::Error, changed.collect(), |count, _| {
            let files = subject(count, "file", ["has", "have"]);
            let written = if count == 1 { "it was" } else { "they were" };
            format!(
                "{files} changed since {written} written: the next start loses what stood there."
            )
        });
    [full, followed, pages, down, damaged, changed].into_iter().flatten()
}
