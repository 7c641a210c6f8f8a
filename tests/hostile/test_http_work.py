"""Requests that ask for too much work, memory or time, and names that come out where they may do harm."""

import base64
import json
import re

import pytest

import wire
from brokers import Leveret
from http_client import Api, basic, path
from memory import MIB, Growth
from test_names import MD5_PAIR, ODD_NAMES

pytestmark = pytest.mark.leveret_only("RabbitMQ's HTTP address is not known here")

BODY_MAX = 10 * MIB
JSON_GROWTH_MAX = 64 * MIB
DEFINITIONS_GROWTH_MAX = 400 * MIB  # of a body of 10 MiB with a million values, which are an administrator's
JSON_CPU_MAX_S = 2.0
PATTERN_CPU_MAX_S = 2.0  # of four requests and two declarations
AT_ONCE_S = 5.0  # by the stopwatch
GET_BYTES_MAX = 16 * MIB
PAGE_SIZE_MAX = 500
MOMENTS_MAX = 500

MANY_VALUES = {
    "numbers": b"[" + b"0," * 4_000_000 + b"0]",
    "lists": b"[" + b"[]," * 3_000_000 + b"[]]",
    "objects": b'{"a":[' + b"{}," * 3_000_000 + b"{}]}",
    "keys": b"{" + b",".join(b'"k%06d":0' % number for number in range(700_000)) + b"}",
    "same keys": b"{" + b'"a":0,' * 1_500_000 + b'"a":0}',
    "depth": b"[" * 4_000_000,
}


@pytest.mark.ht(21)
@pytest.mark.parametrize("kind", MANY_VALUES)
def test_values_are_counted_before_they_are_made(fresh_broker, kind):
    """A body of ten mebibytes may have a text of that size in it, and not millions of values."""
    api = Api(fresh_broker)
    assert len(MANY_VALUES[kind]) <= BODY_MAX
    api.do("GET", "/api/whoami")
    with Growth(fresh_broker) as growth:
        for target in ("policies/%2F/p", "queues/%2F/q", "exchanges/%2F/amq.topic/publish", "users/bulk-delete"):
            method = "POST" if "publish" in target or "bulk" in target else "PUT"
            before_s = fresh_broker.cpu_s()
            found = api.ask(method, f"/api/{target}", raw=MANY_VALUES[kind])
            assert (found.status, found.reason) == (400, "more than 65536 values"), target
            assert fresh_broker.cpu_s() - before_s <= JSON_CPU_MAX_S
    assert growth.bytes <= JSON_GROWTH_MAX


@pytest.mark.ht(21, 42)
@pytest.mark.parametrize("values", [900_000, 1_100_000])
def test_definitions_may_have_more_values_but_not_any_number(fresh_broker, values):
    api = Api(fresh_broker)
    api.do("GET", "/api/whoami")
    document = b'{"queues":[' + b"0," * values + b"0]}"
    with Growth(fresh_broker) as growth:
        found = api.ask("POST", "/api/definitions", raw=document)
    assert found.status == 400
    assert (found.reason == "more than 1048576 values") == (values > 1 << 20)
    assert growth.bytes <= DEFINITIONS_GROWTH_MAX


@pytest.mark.ht(21)
@pytest.mark.parametrize("value", ["1" * 400, "1e400", "-1e400", "1e-400", "0." + "1" * 400, "18446744073709551616"])
def test_numbers_without_measure_are_refused_or_kept(api, value):
    """A priority that no number can hold, and a size of a page."""
    policy = b'{"pattern":"^nothing$","definition":{"max-length":' + value.encode() + b"}}"
    assert api.ask("PUT", "/api/policies/%2F/p", raw=policy).status == 400
    assert api.ask("GET", f"/api/queues?page=1&page_size={value}").status == 400
    assert api.ask("GET", "/api/policies/%2F/p").status == 404


@pytest.mark.ht(21)
@pytest.mark.parametrize("body, status", [
    (b"[" * 127 + b"]" * 127, 400), (b"[" * 129 + b"]" * 129, 400), (b'{"tags":"a\xff"}', 400),
    (b'"\xed\xa0\x80"', 400),
    (b'{"tracing":false,"tracing":true}', 201), (b"\xef\xbb\xbf{}", 400), (b"{}{}", 400), (b"{} x", 400), (b"NaN", 400),
], ids=lambda value: repr(value[:12]) if isinstance(value, bytes) else "")
def test_json_is_json(api, made, body, status):
    target = "/api/vhosts/" + made.name()
    assert api.ask("PUT", target, raw=body).status == status
    assert api.ask("DELETE", target).status == (204 if status == 201 else 404)


