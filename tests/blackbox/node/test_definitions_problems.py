"""Definitions of a RabbitMQ that has what Leveret does not: all problems at once, and the way to leave such items out."""

import json

import pytest
from brokers import quoted
from patience import eventually
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

NAMED_MAX = 50  # IMPORT_ITEMS_NAMED_MAX


@pytest.fixture
def http(under, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has streams, and says the first problem only")
    return under.shared().api


@pytest.fixture
def ctl(http, under, pytestconfig, tmp_path):
    return tools(under.shared(), pytestconfig, tmp_path)


@pytest.fixture
def vhost(http, prefix):
    name = f"{prefix}moved"
    yield name
    http.request("DELETE", f"/api/vhosts/{name}")


def binding(vhost, source, destination, kind="queue"):
    return {"vhost": vhost, "source": source, "destination": destination, "destination_type": kind, "routing_key": "k",
            "arguments": {}}


def rich(vhost):
    """What a RabbitMQ with plugins exports."""
    return {
        "vhosts": [{"name": vhost, "metadata": {"description": "", "tags": [], "default_queue_type": "stream"}}],
        "policies": [
            {"vhost": vhost, "name": "mirrored", "pattern": "^q", "definition": {"ha-mode": "all", "max-length": 7}},
            {"vhost": vhost, "name": "followed", "pattern": "^q", "definition": {"federation-upstream-set": "all"}},
        ],
        "parameters": [
            {"vhost": vhost, "component": "shovel", "name": "keep", "value": {"src-protocol": "amqp091"}},
            {"vhost": vhost, "component": "federation-upstream", "name": "up", "value": {"uri": "amqp://x"}},
        ],
        "exchanges": [{"vhost": vhost, "name": "x", "type": "topic"}, {"vhost": vhost, "name": "recent", "type": "x-recent-history"}],
        "queues": [
            {"vhost": vhost, "name": "q", "type": "quorum"},
            {"vhost": vhost, "name": "s", "type": "stream", "arguments": {"x-queue-type": "stream"}},
        ],
        "bindings": [binding(vhost, "x", "q"), binding(vhost, "x", "s"), binding(vhost, "recent", "q"),
                     binding(vhost, "x", "recent", "exchange")],
    }


def names(items):
    return [(item["family"], item.get("name") or item["source"] + " " + item["destination"]) for item in items]


LACKS = [("vhosts", "VHOST"), ("policies", "mirrored"), ("policies", "followed"), ("exchanges", "recent"), ("queues", "s")]
LOOSE = [("bindings", "x s"), ("bindings", "recent q"), ("bindings", "x recent")]
PARAMETERS = [("parameters", "keep"), ("parameters", "up")]


def import_(http, document, query=""):
    return http.ask("/api/definitions" + query, method="POST", body=document)


def test_all_problems_are_told_at_once_and_nothing_is_imported(http, vhost, prefix):
    before = http.ask("/api/definitions").json
    document = rich(vhost)
    document["queues"].append({"vhost": vhost, "name": "wrong", "arguments": {"x-max-length": -1}})
    document["users"] = [{"name": prefix + "u", "password_hash": "AAAA"}]
    document["permissions"] = [{"user": prefix + "u", "vhost": vhost, "configure": "", "write": "", "read": ""}]
    expected = [("users", prefix + "u"), ("vhosts", vhost)] + LACKS[1:] + [("queues", "wrong")] + LOOSE
    for query in ("", "?dry_run=true"):
        answer = import_(http, document, query)
        assert (answer.status, answer.json["error"]) == (400, "bad_request")
        problems = answer.json["problems"]
        assert sorted(names(problems)) == sorted(expected) and answer.json["problems_total"] == len(expected)
        assert all(problem["reason"] in answer.json["reason"] for problem in problems)
    [stream] = [problem for problem in problems if problem.get("name") == "s"]
    assert stream == {"family": "queues", "item": 2, "vhost": vhost, "name": "s", "unsupported": True, "reason": stream["reason"]}
    assert "stream" in stream["reason"]
    assert {problem["name"] for problem in problems if problem["unsupported"]} == {vhost, "mirrored", "followed", "recent", "s"}
    assert http.ask("/api/definitions").json == before


def test_items_that_leveret_does_not_have_are_left_out_and_listed(http, vhost):
    document = rich(vhost)
    tried = import_(http, document, "?skip_unsupported=true&dry_run=true").json
    assert tried["queues"]["skipped"] == 1 and tried["bindings"]["skipped"] == 3 and tried["parameters"]["skipped"] == 2
    [mirrored] = [item for item in tried["policies"]["items"] if item["name"] == "mirrored"]
    assert (mirrored["change"], mirrored["reason"]) == ("new", "Leveret has no policy keys 'ha-mode'")
    assert http.ask(f"/api/vhosts/{vhost}").status == 404
    answer = import_(http, document, "?skip_unsupported=true")
    assert answer.status == 200
    expected = [(family, vhost if name == "VHOST" else name) for family, name in LACKS + PARAMETERS + LOOSE]
    assert sorted(names(answer.json["left_out"])) == sorted(expected)
    assert answer.json["left_out_total"] == len(expected)
    reasons = {item["name"]: item["reason"] for item in answer.json["left_out"] if "name" in item}
    assert reasons["s"] == "Leveret has no queues of type 'stream'"
    assert reasons["keep"] == "Leveret has no shovels"
    assert [queue["name"] for queue in http.ask(f"/api/queues/{vhost}").json] == ["q"]
    assert http.ask(f"/api/policies/{vhost}/mirrored").json["definition"] == {"max-length": 7}
    assert http.ask(f"/api/policies/{vhost}/followed").status == 404
    bound = http.ask(f"/api/exchanges/{vhost}/x/bindings/source").json
    assert [one["destination"] for one in bound] == ["q"]


def test_wrong_items_are_not_left_out(http, vhost):
    document = rich(vhost)
    document["queues"][0]["arguments"] = {"x-max-length": -1}
    answer = import_(http, document, "?skip_unsupported=true")
    # The binding to the wrong queue is no problem of its own: it goes when the queue does.
    assert answer.status == 400 and names(answer.json["problems"]) == [("queues", "q")]
    assert http.ask(f"/api/vhosts/{vhost}").status == 404
    answer = import_(http, document, "?skip_unsupported=perhaps")
    assert (answer.status, answer.json["reason"]) == (400, "skip_unsupported should be true or false")


def test_number_of_named_problems_is_limited(http, vhost):
    http.do("PUT", f"/api/vhosts/{vhost}")
    many = [{"vhost": vhost, "name": f"s{at}", "type": "stream"} for at in range(NAMED_MAX + 3)]
    answer = import_(http, {"queues": many})
    assert (len(answer.json["problems"]), answer.json["problems_total"]) == (NAMED_MAX, NAMED_MAX + 3)
    assert answer.json["reason"].endswith("; and 3 more")


def test_shovels_and_federation_are_told_without_an_option(http, vhost, ctl, tmp_path):
    http.do("PUT", f"/api/vhosts/{vhost}")
    document = {"parameters": rich(vhost)["parameters"], "queues": [{"vhost": vhost, "name": "q"}]}
    answer = import_(http, document)
    assert answer.status == 200 and names(answer.json["left_out"]) == PARAMETERS
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(document))
    ran = ctl.run("import_definitions", "-q", str(file))
    assert (ran.code, ran.out) == (0, "Definitions are imported.\n")
    assert ran.err.splitlines() == [
        "Warning: 2 items of the definitions are not, or not completely, imported:",
        f"  parameters: 'shovel' 'keep' in vhost '{vhost}' (Leveret has no shovels)",
        f"  parameters: 'federation-upstream' 'up' in vhost '{vhost}' (Leveret follows no other broker (federation))",
    ]
    told = json.loads(ctl.run("import_definitions", str(file), "--formatter", "json").out)
    assert (told["result"], names(told["left_out"])) == ("ok", PARAMETERS)
    assert import_(http, {"queues": document["queues"]}).status == 204
    answer = http.ask("/api/definitions/" + quoted(vhost), method="POST", body=document)
    assert answer.status == 200 and {item["vhost"] for item in answer.json["left_out"]} == {vhost}


