"""Shapes of what RabbitMQ's tools print for programs: exit code, stream, and fields of the JSON with their types.

`python support/ctl_shapes.py DIRECTORY NODE` runs RabbitMQ's own tools, which are in that directory, with a node in which
nothing has the name `ctl-shapes`, and writes `recorded/rabbitmq_ctl_shapes.json`. `test_ctl_json.py` holds leveretctl's
output against it, and `cargo xtask compare` runs the same commands with both.
"""

import json
import pathlib
import shlex
import subprocess
import sys

import shapes

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "recorded" / "rabbitmq_ctl_shapes.json"

CTL, DIAGNOSTICS, PLUGINS, QUEUES, UPGRADE = (
    "rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-plugins", "rabbitmq-queues", "rabbitmq-upgrade"
)

NAME = "ctl-shapes"
LOGIN = "rabbit_access_control:check_user_pass_login"

# In this order; each with `--formatter json`. None, one and many, and what is refused.
COMMANDS = [
    (CTL, line) for line in (
        f"set_permissions -p {NAME} guest .* .* .*", f"set_permissions {NAME} .* .* .*",
        f"set_permissions_globally {NAME} .* .* .*", f"set_topic_permissions {NAME} amq.topic ^a .*",
        f"set_topic_permissions -p {NAME} guest amq.topic ^a .*", f"set_user_tags {NAME} a",
        f"change_password {NAME} secret", f"clear_password {NAME}", f"set_vhost_tags {NAME} a",
        f"list_user_permissions {NAME}", f"list_permissions -p {NAME}", f"list_queues -p {NAME}",
        f"list_vhost_limits -p {NAME}", f"set_user_limits {NAME} '{{\"max-channels\": 10}}'", "add_user '' secret",
        f"add_vhost {NAME}", f"add_vhost {NAME}",
        f"add_user {NAME} secret", f"add_user {NAME} secret", f"authenticate_user {NAME} secret",
        f"set_user_tags {NAME} monitoring other", f"list_user_permissions {NAME}",
        f"set_permissions -p {NAME} {NAME} .* .* .*", f"set_topic_permissions -p {NAME} {NAME} amq.topic ^a .*",
        f"list_permissions -p {NAME}", f"list_user_permissions {NAME}", f"list_topic_permissions -p {NAME}",
        f"list_user_topic_permissions {NAME}", "list_users", "list_vhosts",
        "list_vhosts name description tags default_queue_type tracing protected_from_deletion",
        f"list_vhost_limits -p {NAME}", f"set_vhost_limits -p {NAME} '{{\"max-queues\": 10}}'",
        f"list_vhost_limits -p {NAME}", "list_vhost_limits --global",
        f"list_user_limits --user {NAME}", f"set_user_limits {NAME} '{{\"max-channels\": 10}}'",
        f"list_user_limits --user {NAME}", "list_user_limits --global",
        f"list_policies -p {NAME}", f"set_policy -p {NAME} TTL ^q '{{\"message-ttl\":60000}}' --apply-to queues",
        f"list_policies -p {NAME}", f"clear_policy -p {NAME} TTL",
        f"list_queues -p {NAME}", f"list_exchanges -p {NAME}", f"list_bindings -p {NAME}",
        f"list_unresponsive_queues -p {NAME}", f"list_consumers -p {NAME}", f"list_parameters -p {NAME}", "list_global_parameters",
        f"trace_on -p {NAME}", f"trace_off -p {NAME}", f"restart_vhost -p {NAME}",
        f"close_all_connections -p {NAME} bye", f"close_all_user_connections {NAME} bye",
        "hash_password secret", "version", "help list_users", "autocomplete list_u",
        "status", "cluster_status", "ping", "await_startup", "list_node_auth_attempt_stats", "list_feature_flags",
        "list_deprecated_features", "node_health_check", "force_gc", "reconcile_vhosts",
        "has_reached_target_cluster_size",
        f"eval '{LOGIN}(<<\"{NAME}\">>, <<\"secret\">>).'", f"eval '{LOGIN}(<<\"{NAME}\">>, <<\"wrong\">>).'",
        "eval 'rabbit_misc:version().'", f"clear_permissions -p {NAME} {NAME}", f"delete_user {NAME}",
        f"delete_user {NAME}", f"delete_vhost {NAME}", f"delete_vhost {NAME}",
    )
] + [
    (DIAGNOSTICS, line) for line in (
        "alarms", "check_alarms", "check_local_alarms", "check_running", "is_running", "is_booting",
        "check_port_listener 1", "check_protocol_listener amqp", "check_protocol_listener nothing",
        "check_virtual_hosts", "check_certificate_expiration", "check_if_node_is_quorum_critical",
        "check_if_node_is_mirror_sync_critical", "check_if_new_quorum_queue_replicas_have_finished_initial_sync",
        "check_if_metadata_store_is_initialized", "listeners", "memory_breakdown", "server_version", "log_location",
        "os_env", "status",
    )
] + [
    (PLUGINS, line) for line in (
        "list", "list --minimal", "list --verbose", "list nothing", "is_enabled rabbitmq_management",
        "is_enabled nothing", "version",
    )
] + [(QUEUES, "check_if_node_is_quorum_critical"), (QUEUES, "rebalance all"), (UPGRADE, "has_reached_target_cluster_size")]

# What names a node, a variable or a file of one machine, as a field.
NAMES_OF_ITS_OWN = ("variables",)


def shape_of(ran, node):
    """What is compared of a run: `ran` is its exit code and what it wrote to both streams."""
    code, out, err = ran
    text = out if out.strip() else err
    try:
        told = json.loads(text)
    except ValueError:
        return {"code": code, "shape": None}
    return {"code": code, "stream": "stdout" if out.strip() else "stderr", "shape": shapes.shape(_masked(told, node))}


def _masked(told, node):
    if isinstance(told, dict):
        return {name.replace(node, "NODE"): {} if name in NAMES_OF_ITS_OWN else _masked(value, node)
                for name, value in told.items()}
    return [_masked(one, node) for one in told] if isinstance(told, list) else told


def differences(theirs, ours):
    """How a run differs from RabbitMQ's, one line each; more fields are none."""
    if ours["code"] != theirs["code"]:
        return [f"exit code {ours['code']}, not {theirs['code']}"]
    if theirs["shape"] is None:
        return []
    if ours["shape"] is None:
        return ["no JSON"]
    found = [] if ours["stream"] == theirs["stream"] else [f"on {ours['stream']}, not {theirs['stream']}"]
    for path, kind in theirs["shape"].items():
        own = ours["shape"].get(path)
        list_of = path[: path.rindex("[]")] if "[]" in path else None
        if own is None and (list_of is None or list_of + "[]" in ours["shape"]):
            found.append(f"without {path or 'the answer'}")
        elif own is not None and own != kind:
            found.append(f"{path or 'the answer'}: {own}, not {kind}")
    return found


def main(directory, node):
    recorded = []
    for tool, line in COMMANDS:
        words = [f"{directory}/{tool}", "-n", node, *shlex.split(line), "--formatter", "json"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        recorded.append({"tool": tool, "line": line} | shape_of((done.returncode, done.stdout, done.stderr), node))
    RECORDED.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
