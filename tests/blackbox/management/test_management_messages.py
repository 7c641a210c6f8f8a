"""The management API: messages are published, looked at, taken and purged."""

import base64

import pytest

from brokers import quoted
from definitions import User
from expectations import NOTHING
from field_table import Wire

GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
MODES = ("ack_requeue_true", "reject_requeue_true", "ack_requeue_false", "reject_requeue_false")


def bad(reason):
    return (400, {"error": "bad_request", "reason": reason})


@pytest.fixture
def http(under):
    """`http(*path, **fields)`: what a POST of an object to this path answers; a path of several parts is quoted."""
    return poster(under.shared().api)


def poster(api, user="guest"):
    def post(*path, raw=None, **fields):
        body = fields if raw is None else None
        answer = api.ask("/api/" + quoted(*path), user=user, method="POST", body=body, raw=raw)
        return answer.status, answer.json if answer.text else None

    return post


@pytest.fixture
def publish(http):
    """`publish(routing_key, payload, exchange, **properties)`: the answer."""

    def publish(routing_key, payload="a", exchange="amq.default", encoding="string", **properties):
        fields = {"routing_key": routing_key, "payload": payload, "payload_encoding": encoding}
        return http("exchanges", "/", exchange, "publish", properties=properties, **fields)

    return publish


@pytest.fixture
def get(http):
    """`get(queue, **options)`: the messages."""

    def get(queue, **options):
        status, answer = http("queues", "/", queue, "get", **(GET | options))
        assert status == 200, answer
        return answer

    return get


# --- publish


def test_a_message_is_routed_or_not(publish, ch):
    q, x = ch.queue(), ch.exchange("topic")
    ch.bind(q, x, "a.*")
    assert publish(q) == (200, {"routed": True})
    assert publish("a.b", exchange=x) == (200, {"routed": True})
    assert publish("b", exchange=x) == (200, {"routed": False})
    assert publish("nope") == (200, {"routed": False})
    assert ch.count(q) == 2


ALL_PROPERTIES = {
    "content_type": "text/plain", "content_encoding": "utf-8", "delivery_mode": 2, "priority": 3, "correlation_id": "c",
    "reply_to": "r", "expiration": "60000", "message_id": "m", "timestamp": 1234567890, "type": "t", "user_id": "guest",
    "app_id": "a", "cluster_id": "cl",
}


def test_properties_arrive(publish, get, ch):
    q = ch.queue()
    headers = {"n": 5_000_000_000, "f": 1.5, "s": "é", "b": True, "l": [1, "a", 0.5], "t": {"x": -1}}
    assert publish(q, headers=headers, unknown=5, **ALL_PROPERTIES)[0] == 200
    [shown] = get(q)
    assert shown["properties"] == ALL_PROPERTIES | {"headers": headers}
    message = ch.get(q)
    assert {name: getattr(message.properties, name) for name in ALL_PROPERTIES} == ALL_PROPERTIES
    assert [(field.name, field.type) for field in message.headers.fields] == [
        ("b", "t"), ("f", "d"), ("l", "A"), ("n", "l"), ("s", "S"), ("t", "F"),
    ]
    assert [type for type, _ in message.headers.fields[2].value] == ["l", "S", "d"]


@pytest.mark.parametrize("encoding, payload, expected", [
    ("string", "", ""), ("string", "é\u0000\n", "é\0\n"), ("base64", "/wA=", b"\xff\0"), ("base64", "", ""),
    ("base64", "/w\nA=\r\n", b"\xff\0"), ("base64", " /wA\t=", b"\xff\0"),
])
def test_a_payload_arrives(publish, ch, encoding, payload, expected):
    q = ch.queue()
    assert publish(q, payload, encoding=encoding) == (200, {"routed": True})
    assert ch.get(q).body == expected


MISSING = "[{key_missing,routing_key},\n {key_missing,properties},\n {key_missing,payload},\n {key_missing,payload_encoding}]"
WHOLE = {"routing_key": "nope", "properties": {}, "payload": "a", "payload_encoding": "string"}


