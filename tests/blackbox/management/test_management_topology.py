"""The management API: queues, exchanges and bindings are declared, bound and deleted."""

import pytest

import expectations as want
from brokers import quoted
from definitions import User
from field_table import Wire

NOT_FOUND = (404, {"error": "Object Not Found", "reason": "Not Found"})
NO_VHOST = (404, {"error": "not_found", "reason": "vhost_not_found"})
NO_ENTRY = (404, {"error": "not_found", "reason": "Not Found"})
REFUSED = (401, {"error": "not_authorised", "reason": "Access refused."})
NOT_ADMINISTRATOR = (401, {"error": "not_authorised", "reason": "Not administrator user"})


def bad(reason):
    return (400, {"error": "bad_request", "reason": reason})


class Http:
    """The API as one user sees it. An answer is its status and what it says, None for nothing."""

    def __init__(self, api, user="guest"):
        self.api, self.user = api, user

    def __call__(self, method, *path, body=None, raw=None, query=""):
        answer = self.api.ask("/api/" + quoted(*path) + query, user=self.user, method=method, body=body, raw=raw)
        return answer.status, answer.json if answer.text else None

    def put(self, *path, **body):
        return self("PUT", *path, body=body)

    def delete(self, *path, query=""):
        return self("DELETE", *path, query=query)

    def get(self, *path, query=""):
        status, answer = self("GET", *path, query=query)
        assert status == 200, answer
        return answer


@pytest.fixture
def http(under):
    """The API of the shared broker."""
    return Http(under.shared().api)


@pytest.fixture
def q(client):
    """The name of a queue that is removed afterwards."""
    client.queues.append(client.fresh_name("q"))
    return client.queues[-1]


@pytest.fixture
def x(client):
    """The name of an exchange that is removed afterwards."""
    client.exchanges.append(client.fresh_name("x"))
    return client.exchanges[-1]


# --- queues


def test_a_queue_is_made_once(http, q):
    assert http.put("queues", "/", q, durable=True, auto_delete=False) == (201, None)
    assert http.put("queues", "/", q, durable=True) == (204, None)
    other = bad(want.inequivalent("durable", q, "false", "true"))
    assert http.put("queues", "/", q, durable=False) == other
    assert http.put("queues", "/", q) == other
    assert http("PUT", "queues", "/", q) == other
    assert http.get("queues", "/", q)["durable"] is True
    assert http.delete("queues", "/", q) == (204, None)
    assert http.delete("queues", "/", q) == NOT_FOUND


def test_clients_have_the_queue_and_its_arguments(http, ch, q):
    arguments = {"x-message-ttl": 60000, "x-max-length": 3}
    assert http.put("queues", "/", q, durable=True, arguments=arguments)[0] == 201
    assert ch.declare(name=q, message_ttl=60000, max_length=3).message_count == 0
    assert "inequivalent arg 'x-message-ttl'" in str(ch.answer_to(lambda ch: ch.declare(name=q, max_length=3)))


ARGUMENTS = {
    "x-queue-type": "classic", "whole": 1, "big": 2**62, "least": -(2**63), "half": 0.5, "one": 1.0, "text": "é\"<b>",
    "yes": True, "no": False, "list": [1, 0.5, "a", True, [2], {"x": []}], "table": {"a": {"b": [1]}}, "": "nameless",
    "empty": {},
}


@pytest.mark.parametrize("what, more", [("queues", {"durable": True}), ("exchanges", {"type": "direct"})])
def test_arguments_come_back_as_they_were_given(http, q, x, what, more):
    name = q if what == "queues" else x
    assert http.put(what, "/", name, arguments=ARGUMENTS, **more) == (201, None)
    assert http.get(what, "/", name)["arguments"] == ARGUMENTS
    assert http.put(what, "/", name, arguments=ARGUMENTS, **more) == (204, None)


