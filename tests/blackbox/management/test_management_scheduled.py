"""Scheduled messages over HTTP: listed, found by name or number, cancelled, rescheduled and delivered early. RabbitMQ has
no such endpoints."""

import time
from urllib.parse import urlencode

import pytest

from brokers import quoted
from client import Client

pytestmark = pytest.mark.better

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def leveret_only(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no delivery times")


def now_ms():
    return time.time_ns() // 1_000_000


def at(kind, name, id, more=""):
    """The path of a schedule in the vhost `/`."""
    return "/api/scheduled/" + quoted("/", kind, name, id) + more


def listed(api, vhost="/", user="guest", **query):
    """All pages of a list; the messages."""
    messages, cursor = [], ""
    while cursor is not None:
        path = "/api/scheduled" + ("" if vhost is None else "/" + quoted(vhost))
        answer = api.ask(path + "?" + urlencode(query | {"cursor": cursor}), user=user)
        assert answer.status == 200, answer
        assert len(answer.json["messages"]) <= query.get("limit", 100)
        messages += answer.json["messages"]
        cursor = answer.json["cursor"]
    return messages


def schedule(ch, queue, body, at_ms, id=None, exchange="", **properties):
    """Publish a message with a delivery time."""
    headers = {"x-opt-delivery-time": at_ms} | ({} if id is None else {"x-schedule-id": id})
    assert ch.publish(queue, body, exchange=exchange, headers=headers, **properties) == "a"


def delayed_exchange(ch, queue):
    """An exchange of type x-delayed-message that is bound to the queue."""
    x = ch.exchange("x-delayed-message", arguments={"x-delayed-type": "direct"})
    ch.bind(queue, x, queue)
    return x


def test_list_shows_messages_by_delivery_time(ch, api, kind):
    q = ch.queue(kind)
    x = delayed_exchange(ch, q)
    base = now_ms() + HOUR_MS
    schedule(ch, q, "late", base + 2000, id="order/7", delivery_mode=2, message_id="m-1")
    schedule(ch, q, "soon", base, delivery_mode=1)
    ch.publish(q, "held", exchange=x, headers={"x-delay": HOUR_MS // 2, "x-schedule-id": "ä"})
    held, soon, late = [m for m in listed(api) if m["target_name"] in (q, x)]
    assert late == {"vhost": "/", "target_kind": "queue", "target_name": q, "id": "order/7", "handle": late["handle"],
                    "delivery_time": base + 2000, "exchange": "", "routing_key": q, "message_id": "m-1",
                    "payload_bytes": 4, "persistent": True}
    assert (soon["id"], soon["delivery_time"], soon["persistent"]) == (None, base, kind == "quorum")
    assert (held["target_kind"], held["target_name"], held["id"]) == ("exchange", x, "ä")
    assert abs(held["delivery_time"] - (now_ms() + HOUR_MS // 2)) < 60_000
    assert listed(api, target="queue/" + q) == [soon, late]
    assert [m["handle"] for m in listed(api, target="exchange/" + x, id="ä")] == [held["handle"]]
    assert listed(api, target="queue/" + q, id="order/7") == [late]
    # The first limit is included, the second is not.
    assert listed(api, target="queue/" + q, after=base, before=base + 2000) == [soon]
    assert listed(api, target="queue/" + q, after=base + 10, before=base + 2010) == [late]
    assert [m for m in listed(api, vhost=None) if m["target_name"] == q] == [soon, late]


def test_pages_have_each_message_once(ch, api):
    queues = [ch.queue(), ch.queue()]
    base = now_ms() + HOUR_MS
    for number in range(25):
        # Half of the delivery times are equal.
        schedule(ch, queues[number % 2], str(number), base + number // 4 * 1000, message_id=str(number))
    for limit in (1, 7, 25, 500):
        found = [m["message_id"] for m in listed(api, limit=limit, after=base, before=base + HOUR_MS // 2)
                 if m["target_name"] in queues]
        assert sorted(found, key=int) == [str(number) for number in range(25)], limit
        times = [int(number) // 4 for number in found]
        assert times == sorted(times), limit


def test_pages_over_vhosts_are_merged(client, api, made):
    vhosts = [made.vhost("a"), made.vhost("b")]
    base = now_ms() + HOUR_MS
    for number, vhost in enumerate(vhosts):
        made.permit("guest", vhost)
        channel = Client(client.broker, "s-").channel(vhost=vhost).confirm_select()
        q = channel.queue()
        for i in range(5):
            # The two vhosts take turns.
            schedule(channel, q, "m", base + (2 * i + number) * 1000, message_id=f"{number}{i}")
    expected = listed(api, vhosts[0], after=base) + listed(api, vhosts[1], after=base)
    assert len(expected) == 10
    expected.sort(key=lambda m: m["delivery_time"])
    for limit in (1, 3, 100):
        found = [m for m in listed(api, vhost=None, limit=limit, after=base) if m["vhost"] in vhosts]
        assert [m["message_id"] for m in found] == [m["message_id"] for m in expected], limit
    counts = api.ask(f"/api/scheduled-counts?after={base}&bucket_ms=1000&buckets=20").json
    assert sum(counts["counts"]) >= 10 and counts["complete"]


def test_messages_are_found_by_name_and_by_handle(ch, api, kind):
    q = ch.queue(kind)
    base = now_ms() + HOUR_MS
    schedule(ch, q, "m", base, id="a/b")
    schedule(ch, q, "n", base + 1)
    named, other = listed(api, target="queue/" + q)
    assert api.do("GET", at("queue", q, "a/b")) == [named]
    assert api.do("GET", at("queue", q, str(other["handle"]), "?by=handle")) == [other]
    missing = api.ask(at("queue", q, "b"))
    assert (missing.status, missing.json) == (404, {
        "error": "not_found", "reason": f"no scheduled message 'b' in queue '{q}' in vhost '/'"})
    missing = api.ask(at("queue", q, "999", "?by=handle"))
    assert missing.json["reason"] == f"no scheduled message with handle 999 in queue '{q}' in vhost '/'"
    missing = api.ask(at("queue", q + "x", "b"))
    assert (missing.status, missing.json["reason"]) == (404, f"NOT_FOUND - no queue '{q}x' in vhost '/'")
    assert api.ask(at("topic", q, "a/b")).status == 404


def test_cancel(ch, api, kind):
    q = ch.queue(kind)
    x = delayed_exchange(ch, q)
    schedule(ch, q, "m", now_ms() + HOUR_MS, id="a", delivery_mode=2)
    ch.publish(q, "held", exchange=x, headers={"x-delay": HOUR_MS, "x-schedule-id": "a"})
    for target in (("queue", q), ("exchange", x)):
        assert api.do("DELETE", at(*target, "a")) == {"cancelled": 1}
        assert api.ask(at(*target, "a"), method="DELETE").status == 404
    assert listed(api, target="queue/" + q) == listed(api, target="exchange/" + x) == []
    assert api.do("GET", "/api/queues/" + quoted("/", q))["messages"] == 0


def test_reschedule(ch, api, kind):
    q = ch.queue(kind)
    consumer = ch.consume(q)
    schedule(ch, q, "m", now_ms() + HOUR_MS, id="a")
    [message] = listed(api, target="queue/" + q)
    later = now_ms() + 2 * HOUR_MS
    assert api.do("PUT", at("queue", q, "a"), {"delivery_time": later}) == {"rescheduled": 1, "delivery_time": later}
    assert api.do("GET", at("queue", q, "a")) == [message | {"delivery_time": later}]
    before = now_ms()
    told = api.do("PUT", at("queue", q, str(message["handle"]), "?by=handle"), {"delay": 300})
    # Both clocks tell whole milliseconds: `now_ms` rounds down, the broker rounds the end of a delay up.
    assert told["rescheduled"] == 1 and before + 300 <= told["delivery_time"] <= now_ms() + 301
    assert consumer.next().body == "m"
    assert now_ms() >= told["delivery_time"]
    assert api.ask(at("queue", q, "a"), method="PUT", body={"delay": 1}).status == 404


def test_deliver_early(ch, api, kind):
    q = ch.queue(kind)
    x = delayed_exchange(ch, q)
    consumer = ch.consume(q)
    schedule(ch, q, "m", now_ms() + HOUR_MS, id="a")
    ch.publish(q, "held", exchange=x, headers={"x-delay": HOUR_MS, "x-schedule-id": "b"})
    assert api.do("POST", at("queue", q, "a", "/deliver")) == {"delivered": 1}
    assert consumer.next().body == "m"
    assert api.do("POST", at("exchange", x, "b", "/deliver")) == {"delivered": 1}
    assert consumer.next().body == "held"
    assert api.ask(at("queue", q, "a", "/deliver"), method="POST").status == 404


def test_all_messages_with_a_name_change_together(ch, api):
    q = ch.queue()
    for _ in range(3):
        headers = {"x-opt-delivery-delay": HOUR_MS, "x-schedule-id": "a", "x-schedule-mode": "add"}
        ch.publish(q, "m", headers=headers)
    assert len(api.do("GET", at("queue", q, "a"))) == 3
    assert api.do("PUT", at("queue", q, "a"), {"delay": 2 * HOUR_MS})["rescheduled"] == 3
    assert api.do("DELETE", at("queue", q, "a")) == {"cancelled": 3}


def test_cancel_all_that_match(ch, api):
    q, other = ch.queue(), ch.queue()
    base = now_ms() + HOUR_MS
    for number in range(600):  # more than are cancelled at once
        schedule(ch, q, "m", base + number * 10)
    schedule(ch, other, "m", base)

    def cancel(**query):
        answer = api.ask("/api/scheduled/%2F?" + urlencode(query), method="DELETE")
        assert answer.status == 200, answer
        assert answer.json["complete"] and answer.json["refused"] == 0
        return answer.json["cancelled"]

    target = "queue/" + q
    assert cancel(target=target, after=base + 5895) == 10
    assert cancel(target=target, before=base + 395) == 40
    assert cancel(target=target, id="none") == 0
    assert cancel(target=target) == 550
    assert cancel(target=target) == 0
    assert len(listed(api, target="queue/" + other)) == 1
    ch.sync()
    assert ch.drain(q) == [], "cancelled messages are not delivered"


def test_counts_are_by_delivery_time(ch, api):
    q = ch.queue()
    base = now_ms() + HOUR_MS
    for offset in (0, 10, 990, 1000, 5000):
        schedule(ch, q, "m", base + offset)
    path = "/api/scheduled-counts/%2F?" + urlencode({"target": "queue/" + q, "after": base, "bucket_ms": 1000, "buckets": 3})
    assert api.do("GET", path) == {"from": base, "bucket_ms": 1000, "counts": [3, 1, 0], "later": 1, "messages": 5,
                                   "complete": True}
    hour = api.do("GET", "/api/scheduled-counts/%2F?target=queue/" + q)
    assert (len(hour["counts"]), hour["bucket_ms"], hour["messages"]) == (60, 60_000, 5)
    assert sum(hour["counts"]) + hour["later"] == 5


def test_wrong_requests_are_refused(ch, api):
    q = ch.queue()
    schedule(ch, q, "m", now_ms() + HOUR_MS, id="a")
    list_, one = "/api/scheduled/%2F", at("queue", q, "a")
    far = {"delivery_time": now_ms() + 10 * 366 * 86_400_000}
    for method, path, body, reason in [
        ("GET", list_ + "?limit=0", None, "limit must be from 1 to 500"),
        ("GET", list_ + "?limit=501", None, "limit must be from 1 to 500"),
        ("GET", list_ + "?targets=queue/q", None,
         "targets is not known; known are target, id, after, before, limit, cursor"),
        ("GET", "/api/scheduled?target=q", None, "target must be queue/NAME or exchange/NAME"),
        ("GET", list_ + "?after=now", None, "after must be a whole number, not less than 0"),
        ("GET", list_ + "?cursor=x", None, "the cursor is none that was given"),
        ("DELETE", list_, None, "one of target, id, after and before is needed; after=0 selects all messages"),
        ("DELETE", list_ + "?filter=x", None, "filter is not known; known are target, id, after, before"),
        ("PUT", one, {}, "one of delivery_time and delay is needed"),
        ("PUT", one, {"delay": 1, "delivery_time": 1}, "one of delivery_time and delay is needed"),
        ("PUT", one, {"delay": "soon"}, "delay should be a whole number of milliseconds, not less than 0"),
        ("PUT", one, {"at": 1}, "at is not known; known are delivery_time, delay"),
        ("PUT", one, far, f"406 PRECONDITION_FAILED - invalid x-opt-delivery-time '{far['delivery_time']}': "
         "further away than 315360000000 ms"),
        ("GET", one + "?by=name", None, "by must be id or handle"),
        ("DELETE", one + "?by=handle", None, "the handle must be a whole number"),
    ]:
        answer = api.ask(path, method=method, body=body)
        assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason}), path
    assert len(api.do("GET", one)) == 1
    assert api.ask("/api/scheduled/no-such-vhost").status == 404


def test_exclusive_queues_are_left_out(ch, api):
    q = ch.queue(exclusive=True)
    schedule(ch, q, "m", now_ms() + HOUR_MS, id="a")
    assert listed(api, target="queue/" + q) == []
    answer = api.ask(at("queue", q, "a"), method="DELETE")
    assert answer.status == 400 and answer.json["reason"].startswith("405 RESOURCE_LOCKED"), answer


def test_permissions_are_those_of_the_target(ch, api, made):
    vhost = "/"
    q, other = ch.queue(), ch.queue()
    schedule(ch, q, "m", now_ms() + HOUR_MS, id="a")
    schedule(ch, other, "m", now_ms() + HOUR_MS, id="a")
    reader, writer, nobody = made.user("r", tags="management"), made.user("w", tags="management"), made.user("n", tags="monitoring")
    made.permit(reader, vhost, write="^$", read=f"^{q}$")
    made.permit(writer, vhost, write=f"^{q}$", read=f"^({q}|{other})$")
    assert [m["target_name"] for m in listed(api, user=reader)] == [q]
    assert sorted(m["target_name"] for m in listed(api, user=writer)) == sorted([q, other])
    assert api.ask("/api/scheduled/%2F", user=nobody).status == 404
    assert [m for m in listed(api, vhost=None, user=nobody) if m["vhost"] == "/"] == []
    for method, path, body in [("DELETE", "", None), ("PUT", "", {"delay": 0}), ("POST", "/deliver", None)]:
        answer = api.ask(at("queue", q, "a", path), user=reader, method=method, body=body)
        assert answer.status == 401, (method, answer)
        assert answer.json["reason"].startswith(f"ACCESS_REFUSED - write access to queue '{q}'"), answer
    assert api.ask(at("queue", other, "a"), user=reader).status == 401
    # A bulk cancellation leaves messages that the user may not cancel.
    answer = api.ask("/api/scheduled/%2F?id=a", user=writer, method="DELETE")
    assert answer.json == {"cancelled": 1, "refused": 1, "complete": True}
    assert len(api.do("GET", at("queue", other, "a"))) == 1


def test_publish_answers_where_a_message_waits(ch, api, kind):
    q, other, x = ch.queue(kind), ch.queue(), ch.exchange("fanout")
    held = delayed_exchange(ch, q)
    ch.bind(q, x)
    ch.bind(other, x)

    def publish(exchange, key, **headers):
        body = {"properties": {"headers": headers}, "routing_key": key, "payload": "m", "payload_encoding": "string"}
        return api.do("POST", "/api/exchanges/" + quoted("/", exchange or "amq.default", "publish"), body)

    at_ms = now_ms() + HOUR_MS
    told = publish(x, "", **{"x-opt-delivery-time": at_ms, "x-schedule-id": "a"})
    assert told["routed"] is True
    places = {place["target_name"]: place for place in told["scheduled"]}
    for name in (q, other):
        [message] = listed(api, target="queue/" + name)
        fields = ("target_kind", "target_name", "id", "handle", "delivery_time")
        assert places[name] == {field: message[field] for field in fields}
        assert (message["id"], message["delivery_time"]) == ("a", at_ms)
    assert len(places) == 2
    # A publish that is dropped because its name is in use waits nowhere.
    assert publish("", other, **{"x-opt-delivery-time": at_ms, "x-schedule-id": "a", "x-schedule-mode": "keep"}) == {"routed": True}
    [place] = publish(held, q, **{"x-delay": HOUR_MS})["scheduled"]
    [message] = listed(api, target="exchange/" + held)
    assert (place["target_kind"], place["target_name"], place["id"]) == ("exchange", held, None)
    assert place["handle"] == message["handle"] and abs(place["delivery_time"] - message["delivery_time"]) <= 1
    api.do("DELETE", at("exchange", held, str(place["handle"]), "?by=handle"))
    assert publish("", q) == {"routed": True}
    assert publish("", q, **{"x-opt-delivery-time": 1, "x-schedule-id": "now"}) == {"routed": True}
    assert publish("", q + "x", **{"x-opt-delivery-delay": HOUR_MS}) == {"routed": False}


def test_answered_changes_survive_a_kill(under):
    if under.name != "leveret":
        pytest.skip("it belongs to somebody else")
    broker = under.start()
    try:
        client = Client(broker, "")
        ch = client.channel().confirm_select()
        ch.queue(name="q", durable=True)
        x = ch.exchange("x-delayed-message", name="x", durable=True, arguments={"x-delayed-type": "direct"})
        base = now_ms() + HOUR_MS
        for id in ("cancelled", "moved", "kept", "early"):
            schedule(ch, "q", id, base, id=id, delivery_mode=2)
            ch.publish("q", id, exchange=x, delivery_mode=2, headers={"x-delay": HOUR_MS, "x-schedule-id": id})
        for number in range(300):
            schedule(ch, "q", "bulk", base + HOUR_MS + number, delivery_mode=2)
        api = broker.api
        later = base + 5 * HOUR_MS
        handles = {(m["target_kind"], m["id"]): m["handle"] for m in listed(api) if m["id"]}
        for target in (("queue", "q"), ("exchange", "x")):
            api.do("DELETE", at(*target, "cancelled"))
            api.do("PUT", at(*target, "moved"), {"delivery_time": later})
            api.do("POST", at(*target, "early", "/deliver"))
        assert api.do("DELETE", f"/api/scheduled/%2F?after={base + HOUR_MS}&before={later}")["cancelled"] == 300
        broker.kill_and_start_again()
        found = {(m["target_kind"], m["id"]): m for m in listed(broker.api)}
        assert sorted(found) == sorted((kind, id) for kind in ("queue", "exchange") for id in ("kept", "moved"))
        for kind in ("queue", "exchange"):
            assert abs(found[kind, "moved"]["delivery_time"] - later) <= 2000
            assert found[kind, "kept"]["handle"] == handles[kind, "kept"]
    finally:
        broker.stop()
