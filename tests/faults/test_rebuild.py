"""A replica that is gone, damaged or far behind is rebuilt from the files of its leader, and holds the same in the end."""

import re
import shutil

import pika
import pytest

from cluster_processes import NAMES

QUEUE = "q"
PERSISTENT = pika.BasicProperties(delivery_mode=2)
WITHIN_S = 120.0
MESSAGES, BYTES = 200, 2000
# Long enough for many files of the log, of 64 MiB each, without what is consumed at once.
FILL_BYTES = 1_000_000
SLOW = "raft.shipment_bandwidth = 4MiB\n"


def other(name):
    return next(one for one in NAMES if one != name)


class Published:
    """Numbers in a queue: those that were confirmed are there at the end."""

    def __init__(self, cluster):
        self.cluster, self.last, self.unanswered = cluster, 0, set()
        channel = cluster.connect().channel()
        channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
        channel.connection.close()

    def channel(self):
        channel = self.cluster.connect().channel()
        channel.confirm_delivery()
        return channel

    def publish(self, count=MESSAGES, size=BYTES):
        channel = self.channel()
        for _ in range(count):
            self.last += 1
            body = str(self.last).encode().ljust(size)
            try:
                channel.basic_publish("", QUEUE, body, PERSISTENT)
            except pika.exceptions.ConnectionClosedByBroker:
                # Nodes of a busy machine may elect another leader, when one of three is down.
                self.unanswered.add(self.last)
                channel = self.channel()
                channel.basic_publish("", QUEUE, body, PERSISTENT)
        channel.connection.close()

    def churn(self, count, size=FILL_BYTES):
        """Messages that are on disk before they are consumed."""
        channel = self.cluster.connect().channel()
        channel.queue_declare("churn", durable=True, arguments={"x-queue-type": "quorum"})
        channel.confirm_delivery()
        for _ in range(count):
            try:
                channel.basic_publish("", "churn", b"x" * size, PERSISTENT)
                channel.basic_get("churn", auto_ack=True)
            except pika.exceptions.ConnectionClosedByBroker:
                # As in `publish`.
                channel = self.channel()
        channel.connection.close()

    def check(self):
        channel = self.cluster.connect().channel()
        found = []
        while (got := channel.basic_get(QUEUE, auto_ack=True))[0]:
            found.append(int(got[2]))
        channel.connection.close()
        assert list(dict.fromkeys(found)) == list(range(1, self.last + 1))
        assert {number for number in found if found.count(number) > 1} <= self.unanswered


def vhost_directory(node):
    """The directory of the vhost with the most octets, which is that of the test."""
    found = [path for path in (node.data / "vhosts").iterdir() if path.name.isdigit()]
    return max(found, key=lambda path: sum(file.stat().st_size for file in path.iterdir()))


def follows(cluster, name):
    """True if a node follows the vhost under any incarnation."""
    metrics = cluster.text(name, "/metrics")
    return 'leveret_replica_state{vhost="/",state="follower"} 1' in metrics


def has_acknowledged_all(cluster, name):
    """True if the leader of the vhost, whichever it is, knows that a node has all that is in its log."""
    lags = [one["lags"].get(cluster.full_names[name]) for one in cluster.request(name, "GET", "/api/replicas") if one["vhost"] == "/"]
    return 0 in lags


def rebuilt(cluster, name):
    assert cluster.nodes[name].wait_until(lambda: "the replica is rebuilt" in cluster.nodes[name].said(), WITHIN_S), \
        cluster.nodes[name].said()[-3000:]
    assert cluster.nodes[name].wait_until(lambda: follows(cluster, name), WITHIN_S)


def votes(cluster, name):
    """A rebuilt replica votes again: with another node down, the vhost is served."""
    leader = cluster.leader
    said = "a rebuilt member votes from now on"
    assert cluster.nodes[leader].wait_until(lambda: said in cluster.nodes[leader].said(), WITHIN_S)
    third = next(one for one in NAMES if one not in (leader, name))
    cluster.nodes[third].kill()


