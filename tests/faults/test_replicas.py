"""Vhosts that are on some nodes of a cluster: under load, with kills, with nodes that come and go, from any node."""

import http.client
import shutil
import threading
import time
import urllib.error

import pika
import pytest

from cluster_processes import NAMES
from stopwatch import Stopwatch
from test_lost_disk import WITHIN_S, contents, in_time, lose_disk, start
from test_membership import forget
from test_stand_alone import backed_up, goes_on_alone
from test_transfers import PERSISTENT, Load

FIVE = (*NAMES, "d", "e")
PAUSE_S = 1.0
# By the stopwatch; far less than a node holds a client of a vhost without a leader.
SERVED_S = 5.0


def vhost(cluster, asked, name="%2F"):
    return cluster.request(asked, "GET", f"/api/vhosts/{name}")


def letters(names):
    return sorted(name.split("@")[0] for name in names)


def members(cluster, asked, name="%2F"):
    return letters(vhost(cluster, asked, name)["members"])


def set_replicas(cluster, asked, count, name="%2F"):
    """Sets the number once all nodes are there: only then can it be set."""
    in_time(cluster, asked, lambda: changes(cluster, count, name))


def voters(cluster, name="/"):
    """The nodes that vote in a vhost, as its leader says; none without a leader."""
    told = [replica for replica in cluster.request(cluster.running()[0], "GET", "/api/replicas")
            if replica["vhost"] == name and replica["state"] == "leader"]
    return letters(told[0]["voters"]) if len(told) == 1 else []


def has_settled(cluster, name="%2F"):
    """Its members vote, and no other node has a replica."""
    asked = cluster.running()[0]
    wanted = members(cluster, asked, name)
    real = name.replace("%2F", "/")
    have = [replica["node"] for replica in cluster.request(asked, "GET", "/api/replicas") if replica["vhost"] == real]
    return wanted == voters(cluster, real) == letters(have)


def in_vhost(cluster, node, name):
    """A connection of pika through one node."""
    host, port = cluster.nodes[node].address
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, name, heartbeat=0))


def test_vhost_is_on_as_many_nodes_as_it_should_be_and_served_by_all(make):
    cluster = make()
    set_replicas(cluster, "b", 1, "one")
    set_replicas(cluster, "b", 2, "two")
    for name, count in (("one", 1), ("two", 2)):
        in_time(cluster, "a", lambda name=name: has_settled(cluster, name))
        on = members(cluster, "a", name)
        assert len(on) == count and vhost(cluster, "a", name)["replicas"] == count
        assert all(members(cluster, node, name) == on for node in NAMES)
        for node in NAMES:
            with in_vhost(cluster, node, name) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                channel.queue_declare(node, durable=True)
                channel.basic_publish("", node, b"one", PERSISTENT)
                method, _, body = channel.basic_get(node)
                assert body == b"one" and method.message_count == 0
            listed = [queue["name"] for queue in cluster.request(node, "GET", f"/api/queues/{name}")]
            assert node in listed
    # Both choices differ, because nodes with fewer replicas come first.
    assert not set(members(cluster, "a", "one")) & set(members(cluster, "a", "two"))
    for refused in (0, 8, "x"):
        with pytest.raises(urllib.error.HTTPError) as error:
            cluster.request("a", "PUT", "/api/vhosts/one", {"replicas": refused})
        assert error.value.code == 400 and "from 1 to 7" in error.value.read().decode()
    # Everything is there after all nodes have ended at once, and a node without a replica serves again.
    before = contents(cluster, "a")
    for name in NAMES:
        cluster.nodes[name].kill()
    cluster.start()
    for name in ("one", "two"):
        in_time(cluster, "a", lambda name=name: has_settled(cluster, name))
        for node in NAMES:
            in_time(cluster, node, lambda node=node, name=name: vhost(cluster, node, name)["leader"])
            with in_vhost(cluster, node, name) as connection:
                assert connection.channel().queue_declare(node, passive=True).method.message_count == 1
    assert contents(cluster, "a") == before
    assert cluster.errors() == []


@pytest.mark.parametrize("queue_type", ("quorum", "classic"))
def test_number_of_replicas_changes_under_load(make, queue_type):
    cluster = make()
    load = Load(cluster, "load", queue_type)
    for count in (1, 2, 3, 1, 3, None):
        before = len(load.confirmed)
        set_replicas(cluster, "b", count)
        in_time(cluster, "a", lambda: has_settled(cluster))
        assert len(members(cluster, "c")) == (count or 3)
        in_time(cluster, "a", lambda before=before: len(load.confirmed) > before + 50)
    load.check()
    # No member has been another one before: two of the nodes came back twice.
    said = "".join(node.said() for node in cluster.nodes.values())
    assert "#513" in said and "#529" in said
    assert [line for line in cluster.errors() if "has lost" in line] == []


