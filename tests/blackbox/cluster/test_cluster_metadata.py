"""Users, vhosts, parameters and definitions of a cluster: changed on any node, seen on all, kept through failures."""

import contextlib
import http.client
import json
import threading
import time

import pika
import pytest

from brokers import Leveret, quoted
from patience import eventually
from test_ctl import tools

pytestmark = [pytest.mark.better]

A, B, C = ("a@127.0.0.1", "b@127.0.0.1", "c@127.0.0.1")
ALONE_S = 1.5


def running(cluster):
    return [node for node in cluster.nodes.values() if node.alive]


def on_all(cluster, look):
    """Wait until all running nodes give the same true answer; the answer."""
    def same():
        found = [look(node) for node in running(cluster)]
        return found[0] if all(one == found[0] for one in found) else None

    return eventually(same)


def names(node, path):
    return sorted(one["name"] for one in node.api.do("GET", path))


def comes_to_lead(name, node, vhost):
    """True once the node leads the vhost; it is asked to, if another one does."""
    if node.api.do("GET", f"/api/vhosts/{vhost}").get("leader") == name:
        return True
    node.api.request("POST", f"/api/vhosts/{vhost}/leader", {"node": name})
    return False


def may_log_in(node, user, vhost="/"):
    host, port = node.amqp
    credentials = pika.PlainCredentials(user, user)
    try:
        pika.BlockingConnection(pika.ConnectionParameters(host, port, vhost, credentials)).close()
    except pika.exceptions.AMQPError:
        return False
    return True


def test_any_node_takes_any_change(run_cluster):
    cluster = run_cluster()
    for name, node in cluster.nodes.items():
        node.api.do("PUT", f"/api/users/{name[0]}", {"password": name[0], "tags": "administrator"})
        node.api.do("PUT", f"/api/vhosts/v{name[0]}", {"description": name, "default_queue_type": "quorum"})
        node.api.do("PUT", f"/api/permissions/v{name[0]}/{name[0]}", {"configure": ".*", "write": ".*", "read": ".*"})
        node.api.do("PUT", f"/api/vhost-limits/v{name[0]}/max-connections", {"value": 7})
        node.api.do("PUT", f"/api/global-parameters/p{name[0]}", {"value": [1, name]})
    assert on_all(cluster, lambda node: names(node, "/api/users")) == ["a", "b", "c", "guest"]
    assert on_all(cluster, lambda node: names(node, "/api/vhosts")) == ["/", "va", "vb", "vc"]
    cluster.nodes[B].api.do("PUT", "/api/cluster-name", {"name": "three"})
    told = on_all(cluster, lambda node: node.api.do("GET", "/api/cluster-name"))
    assert told == {"name": "three"}
    limits = on_all(cluster, lambda node: node.api.do("GET", "/api/vhost-limits"))
    assert [one["value"] for one in limits] == [{"max-connections": 7}] * 3
    for node in cluster.nodes.values():
        for letter in "abc":
            eventually(lambda node=node, letter=letter: may_log_in(node, letter, f"v{letter}"))
        assert not may_log_in(node, "a", "vb")
    cluster.nodes[C].api.do("DELETE", "/api/vhosts/vb")
    cluster.nodes[A].api.do("DELETE", "/api/users/b")
    assert on_all(cluster, lambda node: names(node, "/api/vhosts")) == ["/", "va", "vc"]
    assert on_all(cluster, lambda node: names(node, "/api/users")) == ["a", "c", "guest"]
    for name in cluster.names:
        # The replicas are gone from the disks, too.
        eventually(lambda name=name: len(list((cluster.directory / name).glob("**/vhosts/*"))) == 3)