@pytest.mark.parametrize("harm", ("directory", "files", "raft"))
def test_lost_replica_is_rebuilt(make, harm):
    cluster = make()
    published = Published(cluster)
    published.publish()
    follower = other(cluster.leader)
    node = cluster.nodes[follower]
    node.stop()
    directory = vhost_directory(node)
    if harm == "directory":
        shutil.rmtree(directory)
    elif harm == "files":
        for file in directory.iterdir():
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    else:
        (directory / "raft").unlink()
    published.publish()
    cluster.start()
    rebuilt(cluster, follower)
    votes(cluster, follower)
    published.publish()
    cluster.start()
    cluster.transfer_when_possible(follower, WITHIN_S)
    published.check()


@pytest.mark.parametrize("octet", (100_000, 512 * 1024, 750_000))
def test_rotten_log_is_rebuilt(make, octet):
    """Whether the octet is met where the records are read, or where the newest entries are."""
    cluster = make()
    published = Published(cluster)
    published.publish(400)
    follower = other(cluster.leader)
    node = cluster.nodes[follower]
    node.stop()
    directory = vhost_directory(node)
    # Beside it may be one that was made ahead and is empty.
    log = max(directory.glob("*.log"), key=lambda file: len(file.read_bytes().rstrip(b"\0")))
    octets = bytearray(log.read_bytes())
    assert any(octets[octet:octet + 100]), "there is nothing"
    octets[octet] ^= 0x55
    log.write_bytes(octets)
    published.publish()
    cluster.start()
    rebuilt(cluster, follower)
    assert directory.with_name(directory.name + ".damaged-1").is_dir()
    votes(cluster, follower)
    published.publish()
    cluster.start()
    cluster.transfer_when_possible(follower, WITHIN_S)
    published.check()


def leave_far_behind(cluster, published):
    """Stops a follower until its leader has no entries for it any more. Returns the names of both."""
    published.publish()
    follower = other(cluster.leader)
    cluster.nodes[follower].stop()
    published.churn(300)
    published.publish()
    leader = cluster.leader
    compacted = re.compile(r'leveret_replica_compacted_index\{vhost="/"\} (\d+)')
    assert cluster.nodes[leader].wait_until(
        lambda: is_compacted(cluster, published, leader, compacted), WITHIN_S)
    return follower, leader


def test_node_that_is_far_behind_gets_files(make):
    cluster = make("raft.log_retention = 0\n")
    published = Published(cluster)
    follower, _ = leave_far_behind(cluster, published)
    cluster.start()
    rebuilt(cluster, follower)
    assert not list(vhost_directory(cluster.nodes[follower]).parent.glob("*.damaged-*"))
    cluster.transfer_when_possible(follower, WITHIN_S)
    published.check()


def test_majority_of_a_leader_and_a_node_that_is_far_behind(make):
    """The leader commits nothing of its term before the other node has got files, and the files hold what is committed."""
    cluster = make("raft.log_retention = 0\n")
    published = Published(cluster)
    behind, leader = leave_far_behind(cluster, published)
    third = next(one for one in NAMES if one not in (leader, behind))
    cluster.nodes[third].kill()
    cluster.nodes[leader].kill()
    cluster.nodes[leader].start()
    cluster.nodes[behind].start()
    rebuilt(cluster, behind)
    published.publish()
    published.check()


def is_compacted(cluster, published, leader, pattern):
    found = pattern.search(cluster.text(leader, "/metrics"))
    if found and int(found[1]) > 300:
        return True
    published.churn(5)
    return False


def partly_rebuilt(make):
    """A cluster with what was published, its leader, and a follower that has got a part of the files that it lost."""
    cluster = make(SLOW)
    published = Published(cluster)
    published.publish(60, FILL_BYTES)
    leader, follower = cluster.leader, other(cluster.leader)
    node = cluster.nodes[follower]
    node.stop()
    shutil.rmtree(vhost_directory(node))
    node.start()
    assert node.wait_until(lambda: received(cluster, follower) > 8_000_000, WITHIN_S)
    return cluster, published, leader, follower


