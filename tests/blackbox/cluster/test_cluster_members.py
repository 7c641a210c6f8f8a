"""Replicas that are named: `rabbitmq-queues` and RabbitMQ's endpoints choose the nodes that have a vhost."""

import pika
import pytest

from patience import eventually
from test_cluster_membership import A, B, C, has_replicas
from test_cluster_tools import leader_of, told
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

PERSISTENT = pika.BasicProperties(delivery_mode=2)
REPLICAS = "/api/queues/quorum/%2F/{}/replicas/{}"
ON = "/api/queues/quorum/replicas/on/{}/{}"
NO_MEMBER = {"error": "bad_request", "reason": "Node is not a cluster member"}


def declare(node, name, queue_type="quorum", vhost="%2F"):
    node.api.do("PUT", f"/api/queues/{vhost}/{name}", {"durable": True, "arguments": {"x-queue-type": queue_type}})


def members(node, vhost="%2F"):
    return node.api.do("GET", f"/api/vhosts/{vhost}")["members"]


def voters(node, vhost="/"):
    """The nodes that vote for a vhost, as its leader tells."""
    replicas = [one for one in node.api.do("GET", "/api/replicas") if one["vhost"] == vhost and one["group"] == "vhost"]
    return next((sorted(one["voters"]) for one in replicas if one["state"] == "leader"), [])


@pytest.fixture
def three(run_cluster, pytestconfig, tmp_path):
    """A cluster, and `rabbitmq-queues` of its first node."""
    cluster = run_cluster()
    eventually(lambda: has_replicas(cluster.nodes[A], 3))
    ctl = tools(cluster.nodes[A], pytestconfig, tmp_path)
    return cluster, lambda *words: ctl.run(*words, tool="rabbitmq-queues"), ctl


def test_members_are_removed_and_added_by_command_without_loss(three):
    cluster, queues, ctl = three
    node = cluster.nodes[A]
    declare(node, "q")
    declare(node, "classic", "classic")
    channel = pika.BlockingConnection(pika.ConnectionParameters(*node.amqp)).channel()
    channel.confirm_delivery()
    for number in range(100):
        channel.basic_publish("", "q", str(number).encode(), PERSISTENT)
    channel.connection.close()

    # The leader itself gives its replica up, and another node leads.
    first = leader_of(node)
    removed = queues("delete_member", "q", first)
    assert (removed.code, removed.err) == (0, "")
    assert f"Removing a replica of queue q on node {first}..." in removed.out and "with all its queues" in removed.out
    rest = sorted({A, B, C} - {first})
    asked = cluster.nodes[rest[0]]
    eventually(lambda: voters(asked) == members(asked) == rest)
    eventually(lambda: asked.api.do("GET", "/api/vhosts/%2F")["replicas"] == 2)
    assert queues("delete_member", "q", first).code == 0, "there is none"
    second = eventually(lambda: leader_of(asked))
    assert queues("delete_member", "q", second).code == 0
    (last,) = set(rest) - {second}
    eventually(lambda: voters(cluster.nodes[last]) == [last])
    refused = queues("delete_member", "q", last)
    assert (refused.code, refused.err.strip()) == (69, "Error:\nlast_node")
    assert queues("delete_member", "q", "nobody@h").code == 0

    # The node that is asked has no replica: it learns from the others who leads.
    eventually(lambda: leader_of(node) == last)
    for name in (first, second):
        assert queues("add_member", "q", name, "--membership", "voter").code == 0
        assert queues("add_member", "q", name).code == 0, "it has one"
    eventually(lambda: voters(cluster.nodes[last]) == sorted([A, B, C]))
    # Every node has all of it again.
    cluster.nodes[last].kill()
    eventually(lambda: leader_of(cluster.nodes[first]) in (first, second))
    found = []
    channel = pika.BlockingConnection(pika.ConnectionParameters(*cluster.nodes[first].amqp)).channel()
    while (got := channel.basic_get("q", auto_ack=True))[0]:
        found.append(int(got[2]))
    assert found == list(range(100))