@pytest.mark.parametrize("fields, reason", [
    ({"payload": 5}, "payload_not_string"), ({"payload": {"a": 1}}, "payload_not_string"),
    ({"payload": "!!", "payload_encoding": "base64"}, ["not_base64", "!!"]),
    ({"payload": "/w", "payload_encoding": "base64"}, ["not_base64", "/w"]),
    ({"payload_encoding": "utf8"}, ["unsupported_encoding", "utf8"]),
    ({"payload_encoding": 5}, ["unsupported_encoding", 5]),
    ({"properties": {"delivery_mode": "2"}}, ["not_int", "delivery_mode"]),
    ({"properties": {"delivery_mode": 1.0}}, ["not_int", "delivery_mode"]),
    ({"properties": {"priority": None}}, ["not_int", "priority"]),
    ({"properties": {"timestamp": "now"}}, ["not_int", "timestamp"]),
    ({"properties": {"content_type": 5}}, ["not_string", "content_type"]),
    ({"properties": {"reply_to": None}}, ["not_string", "reply_to"]),
    ({"properties": {"headers": {"n": None}}}, "null_not_allowed"),
    ({"properties": {"headers": {"n": [{"m": None}]}}}, "null_not_allowed"),
    ({"properties": {"expiration": "abc"}}, "406 PRECONDITION_FAILED - invalid expiration 'abc': no_integer"),
    ({"properties": {"user_id": "bob"}},
     "406 PRECONDITION_FAILED - user_id property set to 'bob' but authenticated user was 'guest'"),
])
def test_a_bad_message_is_refused(http, fields, reason):
    assert http("exchanges", "/", "amq.default", "publish", **(WHOLE | fields)) == bad(reason)


def test_a_property_is_no_longer_than_a_short_string(publish, ch):
    overflow = bad("506 failed to deliver message: content_properties_shortstr_overflow")
    assert publish(ch.queue(), type=256 * "l") == overflow


@pytest.mark.parametrize("raw, reason", [
    (b"", MISSING), (b"{}", MISSING), (b"{", "not_json"), (b"[]", "not_json"),
    (b'{"routing_key": "k", "properties": {}, "payload": ""}', "[{key_missing,payload_encoding}]"),
])
def test_a_message_must_be_whole(http, raw, reason):
    assert http("exchanges", "/", "amq.default", "publish", raw=raw) == bad(reason)


@pytest.mark.better
@pytest.mark.parametrize("fields, rabbitmq", [
    ({"routing_key": 5}, 500), ({"routing_key": 256 * "l"}, 200), ({"properties": None}, 500), ({"properties": "a"}, 500),
    ({"properties": {"headers": "a"}}, 500), ({"properties": {"priority": 300}}, 200),
    ({"properties": {"priority": -1}}, 200), ({"properties": {"timestamp": -1}}, 200),
    ({"properties": {"headers": {"n": 2**63}}}, 200), ({"properties": {"headers": {"n": 2**64}}}, 200),
])
def test_values_outside_amqp_are_refused(http, by_broker, fields, rabbitmq):
    status, _ = http("exchanges", "/", "amq.default", "publish", **(WHOLE | fields))
    assert status == by_broker(rabbitmq=rabbitmq, leveret=400)


def test_a_full_queue_refuses(publish, ch, kind):
    q = ch.queue(kind, max_length=1, overflow="reject-publish")
    ch.reaches(q, 0)
    for _ in range(4):
        last = publish(q)
    assert last == bad("rejected Unable to publish message. Check queue limits.")


def test_publishing_needs_write_permission(defined, prefix):
    okay = prefix + "okay"
    ch = defined(users=[User("bob", NOTHING, f"^{okay}", NOTHING, tags=("management",))])
    q, x = ch.queue(), ch.exchange(name=okay)
    ch.bind(q, x, "k")
    bob = poster(defined.client.broker.api, prefix + "bob")
    assert bob("exchanges", "/", okay, "publish", **(WHOLE | {"routing_key": "k"})) == (200, {"routed": True})
    refused = f"403 ACCESS_REFUSED - write access to exchange 'amq.{{}}' in vhost '/' refused for user '{prefix}bob'"
    for name in ("default", "direct"):
        assert bob("exchanges", "/", "amq." + name, "publish", **WHOLE) == bad(refused.format(name))
    denied = f"ACCESS_REFUSED - read access to queue '{q}' in vhost '/' refused for user '{prefix}bob'"
    assert bob("queues", "/", q, "get", **GET) == (401, {"error": "not_authorised", "reason": denied})
    assert ch.count(q) == 1


def test_an_internal_exchange_takes_nothing_from_outside(http):
    text = "403 ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'"
    assert http("exchanges", "/", "amq.rabbitmq.trace", "publish", **WHOLE) == bad(text)


@pytest.mark.parametrize("path, reason", [
    (("exchanges", "/", "nope", "publish"), "exchange_not_found"), (("exchanges", "nope", "x", "publish"), "vhost_not_found"),
    (("queues", "/", "nope", "get"), "queue_not_found"), (("queues", "nope", "q", "get"), "vhost_not_found"),
])
def test_absent_exchange_or_queue_is_404(http, path, reason):
    assert http(*path, **WHOLE, **GET) == (404, {"error": "not_found", "reason": reason})


