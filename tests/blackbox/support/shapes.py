"""Shapes of JSON: which fields an answer has, and of which types.

`python support/shapes.py URL` asks a RabbitMQ at that address of its HTTP API and writes `rabbitmq_shapes.json`, which
`test_management_shapes.py` holds Leveret's answers against.
"""

import json
import pathlib
import sys
import time

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "recorded" / "rabbitmq_shapes.json"

# What only Erlang, RabbitMQ's store, Raft or its plugins have, as beginnings of names.
FOREIGN = (
    "garbage_collection", "reductions", "gc_", "io_", "mnesia_", "msg_store_", "queue_index_", "context_switches",
    "proc_", "run_queue", "net_ticktime", "ra_open_file_metrics", "metrics_gc_queue_length", "cached_segments",
    "pending_raft_commands", "erlang_", "crypto_lib_version", "disk_reads", "disk_writes", "socket_opts",
    "cowboy_opts", "storage_version", "open_files", "cluster_state",
)

GATHERED_AFTER_S = 11.0  # two of RabbitMQ's intervals


def shape(value, name=""):
    """The types by path: `a.b` for fields, `a[]` for what is in lists. Numbers are of one type."""
    if isinstance(value, dict):
        found = {name: "object"}
        for field, inner in value.items():
            found |= shape(inner, f"{name}.{field}" if name else field)
        return found
    if isinstance(value, list):
        found = {name: "list"}
        for inner in value:
            found |= shape(inner, name + "[]")
        return found
    types = {str: "text", bool: "bool", int: "number", float: "number", type(None): "null"}
    return {name: types[type(value)]}


def is_foreign(path):
    """Whether a path leads to, or through, what Leveret cannot have."""
    return any(part.startswith(FOREIGN) for part in path.replace("[]", "").split("."))


def main(url):
    sys.path.append(str(RECORDED.parents[1] / "management"))
    import brokers
    import client
    from test_management_shapes import Scene

    api = brokers.Api(url)
    [amqp] = [one["port"] for one in api.do("GET", "/api/overview")["listeners"] if one["protocol"] == "amqp"]
    broker = brokers.RabbitMq(f"127.0.0.1:{amqp}", url)
    scene = Scene(client.Client(broker, "bb-shapes-"))
    try:
        time.sleep(GATHERED_AFTER_S)
        shapes = {name: scene.shape_of(name, bool) for name in scene.paths}
    finally:
        scene.client.clean_up()
    shapes = {name: {path: kind for path, kind in of.items() if not is_foreign(path)} for name, of in shapes.items()}
    RECORDED.write_text(json.dumps(shapes, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