BOMBS = ["(a+)+$", "(a*)*\\1b", "(a|aa)+$", "(?=(a+))\\1+b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*\\1$", "(?<=a{1,9})b"]


@pytest.mark.hb(82)
@pytest.mark.ht(25)
@pytest.mark.parametrize("pattern", BOMBS)
def test_patterns_that_backtrack_are_given_up(broker, api, names, made, pattern):
    """In a filter, a policy and a permission: what takes too long is no match."""
    bait, user = "a" * 200, made.user(configure=pattern)
    with broker.peer() as peer, broker.peer() as other:
        peer.connect().call(1, "queue.declare", queue=bait, exclusive=True)
        other.connect(user=user)
        before_s = broker.cpu_s()
        found = api.ask("GET", f"/api/queues?page=1&use_regex=true&name={path(pattern)}")
        assert found.status == 200
        policy = "/api/policies/%2F/" + made.name()
        assert api.ask("PUT", policy, {"pattern": pattern, "definition": {"expires": 60_000}}).status == 201
        assert api.ask("GET", f"/api/queues/%2F/{bait}").status == 200
        peer.call(1, "queue.declare", queue=bait[1:], exclusive=True)
        assert api.ask("DELETE", policy).status == 204
        other.send_method(1, "queue.declare", queue=bait[2:], exclusive=True)
        channel, got = other.read_method()
        assert channel == 1 and got.name in ("queue.declare-ok", "channel.close")
        assert broker.cpu_s() - before_s <= PATTERN_CPU_MAX_S


@pytest.mark.hb(82)
@pytest.mark.ht(25)
@pytest.mark.parametrize("pattern, reason", [
    ("a" * 1025, "pattern must not exceed 1024 bytes"), ("(" * 1024, "pattern should be regular expression"),
    ("(", "pattern should be regular expression"), ("[", "pattern should be regular expression"),
    ("(?C1)a", "pattern should be regular expression"), ("(*LIMIT_MATCH=1)a", "pattern should be regular expression"),
    ("(a{999}){999}", "pattern should be regular expression"),
    ("\\w{9999}", "too large when compiled"), ("\\pL{99}", "too large when compiled"),
    ("(?=\\w{99})" * 90, "too large when compiled"),
], ids=lambda text: text[:9])
def test_patterns_that_are_none_are_refused(api, made, pattern, reason):
    """And not stored, by any of the requests that set them. RabbitMQ has lookaround, so that it is no reason."""
    user = made.user()
    refused = [
        api.ask("PUT", "/api/policies/%2F/bad", {"pattern": pattern, "definition": {"expires": 60_000}}),
        api.ask("PUT", "/api/operator-policies/%2F/bad", {"pattern": pattern, "definition": {"expires": 60_000}}),
        api.ask("PUT", f"/api/permissions/%2F/{user}", {"configure": pattern, "write": "", "read": ""}),
        api.ask("PUT", f"/api/topic-permissions/%2F/{user}", {"exchange": "amq.topic", "write": pattern, "read": ""}),
        api.ask("POST", "/api/definitions", {"policies": [
            {"vhost": "/", "name": "bad", "pattern": pattern, "definition": {"expires": 60_000}}]}),
    ]
    for found in refused:
        assert found.status == 400 and reason in str(found.reason), found
    assert api.ask("GET", "/api/policies/%2F/bad").status == 404
    assert api.do("GET", f"/api/permissions/%2F/{user}")["configure"] == ".*"


@pytest.mark.ht(25)
def test_a_filter_is_text_unless_it_is_asked_to_be_a_pattern(peer, api, names):
    name = names.any()
    peer.call(1, "queue.declare", queue=name, exclusive=True)

    def found(query):
        return [one["name"] for one in api.do("GET", f"/api/queues?page=1&{query}")["items"]]

    assert found("name=" + path(name)) == [name]
    assert found("name=.*") == found("name=%5E" + path(name)) == []
    assert found("use_regex=true&name=%5E" + path(name) + "$") == [name]
    assert found("use_regex=true&name=(") == []
    for size, status in ((1024, 200), (1025, 400)):
        answered = api.ask("GET", "/api/queues?page=1&use_regex=true&name=" + "a" * size)
        assert answered.status == status
    assert answered.reason == "name filter regex is too long"


