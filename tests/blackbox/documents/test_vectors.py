"""The test vectors T1-T30 of the behaviour reference, one test each, with shorter times where only their ratio matters.

T7 (a TTL that runs on while the broker is down) needs a broker that is stopped and started and stands elsewhere.
Quorum variants and the finer points of each rule stand with their topics.
"""

import functools
import time

import pytest

from channel import Channel
from definitions import Policy, User
from expectations import dead_letters_to, inequivalent, no_access
from field_table import Wire
from live_policies import live_policy, until_ttl_policy_acts


@pytest.fixture
def d(ch):
    """The queue that the vectors call d: it gets the dead letters."""
    return ch.queue(name="d")


@pytest.mark.better
def test_t01_short_ttl_behind_a_long_one(ch, by_broker):
    q = ch.queue()
    ch.publish(q, "long", expiration="5000")
    ch.publish(q, "short", expiration="100")
    ch.publish(q, "none")
    ch.pause(0.5)
    assert ch.count(q) == by_broker(rabbitmq=3, leveret=2)
    long, none = ch.get(q), ch.get(q)
    assert (long.body, long.message_count) == ("long", 1)
    assert none.body == "none"


def test_t02_the_lower_of_queue_and_message_ttl(ch):
    q = ch.queue(message_ttl=1400)
    ch.publish(q, "long", expiration="10000")
    ch.publish(q, "short", expiration="1000")
    ch.pause(0.3)
    assert ch.count(q) == 2
    ch.reaches(q, 0)


def test_t03_ttl_zero_without_a_consumer(ch, d):
    q = ch.queue(message_ttl=0, **dead_letters_to(d))
    assert ch.publish(q, "m") == "a"
    assert ch.count(q) == 0
    ch.reaches(d, 1)


def test_t04_ttl_zero_with_a_consumer_that_takes_one(ch, d):
    q = ch.queue(message_ttl=0, **dead_letters_to(d))
    consumer = ch.consume(q, prefetch=1)
    ch.publish(q, "first", "second")
    first = consumer.next()
    assert first.body == "first"
    ch.reaches(d, 1)
    ch.nack(first, requeue=True)
    ch.reaches(d, 2)
    assert ch.drain(d) == ["second", "first"]
    assert consumer.hears_nothing(0.1)


def test_t05_a_requeue_after_the_deadline(ch, d):
    q = ch.queue(message_ttl=800, **dead_letters_to(d))
    ch.publish(q, "m")
    message = ch.get_unacked(q)
    ch.pause(1)
    ch.publish(q, "later")
    ch.nack(message, requeue=True)
    ch.reaches(d, 2)
    assert ch.drain(d) == ["m", "later"]  # with a fresh TTL it would leave after the other one


@pytest.mark.better
def test_t06_a_ttl_policy_and_old_messages(ch, client, api, by_broker):
    q = ch.queue()
    ch.publish(q, "old")
    with live_policy(api, client, {"message-ttl": 200}):
        until_ttl_policy_acts(ch, "classic")
        assert ch.stays(q, by_broker(rabbitmq=1, leveret=0))


def test_t08_a_queue_lease(ch):
    idle, declared, published = (ch.queue(name=n, expires=2000) for n in ("idle", "declared", "published"))
    for _ in range(7):
        ch.pause(0.5)
        ch.passive(declared)
        ch.publish(published, "m")
    assert ch.is_gone(idle) and ch.is_gone(published)
    assert not ch.is_gone(declared)


def test_t09_a_self_cycle_by_ttl(ch):
    q = ch.queue(message_ttl=100, dead_letter_exchange="")
    ch.publish(q, "m")
    ch.reaches(q, 0)
    assert ch.stays(q, 0)


def test_t10_two_queues_and_a_rejection(ch, client):
    a, b = client.name("a"), client.name("b")
    ch.queue(name=a, message_ttl=150, **dead_letters_to(b))
    ch.queue(name=b, **dead_letters_to(a))
    ch.publish(a, "m")
    ch.reaches(b, 1)
    ch.reject(ch.get_unacked(b))
    message = ch.take(b)
    assert message.deaths == [(a, "expired", 2), (b, "rejected", 1)]


def test_t11_a_fan_out_with_a_cycle_in_it(ch):
    dlx, other = ch.exchange("fanout", name="dlx"), ch.queue(name="other")
    src = ch.queue(name="src", message_ttl=100, dead_letter_exchange=dlx)
    for q in (src, other):
        ch.bind(q, dlx)
    ch.publish(src, "m")
    ch.reaches(other, 1)
    assert ch.stays(src, 0)


