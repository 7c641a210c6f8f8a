"""A dry run of an import tells what is new, equal, replaced and kept, and changes nothing; RabbitMQ has none."""

import json
import pathlib

import pytest
from brokers import quoted
from test_ctl import tools

pytestmark = pytest.mark.better

RECORDED = pathlib.Path(__file__).parents[1] / "recorded"
FAMILIES = ("users", "vhosts", "permissions", "topic_permissions", "global_parameters", "parameters", "policies",
            "exchanges", "queues", "bindings")
CHANGES = ("new", "equal", "changed", "kept", "skipped")


@pytest.fixture
def http(under, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no dry run of an import")
    return under.shared().api


@pytest.fixture
def recorded(http, prefix):
    """What RabbitMQ has exported, under the names of the test; removed afterwards."""
    document = json.loads((RECORDED / "definitions_rabbitmq.json").read_text().replace("def-", prefix))
    yield document
    for family in ("users", "vhosts", "global_parameters"):
        for item in document[family]:
            http.request("DELETE", f"/api/{family.replace('_', '-')}/" + quoted(item["name"]))


@pytest.fixture
def vhost(http, prefix):
    name = f"{prefix}dry"
    http.do("PUT", f"/api/vhosts/{name}")
    yield name
    http.request("DELETE", f"/api/vhosts/{name}")


def dry_run(http, document, vhost=None):
    at = "/api/definitions" + (f"/{quoted(vhost)}" if vhost else "")
    answer = http.ask(at + "?dry_run=true", method="POST", body=document)
    assert answer.status == 200, answer
    return answer.json


def done(http, document, vhost=None):
    at = "/api/definitions" + (f"/{quoted(vhost)}" if vhost else "")
    assert http.ask(at, method="POST", body=document).status == 204


def counts(told, family):
    return {change: told[family][change] for change in CHANGES if told[family][change]}


def changes(told, family):
    return {(item["change"], item.get("name", item.get("user"))): {
        difference["field"]: (difference.get("before"), difference.get("after"))
        for difference in item.get("differences", [])} for item in told[family]["items"]}


def test_items_are_new_before_an_import_and_equal_after_it(http, recorded):
    recorded["users"].append({"name": recorded["users"][0]["name"] + "2", "password": "plain", "tags": ["monitoring"]})
    http.request("DELETE", "/api/users/" + quoted(recorded["users"][-1]["name"]))
    exported = http.ask("/api/definitions").json
    told = dry_run(http, recorded)
    assert list(told) == sorted(FAMILIES) or set(told) == set(FAMILIES)
    for family in FAMILIES:
        assert sum(counts(told, family).values()) == len(recorded[family]), family
    assert http.ask("/api/definitions").json == exported
    done(http, recorded)
    told = dry_run(http, recorded)
    for family in FAMILIES:
        assert set(counts(told, family)) <= {"equal", "skipped"}, (family, told[family])
    assert counts(told, "users") == {"equal": len(recorded["users"])}
    http.request("DELETE", "/api/users/" + quoted(recorded["users"][-1]["name"]))


def test_differences_are_named(http, vhost):
    def document(pattern, length, kind, **limits):
        return {
            "vhosts": [{"name": vhost, "limits": limits}],
            "policies": [{"vhost": vhost, "name": "p", "pattern": pattern, "definition": {"max-length": length}}],
            "exchanges": [{"vhost": vhost, "name": "x", "type": kind}],
            "queues": [{"vhost": vhost, "name": "q", "arguments": {"x-max-length": length}},
                       {"vhost": vhost, "name": "amq.skipped"}],
            "bindings": [{"vhost": vhost, "source": "x", "destination": "q", "destination_type": "queue",
                          "routing_key": pattern}],
        }

    done(http, document("^a", 1, "direct"))
    told = dry_run(http, document("^b", 2, "topic", **{"max-queues": 5}))
    assert changes(told, "policies") == {("changed", "p"): {"pattern": ("^a", "^b"), "definition.max-length": (1, 2)}}
    assert changes(told, "exchanges") == {("kept", "x"): {"type": ("direct", "topic")}}
    assert changes(told, "queues") == {("kept", "q"): {"arguments.x-max-length": (1, 2)}, ("skipped", "amq.skipped"): {}}
    assert changes(told, "vhosts") == {("changed", vhost): {"limits.max-queues": (None, 5)}}
    assert counts(told, "bindings") == {"new": 1}
    # They are kept indeed.
    done(http, document("^b", 2, "topic"))
    assert http.ask(f"/api/exchanges/{vhost}/x").json["type"] == "direct"


def test_passwords_are_compared_and_not_shown(http, prefix):
    name = f"{prefix}dry-user"
    user = {"name": name, "password": "one", "tags": []}
    done(http, {"users": [user]})
    try:
        assert counts(dry_run(http, {"users": [user]}), "users") == {"equal": 1}
        told = dry_run(http, {"users": [user | {"password": "other", "tags": ["management"]}]})
        assert changes(told, "users") == {("changed", name): {"password": (None, None), "tags": ([], ["management"])}}
        assert http.ask("/api/whoami", name, "other").status == 401
    finally:
        http.request("DELETE", "/api/users/" + quoted(name))


def test_type_of_a_queue_may_be_left_open(http, vhost):
    http.do("PUT", f"/api/vhosts/{vhost}", {"default_queue_type": "quorum"})
    http.do("PUT", f"/api/queues/{vhost}/q", {"durable": True})
    told = dry_run(http, {"queues": [{"name": "q"}, {"name": "q2"}]}, vhost)
    assert counts(told, "queues") == {"equal": 1, "new": 1}
    told = dry_run(http, {"queues": [{"name": "q", "type": "classic"}]}, vhost)
    assert counts(told, "queues") == {"kept": 1}


def test_export_of_a_vhost_is_equal_there(http, vhost):
    http.do("PUT", f"/api/queues/{vhost}/q", {"durable": True, "arguments": {"x-message-ttl": 5}})
    http.do("PUT", f"/api/policies/{vhost}/p", {"pattern": ".*", "definition": {"expires": 5000}})
    http.do("PUT", f"/api/operator-policies/{vhost}/o", {"pattern": ".*", "definition": {"max-length": 5}})
    http.do("POST", f"/api/bindings/{vhost}/e/amq.topic/q/q", {"routing_key": "k", "arguments": {"a": 1}})
    exported = http.ask(f"/api/definitions/{vhost}").json
    told = dry_run(http, exported, vhost)
    assert {family: counts(told, family) for family in FAMILIES if counts(told, family)} == {
        "queues": {"equal": 1}, "policies": {"equal": 1}, "parameters": {"equal": 1}, "bindings": {"equal": 1}}
    assert http.ask("/api/definitions/no-such-vhost?dry_run=true", method="POST", body={}).status == 404


def test_many_items_are_counted_and_the_first_named(http, vhost):
    told = dry_run(http, {"queues": [{"name": f"q{number}"} for number in range(1000)]}, vhost)
    assert counts(told, "queues") == {"new": 1000} and len(told["queues"]["items"]) == 20


def test_wrong_definitions_are_refused_as_by_the_import(http, vhost):
    wrong = {"queues": [{"vhost": vhost, "name": "a"}, {"vhost": vhost, "name": "b", "arguments": {"x-expires": 0}}]}
    dry = http.ask("/api/definitions?dry_run=true", method="POST", body=wrong)
    real = http.ask("/api/definitions", method="POST", body=wrong)
    assert (dry.status, dry.json) == (real.status, real.json) and dry.status == 400
    answer = http.ask("/api/definitions?dry_run=perhaps", method="POST", body={})
    assert answer.json["reason"] == "dry_run should be true or false"


def test_only_administrators_may_try_an_import(http, prefix):
    name = f"{prefix}dry-monitor"
    http.do("PUT", f"/api/users/{name}", {"password": name, "tags": "monitoring"})
    assert http.ask("/api/definitions?dry_run=true", name, method="POST", body={}).status == 401
    http.request("DELETE", f"/api/users/{name}")


@pytest.mark.tools
def test_command_tries_an_import(http, vhost, under, pytestconfig, tmp_path):
    ctl = tools(under.shared(), pytestconfig, tmp_path)
    http.do("PUT", f"/api/queues/{vhost}/kept", {"durable": True})
    document = {"queues": [{"vhost": vhost, "name": "kept", "arguments": {"x-max-length": 5}}, {"vhost": vhost, "name": "q"}]}
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(document))
    assert ctl.do("import_definitions", str(file), "--dry-run") == [
        f'Would import definitions in JSON from a file at "{file}" ...',
        "queues: 1 new, 1 kept",
        f"  new: 'q' in vhost '{vhost}'",
        f"  kept as it is: 'kept' in vhost '{vhost}' (arguments.x-max-length: none -> 5)",
    ]
    assert json.loads(ctl.run("import_definitions", str(file), "--dry-run", "--formatter", "json").out)["queues"]["new"] == 1
    assert http.ask(f"/api/queues/{vhost}/q").status == 404


@pytest.mark.tools
def test_command_imports_into_one_vhost(http, vhost, under, pytestconfig, tmp_path):
    ctl = tools(under.shared(), pytestconfig, tmp_path)
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"queues": [{"name": "q", "durable": True}], "users": [{"name": "not-taken"}]}))
    tried = ctl.do("import_definitions", str(file), "-p", vhost, "--dry-run")
    assert tried[0] == f'Would import definitions in JSON from a file at "{file}" into vhost "{vhost}" ...'
    assert tried[1:] == ["queues: 1 new", f"  new: 'q' in vhost '{vhost}'"]
    assert http.ask(f"/api/queues/{vhost}/q").status == 404
    assert ctl.run("import_definitions", str(file), "-q", "-p", vhost).out == "Definitions are imported.\n"
    assert http.ask(f"/api/queues/{vhost}/q").status == 200
    assert http.ask("/api/users/not-taken").status == 404
    assert ctl.run("import_definitions", str(file), "-p", vhost + "-nope").code != 0