@pytest.mark.ht(26)
@pytest.mark.parametrize("query, reason", [
    (f"page=1&page_size={PAGE_SIZE_MAX + 1}", "Invalid pagination parameters: page number 1, page size 501"),
    ("page=1&page_size=0", "Invalid pagination parameters: page number 1, page size 0"),
    ("page=-1", "Invalid pagination parameters: page number -1, page size undefined"),
    ("page=9223372036854775807", "Page out of range, page: 9223372036854775807 page size: 100, len: 0"),
    (f"lengths_age={MOMENTS_MAX + 1}&lengths_incr=1", "Invalid range parameters: age 501, incr 1"),
    ("msg_rates_age=99999999999&msg_rates_incr=1", "Invalid range parameters: age 99999999999, incr 1"),
    ("data_rates_age=60&data_rates_incr=0", "Invalid range parameters: age 60, incr 0"),
    ("lengths_age=-1&lengths_incr=5", "Invalid range parameters: age -1, incr 5"),
])
def test_lists_have_bounds(api, query, reason):
    found = api.ask("GET", f"/api/queues?{query}")
    assert found.status == 400
    assert re.sub(r"len: \d+", "len: 0", found.reason) == reason


@pytest.mark.ht(26)
@pytest.mark.parametrize("key", [
    "nope", "__proto__", "name.name.name", ".", "a" * 5000, "arguments", "%00", "message_stats."])
def test_unknown_keys_sort_and_show_nothing(peer, api, names, key):
    name = names.any()
    peer.call(1, "queue.declare", queue=name, exclusive=True)
    assert name in [one["name"] for one in api.do("GET", f"/api/queues?sort={key}&sort_reverse=true")]
    columns = api.do("GET", f"/api/queues?columns={key},name")
    assert {"name": name} in [{"name": one["name"]} for one in columns]


@pytest.mark.ht(27)
def test_messages_over_http_come_in_bounded_numbers(fresh_broker):
    """However many are asked for; those that are not in the answer stay where they are."""
    api, size, count = Api(fresh_broker), 8 * MIB, 12
    ask = {"count": 10**9, "ackmode": "ack_requeue_true", "encoding": "auto"}
    with fresh_broker.peer() as peer:
        peer.connect()
        queue = peer.call(1, "queue.declare").queue
        for _ in range(count):
            peer.publish(1, "", queue, b"." * size)
        peer.assert_usable()
        got = api.ask("POST", f"/api/queues/%2F/{queue}/get", ask).json
        assert len(got) == GET_BYTES_MAX // size and all(len(one["payload"]) == size for one in got)
        short = api.ask("POST", f"/api/queues/%2F/{queue}/get", {**ask, "truncate": 10}).json
        assert [one["payload"] for one in short] == ["." * 10] * count
        for wrong in ({"truncate": -1}, {"ackmode": "nope"}, {"encoding": "nope"}, {"count": "x"}):
            assert api.ask("POST", f"/api/queues/%2F/{queue}/get", {**ask, **wrong}).status == 400
        assert peer.call(1, "queue.delete", queue=queue).message_count == count


@pytest.mark.ht(28)
def test_messages_over_http_keep_to_the_limits(leveret_bin):
    broker = Leveret(leveret_bin, config="max_message_size = 1000\n")
    try:
        api = Api(broker)
        target = "/api/exchanges/%2F/amq.default/publish"

        def publish(payload, properties=(), key="q"):
            body = {"payload": payload, "payload_encoding": "string", "routing_key": key,
                    "properties": dict(properties)}
            return api.ask("POST", target, body)

        full = {"durable": True, "arguments": {"x-max-length": 1, "x-overflow": "reject-publish"}}
        assert api.ask("PUT", "/api/queues/%2F/q", full).status == 201
        assert publish("x" * 1000).json == {"routed": True}
        assert publish("nowhere", key="nope").json == {"routed": False}
        watch = broker.stopwatch()
        for found, reason in (
            (publish("x" * 1001), "message size"), (publish("x"), "Check queue limits"),
            (publish("x", {"expiration": "1e9"}), "expiration"),
            (publish("x", {"delivery_mode": 300}), "delivery_mode"),
            (publish("x", {"headers": {"x" * 300: 1}}), ""), (publish("x", {"nope": 1}), ""),
            (publish("x", {"user_id": "bob"}), "user_id"), (publish(7), "payload_not_string"),
        ):
            assert found.status == 400 and reason in str(found.reason), found
        assert watch.elapsed_s() < AT_ONCE_S
        broker.assert_alive()
    finally:
        broker.stop()