@pytest.mark.parametrize("raw", [b"", b"null", b"undefined", b"{}", b'{"arguments": []}', b'{"arguments": {}}'])
def test_empty_body_is_an_empty_object(http, q, raw):
    assert http("PUT", "queues", "/", q, raw=raw) == (201, None)
    shown = http.get("queues", "/", q)
    assert (shown["durable"], shown["auto_delete"], shown["arguments"]) == (False, False, {"x-queue-type": "classic"})


@pytest.mark.parametrize("field, value, expected", [
    ("durable", "true", True), ("durable", "false", False), ("durable", True, True), ("auto_delete", "true", True),
])
def test_flags_may_be_words(http, q, field, value, expected):
    assert http.put("queues", "/", q, **{field: value})[0] == 201
    assert http.get("queues", "/", q)[field] is expected


DOUBLE = "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"


@pytest.mark.parametrize("raw, reason", [
    (b"{", "not_json"), (b"[]", "not_json"), (b"5", "not_json"), (b"{} x", "not_json"), (b"\xff", "not_json"),
    (b'"{}"', DOUBLE), (b'{"durable": 1}', ["not_boolean", 1]), (b'{"durable": "yes"}', ["not_boolean", "yes"]),
    (b'{"auto_delete": null}', ["not_boolean", None]), (b'{"arguments": {"a": null}}', "null_not_allowed"),
    (b'{"arguments": {"a": [{"b": null}]}}', "null_not_allowed"),
    (b'{"node": "nope@nowhere"}', "Node nope@nowhere is not a cluster member"),
])
def test_a_bad_body_makes_nothing(http, q, raw, reason):
    assert http("PUT", "queues", "/", q, raw=raw) == bad(reason)
    assert http.delete("queues", "/", q) == NOT_FOUND


@pytest.mark.better
@pytest.mark.parametrize("raw", [
    b'{"arguments": "a"}', b'{"arguments": null}', b'{"arguments": 5}', b'{"arguments": {"a": 9223372036854775808}}',
    b'{"arguments": {"' + 256 * b"k" + b'": 1}}', b'{"arguments": {"a": 1e20}}',
])
def test_arguments_that_are_none_are_refused(http, q, raw, by_broker):
    status, _ = http("PUT", "queues", "/", q, raw=raw)
    assert status in by_broker(rabbitmq=(201, 500), leveret=(400,))


@pytest.mark.parametrize("arguments, argument, reason", [
    ({"x-message-ttl": "a"}, "x-message-ttl", '"expected integer, got longstr"'),
    ({"x-message-ttl": -1}, "x-message-ttl", "{value_negative,-1}"),
    ({"x-message-ttl": 10.0}, "x-message-ttl", '"expected integer, got double"'),
    ({"x-queue-type": "nope"}, "x-queue-type", "\"unsupported queue type 'nope'\""),
])
def test_refusals_are_those_of_amqp(http, q, arguments, argument, reason):
    refused = http.put("queues", "/", q, durable=True, arguments=arguments)
    assert refused == bad(want.bad_argument(argument, q, reason))


def test_a_quorum_queue_is_durable_and_not_deleted_on_conditions(http, q):
    quorum = {"x-queue-type": "quorum"}
    transient = f"invalid property 'non-durable' for queue '{q}' in vhost '/'"
    assert http.put("queues", "/", q, durable=False, arguments=quorum) == bad(transient)
    assert http.put("queues", "/", q, durable=True, arguments=quorum)[0] == 201
    for flag in ("if-empty", "if-unused"):
        reason = f"queue.delete operations with {flag} flag set are not supported by quorum queues"
        refused = bad(f"cannot delete queue '{q}' in vhost '/'. {reason}")
        assert http.delete("queues", "/", q, query=f"?{flag}=true") == refused
    assert http.delete("queues", "/", q, query="?if-empty=false") == (204, None)


