"""Definitions, lists and the dead-letter map of a cluster whose vhosts are each on one node: whole on every node."""

import collections
import threading

import pytest

from brokers import Leveret
from patience import eventually

pytestmark = [pytest.mark.better]

VHOSTS = [f"v{number}" for number in range(6)]
FAMILIES = ("users", "vhosts", "permissions", "parameters", "policies", "exchanges", "queues", "bindings")
LISTS = ("bindings", "policies", "operator-policies", "parameters", "parameters/operator_policy")


@pytest.fixture
def cluster(run_cluster):
    """Three nodes, and vhosts that are on one of them each."""
    cluster = run_cluster()
    spread(cluster)
    return cluster


def spread(cluster):
    """Makes vhosts that are on one node each."""
    node = any_node(cluster)
    for vhost in VHOSTS:
        path = f"/api/vhosts/{vhost}"
        eventually(lambda path=path: node.api.request("PUT", path, {"replicas": 1})[0] in (201, 204))
        for one in cluster.nodes.values():
            eventually(lambda path=path, one=one: has_one_place(one, path))
    # Each node has some.
    assert len(set(leaders(node).values())) == 3


def has_one_place(node, path):
    """Whether a node knows a vhost, and the node that has it."""
    status, vhost = node.api.request("GET", path)
    return status == 200 and len(vhost["members"]) == 1 and vhost["leader"]


def any_node(cluster):
    return next(iter(cluster.nodes.values()))


def leaders(node):
    return {vhost: node.api.do("GET", f"/api/vhosts/{vhost}")["leader"] for vhost in VHOSTS}


