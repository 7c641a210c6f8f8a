"""docs/grafana: the dashboard and the alert rules ask for what the broker tells, with the labels that it has."""

import json
import re

import pytest

from documented_metrics import ROOT, documented, documented_of_clusters
from metrics_decisions import reason_for_missing

GRAFANA = ROOT / "docs" / "grafana"
NAME = re.compile(r"\b((?:rabbitmq|process|leveret)_\w+)(?:\{([^}]*)\})?")
LISTS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right) ?\(([^)]*)\)")
OF_PROMETHEUS = {"instance", "job", "le"}
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def strings(value, key):
    """Every text below `key`, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key and isinstance(inner, str):
                yield inner
            yield from strings(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner, key)


def expressions(path):
    if path.suffix == ".json":
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        return [*strings(dashboard, "expr"), *strings(dashboard["templating"], "definition")]
    return re.findall(r"^ +expr: (.+)$", path.read_text(encoding="utf-8"), re.M)


@pytest.fixture(scope="module")
def families():
    """As the document tells them, which is held to what the broker tells."""
    return documented() | documented_of_clusters()


def faults(expression, families):
    """What no answer could be found for."""
    chosen, found = set(OF_PROMETHEUS), []
    lists = [label.strip() for labels in LISTS.findall(expression) for label in labels.split(",") if label.strip()]
    bare = LISTS.sub("", expression)
    for name, selectors in NAME.findall(bare):
        if name in ("rabbitmq_cluster", "rabbitmq_node"):
            continue  # labels
        plain = name.replace("rabbitmq_detailed_", "rabbitmq_", 1)
        family = families.get(plain) or families.get(SUFFIX.sub("", plain))
        if family is None:
            found.append(f"{name} is not told")
            continue
        chosen |= family[1]
        wanted = set(re.findall(r"(\w+) *[=!]~?", selectors))
        found += [f"{name} has no label {label}" for label in wanted - family[1] - OF_PROMETHEUS]
    return found + [f"nothing has the label {label}" for label in lists if label not in chosen]


@pytest.mark.parametrize("name", ["leveret-expiry-and-dead-lettering.json", "leveret-cluster.json", "leveret-alerts.yml"])
def test_queries_use_existing_metrics(families, name):
    asked = expressions(GRAFANA / name)
    assert len(asked) > 9
    assert {one: fault for one in asked if (fault := faults(one, families))} == {}


@pytest.mark.parametrize("name", ["leveret-expiry-and-dead-lettering.json", "leveret-alerts.yml"])
def test_messages_that_are_late_are_asked_for(families, name):
    asked = " ".join(expressions(GRAFANA / name))
    kinds = {family for family in families if family.endswith("_lateness_seconds")}
    # Nobody waits for a queue that goes; the dashboard shows it.
    kinds -= {"rabbitmq_queue_expiry_lateness_seconds"} if name.endswith(".yml") else set()
    assert len(kinds) > 2 and {kind for kind in kinds if f"{kind}_bucket" not in asked} == set()


def test_each_way_to_lose_redundancy_has_an_alert():
    asked = " ".join(expressions(GRAFANA / "leveret-alerts.yml"))
    told = set(documented_of_clusters())
    assert told - {name for name in told if name in asked} == {
        # Amounts that are neither good nor bad, or the part of another alert.
        "leveret_link_rtt_seconds", "leveret_link_down_seconds_total", "leveret_link_sent_bytes_total",
        "leveret_link_received_bytes_total", "leveret_link_dropped_frames_total", "leveret_link_queued_bytes",
        "leveret_replica_term", "leveret_replica_committed_index", "leveret_replica_written_index",
        "leveret_replica_applied_index", "leveret_replica_compacted_index", "leveret_replica_unapplied_bytes",
        "leveret_shipment_bytes_total", "leveret_shipments", "leveret_replica_refused_frames_total", "leveret_record_level",
        "leveret_relayed_connections",
        # The alarm of the node itself has an alert.
        "leveret_peer_alarm_blocks"}


def test_refusals_that_do_not_pass_by_themselves_have_an_alert():
    source = (ROOT / "crates" / "server" / "src" / "cluster" / "refusal.rs").read_text(encoding="utf-8")
    reasons = set(re.findall(r'Self::\w+ => "(\w+)",', source))
    (asked,) = [one for one in expressions(GRAFANA / "leveret-alerts.yml") if "leveret_link_refused_total" in one]
    (asked,) = re.findall(r'reason=~"([^"]+)"', asked)
    # Strangers, a node that starts or is busy, and a disk that has alerts of its own.
    assert reasons - set(asked.split("|")) == {"not_a_link", "malformed", "timeout", "purpose", "not_founded", "busy", "own_file"}
    assert set(asked.split("|")) < reasons


def test_a_query_for_something_else_is_found_out(families):
    assert faults("sum by (nobody) (rabbitmq_nothing)", families) == [
        "rabbitmq_nothing is not told", "nothing has the label nobody"]
    assert faults('leveret_link_up{vhost="x"}', families) == ["leveret_link_up has no label vhost"]
    wrong = 'rate(rabbitmq_queue_messages_dropped_total{reasons="x"}[5m])'
    assert faults(wrong, families) == ["rabbitmq_queue_messages_dropped_total has no label reasons"]


GLOBAL = ("received", "received_confirm", "confirmed", "routed", "unroutable_dropped", "unroutable_returned")
BY_TYPE = (
    "delivered", "delivered_consume_manual_ack", "delivered_consume_auto_ack", "delivered_get_manual_ack",
    "delivered_get_auto_ack", "get_empty", "redelivered", "acknowledged",
)
# What RabbitMQ's own dashboard (10991), its operator's and others' alert rules, and Grafana's mixin ask for.
ASKED_BY_OTHERS = [
    "rabbitmq_queue_messages_ready * on(instance, job) group_left(rabbitmq_cluster, rabbitmq_node, rabbitmq_endpoint) "
    "rabbitmq_identity_info",
    "rabbitmq_build_info * on(instance, job) group_left(rabbitmq_cluster) rabbitmq_identity_info",
    *(f"sum by (protocol) (rate(rabbitmq_global_messages_{what}_total[1m]))" for what in GLOBAL),
    *(f"sum by (protocol, queue_type) (rate(rabbitmq_global_messages_{what}_total[1m]))" for what in BY_TYPE),
    *(f"rabbitmq_{what}_total" for what in (
        "queues_declared", "queues_created", "queues_deleted", "connections_opened", "connections_closed",
        "channels_opened", "channels_closed")),
    *(f"rabbitmq_{what}" for what in (
        "global_publishers", "global_consumers", "connections", "channels", "queues", "consumers",
        "process_resident_memory_bytes", "resident_memory_limit_bytes", "disk_space_available_bytes",
        "disk_space_available_limit_bytes", "process_open_fds", "process_max_fds", "erlang_uptime_seconds",
        "alarms_memory_used_watermark", "alarms_free_disk_space_watermark", "alarms_file_descriptor_limit",
        "process_open_tcp_sockets")),
    "sum by (le) (rate(rabbitmq_message_size_bytes_bucket[1m]))",
    "rabbitmq_message_size_bytes_sum / rabbitmq_message_size_bytes_count",
    *(f"sum by (queue_type, dead_letter_strategy) (rabbitmq_global_messages_dead_lettered_{reason}_total)"
      for reason in ("maxlen", "expired", "rejected", "delivery_limit", "confirmed")),
    *(f"rabbitmq_detailed_queue_{what}{{vhost='/', queue='q'}}" for what in ("messages", "consumers")),
    *(f"rabbitmq_queue_{what}{{vhost='/', queue='q'}}" for what in (
        "messages", "messages_ready", "messages_unacked", "messages_bytes", "messages_ready_bytes",
        "messages_unacked_bytes", "head_message_timestamp", "consumers", "consumer_utilisation", "consumer_capacity",
        "messages_delivered_total", "messages_delivered_ack_total", "messages_redelivered_total",
        "messages_acked_total", "get_total", "get_ack_total", "get_empty_total")),
    "sum by (queue) (rabbitmq_queue_messages_published_total)",
    *(f"sum by (vhost, channel) (rate(rabbitmq_channel_{what}_total[1m]))" for what in (
        "messages_published", "messages_confirmed", "messages_unroutable_dropped", "messages_unroutable_returned",
        "messages_delivered", "messages_delivered_ack", "messages_redelivered", "messages_acked", "get", "get_ack",
        "get_empty")),
    "sum by (channel) (rabbitmq_channel_consumers)",
    "rabbitmq_memory_quorum_queue_dlx_erlang_process_bytes",
]


def test_dashboards_and_rules_of_others_find_what_they_ask_for(families):
    assert {one: fault for one in ASKED_BY_OTHERS if (fault := faults(one, families))} == {}


# What RabbitMQ's other dashboards ask for besides: of Raft logs (11340), of Erlang's distribution (11352) and memory (11350).
OF_RABBITMQ_ALONE = [
    "rabbitmq_raft_term_total", "rabbitmq_raft_log_commit_index", "rabbitmq_raft_log_last_applied_index",
    "rabbitmq_raft_log_last_written_index", "rabbitmq_raft_log_snapshot_index", "rabbitmq_raft_entry_commit_latency_seconds",
    "erlang_vm_dist_node_state", "erlang_vm_dist_node_queue_size_bytes", "erlang_vm_dist_proc_reductions",
    "erlang_vm_allocators", "erlang_vm_memory_bytes_total", "erlang_vm_process_count",
]


def test_metrics_that_no_dashboard_finds_have_a_reason(families):
    for name in OF_RABBITMQ_ALONE:
        assert (name in families, reason_for_missing(name) is None) == (False, False), name