def test_a_queue_is_deleted_on_conditions(http, ch):
    q = ch.queue()
    ch.publish(q, "a")
    assert http.delete("queues", "/", q, query="?if-empty=true") == bad(f"queue '{q}' in vhost '/' not empty")
    ch.consume(q)
    assert http.delete("queues", "/", q, query="?if-unused=true") == bad(f"queue '{q}' in vhost '/' in use")
    assert http.delete("queues", "/", q) == (204, None)
    assert not ch.exists(q)


def test_a_locked_queue_is_not_for_others(http, ch):
    q = ch.queue(exclusive=True)
    locked = bad(want.LOCKED.format(queue=q))
    assert http.put("queues", "/", q) == locked
    assert http.delete("queues", "/", q) == locked
    assert http.delete("queues", "/", q, "contents") == locked
    assert http("POST", "bindings", "/", "e", "amq.direct", "q", q, body={}) == locked


@pytest.mark.parametrize("name", ["a/b c?d#e", "é", "..", "a+b", "a%2Fb", "<script>", "{vhost}", "l" * 100])
def test_a_name_is_whatever_the_path_says(http, client, name):
    name = client.fresh_name(name)
    client.queues.append(name)
    client.exchanges.append(name)
    for what, body in (("queues", {"durable": True}), ("exchanges", {"type": "direct"})):
        assert http.put(what, "/", name, **body) == (201, None)
        assert http.get(what, "/", name)["name"] == name
        assert http.delete(what, "/", name) == (204, None)


def test_reserved_names_are_refused(http):
    assert http.put("queues", "/", "amq.mine", durable=True) == REFUSED
    assert http.put("exchanges", "/", "amq.mine", type="direct") == REFUSED
    too_long = bad("queue should be less than 255 bytes, actually was 256\n")
    assert http.put("queues", "/", 256 * "l", durable=True) == too_long


@pytest.mark.better
def test_the_path_names_the_queue(http, client, q, by_broker):
    other = client.fresh_name("other")
    client.queues.append(other)
    assert http.put("queues", "/", q, durable=True, queue=other)[0] == 201
    assert http.delete("queues", "/", q)[0] == by_broker(rabbitmq=404, leveret=204)
    assert http.delete("queues", "/", other)[0] == by_broker(rabbitmq=204, leveret=404)


def test_a_passive_declaration_makes_nothing(http, q):
    missing = (404, {"error": "not_found", "reason": f"no queue '{q}' in vhost '/'"})
    assert http.put("queues", "/", q, passive=True) == missing


@pytest.mark.parametrize("body, reason", [
    ({}, "[{key_missing,action}]"), ({"action": "sync"}, ["unknown", "sync"]), ({"action": 5}, ["unknown", 5]),
])
def test_a_queue_has_no_actions(http, ch, body, reason):
    assert http("POST", "queues", "/", ch.queue(), "actions", body=body) == bad(reason)


def test_rebalance_of_a_single_node(http):
    assert http("POST", "rebalance", "queues") == (204, None)


def test_status_of_a_quorum_queue_tells_its_members(http, ch):
    status, members = http("GET", "queues", "quorum", "/", ch.queue("quorum"), "status")
    assert status == 200
    states = sorted((member["Raft State"], member["Membership"]) for member in members)
    # Nodes of a cluster follow.
    assert states == [("follower", "voter")] * (len(members) - 1) + [("leader", "voter")]
    refused = (503, {"status": "failed", "reason": "classic_queue_not_supported"})
    assert http("GET", "queues", "quorum", "/", ch.queue("classic"), "status") == refused
    assert http("GET", "queues", "quorum", "/", "no-such-queue", "status")[0] == 404


def test_queues_can_be_listed_in_detail(http, ch):
    q = ch.queue()
    assert {"name": q} in http.get("queues", "detailed", query="?columns=name")


# --- exchanges


