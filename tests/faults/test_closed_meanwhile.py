"""A client that is closed while a delivery and an answer wait for the disks of a majority."""

from urllib.parse import quote

from peer import Peer
from test_cluster import QUEUE, cluster  # noqa: F401 - a fixture

DELAY_MS = 700
ROUNDS = 3


def test_nothing_follows_the_close_of_a_connection(cluster):  # noqa: F811
    """A node ended when the answer to a declaration came behind the `connection.close` of an administrator."""
    leader = cluster.leader
    for node in cluster.nodes.values():
        node.rules(("fsync", 0, 1_000_000, f"delay:{DELAY_MS}", ".log"))
    publisher = Peer(cluster.leading_address()).connect()
    publisher.call(1, "confirm.select")
    for number in range(ROUNDS):
        publisher.publish(1, "", QUEUE, b"m", {"delivery_mode": 2})
        publisher.expect(1, "basic.ack")
        client = Peer(cluster.leading_address()).connect(channels=(1, 2))
        client.send_method(1, "basic.get", queue=QUEUE)
        client.send_method(2, "queue.declare", queue=f"declared-{number}", durable=True)
        client.wait_until_read()
        _, port = client.socket.getsockname()
        [name] = [one["name"] for one in cluster.request(leader, "GET", "/api/connections") if one["peer_port"] == port]
        cluster.request(leader, "DELETE", f"/api/connections/{quote(name, safe='')}")
        client.read_until_drop()
    assert cluster.running() == list(cluster.nodes)
    for node in cluster.nodes.values():
        node.rules()
    publisher.publish(1, "", QUEUE, b"m", {"delivery_mode": 2})
    publisher.expect(1, "basic.ack")
