"""Queue TTL: x-expires deletes an unused queue; operations that count as use."""

import time
from decimal import Decimal

import pytest
from pika import spec

from definitions import Policy
from expectations import ERLANG_TYPE, TEN_YEARS_MS, bad_argument, dead_letters_to
from field_table import Wire
from live_policies import live_policy

AN_HOUR_MS = 3_600_000
LEASE_MS = 1000
LEASE_S = LEASE_MS / 1000

# Of queues that have to live; longer than the lease of others, as a queue that is not renewed in time says nothing.
RENEWED_LEASE_MS = 1500
RENEWED_LEASE_S = RENEWED_LEASE_MS / 1000


def keep(ch, queue, activity, seconds):
    """Do `activity(channel)` every quarter of a lease for so long, or until the queue is gone; whether it lives.

    A queue that is gone when this process could not renew its lease in time says nothing.
    """
    renewed = time.monotonic()
    end, busy = renewed + seconds, ch.connection.channel()
    while time.monotonic() < end:
        if ch.is_gone(queue):
            return time.monotonic() - renewed >= RENEWED_LEASE_S
        renewed = time.monotonic()
        activity(busy)
        ch.pause(LEASE_S / 4)
    return not ch.is_gone(queue) or time.monotonic() - renewed >= RENEWED_LEASE_S


def lives(ch, queue, began, seconds=LEASE_S / 4, lease_s=LEASE_S):
    """Whether a queue is there after so long, as far as it is seen within the lease; a later look says nothing."""
    ch.pause(seconds)
    return not ch.is_gone(queue) or time.monotonic() - began >= lease_s


def vanishes_although(ch, queue, activity):
    """Do `activity(channel)` every quarter of a lease until the queue is gone."""
    busy = ch.connection.channel()
    ch.poll(lambda: ch.is_gone(queue) or activity(busy), what=f"{queue} to vanish", every=LEASE_S / 4)


# --- the argument


@pytest.mark.parametrize("wire_type", "bBsuIilL")
def test_x_expires_may_be_of_any_integer_type(ch, kind, wire_type):
    ch.queue(kind, expires=Wire(wire_type, 100))


NOT_INTEGERS = {
    "t": True, "S": "1000", "d": 1000.0, "f": 1000.0, "D": Decimal("1000"), "T": 1000, "F": {}, "A": [], "x": b"1000",
    "V": None,
}


@pytest.mark.parametrize("wire_type", NOT_INTEGERS)
def test_x_expires_of_any_other_type_is_refused(ch, client, kind, wire_type):
    value = Wire(wire_type, NOT_INTEGERS[wire_type])
    reason = f'"expected integer, got {ERLANG_TYPE[wire_type]}"'
    name = client.name("q")
    ch.refuses(lambda c: c.queue(kind, name, expires=value), 406, bad_argument("x-expires", name, reason))


@pytest.mark.parametrize("expires, reason", [
    (0, "{value_zero,0}"), (-1, "{value_negative,-1}"),
    (TEN_YEARS_MS + 1, f"{{value_too_large,{TEN_YEARS_MS + 1}}}"),
])
def test_x_expires_must_be_positive_and_at_most_ten_years(ch, client, kind, expires, reason):
    name = client.name("q")
    ch.refuses(lambda c: c.queue(kind, name, expires=expires), 406, bad_argument("x-expires", name, reason))


@pytest.mark.parametrize("expires", [2**32, TEN_YEARS_MS])
def test_x_expires_may_be_beyond_32_bits(ch, kind, expires):
    ch.queue(kind, expires=expires)


@pytest.mark.parametrize("properties", [
    {"durable": True}, {"durable": False}, {"exclusive": True}, {"auto_delete": True}, {"name": ""},
])
def test_every_sort_of_classic_queue_may_expire(ch, properties):
    q = ch.queue(expires=300, **properties)
    ch.vanishes(q)


def test_a_redeclaration_with_another_lease_is_refused(ch, kind):
    q = ch.queue(kind, expires=60000)
    refusal = f"inequivalent arg 'x-expires' for queue '{q}' in vhost '/': received '60001' but current is '60000'"
    ch.refuses(lambda c: c.queue(kind, q, expires=60001), 406, refusal)


@pytest.mark.stream
def test_a_stream_takes_no_x_expires(ch, client):
    name = client.name("q")
    refusal = f"invalid arg 'x-expires' for queue '{name}' in vhost '/' of queue type rabbit_stream_queue"
    ch.refuses(lambda c: c.queue("stream", name, expires=1000), 406, refusal)


# --- what it does


def test_an_unused_queue_goes_when_its_lease_is_over_and_not_before(ch, kind):
    began = time.monotonic()
    q = ch.queue(kind, expires=LEASE_MS)
    assert lives(ch, q, began)
    ch.vanishes(q)


def test_the_messages_of_an_expired_queue_are_not_dead_lettered(ch, kind):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, expires=LEASE_MS, **dead_letters_to(dlq))
    ch.publish(q, "a", "b")
    ch.vanishes(q)
    assert ch.stays(dlq, 0)


def test_the_bindings_of_an_expired_queue_go_with_it(ch):
    x = ch.exchange("fanout")
    q = ch.queue(expires=LEASE_MS)
    ch.bind(q, x)
    ch.vanishes(q)
    ch.publish("", "m", exchange=x, mandatory=True)
    assert ch.returned[-1].reply == (312, "NO_ROUTE")


def test_an_expired_queue_can_be_declared_anew(ch):
    q = ch.queue(expires=300)
    ch.publish(q, "old")
    ch.vanishes(q)
    ch.queue(name=q)
    assert ch.count(q) == 0


# --- what counts as use