def test_vhost_is_served_through_any_node(run_cluster):
    cluster = run_cluster()
    cluster.nodes[A].api.do("PUT", "/api/vhosts/shop")
    for name, node in cluster.nodes.items():
        eventually(lambda node=node: "shop" in names(node, "/api/vhosts"))
        node.api.do("PUT", f"/api/queues/shop/{name[0]}", {"durable": True})
        message = {"properties": {"delivery_mode": 2}, "routing_key": name[0], "payload": "m",
                   "payload_encoding": "string"}
        assert node.api.do("POST", "/api/exchanges/shop/amq.default/publish", message) == {"routed": True}
    for node in cluster.nodes.values():
        assert names(node, "/api/queues") == names(node, "/api/queues/shop") == ["a", "b", "c"]
        page = node.api.do("GET", "/api/queues?page=1&page_size=2&sort=name&sort_reverse=true&columns=name")
        assert ([one["name"] for one in page["items"]], page["filtered_count"]) == (["c", "b"], 3)
        assert node.api.do("GET", "/api/queues/shop/b")["messages"] == 1
        overview = node.api.do("GET", "/api/overview")
        assert (overview["object_totals"]["queues"], overview["queue_totals"]["messages"]) == (3, 3)
        assert {one["node"] for one in overview["listeners"]} == set(cluster.names)
        got = node.api.do("POST", "/api/queues/shop/b/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"})
        assert [one["payload"] for one in got] == ["m"]
        assert node.api.request("GET", "/api/queues/none/q")[0] == 404
        assert node.api.request("PUT", "/api/queues/none/q", {})[0] == 404
        # Only the caller's name passes on, and the caller's rights are checked.
        assert node.api.ask("/api/queues/shop/a", user="guest", password="wrong").status == 401
    cluster.nodes[B].api.do("PUT", "/api/users/carl", {"password": "carl", "tags": "management"})
    for node in cluster.nodes.values():
        eventually(lambda node=node: node.api.ask("/api/whoami", user="carl").status == 200)
        assert node.api.ask("/api/queues/shop/a", user="carl").status in (401, 404)
        forged = node.api.ask("/api/users", user="carl", leveret_user="guest", leveret_client="127.0.0.1:1")
        assert forged.status == 401


def test_metadata_survive_failures(run_cluster):
    cluster = run_cluster()
    cluster.nodes[A].api.do("PUT", "/api/users/before", {"password": "before", "tags": ""})
    for victim in cluster.names:
        cluster.nodes[victim].kill()
        node = running(cluster)[0]
        eventually(lambda: node.api.ask("/api/health/checks/metadata-store/initialized").status == 200)
        change = f"/api/users/without-{victim[0]}"
        eventually(lambda: node.api.request("PUT", change, {"password": "x", "tags": ""})[0] in (201, 204))
        cluster.nodes[victim].start_again()
        expected = on_all(cluster, lambda node: names(node, "/api/users"))
        assert f"without-{victim[0]}" in expected
    expected = ["before", "guest", "without-a", "without-b", "without-c"]
    for node in cluster.nodes.values():
        node.kill()
    # A log that was just opened knows less to be committed than has taken effect.
    alone = cluster.nodes[A]
    alone.start_again()
    until = time.monotonic() + ALONE_S
    while time.monotonic() < until:
        assert names(alone, "/api/users") == expected
    for name in (B, C):
        cluster.nodes[name].start_again()
    assert on_all(cluster, lambda node: names(node, "/api/users")) == expected


def test_minority_changes_nothing(run_cluster):
    cluster = run_cluster()
    for name in (B, C):
        cluster.nodes[name].kill()
    node = cluster.nodes[A]
    check = eventually(lambda: next(iter([
        answer for answer in [node.api.ask("/api/health/checks/ready-to-serve-clients")] if answer.status == 503]), None))
    assert "no leader" in check.json["reason"]
    status, told = node.api.request("PUT", "/api/vhosts/new", {})
    assert status == 503 and "majority" in told["reason"], (status, told)
    # Durable: a leader that is about to step down still makes transient ones.
    status, told = node.api.request("PUT", f"/api/queues/{quoted('/', 'q')}", {"durable": True})
    assert status == 503 and ("no leader" in told["reason"] or "has changed" in told["reason"]), (status, told)
    # What is there is still told.
    assert names(node, "/api/vhosts") == ["/"] and names(node, "/api/users") == ["guest"]
    assert node.api.ask(f"/api/queues/{quoted('/')}").headers["leveret-stale"] == "true"
    cluster.nodes[B].start_again()
    eventually(lambda: node.api.request("PUT", "/api/vhosts/new", {})[0] == 201)