def test_wrong_members_are_refused_as_in_rabbitmq(three):
    cluster, queues, _ = three
    declare(cluster.nodes[A], "q")
    declare(cluster.nodes[A], "classic", "classic")
    before = members(cluster.nodes[A])
    for words, code, text in (
        (("add_member", "q", "nobody@h"), 64, "Error: node nobody@h is not a member of the cluster"),
        (("add_member", "missing", B), 65, "queue 'missing' was not found in virtual host '/'"),
        (("add_member", "-p", "nov", "q", B), 65, "queue 'q' was not found in virtual host 'nov'"),
        (("add_member", "classic", B), 69, "{:unsupported, :rabbit_classic_queue}"),
        (("add_member", "q", B, "--membership", "bogus"), 64, "voter status 'bogus' is not recognised."),
        (("add_member", "q"), 64, "not enough arguments."),
        (("delete_member", "missing", B), 65, "queue 'missing' was not found in virtual host '/'"),
        (("delete_member", "classic", B), 69, "{:unsupported, :rabbit_classic_queue}"),
        (("grow", "nobody@h", "all"), 64, "Error: node nobody@h is not a member of the cluster"),
        (("grow", B, "bogus"), 64, "strategy 'bogus' is not recognised."),
        (("grow", B, "all", "--vhost-pattern", "("), 64, "--vhost-pattern '(' is no regular expression"),
        (("grow", B, "all", "--queue-pattern", "q"), 64, "--queue-pattern 'q' is not supported"),
        (("shrink", "nobody@h"), 69, "{:node_not_running, :nobody@h}"),
        (("transfer_leadership", "missing", B), 65, "queue 'missing' was not found in virtual host '/'"),
        (("transfer_leadership", "classic", B), 69, "Cannot transfer leadership of a non-quorum queue"),
        (("transfer_leadership", "q", "nobody@h"), 69, "unknown_member"),
    ):
        refused = queues(*words)
        assert refused.code == code and text in refused.err, (words, refused)
    assert members(cluster.nodes[A]) == before
    # A leader may move by itself between the question and the command.
    to_itself = lambda: queues("transfer_leadership", "q", eventually(lambda: leader_of(cluster.nodes[A])))
    refused = eventually(lambda: (ran := to_itself()).code and ran)
    assert refused.code == 69 and "The target node is already the leader of this queue" in refused.err, refused
    to = next(name for name in (A, B, C) if name != leader_of(cluster.nodes[A]))
    moved = eventually(lambda: (ran := queues("transfer_leadership", "q", to)).code == 0 and ran)
    assert moved.out.strip().endswith(to)
    eventually(lambda: leader_of(cluster.nodes[A]) == to)


def test_all_vhosts_grow_and_shrink(three):
    cluster, _, ctl = three
    node = cluster.nodes[A]
    node.api.do("PUT", "/api/vhosts/one", {"replicas": 1})
    node.api.do("PUT", "/api/vhosts/empty", {"replicas": 2})
    for vhost in ("one", "empty"):
        eventually(lambda vhost=vhost: leader_of(node, vhost))
    declare(node, "q", vhost="one")
    declare(node, "q")
    declare(node, "classic", "classic")
    grow = lambda *words: told(ctl, "grow", *words, tool="rabbitmq-queues")
    shrink = lambda *words: told(ctl, "shrink", *words, tool="rabbitmq-queues")
    row = lambda vhost, name, size, result="ok": {"vhost": vhost, "name": name, "size": size, "result": result}

    (only,) = members(node, "one")
    (free,) = {A, B, C} - set(members(node, "empty"))
    assert grow(free, "even") == [row("empty", "", 3)]
    to = next(name for name in (A, B, C) if name != only)
    assert grow(to, "all", "--vhost-pattern", "^emp") == []
    assert grow(to, "all") == [row("one", "q", 2)]
    assert grow(to, "all") == []
    eventually(lambda: voters(node, "one") == sorted([only, to]))

    # All vhosts but the one whose only replica the node would be.
    assert queue_rows(shrink(only)) == [row("/", "q", 2), row("empty", "", 2), row("one", "q", 1)]
    eventually(lambda: members(node, "one") == [to] and voters(cluster.nodes[to], "one") == [to])
    assert shrink(only) == []
    last = "error: the last node cannot be removed"
    assert shrink(to, "--errors-only") == [row("one", "q", 1, last)]


