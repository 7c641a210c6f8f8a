"""The disk of one node of three stalls, fails, fills up or rots: the other two go on, and nothing confirmed is lost."""

import re
import shutil
import urllib.request

import pika
import pytest

import disk
from cluster_processes import Cluster
from test_rebuild import Published, leave_far_behind, rebuilt

QUEUE = "q"
# Far longer than a node waits for its disk, 3 s, and than the others need to elect a leader.
STALL_S = 10.0
WITHIN_S = 120.0
# More than a file of the log holds.
FILL_MESSAGES, FILL_BYTES = 1000, 100_000


class FaultyNode(disk.FaultyBroker):
    """A node that obeys its rules from its start."""

    def __init__(self, binary, folder, config, library):
        super().__init__(binary, folder, library, config)
        self.rules()

    def launch(self, environment=None, **options):
        super().launch({**self.environment, **(environment or {})}, **options)

    def metrics(self):
        request = urllib.request.Request(f"http://{self.http_address}/metrics")
        request.add_header("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
        return urllib.request.urlopen(request, timeout=60).read().decode()


@pytest.fixture
def cluster(request, leveret_bin, library, tmp_path):
    """Three nodes with faulty disks; a parameter is more lines of their configuration."""
    def make(binary, folder, config):
        return FaultyNode(binary, folder, config, library)

    cluster = Cluster(leveret_bin, tmp_path, getattr(request, "param", ""), make)
    cluster.start()
    connection = cluster.connect()
    connection.channel().queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
    connection.close()
    yield cluster
    cluster.stop()


class Publisher:
    """Publishes numbers, and knows the confirmed ones."""

    def __init__(self, cluster):
        self.cluster, self.last, self.confirmed = cluster, 0, set()
        self.connect()

    def connect(self):
        self.connection = self.cluster.connect()
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()

    def publish(self, count, size=0):
        """Publish, and wait for each confirm."""
        for _ in range(count):
            self.last += 1
            body = str(self.last).encode().ljust(size)
            self.channel.basic_publish("", QUEUE, body, pika.BasicProperties(delivery_mode=2))
            self.confirmed.add(self.last)

    def check(self):
        """Every confirmed message is there."""
        self.connect()
        found = set()
        while (got := self.channel.basic_get(QUEUE, auto_ack=True))[0]:
            found.add(int(got[2]))
        self.connection.close()
        assert self.confirmed <= found <= set(range(1, self.last + 1)), self.confirmed - found


def harmed(cluster):
    """The node that leads, to be harmed."""
    return cluster.leader, cluster.nodes[cluster.leader]


def go_on_without(cluster, publisher, name):
    """Another node serves clients."""
    cluster.leader = next(other for other in cluster.nodes if other != name)
    publisher.connect()
    assert cluster.leader != name
    publisher.publish(20)


def test_stalled_disk(cluster):
    publisher = Publisher(cluster)
    publisher.publish(20)
    name, node = harmed(cluster)
    node.rules(("fsync", 0, 1, f"delay:{round(STALL_S * 1000)}", ".log"))
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        publisher.publish(1)
    assert closed.value.reply_code == 320
    assert closed.value.reply_text.endswith("the disk of the node that led vhost '/' does not answer")
    assert "the disk answers again" not in node.said(), "the client had to wait for the disk"
    go_on_without(cluster, publisher, name)
    assert "the disk does not answer; this node gives up the lead of its vhosts" in node.said()
    assert node.wait_until(lambda: "the disk answers again" in node.said(), WITHIN_S)
    assert int(re.search(r"\nleveret_replica_disk_stalls_total (\d+)\n", node.metrics())[1]) > 0
    follows = 'leveret_replica_state{vhost="/",state="follower"} 1'
    assert node.wait_until(lambda: follows in node.metrics(), WITHIN_S)
    publisher.publish(20)
    publisher.check()


def test_failing_disk(cluster):
    publisher = Publisher(cluster)
    publisher.publish(20)
    name, node = harmed(cluster)
    node.rules(("fsync", 0, 1_000_000, "EIO", ".log"))
    with pytest.raises(pika.exceptions.AMQPError):
        publisher.publish(1)
    assert node.end() == 74
    assert "the log cannot be written, so that nothing more can be confirmed" in node.said()
    go_on_without(cluster, publisher, name)
    node.rules()
    cluster.start()
    publisher.publish(20)
    publisher.check()


def test_backup_of_a_follower_that_lags_has_all_that_was_confirmed(cluster, tmp_path):
    publisher = Publisher(cluster)
    publisher.publish(20)
    name = next(name for name in cluster.nodes if name != cluster.leader)
    node = cluster.nodes[name]
    node.rules(("fsync", 0, 1_000_000, "delay:400", ".log"))
    publisher.publish(20)
    cluster.request(name, "POST", "/api/backup", {"directory": str(tmp_path / "backup")})
    has_ended = lambda: cluster.request(name, "GET", "/api/backup")["ended_ms"] is not None
    assert node.wait_until(has_ended, WITHIN_S)
    assert cluster.request(name, "GET", "/api/backup")["state"] == "finished"
    for other in cluster.nodes.values():
        other.kill()
    shutil.rmtree(node.data)
    shutil.move(tmp_path / "backup", node.data)
    node.rules()
    node.launch()
    assert node.wait_until(node.is_listening, WITHIN_S), node.said()[-3000:]
    assert node.wait_until(lambda: cluster.request(name, "GET", "/api/vhosts/%2F").get("leader"), WITHIN_S)
    cluster.leader = name
    publisher.check()


@pytest.mark.parametrize("cluster", ["raft.log_retention = 0\n"], indirect=True, ids=["short-log"])
def test_replica_that_is_behind_goes_on_after_files_that_could_not_be_installed(cluster):
    published = Published(cluster)
    follower, _ = leave_far_behind(cluster, published)
    node = cluster.nodes[follower]
    node.rules(("fsync", 0, 1, "EIO", ".incoming/raft"))
    cluster.start()
    assert node.wait_until(lambda: "the replica is not rebuilt yet" in node.said(), WITHIN_S), node.said()[-3000:]
    rebuilt(cluster, follower)
    cluster.transfer_when_possible(follower, WITHIN_S)
    published.check()


def test_full_disk(cluster):
    publisher = Publisher(cluster)
    publisher.publish(20)
    name, node = harmed(cluster)
    node.rules(("open", 0, 1_000_000, "ENOSPC", ".log"))
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        for _ in range(FILL_MESSAGES):
            publisher.publish(1, FILL_BYTES)
    assert closed.value.reply_code == 320
    assert closed.value.reply_text.endswith("the disk of the node that led vhost '/' is full")
    assert node.wait_until(lambda: "the disk is full, and so is the reserve" in node.said(), WITHIN_S)
    go_on_without(cluster, publisher, name)
    node.rules()
    assert node.wait_until(lambda: "the disk has room again" in node.said(), WITHIN_S)
    publisher.publish(20)
    publisher.check()


def test_rotten_disk(cluster):
    publisher = Publisher(cluster)
    publisher.publish(50)
    name = next(other for other in cluster.nodes if other != cluster.leader)
    node = cluster.nodes[name]
    assert node.stop() == 0
    log = max(node.data.glob("vhosts/1/*.log"))
    octets = bytearray(log.read_bytes())
    used = len(octets.rstrip(b"\0"))
    octets[used // 2] ^= 1
    log.write_bytes(octets)
    cluster.start()
    said = "the replica of this node must be rebuilt and takes no part in the vhost"
    assert node.wait_until(lambda: said in node.said(), WITHIN_S)
    assert node.wait_until(lambda: "the replica is rebuilt" in node.said(), WITHIN_S)
    assert node.wait_until(
        lambda: 'leveret_replica_state{vhost="/",state="follower"} 1' in node.metrics(), WITHIN_S)
    publisher.publish(20)
    publisher.check()