@pytest.mark.hb(41)
def test_extreme_headers_are_json(peer, api):
    """Any content of a message is shown as valid JSON, or left out."""
    queue = peer.call(1, "queue.declare").queue
    headers = [
        ("double", ("d", 1.7e308)), ("tiny", ("d", -5e-324)), ("zero", ("d", -0.0)), ("long", ("l", -(1 << 63))),
        ("time", ("T", (1 << 64) - 1)), ("decimal", ("D", (255, 0xFFFFFFFF))), ("bytes", ("x", bytes(range(256)))),
        ("text", ("S", b"\xff\0\"\\\n")), ("deep", ("F", [("a", ("A", [("V", None)]))])), ("\u202e\"\n", ("t", True))]
    properties = {"headers": headers, "timestamp": (1 << 64) - 1, "priority": 255, "delivery_mode": 255,
                  "message_id": "\"<script>\n\0"}
    peer.publish(1, "", queue, b"\xff\0\"", properties)
    peer.assert_usable()
    ask = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    found = api.ask("POST", f"/api/queues/%2F/{path(queue)}/get", ask)
    assert b"NaN" not in found.text and b"Infinity" not in found.text
    [message] = found.json
    assert base64.b64decode(message["payload"]) == b"\xff\0\""
    shown = message["properties"]
    assert shown["timestamp"] == (1 << 64) - 1 and shown["headers"]["long"] == -(1 << 63)
    peer.call(1, "queue.delete", queue=queue)


@pytest.mark.hb(57)
@pytest.mark.ht(40)
def test_names_are_no_lines_of_metrics_and_no_files(broker, api, made):
    """Vhosts, users, policies and queues of any name: files have numbers, metrics and the log one line for each."""
    vhosts = [made.vhost(made.name() + odd) for odd in ODD_NAMES if len(odd.encode()) < 150]
    with broker.peer() as peer:
        for number, vhost in enumerate(vhosts):
            assert api.ask("PUT", f"/api/queues/{path(vhost, 'q' + vhost)}", {"durable": True}).status == 201
            policy = {"pattern": "^nothing$", "definition": {"expires": 60_000}}
            assert api.ask("PUT", f"/api/policies/{path(vhost, vhost)}", policy).status == 201
            if number % 8 == 0:
                made.user(vhost + "u", vhosts=(vhost,))
        peer.connect(vhost=vhosts[-1])
    metrics = api.ask("GET", "/metrics/per-object").text.decode()
    line = re.compile(r'#.*|[a-z_]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? \S+')
    assert all(line.fullmatch(one) for one in metrics.rstrip("\n").split("\n"))
    assert metrics.count("rabbitmq_queue_messages_ready{") >= len(vhosts)
    assert "q" + vhosts[0] not in api.ask("GET", "/metrics", user=None).text.decode()
    files = [str(file.relative_to(broker.directory)) for file in broker.directory.rglob("*")]
    assert all(re.fullmatch(r"[\w./-]+", file) and "hostile" not in file for file in files), files
    log = broker.log.read_text()
    assert "\x1b" not in log and "\0" not in log and "\u202e" not in log


@pytest.mark.hb(101)
def test_vhosts_with_one_md5_sum_are_two(broker, made):
    one, two = (made.vhost(name) for name in MD5_PAIR)
    with broker.peer() as first, broker.peer() as second:
        first.connect(vhost=one).call(1, "queue.declare", queue="q", exclusive=True)
        second.connect(vhost=two)
        second.send_method(1, "queue.declare", queue="q", passive=True)
        assert second.outcome().code == 404