def test_number_of_replicas_changes_before_members_have_left(make):
    cluster = make()
    load = Load(cluster, "load", "quorum")
    for _ in range(5):
        for count in (3, 1, 2):
            set_replicas(cluster, "a", count)
        in_time(cluster, "a", lambda: has_settled(cluster))
        assert len(members(cluster, "a")) == 2
    load.check()


def test_members_of_nodes_that_are_chosen_again_before_they_have_left_are_still_theirs(make):
    cluster = make()
    load = Load(cluster, "load", "quorum")
    in_time(cluster, "a", lambda: len(load.confirmed) > 50)
    # The second change comes before the first one has removed a member.
    for count in (1, 3):
        set_replicas(cluster, "a", count)
    in_time(cluster, "a", lambda: has_settled(cluster))
    for node in cluster.nodes.values():
        node.kill()
    for node in cluster.nodes.values():
        node.launch()
    for node in cluster.nodes.values():
        assert node.wait_until(node.is_listening, WITHIN_S)
    before = len(load.confirmed)
    in_time(cluster, "a", lambda: has_settled(cluster) and len(load.confirmed) > before + 50)
    load.check()
    assert not [line for line in cluster.errors() if "must be rebuilt" in line]


def test_replicas_move_faster_than_their_members_while_nodes_restart(make, rng):
    cluster = make()
    load = Load(cluster, "load", "quorum")
    for _ in range(5):
        for _ in range(rng.randint(1, 5)):
            set_replicas(cluster, rng.choice(NAMES), rng.choice([1, 2, 3]))
            cluster.nodes["a"].wait_until(lambda: False, rng.choice([0, 0, rng.random() * 0.3]))
        killed = rng.choice([NAMES, [rng.choice(NAMES)], []])
        for name in killed:
            cluster.nodes[name].kill()
        for name in killed:
            cluster.nodes[name].launch()
        for name in killed:
            in_time(cluster, name, cluster.nodes[name].is_listening)
        in_time(cluster, "a", lambda: has_settled(cluster))
    load.check()
    assert not [line for line in cluster.errors() if "differs" in line or "has lost" in line]


def test_nodes_are_killed_while_replicas_move(make, rng):
    cluster = make()
    load = Load(cluster, "load", "quorum")
    for _ in range(8):
        count = rng.choice([1, 2, 3])
        set_replicas(cluster, "a", count)
        cluster.nodes["a"].wait_until(lambda: False, rng.random() * PAUSE_S)
        killed = rng.choice(NAMES)
        cluster.nodes[killed].kill()
        start(cluster, killed)
        in_time(cluster, killed, lambda: has_settled(cluster))
    load.check()
    assert not [line for line in cluster.errors() if "differs" in line or "has lost" in line]


def next_running(cluster):
    """One node after the other, of those that run."""
    running = cluster.running()
    cluster.asked = getattr(cluster, "asked", 0) + 1
    return running[cluster.asked % len(running)]


def changes(cluster, count, name="%2F"):
    """True if the number is set; false if no node leads the metadata now, or the level is too low."""
    try:
        cluster.request(next_running(cluster), "PUT", f"/api/vhosts/{name}", {"replicas": count})
    except urllib.error.HTTPError as refused:
        assert refused.code == 503, refused.read()
        return False
    except OSError:
        return False
    return True


def test_node_that_is_forgotten_is_replaced_and_one_that_joins_takes_a_place(make):
    cluster = make(names=FIVE)
    set_replicas(cluster, "a", 3)
    in_time(cluster, "a", lambda: has_settled(cluster))
    load = Load(cluster, "load", "quorum")
    on = members(cluster, "a")
    assert len(on) == 3
    # A node of the vhost goes: another one has its replica then.
    gone = next(name for name in on if name != cluster.leader)
    rest = next(name for name in FIVE if name != gone)
    cluster.nodes[gone].stop()
    in_time(cluster, rest, lambda: forget(cluster, gone, rest)[0] == 204)
    cluster.remove(gone)
    in_time(cluster, rest, lambda: has_settled(cluster))
    assert len(members(cluster, rest)) == 3 and gone not in members(cluster, rest)
    # Its leader fails: another one of the three leads.
    leader = cluster.leader
    before = len(load.confirmed)
    cluster.nodes[leader].kill()
    other = next(name for name in cluster.nodes if name != leader)
    in_time(cluster, other, lambda: len(load.confirmed) > before + 50)
    start(cluster, leader)
    in_time(cluster, leader, lambda: has_settled(cluster))
    # More replicas than there are nodes: a node that joins has one.
    set_replicas(cluster, leader, 5)
    in_time(cluster, leader, lambda: has_settled(cluster))
    assert len(members(cluster, leader)) == 4
    cluster.add("f")
    start(cluster, "f")
    in_time(cluster, "f", lambda: has_settled(cluster) and "f" in members(cluster, "f"))
    load.check()