@pytest.mark.parametrize("killed", ("leader", "receiver"))
def test_kill_in_the_middle_of_a_shipment(make, killed):
    cluster, published, leader, follower = partly_rebuilt(make)
    cluster.nodes[leader if killed == "leader" else follower].kill()
    cluster.start()
    published.publish()
    rebuilt(cluster, follower)
    cluster.transfer_when_possible(follower, WITHIN_S)
    published.check()


def test_replica_on_its_way_is_not_online_and_tells_how_much_of_it_is_there(make):
    cluster, published, leader, follower = partly_rebuilt(make)
    replicas = {one["node"].split("@")[0]: one for one in cluster.request(leader, "GET", "/api/replicas") if one["vhost"] == "/"}
    rebuild = replicas[follower]["rebuild"]
    assert 0 < rebuild["received_bytes"] < rebuild["total_bytes"] and rebuild["total_bytes"] > 60 * FILL_BYTES
    assert replicas[leader]["rebuild"] is None
    queue = cluster.request(leader, "GET", f"/api/queues/%2F/{QUEUE}")
    assert queue["state"] == "running" and len(queue["members"]) == 3
    assert sorted(one.split("@")[0] for one in queue["online"]) == sorted(set(NAMES) - {follower})
    rebuilt(cluster, follower)
    assert cluster.nodes[follower].wait_until(
        lambda: len(cluster.request(leader, "GET", f"/api/queues/%2F/{QUEUE}")["online"]) == 3, WITHIN_S)


def received(cluster, name):
    try:
        metrics = cluster.text(name, "/metrics")
    except OSError:
        return 0
    found = re.search(r'leveret_shipment_bytes_total\{direction="received"\} (\d+)', metrics)
    return int(found[1]) if found else 0


def elections(cluster, names):
    """How often nodes have begun to lead, each since its start."""
    return sum(cluster.nodes[name].said().count('this node leads the vhost vhost="/"') for name in names)


def with_older_disk(cluster, published, old, count, size):
    """Node b, which is behind what it has acknowledged, if its leader has noticed: another one, on a busy machine, does not
    know what the member has acknowledged, and sends it again."""
    cluster.transfer_when_possible("a", WITHIN_S)
    node = cluster.nodes["b"]
    published.publish(count, size)
    node.kill()
    shutil.copytree(node.data, old)
    cluster.start()
    assert node.wait_until(lambda: follows(cluster, "b"), WITHIN_S), node.said()[-3000:]
    before = elections(cluster, "ac")
    published.publish()
    # Confirmed is what two nodes have, perhaps without this one.
    assert node.wait_until(lambda: has_acknowledged_all(cluster, "b"), WITHIN_S), node.said()[-3000:]
    node.kill()
    shutil.rmtree(node.data)
    shutil.copytree(old, node.data)
    cluster.start()
    found = "the log lacks entries that this member has acknowledged"
    assert node.wait_until(lambda: found in node.said() or elections(cluster, NAMES) > before, WITHIN_S), node.said()[-3000:]
    return node if found in node.said() else None


def test_older_copy_of_a_disk_is_noticed_by_the_leader(make, tmp_path):
    cluster = make("")
    published = Published(cluster)
    if node := with_older_disk(cluster, published, tmp_path / "old", MESSAGES, BYTES):
        assert node.wait_until(lambda: "the replica is rebuilt" in node.said(), WITHIN_S), node.said()[-3000:]
    published.check()


def test_quarantine_outlives_its_process(make, tmp_path):
    """The process ends before the replica is rebuilt: none votes with it later."""
    cluster = make(SLOW)
    published = Published(cluster)
    if node := with_older_disk(cluster, published, tmp_path / "old", 60, FILL_BYTES):
        node.kill()
        cluster.start()
        assert node.wait_until(lambda: "the member was quarantined" in node.said(), WITHIN_S), node.said()[-3000:]
        rebuilt(cluster, "b")
    published.check()
