//! `/metrics/memory-breakdown`: what the memory of the process is for, as far as it is known.

use super::scrape::Scrape;
use super::text::{Kind, Namespace, Text};

/// Writes all of it: the parts, and what is left of the process's memory.
pub(super) fn write(text: &mut Text, scrape: &Scrape) {
    let vhosts = || scrape.vhosts.iter();
    let unsent = vhosts().map(|vhost| vhost.traffic.unsent_bytes).sum::<u64>();
    let waiting = vhosts().map(|vhost| vhost.waiting_bytes).sum::<u64>();
    let queues = || vhosts().flat_map(|vhost| &vhost.queues);
    let unacked = queues().map(|queue| queue.unacked.bytes).sum::<u64>();
    let pending = queues().map(|queue| queue.pending.bytes).sum::<u64>();
    let known = unsent + waiting + unacked + pending;
    let other = scrape.node.resident_bytes.unwrap_or_default().saturating_sub(known);
    for (name, help, bytes) in [
        (
            "memory_client_connection_writer_bytes",
            "Bytes that wait for the sockets of clients",
            unsent,
        ),
        (
            "memory_binary_heap_bytes",
            "Messages in queues, ready in memory or unacknowledged",
            waiting + unacked,
        ),
        (
            "memory_quorum_queue_dlx_erlang_process_bytes",
            "Dead messages that at-least-once keeps",
            pending,
        ),
        ("memory_other_system_bytes", "All other memory that the process holds", other),
    ] {
        text.family(Namespace::Plain, name, Kind::Gauge, help).put("", bytes);
    }
}
