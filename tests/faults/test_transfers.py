"""Planned changes of the leader of three nodes: nothing confirmed is lost, and only what was delivered comes again marked.
How long clients wait is printed."""

import socket
import threading
import time
import urllib.error

import pika
import pytest

from cluster_processes import GONE, NAMES, Cluster

PERSISTENT = pika.BasicProperties(delivery_mode=2)
WITHIN_S = 120.0
CHANGES = 8
# Two hundred a second are enough for every change to meet some; as many as can be would take the processors from the nodes.
PUBLISH_PERIOD_S = 0.005


@pytest.fixture
def cluster(leveret_bin, tmp_path):
    cluster = Cluster(leveret_bin, tmp_path)
    cluster.start()
    yield cluster
    cluster.stop()


class Load:
    """Publishes numbers with confirms, and consumes and acknowledges them, whichever node leads."""

    def __init__(self, cluster, queue, queue_type):
        self.cluster, self.queue = cluster, queue
        connection = cluster.connect()
        connection.channel().queue_declare(queue, durable=True, arguments={"x-queue-type": queue_type})
        connection.close()
        self.confirmed, self.published, self.found, self.unmarked = set(), 0, set(), []
        self.reasons, self.pauses = set(), [0.0]
        self.ends = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(run,), daemon=True) for run in (self.publish, self.consume)]
        for thread in self.threads:
            thread.start()

    def run(self, client):
        while not self.ends.is_set():
            try:
                connection = self.cluster.connect()
                client(connection)
                connection.close()
            except pika.exceptions.ConnectionClosedByBroker as closed:
                self.reasons.add((closed.reply_code, closed.reply_text))
            except GONE:
                pass

    def publish(self, connection):
        channel = connection.channel()
        channel.confirm_delivery()
        last = self.confirmed_at = getattr(self, "confirmed_at", time.monotonic())
        while not self.ends.is_set():
            self.published += 1
            channel.basic_publish("", self.queue, str(self.published).encode(), PERSISTENT)
            self.confirmed.add(self.published)
            last, before = time.monotonic(), last
            self.pauses.append(last - before)
            self.confirmed_at = last
            self.ends.wait(PUBLISH_PERIOD_S)

    def consume(self, connection):
        channel = connection.channel()
        channel.basic_qos(prefetch_count=20)
        for method, _, body in channel.consume(self.queue, inactivity_timeout=0.2):
            if self.ends.is_set():
                return
            if method is not None:
                self.see(method, body)
                channel.basic_ack(method.delivery_tag)

    def see(self, method, body):
        number = int(body)
        if number in self.found and not method.redelivered:
            self.unmarked.append(number)
        self.found.add(number)

    def check(self):
        """Nothing is lost, and what came again was marked."""
        self.ends.set()
        for thread in self.threads:
            thread.join(WITHIN_S)
            assert not thread.is_alive()
        channel = self.cluster.connect().channel()
        while (got := channel.basic_get(self.queue))[0]:
            self.see(got[0], got[2])
        channel.connection.close()
        assert self.confirmed <= self.found, self.confirmed - self.found
        assert self.found <= set(range(1, self.published + 1))
        assert not self.unmarked


def leads(cluster, name):
    leader = cluster.request(name, "GET", "/api/vhosts/%2F")["leader"]
    return leader and leader.split("@")[0]


def other(name):
    return next(one for one in NAMES if one != name)


@pytest.mark.parametrize("queue_type", ("quorum", "classic"))
def test_transfer_under_load(cluster, queue_type):
    load = Load(cluster, "load", queue_type)
    for _ in range(CHANGES):
        before = len(load.confirmed)
        assert cluster.nodes["a"].wait_until(lambda: len(load.confirmed) > before + 50, WITHIN_S)
        to = other(leads(cluster, cluster.leader))
        assert cluster.nodes["a"].wait_until(lambda: transferred(cluster, to), WITHIN_S)
    load.check()
    assert load.reasons <= {(320, "CONNECTION_FORCED - the leader of vhost '/' has changed")}
    print(f"longest pause {max(load.pauses) * 1000:.0f} ms, {len(load.confirmed)} confirmed")


