"""Nodes that join a cluster and are forgotten, by RabbitMQ's commands as its documentation has them."""

import json

import pika
import pytest

from patience import eventually
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

A, B, C, D = (f"{letter}@127.0.0.1" for letter in "abcd")


def listed(ctl):
    """The nodes that a node lists, and those of them that run."""
    status = json.loads("".join(ctl.do("--formatter", "json", "--quiet", "cluster_status")))
    return sorted(status["disk_nodes"]), sorted(status["running_nodes"])


def has_replicas(node, count):
    """Every vhost, and the metadata, have a replica on so many nodes."""
    replicas = node.api.do("GET", "/api/replicas")
    leaders = [replica for replica in replicas if replica["state"] == "leader"]
    return len(leaders) == 2 and all(len(replica["voters"]) == count for replica in leaders)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_node_joins_and_another_one_is_forgotten(run_cluster, pytestconfig, tmp_path, is_stopped):
    cluster = run_cluster()
    node = cluster.start_alone(D)
    ctl = {name: tools(cluster.nodes[name], pytestconfig, tmp_path) for name in (A, D)}
    node.api.do("PUT", "/api/queues/%2F/own", {"durable": True})
    seed = f"{A}:{cluster.ports[A]}"
    refused = ctl[D].run("join_cluster", seed)
    assert refused.code == 69 and "content of its own (vhost '/' has" in refused.err, refused
    assert ctl[D].run("forget_cluster_node", A).code == 69

    ctl[D].do("stop_app")
    ctl[D].do("reset")
    if not is_stopped:
        ctl[D].do("start_app")
    assert ctl[D].do("join_cluster", seed) == [f"Clustering node {D} with {seed}"]
    if is_stopped:
        ctl[D].do("start_app")
    eventually(lambda: listed(ctl[A]) == ([A, B, C, D],) * 2)
    eventually(lambda: listed(ctl[D]) == ([A, B, C, D],) * 2)
    eventually(lambda: has_replicas(cluster.nodes[A], 4))
    again = ctl[D].run("join_cluster", seed)
    assert again.code == 69 and "belongs to a cluster already" in again.err, again

    channel = pika.BlockingConnection(pika.ConnectionParameters(*node.amqp)).channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    channel.basic_publish("", "q", b"m", pika.BasicProperties(delivery_mode=2))
    channel.connection.close()

    up = ctl[A].run("forget_cluster_node", C)
    assert up.code == 69 and "the node is up: stop it first" in up.err, up
    cluster.nodes[C].stop()
    eventually(lambda: C not in listed(ctl[D])[1])
    assert ctl[D].do("forget_cluster_node", C) == [f"Removing node {C} from the cluster"]
    eventually(lambda: listed(ctl[A]) == ([A, B, D],) * 2)
    unknown = ctl[D].run("forget_cluster_node", C)
    assert unknown.code == 69 and "The node selected is not in the cluster" in unknown.err, unknown
    eventually(lambda: has_replicas(cluster.nodes[A], 3))
    # What three of the four nodes had, any two of the three have now.
    cluster.nodes[A].stop()
    connection = eventually(lambda: connected(cluster.nodes[D]))
    assert connection.channel().basic_get("q", auto_ack=True)[2] == b"m"
    connection.close()


@pytest.mark.parametrize("is_stopped", [True, False])
def test_node_goes_on_without_the_others(run_cluster, pytestconfig, tmp_path, is_stopped):
    cluster = run_cluster()
    ctl = tools(cluster.nodes[A], pytestconfig, tmp_path)
    eventually(lambda: has_replicas(cluster.nodes[A], 3))
    refused = ctl.run("force_standalone_khepri_boot")
    assert refused.code == 69 and "the cluster has a majority" in refused.err, refused
    for name in (B, C):
        cluster.nodes[name].stop()
    if is_stopped:
        ctl.do("stop_app")
    said = f"Forcing node {A} to go on without the other nodes ...\n"
    ran = eventually(lambda: (ran := ctl.run("force_standalone_khepri_boot")).code == 0 and ran)
    assert ran.out == said
    if is_stopped:
        ctl.do("start_app")
    eventually(lambda: listed(ctl) == ([A],) * 2)
    eventually(lambda: connected(cluster.nodes[A])).close()
    # Once more changes nothing: the node leads its cluster.
    assert ctl.run("force_standalone_khepri_boot").code == 69


def test_vhost_is_on_as_many_nodes_as_commands_say(run_cluster, pytestconfig, tmp_path):
    cluster = run_cluster()
    ctl = tools(cluster.nodes[A], pytestconfig, tmp_path)
    # Not before all nodes are there.
    eventually(lambda: ctl.run("add_vhost", "v", "--replicas", "1").code == 0)
    placed = lambda: json.loads("".join(ctl.do("--formatter", "json", "--quiet", "list_vhosts", "name", "replicas", "members")))
    of_v = lambda: next(vhost for vhost in placed() if vhost["name"] == "v")
    assert of_v()["replicas"] == 1 and len(of_v()["members"]) == 1
    ctl.do("update_vhost_metadata", "v", "--description", "kept")
    assert of_v()["replicas"] == 1
    ctl.do("update_vhost_metadata", "v", "--replicas", "all")
    assert of_v()["members"] == [A, B, C] and of_v()["replicas"] in (None, "")
    for wrong in ("0", "8", "many"):
        refused = ctl.run("update_vhost_metadata", "v", "--replicas", wrong)
        assert refused.code == 65 and f"Replicas must be all, or a number from 1 to 7. Provided: {wrong}" in refused.err, refused


def connected(node):
    try:
        return pika.BlockingConnection(pika.ConnectionParameters(*node.amqp))
    except pika.exceptions.AMQPError:
        return None


def test_level_of_record_kinds_rises_by_command(run_cluster, pytestconfig, tmp_path):
    cluster = run_cluster(**{"cluster.auto_level": "false"})
    ctl = {name: tools(cluster.nodes[name], pytestconfig, tmp_path) for name in (A, B)}
    status = lambda name: json.loads("".join(ctl[name].do("--formatter", "json", "--quiet", "cluster_status")))
    assert status(A)["cluster_record_level"] == 1
    ctl[A].do("enable_feature_flag", "quorum_queue")
    assert status(A)["cluster_record_level"] == 1
    newest = cluster.nodes[A].api.do("GET", f"/api/nodes/{A}")["record_level"]
    eventually(lambda: ctl[B].run("enable_feature_flag", "all").code == 0)
    for name in (A, B):
        eventually(lambda name=name: status(name)["cluster_record_level"] == newest)
    assert f"Level of record kinds: {newest}" in ctl[A].do("cluster_status")
    cluster.nodes[C].kill()
    # Nothing is left to raise.
    eventually(lambda: ctl[A].run("enable_feature_flag", "all").code == 0)
