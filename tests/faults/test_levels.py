"""Nodes of two versions in one cluster: the level of record kinds rises when all nodes can, and an older node is refused then.

A node with `cluster.record_level = 1` is one of the version before: it tells the others that it reads nothing newer."""

import shutil
import time
import urllib.error

import pytest

from cluster_processes import NAMES, Cluster
from test_lost_disk import all_is_replicated, contents, fill, in_time, start
from test_membership import is_well
from test_transfers import Load

OLDER = "cluster.record_level = 1\n"
# Far longer than a level that rises by itself takes.
QUIET_S = 2.0


@pytest.fixture
def begin(leveret_bin, tmp_path):
    """Starts a cluster of three nodes, some of them of the version before."""
    made = []

    def begin(older=(), config=""):
        cluster = Cluster(leveret_bin, tmp_path, config)
        made.append(cluster)
        for name in older:
            downgrade(cluster, name)
        cluster.start()
        in_time(cluster, "a", lambda: all_is_replicated(cluster))
        return cluster
    yield begin
    for cluster in made:
        cluster.stop()


def downgrade(cluster, name):
    config = cluster.nodes[name].config
    config.write_text(config.read_text() + OLDER)


def upgrade(cluster, name):
    config = cluster.nodes[name].config
    config.write_text(config.read_text().replace(OLDER, ""))


def level(cluster, name):
    """The level of the cluster, as a node knows it."""
    return cluster.request(name, "GET", "/api/overview?disable_stats=true")["cluster_record_level"]


def has_level(cluster, expected):
    return all(level(cluster, name) == expected for name in cluster.running())


def told(cluster, asked):
    """The levels that nodes tell."""
    nodes = cluster.request(asked, "GET", "/api/nodes")
    return {node["name"].split("@")[0]: node.get("record_level") for node in nodes}


def enable_all(cluster, asked):
    try:
        cluster.request(asked, "PUT", "/api/feature-flags/all/enable", {})
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    return 204, ""


def vhosts(cluster, asked):
    return cluster.request(asked, "GET", "/api/vhosts")


def put_on_one_node(cluster):
    try:
        cluster.request("a", "PUT", "/api/vhosts/one", {"replicas": 1})
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    return 204, ""


def ends_with(cluster, name, *sentences):
    """Starts a node that ends by itself."""
    node = cluster.nodes[name]
    node.launch()
    in_time(cluster, name, lambda: node.process.poll() is not None)
    assert node.process.returncode != 0
    for sentence in sentences:
        assert sentence in node.said(), node.said()[-2000:]


def test_level_rises_with_the_last_node_and_older_ones_are_refused_then(begin, tmp_path):
    cluster = begin(older=("c",))
    fill(cluster)
    before = contents(cluster, "a")
    for name in NAMES:
        in_time(cluster, name, lambda: told(cluster, name) == {"a": 2, "b": 2, "c": 1})
    time.sleep(QUIET_S)
    assert has_level(cluster, 1)
    # What only newer nodes know waits.
    code, text = put_on_one_node(cluster)
    assert code == 503 and "once all nodes read records of level 2; the cluster has level 1" in text, text
    assert contents(cluster, "c") == before
    # A disk of the version before.
    cluster.nodes["c"].stop()
    shutil.copytree(cluster.nodes["c"].data, tmp_path / "older")
    upgrade(cluster, "c")
    start(cluster, "c")
    in_time(cluster, "c", lambda: has_level(cluster, 2))
    for name in NAMES:
        risen = "the level of record kinds of the cluster has risen level=2"
        in_time(cluster, name, lambda: risen in cluster.nodes[name].said())
        assert "\nleveret_record_level 2\n" in cluster.text(name, "/metrics")
        # A node tells its level to each other one by itself.
        in_time(cluster, name, lambda: told(cluster, name) == {"a": 2, "b": 2, "c": 2})
    in_time(cluster, "a", lambda: put_on_one_node(cluster)[0] == 204)
    in_time(cluster, "c", lambda: [len(vhost["members"]) for vhost in vhosts(cluster, "c") if vhost["name"] == "one"] == [1])
    in_time(cluster, "b", lambda: "one" in {vhost["name"] for vhost in vhosts(cluster, "b")})
    cluster.request("b", "DELETE", "/api/vhosts/one")

    # Its disk knows the level.
    cluster.nodes["c"].stop()
    downgrade(cluster, "c")
    ends_with(cluster, "c", "the cluster has level 2 of record kinds, and this node reads up to level 1: upgrade the node")

    # Its disk does not know it.
    node = cluster.nodes["c"]
    shutil.move(node.data, tmp_path / "newer")
    shutil.copytree(tmp_path / "older", node.data)
    start(cluster, "c")
    in_time(cluster, "c", lambda: "its cluster has a higher level of record kinds than this node reads" in node.said())
    refused = f"node '{cluster.full_names['c']}' reads records up to level 1, and the cluster has level 2: upgrade the node"
    in_time(cluster, "a", lambda: any(refused in cluster.nodes[name].said() for name in ("a", "b")))
    assert not cluster.request("c", "GET", "/api/vhosts/%2F").get("leader")
    node.kill()

    # Nothing is lost.
    shutil.rmtree(node.data)
    shutil.move(tmp_path / "newer", node.data)
    upgrade(cluster, "c")
    start(cluster, "c")
    in_time(cluster, "c", lambda: all_is_replicated(cluster) and contents(cluster, "c") == before)
    assert has_level(cluster, 2)


