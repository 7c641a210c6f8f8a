"""A node that goes on without the others: after the majority is lost for good, or from a backup."""

import shutil
import urllib.error

import pytest

from test_lost_disk import all_is_replicated, contents, fill, in_time, lose_disk, start
from test_membership import is_well, nodes_of
from test_transfers import PERSISTENT, Load

MESSAGES = 500


def stand_alone(cluster, name):
    """Asks a node to go on without the others; the status, and the reason if it refuses."""
    at = f"/api/nodes/{cluster.full_names[name]}/actions"
    try:
        cluster.request(name, "POST", at, {"action": "stand_alone"})
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    return 204, ""


def goes_on_alone(cluster, name):
    in_time(cluster, name, lambda: stand_alone(cluster, name)[0] == 204)
    node = cluster.nodes[name]
    in_time(cluster, name, lambda: node.is_listening(after="this node goes on alone"))
    in_time(cluster, name, lambda: nodes_of(cluster, name) == [name])


def publish(cluster, name, queue, first, count=MESSAGES):
    connection = cluster.nodes[name].connect()
    channel = connection.channel()
    channel.confirm_delivery()
    for number in range(first, first + count):
        channel.basic_publish("", queue, str(number).encode(), PERSISTENT, mandatory=True)
    connection.close()


def take_all(cluster, name, queue):
    connection = cluster.nodes[name].connect()
    channel, found = connection.channel(), []
    while (got := channel.basic_get(queue, auto_ack=True))[0]:
        found.append(int(got[2]))
    connection.close()
    return found


def declare(cluster):
    connection = cluster.connect()
    connection.channel().queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    connection.close()


def test_last_node_goes_on_alone_and_others_join_it(make):
    cluster = make()
    fill(cluster)
    declare(cluster)
    publish(cluster, "a", "q", 0)
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    before = contents(cluster, "a")
    code, reason = stand_alone(cluster, "a")
    assert code == 409 and "the cluster has a majority" in reason and "forget_cluster_node" in reason
    for name in ("b", "c"):
        lose_disk(cluster, name)
    goes_on_alone(cluster, "a")
    assert contents(cluster, "a") == before
    publish(cluster, "a", "q", MESSAGES)
    # It is a cluster of one node from now on.
    cluster.nodes["a"].kill()
    start(cluster, "a")
    assert nodes_of(cluster, "a") == ["a"]
    publish(cluster, "a", "q", 2 * MESSAGES)
    cluster.request("a", "PUT", "/api/vhosts/later", {})
    before[0] = sorted([*before[0], "later"])
    for name in ("b", "c"):
        start(cluster, name)
    in_time(cluster, "a", lambda: is_well(cluster, 3))
    for name in cluster.nodes:
        in_time(cluster, name, lambda name=name: contents(cluster, name) == before)
    cluster.nodes["a"].kill()
    in_time(cluster, "b", lambda: take_all(cluster, "b", "q") == list(range(3 * MESSAGES)))


def test_nodes_that_come_back_are_another_cluster_until_they_are_reset(make):
    cluster = make()
    declare(cluster)
    publish(cluster, "a", "q", 0)
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    for name in ("b", "c"):
        cluster.nodes[name].kill()
    goes_on_alone(cluster, "a")
    publish(cluster, "a", "q", 1_000_000)
    # With a majority of the old cluster.
    for name in ("b", "c"):
        start(cluster, name)
    in_time(cluster, "b", lambda: "b" in nodes_of(cluster, "b"))
    in_time(cluster, "b", lambda: publish(cluster, "b", "q", 2_000_000) is None)
    assert nodes_of(cluster, "a") == ["a"]
    # Both first: a node that is to join asks all others, and must find one cluster only.
    for name in ("b", "c"):
        lose_disk(cluster, name)
    for name in ("b", "c"):
        start(cluster, name)
    in_time(cluster, "a", lambda: is_well(cluster, 3))
    first, later = range(MESSAGES), range(1_000_000, 1_000_000 + MESSAGES)
    assert take_all(cluster, "c", "q") == [*first, *later]