def fill(cluster):
    """Dead-letter topologies with and without faults, policies and limits, declared by way of all nodes."""
    nodes = list(cluster.nodes.values())
    for at, vhost in enumerate(VHOSTS):
        api = nodes[at % 3].api
        api.do("PUT", f"/api/exchanges/{vhost}/dlx", {"type": "fanout", "durable": True})
        for queue in ("dead", "other"):
            api.do("PUT", f"/api/queues/{vhost}/{queue}", {"durable": True})
            api.do("POST", f"/api/bindings/{vhost}/e/dlx/q/{queue}", {})
        for number in range(at + 1):
            exchange = "missing" if number % 3 == 2 else "dlx"
            arguments = {"x-dead-letter-exchange": exchange, "x-message-ttl": 1000 * number}
            api.do("PUT", f"/api/queues/{vhost}/q{number}", {"durable": True, "arguments": arguments})
        api.do("PUT", f"/api/queues/{vhost}/loop", {"durable": True, "arguments": {
            "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "loop", "x-max-length": 5}})
        api.do("PUT", f"/api/queues/{vhost}/retry", {"durable": True, "arguments": {
            "x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": 1000}})
        api.do("PUT", f"/api/policies/{vhost}/p", {"pattern": "^q", "definition": {"max-length": at + 1}})
        api.do("PUT", f"/api/operator-policies/{vhost}/o", {"pattern": "^q", "definition": {"max-length-bytes": 1000}})
        api.do("PUT", f"/api/vhost-limits/{vhost}/max-queues", {"value": 100 + at})
    eventually(lambda: all(defined(node) == defined(nodes[0]) for node in nodes), what="the same contents on all nodes")


def defined(node):
    """The definitions that a node tells, in an order of their own."""
    definitions = node.api.do("GET", "/api/definitions")
    return [sorted(definitions[family], key=str) for family in FAMILIES]


@pytest.fixture(scope="module")
def both(lasting_cluster):
    """A cluster, and a node of its own with everything that the cluster has, from the cluster's definitions."""
    spread(lasting_cluster)
    fill(lasting_cluster)
    folder = lasting_cluster.directory / "alone"
    folder.mkdir()
    alone = Leveret(lasting_cluster.binary, folder, "nodename = alone@127.0.0.1\n")
    alone.api.do("POST", "/api/definitions", any_node(lasting_cluster).api.do("GET", "/api/definitions"))
    yield lasting_cluster, alone
    alone.stop()


@pytest.fixture
def filled(both, by_broker):  # noqa: ARG001 - RabbitMQ has no such clusters
    """The cluster, which tests only look at."""
    return both[0]


@pytest.fixture
def alone(both):
    """The node, the same."""
    return both[1]


def without_rates(value):
    """What does not change between two reads. The name of the node is that of a cluster by default."""
    if isinstance(value, dict):
        return {name: without_rates(one) for name, one in value.items() if "rate" not in name}
    return [without_rates(one) for one in value] if isinstance(value, list) else value


def test_contents_of_all_vhosts_are_those_of_a_node_that_has_them_all(filled, alone):
    expected = alone.api.do("GET", "/api/definitions")
    assert {queue["vhost"] for queue in expected["queues"]} == set(VHOSTS)
    for node in filled.nodes.values():
        exported = node.api.do("GET", "/api/definitions")
        for family in FAMILIES:
            assert exported[family] == expected[family], family
        for path in LISTS:
            listed = [without_rates(item) for item in node.api.do("GET", f"/api/{path}")]
            wanted = [without_rates(item) for item in alone.api.do("GET", f"/api/{path}")]
            assert sorted(listed, key=str) == sorted(wanted, key=str), path
        assert node.api.do("GET", "/api/policies?page=2&page_size=4&sort=vhost")["filtered_count"] == len(VHOSTS)
    file = any_node(filled).api.ask("/api/definitions?download=all.json")
    assert file.headers["content-disposition"] == "attachment; filename=all.json"


@pytest.mark.parametrize("query", (
    "sort=name", "sort=name&sort_reverse=true", "page=1&page_size=4", "page=2&page_size=4&sort=name",
    "page=2&page_size=5&sort=name&sort_reverse=true", "page=1&page_size=500&name=d", "page=2&page_size=3&name=D&sort=vhost"))
def test_lists_of_all_nodes_are_in_the_order_of_a_node_that_has_them_all(filled, alone, query):
    """Each node sends its rows up to the end of the page, and not more columns than are needed."""
    for path in ("queues", "exchanges"):
        target = f"/api/{path}?{query}&columns=vhost,name,durable"
        expected = alone.api.do("GET", target)
        rows = expected["items"] if "page" in query else expected
        assert all(set(row) == {"vhost", "name", "durable"} for row in rows) and rows
        for node in filled.nodes.values():
            found = node.api.do("GET", target)
            # Those of the default vhost, which all nodes have, too.
            assert found == expected, (path, node.api)
    behind = [one.api.request("GET", "/api/queues?page=99&page_size=50")[0] for one in (alone, *filled.nodes.values())]
    assert set(behind) == {400}



@pytest.mark.parametrize("query", (
    "", "page_size=5", "page=3&page_size=5", "group=true", "has_warning=true&page_size=3&page=2", "name=q1", "name=dlx&group=true",
    "sort=from_queue&sort_reverse=true&page=2&page_size=7"))
def test_dead_letter_map_is_that_of_a_node_that_has_all_vhosts(filled, alone, query):
    expected = without_rates(alone.api.do("GET", f"/api/dead-letter-map?{query}"))
    assert expected["edges"] and expected["queues"]
    for node in filled.nodes.values():
        found = without_rates(node.api.do("GET", f"/api/dead-letter-map?{query}"))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert found[name] == value, name


def test_dead_letter_map_has_no_page_behind_the_last(filled, alone):
    texts = [broker.api.ask("/api/dead-letter-map?page=9&page_size=50") for broker in (alone, *filled.nodes.values())]
    assert {(text.status, text.json["error"], text.json["reason"]) for text in texts} == {
        (400, "page_out_of_range", texts[0].json["reason"])}


def counts_by_kind(findings):
    counts = {}
    for finding in findings:
        counts[finding["kind"]] = counts.get(finding["kind"], 0) + finding["count"]
    return counts


def test_findings_are_about_the_vhosts_of_all_nodes(filled, alone):
    kind = "dead_letters_without_route"
    expected = counts_by_kind(alone.api.do("GET", "/api/health/findings")["findings"])[kind]
    for node in filled.nodes.values():
        told = node.api.do("GET", "/api/health/findings")
        assert counts_by_kind(told["findings"])[kind] == expected and told["includes_node"]
        severities = [("error", "warning", "info").index(finding["severity"]) for finding in told["findings"]]
        assert severities == sorted(severities) and told["status"] == "warning"
        failed = node.api.ask("/api/health/checks/findings")
        assert failed.status == 503 and failed.json["status"] == "failed" and failed.json["reason"]
        assert counts_by_kind(failed.json["findings"])[kind] == expected
        assert node.api.ask("/api/health/checks/findings/error").json == {"status": "ok"}
        assert node.api.ask("/api/health/checks/findings/odd").status == 400


def binding(vhost, source, queue):
    return {"vhost": vhost, "source": source, "destination": queue, "destination_type": "queue", "routing_key": "k",
            "arguments": {}}


def queue_of(vhost, name, durable=True):
    return {"vhost": vhost, "name": name, "durable": durable, "auto_delete": False, "arguments": {}}


def test_import_is_compared_with_the_contents_of_all_nodes(cluster):
    fill(cluster)
    for at, node in enumerate(cluster.nodes.values()):
        definitions = {
            "queues": [queue_of(vhost, name) for vhost in VHOSTS for name in ("dead", f"new-{at}")]
                      + [queue_of(vhost, "other", durable=False) for vhost in VHOSTS],
            "bindings": [binding(vhost, "dlx", f"new-{at}") for vhost in VHOSTS],
            "policies": [{"vhost": vhost, "name": "p", "pattern": "^q", "definition": {"max-length": 50 + at}} for vhost in VHOSTS]}
        told = node.api.do("POST", "/api/definitions?dry_run=true", definitions)
        counts = {name: {kind: told[name][kind] for kind in ("new", "equal", "changed", "kept")} for name in definitions}
        every = len(VHOSTS)
        assert counts["queues"] == {"new": every, "equal": every, "changed": 0, "kept": every}
        assert counts["bindings"] == {"new": every, "equal": 0, "changed": 0, "kept": 0}
        assert counts["policies"] == {"new": 0, "equal": 0, "changed": every, "kept": 0}
        [kept] = {item["differences"][0]["field"] for item in told["queues"]["items"] if item["change"] == "kept"}
        assert kept == "durable" and len(told["queues"]["items"]) == 2 * every
        node.api.do("POST", "/api/definitions", definitions)
        told = node.api.do("POST", "/api/definitions?dry_run=true", definitions)
        assert told["queues"]["new"] == told["bindings"]["new"] == told["policies"]["changed"] == 0


def test_import_that_one_leader_refuses_changes_nothing(cluster):
    for node in cluster.nodes.values():
        definitions = {
            "users": [{"name": "anna", "password": "anna", "tags": []}],
            "queues": [queue_of(vhost, "q") for vhost in VHOSTS],
            "bindings": [binding(VHOSTS[-1], "missing", "q")]}
        refused = node.api.ask("/api/definitions", method="POST", body=definitions)
        assert refused.status == 400 and "no exchange 'missing' in vhost 'v5'" in refused.json["reason"]
        assert node.api.ask("/api/users/anna").status == 404
        assert node.api.do("GET", "/api/queues") == []


def test_import_tells_the_problems_of_all_leaders_and_what_each_leaves_out(cluster):
    for at, node in enumerate(cluster.nodes.values()):
        streams = [queue_of(vhost, f"s-{at}") | {"type": "stream"} for vhost in VHOSTS]
        shovels = [{"vhost": vhost, "component": "shovel", "name": "keep", "value": {}} for vhost in VHOSTS]
        definitions = {
            "queues": streams + [queue_of(vhost, f"q-{at}") for vhost in VHOSTS],
            "bindings": [binding(vhost, "amq.topic", f"s-{at}") for vhost in VHOSTS], "parameters": shovels}
        refused = node.api.ask("/api/definitions", method="POST", body=definitions)
        assert (refused.status, refused.json["problems_total"]) == (400, 2 * len(VHOSTS))
        problems = {(one["family"], one["vhost"]) for one in refused.json["problems"]}
        assert problems == {(family, vhost) for family in ("queues", "bindings") for vhost in VHOSTS}
        done = node.api.ask("/api/definitions?skip_unsupported=true", method="POST", body=definitions)
        assert (done.status, done.json["left_out_total"]) == (200, 3 * len(VHOSTS))
        left_out = {(one["family"], one["vhost"]) for one in done.json["left_out"]}
        assert left_out == problems | {("parameters", vhost) for vhost in VHOSTS}
        told = node.api.do("POST", "/api/definitions?dry_run=true&skip_unsupported=true", definitions)
        assert told["queues"]["skipped"] == told["parameters"]["skipped"] == len(VHOSTS)
        assert told["queues"]["new"] == 0


def test_limits_in_definitions_of_a_vhost_reach_the_node_that_leads_users_and_vhosts(cluster):
    fill(cluster)
    for at, node in enumerate(cluster.nodes.values()):
        for vhost in VHOSTS:
            definitions = node.api.do("GET", f"/api/definitions/{vhost}")
            [limits] = [one for one in definitions["parameters"] if one["component"] == "vhost-limits"]
            limits["value"] = {"max-queues": 200 + at}
            definitions["queues"].append({"name": f"new-{at}", "durable": True, "auto_delete": False, "arguments": {}})
            node.api.do("POST", f"/api/definitions/{vhost}", definitions)
            wanted = [{"vhost": vhost, "value": {"max-queues": 200 + at}}]
            eventually(lambda: node.api.do("GET", f"/api/vhost-limits/{vhost}") == wanted)
            assert node.api.ask(f"/api/queues/{vhost}/new-{at}").status == 200


def test_definitions_without_those_of_a_lost_node_are_refused(cluster):
    fill(cluster)
    leads = leaders(any_node(cluster))
    [lost, *kept] = cluster.nodes
    cluster.nodes[lost].kill()
    missing = sorted(vhost for vhost, leader in leads.items() if leader == lost)
    for name in kept:
        api = cluster.nodes[name].api
        refused = eventually(lambda api=api: answer_if(api.ask("/api/definitions"), 503))
        assert refused.json["error"] == "unavailable"
        assert f"the definitions of vhost '{missing[0]}' are on other nodes, which do not answer" in refused.json["reason"]
        at_hand = next(vhost for vhost in VHOSTS if vhost not in missing)
        assert api.do("GET", f"/api/definitions/{at_hand}")["queues"]
    cluster.nodes[lost].start_again()
    for name in kept:
        api = cluster.nodes[name].api
        exported = eventually(lambda api=api: answer_if(api.ask("/api/definitions"), 200))
        assert {queue["vhost"] for queue in exported.json["queues"]} == set(VHOSTS)


def answer_if(answer, status):
    return answer if answer.status == status else None


def test_contents_are_never_missing_while_leads_and_replicas_move(run_cluster):
    """A node that has just given a vhost up looks empty: it must not answer for it, nor a list of definitions lack it."""
    cluster = run_cluster()
    names, nodes = sorted(cluster.nodes), cluster.nodes
    vhosts = ["%2F", "other"]
    first = nodes[names[0]].api
    eventually(lambda: first.request("PUT", "/api/vhosts/other")[0] in (201, 204))
    for vhost in vhosts:
        eventually(lambda vhost=vhost: first.request("PUT", f"/api/queues/{vhost}/q", {"durable": True})[0] in (201, 204))
        for node in nodes.values():
            eventually(lambda node=node, vhost=vhost: node.api.request("GET", f"/api/queues/{vhost}/q")[0] == 200)
    missed, asked, ends = [], collections.Counter(), threading.Event()

    def ask(node, path, has_it):
        while not ends.is_set():
            status, answer = node.api.request("GET", path)
            asked[path] += 1
            if status not in (200, 503) or status == 200 and not has_it(answer):
                missed.append((path, status, answer))

    def is_complete(definitions):
        return {queue["vhost"] for queue in definitions["queues"]} == {"/", "other"}

    askers = [threading.Thread(target=ask, args=(node, *what)) for node in nodes.values() for what in (
        ("/api/queues/%2F/q", lambda queue: queue["name"] == "q"), ("/api/definitions", is_complete))]
    for asker in askers:
        asker.start()
    try:
        for turn in range(6):
            for vhost in vhosts:
                target = names[turn % 3]
                # The lead may not be where it was a moment ago.
                nodes[target].api.request("POST", f"/api/vhosts/{vhost}/leader", {"node": target})
            member = f"/api/vhosts/%2F/members/{target}"
            for method in ("DELETE", "PUT"):
                eventually(lambda method=method, member=member: first.request(method, member)[0] == 204)
    finally:
        ends.set()
        for asker in askers:
            asker.join()
    assert not missed, (len(missed), asked, missed[:3])
