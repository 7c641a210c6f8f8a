"""Mistakes with a cluster, and what nodes, commands and findings tell of its state."""

import json
import shutil
import time
import urllib.error
import urllib.request

import pytest

from ports import free_port
from test_lost_disk import contents, fill, in_time, start
from test_membership import FOUNDERS, act, forget, is_well, nodes_of
from test_stand_alone import declare, publish, take_all

LINES_A_MINUTE_MAX = 60


def findings(cluster, name):
    return {one["kind"]: one for one in cluster.request(name, "GET", "/api/health/findings")["findings"]}


def has_findings(cluster, name, *kinds):
    return set(kinds) <= set(findings(cluster, name))


def command(cluster, name, action):
    """An action of the administrator of the machine, whom a stopped node takes, too; the status, and the reason if it is
    refused."""
    told = json.loads((cluster.nodes[name].data / "ctl.json").read_text())
    request = urllib.request.Request(
        f"{told['http']}/api/nodes/{cluster.full_names[name]}/actions", method="POST",
        data=json.dumps({"action": action}).encode(),
        headers={"Authorization": f"Bearer {told['token']}", "Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=120).close()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    return 204, ""


def stops_app(cluster, name):
    """Ends the service of a node, whose process stays."""
    assert command(cluster, name, "stop_app") == (204, "")
    in_time(cluster, name, lambda: "stopped: not serving clients" in cluster.nodes[name].said())


def test_node_with_the_only_replica_is_not_forgotten(make):
    cluster = make()
    fill(cluster)
    in_time(cluster, "a", lambda: is_well(cluster))
    cluster.request("a", "PUT", "/api/vhosts/single", {"replicas": 1})
    in_time(cluster, "a", lambda: cluster.request("a", "GET", "/api/vhosts/single").get("leader"))
    [member] = cluster.request("a", "GET", "/api/vhosts/single")["members"]
    name = member.split("@")[0]
    asked = next(one for one in FOUNDERS if one != name)
    cluster.nodes[name].stop()
    in_time(cluster, asked, lambda: forget(cluster, name, asked)[0] != 503)
    code, text = forget(cluster, name, asked)
    assert code == 409 and "'single'" in text and "'/'" not in text, text
    assert nodes_of(cluster, asked) == list(FOUNDERS)
    cluster.request(asked, "DELETE", "/api/vhosts/single")
    in_time(cluster, asked, lambda: forget(cluster, name, asked) == (204, ""))


def test_reset_takes_the_node_out_of_the_cluster(make):
    cluster = make()
    fill(cluster)
    in_time(cluster, "a", lambda: is_well(cluster))
    before = contents(cluster, "a")
    stops_app(cluster, "c")
    assert command(cluster, "c", "reset") == (204, "")
    assert nodes_of(cluster, "a") == ["a", "b"]
    # The node is not one of a cluster now, and joins the one that its configuration lists.
    assert command(cluster, "c", "start_app") == (204, "")
    in_time(cluster, "a", lambda: nodes_of(cluster, "a") == ["a", "b", "c"] and is_well(cluster))
    in_time(cluster, "c", lambda: cluster.nodes["c"].is_listening(after="this node joins a cluster"))
    in_time(cluster, "c", lambda: contents(cluster, "c") == before)


def test_reset_without_the_others_needs_force(make):
    cluster = make()
    in_time(cluster, "a", lambda: is_well(cluster))
    stops_app(cluster, "c")
    for name in ("a", "b"):
        cluster.nodes[name].kill()
    code, text = command(cluster, "c", "reset")
    assert code == 409 and "cannot be asked" in text and "force_reset" in text, text
    assert (cluster.nodes["c"].data / "cluster.json").exists()
    assert command(cluster, "c", "force_reset") == (204, "")
    assert not (cluster.nodes["c"].data / "cluster.json").exists()


def test_stopped_node_does_not_go_on_alone_beside_its_cluster(make):
    cluster = make()
    declare(cluster)
    in_time(cluster, "a", lambda: is_well(cluster))
    publish(cluster, "a", "q", 0, 10)
    stops_app(cluster, "b")
    code, text = command(cluster, "b", "stand_alone")
    assert code == 409 and "runs, and this node is a member of its cluster" in text, text
    for name in ("a", "c"):
        cluster.nodes[name].stop()
    assert command(cluster, "b", "stand_alone") == (204, "")
    assert command(cluster, "b", "start_app") == (204, "")
    node = cluster.nodes["b"]
    in_time(cluster, "b", lambda: node.is_listening(after="stopped: not serving clients"))
    in_time(cluster, "b", lambda: nodes_of(cluster, "b") == ["b"])
    assert take_all(cluster, "b", "q") == list(range(10))


def test_findings_and_log_tell_of_nodes_that_are_away_and_of_a_lost_majority(make):
    cluster = make()
    fill(cluster)
    in_time(cluster, "a", lambda: is_well(cluster))
    in_time(cluster, "a", lambda: not has_findings(cluster, "a", "node_unreachable"))
    assert not has_findings(cluster, "a", "vhost_without_leader")
    cluster.nodes["c"].kill()
    in_time(cluster, "a", lambda: has_findings(cluster, "a", "node_unreachable"))
    found = findings(cluster, "a")["node_unreachable"]
    assert "Node 'c@127.0.0.1' is not connected: " in found["text"], found
    [away] = [node for node in cluster.request("a", "GET", "/api/nodes") if node["name"].startswith("c@")]
    assert away["link_problem"] in found["text"] or away["link_problem"]
    cluster.nodes["b"].kill()
    wanted = ("metadata_without_leader", "vhost_without_leader", "node_unreachable")
    in_time(cluster, "a", lambda: has_findings(cluster, "a", *wanted))
    in_time(cluster, "a", lambda: "no majority: 1 of 3 nodes are connected" in cluster.nodes["a"].said())
    with pytest.raises(urllib.error.HTTPError) as refused:
        cluster.request("a", "PUT", "/api/users/joe", {"password": "x", "tags": ""})
    reason = json.load(refused.value)["reason"]
    assert "missing: 'b@127.0.0.1' (" in reason and "'c@127.0.0.1' (" in reason, reason
    cluster.start()
    in_time(cluster, "a", lambda: "a majority of the nodes is connected again" in cluster.nodes["a"].said())
    in_time(cluster, "a", lambda: not has_findings(cluster, "a", "vhost_without_leader"))


@pytest.mark.parametrize("name", FOUNDERS)
def test_copy_of_a_data_directory_is_told_by_the_others(make, name):
    cluster = make()
    in_time(cluster, "a", lambda: is_well(cluster))
    original = cluster.nodes[name]
    others = [cluster.nodes[one] for one in FOUNDERS if one != name]
    copied = cluster.folder / "copy"
    copied.mkdir()
    copy = cluster.make(cluster.binary, copied, original.config.read_text().replace(
        f":{cluster.ports[name]}\n", f":{free_port()}\n", 1))
    shutil.copytree(original.data, copy.data)
    copy.launch()
    told = f"two processes say that they are node '{cluster.full_names[name]}'"
    silent = "it answers, and does not connect to this node"

    def is_told():
        return any(told in one.said() for one in others) or silent in copy.said()
    in_time(cluster, name, is_told)
    before = [one.said().count("link is") for one in others]
    time.sleep(5)
    lines = [one.said().count("link is") - count for one, count in zip(others, before)]
    assert max(lines) <= LINES_A_MINUTE_MAX, lines
    copy.kill()
    in_time(cluster, "a", lambda: is_well(cluster))


def test_wrong_secret_is_told_where_a_node_asks_to_join(make):
    cluster = make()
    secret = cluster.folder / "another"
    secret.write_text("another secret than that of the cluster\n")
    secret.chmod(0o600)
    node = cluster.add("d", config="")
    node.config.write_text(node.config.read_text().replace(str(cluster.folder / "secret"), str(secret)))
    start(cluster, "d")
    code, text = act(cluster, "d", {"action": "join_cluster", "node": cluster.place_of("a")})
    assert code == 409 and "secret" in text, text