@pytest.mark.parametrize("prefetch, auto_ack", [(0, False), (1, False), (0, True)])
def test_a_queue_with_a_consumer_never_expires(ch, kind, prefetch, auto_ack):
    q = ch.queue(kind, expires=LEASE_MS)
    ch.consume(q, prefetch=prefetch, auto_ack=auto_ack)
    ch.pause(LEASE_S * 1.4)
    assert not ch.is_gone(q)


@pytest.mark.parametrize("loss", ["cancel", "close", "drop"])
def test_the_lease_starts_again_when_the_last_consumer_goes(ch, client, kind, loss):
    q = ch.queue(kind, expires=LEASE_MS)
    other = client.channel()
    consumer = other.consume(q)
    ch.pause(LEASE_S * 1.5)
    began = time.monotonic()
    match loss:
        case "cancel":
            consumer.cancel()
        case "close":
            other.close()
        case "drop":
            other.connection.drop()
    assert lives(ch, q, began)
    ch.vanishes(q)


def test_basic_get_renews_the_lease_even_when_it_finds_nothing(ch, kind):
    q = ch.queue(kind, expires=RENEWED_LEASE_MS)
    emptied = keep(ch, q, lambda c: c.drain(q), seconds=RENEWED_LEASE_S * 2)
    assert emptied


def test_a_redeclaration_renews_the_lease_of_a_classic_queue(ch):
    q = ch.queue(expires=RENEWED_LEASE_MS)
    assert keep(ch, q, lambda c: c.queue(name=q, expires=RENEWED_LEASE_MS), seconds=RENEWED_LEASE_S * 2)


def test_a_passive_declaration_renews_the_lease_of_a_classic_queue(ch):
    q = ch.queue(expires=RENEWED_LEASE_MS)
    assert keep(ch, q, lambda c: c.passive(q), seconds=RENEWED_LEASE_S * 2)


@pytest.mark.better
@pytest.mark.parametrize("how", ["active", "passive"])
def test_a_redeclaration_renews_the_lease_of_a_quorum_queue(ch, client, how, by_broker):
    q = ch.queue("quorum", expires=RENEWED_LEASE_MS)

    def declare(channel):
        # a 404 closes the channel, and an active declaration must not make the queue again
        channel = channel.connection.channel()
        if how == "passive":
            channel.answer_to(lambda c: c.passive(q))
        elif not ch.is_gone(q):
            channel.queue("quorum", q, expires=RENEWED_LEASE_MS)
        if not channel.closed:
            channel.close()

    lives = by_broker(rabbitmq=False, leveret=True)
    assert keep(ch, q, declare, seconds=RENEWED_LEASE_S * 2 if lives else RENEWED_LEASE_S + 8) == lives


@pytest.mark.parametrize("activity", ["publish", "bind", "purge"])
def test_publishing_binding_and_purging_do_not_renew_the_lease(ch, kind, activity):
    q = ch.queue(kind, expires=LEASE_MS)

    def act(channel):
        channel = channel.connection.channel()
        match activity:
            case "publish":
                channel.publish(q, "m")
            case "bind":
                channel.answer_to(lambda c: c.bind(q, "amq.fanout"))
            case "purge":
                channel.answer_to(lambda c: c.purge(q))
        if not channel.closed:
            channel.close()

    vanishes_although(ch, q, act)


def test_a_declaration_without_an_answer_does_not_renew_the_lease(ch):
    q = ch.queue(expires=LEASE_MS)

    def declare(channel):
        channel.send(spec.Queue.Declare(queue=q, passive=True, nowait=True))

    vanishes_although(ch, q, lambda c: declare(c.connection.channel()))


def test_an_unacked_get_does_not_protect_a_classic_queue_and_its_ack_is_ignored(ch):
    q = ch.queue(expires=500)
    ch.publish(q, "m")
    message = ch.get_unacked(q)
    ch.vanishes(q)
    ch.ack(message)
    ch.sync()


def test_an_unacked_get_protects_a_quorum_queue(ch):
    q = ch.queue("quorum", expires=LEASE_MS)
    ch.publish(q, "m")
    message = ch.get_unacked(q)
    ch.pause(6.5 if ch.client.broker.name == "rabbitmq" else LEASE_S * 1.4)  # RabbitMQ looks every 5 s
    assert not ch.is_gone(q)
    ch.ack(message)
    ch.sync()


# --- policies


def test_expires_can_come_from_a_policy(defined, kind):
    ch = defined(policies=[Policy({"expires": LEASE_MS})])
    began = time.monotonic()
    q = ch.queue(kind)
    assert lives(ch, q, began)
    ch.vanishes(q)


@pytest.mark.parametrize("argument, policy, operator", [
    (LEASE_MS, AN_HOUR_MS, AN_HOUR_MS), (AN_HOUR_MS, LEASE_MS, AN_HOUR_MS), (AN_HOUR_MS, AN_HOUR_MS, LEASE_MS),
])
def test_the_lowest_of_argument_policy_and_operator_policy_counts(
    defined, kind, argument, policy, operator
):
    ch = defined(policies=[Policy({"expires": policy})], operator_policies=[Policy({"expires": operator})])
    q = ch.queue(kind, expires=argument)
    ch.vanishes(q)


def test_expires_works_together_with_auto_delete(ch):
    q = ch.queue(auto_delete=True, expires=AN_HOUR_MS)
    ch.consume(q).cancel()
    ch.vanishes(q)


def test_a_policy_that_changes_restarts_the_lease_of_a_classic_queue(ch, client, api):
    q = ch.queue(expires=2 * LEASE_MS)
    ch.pause(LEASE_S)
    began = time.monotonic()
    with live_policy(api, client, {"max-length": 100}):
        assert lives(ch, q, began, 1.5 * LEASE_S, 2 * LEASE_S)
        ch.vanishes(q)