def test_an_exchange_is_made_once(http, x):
    assert http.put("exchanges", "/", x, type="topic", durable=True, internal="true") == (201, None)
    assert http.put("exchanges", "/", x, type="topic", durable=True, internal=True) == (204, None)
    text = f"inequivalent arg 'type' for exchange '{x}' in vhost '/': received 'direct' but current is 'topic'"
    assert http.put("exchanges", "/", x, type="direct", durable=True) == bad(text)
    assert http.put("exchanges", "/", x, durable=True) == bad(text)
    shown = http.get("exchanges", "/", x)
    assert (shown["type"], shown["durable"], shown["internal"], shown["auto_delete"]) == ("topic", True, True, False)
    assert http.delete("exchanges", "/", x) == (204, None)
    assert http.delete("exchanges", "/", x) == NOT_FOUND


@pytest.mark.parametrize("body, reason", [
    ({"type": "nope"}, "unknown exchange type 'nope'"), ({"durable": "x"}, ["not_boolean", "x"]),
    ({"arguments": {"a": None}}, "null_not_allowed"),
    ({"arguments": {"alternate-exchange": 5}},
     "invalid type 'long' for arg 'alternate-exchange' in exchange '{x}' in vhost '/'"),
])
def test_a_bad_exchange_is_not_made(http, x, body, reason):
    reason = reason.format(x=x) if isinstance(reason, str) else reason
    assert http.put("exchanges", "/", x, **body) == bad(reason)
    assert http.delete("exchanges", "/", x) == NOT_FOUND


def test_predeclared_exchanges_cannot_be_deleted(http):
    assert http.put("exchanges", "/", "amq.direct", type="direct", durable=True) == (204, None)
    for name in ("amq.direct", "amq.default"):
        assert http.delete("exchanges", "/", name) == REFUSED
    assert http.put("exchanges", "/", "amq.default", type="direct", durable=True) == REFUSED


def test_an_exchange_in_use_may_be_kept(http, ch):
    q, x = ch.queue(), ch.exchange()
    ch.bind(q, x, "k")
    in_use = bad(f"exchange '{x}' in vhost '/' in use")
    assert http.delete("exchanges", "/", x, query="?if-unused=true") == in_use
    assert http.delete("exchanges", "/", x) == (204, None)


# --- bindings


@pytest.fixture
def ends(ch):
    """What to bind: an exchange, and a queue and an exchange to bind to it, each with its letter in paths."""
    return ch.exchange("topic"), {"q": ch.queue(), "e": ch.exchange("fanout")}


BINDINGS = [
    ("k", {}, "k"), ("", {}, "~"), ("a.#", {}, "a.%23"), ("a.*", {}, "a.%2A"),
    ("a~b c/d%é+&=", {}, "a%7Eb+c%2Fd%25%C3%A9%2B%26%3D"),
    ("k", {"n": 1, "x-match": "all"}, "k~D79veA"), ("", {"n": -5}, "~94f54w"),
    ("k", {"b": 1, "a": 1.5, "l": [1, "x"], "t": {"u": True}}, "k~0KXpJg"),
]


@pytest.mark.parametrize("kind", ["q", "e"])
def test_a_binding_is_addressed_by_the_key_that_lists_show(http, under, ends, kind):
    x, destinations = ends
    path = ("bindings", "/", "e", x, kind, destinations[kind])
    for routing_key, arguments, key in BINDINGS:
        body = {"routing_key": routing_key, "arguments": arguments}
        answer = http.api.ask("/api/" + quoted(*path), method="POST", body=body)
        assert answer.status == 201
        assert answer.headers["location"] == f"{destinations[kind]}/" + quoted_for_location(key)
        assert http("POST", *path, body=body)[0] == 201
    listed = http.get(*path)
    shown = {one["properties_key"]: (one["routing_key"], one["arguments"]) for one in listed}
    assert shown == {key: (routing_key, arguments) for routing_key, arguments, key in BINDINGS}
    assert len(listed) == len(BINDINGS)
    for key in shown:
        [expected] = [one for one in listed if one["properties_key"] == key]
        assert http.get(*path, key) == expected
        assert http.delete(*path, key) == (204, None)
        assert http.delete(*path, key) == NOT_FOUND
    assert http.get(*path) == []


