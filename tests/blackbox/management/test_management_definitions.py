"""Definitions over HTTP: what a broker exports, it and the other broker take back; all is taken or nothing.

`recorded/` holds what RabbitMQ 4.3.6 and Leveret have exported, with names that begin with `def-`.
"""

import copy
import json
import pathlib

import pika
import pytest
from brokers import quoted
from definitions import User, hash_of

RECORDED = pathlib.Path(__file__).parents[1] / "recorded"
FAMILIES = ("users", "vhosts", "permissions", "topic_permissions", "global_parameters", "parameters", "policies",
            "exchanges", "queues", "bindings")
IN_VHOST = ("parameters", "policies", "exchanges", "queues", "bindings")


def canonical(items):
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def of_test(document, prefix):
    """What of an export belongs to the test: it has a name, or is for a user or in a vhost, with the prefix."""
    def belongs(family, item):
        fields = ("vhost",) if family in IN_VHOST else ("vhost", "user", "name")
        return any(str(item.get(field, "")).startswith(prefix) for field in fields)

    return {family: canonical(item for item in document[family] if belongs(family, item)) for family in FAMILIES}


@pytest.fixture
def http(under):
    return under.shared().api


@pytest.fixture
def recorded(http, prefix):
    """`recorded(broker)`: what it has exported, under the names of the test; removed afterwards."""
    documents = []

    def recorded(broker):
        text = (RECORDED / f"definitions_{broker}.json").read_text().replace("def-", prefix)
        documents.append(json.loads(text))
        return documents[-1]

    yield recorded
    for document in documents:
        for family in ("users", "vhosts", "global_parameters"):
            for item in document[family]:
                http.request("DELETE", f"/api/{family.replace('_', '-')}/" + quoted(item["name"]))


def post(http, document, vhost=None):
    return http.ask("/api/definitions" + (f"/{quoted(vhost)}" if vhost else ""), method="POST", body=document)


@pytest.mark.better
@pytest.mark.parametrize("broker", ["rabbitmq", "leveret"])
def test_exported_definitions_are_imported_and_exported_again_by_both(http, recorded, prefix, broker, by_broker):
    """RabbitMQ leaves out exchanges that are internal."""
    document = recorded(broker)
    for _ in range(2):  # what is there already is no obstacle
        answer = post(http, document)
        assert (answer.status, answer.text) == (204, b"")
    exported = http.ask("/api/definitions").json
    expected = of_test(document, prefix)
    hides = by_broker(rabbitmq=True, leveret=False)
    expected["exchanges"] = [item for item in expected["exchanges"] if not (hides and item.get("internal"))]
    assert of_test(exported, prefix) == expected


def test_the_head_of_an_export(http):
    head = {key: value for key, value in http.ask("/api/definitions").json.items() if key not in FAMILIES}
    name = http.ask("/api/cluster-name").json["name"]
    assert head.pop("product_name") and head.pop("product_version")
    head.pop("leveret_version", None)
    assert head == {
        "rabbit_version": "4.3.6", "rabbitmq_version": "4.3.6", "rabbitmq_definition_format": "cluster",
        "original_cluster_name": name, "explanation": f"Definitions of cluster '{name}'",
    }


def test_a_vhost_alone(http, recorded, prefix):
    post(http, recorded("rabbitmq"))
    exported = http.ask("/api/definitions/" + quoted(prefix + "v")).json
    whole = of_test(http.ask("/api/definitions").json, prefix)
    for family in IN_VHOST:
        items = [{key: value for key, value in item.items() if key != "vhost"} for item in whole[family]]
        assert canonical(exported.pop(family)) == canonical(items), family
    assert exported.pop("product_name") and exported.pop("product_version")
    exported.pop("leveret_version", None)
    assert exported == {
        "rabbit_version": "4.3.6", "rabbitmq_version": "4.3.6", "rabbitmq_definition_format": "single_virtual_host",
        "original_vhost_name": prefix + "v", "explanation": f"Definitions of virtual host '{prefix}v'",
        "description": "", "limits": {}, "metadata": {"description": "", "tags": [], "default_queue_type": "classic"},
    }


