//! Checks of memory and disk, which set the alarm.
//!
//! The memory alarm is on while the process uses more memory than its watermark, the disk alarm while less is
//! free than `disk_free_limit`, and each for a moment longer (`shortage.rs`). A client that publishes meanwhile gets `connection.blocked` and is not read;
//! consumers continue and make room. In the vhosts, work without a client's command waits as publishers do.
//! In a cluster, alarms of other nodes block publishers, too (`voters.rs`). See `docs/concepts/alarms.md`.

pub(crate) mod alarm;
pub(crate) mod known;
pub(crate) mod limits;
pub(crate) mod memory_size;
mod shortage;
mod voters;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cluster::Peer;
use crate::disk::free_space;
use crate::limits::{
    ALARM_CHECK_INTERVAL, DATA_DIR_CHECK_INTERVAL, DISK_NEAR_BYTES, DISK_NEAR_CHECK_INTERVAL,
    EXIT_DISK, MEMORY_GROWTH_BYTES_PER_MS, MEMORY_NEAR_CHECK_INTERVAL,
    SHORT_DISK_COMPACTION_INTERVAL, TOPOLOGY_BYTES_MIN, TOPOLOGY_SHARE, VOTER_ALARM_TIME_MAX,
};
use crate::membership::ids::NodeId;
use crate::node::Node;
use crate::node::alarms::alarm::Alarm;
use crate::node::alarms::shortage::Shortage;
use crate::node::alarms::voters::{VoterChange, VoterState};
use crate::service_state;

/// Checks the memory of the process, the disk of the data directory and the alarms of other nodes until the broker ends.
pub(crate) async fn watch(node: Arc<Node>) {
    let (mut compacted, mut dir_checked) = (Instant::now(), Instant::now());
    loop {
        let room = check(&node);
        if let Some(step_ms) = node.upkeep.clock_watch.look(node.clock.now()) {
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
        let is_short = node.alarms.own().is_some_and(Alarm::is_of_disk);
        if is_short && compacted.elapsed() >= SHORT_DISK_COMPACTION_INTERVAL {
            compacted = Instant::now();
            node.threads.persister.look_for_space();
            if let Some(replication) = &node.replication {
                replication.replicator.look_for_space();
            }
        }
        tokio::select! {
            () = tokio::time::sleep(room.until_next_check()) => {}
            () = node.alarms.changed_elsewhere.notified() => {}
        }
    }
}

/// Bytes between the present state and the limits; none where the system does not tell, or no limit is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Below the memory watermark; 0 above it.
    memory: Option<u64>,
    /// Above the disk limit; 0 below it.
    disk: Option<u64>,
}

impl Room {
    /// A flood can fill the rest of the disk or of the memory in less than the usual interval.
    fn until_next_check(self) -> Duration {
        let for_memory = match self.memory {
            // The alarm is on.
            None | Some(0) => ALARM_CHECK_INTERVAL,
            Some(left) => Duration::from_millis(left / MEMORY_GROWTH_BYTES_PER_MS),
        };
        let is_near = self.disk.is_some_and(|left| left < DISK_NEAR_BYTES);
        let for_disk = if is_near { DISK_NEAR_CHECK_INTERVAL } else { ALARM_CHECK_INTERVAL };
        for_memory.clamp(MEMORY_NEAR_CHECK_INTERVAL, ALARM_CHECK_INTERVAL).min(for_disk)
    }
}

