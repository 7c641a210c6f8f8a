"""Alarms in a cluster: that of any node blocks the publishers of every vhost, whichever node they are connected to."""

import time

import pytest

from brokers import quoted
from patience import Patience, eventually
from test_alarms import DISK, EVERYTHING, MEMORY
from test_ctl import tools
from test_relay import connect, placed

pytestmark = [pytest.mark.better]

# A change is told at once, not with the next facts, which nodes tell every 5 seconds: so many changes, one after the other,
# would take three times as long. One round in time is enough, as nothing makes a round quicker than it is.
CHANGES, AT_ONCE_S, ROUNDS = 4, 5.0, 5

#: Per resource: the endpoint, a body that sets the alarm, one that clears it, and the field of the node.
RESOURCES = {
    "memory": (MEMORY, {"absolute": 1}, {"relative": 1}, "mem_alarm"),
    "disk": (DISK, {"absolute": EVERYTHING}, {"absolute": 0}, "disk_free_alarm"),
}


def put(cluster, name, limit, body):
    answer = cluster.nodes[name].api.ask(f"/api/nodes/{quoted(name)}/{limit}", method="PUT", body=body)
    assert answer.status == 204, answer.text


class Publisher:
    """A client that publishes through a node, and what it is told."""

    def __init__(self, cluster, name):
        self.name, self.told = name, []
        self.connection = connect(cluster.nodes[name])
        self.connection.add_on_connection_blocked_callback(lambda _, frame: self.told.append(frame.method.reason))
        self.connection.add_on_connection_unblocked_callback(lambda _, frame: self.told.append(None))
        self.channel = self.connection.channel()

    def publish(self, body):
        self.channel.basic_publish("", "q", f"{body} by {self.name}".encode())

    def publish_until_told(self, said):
        """Publish until the client has been told exactly this: before the alarm is known, a publish passes."""
        patience = Patience()
        while self.told != said:
            assert not patience.is_over(), (self.name, self.told, said)
            self.publish("x")
            self.connection.process_data_events(0.01)

    def await_told(self, said):
        """Wait until the client has been told exactly this."""
        patience = Patience()
        while self.told != said:
            assert not patience.is_over(), (self.name, self.told, said)
            self.connection.process_data_events(0.05)


def publishers(cluster):
    """A publisher through each node, to a new queue q."""
    all_ = [Publisher(cluster, name) for name in cluster.names]
    all_[0].channel.queue_declare("q", durable=True)
    return all_


def count(publisher):
    return publisher.channel.queue_declare("q", durable=True, passive=True).method.message_count