def test_rolling_upgrade_under_load_loses_nothing(begin):
    cluster = begin(older=NAMES)
    loads = [Load(cluster, queue_type, queue_type) for queue_type in ("quorum", "classic")]
    for name in NAMES:
        in_time(cluster, name, lambda: all_is_replicated(cluster))
        assert has_level(cluster, 1)
        published = [len(load.confirmed) for load in loads]
        cluster.nodes[name].stop()
        upgrade(cluster, name)
        start(cluster, name)
        in_time(cluster, name, lambda: all(
            len(load.confirmed) > count + 50 for load, count in zip(loads, published)))
    in_time(cluster, "a", lambda: has_level(cluster, 2) and all_is_replicated(cluster))
    for load in loads:
        load.check()
    # A node knows the level before it hears of any other.
    for name in NAMES:
        cluster.nodes[name].kill()
    start(cluster, "a")
    assert level(cluster, "a") == 2
    assert not cluster.errors()


def test_level_waits_for_a_command(begin):
    cluster = begin(config="cluster.auto_level = false\n")
    cluster.request("a", "PUT", "/api/vhosts/more", {})
    time.sleep(QUIET_S)
    assert has_level(cluster, 1)
    cluster.nodes["c"].kill()
    for name in cluster.running():
        in_time(cluster, name, lambda: told(cluster, name)["c"] is None)
    in_time(cluster, "a", lambda: refused_because_of(cluster, "c"))
    assert level(cluster, "a") == 1
    start(cluster, "c")
    # Any node passes it on to the one that leads.
    in_time(cluster, "c", lambda: enable_all(cluster, "c")[0] == 204)
    in_time(cluster, "c", lambda: has_level(cluster, 2))
    assert enable_all(cluster, "b") == (204, "")


def refused_because_of(cluster, name):
    """A new leader may be missing as well."""
    code, reason = enable_all(cluster, "a")
    assert code == 503, reason
    return f"these are not: {cluster.full_names[name]}" in reason


def test_older_node_joins_only_below_the_level(begin):
    cluster = begin()
    in_time(cluster, "a", lambda: has_level(cluster, 2))
    cluster.add("d")
    downgrade(cluster, "d")
    full_name = cluster.full_names["d"]
    ends_with(cluster, "d", "does not take this node into its cluster",
              f"node '{full_name}' reads records up to level 1, and the cluster has level 2: upgrade the node")
    upgrade(cluster, "d")
    start(cluster, "d")
    in_time(cluster, "d", lambda: is_well(cluster) and level(cluster, "d") == 2)


def test_older_node_that_is_forgotten_holds_nothing_back(begin):
    cluster = begin(older=("c",))
    cluster.nodes["c"].stop()
    time.sleep(QUIET_S)
    in_time(cluster, "a", lambda: level(cluster, "a") == level(cluster, "b") == 1)
    in_time(cluster, "a", lambda: forgotten(cluster, "c"))
    in_time(cluster, "a", lambda: level(cluster, "a") == level(cluster, "b") == 2)


def forgotten(cluster, name):
    try:
        cluster.request("a", "DELETE", f"/api/nodes/{cluster.full_names[name]}")
    except urllib.error.HTTPError as refused:
        return refused.code == 404
    return True