def test_t12_cc_and_bcc_keys_of_a_dead_letter(ch):
    x, source = ch.exchange("direct"), ch.exchange("direct", name="source")
    targets = {key: ch.queue(name=key) for key in ("orig", "cc1", "bcc1")}
    for key, q in targets.items():
        ch.bind(q, x, key)
    src = ch.queue(name="src", message_ttl=50, dead_letter_exchange=x)
    ch.bind(src, source, "orig")
    ch.publish("orig", "m", exchange=source, headers={"CC": ["cc1"], "BCC": ["bcc1"]})
    for q in targets.values():
        message = ch.take(q)
        assert message.routing_key == "orig"
        assert message.headers["x-death"][0]["routing-keys"] == ["orig", "cc1"]
        assert message.headers["CC"] == ["cc1"]
        assert "BCC" not in message.headers


def test_t13_forged_death_headers(ch, d):
    q = ch.queue(**dead_letters_to(d))
    forged = {"x-death": [{"queue": "f", "reason": "rejected", "count": 7}], "x-first-death-queue": "f", "x-retry": 2}
    ch.publish(q, "m", headers=forged)
    ch.nack(ch.get_unacked(q))
    message = ch.take(d)
    assert message.deaths == [(q, "rejected", 1)]
    assert (message.headers["x-first-death-queue"], message.headers["x-last-death-queue"]) == (q, q)
    assert message.headers["x-retry"] == 2


@pytest.mark.parametrize("overflow, outcomes, kept, dead", [
    ("drop-head", "aaaaaa", ["4", "5"], ["0", "1", "2", "3"]), ("reject-publish", "aaNNNN", ["0", "1"], []),
    ("reject-publish-dlx", "aaNNNN", ["0", "1"], ["2", "3", "4", "5"]),
])
def test_t14_the_three_overflow_behaviours(ch, d, overflow, outcomes, kept, dead):
    q = ch.queue(max_length=2, overflow=overflow, **dead_letters_to(d))
    assert ch.publish(q, *"012345") == outcomes
    ch.reaches(d, len(dead))
    assert ch.drain(q) == kept
    assert ch.drain(d) == dead


def test_t15_a_requeue_that_is_too_much(ch, d):
    q = ch.queue(max_length=1, **dead_letters_to(d))
    ch.publish(q, "1")
    first = ch.get_unacked(q)
    ch.publish(q, "2")
    ch.get_unacked(q)
    ch.publish(q, "3")
    ch.nack(first, requeue=True)
    assert ch.take(d).deaths == [(q, "maxlen", 1)]
    assert ch.drain(q) == ["3"]


def test_t16_a_fan_out_with_one_queue_full(ch):
    x, a, b = ch.exchange("fanout"), ch.queue(name="a", max_length=1, overflow="reject-publish"), ch.queue(name="b")
    for q in (a, b):
        ch.bind(q, x)
    assert "".join(ch.publish("", str(n), exchange=x) for n in range(4)) == "aNNN"
    ch.reaches(b, 4)
    assert ch.count(a) == 1


def test_t17_a_transaction_that_does_not_fit(ch):
    q = ch.queue(max_length=1, overflow="reject-publish")
    tx = ch.connection.channel().tx_select()
    tx.publish(q, *"0123")
    assert tx.answer_to(lambda c: c.tx_commit()) == ("channel", 406, "PRECONDITION_FAILED - partial tx completion")
    ch.reaches(q, 1)


@pytest.mark.better
def test_t18_overflow_by_argument_and_by_policy(defined, kind, by_broker):
    ch = defined(policies=[Policy({"overflow": "reject-publish"})])
    q = ch.queue(kind, max_length=2, overflow="drop-head")
    outcomes = "".join(ch.publish(q, str(n)) for n in range(6))
    refused = by_broker(rabbitmq="aaaNNN", leveret="aaNNNN")  # RabbitMQ's quorum queues overshoot
    assert outcomes == {"classic": "aaaaaa", "quorum": refused}[kind]


def test_t19_the_lower_of_two_limits(defined, kind):
    ch = defined(policies=[Policy({"max-length": 3})])
    q = ch.queue(kind, max_length=5)
    ch.publish(q, *"012345")
    assert ch.drain(q) == ["3", "4", "5"]


def test_t20_exchange_by_argument_and_key_by_policy(defined, prefix, kind):
    ch = defined(policies=[Policy({"dead-letter-routing-key": prefix + "od2"}, on="q")])
    od2 = ch.queue(name="od2")
    q = ch.queue(kind, dead_letter_exchange="")
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q))
    assert ch.take(od2).body == "m"


