"""What of RabbitMQ's metrics Leveret does not tell, or tells with other labels, and why.

`compare_metrics.py` lists it, `test_metrics.py` holds both brokers to it. A pattern ends with a star.
"""

ERLANG = "about Erlang's virtual machine or a process in it"
NO_RAFT = "about a Raft log for each queue; a cluster has metrics of replicas"
NO_STREAMS = "about streams, which Leveret does not have yet"
ALWAYS_ZERO = "of a storage that RabbitMQ 4 does not have any more: always 0 there"
EXPORTER = "about RabbitMQ's exporter"
UNCOUNTED = "not counted"
BY_DEFAULT_EMPTY = "empty in RabbitMQ, unless management_agent asks for logins by address"

MISSING = {
    "erlang_*": ERLANG,
    "rabbitmq_erlang_gc_reclaimed_bytes_total": ERLANG,
    "rabbitmq_erlang_gc_runs_total": ERLANG,
    "rabbitmq_erlang_net_ticktime_seconds": ERLANG,
    "rabbitmq_erlang_processes_limit": ERLANG,
    "rabbitmq_erlang_processes_used": ERLANG,
    "rabbitmq_erlang_scheduler_context_switches_total": ERLANG,
    "rabbitmq_erlang_scheduler_run_queue": ERLANG,
    "rabbitmq_channel_process_reductions_total": ERLANG,
    "rabbitmq_connection_process_reductions_total": ERLANG,
    "rabbitmq_queue_process_reductions_total": ERLANG,
    "rabbitmq_queue_process_memory_bytes": ERLANG,
    "rabbitmq_stream_consumer_max_offset_lag": NO_STREAMS,
    "rabbitmq_stream_segments": NO_STREAMS,
    "rabbitmq_raft_*": NO_RAFT,
    "rabbitmq_io_reopen_ops_total": ALWAYS_ZERO,
    "rabbitmq_io_seek_*": ALWAYS_ZERO,
    "rabbitmq_msg_store_*": ALWAYS_ZERO,
    "rabbitmq_queue_index_*": ALWAYS_ZERO,
    "rabbitmq_schema_db_*": ALWAYS_ZERO,
    "telemetry_*": EXPORTER,
    "rabbitmq_auth_attempts_detailed_*": BY_DEFAULT_EMPTY,
    "rabbitmq_queue_disk_reads_total": UNCOUNTED,
    "rabbitmq_queue_disk_writes_total": UNCOUNTED,
}

PER_CHANNEL = "counted by channel"

# Where every object has its own series: the labels that Leveret leaves out, those that it adds, and why.
OTHER_LABELS = {
    "rabbitmq_build_info": (
        {"erlang_version", "prometheus_client_version"},
        {"product_name", "product_version", "leveret_version", "durability"}, "there is no Erlang"),
    "rabbitmq_identity_info": ({"rabbitmq_cluster_permanent_id"}, set(), "a cluster is known by its name"),
    **dict.fromkeys(
        (f"rabbitmq_channel_messages_{what}_total"
         for what in ("published", "confirmed", "unroutable_returned", "unroutable_dropped")),
        ({"exchange"}, set(), PER_CHANNEL)),
    **dict.fromkeys(
        ("rabbitmq_channel_get_ack_total", "rabbitmq_channel_get_total", "rabbitmq_channel_get_empty_total",
         "rabbitmq_channel_messages_delivered_ack_total", "rabbitmq_channel_messages_delivered_total",
         "rabbitmq_channel_messages_redelivered_total", "rabbitmq_channel_messages_acked_total"),
        ({"queue"}, set(), PER_CHANNEL)),
    "rabbitmq_exchange_messages_confirmed_total": ({"exchange"}, set(), "counted by vhost"),
    "rabbitmq_queue_messages_published_total": (
        {"channel", "exchange", "exchange_vhost"}, set(), "counted by queue"),
    "rabbitmq_queue_exchange_messages_published_total": ({"queue"}, set(), "counted by exchange"),
}


def plain(name):
    """A family's name without what tells endpoints apart."""
    return name.replace("rabbitmq_detailed_", "rabbitmq_", 1)


def reason_for_missing(name):
    """Why Leveret does not tell a family, or None."""
    name = plain(name)
    starred = (reason for pattern, reason in MISSING.items() if pattern[-1] == "*" and name.startswith(pattern[:-1]))
    return MISSING.get(name) or next(starred, None)
