"""Nodes that join a cluster, and nodes that are forgotten: under load, killed meanwhile, with content, too many, too late."""

import shutil
import urllib.error

import pytest

from test_lost_disk import all_is_replicated, contents, fill, in_time, lose_disk, start
from test_transfers import Load

FOUNDERS = ("a", "b", "c")
WITHIN_S = 120.0


def is_well(cluster, voters=None):
    """Every vhost has so many replicas that vote, or one on every node."""
    names = tuple(cluster.nodes)
    replicas = cluster.request(names[0], "GET", "/api/replicas")
    have = {replica["vhost"]: len(replica["voters"]) for replica in replicas if replica["state"] == "leader"}
    metadata = {"metadata"} if any(replica["vhost"] == "metadata" for replica in replicas) else set()
    vhosts = {vhost["name"] for vhost in cluster.request(names[0], "GET", "/api/vhosts")}
    return vhosts | metadata <= set(have) and set(have.values()) == {voters or len(names)}


def joins(cluster, name):
    start(cluster, name)
    in_time(cluster, name, lambda: is_well(cluster))


def forget(cluster, name, asked):
    try:
        cluster.request(asked, "DELETE", f"/api/nodes/{cluster.full_names[name]}")
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    return 204, ""


def leaves(cluster, name):
    """Stops a node, and forgets it."""
    cluster.nodes[name].stop()
    asked = next(other for other in cluster.nodes if other != name)
    in_time(cluster, asked, lambda: forget(cluster, name, asked)[0] == 204)
    cluster.remove(name)
    in_time(cluster, asked, lambda: is_well(cluster))


def nodes_of(cluster, asked):
    return sorted(node["name"].split("@")[0] for node in cluster.request(asked, "GET", "/api/nodes"))


def test_every_node_is_replaced_by_another_one_under_load(make):
    cluster = make()
    fill(cluster)
    loads = [Load(cluster, queue_type, queue_type) for queue_type in ("quorum", "classic")]
    before = contents(cluster, "a")
    in_time(cluster, "a", lambda: is_well(cluster))
    for old, new in (("a", "d"), ("b", "e"), ("c", "f")):
        cluster.add(new)
        joins(cluster, new)
        # A vhost of this time begins on four nodes.
        cluster.request(new, "PUT", f"/api/vhosts/of-{new}", {})
        before[0] = sorted([*before[0], f"of-{new}"])
        published = [len(load.confirmed) for load in loads]
        leaves(cluster, old)
        in_time(cluster, new, lambda: all(
            len(load.confirmed) > count + 50 for load, count in zip(loads, published)))
    for load in loads:
        load.check()
    for name in cluster.nodes:
        assert contents(cluster, name) == before, name
        assert nodes_of(cluster, name) == ["d", "e", "f"]
        cluster.transfer_when_possible(name, WITHIN_S)
    # The new nodes know each other from their disks alone.
    for name in cluster.nodes:
        cluster.nodes[name].kill()
    cluster.start()
    in_time(cluster, "d", lambda: is_well(cluster))
    assert contents(cluster, "e") == before
    assert all("has lost" not in line for line in cluster.errors())


# Of each two nodes one dials: the other one has to ask.
@pytest.mark.parametrize("name", ["b", "c"])
def test_forgotten_node_takes_no_part_and_joins_again_after_a_reset(make, name):
    cluster = make()
    asked, other = (one for one in FOUNDERS if one != name)
    fill(cluster)
    in_time(cluster, asked, lambda: is_well(cluster))
    before = contents(cluster, asked)
    assert forget(cluster, name, asked)[0] == 409
    cluster.nodes[name].stop()
    in_time(cluster, asked, lambda: forget(cluster, name, other)[0] == 204)
    assert forget(cluster, name, other)[0] == 404
    in_time(cluster, asked, lambda: nodes_of(cluster, asked) == nodes_of(cluster, other) == [asked, other])
    start(cluster, name)
    in_time(cluster, name, lambda: "has forgotten this node" in cluster.nodes[name].said())
    assert not cluster.request(name, "GET", "/api/vhosts/%2F").get("leader")
    lose_disk(cluster, name)
    joins(cluster, name)
    in_time(cluster, name, lambda: contents(cluster, name) == before)
    # Nothing that it was is used again.
    assert "#1025" in cluster.nodes[name].said()