def test_t21_redeclaring_a_ttl(ch):
    q = ch.queue(message_ttl=1000)
    for wire_type in "lsI":
        ch.queue(name=q, message_ttl=Wire(wire_type, 1000))
    q8 = ch.queue(message_ttl=100)
    ch.queue(name=q8, message_ttl=Wire("b", 100))
    for value, shown in [(1001, "1001"), (1000.0, "1.0e3"), ("1000", "1000")]:
        redeclare = functools.partial(Channel.queue, name=q, message_ttl=value)
        ch.refuses(redeclare, 406, inequivalent("x-message-ttl", q, shown, "1000"))
    absent = "received none but current is the value '1000' of type 'signedint'"
    refusal = f"inequivalent arg 'x-message-ttl' for queue '{q}' in vhost '/': {absent}"
    ch.refuses(lambda c: c.queue(name=q), 406, refusal)


def test_t22_redeclaring_with_an_unknown_argument(ch):
    q = ch.queue(message_ttl=1000)
    ch.queue(name=q, message_ttl=1000, arguments={"x-unknown": 1})


def test_t23_declaring_without_write_access_to_the_dead_letter_exchange(defined, prefix):
    ch = defined(users=[User("bob", write="^$")])
    bob = defined.client.channel(user=prefix + "bob")
    dlx = ch.exchange("fanout", name="zdlx")
    refusal = no_access("write", "exchange", dlx, prefix + "bob")
    bob.refuses(lambda c: c.queue(name="q", dead_letter_exchange=dlx), 403, refusal)
    q = ch.queue(dead_letter_exchange=dlx)
    bob.queue(name=q, dead_letter_exchange=dlx)


def test_t24_the_order_of_nacked_messages(ch, kind, d):
    q = ch.queue(kind, **dead_letters_to(d))
    ch.publish(q, *"012345")
    messages = ch.get_unacked(q, 6)
    ch.nack(messages[2])
    ch.nack(messages[5], multiple=True)
    ch.reaches(d, 6)
    assert ch.drain(d) == ["2", "0", "1", "3", "4", "5"]


def test_t25_what_purge_and_delete_count(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abc")
    ch.get_unacked(q)
    assert ch.purge(q) == 2
    ch.publish(q, *"de")
    assert ch.delete(q) == 2


def test_t26_one_held_three_expire(ch, kind, d):
    q = ch.queue(kind, message_ttl=300, **dead_letters_to(d))
    holder = ch.connection.channel()
    consumer = holder.consume(q, prefetch=1)
    ch.publish(q, *"0123")
    assert consumer.next().body == "0"
    ch.reaches(d, 3)
    assert ch.stays(d, 3)
    holder.close()
    ch.reaches(d, 4)
    dead = [ch.take(d) for _ in range(4)]
    assert [message.body for message in dead] == ["1", "2", "3", "0"]
    assert dead[-1].deaths == [(q, "expired", 1)]


def test_t27_an_auto_delete_queue(ch):
    q = ch.queue(auto_delete=True)
    ch.publish(q, "m")
    ch.get(q)
    ch.pause(0.15)
    assert not ch.is_gone(q)
    ch.consume(q).cancel()
    ch.vanishes(q)


@pytest.mark.parametrize("verb, expected", [("reject", 21), ("nack", 40)])
def test_t28_the_default_delivery_limit(ch, verb, expected):
    q = ch.queue("quorum")
    ch.publish(q, "m")
    deliveries = 0
    while deliveries < 40 and (message := ch.get(q, ack=False)):
        deliveries += 1
        getattr(ch, verb)(message, requeue=True)
        ch.sync()
    assert deliveries == expected


def test_t29_delayed_retry(ch):
    q = ch.queue("quorum", delayed_retry_type="all", delayed_retry_min=200, delayed_retry_max=500)
    ch.publish(q, "m")
    consumer = ch.consume(q)
    message, waits = consumer.next(), []
    for _ in range(6):
        before = time.monotonic()
        ch.reject(message, requeue=True)
        message = consumer.next()
        waits.append(time.monotonic() - before)
    assert all(least - 0.02 <= waited for waited, least in zip(waits, [0.2, 0.4, 0.5, 0.5, 0.5, 0.5])), waits
    # Without the maximum each would be 0.2 s longer than the one before.
    assert any(waited < 0.2 * count - 0.02 for count, waited in enumerate(waits, 1)), waits


def test_t30_a_headers_dead_letter_exchange(ch, kind, d):
    dlx = ch.exchange("headers", name="dlx")
    ch.bind(d, dlx, **{"x-match": "all-with-x", "x-first-death-reason": "expired"})
    q = ch.queue(kind, message_ttl=100, dead_letter_exchange=dlx)
    ch.publish(q, "m")
    assert ch.take(d).deaths == [(q, "expired", 1)]
