"""A node that has lost its whole disk: it takes no part, or its operator lets it take its place again."""

import shutil
import urllib.error

from cluster_processes import NAMES
from test_transfers import Load

CONSENT = "cluster.replace_lost_member = true\n"
WITHIN_S = 120.0
VHOSTS = ("/", "orders", "mail")


def in_time(cluster, name, holds):
    node = cluster.nodes[name]
    assert node.wait_until(holds, WITHIN_S), node.said()[-3000:]


def lose_disk(cluster, name, kept=None):
    node = cluster.nodes[name]
    node.kill()
    shutil.move(node.data, kept) if kept else shutil.rmtree(node.data)


def start(cluster, name):
    node = cluster.nodes[name]
    node.launch()
    in_time(cluster, name, node.is_listening)


def may_stop(cluster, name):
    """True if no vhost would lose its majority with this node, as operators ask before they stop it."""
    try:
        cluster.request(name, "GET", "/api/health/checks/node-is-quorum-critical")
    except urllib.error.HTTPError as refused:
        assert refused.code == 503
        return False
    return True


def all_is_replicated(cluster):
    return all(may_stop(cluster, name) for name in NAMES)


def contents(cluster, name):
    """The names of what a node knows of the cluster."""
    paths = ("/api/vhosts", "/api/users", "/api/queues", "/api/global-parameters")
    return [sorted(one["name"] for one in cluster.request(name, "GET", path)) for path in paths]


def fill(cluster):
    cluster.request("a", "PUT", "/api/users/anna", {"password": "anna", "tags": ""})
    cluster.request("a", "PUT", "/api/global-parameters/owner", {"value": "anna"})
    for vhost in VHOSTS[1:]:
        cluster.request("b", "PUT", f"/api/vhosts/{vhost}", {})
    for vhost in VHOSTS[1:]:
        in_time(cluster, "c", lambda vhost=vhost: cluster.request("c", "GET", f"/api/vhosts/{vhost}").get("leader"))
        cluster.request("c", "PUT", f"/api/queues/{vhost}/q-{vhost}", {"durable": True})


def test_every_disk_is_replaced_under_load(make):
    cluster = make(CONSENT)
    fill(cluster)
    loads = [Load(cluster, queue_type, queue_type) for queue_type in ("quorum", "classic")]
    before = contents(cluster, "a")
    for name in NAMES:
        in_time(cluster, name, lambda: all_is_replicated(cluster))
        published = [len(load.confirmed) for load in loads]
        lose_disk(cluster, name)
        in_time(cluster, next(one for one in NAMES if one != name), lambda: all(
            len(load.confirmed) > count + 50 for load, count in zip(loads, published)))
        start(cluster, name)
        in_time(cluster, name, lambda name=name: contents(cluster, name) == before)
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    for load in loads:
        load.check()
    # No disk of the beginning is left; each new one leads by itself.
    for name in NAMES:
        cluster.transfer_when_possible(name, WITHIN_S)
        assert contents(cluster, name) == before
    assert all("must be rebuilt" in line for line in cluster.errors())


def test_node_without_its_disk_takes_no_part_unless_its_operator_agrees(make, tmp_path):
    cluster = make()
    fill(cluster)
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    before, old = contents(cluster, "a"), tmp_path / "old"
    node = cluster.nodes["b"]
    lose_disk(cluster, "b", old)
    start(cluster, "b")
    in_time(cluster, "b", lambda: "cluster.replace_lost_member = true" in node.said())
    assert contents(cluster, "b")[0] == ["/"]
    assert not may_stop(cluster, "a")

    # The disk is there again, and nothing has happened meanwhile.
    lose_disk(cluster, "b")
    shutil.copytree(old, node.data)
    start(cluster, "b")
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    in_time(cluster, "b", lambda: contents(cluster, "b") == before)

    lose_disk(cluster, "b")
    node.config.write_text(node.config.read_text() + CONSENT)
    start(cluster, "b")
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    in_time(cluster, "b", lambda: contents(cluster, "b") == before)

    # The disk comes back once more, when another one has its place.
    lose_disk(cluster, "b")
    shutil.copytree(old, node.data)
    start(cluster, "b")
    in_time(cluster, "b", lambda: "remembers another disk of this node" in node.said())
    cluster.nodes["a"].wait_until(lambda: not may_stop(cluster, "a"), WITHIN_S)
    assert not may_stop(cluster, "a")


def test_node_is_killed_while_it_replaces_its_disk(make):
    cluster = make(CONSENT)
    fill(cluster)
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    before = contents(cluster, "a")
    lose_disk(cluster, "b")
    for said in ("whose data are lost", "the replica is being rebuilt", "the replica is rebuilt"):
        start(cluster, "b")
        in_time(cluster, "b", lambda said=said: said in cluster.nodes["b"].said())
        cluster.nodes["b"].kill()
    start(cluster, "b")
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    in_time(cluster, "b", lambda: contents(cluster, "b") == before)


def is_done(cluster, method, path):
    """True if node a has made a change; false if there is no leader for it yet."""
    try:
        cluster.request("a", method, path)
    except urllib.error.HTTPError as refused:
        assert refused.code == 503
        return False
    return True


def test_vhost_that_was_deleted_and_made_again_meanwhile_is_the_new_one(make):
    cluster = make()
    fill(cluster)
    in_time(cluster, "a", lambda: all_is_replicated(cluster))
    cluster.nodes["c"].kill()
    in_time(cluster, "a", lambda: is_done(cluster, "DELETE", "/api/vhosts/orders"))
    cluster.request("b", "PUT", "/api/vhosts/orders", {"description": "new"})
    in_time(cluster, "a", lambda: cluster.request("a", "GET", "/api/vhosts/orders").get("leader"))
    start(cluster, "c")
    in_time(cluster, "c", lambda: all_is_replicated(cluster))
    in_time(cluster, "c", lambda: contents(cluster, "c") == contents(cluster, "a"))
    assert cluster.request("c", "GET", "/api/vhosts/orders")["description"] == "new"