DEFINITIONS = {
    "hash": ({"users": [{"name": "w", "password_hash": "!!!", "tags": []}]}, "(users, item 1)"),
    "short hash": ({"users": [{"name": "w", "password_hash": "AAAA", "tags": []}]}, "(users, item 1)"),
    "algorithm": ({"users": [{"name": "w", "password_hash": "A" * 48, "hashing_algorithm": "md5", "tags": []}]},
                  "(users, item 1)"),
    "permission": ({"users": [{"name": "w", "password": "w", "tags": []}],
                    "permissions": [{"user": "w", "vhost": "/", "configure": "(", "write": "", "read": ""}]},
                   "(permissions, item 1)"),
    "pattern": ({"vhosts": [{"name": "w"}], "policies": [
        {"vhost": "w", "name": "x", "pattern": "a" * 2000, "definition": {"expires": 1}}]}, "(policies, item 1)"),
    "queue": ({"vhosts": [{"name": "w"}], "queues": [
        {"name": name, "vhost": "w", "durable": True, "auto_delete": False, "arguments": {"x-max-length": length}}
        for name, length in (("a", 1), ("b", -1))]}, "(queues, item 2)"),
    "twice": ({"vhosts": [{"name": "w"}], "queues": [
        {"name": "a", "vhost": "w", "durable": durable, "auto_delete": False, "arguments": {}}
        for durable in (True, False)]}, None),
    "shape": ({"vhosts": [{"name": "w"}], "queues": {"a": 1}}, "queues"),
    "deep": ({"vhosts": [{"name": "w"}], "queues": [{"name": "a", "vhost": "w", "durable": True, "auto_delete": False,
              "arguments": {"x": json.loads("[" * 60 + "]" * 60)}}]}, "(queues, item 1)"),
}


@pytest.mark.ht(42)
@pytest.mark.parametrize("case", DEFINITIONS)
def test_definitions_are_made_whole_or_not_at_all(api, case):
    document, where = DEFINITIONS[case]
    found = api.ask("POST", "/api/definitions", document)
    if where is None:
        assert found.status == 204
        api.do("DELETE", "/api/vhosts/w")
    else:
        assert found.status == 400 and where in found.reason, found
    assert api.ask("GET", "/api/users/w").status == 404
    assert api.ask("GET", "/api/vhosts/w").status == 404


@pytest.mark.ht(42)
def test_definitions_tell_no_secrets(broker, api, made):
    """Unknown parts of them are ignored, and no answer has their secrets."""
    user = made.user()
    secret = "secret-of-a-shovel-4711"
    document = {
        "nope": [secret], "users": [{"name": user, "password": secret, "tags": []}],
        "parameters": [
            {"component": "shovel", "vhost": "/", "name": "s", "value": {"src-uri": f"amqp://u:{secret}@x"}}]}
    imported = api.ask("POST", "/api/definitions", document)
    assert (imported.status, imported.json["left_out_total"]) == (200, 1) and secret.encode() not in imported.text
    assert api.ask("GET", "/api/parameters").json == []
    assert secret not in broker.log.read_text()
    assert secret.encode() not in api.ask("GET", "/api/definitions").text


@pytest.mark.ht(40)
def test_metrics_may_be_asked_for_by_everybody_and_often(broker, api, peer):
    """One answer is made at a time, and none of the many who ask makes others wait for long."""
    for _ in range(20):
        for target in ("/metrics", "/metrics/memory-breakdown"):
            assert api.ask("GET", target, user=None).status == 200
        for target in ("/metrics/per-object", "/metrics/detailed?family=queue_coarse_metrics"):
            assert api.ask("GET", target).status == 200
        peer.send(wire.heartbeat())
    assert api.ask("GET", "/metrics/detailed?prefix=" + "a" * 1000).status in (200, 400)
    peer.assert_usable()


@pytest.mark.ht(40)
def test_metrics_without_login_have_no_names(broker, api, made):
    """Of vhosts, users and queues; users with the tag monitoring see them, and clients of the separate port for scrapers."""
    vhost = made.vhost()
    managing, monitor = made.user(tags="management", vhosts=(vhost,)), made.user(tags="monitoring", vhosts=())
    api.do("PUT", "/api/queues/" + path("/", made.name()), {"auto_delete": True})
    everything = "/metrics/detailed?family=queue_death_metrics&family=vhost_status"
    for user, is_told in ((None, False), (managing, False), (monitor, True), ("guest", True)):
        sums = api.ask("GET", "/metrics", user=user)
        assert (sums.status, vhost in sums.text.decode()) == (200, is_told), user
        assert (b"vhost=" in sums.text) == is_told
        for target in ("/metrics/per-object", everything):
            assert api.ask("GET", target, user=user).status == (200 if is_told else 401)
    for target in ("/metrics", "/metrics/per-object"):
        assert api.ask("GET", target, headers={"authorization": basic("guest", "wrong")}).status == 401