@pytest.mark.parametrize("resource", RESOURCES)
def test_alarm_of_a_follower_blocks_publishers_through_every_node(run_cluster, resource):
    limit, on, off, field = RESOURCES[resource]
    cluster = run_cluster()
    leader, (short, other) = placed(cluster)
    nodes, clients = cluster.nodes, publishers(cluster)
    watcher = Publisher(cluster, leader)

    put(cluster, short, limit, on)
    for node in nodes.values():
        shows = eventually(lambda node=node: next(
            (one for one in node.api.do("GET", "/api/nodes") if one["name"] == short and one.get(field)), None))
        assert shows["running"] is True
        alarmed = {one["name"] for one in node.api.do("GET", "/api/nodes") if one.get(field)}
        assert alarmed == {short}, "other nodes are not short themselves"
    for client in clients:
        client.publish("first")
        client.await_told([f"low on {resource}"])
        client.publish("second")
    time.sleep(0.3)
    assert count(watcher) == 0, "clients that are blocked are not read"
    assert watcher.told == [], "who does not publish is not blocked"

    for name, node in nodes.items():
        failed = node.api.ask("/api/health/checks/alarms")
        assert (failed.status, failed.json["alarms"]) == (503, [{"node": short, "resource": resource}])
        assert node.api.ask("/api/health/checks/local-alarms").status == (503 if name == short else 200)
        published = node.api.ask("/api/exchanges/%2F/amq.default/publish", method="POST", body={
            "routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {}})
        assert published.status == 503
    (told,) = nodes[leader].api.do("GET", "/api/health/alarms")["alarms"]
    assert (told["node"], told["resource"]) == (short, resource) and f"{resource} alarm of node '{short}'" in told["text"]
    metrics = nodes[leader].api.ask("/metrics").text.decode()
    assert f'leveret_peer_alarm_blocks{{peer="{short}"}} 1' in metrics
    assert f'leveret_peer_alarm_blocks{{peer="{other}"}} 0' in metrics
    assert "\nrabbitmq_alarms_memory_used_watermark 0\n" in metrics
    line = f"alarm of another node on: publishers are blocked, low on {resource}"
    eventually(lambda: line in cluster.log(leader))
    assert short in next(log for log in cluster.log(leader).splitlines() if line in log)

    put(cluster, short, limit, off)
    for client in clients:
        client.await_told([f"low on {resource}", None])
    eventually(lambda: count(watcher) == 2 * len(clients))
    for node in nodes.values():
        eventually(lambda node=node: node.api.ask("/api/health/checks/alarms").status == 200)
    eventually(lambda: "alarm of another node off" in cluster.log(leader))


def test_alarm_of_the_leader_reaches_clients_of_other_nodes(run_cluster):
    limit, on, off, _ = RESOURCES["disk"]
    cluster = run_cluster()
    leader, followers = placed(cluster)
    clients = publishers(cluster)
    put(cluster, leader, limit, on)
    for client in clients:
        client.publish_until_told(["low on disk"])
    # A node with room leads: the alarm holds there, too.
    assert cluster.nodes[leader].api.request("POST", "/api/vhosts/%2F/leader", {"node": followers[0]})[0] in (200, 204)
    eventually(lambda: placed(cluster)[0] == followers[0])
    late = Publisher(cluster, followers[1])
    late.publish_until_told(["low on disk"])
    put(cluster, leader, limit, off)
    late.await_told(["low on disk", None])
    eventually(lambda: count(late) >= 1)


def test_change_of_an_alarm_is_told_at_once(run_cluster):
    limit, on, off, _ = RESOURCES["memory"]
    cluster = run_cluster()
    leader, (short, _) = placed(cluster)
    client = publishers(cluster)[0]
    rounds_s = []
    while not rounds_s or min(rounds_s) >= AT_ONCE_S:
        assert len(rounds_s) < ROUNDS, rounds_s
        began = time.monotonic()
        for _ in range(CHANGES // 2):
            put(cluster, short, limit, on)
            client.publish_until_told(["low on memory"])
            put(cluster, short, limit, off)
            client.await_told(["low on memory", None])
            client.told.clear()
        rounds_s.append(time.monotonic() - began)


def test_alarms_of_several_nodes_are_one_reason(run_cluster):
    cluster = run_cluster()
    leader, (one, other) = placed(cluster)
    put(cluster, one, MEMORY, RESOURCES["memory"][1])
    put(cluster, other, DISK, RESOURCES["disk"][1])
    eventually(lambda: len(cluster.nodes[leader].api.ask("/api/health/checks/alarms").json.get("alarms", [])) == 2)
    client = publishers(cluster)[0]
    client.publish("x")
    client.await_told(["low on memory & disk"])
    put(cluster, one, MEMORY, RESOURCES["memory"][2])
    time.sleep(0.5)
    client.await_told(["low on memory & disk"])
    put(cluster, other, DISK, RESOURCES["disk"][2])
    client.await_told(["low on memory & disk", None])


def test_node_that_is_lost_has_no_alarm(run_cluster):
    limit, on, _, _ = RESOURCES["memory"]
    cluster = run_cluster()
    leader, (short, _) = placed(cluster)
    client = Publisher(cluster, leader)
    client.channel.queue_declare("q", durable=True)
    put(cluster, short, limit, on)
    eventually(lambda: cluster.nodes[leader].api.ask("/api/health/checks/alarms").status == 503)
    client.publish("x")
    client.await_told(["low on memory"])
    cluster.nodes[short].kill()
    client.await_told(["low on memory", None])
    eventually(lambda: count(client) == 1)
    assert cluster.nodes[leader].api.ask("/api/health/checks/alarms").status == 200


@pytest.mark.tools
def test_tools_tell_local_alarms_and_those_of_all_nodes(run_cluster, pytestconfig, tmp_path):
    limit, on, _, _ = RESOURCES["disk"]
    cluster = run_cluster()
    leader, (short, _) = placed(cluster)
    put(cluster, short, limit, on)
    eventually(lambda: cluster.nodes[leader].api.ask("/api/health/checks/alarms").status == 503)
    text = f"Free disk space alarm on node {short}"
    for name, codes in ((leader, (69, 0)), (short, (69, 69))):
        ctl = tools(cluster.nodes[name], pytestconfig, tmp_path)
        for command, code in zip(("check_alarms", "check_local_alarms"), codes):
            ran = ctl.run(command, tool="rabbitmq-diagnostics")
            assert (ran.code, text in ran.err) == (code, code == 69), (name, command, ran)
