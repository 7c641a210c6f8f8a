"""A client that is closed while a delivery and an answer wait for the disks of the followers."""

import contextlib
import urllib.error
from urllib.parse import quote

from answers import connection_closed
from nemeses import HOLD
from network import between
from peer import Peer
from test_cluster import QUEUE, Publisher, cluster  # noqa: F401 - a fixture
from test_lost_contact import leader_and_others, network  # noqa: F401 - a fixture

DELAY_MS = 1000
CLOSED = connection_closed(320, "Closed via management plugin")
LOST = connection_closed(320, "the leader of vhost '/' has changed")


def path_of(nodes, leader, client):
    """The path of a client, by which an administrator closes it."""
    _, port = client.socket.getsockname()
    [name] = [one["name"] for one in nodes.request(leader, "GET", "/api/connections") if one["peer_port"] == port]
    return f"/api/connections/{quote(name, safe='')}"


def test_close_of_a_connection_is_its_last_method(cluster):  # noqa: F811
    """A node ended when the answer to a declaration came behind the `connection.close` of an administrator."""
    leader = cluster.leader
    publisher = Peer(cluster.leading_address()).connect()
    publisher.call(1, "confirm.select")
    publisher.publish(1, "", QUEUE, b"m", {"delivery_mode": 2})
    publisher.expect(1, "basic.ack")
    followers = [node for name, node in cluster.nodes.items() if name != leader]
    for node in followers:
        node.rules(("fsync", 0, 1_000_000, f"delay:{DELAY_MS}", ".log"))
    client = Peer(cluster.leading_address()).connect(channels=(1, 2))
    path = path_of(cluster, leader, client)
    client.send_method(1, "basic.get", queue=QUEUE)
    client.send_method(2, "queue.declare", queue="declared", durable=True)
    client.wait_until_read()
    # On a busy machine the leader may be lost.
    with contextlib.suppress(urllib.error.HTTPError):
        cluster.request(leader, "DELETE", path)
    assert client.outcome() in (CLOSED, LOST)
    for node in followers:
        node.rules()
    Publisher(cluster).publish(1)
    assert cluster.running() == list(cluster.nodes)


def test_client_whose_close_was_held_is_closed_when_its_leader_is_lost(make, network):  # noqa: F811
    """The close was dropped with the delivery before it, and the client waited for ever."""
    nodes = make(via=network.via)
    leader, others = leader_and_others(nodes)
    client = Peer(nodes.nodes[leader].address).connect()
    path = path_of(nodes, leader, client)
    client.call(1, "queue.declare", queue=QUEUE, durable=True, arguments=[("x-queue-type", ("S", b"quorum"))])
    client.call(1, "confirm.select")
    client.publish(1, "", QUEUE, b"m", {"delivery_mode": 2})
    client.expect(1, "basic.ack")
    network.rule(between([leader], others, HOLD))
    client.send_method(1, "basic.get", queue=QUEUE)
    client.wait_until_read()
    # On a busy machine the leader is lost, and has closed the client, before it is asked to.
    with contextlib.suppress(urllib.error.HTTPError):
        nodes.request(leader, "DELETE", path)
    assert client.outcome() == LOST