def test_a_body_that_is_too_large_is_refused(defined, prefix):
    """Leveret's limit is set low here; RabbitMQ's is beyond what the API takes at all."""
    ch = defined(settings="max_message_size = 1000")
    publish = poster(defined.client.broker.api)
    fields = WHOLE | {"routing_key": ch.queue(), "payload": 1001 * "a"}
    answer = publish("exchanges", "/", "amq.default", "publish", **fields)
    if defined.client.broker.name == "leveret":
        text = "406 PRECONDITION_FAILED - message size 1001 is larger than configured max size 1000"
        assert answer == bad(text)
        fields["payload"] = 1000 * "a"
        answer = publish("exchanges", "/", "amq.default", "publish", **fields)
    assert answer == (200, {"routed": True})


@pytest.mark.better
def test_blocked_publishers_are_blocked_here_too(defined, by_broker):
    """RabbitMQ's answer was seen on one whose memory watermark was set to a megabyte."""
    ch = defined(settings="disk_free_limit.absolute = 1000000GB")
    api = defined.client.broker.api
    if defined.client.broker.name == "leveret":
        ch.poll(lambda: api.ask("/api/health/checks/local-alarms").status == 503, what="the alarm")
    q = ch.queue()
    status, _ = poster(api)("exchanges", "/", "amq.default", "publish", **(WHOLE | {"routing_key": q}))
    assert status == by_broker(rabbitmq=200, leveret=503)
    assert ch.count(q) == by_broker(rabbitmq=1, leveret=0)


# --- get


def payloads(messages):
    return [message["payload"] for message in messages]


def test_a_message_is_shown_as_it_is(get, ch):
    q, x = ch.queue(), ch.exchange("fanout")
    ch.bind(q, x)
    ch.publish("key", "abc", exchange=x)
    ch.publish(q, b"\xff\0", delivery_mode=1, headers={})
    expected = [
        {"payload_bytes": 3, "redelivered": False, "exchange": x, "routing_key": "key", "message_count": 1,
         "properties": [], "payload": "abc", "payload_encoding": "string"},
        {"payload_bytes": 2, "redelivered": False, "exchange": "", "routing_key": q, "message_count": 0,
         "properties": {"delivery_mode": 1, "headers": {}}, "payload": "/wA=", "payload_encoding": "base64"},
    ]
    assert get(q, count=5) == expected
    for message in expected:
        message["redelivered"] = True
    assert get(q, count=5) == expected
    encoded = base64.b64encode(b"abc").decode()
    assert get(q, encoding="base64")[0] == expected[0] | {"payload": encoded, "payload_encoding": "base64"}


def test_octets_in_headers_are_shown_as_text(get, ch):
    q = ch.queue()
    headers = {"bytes": Wire("x", b"\xff\0"), "text": Wire("S", b"a"), "time": Wire("T", 5), "small": Wire("b", -1)}
    ch.publish(q, "a", headers=headers)
    expected = {"bytes": "Not UTF-8, base64 is: /wA=", "text": "a", "time": 5, "small": -1}
    assert get(q)[0]["properties"]["headers"] == expected


@pytest.mark.parametrize("truncate, shown, encoding", [
    (0, "", "string"), (1, "a", "string"), (2, "YcM=", "base64"), (3, "aé", "string"), (4, "aé", "string"),
    ("1", "a", "string"), (10**12, "aé", "string"),
])
def test_a_payload_can_be_cut(get, ch, truncate, shown, encoding):
    q = ch.queue()
    ch.publish(q, "aé")
    [message] = get(q, truncate=truncate)
    assert (message["payload"], message["payload_encoding"], message["payload_bytes"]) == (shown, encoding, 3)


@pytest.mark.parametrize("count, got", [(0, 0), (1, 1), ("2", 2), (1.9, 1), (3, 3), (10, 3), (-1, 3)])
def test_so_many_messages_are_got(get, ch, kind, count, got):
    q = ch.queue(kind)
    ch.publish(q, *"abc")
    assert payloads(get(q, count=count)) == list("abc"[:got])
    ch.reaches(q, 3)


@pytest.mark.parametrize("mode", MODES)
def test_acknowledgement_modes_of_get(get, ch, kind, dlq, mode):
    q = ch.queue(kind, dead_letter_exchange="", dead_letter_routing_key=dlq)
    ch.publish(q, *"abc")
    assert payloads(get(q, count=2, ackmode=mode)) == ["a", "b"]
    back = mode.endswith("requeue_true")
    ch.reaches(q, 3 if back else 1)
    assert payloads(get(q, count=5)) == (["a", "b", "c"] if back else ["c"])
    dead = ["a", "b"] if mode == "reject_requeue_false" else []
    ch.reaches(dlq, len(dead))
    assert ch.drain(dlq) == dead