def test_definitions_are_imported_whole(run_cluster, tmp_path):
    cluster = run_cluster()
    vhosts = [f"v{number}" for number in range(6)]
    definitions = {
        "users": [{"name": "anna", "password": "anna", "tags": ["management"]}],
        "vhosts": [{"name": vhost} for vhost in vhosts],
        "permissions": [{"user": "anna", "vhost": vhost, "configure": "", "write": "", "read": ".*"} for vhost in vhosts],
        "queues": [{"name": f"q-{vhost}", "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {}}
                   for vhost in vhosts],
        "policies": [{"vhost": vhost, "name": "p", "pattern": ".*", "definition": {"max-length": 5}} for vhost in vhosts],
        "global_parameters": [{"name": "owner", "value": "anna"}],
    }
    for node in cluster.nodes.values():
        node.api.do("POST", "/api/definitions", definitions)
    queues = on_all(cluster, lambda node: names(node, "/api/queues"))
    assert queues == [f"q-{vhost}" for vhost in vhosts]
    exported = on_all(cluster, lambda node: [
        sorted(json.dumps(one, sort_keys=True) for one in node.api.do("GET", "/api/definitions")[family])
        for family in ("users", "vhosts", "permissions", "queues", "policies", "global_parameters")])
    assert len(exported[3]) == len(vhosts)


def test_definitions_of_the_start_are_imported_once_there_is_a_leader(run_cluster, tmp_path):
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({
        "users": [{"name": "guest", "password": "guest", "tags": ["administrator"]}],
        "vhosts": [{"name": "/"}, {"name": "shop"}],
        "permissions": [{"user": "guest", "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}
                        for vhost in ("/", "shop")],
        "queues": [{"name": "q", "vhost": "shop", "durable": True, "auto_delete": False, "arguments": {}}]}))
    cluster = run_cluster(load_definitions=file)
    assert on_all(cluster, lambda node: node.api.ask("/api/queues/shop/q").status == 200)


def test_node_stops_while_it_imports(run_cluster):
    """An import waits for the leaders of new vhosts; a node ends all the same, and without a panic."""
    cluster = run_cluster()
    leader = eventually(lambda: leader_of_metadata(cluster.nodes[A]))
    vhosts = [f"v{number}" for number in range(10)]
    definitions = {
        "vhosts": [{"name": vhost} for vhost in vhosts],
        "queues": [{"name": "q", "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {}} for vhost in vhosts]}
    node = cluster.nodes[leader]

    def run():
        # The node may end without an answer.
        with contextlib.suppress(OSError, http.client.HTTPException):
            node.api.request("POST", "/api/definitions", definitions)

    importing = threading.Thread(target=run)
    importing.start()
    eventually(lambda: vhosts[-1] in names(node, "/api/vhosts"))
    # There is no leader to come.
    for name in cluster.names:
        if name != leader:
            cluster.nodes[name].kill()
    node.stop()
    importing.join()


def leader_of_metadata(node):
    """The node that leads the group of users and vhosts; None while there is none."""
    vhosts = names(node, "/api/vhosts")
    leads = [one["node"] for one in node.api.do("GET", "/api/replicas")
             if one["state"] == "leader" and one["vhost"] not in vhosts]
    return leads[0] if leads else None


@pytest.mark.tools
def test_ctl_works_on_any_node(run_cluster, pytestconfig, tmp_path):
    cluster = run_cluster()
    for name, node in cluster.nodes.items():
        ctl = tools(node, pytestconfig, tmp_path)
        letter = name[0]
        ctl.run("add_user", letter, letter)
        ctl.run("add_vhost", f"v{letter}")
        ctl.run("set_permissions", "-p", f"v{letter}", letter, ".*", ".*", ".*")
        eventually(lambda node=node, letter=letter: f"v{letter}" in names(node, "/api/vhosts"))
        ctl.run("set_policy", "-p", f"v{letter}", "p", ".*", '{"max-length": 5}')
    assert on_all(cluster, lambda node: names(node, "/api/vhosts")) == ["/", "va", "vb", "vc"]


def run_alone(cluster, name, vhosts):
    """Lets a node make vhosts before it is one of the cluster."""
    (cluster.directory / name).mkdir()
    alone = Leveret(cluster.binary, cluster.directory / name, f"nodename = {name}\n")
    for vhost in vhosts:
        alone.api.do("PUT", f"/api/vhosts/{vhost}", {})
    alone.stop()


def test_vhosts_of_lone_nodes_give_way_to_those_of_the_first_leader(make_cluster):
    """Also if their ids are the same, and if the disk fails meanwhile."""
    cluster = make_cluster()
    own = {name: ["/", f"of-{name[0]}", f"of-{name[0]}-too"] for name in cluster.names}
    for name in cluster.names:
        run_alone(cluster, name, own[name][1:])
    obstacles = [cluster.start(name).data_dir / "node.json.new" for name in cluster.names]
    for obstacle in obstacles:
        obstacle.mkdir()
    for name in cluster.names:
        eventually(lambda name=name: "do not take effect here" in cluster.log(name))
    for obstacle in obstacles:
        obstacle.rmdir()
    vhosts = on_all(cluster, lambda node: names(node, "/api/vhosts"))
    assert vhosts in own.values()
    for name, node in cluster.nodes.items():
        kept = [path for path in (node.data_dir / "vhosts").iterdir() if ".unused-" in path.name]
        assert len(kept) == (0 if own[name] == vhosts else 2)
        assert all(list(path.iterdir()) for path in kept)
        declare_once_there_is_a_leader(node, vhosts[1], name[0])
    for node in cluster.nodes.values():
        node.stop()
    for name in cluster.names:
        cluster.start(name)
    assert on_all(cluster, lambda node: names(node, "/api/vhosts")) == vhosts
    assert on_all(cluster, lambda node: names(node, f"/api/queues/{vhosts[1]}")) == ["a", "b", "c"]


@pytest.mark.parametrize("letter", "abc")
def test_vhosts_of_a_lone_node_without_queues_work_in_the_cluster(make_cluster, letter):
    """Whichever node becomes the first leader: two of three begin the replicas of "/" from nothing."""
    cluster = make_cluster()
    run_alone(cluster, next(name for name in cluster.names if name[0] == letter), ["mine"])
    for name in cluster.names:
        cluster.start(name)
    for name, node in cluster.nodes.items():
        for vhost in on_all(cluster, lambda node: names(node, "/api/vhosts")):
            declare_once_there_is_a_leader(node, vhost, name[0])
    for vhost in on_all(cluster, lambda node: names(node, "/api/vhosts")):
        path = f"/api/queues/{quoted(vhost)}"
        assert on_all(cluster, lambda node, path=path: names(node, path)) == ["a", "b", "c"]


def declare_once_there_is_a_leader(node, vhost, queue):
    path = f"/api/queues/{quoted(vhost)}/{queue}"
    eventually(lambda: node.api.ask(path, method="PUT", body={"durable": True}).status == 201)


def test_lists_over_all_vhosts_have_the_parts_of_all_leaders(run_cluster):
    cluster = run_cluster()
    for name, node in cluster.nodes.items():
        vhost = f"v{name[0]}"
        cluster.nodes[A].api.do("PUT", f"/api/vhosts/{vhost}", {})
        eventually(lambda name=name, node=node, vhost=vhost: comes_to_lead(name, node, vhost))
    for at, (name, node) in enumerate(cluster.nodes.items()):
        host, port = cluster.nodes[B].amqp
        connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, f"v{name[0]}"))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("dead", durable=True)
        channel.queue_declare("q", durable=True, arguments={
            "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
        for nth in range(3):
            # Minutes apart, so that the order does not depend on how long the publishes take.
            headers = {"x-opt-delivery-delay": 1000 * (3600 + 900 * nth + 300 * at)}
            properties = pika.BasicProperties(headers=headers, delivery_mode=2, message_id=f"{nth}{name[0]}")
            channel.basic_publish("", "q", b"", properties)
        connection.close()
    expected = [f"{nth}{letter}" for nth in range(3) for letter in "abc"]
    for node in cluster.nodes.values():
        page = node.api.do("GET", "/api/scheduled")
        assert [one["message_id"] for one in page["messages"]] == expected
        assert (page["cursor"], {"place"} & set(page["messages"][0])) == (None, set())
        found, cursor = [], ""
        while cursor is not None:
            page = node.api.do("GET", f"/api/scheduled?limit=2&cursor={cursor}")
            found += [one["message_id"] for one in page["messages"]]
            cursor = page["cursor"]
        assert found == expected
        counts = node.api.do("GET", "/api/scheduled-counts?buckets=2&bucket_ms=7200000")
        assert (counts["messages"], counts["counts"], counts["complete"]) == (9, [9, 0], True)
        targets = node.api.do("GET", "/api/dead-letter-queues")
        assert [(one["vhost"], one["name"]) for one in targets] == [(vhost, "dead") for vhost in ("va", "vb", "vc")]
        assert node.api.ask("/api/scheduled?limit=0").status == 400