def test_command_tells_all_problems_and_leaves_out_what_is_not_supported(http, vhost, ctl, tmp_path):
    http.do("PUT", f"/api/vhosts/{vhost}")
    document = rich(vhost) | {"vhosts": []}
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(document))
    ran = ctl.run("import_definitions", "-q", str(file))
    lines = ran.err.splitlines()
    assert (ran.code, ran.out, lines[0]) == (69, "", "Error:")
    assert lines[1] == "7 items of the definitions cannot be imported, so nothing is:"
    assert any(line.startswith(f"  queues, item 2: 's' in vhost '{vhost}' (") for line in lines)
    assert any(line.startswith("  bindings, item 2: from 'x' to 's' with key 'k'") for line in lines)
    assert lines[-1] == "--skip-unsupported leaves out what Leveret does not have."
    ran = ctl.run("import_definitions", "-q", "--skip-unsupported", "--dry-run", str(file))
    assert f"  skipped: 's' in vhost '{vhost}' (Leveret has no queues of type 'stream')" in ran.out.splitlines()
    assert http.ask(f"/api/queues/{vhost}").json == []
    ran = ctl.run("import_definitions", "-q", "--skip-unsupported", str(file))
    assert (ran.code, ran.out) == (0, "Definitions are imported.\n")
    assert f"  queues: 's' in vhost '{vhost}' (Leveret has no queues of type 'stream')" in ran.err.splitlines()
    assert [queue["name"] for queue in http.ask(f"/api/queues/{vhost}").json] == ["q"]


def test_items_that_are_left_out_are_in_the_log(http, vhost, under):
    broker = under.start()
    try:
        assert import_(broker.api, rich(vhost), "?skip_unsupported=true").status == 200
        parts = ('"name":"s"', "Leveret has no queues of type 'stream'")
        eventually(lambda: any(all(part in line.replace("\\", "") for part in parts) for line in broker.log), what="the log")
    finally:
        broker.stop()