def test_files_of_a_replica_go_with_it(make):
    cluster = make()
    set_replicas(cluster, "a", None, "v")
    in_time(cluster, "a", lambda: has_settled(cluster, "v"))
    with in_vhost(cluster, "a", "v") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q", durable=True)
        for _ in range(100):
            channel.basic_publish("", "q", bytes(10_000), PERSISTENT)
    sizes = [size(cluster, node) for node in NAMES]
    assert min(sizes) > 1_000_000
    set_replicas(cluster, "a", 1, "v")
    in_time(cluster, "a", lambda: has_settled(cluster, "v"))
    [left] = members(cluster, "a", "v")
    for node in NAMES:
        in_time(cluster, node, lambda node=node: (size(cluster, node) > 1_000_000) == (node == left))
        with in_vhost(cluster, node, "v") as connection:
            assert connection.channel().queue_declare("q", passive=True).method.message_count == 100
    set_replicas(cluster, "a", 3, "v")
    in_time(cluster, "a", lambda: has_settled(cluster, "v"))
    assert min(size(cluster, node) for node in NAMES) > 1_000_000


def newest(cluster, node):
    """The directory of the newest vhost on a node."""
    return max((cluster.nodes[node].data / "vhosts").glob("[0-9]"), key=lambda path: int(path.name))


def size(cluster, node):
    """Octets of what a node has of the newest vhost."""
    return sum(path.stat().st_size for path in newest(cluster, node).rglob("*") if path.is_file())


def on_one_node_alone(cluster):
    """A vhost that one node has, with a message in it, beside the default one; the node, and another one."""
    set_replicas(cluster, "a", 1, "v")
    in_time(cluster, "a", lambda: has_settled(cluster, "v"))
    [holder] = members(cluster, "a", "v")
    for name, queue in (("v", "in-v"), ("/", "in-default")):
        with in_vhost(cluster, holder, name) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare(queue, durable=True)
            channel.basic_publish("", queue, b"one", PERSISTENT)
    in_time(cluster, "a", lambda: has_settled(cluster))
    return holder, next(name for name in NAMES if name != holder)


def queues(cluster, node):
    listed = cluster.request(node, "GET", "/api/queues")
    return {queue["name"]: queue.get("messages") for queue in listed}


class ListedVhosts(threading.Thread):
    """Asks a node for its vhosts, again and again; `found` has the names of each answer."""

    def __init__(self, cluster, node):
        super().__init__(daemon=True)
        self.cluster, self.node = cluster, node
        self.found, self.ends = [], threading.Event()
        self.start()

    def run(self):
        while not self.ends.is_set():
            try:
                listed = self.cluster.request(self.node, "GET", "/api/vhosts?disable_stats=true")
            except (OSError, http.client.HTTPException):
                # The node starts anew.
                continue
            self.found.append({vhost["name"] for vhost in listed})

    def end(self):
        self.ends.set()
        self.join()
        return self.found


def test_vhosts_of_lost_nodes_begin_anew_where_a_node_goes_on_alone(make):
    cluster = make()
    holder, other = on_one_node_alone(cluster)
    more = [f"more-{number}" for number in range(10)]
    for name in more:
        set_replicas(cluster, "a", 1, name)
    in_time(cluster, "a", lambda: all(has_settled(cluster, name) for name in more))
    lost = {name for name in ("v", *more) if other not in members(cluster, "a", name)}
    for name in NAMES:
        if name != other:
            lose_disk(cluster, name)
    listed = ListedVhosts(cluster, other)
    goes_on_alone(cluster, other)
    in_time(cluster, other, lambda: all(has_settled(cluster, name) for name in ("%2F", "v", *more)))
    in_time(cluster, other, lambda: queues(cluster, other) == {"in-default": 1})
    # None is missing while another one takes its place.
    assert {frozenset(names) for names in listed.end()} == {frozenset({"/", "v", *more})}
    told = [line for line in cluster.nodes[other].said().splitlines() if "begins empty" in line]
    assert len(told) == len(lost) and all(any(f'vhost="{name}"' in line for line in told) for name in lost)
    with in_vhost(cluster, other, "v") as connection:
        connection.channel().queue_declare("again", durable=True)
    cluster.nodes[other].kill()
    start(cluster, other)
    in_time(cluster, other, lambda: queues(cluster, other) == {"in-default": 1, "again": 0})


