"""Nodes that do not hear each other: whose clients end, when, and where they are served then."""

import signal
import threading

import pika
import pytest

from network import Network, between
from nemeses import HOLD
from stopwatch import Stopwatch
from test_lost_disk import in_time
from test_membership import FOUNDERS, is_well
from test_transfers import PERSISTENT

# By the stopwatch. A node holds `connection.open` for 8 s while there is a majority that may elect a leader.
WITHIN_S = 5.0
QUEUE = "lost-contact"
EXCLUSIVE = "lost-contact-exclusive"


@pytest.fixture
def network():
    network = Network()
    yield network
    network.close()


def leader_and_others(cluster):
    in_time(cluster, "a", lambda: is_well(cluster))
    leader = cluster.request("a", "GET", "/api/vhosts/%2F")["leader"].split("@")[0]
    return leader, [name for name in FOUNDERS if name != leader]


class Producer(threading.Thread):
    """A client that returns to the node that it knew once, and then tries the others; it publishes until it is told to end."""

    def __init__(self, cluster, node):
        super().__init__(daemon=True)
        self.cluster, self.node = cluster, node
        self.confirmed, self.refusals = 0, []
        self.ends = threading.Event()
        self.start()

    def run(self):
        while not self.ends.is_set():
            at = FOUNDERS.index(self.node)
            for name in (*FOUNDERS[at:], *FOUNDERS[:at]):
                try:
                    connection = self.cluster.nodes[name].connect()
                except (pika.exceptions.AMQPError, OSError) as refusal:
                    self.refusals.append((name, repr(refusal)))
                    continue
                self.node = name
                break
            else:
                continue
            try:
                channel = connection.channel()
                channel.confirm_delivery()
                channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
                while not self.ends.is_set():
                    channel.basic_publish("", QUEUE, b"message", PERSISTENT)
                    self.confirmed += 1
                connection.close()
            except (pika.exceptions.AMQPError, OSError):
                continue


def test_clients_of_a_leader_that_is_cut_off_are_served_by_the_next_one_at_once(make, network):
    cluster = make(via=network.via)
    leader, others = leader_and_others(cluster)
    producers = [Producer(cluster, name) for name in FOUNDERS]
    in_time(cluster, leader, lambda: all(producer.confirmed > 10 for producer in producers))
    network.rule(between([leader], others, HOLD))
    # What was confirmed before the cut is behind them: a leader that is cut off confirms nothing after half a second.
    cluster.nodes[leader].wait_until(lambda: False, 1.0)
    watch = Stopwatch(*(node.process.pid for node in cluster.nodes.values()))
    before = {producer: producer.confirmed for producer in producers}
    in_time(cluster, others[0], lambda: all(producer.confirmed > before[producer] + 1 for producer in producers))
    assert watch.elapsed_s() < WITHIN_S
    # A client that comes now is told why it has to go elsewhere.
    with pytest.raises(pika.exceptions.AMQPError) as refused:
        cluster.nodes[leader].connect()
    assert "does not hear a majority" in repr(refused.value)
    assert watch.elapsed_s() < WITHIN_S
    in_time(cluster, leader, lambda: "no majority: 1 of 3 nodes are connected" in cluster.nodes[leader].said())
    network.rule({})
    for producer in producers:
        producer.ends.set()
    in_time(cluster, leader, lambda: is_well(cluster))


def test_clients_of_a_node_that_is_cut_off_are_closed_by_it(make, network):
    cluster = make(via=network.via)
    leader, (cut, other) = leader_and_others(cluster)
    connection = cluster.nodes[cut].connect()
    channel = connection.channel()
    channel.queue_declare(QUEUE, durable=True)
    watch = Stopwatch(*(node.process.pid for node in cluster.nodes.values()))
    network.rule(between([cut], [leader, other], HOLD))
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="leader of vhost '/' is lost"):
        while True:
            connection.process_data_events(0.1)
    assert watch.elapsed_s() < WITHIN_S
    in_time(cluster, leader, lambda: cluster.request(leader, "GET", "/api/connections") == [])
    network.rule({})
    in_time(cluster, leader, lambda: is_well(cluster))


@pytest.mark.parametrize("heartbeat_s", [0, 60])
@pytest.mark.parametrize("queue_type", ["quorum", "classic"])
def test_clients_of_a_silent_follower_have_ended_at_the_leader(make, heartbeat_s, queue_type):
    cluster = make()
    leader, (silent, _) = leader_and_others(cluster)
    at_leader = cluster.nodes[leader].connect()
    channel = at_leader.channel()
    channel.confirm_delivery()
    channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": queue_type})
    for body in (b"0", b"1", b"2"):
        channel.basic_publish("", QUEUE, body, PERSISTENT)
    host, port = cluster.nodes[silent].address
    client = pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=heartbeat_s))
    held, consumes = [], client.channel()
    consumes.queue_declare(EXCLUSIVE, exclusive=True)
    consumes.basic_consume(QUEUE, lambda _, method, __, body: held.append(body))
    while len(held) < 3:
        client.process_data_events(0.1)
    node = cluster.nodes[silent]
    node.process.send_signal(signal.SIGSTOP)
    try:
        watch = Stopwatch(cluster.nodes[leader].process.pid)
        got = []
        channel.basic_consume(
            QUEUE, lambda _, method, __, body: got.append((body, method.redelivered)), auto_ack=True)
        while len(got) < 3:
            at_leader.process_data_events(0.1)
        assert got == [(b"0", True), (b"1", True), (b"2", True)]
        # Free, and not of the client any more.
        at_leader.channel().queue_declare(EXCLUSIVE, exclusive=True)
        assert watch.elapsed_s() < WITHIN_S
        ended = "the node that the client has connected to is away"
        in_time(cluster, leader, lambda: ended in cluster.nodes[leader].said())
    finally:
        node.process.send_signal(signal.SIGCONT)
    # Its other life is over as well, although it sends nothing.
    with pytest.raises(pika.exceptions.AMQPError):
        while True:
            client.process_data_events(0.1)
    # It knows the leader again, although what it hears first is older than its loss.
    in_time(cluster, silent, lambda: cluster.request(silent, "GET", "/api/vhosts/%2F")["leader"])
    node.connect().close()
    in_time(cluster, leader, lambda: is_well(cluster))
    at_leader.close()
