"""What is in a queue (`messages`) and when it expires (`expiry`), looked at without anybody noticing: RabbitMQ has neither."""

import time
from urllib.parse import urlencode

import pytest
from brokers import quoted
from definitions import User
from expectations import NOTHING, dead_letters_to, no_access
from patience import eventually

pytestmark = pytest.mark.better


@pytest.fixture(autouse=True)
def only_leveret(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such paths")


class Look:
    """What a broker tells of its queues over HTTP."""

    def __init__(self, api, user="guest"):
        self.api, self.user = api, user

    def ask(self, queue, what="messages", vhost="/", **query):
        """The whole answer."""
        query = urlencode(query, doseq=True)
        return self.api.ask("/api/queues/" + quoted(vhost, queue, what) + (query and "?" + query), user=self.user)

    def __call__(self, queue, **query):
        """One page."""
        answer = self.ask(queue, **query)
        assert answer.status == 200, answer.text
        return answer.json

    def all(self, queue, **query):
        """All messages, page by page, each seen as text of a cursor from the page before."""
        messages, pages, cursor = [], 0, ""
        while cursor is not None:
            page = self(queue, **query, cursor=cursor)
            messages += page["messages"]
            cursor, pages = page["cursor"], pages + 1
            assert pages < 2000
        return messages

    def bodies(self, queue, **query):
        return [message["payload"] for message in self.all(queue, **query)]

    def stats(self, queue):
        """What is counted for the queue, and how much is there."""
        found = self.api.ask("/api/queues/" + quoted("/", queue)).json
        stats = {k: v for k, v in found["message_stats"].items() if not k.endswith("_details")}
        return stats, {key: found[key] for key in ("messages", "messages_ready", "messages_unacknowledged")}


@pytest.fixture
def look(under):
    return Look(under.shared().api)


# --- what is shown


def test_a_message_is_shown_with_all_that_is_known(look, ch, kind):
    x = ch.exchange("topic")
    q = ch.queue(kind, message_ttl=600000)
    ch.bind(q, x, "a.*")
    before_ms = time.time() * 1000
    ch.publish("a.b", "häse", exchange=x, expiration="60000", delivery_mode=2, headers={"n": 1, "l": ["x"]})
    answer = look(q)
    [message] = answer.pop("messages")
    assert answer == {"cursor": None, "scanned": 1, "messages_total": 1}
    arrived_ms, id = message.pop("arrived_ms"), message.pop("id")
    assert before_ms - 1000 < arrived_ms < time.time() * 1000 + 1000
    assert abs(message.pop("expires_ms") - arrived_ms - 60000) <= 1
    assert message == {
        "position": 0, "state": "ready", "exchange": x, "routing_key": "a.b", "redelivered": False,
        "redelivered_uncertain": False, "delivery_count": 0,
        "properties": {"expiration": "60000", "delivery_mode": 2, "headers": {"l": ["x"], "n": 1}},
        "payload": "häse", "payload_encoding": "string", "payload_bytes": 5, "deaths": [], "deaths_total": 0, "redrives": [],
    }
    assert look(q)["messages"][0]["id"] == id


def test_bodies_are_cut_off_and_octets_are_base64(look, ch):
    q = ch.queue()
    ch.publish(q, "häse", b"\xff\x00")
    for truncate, payloads in ((50000, ["häse", "/wA="]), (2, ["h", "/wA="]), (1, ["h", "/w=="]), (0, ["", ""])):
        page = look(q, truncate=truncate)["messages"]
        assert [message["payload"] for message in page] == payloads
        assert [message["payload_bytes"] for message in page] == [5, 2]
    ch.publish(q, 60_000 * "x")
    assert [len(message["payload"]) for message in look(q)["messages"]] == [4, 4, 50_000]


def test_without_a_ttl_nothing_expires(look, ch):
    q = ch.queue()
    ch.publish(q, "m")
    assert look(q)["messages"][0]["expires_ms"] is None
    assert look(ch.queue(name="empty")) == {"messages": [], "cursor": None, "scanned": 0, "messages_total": 0}


def test_deaths_are_listed_newest_first(look, ch):
    dlq = ch.queue(name="dlq")
    second = ch.queue(name="second", message_ttl=1, **dead_letters_to(dlq))
    first = ch.queue(name="first", **dead_letters_to(second))
    ch.kill(first, expiration="60000", headers={"CC": ["cc"]})
    ch.reaches(dlq, 1)
    [message] = look(dlq)["messages"]
    newest, oldest = message["deaths"]
    for death in (newest, oldest):
        assert abs(death.pop("time_ms") - time.time() * 1000) < 60_000
    assert newest == {"queue": second, "reason": "expired", "count": 1, "exchange": "", "routing_keys": [second],
                      "routing_keys_total": 1, "original_expiration_ms": None}
    assert oldest == {"queue": first, "reason": "rejected", "count": 1, "exchange": "", "routing_keys": [first, "cc"],
                      "routing_keys_total": 2, "original_expiration_ms": 60000}
    assert message["properties"]["headers"]["x-first-death-queue"] == first


def test_redriving_user_is_read_from_the_header(look, ch):
    q = ch.queue()
    entry = {"queue": "dlq", "time": 1700000000, "user": "ann", "x-death": []}
    ch.publish(q, "m", headers={"x-redrives": [entry, "no table", {}]})
    assert look(q)["messages"][0]["redrives"] == [
        {"queue": "dlq", "time_ms": None, "user": "ann"}, {"queue": None, "time_ms": None, "user": None}]


# --- the order, and that nothing changes


def untouched(look, ch, queue, **query):
    """The messages shown by browsing, which leaves no trace in the broker."""
    before = look.stats(queue)
    shown = look.all(queue, **query)
    assert look.stats(queue) == before
    return shown


@pytest.mark.parametrize("count", [1, 7, 500])
def test_the_order_is_that_of_delivery_and_stays(look, ch, kind, count):
    q = ch.queue(kind, **({"max_priority": 4} if kind == "classic" else {}))
    for n in range(30):
        ch.publish(q, str(n), priority=n % 5)
    # Some come back to where each type of queue puts them, one of them is taken away for good.
    held = ch.get_unacked(q, 6)
    for message in (held[3], held[1], held[5]):
        ch.nack(message, requeue=True)
    ch.ack(held[0])
    ch.sync()
    shown = untouched(look, ch, q, count=count)
    assert [message["position"] for message in shown] == list(range(27))
    assert [message["redelivered"] for message in shown].count(True) == 3
    assert len({message["id"] for message in shown}) == 27
    taken = [ch.get(q) for _ in shown]
    assert [(message.body, message.redelivered) for message in taken] == \
        [(message["payload"], message["redelivered"]) for message in shown]
    assert look(q)["messages_total"] == 0
    held_still = untouched(look, ch, q, state="unacknowledged", count=count)
    assert {message["payload"] for message in held_still} == {held[2].body, held[4].body}


def test_a_cursor_goes_on_where_it_was_whatever_has_gone(look, ch):
    q = ch.queue()
    ch.publish(q, *"abcdefgh")
    page = look(q, count=3)
    assert [message["payload"] for message in page["messages"]] == list("abc")
    taken = [ch.get(q).body for _ in range(4)]
    assert taken == list("abcd")
    ch.publish(q, "i")
    rest = look(q, cursor=page["cursor"])
    assert [message["payload"] for message in rest["messages"]] == list("efghi") and rest["cursor"] is None


def test_last_page_that_is_full_has_no_cursor(look, ch):
    q = ch.queue()
    ch.publish(q, *"abc")
    assert look(q, count=3)["cursor"] is None
    assert look(q, count=2)["cursor"] is not None
    assert look(q, count=2, text="c")["cursor"] is None


# --- the other states


def test_holder_of_an_unacked_message_is_shown(look, ch, client):
    q, other = ch.queue(), ch.queue(name="other")
    consumer = ch.consume(q, prefetch=2, tag="worker")
    ch.publish(q, *"abcd")
    ch.publish(other, "x")
    consumer.next_bodies(2)
    getter = client.channel()
    got = getter.get_unacked(q)
    getter.get_unacked(other)
    shown = untouched(look, ch, q, state="unacknowledged", count=1)
    by_payload = {message["payload"]: message for message in shown}
    assert set(by_payload) == {"a", "b", got.body} == set("abc")
    assert all(message["position"] is None and not message["redelivered"] for message in shown)
    assert by_payload["a"]["consumer_tag"] == "worker" and by_payload["c"]["consumer_tag"] is None
    assert by_payload["a"]["channel"].endswith(f"({ch.number})")
    channels = {channel["name"] for channel in look.api.ask("/api/channels").json}
    assert {message["channel"] for message in shown} <= channels
    assert look(q)["messages_total"] == 1 and look(q, state="unacknowledged")["messages_total"] == 3
    # What comes back was delivered once.
    getter.nack(got, requeue=True)
    getter.sync()
    assert [(m["payload"], m["redelivered"]) for m in look.all(q)] == [("c", True), ("d", False)]


def test_delivery_settled_in_an_open_transaction_is_still_unacked(look, ch, client):
    q = ch.queue()
    ch.publish(q, *"abc")
    transaction = client.channel().tx_select()
    for message in transaction.get_unacked(q, 2):
        transaction.ack(message)
    transaction.sync()
    assert sorted(look.bodies(q, state="unacknowledged", count=1)) == ["a", "b"]
    transaction.tx_commit()
    assert look.bodies(q, state="unacknowledged") == []


def test_delayed_message_is_shown_with_its_time(look, ch):
    q = ch.queue("quorum", delayed_retry_type="all", delayed_retry_min=300000, delayed_retry_max=600000)
    ch.publish(q, *"abc")
    for message in ch.get_unacked(q, 2):
        ch.reject(message, requeue=True)
    ch.sync()
    eventually(lambda: look(q, state="delayed")["messages_total"] == 2)
    shown = untouched(look, ch, q, state="delayed", count=1)
    assert [(m["payload"], m["position"], m["state"], m["delivery_count"]) for m in shown] == \
        [("a", 0, "delayed", 1), ("b", 1, "delayed", 1)]
    assert all(abs(m["ready_ms"] - time.time() * 1000 - 300_000) < 60_000 for m in shown)
    assert look.bodies(q) == ["c"]


def test_dead_letters_that_are_kept_are_shown(look, ch):
    nowhere = ch.exchange()
    q = ch.queue("quorum", dead_letter_strategy="at-least-once", overflow="reject-publish", dead_letter_exchange=nowhere)
    ch.publish(q, *"abc")
    for message in ch.get_unacked(q, 2):
        ch.nack(message)
    ch.sync()
    shown = untouched(look, ch, q, state="dead", count=1)
    assert [(m["payload"], m["state"], m["expires_ms"]) for m in shown] == [("a", "dead", None), ("b", "dead", None)]
    assert look.bodies(q) == ["c"]


# --- filters


def test_filters_find_what_is_so_and_must_all_be_so(look, ch):
    dlq = ch.queue(name="dlq")
    limited = ch.queue(name="limited", max_length=1, **dead_letters_to(dlq))
    rejecting = ch.queue(name="rejecting", **dead_letters_to(dlq))
    for n in range(4):
        ch.publish(limited, f"order {n}", headers={"customer": f"c{n % 2}", "n": n})
    ch.kill(rejecting, headers={"customer": "c1"})
    ch.publish(dlq, "order 9")
    ch.reaches(dlq, 5)
    for filter, expected in [
        ({"reason": "maxlen"}, ["order 0", "order 1", "order 2"]),
        ({"reason": "rejected"}, ["m"]),
        ({"reason": "expired"}, []),
        ({"first_queue": limited}, ["order 0", "order 1", "order 2"]),
        ({"first_queue": rejecting, "reason": "maxlen"}, []),
        ({"text": "order"}, ["order 0", "order 1", "order 2", "order 9"]),
        ({"header": "customer"}, ["order 0", "order 1", "order 2", "m"]),
        ({"header": "customer=c1"}, ["order 1", "m"]),
        ({"header": ["customer=c0", "n=2"]}, ["order 2"]),
        ({"header": "customer=c1", "text": "order"}, ["order 1"]),
        ({"header": "x-last-death-reason=rejected"}, ["m"]),
        ({}, ["order 0", "order 1", "order 2", "m", "order 9"]),
    ]:
        for count in (1, 50):
            assert look.bodies(dlq, **filter, count=count) == expected, filter
        assert look(dlq, **filter)["scanned"] == 5
    assert [message["position"] for message in look.all(dlq, header="customer=c1", count=1)] == [1, 3]
    assert look.bodies(limited, text="order 3") == ["order 3"]


def test_a_request_looks_at_so_many_messages_and_goes_on_with_a_cursor(look, ch):
    q = ch.queue()
    ch.publish(q, *40_000 * ["m"], "needle")
    page = look(q, text="needle")
    assert page["messages"] == [] and page["cursor"] is not None and page["messages_total"] == 40_001
    assert 10_000 <= page["scanned"] < 40_000
    [message] = look.all(q, text="needle")
    assert message["position"] == 40_000


# --- who may look, and what is no question


def test_browsing_needs_read_permission(defined, prefix):
    ch = defined(users=[User("bob", read=NOTHING, tags=["management"]), User("eve", configure=None, tags=["management"]),
                        User("ann", configure=NOTHING, write=NOTHING, tags=["management"])])
    q, api = ch.queue(), defined.client.broker.api
    ch.publish(q, "m")

    def answer(user, what="messages", queue=q, vhost="/"):
        found = Look(api, prefix + user if user else None).ask(queue, what, vhost)
        return found.status, found.json.get("reason")

    assert answer("ann") == (200, None)
    status, reason = answer("bob")
    assert status == 401 and no_access("read", "queue", q, prefix + "bob") in reason
    assert answer("bob", "expiry") == (200, None)
    for what in ("messages", "expiry"):
        assert answer("eve", what) == (404, "Not Found")
        assert answer(None, what)[0] == 401
        assert answer("ann", what, queue="nope") == (404, "Not Found")
        assert answer("ann", what, vhost="nope") == (404, "Not Found")
    # A malformed request of a user with the permission gets its reason.
    assert Look(api, prefix + "ann").ask(q, state="gone").status == 400


def test_an_administrator_without_permissions_may_not_read(look, ch, made):
    root = made.user("root", tags="administrator")
    q = ch.queue()
    found = Look(look.api, root).ask(q)
    assert (found.status, found.json["reason"]) == (401, "Access refused.")


@pytest.mark.parametrize("query, reason", [
    ({"state": "gone"}, "state must be one of ready, unacknowledged, delayed, dead"),
    ({"count": 0}, "count must be from 1 to 500"), ({"count": 501}, "count must be from 1 to 500"),
    ({"count": "x"}, "count must be a whole number"), ({"truncate": -1}, "truncate must be a whole number"),
    ({"cursor": "x"}, "the cursor is none that was given"), ({"cursor": "0_d0"}, "the cursor is of another state"),
    ({"reason": "bored"}, "reason must be one of rejected, expired, maxlen, delivery_limit"),
])
def test_invalid_queries_are_refused(look, ch, query, reason):
    q = ch.queue()
    answer = look.ask(q, **query)
    assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason})