def test_backup_has_the_vhosts_of_its_node(make, tmp_path):
    cluster = make()
    holder, other = on_one_node_alone(cluster)
    jobs = {node: backed_up(cluster, node, tmp_path / f"of-{node}") for node in (holder, other)}
    assert (jobs[holder]["vhosts_total"], jobs[holder]["vhosts_elsewhere"]) == (2, [])
    assert (jobs[other]["vhosts_total"], jobs[other]["vhosts_elsewhere"]) == (1, ["v"])
    for name in NAMES:
        lose_disk(cluster, name)
    for node, found in ((holder, {"in-default": 1, "in-v": 1}), (other, {"in-default": 1})):
        shutil.copytree(tmp_path / f"of-{node}", cluster.nodes[node].data)
        start(cluster, node)
        in_time(cluster, node, lambda node=node, found=found: queues(cluster, node) == found)
        in_time(cluster, node, lambda node=node: ["v"] == [
            listed["name"] for listed in cluster.request(node, "GET", "/api/vhosts") if listed["name"] != "/" and listed["leader"]])
        lose_disk(cluster, node)


@pytest.mark.parametrize("is_damaged", (False, True))
def test_node_that_was_away_gives_its_replica_up(make, is_damaged):
    cluster = make()
    set_replicas(cluster, "a", None, "v")
    in_time(cluster, "a", lambda: has_settled(cluster, "v"))
    leader = vhost(cluster, "a", "v")["leader"].split("@")[0]
    # The last one of those that do not lead.
    away = max(name for name in NAMES if name != leader)
    with in_vhost(cluster, leader, "v") as connection:
        connection.channel().queue_declare("q", durable=True)
    cluster.nodes[away].kill()
    set_replicas(cluster, leader, 2, "v")
    in_time(cluster, leader, lambda: has_settled(cluster, "v"))
    assert away not in members(cluster, leader, "v")
    if is_damaged:
        for file in newest(cluster, away).glob("manifest*"):
            file.write_bytes(b"nothing of a manifest")
    start(cluster, away)
    in_time(cluster, away, lambda: vhost(cluster, away, "v")["leader"])
    in_time(cluster, away, lambda: has_settled(cluster, "v"))
    with in_vhost(cluster, away, "v") as connection:
        assert connection.channel().queue_declare("q", passive=True).method.message_count == 0
    set_replicas(cluster, away, 3, "v")
    in_time(cluster, away, lambda: has_settled(cluster, "v"))
    assert members(cluster, away, "v") == sorted(NAMES)


def test_clients_are_served_by_a_node_whose_replica_is_on_its_way(make):
    cluster = make("raft.shipment_bandwidth = 1MiB\n")
    set_replicas(cluster, "a", 1, "v")
    in_time(cluster, "a", lambda: has_settled(cluster, "v"))
    [holder] = members(cluster, "a", "v")
    other = next(name for name in NAMES if name != holder)
    with in_vhost(cluster, holder, "v") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q", durable=True)
        for _ in range(50):
            channel.basic_publish("", "q", bytes(100_000), PERSISTENT)
    set_replicas(cluster, "a", 2, "v")
    in_time(cluster, "a", lambda: len(members(cluster, "a", "v")) == 2)
    [coming] = [name for name in members(cluster, "a", "v") if name != holder]
    in_time(cluster, coming, lambda: "the replica is being rebuilt" in cluster.nodes[coming].said())
    served = 0
    while voters(cluster, "v") == [holder]:
        watch = Stopwatch(*(node.process.pid for node in cluster.nodes.values()))
        with in_vhost(cluster, coming, "v") as connection:
            assert connection.channel().queue_declare("q", passive=True).method.message_count == 50
        assert watch.elapsed_s() < SERVED_S
        served += 1
        time.sleep(0.2)
    assert served > 0
    in_time(cluster, other, lambda: has_settled(cluster, "v"))