def queue_rows(rows):
    return sorted(rows, key=lambda row: row["vhost"])


def test_contents_of_a_vhost_on_a_node_that_is_away_are_unavailable_and_not_missing(three):
    cluster, queues, _ = three
    node = cluster.nodes[A]
    node.api.do("PUT", "/api/vhosts/one", {"replicas": 1})
    eventually(lambda: leader_of(node, "one"))
    declare(node, "q", vhost="one")
    (only,) = members(node, "one")
    asked = next(name for name in (A, B, C) if name != only)
    cluster.nodes[only].kill()
    eventually(lambda: leader_of(cluster.nodes[asked], "one") is None)
    for path in ("/api/queues/one/q", "/api/queues/one", "/api/bindings/one", "/api/queues/quorum/one/q/status"):
        refused = eventually(lambda path=path: (got := cluster.nodes[asked].api.ask(path)).status == 503 and got)
        assert refused.json["reason"] == "vhost 'one' is on other nodes, which do not answer", path
    assert members(cluster.nodes[asked], "one") == [only]


def test_members_are_changed_over_http_on_every_node(three):
    cluster, _, _ = three
    declare(cluster.nodes[A], "q")
    declare(cluster.nodes[A], "classic", "classic")
    for name in (A, B, C):
        api = cluster.nodes[name].api
        ask = lambda method, path, body=None, api=api: api.ask(path, method=method, body=body)
        eventually(lambda api=api: api.ask("/api/queues/%2F/q").status == 200)
        away = next(one for one in (A, B, C) if one != leader_of(cluster.nodes[name]))
        removed = ask("DELETE", REPLICAS.format("q", "delete"), {"node": away})
        assert removed.status == 202, removed
        assert members(cluster.nodes[name]) == sorted({A, B, C} - {away})
        assert ask("POST", REPLICAS.format("q", "add"), {"node": away}).status == 204
        eventually(lambda: voters(cluster.nodes[A]) == sorted([A, B, C]))
        assert ask("DELETE", ON.format(away, "shrink")).status == 202
        assert members(cluster.nodes[name]) == sorted({A, B, C} - {away})
        grow = {"strategy": "all", "vhost_pattern": ".*", "queue_pattern": ".*"}
        assert ask("POST", ON.format(away, "grow"), grow).status == 204
        eventually(lambda: voters(cluster.nodes[A]) == sorted([A, B, C]))

        missing = {"error": "bad_request", "reason": "[{key_missing,node}]"}
        for method, path, body, status, answer in (
            ("POST", REPLICAS.format("q", "add"), {}, 400, missing),
            ("DELETE", REPLICAS.format("q", "delete"), {}, 400, missing),
            ("POST", REPLICAS.format("q", "add"), {"node": "nobody@h"}, 400, NO_MEMBER),
            ("DELETE", REPLICAS.format("q", "delete"), {"node": "nobody@h"}, 400, NO_MEMBER),
            ("POST", REPLICAS.format("q", "add"), {"node": 7}, 400, NO_MEMBER),
            ("POST", REPLICAS.format("missing", "add"), {"node": A}, 503,
             {"error": "service_unavailable", "reason": "not_found"}),
            ("DELETE", REPLICAS.format("missing", "delete"), {"node": A}, 404, None),
            ("POST", REPLICAS.format("classic", "add"), {"node": A}, 503,
             {"error": "service_unavailable", "reason": "classic_queue_not_supported"}),
            ("POST", ON.format(A, "grow"), {"strategy": "all"}, 400,
             {"error": "bad_request", "reason": "[{key_missing,vhost_pattern},{key_missing,queue_pattern}]"}),
            ("POST", ON.format(A, "grow"), grow | {"strategy": "odd"}, 400, None),
            ("POST", ON.format(A, "grow"), grow | {"vhost_pattern": "("}, 400, None),
            ("POST", ON.format(A, "grow"), grow | {"queue_pattern": "q"}, 400, None),
            ("POST", ON.format("nobody@h", "grow"), grow, 400, NO_MEMBER),
            ("DELETE", ON.format("nobody@h", "shrink"), None, 404, None),
            ("PUT", "/api/vhosts/missing/members/" + A, None, 404, None),
            ("PUT", "/api/vhosts/%2F/members/nobody@h", None, 400, NO_MEMBER),
        ):
            got = ask(method, path, body)
            assert got.status == status and (answer is None or got.json == answer), (method, path, body, got)
        assert members(cluster.nodes[name]) == sorted([A, B, C])


