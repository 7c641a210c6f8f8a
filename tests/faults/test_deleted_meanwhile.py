"""A vhost that is deleted while one of its replicas is being rebuilt."""

import pika

from test_lost_disk import in_time
from test_membership import FOUNDERS, is_well
from test_transfers import PERSISTENT

MESSAGES, BYTES = 100, 100_000


def states(cluster, vhost):
    """The states of the replicas of a vhost, as every node tells them."""
    return sorted(
        replica["state"] for name in FOUNDERS for replica in cluster.request(name, "GET", "/api/replicas")
        if replica["vhost"] == vhost)


def test_vhost_that_is_deleted_while_it_is_rebuilt_leaves_no_replica(make):
    cluster = make("raft.shipment_bandwidth = 1MiB\n")
    in_time(cluster, "a", lambda: is_well(cluster))
    cluster.request("a", "PUT", "/api/vhosts/v", {"replicas": 1})
    in_time(cluster, "a", lambda: cluster.request("a", "GET", "/api/vhosts/v").get("leader"))
    leader = cluster.nodes[cluster.request("a", "GET", "/api/vhosts/v")["leader"].split("@")[0]]
    connection = pika.BlockingConnection(pika.ConnectionParameters(*leader.address, "v"))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    for _ in range(MESSAGES):
        channel.basic_publish("", "q", bytes(BYTES), PERSISTENT)
    connection.close()
    cluster.request("a", "PUT", "/api/vhosts/v", {"replicas": 3})
    in_time(cluster, "a", lambda: "quarantined" in states(cluster, "v"))
    cluster.request("a", "DELETE", "/api/vhosts/v")
    in_time(cluster, "a", lambda: states(cluster, "v") == [])