def quoted_for_location(key):
    return quoted(key)


@pytest.mark.parametrize("routing_key", ["a b", "a/b", "a#b", "a=b", "a&b", "k=v&x=y", "=", "?", "device?id=1"])
def test_a_binding_is_addressed_by_its_key_quoted_once(http, ends, routing_key):
    x, destinations = ends
    path = ("bindings", "/", "e", x, "q", destinations["q"])
    assert http("POST", *path, body={"routing_key": routing_key})[0] == 201
    assert http.get(*path, routing_key)["routing_key"] == routing_key
    assert http("DELETE", *path, routing_key)[0] == 204
    assert http.get(*path) == []


@pytest.mark.parametrize("arguments, key", [
    ({"a": Wire("b", -1), "b": Wire("B", 255), "c": Wire("s", -2), "d": Wire("u", 3), "e": "twelve bytes"}, "UjF0NQ"),
    ({"v": Wire("V")}, "wLtq5A"), ({"n": Wire("T", 2**64 - 1)}, "fmWwFQ"), ({"f": Wire("f", -0.25)}, "yO7Pfg"),
    ({"t": {"k": Wire("x", b"\xff\0\1"), "l": Wire("i", 7)}}, "R5w1xQ"),
])
def test_a_binding_of_a_client_has_the_same_key(http, ch, ends, arguments, key):
    x, destinations = ends
    ch.bind(destinations["q"], x, "k", **arguments)
    path = ("bindings", "/", "e", x, "q", destinations["q"])
    assert [one["properties_key"] for one in http.get(*path)] == ["k~" + key]
    assert http.delete(*path, "k~" + key) == (204, None)
    assert http.get(*path) == []


def test_messages_take_a_binding_that_was_made_so(http, ch, ends):
    x, destinations = ends
    q = destinations["q"]
    assert http("POST", "bindings", "/", "e", x, "q", q, body={"routing_key": "a.*"})[0] == 201
    ch.publish("a.b", "yes", exchange=x)
    ch.publish("b.a", "no", exchange=x)
    assert ch.drain(q) == ["yes"]


@pytest.mark.parametrize("body", [None, {}, {"routing_key": ""}, {"arguments": []}])
def test_a_binding_may_be_without_everything(http, ends, body):
    x, destinations = ends
    path = ("bindings", "/", "e", x, "q", destinations["q"])
    assert http("POST", *path, body=body) == (201, None)
    [found] = http.get(*path)
    assert (found["routing_key"], found["arguments"], found["properties_key"]) == ("", {}, "~")


@pytest.mark.parametrize("key", ["nope", "k~nope", "k~a~b", "~"])
def test_a_key_that_means_no_binding_is_not_found(http, ch, ends, key):
    x, destinations = ends
    ch.bind(destinations["q"], x, "k")
    for method in ("GET", "DELETE"):
        assert http(method, "bindings", "/", "e", x, "q", destinations["q"], key) == NOT_FOUND
    assert http.delete("bindings", "/", "e", x, "q", "nope", "k") == NOT_FOUND


def test_absent_objects_cannot_be_bound(http, ends):
    x, destinations = ends
    q = destinations["q"]

    def missing(what, name):
        return 404, {"error": "not_found", "reason": f"no {what} '{name}' in vhost '/'"}

    assert http("POST", "bindings", "/", "e", x, "q", "nope", body={}) == missing("queue", "nope")
    assert http("POST", "bindings", "/", "e", "nope", "q", q, body={}) == missing("exchange", "nope")
    assert http("POST", "bindings", "/", "e", "nope", "q", "nope", body={}) == missing("exchange", "nope")
    assert http.get("bindings", "/", "e", x, "q", "nope") == []
    assert http.get("bindings", "/", "e", "nope", "q", q) == []