def test_into_a_vhost_go_only_things_of_a_vhost(http, recorded, prefix):
    document = recorded("rabbitmq")
    post(http, {"vhosts": document["vhosts"], "users": [], "permissions": []})
    parts = {family: document[family] for family in IN_VHOST}
    stranger = {"name": prefix + "stranger", "password": "x", "tags": ""}
    answer = post(http, parts | {"users": [stranger], "vhosts": [{"name": prefix + "w"}]}, prefix + "v")
    assert answer.status == 204
    exported = of_test(http.ask("/api/definitions").json, prefix)
    assert exported["users"] == [] and [vhost["name"] for vhost in exported["vhosts"]] == [prefix + "v"]
    for family in IN_VHOST:
        assert exported[family] == canonical(document[family]), family
    answer = post(http, {}, prefix + "nope")
    assert (answer.status, answer.json) == (404, {"error": "not_found", "reason": "vhost_not_found"})


def test_existing_objects_are_kept_or_replaced(http, recorded, prefix):
    vhost = prefix + "v"
    post(http, recorded("rabbitmq"))
    change = {
        "users": [{"name": prefix + "anna", "password_hash": hash_of("new"), "tags": ["management"]}],
        "permissions": [{"user": prefix + "anna", "vhost": vhost, "configure": "", "write": "", "read": "new"}],
        "global_parameters": [{"name": prefix + "kept", "value": "new"}],
        "policies": [{"vhost": vhost, "name": "ttl", "pattern": "new", "apply-to": "all", "priority": 7,
                      "definition": {"expires": 5}}],
        "queues": [{"vhost": vhost, "name": "q", "durable": False, "auto_delete": True, "arguments": {}}],
        "exchanges": [{"vhost": vhost, "name": "x", "type": "fanout", "durable": False, "auto_delete": True,
                       "arguments": {}}],
    }
    before = of_test(http.ask("/api/definitions").json, prefix)
    assert post(http, change).status == 204
    after = of_test(http.ask("/api/definitions").json, prefix)
    assert after["queues"] == before["queues"] and after["exchanges"] == before["exchanges"]
    assert after["bindings"] == before["bindings"]
    anna = next(user for user in after["users"] if user["name"] == prefix + "anna")
    assert (anna["password_hash"], anna["tags"]) == (hash_of("new"), ["management"])
    of_anna = {item["vhost"]: item["read"] for item in after["permissions"] if item["user"] == prefix + "anna"}
    assert of_anna == {"/": "^" + prefix, vhost: "new"}
    assert after["topic_permissions"] == before["topic_permissions"]
    assert after["global_parameters"] == change["global_parameters"]
    assert change["policies"][0] in after["policies"] and len(after["policies"]) == 2


def test_a_file_to_download(http):
    answer = http.ask("/api/definitions?download=broker.json")
    assert (answer.status, answer.headers["content-disposition"]) == (200, "attachment; filename=broker.json")
    assert answer.json["rabbitmq_version"] == "4.3.6"
    for wrong in ("a%20b", "a%0d%0aX:y", "%22", "../x/y"):
        answer = http.ask(f"/api/definitions?download={wrong}")
        assert answer.status == 400, wrong


def test_a_file_in_a_form(http, recorded, prefix):
    document = json.dumps({"global_parameters": [{"name": prefix + "kept", "value": "\r\n--"}]})
    recorded("rabbitmq")
    form = f'--zz\r\nContent-Disposition: form-data; name="file"; filename="x.json"\r\n\r\n{document}\r\n--zz--\r\n'
    answer = http.ask("/api/definitions", method="POST", raw=form.encode(),
                      content_type="multipart/form-data; boundary=zz")
    assert (answer.status, answer.text) == (204, b"")
    assert http.ask("/api/global-parameters/" + quoted(prefix + "kept")).json["value"] == "\r\n--"


@pytest.mark.parametrize("tag", ["management", "policymaker", "monitoring"])
def test_only_administrators(defined, prefix, tag):
    defined(users=[User(tag, tags=(tag,))])
    for path in ("/api/definitions", "/api/definitions/%2F"):
        for method in ("GET", "POST"):
            answer = defined.client.broker.api.ask(path, user=prefix + tag, method=method, body={})
            assert answer.status == 401, (path, method)
            assert answer.json == {"error": "not_authorised", "reason": "Not administrator user"}


# --- what is wrong changes nothing