def test_node_without_a_replica_refuses(make):
    cluster = make()
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    for name in ("b", "c"):
        cluster.nodes[name].kill()
    cluster.nodes["a"].kill()
    shutil.move(cluster.nodes["a"].data / "vhosts/1", cluster.folder / "kept")
    start(cluster, "a")
    in_time(cluster, "a", lambda: stand_alone(cluster, "a")[0] == 409)
    assert "no usable replica of vhost '/'" in stand_alone(cluster, "a")[1]
    # Neither is there a backup, nor a trace of it.
    cluster.request("a", "POST", "/api/backup", {"directory": str(cluster.folder / "backup")})
    in_time(cluster, "a", lambda: cluster.request("a", "GET", "/api/backup")["ended_ms"] is not None)
    assert cluster.request("a", "GET", "/api/backup")["state"] == "failed"
    assert not (cluster.folder / "backup").exists()
    # Nothing is changed.
    for name in ("b", "c"):
        start(cluster, name)
    in_time(cluster, "a", lambda: all_is_replicated(cluster))


def test_vhost_that_a_crash_left_unlisted_goes_on(make):
    cluster = make()
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    listing = cluster.nodes["a"].data / "node.json"
    before = listing.read_bytes()
    for name in ("orders", "mail"):
        cluster.request("a", "PUT", f"/api/vhosts/{name}", {})
        cluster.request("a", "PUT", f"/api/queues/{name}/q", {"durable": True})
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    for node in cluster.nodes.values():
        node.kill()
    # As after a crash before the vhosts were listed; of one, not even the directory was made.
    listing.write_bytes(before)
    for path in (cluster.nodes["a"].data / "vhosts").iterdir():
        if path.name == "3":
            shutil.rmtree(path)
    start(cluster, "a")
    goes_on_alone(cluster, "a")
    leads = lambda name: cluster.request("a", "GET", f"/api/vhosts/{name}").get("leader")
    in_time(cluster, "a", lambda: all(leads(name) for name in ("%2F", "orders", "mail")))
    assert [queue["vhost"] for queue in cluster.request("a", "GET", "/api/queues")] == ["orders"]


def backed_up(cluster, name, directory):
    cluster.request(name, "POST", "/api/backup", {"directory": str(directory)})
    in_time(cluster, name, lambda: cluster.request(name, "GET", "/api/backup")["ended_ms"] is not None)
    job = cluster.request(name, "GET", "/api/backup")
    assert job["state"] == "finished", job
    return job


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_backup_of_any_node_becomes_a_cluster(make, tmp_path, name):
    cluster = make()
    fill(cluster)
    load = Load(cluster, "quorum", "quorum")
    declare(cluster)
    publish(cluster, "a", "q", 0)
    in_time(cluster, "a", lambda: len(load.confirmed) > 100)
    in_time(cluster, name, lambda: all_is_replicated(cluster))
    before = contents(cluster, name)
    job = backed_up(cluster, name, tmp_path / "backup")
    assert job["vhosts_total"] == 3, job
    published = len(load.confirmed)
    in_time(cluster, name, lambda: len(load.confirmed) > published + 50)
    load.check()
    for node in cluster.nodes.values():
        node.kill()
    # All disks are lost. The node whose backup there is starts from it, the others with nothing.
    for other in cluster.nodes.values():
        shutil.rmtree(other.data)
    shutil.move(tmp_path / "backup", cluster.nodes[name].data)
    start(cluster, name)
    in_time(cluster, name, lambda: nodes_of(cluster, name) == [name])
    in_time(cluster, name, lambda: contents(cluster, name) == before)
    for other in cluster.nodes:
        if other != name:
            start(cluster, other)
    in_time(cluster, name, lambda: is_well(cluster, 3))
    assert take_all(cluster, name, "q") == list(range(MESSAGES))


def test_backup_ends_although_the_leader_is_killed(make, tmp_path):
    cluster = make()
    fill(cluster)
    declare(cluster)
    publish(cluster, "a", "q", 0)
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    leader = cluster.request("a", "GET", "/api/vhosts/%2F")["leader"].split("@")[0]
    follower = next(name for name in cluster.nodes if name != leader)
    cluster.request(follower, "POST", "/api/backup", {"directory": str(tmp_path / "backup")})
    cluster.nodes[leader].kill()
    in_time(cluster, follower, lambda: cluster.request(follower, "GET", "/api/backup")["ended_ms"] is not None)
    assert cluster.request(follower, "GET", "/api/backup")["state"] == "finished"