def test_node_is_killed_while_it_joins(make):
    cluster = make()
    fill(cluster)
    before = contents(cluster, "a")
    node = cluster.add("d")
    for said in ("this node joins a cluster", "the replica is being rebuilt", "the replica is rebuilt"):
        start(cluster, "d")
        in_time(cluster, "d", lambda said=said: said in node.said())
        node.kill()
        # The others need no majority of four.
        cluster.served()
    joins(cluster, "d")
    in_time(cluster, "d", lambda: contents(cluster, "d") == before)
    assert nodes_of(cluster, "b") == ["a", "b", "c", "d"]


def test_node_that_could_not_ask_at_its_start_joins_later(make):
    cluster = make()
    fill(cluster)
    in_time(cluster, "a", lambda: is_well(cluster))
    before = contents(cluster, "a")
    for name in FOUNDERS:
        cluster.nodes[name].kill()
    node = cluster.add("d")
    start(cluster, "d")
    in_time(cluster, "d", lambda: "the cluster is not founded yet" in node.said())
    cluster.start()
    in_time(cluster, "d", lambda: node.is_listening(after="starts anew to join") and is_well(cluster))
    assert contents(cluster, "d") == before


def test_node_that_was_away_finds_nodes_that_it_has_never_known(make):
    cluster = make()
    fill(cluster)
    in_time(cluster, "a", lambda: is_well(cluster))
    away = cluster.nodes.pop("c")
    away.kill()
    for name in ("d", "e"):
        cluster.add(name).launch()
        in_time(cluster, name, cluster.nodes[name].is_listening)
    in_time(cluster, "b", lambda: is_well(cluster, voters=5))
    cluster.nodes["c"] = away
    # Of those that node c knows, one is gone and one leads nothing.
    leaves_without_waiting(cluster, "a")
    for vhost in ("/", "orders", "mail"):
        in_time(cluster, "d", lambda vhost=vhost: leads_elsewhere(cluster, vhost, "b"))
    cluster.nodes["b"].stop()
    in_time(cluster, "d", lambda: not cluster.request("d", "GET", "/api/vhosts/%2F").get("leader", "").startswith("b@"))
    start(cluster, "b")
    start(cluster, "c")
    in_time(cluster, "c", lambda: nodes_of(cluster, "c") == ["b", "c", "d", "e"])
    in_time(cluster, "c", lambda: is_well(cluster))
    in_time(cluster, "c", lambda: contents(cluster, "c") == contents(cluster, "e") and contents(cluster, "e")[2])


def leaves_without_waiting(cluster, name):
    cluster.nodes[name].stop()
    in_time(cluster, "b", lambda: forget(cluster, name, "b")[0] == 204)
    cluster.remove(name)


def leads_elsewhere(cluster, vhost, name):
    """True once another node leads, perhaps because it was asked to."""
    path = f"/api/vhosts/{vhost.replace('/', '%2F')}"
    leader = cluster.request("d", "GET", path).get("leader")
    if leader and leader.split("@")[0] == name:
        try:
            cluster.request("d", "POST", f"{path}/leader", {})
        except urllib.error.HTTPError as refused:
            assert refused.code == 503
        return False
    return bool(leader)


def act(cluster, name, body):
    try:
        cluster.request(name, "POST", f"/api/nodes/{cluster.full_names[name]}/actions", body)
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    return 204, ""