@pytest.mark.parametrize("text", [b"", b"nojson", b"[]", b"5", b"null", b'{"users": [', b'"x"', b"\xff"])
def test_definitions_must_be_an_object(http, text):
    answer = http.ask("/api/definitions", method="POST", raw=text, content_type="application/json")
    if text == b"":
        return  # RabbitMQ says 204
    assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": "failed_to_parse_json"})


V = "VHOST"
WRONG = [
    ("queues", {"vhost": V, "name": "n", "arguments": {"x-message-ttl": -1}},
     "precondition_failed: invalid arg 'x-message-ttl' for queue 'n' in vhost 'VHOST': {value_negative,-1}"),
    ("queues", {"vhost": "nope", "name": "n", "arguments": {}},
     'Please create virtual host "nope" prior to importing definitions.'),
    ("exchanges", {"vhost": V, "name": "n", "type": "nope", "arguments": {}},
     "precondition_failed: unknown exchange type 'nope'"),
    ("policies", {"vhost": V, "name": "n", "pattern": "", "priority": 0, "definition": {"expires": 0}},
     "0 is not a valid queue expiry"),
    ("parameters", {"vhost": V, "component": "operator_policy", "name": "n",
                    "value": {"pattern": "", "priority": 0, "definition": {"expires": 0}}},
     "0 is not a valid queue expiry"),
    ("bindings", {"vhost": V, "source": "amq.topic", "destination": "nope", "destination_type": "queue",
                  "routing_key": "", "arguments": {}}, "nope"),
    ("bindings", {"vhost": V, "source": "nope", "destination": "q", "destination_type": "queue",
                  "routing_key": "", "arguments": {}}, "nope"),
    ("permissions", {"vhost": V, "user": "nope", "configure": "", "write": "", "read": ""}, "nope"),
    ("topic_permissions", {"vhost": V, "user": "nope", "exchange": "x", "write": "", "read": ""}, "nope"),
]


@pytest.mark.better
@pytest.mark.parametrize("family, item, reason", WRONG)
def test_an_item_that_cannot_be_made_keeps_all_others_from_being_made(
        http, recorded, prefix, family, item, reason, by_broker):
    """In RabbitMQ what stands before it is made."""
    good = recorded("rabbitmq")
    document = copy.deepcopy(good)
    item = json.loads(json.dumps(item).replace(V, prefix + "v"))
    document[family] = [*document[family], item]
    before = of_test(http.ask("/api/definitions").json, prefix)
    answer = post(http, document)
    assert (answer.status, answer.json["error"]) == (400, "bad_request")
    assert reason.replace(V, prefix + "v") in answer.json["reason"]
    changed = of_test(http.ask("/api/definitions").json, prefix) != before
    assert changed == by_broker(rabbitmq=True, leveret=False)
    if not changed:
        assert f"({family}, item {len(document[family])})" in answer.json["reason"]


HARMLESS = {"limits", "metadata"}
NULL_IS_NONE = {"tags", "password_hash", "hashing_algorithm", "durable", "auto_delete", "arguments", "type",
                "internal", "apply-to"}


def mutations(document):
    """Every field of every family, once with each wrong type; with whether it must be refused."""
    for family in FAMILIES:
        for wrong in ({}, "x", 5, True):
            yield family, f"{family}={wrong}", {family: wrong}, True
        for wrong in (None, "x", 5, True, []):
            items = [*document[family][:1], wrong]
            yield family, f"{family}[]={wrong}", {family: items}, True
        item = document[family][0]
        for key, value in item.items():
            for wrong in (None, True, 5, -1.5, "", "x" * 300, [], [5], {}, {"x": []}):
                same_type = type(wrong) is type(value)
                sure = not same_type and key not in HARMLESS and not (family == "global_parameters" and key == "value")
                sure = sure and not (wrong is None and key in NULL_IS_NONE)
                sure = sure and not (key == "tags" and isinstance(wrong, str))
                sure = sure and not (key == "arguments" and wrong == [])
                sure = sure and not (key == "priority" and wrong == -1.5)
                sure = sure and not (key == "priority" and wrong == 5)
                changed = [item | {key: wrong}, *document[family][1:]]
                yield family, f"{family}.{key}={str(wrong)[:9]}", {family: changed}, sure
        for key in item:
            less = {k: v for k, v in item.items() if k != key}
            yield family, f"{family} without {key}", {family: [less, *document[family][1:]]}, False


