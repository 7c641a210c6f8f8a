"""A client that is closed while a delivery and an answer wait for the disks of the followers."""

from urllib.parse import quote

from answers import connection_closed
from peer import Peer
from test_cluster import QUEUE, cluster  # noqa: F401 - a fixture

DELAY_MS = 1000


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
    client.send_method(1, "basic.get", queue=QUEUE)
    client.send_method(2, "queue.declare", queue="declared", durable=True)
    client.wait_until_read()
    _, port = client.socket.getsockname()
    [name] = [one["name"] for one in cluster.request(leader, "GET", "/api/connections") if one["peer_port"] == port]
    cluster.request(leader, "DELETE", f"/api/connections/{quote(name, safe='')}")
    assert client.outcome() == connection_closed(320, "Closed via management plugin")
    for node in followers:
        node.rules()
    publisher.publish(1, "", QUEUE, b"m", {"delivery_mode": 2})
    publisher.expect(1, "basic.ack")
    assert cluster.running() == list(cluster.nodes)