def test_any_cursor_is_a_place(look, ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abc")
    ch.get_unacked(q)
    for cursor, state in [("0_rffffffffffffffff", "ready"), ("ffffffffffffffff_dffffffffffffffff", "dead"),
                          ("0_wffffffffffffffff.ffffffffffffffff", "delayed"),
                          ("0_uffffffffffffffff.ffff.1.ffffffffffffffff", "unacknowledged")]:
        page = look(q, cursor=cursor, state=state)
        assert page["messages"] == [] and page["cursor"] is None
    assert look(q, cursor="0_u0.0.0.0", state="unacknowledged")["messages"][0]["payload"] == "a"
    assert len(look(q, cursor="7_r0")["messages"]) == 2


# --- long queues


@pytest.fixture
def small(under):
    """A broker that puts nearly everything aside, and a client of it."""
    import client as client_module
    broker = under.start("vm_memory_high_watermark_paging_ratio = 0.00001\n")
    client = client_module.Client(broker, "bb-small-")
    yield client
    client.clean_up()
    broker.stop()


def body(n):
    return f"{n:05}" + 2000 * "x"


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_paged_messages_are_listed_in_order_and_stay_on_disk(small, kind):
    look, ch = Look(small.broker.api), small.channel().confirm_select()
    q = ch.queue(kind)
    count = 3000
    ch.publish(q, *(body(n) for n in range(count)), delivery_mode=2)

    def paged():
        return look.api.ask("/api/queues/" + quoted("/", q)).json["messages_paged_out"]

    before = paged()
    assert before > count / 2
    everything = [body(n)[:5] for n in range(count)]
    assert [message["payload"] for message in untouched(look, ch, q, count=500, truncate=5)] == everything
    assert look.bodies(q, text="02345", truncate=5) == ["02345"]
    assert paged() == before
    held = ch.get_unacked(q, 3)
    ch.nack(held[1], requeue=True)
    ch.ack(held[2])
    ch.sync()
    expected = [everything[n] for n in (1, *range(3, count))]
    for page in (500, 97):
        shown = untouched(look, ch, q, count=page, truncate=5)
        assert [message["payload"] for message in shown] == expected
        assert [message["position"] for message in shown] == list(range(len(expected)))
        assert [message["redelivered"] for message in shown].count(True) == 1
    assert [ch.get(q).body[:5] for _ in range(200)] == expected[:200]
    small.broker.check()


def test_unreadable_page_is_reported_and_changes_nothing(small):
    look, ch = Look(small.broker.api), small.channel().confirm_select()
    q = ch.queue(durable=False)
    ch.publish(q, *(body(n) for n in range(1000)))

    def written():
        found = [page for page in small.broker.data_dir.glob("vhosts/*/pages/*.page") if page.stat().st_size]
        return found if len(found) > 10 else None

    # They are written beside everything else.
    for page in eventually(written):
        octets = page.read_bytes()
        page.write_bytes(octets[:-100] + 100 * b"?")
    answer = look.ask(q, count=500)
    assert answer.status == 500 and "bytes have changed" in answer.json["reason"]
    assert look(q, count=1)["messages"][0]["payload"] == body(0)
    ch.delete(q)
    small.broker.check()


def test_a_look_and_a_consumer_do_not_disturb_each_other(small):
    look, ch = Look(small.broker.api), small.channel().confirm_select()
    q = ch.queue()
    count = 6000
    ch.publish(q, *(body(n) for n in range(count)), delivery_mode=2)
    consumer = small.channel().consume(q, auto_ack=True)
    seen, cursor = [], ""
    while cursor is not None:
        page = look(q, count=50, truncate=5, cursor=cursor)
        seen += [int(message["payload"]) for message in page["messages"]]
        cursor = page["cursor"]
        ch.pause(0.001)
    assert seen == sorted(set(seen)), "in order and once"
    small.run_until(lambda: len(consumer.messages) == count, 30)
    assert [message.body[:5] for message in consumer.messages] == [body(n)[:5] for n in range(count)]
    small.broker.check()


def test_deadlines_of_what_is_on_disk_are_estimated(small):
    look, ch = Look(small.broker.api), small.channel().confirm_select()
    q = ch.queue()
    count = 3000
    for n in range(count):
        options = {} if n % 3 else {"expiration": str(1_000_000 + 1000 * n)}
        ch.publish(q, body(n), wait=False, **options)
    ch.confirmed()
    told = look.ask(q, "expiry").json
    assert (told["messages"], told["never"], told["overdue"]) == (count, count * 2 / 3, 0)
    assert 100 < told["estimated"] < count / 3
    buckets = told["buckets"]
    assert sum(bucket["count"] for bucket in buckets) == count / 3
    assert buckets[0]["from_ms"] > 900_000 and 3_900_000 < buckets[-1]["to_ms"] < 4_100_000
    # They are spread evenly, so that each bucket has about as many.
    assert all(bucket["count"] > count / 3 / len(buckets) / 2 for bucket in buckets[1:-1]), buckets


# --- when messages expire


def test_expiry_counts_every_message_once(look, ch, kind):
    q = ch.queue(kind, message_ttl=1_000_000)
    ch.publish(q, *"abc")
    ch.publish(q, "d", expiration="200000")
    ch.publish(q, "e", expiration="2000000")
    before = look.stats(q)
    told = look.ask(q, "expiry", buckets=4).json
    assert look.stats(q) == before
    assert abs(told.pop("now_ms") - time.time() * 1000) < 60_000
    assert 0 <= told.pop("oldest_age_ms") < 150_000
    assert abs(told.pop("next_deadline_ms") - time.time() * 1000 - 200_000) < 150_000
    buckets = told.pop("buckets")
    assert told == {"messages": 5, "message_ttl_ms": 1_000_000, "never": 0, "overdue": 0, "estimated": 0}
    assert len(buckets) <= 4 and [buckets[0]["count"], buckets[-1]["count"]] == [1, 4]
    assert buckets[0]["from_ms"] <= 200_000 and buckets[-1]["to_ms"] <= 1_000_000 + len(buckets)  # all have one length in ms
    assert all(one["to_ms"] == next["from_ms"] for one, next in zip(buckets, buckets[1:]))


def test_an_empty_queue_and_one_without_a_ttl(look, ch):
    nothing = {"oldest_age_ms": None, "next_deadline_ms": None, "message_ttl_ms": None, "never": 0, "overdue": 0,
               "buckets": [], "estimated": 0, "messages": 0}
    told = look.ask(q := ch.queue(), "expiry").json
    assert told.pop("now_ms") and told == nothing
    ch.publish(q, "a", "b")
    told = look.ask(q, "expiry").json
    assert told.pop("now_ms") and told.pop("oldest_age_ms") >= 0
    assert told == {k: v for k, v in nothing.items() if k != "oldest_age_ms"} | {"messages": 2, "never": 2}


def test_overdue_messages_behind_the_head_are_counted(look, ch):
    q = ch.queue(expiry_order="head")
    ch.publish(q, "a")
    ch.publish(q, "b", expiration="1")
    told = eventually(lambda: (told := look.ask(q, "expiry").json)["overdue"] and told)
    assert (told["messages"], told["never"], told["overdue"], told["buckets"]) == (2, 1, 1, [])
    assert told["next_deadline_ms"] <= told["now_ms"]


def test_delayed_messages_expire_and_held_ones_do_not(look, ch):
    q = ch.queue("quorum", message_ttl=500_000, delayed_retry_type="all", delayed_retry_min=300000,
                 delayed_retry_max=600000)
    ch.publish(q, *"abcd")
    for message in ch.get_unacked(q, 3)[:2]:
        ch.reject(message, requeue=True)
    ch.sync()
    told = eventually(lambda: (told := look.ask(q, "expiry").json)["messages"] == 3 and told)
    assert sum(bucket["count"] for bucket in told["buckets"]) == 3


@pytest.mark.parametrize("buckets", ["0", "201", "x", "-1"])
def test_so_many_buckets_there_are_not(look, ch, buckets):
    answer = look.ask(ch.queue(), "expiry", buckets=buckets)
    assert (answer.status, answer.json["reason"]) == (400, "buckets must be from 1 to 200")


def test_exclusive_queues_cannot_be_browsed(under, ch, look):
    """Nor takes, removes or redrives what is in it; it may be the queue of a dead-letter exchange."""
    q = ch.queue(exclusive=True)
    source = ch.queue(**dead_letters_to(q))
    ch.publish(q, "for one connection")
    ch.publish(source, "dead")
    ch.reject(ch.get_unacked(source))
    api, path = under.shared().api, "/api/queues/" + quoted("/", q)

    def ask(path, method, **body):
        return api.ask(path, method=method, body=body or None)

    locked = "cannot obtain exclusive access to locked queue"
    answers = [look.ask(q, state=state) for state in ("ready", "unacknowledged", "delayed", "dead")]
    answers += [
        ask(path + "/get", "POST", count=1, ackmode="ack_requeue_true", encoding="auto"),
        ask(path + "/contents", "DELETE"),
        ask(path, "DELETE"),
        ask("/api/bindings/" + quoted("/") + "/e/amq.direct/q/" + quoted(q), "POST", routing_key="k"),
        ask(path + "/redrive", "POST", to={"queue": source}),
        ask(path + "/redrive", "POST", to={"queue": source}, dry_run=True),
    ]
    for answer in answers:
        assert answer.status == 400 and locked in answer.json["reason"], answer.json
    assert ch.drain(q) == ["for one connection", "dead"]