@pytest.fixture
def alone(by_broker, under, pytestconfig, tmp_path):
    """A node without a cluster, and its tools."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("the tools of Leveret")
    broker = under.start()
    yield broker, tools(broker, pytestconfig, tmp_path)
    broker.stop()


def test_node_alone_is_the_only_member(alone):
    broker, ctl = alone
    name = broker.api.do("GET", "/api/overview")["node"]
    declare(broker, "q")
    queues = lambda *words: ctl.run(*words, tool="rabbitmq-queues")
    assert queues("add_member", "q", name).code == 0
    refused = queues("delete_member", "q", name)
    assert (refused.code, refused.err.strip()) == (69, "Error:\nlast_node")
    assert told(ctl, "grow", name, "all", tool="rabbitmq-queues") == []
    shrunk = told(ctl, "shrink", name, tool="rabbitmq-queues")
    assert {row["result"] for row in shrunk} == {"error: the last node cannot be removed"}
    assert broker.api.ask(ON.format(name, "shrink"), method="DELETE").status == 202


def test_peek_shows_the_message_at_a_position(alone):
    broker, ctl = alone
    declare(broker, "q")
    declare(broker, "classic", "classic")
    channel = pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp)).channel()
    channel.confirm_delivery()
    for number in range(601):
        properties = pika.BasicProperties(delivery_mode=2, headers={"a": number}) if number == 1 else PERSISTENT
        channel.basic_publish("", "q", f"{number} ".encode() + b"x" * 100, properties)
    channel.connection.close()
    peek = lambda *words: told(ctl, "peek", *words, tool="rabbitmq-queues")
    assert peek("q", "2") == {"result": "ok", "message": {
        "delivery_mode": 2, "routing_keys": ["q"], "exchange": "", "payload (max 64 bytes)": "1 " + "x" * 62,
        "header.a": 1, "header.x-delivery-count": 0}}
    # Behind the first page of the API.
    assert peek("q", "601")["message"]["payload (max 64 bytes)"].startswith("600 ")
    shown = "\n".join(ctl.do("peek", "q", "1", tool="rabbitmq-queues"))
    assert "payload (max 64 bytes)" in shown and "keys" in shown and "values" in shown
    for words, code, text in (
        (("q", "602"), 69, "Target queue does not have a message at that position"),
        (("q", "0"), 64, "position value must be a positive integer"),
        (("q", "x"), 64, "position value must be a positive integer"),
        (("classic", "1"), 69, "Cannot peek into a classic queue"),
        (("missing", "1"), 69, "Target queue was not found in virtual host '/'"),
    ):
        refused = ctl.run("peek", *words, tool="rabbitmq-queues")
        assert refused.code == code and text in refused.err, (words, refused)
