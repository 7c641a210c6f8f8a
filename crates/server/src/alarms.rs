//! Alarms that keep publishers from filling what is nearly full.
//!
//! The memory alarm goes on when the process holds more than its watermark and off when it holds less
//! again. Whoever publishes meanwhile is told `connection.blocked` and not read; consumers go on and
//! make room.

use std::sync::Arc;

use tokio::sync::watch;

use crate::limits::MEMORY_CHECK_INTERVAL;
use crate::node::Node;

/// Why publishers are blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alarm {
    /// The memory watermark is exceeded.
    Memory,
}

impl Alarm {
    /// What `connection.blocked` says.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Memory => "low on memory",
        }
    }
}

/// The alarm that is on, for everybody to watch.
pub(crate) fn channel() -> watch::Sender<Option<Alarm>> {
    watch::Sender::new(None)
}

/// Watches the memory of the process.
pub(crate) async fn watch_memory(node: Arc<Node>) {
    let Some(watermark) = node.memory_watermark_bytes else { return };
    let mut interval = tokio::time::interval(MEMORY_CHECK_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let Some(resident) = resident_bytes() else {
            tracing::warn!("cannot read the memory of this process: no memory alarm");
            return;
        };
        let alarm = (resident > watermark).then_some(Alarm::Memory);
        let changed = node.alarm.send_if_modified(|current| {
            let changed = *current != alarm;
            *current = alarm;
            changed
        });
        match (changed, alarm) {
            (true, Some(_)) => {
                tracing::warn!(resident, watermark, "memory alarm on: publishers are blocked");
            }
            (true, None) => tracing::info!(resident, watermark, "memory alarm off"),
            (false, _) => {}
        }
    }
}

/// Bytes of memory the process holds.
pub(crate) fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Bytes of memory that the process may have: the machine's, or less if a control group says so.
pub(crate) fn total_bytes() -> Option<u64> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total_kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let total = total_kib * 1024;
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    Some(limits.into_iter().filter_map(number).fold(total, u64::min))
}