def transferred(cluster, to):
    """True once the lead is at that node; a replica that is being opened anew cannot take it yet."""
    cluster.leader = leads(cluster, to) or cluster.leader
    try:
        return cluster.leader == to or cluster.transfer(to) == to
    except urllib.error.HTTPError as refused:
        assert refused.code == 503, refused.read()
        return False


@pytest.mark.parametrize("queue_type", ("quorum", "classic"))
def test_stop_of_the_leader_under_load(cluster, queue_type):
    load = Load(cluster, "load", queue_type)
    for _ in range(3):
        before = len(load.confirmed)
        assert cluster.nodes["a"].wait_until(lambda: len(load.confirmed) > before + 50, WITHIN_S)
        leader = leads(cluster, cluster.leader)
        cluster.nodes[leader].stop()
        assert "the lead of the vhost is transferred" in cluster.nodes[leader].said()
        cluster.start()
    load.check()
    print(f"longest pause {max(load.pauses) * 1000:.0f} ms, {len(load.confirmed)} confirmed")


def test_only_delivered_messages_of_a_classic_queue_are_marked(cluster):
    channel = cluster.connect().channel()
    channel.queue_declare("marks", durable=True)
    channel.confirm_delivery()
    for number in range(10):
        channel.basic_publish("", "marks", str(number).encode(), PERSISTENT)
    for _ in range(3):
        channel.basic_get("marks")
    before = cluster.leader
    # Any node passes the request on to the leader.
    cluster.leader = other(before)
    cluster.transfer_when_possible(other(before), WITHIN_S)
    assert cluster.leader != before
    channel = cluster.connect().channel()
    got = [channel.basic_get("marks") for _ in range(10)]
    assert [(method.redelivered, int(body)) for method, _, body in got] == [(n < 3, n) for n in range(10)]
    channel.connection.close()


def test_transfer_is_refused_with_a_reason(cluster):
    leader = cluster.leader
    follower = other(leader)
    for name, body, expected in (
            (leader, {"node": "nobody"}, "node 'nobody' is not one of the cluster"),
            (follower, {"node": 7}, "node must be the name of a node")):
        with pytest.raises(urllib.error.HTTPError) as refused:
            cluster.request(name, "POST", "/api/vhosts/%2F/leader", body)
        assert expected in refused.value.read().decode()
    cluster.nodes[follower].kill()
    assert cluster.nodes[leader].wait_until(lambda: is_refused(cluster, leader, follower), WITHIN_S)
    assert leads(cluster, leader) == leader


def is_refused(cluster, leader, to):
    try:
        cluster.request(leader, "POST", "/api/vhosts/%2F/leader", {"node": f"{to}@127.0.0.1"})
    except urllib.error.HTTPError as refused:
        return "no such node has a replica that can lead" in refused.read().decode()
    raise AssertionError("a node that is gone leads")


def test_drained_node_leads_nothing(cluster):
    leader = cluster.leader
    action = f"/api/nodes/{leader}@127.0.0.1/actions"
    cluster.request(leader, "POST", action, {"action": "drain"})
    with pytest.raises(GONE):
        cluster.nodes[leader].connect()
    assert leads(cluster, other(leader)) != leader
    assert cluster.request(leader, "GET", f"/api/nodes/{leader}@127.0.0.1")["being_drained"] is True
    cluster.request(leader, "POST", action, {"action": "revive"})
    assert cluster.nodes[leader].wait_until(lambda: accepts(cluster.nodes[leader]), WITHIN_S)
    assert cluster.request(leader, "GET", f"/api/nodes/{leader}@127.0.0.1")["being_drained"] is False


def accepts(node):
    """True if the node accepts sockets of clients; another one may lead."""
    try:
        socket.create_connection(node.address, timeout=1).close()
    except OSError:
        return False
    return True
