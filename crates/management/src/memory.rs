//! Memory of the node by use, as far as it is known: waiting messages, bytes for clients, samples, and code.
//!
//! RabbitMQ's other parts are Erlang processes and tables; they are reported as 0.

use server::Node;

/// The parts that RabbitMQ reports: names in the API, and names in metrics.
const PARTS: [(&str, &str); 26] = [
    ("connection_readers", "client_connection_reader"),
    ("connection_writers", "client_connection_writer"),
    ("connection_channels", "client_connection_channel"),
    ("connection_other", "client_connection_other"),
    ("stream_queue_procs", "stream_erlang_process"),
    ("stream_queue_replica_reader_procs", "stream_replica_reader_erlang_process"),
    ("stream_queue_coordinator_procs", "stream_coordinator_erlang_process"),
    ("queue_procs", "classic_queue_erlang_process"),
    ("quorum_queue_procs", "quorum_queue_erlang_process"),
    ("quorum_queue_dlx_procs", "quorum_queue_dlx_erlang_process"),
    ("plugins", "plugin"),
    ("metadata_store", "modern_metadata_store"),
    ("other_proc", "other_erlang_process"),
    ("metrics", "metrics"),
    ("mgmt_db", "management_stats_db"),
    ("quorum_ets", "quorum_queue_ets_table"),
    ("mnesia", "classic_metadata_store"),
    ("metadata_store_ets", "modern_metadata_store_ets_table"),
    ("other_ets", "other_ets_table"),
    ("binary", "binary_heap"),
    ("msg_index", "message_index"),
    ("code", "code_module"),
    ("atom", "atom_table"),
    ("other_system", "other_system"),
    ("allocated_unused", "runtime_allocated_unused"),
    ("reserved_unallocated", "runtime_reserved_unallocated"),
];

/// A use of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Name in the API.
    pub(crate) name: &'static str,
    /// Name in metrics.
    pub(crate) metric: &'static str,
    pub(crate) bytes: u64,
}

/// All parts; their sum is the resident memory of the process.
pub(crate) fn parts(node: &Node) -> [Part; PARTS.len()] {
    let all = node.snapshot().resident_bytes.unwrap_or_default();
    let vhosts = node.vhost_names().into_iter();
    let totals = vhosts.filter_map(|vhost| node.vhost_totals(&vhost, None));
    let messages: u64 = totals.map(|vhost| vhost.resident_bytes).sum();
    let samples = node.history().read(|history| history.bytes());
    let process = node.process();
    let code = process.code_bytes.unwrap_or_default();
    let known = [messages, samples, code, process.unsent_bytes].iter().sum();
    PARTS.map(|(name, metric)| {
        let bytes = match name {
            "binary" => messages,
            "mgmt_db" => samples,
            "code" => code,
            "connection_writers" => process.unsent_bytes,
            "other_system" => all.saturating_sub(known),
            _ => 0,
        };
        Part { name, metric, bytes }
    })
}
