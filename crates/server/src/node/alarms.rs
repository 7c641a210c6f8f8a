//! Checks of memory and disk, which set the alarm.
//!
//! The memory alarm is on while the process uses more memory than its watermark, the disk alarm while less is
//! free than `disk_free_limit`. A client that publishes meanwhile gets `connection.blocked` and is not read;
//! consumers continue and make room. In the vhosts, work without a client's command waits as publishers do.
//! See `docs/concepts/alarms.md`.

use std::sync::Arc;
use std::time::Instant;

use crate::disk::free_space;
use crate::limits::{
    ALARM_CHECK_INTERVAL, DATA_DIR_CHECK_INTERVAL, DISK_NEAR_BYTES, DISK_NEAR_CHECK_INTERVAL,
    EXIT_DISK, SHORT_DISK_COMPACTION_INTERVAL, TOPOLOGY_BYTES_MIN, TOPOLOGY_SHARE,
};
use crate::node::Node;
use crate::node::alarm::Alarm;
use crate::service_state;

/// Checks the memory of the process and the disk of the data directory until the broker ends.
pub(crate) async fn watch(node: Arc<Node>) {
    let (mut compacted, mut dir_checked) = (Instant::now(), Instant::now());
    loop {
        let free = check(&node);
        if let Some(step_ms) = node.clock_watch.look(node.clock.now()) {
            tracing::warn!(step_ms, "the clock of the system was set; deadlines are not affected");
        }
        node.disk.reserve.tend();
        if dir_checked.elapsed() >= DATA_DIR_CHECK_INTERVAL {
            dir_checked = Instant::now();
            if !node.disk.lock.is_there() {
                tracing::error!(
                    data_dir = %node.disk.data_dir.display(),
                    "the data directory was moved or replaced while it was in use; the broker ends"
                );
                std::process::exit(EXIT_DISK);
            }
        }
        let is_short = node.alarms.current.borrow().is_some_and(Alarm::is_of_disk);
        if is_short && compacted.elapsed() >= SHORT_DISK_COMPACTION_INTERVAL {
            compacted = Instant::now();
            node.threads.persister.look_for_space();
        }
        // A flood can fill the rest of the disk in less than the usual interval.
        let limit = node.alarms.limits.disk_free_limit_bytes();
        let is_near = free.is_some_and(|free| free.saturating_sub(limit) < DISK_NEAR_BYTES);
        let interval = if is_near { DISK_NEAR_CHECK_INTERVAL } else { ALARM_CHECK_INTERVAL };
        tokio::time::sleep(interval).await;
    }
}

/// Sets the alarm to the current state of memory and disk. Returns the free bytes of the disk.
pub(crate) fn check(node: &Node) -> Option<u64> {
    let _turn = node.alarms.limits.one_at_a_time();
    let (resident, free) = (resident_bytes(), free_space::free_bytes(&node.disk.data_dir));
    let watermark = node.alarms.limits.memory_watermark_bytes();
    let limit = node.alarms.limits.disk_free_limit_bytes();
    let memory = resident.zip(watermark).is_some_and(|(resident, max)| resident > max);
    let disk = free.is_some_and(|free| free < limit || node.disk.reserve.is_used_up_at(free));
    let alarm = Alarm::of(memory, disk);
    let topology_bytes_max =
        watermark.filter(|_| memory).map(|max| TOPOLOGY_BYTES_MIN.max(max / TOPOLOGY_SHARE));
    for handle in node.vhosts.all() {
        handle.set_topology_bytes_max(topology_bytes_max);
    }
    let changed = node.alarms.current.send_if_modified(|current| {
        let changed = *current != alarm;
        *current = alarm;
        changed
    });
    if changed {
        node.vhosts.set_alarm(alarm.is_some());
    }
    if changed {
        let problem = alarm.map(|alarm| format!("publishers are blocked: {}", alarm.reason()));
        service_state::problem(problem.as_deref());
    }
    match (changed, alarm) {
        (true, Some(alarm)) => tracing::warn!(
            resident,
            watermark,
            free,
            limit,
            "alarm on: publishers are blocked, {}",
            alarm.reason()
        ),
        (true, None) => tracing::info!(resident, watermark, free, limit, "alarm off"),
        (false, _) => {}
    }
    free
}

/// Clears the alarm, regardless of memory and disk.
pub(crate) fn clear(node: &Node) {
    node.alarms.current.send_replace(None);
    node.vhosts.set_alarm(false);
}

/// Memory of the process, in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    memory_bytes(1)
}

/// The part of it that mirrors files, in bytes: the code of the program and of its libraries.
pub(crate) fn code_bytes() -> Option<u64> {
    memory_bytes(2)
}

/// A number of `/proc/self/statm`.
fn memory_bytes(at: usize) -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(at)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