def test_a_quorum_queue_counts_what_is_rejected(get, ch):
    q = ch.queue("quorum")
    ch.publish(q, "a")
    shown = [get(q, ackmode=mode)[0]["properties"] for mode in (*MODES[:2], MODES[0])]
    assert shown == [
        [], {"headers": {"x-acquired-count": 1}}, {"headers": {"x-acquired-count": 2, "x-delivery-count": 1}},
    ]


@pytest.mark.parametrize("fields, reason", [
    ({"count": "x"}, ["not_integer", "x"]), ({"count": None}, ["not_integer", None]),
    ({"truncate": "x"}, ["not_integer", "x"]),
    ({"encoding": "nope"}, "Unsupported encoding. Please use auto or base64."),
    ({"ackmode": "nope"}, "Invalid ackmode value: nope. Valid values are: ack_requeue_true, ack_requeue_false, "
                          "reject_requeue_true, reject_requeue_false"),
])
def test_a_bad_get_takes_nothing(http, ch, fields, reason):
    q = ch.queue()
    ch.publish(q, "a")
    assert http("queues", "/", q, "get", **(GET | {"ackmode": "ack_requeue_false"} | fields)) == bad(reason)
    assert ch.count(q) == 1


def test_a_get_must_be_whole(http, ch):
    q = ch.queue()
    assert http("queues", "/", q, "get", raw=b"{") == bad("not_json")
    assert http("queues", "/", q, "get", raw=b"") == bad("[{key_missing,ackmode},{key_missing,count},{key_missing,encoding}]")
    assert http("queues", "/", q, "get", count=1, requeue=True, encoding="auto") == bad("[{key_missing,ackmode}]")


def test_queue_that_cannot_be_read_gives_its_reason(http, ch):
    text = (
        "405 RESOURCE_LOCKED - cannot obtain access to locked queue '{q}' in vhost '/'. basic.get operations are not "
        "supported by <<\"quorum\">> queues with single active consumer"
    )
    q = ch.queue("quorum", single_active_consumer=True)
    assert http("queues", "/", q, "get", **GET) == bad(text.format(q=q))
    q = ch.queue(exclusive=True)
    status, answer = http("queues", "/", q, "get", **GET)
    assert (status, answer["reason"][:20]) == (400, "405 RESOURCE_LOCKED ")


def test_a_purge_leaves_nothing(http, get, ch, under):
    q = ch.queue()
    ch.publish(q, *"abc")
    answer = under.shared().api.ask("/api/queues/" + quoted("/", q) + "/contents", method="DELETE")
    assert (answer.status, answer.text) == (204, b"")
    assert ch.count(q) == 0 and get(q) == []


def test_paged_messages_are_got_in_order(under):
    """Leveret's alone: so little memory that most of a queue is in pages."""
    if under.name != "leveret":
        pytest.skip("RabbitMQ keeps classic queues on disk anyway")
    broker = under.start("vm_memory_high_watermark_paging_ratio = 0.00001\n")
    try:
        http = poster(broker.api)
        assert broker.api.ask("/api/queues/%2F/long", method="PUT", body={"durable": True}).status == 201
        count = 300
        for n in range(count):
            payload = f"{n:04}" + 40_000 * "x"
            fields = {"routing_key": "long", "payload": payload, "payload_encoding": "string"}
            answer = http("exchanges", "/", "amq.default", "publish", properties={"delivery_mode": 2}, **fields)
            assert answer == (200, {"routed": True})
        assert broker.api.ask("/api/queues/%2F/long").json["messages_paged_out"] > 0
        for mode in ("ack_requeue_true", "reject_requeue_true", "ack_requeue_false"):
            status, messages = http("queues", "/", "long", "get", **(GET | {"count": count, "ackmode": mode, "truncate": 4}))
            assert status == 200 and payloads(messages) == [f"{n:04}" for n in range(count)]
        assert broker.api.ask("/api/queues/%2F/long").json["messages"] == 0
    finally:
        broker.stop()


def test_a_message_that_was_confirmed_and_one_that_was_taken_survive_a_kill(under):
    """Leveret's alone: a RabbitMQ that runs already is not killed."""
    if under.name != "leveret":
        pytest.skip("it belongs to somebody else")
    broker = under.start()
    try:
        http = poster(broker.api)
        assert broker.api.ask("/api/queues/%2F/q", method="PUT", body={"durable": True}).status == 201
        for payload in ("taken", "kept"):
            fields = WHOLE | {"routing_key": "q", "payload": payload, "properties": {"delivery_mode": 2}}
            assert http("exchanges", "/", "amq.default", "publish", **fields) == (200, {"routed": True})
        assert payloads(http("queues", "/", "q", "get", **(GET | {"ackmode": "ack_requeue_false"}))[1]) == ["taken"]
        broker.kill_and_start_again()
        assert payloads(poster(broker.api)("queues", "/", "q", "get", **(GET | {"count": 5}))[1]) == ["kept"]
    finally:
        broker.stop()