/// Sets the alarm to the current state of memory and disk, here and on the other nodes.
pub(crate) fn check(node: &Node) -> Room {
    let _turn = node.alarms.limits.one_at_a_time();
    let (resident, free) = (resident_bytes(), free_space::free_bytes(&node.disk.data_dir));
    let watermark = node.alarms.limits.memory_watermark_bytes();
    let limit = node.alarms.limits.disk_free_limit_bytes();
    let memory = resident.zip(watermark).is_some_and(|(resident, max)| resident > max);
    let disk = free.is_some_and(|free| free < limit || node.disk.reserve.is_used_up_at(free));
    let (others, now) = (voters(node), node.clock.time());
    let (was, own, changes, elsewhere) = {
        let mut known = node.alarms.known.lock();
        let was = known.own();
        known.memory = known.memory.after(memory, watermark, now);
        known.disk = known.disk.after(disk, Some(limit), now);
        let own = known.own();
        let changes = known.voters.look(own, &others, now);
        (was, own, changes, known.voters.counting())
    };
    let topology_bytes_max = watermark
        .filter(|_| own.is_some_and(Alarm::is_of_memory))
        .map(|max| TOPOLOGY_BYTES_MIN.max(max / TOPOLOGY_SHARE));
    for handle in node.vhosts.all() {
        handle.set_topology_bytes_max(topology_bytes_max);
    }
    if was != own
        && let Some(links) = &node.cluster
    {
        links.tell_facts();
    }
    match own {
        _ if was == own => {}
        Some(alarm) => tracing::warn!(
            resident,
            watermark,
            free,
            limit,
            "alarm on: publishers are blocked, {}",
            alarm.reason()
        ),
        None => tracing::info!(resident, watermark, free, limit, "alarm off"),
    }
    for (voter, change) in changes {
        log_change(node, voter, change);
    }
    set(node, own.into_iter().chain(elsewhere).reduce(Alarm::and));
    let memory_left = resident.zip(watermark).map(|(resident, max)| max.saturating_sub(resident));
    Room { memory: memory_left, disk: free.map(|free| free.saturating_sub(limit)) }
}

/// Sets the alarm that blocks publishers.
fn set(node: &Node, alarm: Option<Alarm>) {
    let is_changed = node.alarms.current.send_if_modified(|current| {
        let is_changed = *current != alarm;
        *current = alarm;
        is_changed
    });
    if is_changed {
        node.vhosts.set_alarm(alarm.is_some());
        let problem = alarm.map(|alarm| format!("publishers are blocked: {}", alarm.reason()));
        service_state::problem(problem.as_deref());
    }
}

/// The states of the other nodes of the cluster.
fn voters(node: &Node) -> Vec<(NodeId, VoterState)> {
    let Some(links) = &node.cluster else { return Vec::new() };
    let of_peer = |peer: &Arc<Peer>| {
        let state = peer.state.lock();
        let facts = state.current.as_ref().and(state.facts.as_ref());
        let state = facts.map_or(VoterState::Away, |facts| {
            VoterState::Connected(Alarm::of(facts.memory_alarm, facts.disk_alarm))
        });
        (peer.id, state)
    };
    links.peers().iter().map(of_peer).collect()
}

fn log_change(node: &Node, voter: NodeId, change: VoterChange) {
    let peer = node.cluster.as_ref().and_then(|links| links.peer(voter));
    let peer = peer.as_ref().map(|peer| peer.node.name.as_str());
    match change {
        VoterChange::Blocks(alarm) => tracing::warn!(
            peer,
            "alarm of another node on: publishers are blocked, {}",
            alarm.reason()
        ),
        VoterChange::Outlasted(alarm) => tracing::warn!(
            peer,
            "alarm of another node blocks publishers no more: it has lasted {} s, and a majority of the nodes is \
             well; {}",
            VOTER_ALARM_TIME_MAX.as_secs(),
            alarm.reason()
        ),
        VoterChange::Off => tracing::info!(peer, "alarm of another node off"),
        VoterChange::Away => {
            tracing::info!(peer, "alarm of another node counts no more: the node is not connected");
        }
    }
}

/// Clears the alarm, regardless of memory and disk.
pub(crate) fn clear(node: &Node) {
    {
        let mut known = node.alarms.known.lock();
        (known.memory, known.disk) = (Shortage::Off, Shortage::Off);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_more_frequent_near_a_limit() {
        let ms = |memory, disk| Room { memory, disk }.until_next_check().as_millis();
        assert_eq!(ms(None, None), 250);
        assert_eq!(ms(Some(8_000_000_000), Some(u64::MAX)), 250);
        assert_eq!(ms(Some(100_000_000), Some(u64::MAX)), 100);
        assert_eq!(ms(Some(1000), Some(u64::MAX)), 5);
        assert_eq!(ms(Some(0), Some(u64::MAX)), 250, "the alarm is on");
        assert_eq!(ms(Some(100_000_000), Some(1_000_000)), 5);
        assert_eq!(ms(None, Some(0)), 5);
    }
}