def test_the_bindings_of_the_default_exchange_are_shown_and_stay(http, ch):
    q = ch.queue()
    path = ("bindings", "/", "e", "amq.default", "q", q)
    [found] = http.get(*path)
    assert (found["source"], found["routing_key"]) == ("", q)
    assert http.get(*path, q) == found
    assert http.delete(*path, q) == REFUSED
    assert http("POST", *path, body={"routing_key": "k"}) == REFUSED


@pytest.mark.better
@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"arguments": "x"}', b'{"routing_key": 5}'])
def test_a_bad_binding_is_not_made(http, ends, raw, by_broker):
    x, destinations = ends
    path = ("bindings", "/", "e", x, "q", destinations["q"])
    assert http("POST", *path, raw=raw)[0] in by_broker(rabbitmq=(400, 500), leveret=(400,))
    assert http.get(*path) == []


@pytest.mark.better
def test_null_is_no_routing_key(http, ends, by_broker):
    """RabbitMQ makes a key of it that no message has."""
    path = ("bindings", "/", "e", "amq.direct", "q", ends[1]["q"])
    assert http("POST", *path, body={"routing_key": None})[0] == 201
    keys = by_broker(rabbitmq=(None, "null"), leveret=("", "~"))
    assert [(binding["routing_key"], binding["properties_key"]) for binding in http.get(*path)] == [keys]


# --- who may


def changes(okay, other):
    """Every change with what it asks for, and what a user gets who may do everything with `okay` and nothing else.

    The things exist in this order, the user's first.
    """
    return [
        ("PUT", ("queues", "/", okay), {"durable": True}, 201),
        ("PUT", ("queues", "/", other), {"durable": True}, REFUSED),
        ("PUT", ("queues", "/", okay + "d"), {"durable": True, "arguments": {"x-dead-letter-exchange": other}}, REFUSED),
        ("PUT", ("exchanges", "/", okay), {"type": "direct"}, 201),
        ("PUT", ("exchanges", "/", other), {"type": "direct"}, REFUSED),
        ("PUT", ("exchanges", "/", okay + "a"), {"arguments": {"alternate-exchange": other}}, REFUSED),
        ("POST", ("bindings", "/", "e", okay, "q", okay), {"routing_key": "k"}, 201),
        ("POST", ("bindings", "/", "e", other, "q", okay), {"routing_key": "k"}, REFUSED),
        ("POST", ("bindings", "/", "e", okay, "q", other), {"routing_key": "k"}, REFUSED),
        ("POST", ("bindings", "/", "e", okay, "e", other), {"routing_key": "k"}, REFUSED),
        ("DELETE", ("bindings", "/", "e", other, "q", other, "k"), None, REFUSED),
        ("DELETE", ("bindings", "/", "e", okay, "q", okay, "k"), None, 204),
        ("DELETE", ("queues", "/", other, "contents"), None, REFUSED),
        ("DELETE", ("queues", "/", okay, "contents"), None, 204),
        ("POST", ("queues", "/", okay, "actions"), {"action": "sync"}, NOT_ADMINISTRATOR),
        ("POST", ("rebalance", "queues"), {}, NOT_ADMINISTRATOR),
        ("DELETE", ("queues", "/", other), None, REFUSED),
        ("DELETE", ("queues", "/", okay), None, 204),
        ("DELETE", ("exchanges", "/", other), None, REFUSED),
        ("DELETE", ("exchanges", "/", okay), None, 204),
    ]


@pytest.fixture
def other(defined, prefix):
    """`other(*users)`: a broker with these users, and a queue and an exchange of one name that are bound."""

    def other(*users):
        ch = defined(users=users)
        name = ch.queue(name="other")
        ch.exchange(name=name)
        ch.bind(name, name, "k")
        return defined.client.broker.api, name

    return other