def test_node_without_a_cluster_joins_by_command_unless_it_has_content(make):
    cluster = make()
    fill(cluster)
    before = contents(cluster, "a")
    node = cluster.add("d", config="")
    start(cluster, "d")
    join = {"action": "join_cluster", "node": cluster.place_of("a")}
    for seed, said in (("d@127.0.0.1", "cannot join itself"), ("nobody@127.0.0.1:9", "cannot connect to 127.0.0.1:9"),
                       ("nobody", "NAME@HOST"), (cluster.place_of("a").replace("a@", "x@"), "is node 'a@127.0.0.1', not 'x@127.0.0.1'")):
        code, text = act(cluster, "d", join | {"node": seed})
        assert code == 409 and said in text, text
    cluster.request("d", "PUT", "/api/queues/%2F/own", {"durable": True})
    code, text = act(cluster, "d", join)
    assert code == 409 and "content of its own" in text and "vhost '/' has" in text, text
    assert nodes_of(cluster, "a") == ["a", "b", "c"]
    node.kill()
    start(cluster, "d")
    assert [queue["name"] for queue in cluster.request("d", "GET", "/api/queues")] == ["own"]
    node.kill()
    shutil.rmtree(node.data)
    start(cluster, "d")
    assert act(cluster, "d", join) == (204, "")
    in_time(cluster, "d", lambda: node.is_listening(after="this node joins a cluster") and is_well(cluster))
    assert contents(cluster, "d") == before
    assert act(cluster, "d", join)[0] == 409


def test_content_that_comes_while_a_node_joins_is_not_removed(make):
    cluster = make()
    node = cluster.add("d", config="")
    start(cluster, "d")
    cluster.request("d", "PUT", "/api/queues/%2F/own", {"durable": True})
    node.kill()
    # As if a client had declared the queue between the question and the new start.
    mark = node.data / "resetting"
    mark.write_text("joins a cluster\n")
    node.launch()
    in_time(cluster, "d", lambda: node.process.poll() is not None)
    assert "vhost '/' has 1 records, which came while the node joined" in node.said(), node.said()
    mark.unlink()
    start(cluster, "d")
    assert [queue["name"] for queue in cluster.request("d", "GET", "/api/queues")] == ["own"]


def test_node_with_content_whose_configuration_lists_a_cluster_ends_with_a_sentence(make):
    cluster = make()
    node = cluster.add("d", config="")
    start(cluster, "d")
    cluster.request("d", "PUT", "/api/queues/%2F/own", {"durable": True})
    node.kill()
    node = cluster.add("d")
    node.launch()
    in_time(cluster, "d", lambda: node.process.poll() is not None)
    assert "content of its own (vhost '/' has" in node.said()
    assert nodes_of(cluster, "a") == ["a", "b", "c"]


def test_disk_of_a_node_that_has_joined_is_lost(make):
    cluster = make("cluster.replace_lost_member = true\n")
    fill(cluster)
    before = contents(cluster, "a")
    cluster.add("d")
    joins(cluster, "d")
    for name in ("d", "a"):
        lose_disk(cluster, name)
        start(cluster, name)
        in_time(cluster, "b", lambda: is_well(cluster) and all_is_replicated(cluster))
        in_time(cluster, name, lambda name=name: contents(cluster, name) == before)


@pytest.mark.parametrize("count", (7,))
def test_cluster_has_room_for_so_many_nodes(make, count):
    cluster = make()
    for number in range(3, count):
        cluster.add(f"n{number}")
        joins(cluster, f"n{number}")
    # A list with all of them would be refused before the cluster is asked.
    cluster.name_nodes("late")
    listed = enumerate((cluster.place_of(name, "late") for name in ("a", "late")), 1)
    node = cluster.add("late", "".join(
        f"cluster_formation.classic_config.nodes.{number} = {place}\n" for number, place in listed))
    node.launch()
    in_time(cluster, "late", lambda: node.process.poll() is not None)
    assert f"the cluster has {count} nodes, as many as it can have" in node.said()