@pytest.mark.better
def test_wrong_types_anywhere_are_named_and_nothing_is_applied(http, recorded, prefix, by_broker):
    """RabbitMQ answers many of these with 500, takes others, and applies what stands before."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("what RabbitMQ does with them leaves things behind")
    good = recorded("rabbitmq")
    good["users"].reverse()
    before = http.ask("/api/definitions").json
    refused = 0
    for family, what, change, must_be_refused in mutations(good):
        answer = post(http, good | change)
        assert answer.status in (200, 204, 400), what
        if answer.status == 400:
            assert answer.json["error"] == "bad_request" and family in answer.json["reason"], (what, answer.json)
            assert http.ask("/api/definitions").json == before, what
            refused += 1
        else:
            assert not must_be_refused, what
            break_up(http, before)
    assert refused > 400


def break_up(http, before):
    """Nothing can be removed that definitions have made, so that what is there now counts."""
    before.clear()
    before.update(http.ask("/api/definitions").json)


def test_importer_may_use_the_vhosts_that_the_import_makes(http, under, prefix):
    """As the user who makes a vhost by a PUT. Vhosts that were there, and permissions of the definitions, stay as they are."""
    made, known, given = (f"{prefix}-{name}" for name in ("made", "known", "given"))
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    nothing = {"user": "guest", "vhost": given, "configure": "", "write": "", "read": ""}
    try:
        assert http.ask(f"/api/vhosts/{known}", method="PUT").status == 201
        assert http.ask(f"/api/permissions/{known}/guest", method="DELETE").status == 204
        vhosts = [{"name": name} for name in (made, known, given)]
        assert post(http, {"vhosts": vhosts, "permissions": [nothing]}).status == 204
        rows = {row["vhost"]: row for row in http.ask("/api/users/guest/permissions").json}
        assert rows[made] == {"user": "guest", "vhost": made} | everything
        assert known not in rows and rows[given] == nothing
        host, port = under.shared().amqp
        pika.BlockingConnection(pika.ConnectionParameters(host, port, made)).close()
    finally:
        for vhost in (made, known, given):
            http.request("DELETE", f"/api/vhosts/{vhost}")


@pytest.mark.better
def test_a_password_of_leveret_lets_its_user_in_elsewhere(under, by_broker):
    """RabbitMQ takes the user, who cannot log in before he gets a new password."""
    if by_broker(rabbitmq=True, leveret=False):
        return
    first, second = under.start(), under.start()
    try:
        user = {"name": "anna", "password": "anna", "tags": ["management"]}
        assert post(first.api, {"users": [user]}).status == 204
        exported = first.api.ask("/api/definitions").json
        assert [u["hashing_algorithm"] for u in exported["users"]] == ["argon2id", "argon2id"]
        assert post(second.api, exported).status == 204
        assert second.api.ask("/api/whoami", user="anna").status == 200
        assert second.api.ask("/api/whoami", user="anna", password="x").status == 401
        # The list of users names another algorithm, and has the same hash.
        [listed] = [one for one in first.api.ask("/api/users").json if one["name"] == "anna"]
        assert listed["hashing_algorithm"] == "rabbit_password_hashing_sha256"
        assert post(second.api, {"users": [listed | {"name": "bea"}]}).status == 204
        assert second.api.ask("/api/whoami", user="bea", password="anna").status == 200
        hashes = {u["password_hash"] for u in second.api.ask("/api/definitions").json["users"] if u["name"] != "guest"}
        assert hashes == {listed["password_hash"]}
    finally:
        first.stop()
        second.stop()


@pytest.mark.better
def test_import_survives_a_kill(under, prefix, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        return
    text = (RECORDED / "definitions_leveret.json").read_text()
    broker = under.start()
    try:
        assert post(broker.api, json.loads(text)).status == 204
        before = broker.api.ask("/api/definitions").json
        broker.kill_and_start_again()
        after = broker.api.ask("/api/definitions").json
        lasting = {"queues": [q for q in before["queues"] if q["durable"]],
                   "exchanges": [x for x in before["exchanges"] if x["durable"]],
                   "bindings": [b for b in before["bindings"] if b["source"] != "h"]}
        for family in FAMILIES:
            assert canonical(after[family]) == canonical(lasting.get(family, before[family])), family
    finally:
        broker.stop()