def test_permissions_are_those_of_clients(other, prefix):
    okay = prefix + "okay"
    api, name = other(User("bob", f"^{okay}", f"^{okay}", f"^{okay}", tags=("management",)))
    bob, guest = Http(api, prefix + "bob"), Http(api)
    for method, path, body, expected in changes(okay, name):
        status, said = bob(method, *path, body=body)
        assert (status if isinstance(expected, int) else (status, said)) == expected, (method, path)
    assert len(guest.get("bindings", "/", "e", name, "q", name)) == 1


@pytest.mark.parametrize("tag, shut_out", [("management", NO_ENTRY), ("monitoring", NO_ENTRY), ("administrator", REFUSED)])
def test_changes_need_permissions_in_the_vhost(other, prefix, tag, shut_out):
    api, name = other(User("eve", configure=None, tags=(tag,)))
    eve = Http(api, prefix + "eve")
    administrative = ("actions", "queues")
    for method, path, body, _ in changes(name, name):
        if path[-1] in administrative:
            continue
        assert eve(method, *path, body=body) == shut_out, (method, path)
    if tag != "administrator":
        assert eve("GET", "bindings", "/", "e", name, "q", name) == NO_ENTRY
        assert eve("GET", "bindings", "/", "e", name, "q", name, "k") == NO_ENTRY
        assert eve("POST", "rebalance", "queues") == NOT_ADMINISTRATOR


@pytest.mark.parametrize("method, path, expected", [
    ("PUT", ("queues", "nope", "q"), NO_VHOST), ("PUT", ("exchanges", "nope", "x"), NO_VHOST),
    ("POST", ("bindings", "nope", "e", "x", "q", "q"), NO_VHOST), ("POST", ("queues", "nope", "q", "actions"), NO_VHOST),
    ("DELETE", ("queues", "nope", "q"), NOT_FOUND), ("DELETE", ("exchanges", "nope", "x"), NOT_FOUND),
    ("DELETE", ("queues", "nope", "q", "contents"), NOT_FOUND),
    ("DELETE", ("bindings", "nope", "e", "x", "q", "q", "k"), NOT_FOUND),
    ("DELETE", ("queues", "/", "nope", "contents"), NOT_FOUND),
    ("POST", ("queues", "/", "nope", "actions"), (404, {"error": "not_found", "reason": "queue_not_found"})),
])
def test_absent_objects_cannot_be_changed(http, method, path, expected):
    assert http(method, *path, body=None if method == "DELETE" else {"action": "sync"}) == expected


def test_a_change_that_was_answered_survives_a_kill(under):
    """Leveret's alone: a RabbitMQ that runs already is not killed."""
    if under.name != "leveret":
        pytest.skip("it belongs to somebody else")
    broker = under.start()
    try:
        http = Http(broker.api)
        for name in ("kept", "gone"):
            assert http.put("queues", "/", name, durable=True, arguments={"n": 1.5}) == (201, None)
            assert http.put("exchanges", "/", name, type="topic", durable=True) == (201, None)
            body = {"routing_key": "k", "arguments": {"n": 1}}
            assert http("POST", "bindings", "/", "e", name, "q", "kept", body=body)[0] == 201
        assert http.delete("queues", "/", "gone") == (204, None)
        assert http.delete("exchanges", "/", "gone") == (204, None)
        assert http("POST", "bindings", "/", "e", "kept", "q", "kept", body={})[0] == 201
        assert http.delete("bindings", "/", "e", "kept", "q", "kept", "~") == (204, None)
        broker.kill_and_start_again()
        http = Http(broker.api)
        [queue] = http.get("queues", "/")
        assert (queue["name"], queue["arguments"]["n"]) == ("kept", 1.5)
        assert [one["name"] for one in http.get("exchanges", "/") if not one["name"].startswith("amq.")] == ["", "kept"]
        [found] = http.get("bindings", "/", "e", "kept", "q", "kept")
        assert found["arguments"] == {"n": 1}
    finally:
        broker.stop()
