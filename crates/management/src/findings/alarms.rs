//! Alarms as sentences.

use broker::words;
use server::snapshot::cluster::PeerSnapshot;
use server::snapshot::node::NodeSnapshot;

/// The memory alarm as a sentence; none while it is off.
pub(crate) fn memory_alarm(node: &NodeSnapshot) -> Option<String> {
    let (used, limit) = (node.resident_bytes?, node.memory_watermark_bytes?);
    node.memory_alarm.then(|| memory_sentence("", limit, used))
}

/// The disk alarm as a sentence; none while it is off.
pub(crate) fn disk_alarm(node: &NodeSnapshot) -> Option<String> {
    let (limit, free) = (node.disk_free_limit_bytes, node.disk_free_bytes);
    node.disk_alarm.then(|| disk_sentence("", limit, free))
}

/// The memory alarm of another node as a sentence; none while it blocks no publishers on this one.
pub(crate) fn memory_alarm_of(peer: &PeerSnapshot) -> Option<String> {
    let facts = peer.facts.as_ref()?;
    let (used, limit) = (facts.memory_bytes?, facts.memory_watermark_bytes?);
    peer.memory_alarm_blocks.then(|| memory_sentence(&of_node(peer), limit, used))
}

/// The disk alarm of another node as a sentence; none while it blocks no publishers on this one.
pub(crate) fn disk_alarm_of(peer: &PeerSnapshot) -> Option<String> {
    let facts = peer.facts.as_ref()?;
    let (limit, free) = (facts.disk_free_limit_bytes, facts.disk_free_bytes);
    peer.disk_alarm_blocks.then(|| disk_sentence(&of_node(peer), limit, free))
}

fn of_node(peer: &PeerSnapshot) -> String {
    format!(" of node '{}'", peer.name)
}

fn memory_sentence(of: &str, limit: u64, used: u64) -> String {
    let (limit, used) = (words::bytes(limit), words::bytes(used));
    format!("Publishers are blocked: memory alarm{of}, {limit} limit, {used} used.")
}

fn disk_sentence(of: &str, limit: u64, free: Option<u64>) -> String {
    let free = free.map_or_else(|| "unknown".to_owned(), words::bytes);
    format!("Publishers are blocked: disk alarm{of}, {} limit, {free} free.", words::bytes(limit))
}
