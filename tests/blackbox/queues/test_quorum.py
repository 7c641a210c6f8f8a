"""Quorum queues: delivery counts and the delivery limit, priorities, delayed retry."""

import time

import pytest

from definitions import Policy
from expectations import dead_letters_to

# --- counts


def give_back(ch, queue, how):
    """Take the message and give it back; how it looked."""
    ch.reaches(queue, 1)
    holder = ch.connection.channel()
    message = holder.get_unacked(queue)
    match how:
        case "nack":
            holder.nack(message, requeue=True)
        case "reject":
            holder.reject(message, requeue=True)
        case "recover":
            holder.recover()
        case "close":
            holder.close()
    return message


def headers_of(message):
    return [(f.name, f.type, f.value) for f in getattr(message.headers, "fields", [])]


@pytest.mark.parametrize("how", ["nack", "recover"])
def test_a_nack_or_recover_counts_as_acquired_only(ch, how):
    q = ch.queue("quorum")
    ch.publish(q, "m")
    seen = [give_back(ch, q, how) for _ in range(3)]
    assert [headers_of(message) for message in seen] == [
        [], [("x-acquired-count", "l", 1)], [("x-acquired-count", "l", 2)],
    ]
    assert [message.redelivered for message in seen] == [False, True, True]


@pytest.mark.parametrize("how", ["reject", "close"])
def test_a_reject_or_a_lost_channel_counts_as_acquired_and_as_a_failed_delivery(ch, how):
    q = ch.queue("quorum")
    ch.publish(q, "m")
    seen = [give_back(ch, q, how) for _ in range(3)]
    assert [headers_of(message) for message in seen] == [
        [], [("x-acquired-count", "l", 1), ("x-delivery-count", "l", 1)],
        [("x-acquired-count", "l", 2), ("x-delivery-count", "l", 2)],
    ]


def test_a_message_that_stayed_with_the_broker_has_no_counts(ch):
    q = ch.queue("quorum")
    ch.publish(q, "a", "b")
    holder = ch.connection.channel()
    holder.consume(q, prefetch=1).next()
    holder.close()
    ch.reaches(q, 2)
    a, b = ch.get(q), ch.get(q)
    assert (a.headers, b.headers) == ({"x-acquired-count": 1, "x-delivery-count": 1}, {})


def test_counts_sent_by_a_client_give_way_to_the_brokers(ch):
    q = ch.queue("quorum")
    ch.publish(q, "m", headers={"x-delivery-count": 77, "x-acquired-count": "many"})
    first = give_back(ch, q, "reject")
    assert first.headers == {"x-delivery-count": 77, "x-acquired-count": "many"}
    ch.reaches(q, 1)
    assert ch.get(q).headers == {"x-acquired-count": 1, "x-delivery-count": 1}


def test_a_dead_letter_carries_no_counts(ch):
    dlq = ch.queue("classic", name="dlq")
    q = ch.queue("quorum", **dead_letters_to(dlq))
    ch.publish(q, "m")
    give_back(ch, q, "reject")
    ch.reaches(q, 1)
    ch.nack(ch.get_unacked(q))
    assert {"x-acquired-count", "x-delivery-count"}.isdisjoint(ch.take(dlq).headers)


# --- the delivery limit


def deliveries(ch, queue, how="reject", most=30):
    """How often a message is delivered that is given back every time."""
    ch.publish(queue, "m")
    for n in range(most):
        message = ch.get(queue, ack=False)
        if message is None:
            return n
        getattr(ch, how)(message, requeue=True)
        ch.sync()
    return most


@pytest.mark.parametrize("limit, expected", [(0, 1), (1, 2), (3, 4), (None, 21), (-1, 30)])
def test_a_limit_of_n_allows_n_plus_one_deliveries_and_the_default_is_twenty(ch, limit, expected):
    q = ch.queue("quorum", **({} if limit is None else {"delivery_limit": limit}))
    assert deliveries(ch, q) == expected


def test_a_nack_with_requeue_never_reaches_the_limit(ch):
    q = ch.queue("quorum", delivery_limit=2)
    assert deliveries(ch, q, how="nack") == 30


def test_lost_channels_reach_the_limit(ch):
    dlq = ch.queue(name="dlq")
    q = ch.queue("quorum", delivery_limit=1, **dead_letters_to(dlq))
    ch.publish(q, "m")
    for _ in range(2):
        give_back(ch, q, "close")
    assert ch.take(dlq).deaths == [(q, "delivery_limit", 1)]


def test_a_limit_that_is_no_integer_is_accepted_and_means_the_default(ch):
    q = ch.queue("quorum", delivery_limit="three")
    assert deliveries(ch, q) == 21


# --- priorities


def test_higher_priorities_go_first_and_each_is_first_in_first_out(ch):
    q = ch.queue("quorum")
    for body, priority in [("0", 0), ("none", None), ("5", 5), ("31", 31), ("4", 4), ("3", 3), ("5 again", 5)]:
        ch.publish(q, body, priority=priority)
    # none is 4
    assert ch.drain(q) == ["31", "5", "5 again", "none", "4", "3", "0"]


def test_priorities_beyond_31_are_31(ch):
    q = ch.queue("quorum")
    for priority in (31, 255, 40, 31):
        ch.publish(q, str(priority), priority=priority)
    assert ch.drain(q) == ["31", "255", "40", "31"]


def test_the_priority_is_delivered_as_it_was_sent(ch):
    q = ch.queue("quorum")
    ch.publish(q, "m", priority=200)
    assert ch.get(q).properties.priority == 200


def test_a_returned_message_goes_before_every_priority(ch):
    q = ch.queue("quorum")
    ch.publish(q, "low", priority=0)
    message = ch.get_unacked(q)
    ch.publish(q, "high", priority=9)
    ch.nack(message, requeue=True)
    ch.reaches(q, 2)
    assert ch.drain(q) == ["low", "high"]


def test_a_consumer_gets_the_highest_priority_that_waits(ch):
    q = ch.queue("quorum")
    ch.publish(q, "low", priority=1)
    ch.publish(q, "high", priority=8)
    consumer = ch.consume(q, prefetch=1)
    assert consumer.next().body == "high"


# --- delayed retry


def retry_queue(ch, retry_type="all", low=300, high=None, **arguments):
    """A queue that delays what is given back by `low` to `high` milliseconds."""
    if high:
        arguments["delayed_retry_max"] = high
    return ch.queue("quorum", delayed_retry_type=retry_type, delayed_retry_min=low, **arguments)


def waits(ch, queue, rejections):
    """How long a message stays away after each of so many rejections."""
    ch.publish(queue, "m")
    consumer = ch.consume(queue)
    message, waits = consumer.next(), []
    for _ in range(rejections):
        ch.reject(message, requeue=True)
        before = time.monotonic()
        message = consumer.next()
        waits.append(time.monotonic() - before)
    return waits


def grow(waited):
    """Whether all of these waits may be 0.2 s longer than the one before. A busy machine makes some longer, not all."""
    return all(seconds >= 0.2 * count - 0.02 for count, seconds in enumerate(waited, 1))


def test_the_delay_grows_with_the_delivery_count_up_to_the_maximum(ch):
    waited = waits(ch, retry_queue(ch, low=200, high=500), rejections=8)
    for seconds, least in zip(waited, [0.2, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]):
        assert seconds >= least - 0.02, waited
    assert not grow(waited), waited


def test_without_a_maximum_the_delay_stays_at_the_minimum(ch):
    waited = waits(ch, retry_queue(ch, low=200), rejections=7)
    assert min(waited) >= 0.18, waited
    assert not grow(waited), waited


LONG_MS = 3_600_000  # far longer than a test waits

DELAYED = {
    "all": {"reject", "close", "nack", "recover"}, "failed": {"reject", "close"}, "returned": {"nack", "recover"},
    "disabled": set(),
}


@pytest.mark.parametrize("how", ["reject", "close", "nack", "recover"])
@pytest.mark.parametrize("retry_type", DELAYED)
def test_delayed_retry_applies_to_returns_by_type(ch, retry_type, how):
    q = retry_queue(ch, retry_type, low=LONG_MS)
    ch.publish(q, "m")
    give_back(ch, q, how)
    assert ch.stays(q, 0 if how in DELAYED[retry_type] else 1)


def test_a_delayed_message_keeps_its_counts(ch):
    q = retry_queue(ch, low=100)
    ch.publish(q, "m")
    give_back(ch, q, "reject")
    assert ch.take(q).headers == {"x-acquired-count": 1, "x-delivery-count": 1}


def test_a_delayed_message_is_neither_ready_nor_delivered(ch):
    q = retry_queue(ch, low=600)
    ch.publish(q, "m")
    give_back(ch, q, "nack")
    consumer = ch.consume(q)
    assert ch.count(q) == 0
    assert consumer.hears_nothing(0.25)
    assert consumer.next().body == "m"


def test_others_overtake_a_delayed_message(ch):
    q = retry_queue(ch, low=400)
    ch.publish(q, "first", "second")
    ch.nack(ch.get_unacked(q), requeue=True)
    consumer = ch.consume(q)
    assert consumer.next_bodies(2) == ["second", "first"]


@pytest.mark.better
def test_delayed_messages_count_against_the_length_limit(ch, by_broker):
    q = retry_queue(ch, low=2000, max_length=2, overflow="reject-publish")
    ch.publish(q, "a")
    ch.publish(q, "b")
    ch.get_unacked(q, 2)
    ch.nack(0, multiple=True, requeue=True)
    ch.sync()
    assert ch.publish(q, "c") + ch.publish(q, "d") == by_broker(rabbitmq="aN", leveret="NN")


def test_purging_removes_and_counts_delayed_messages(ch):
    q = retry_queue(ch, low=300)
    ch.publish(q, "a", "b")
    ch.nack(ch.get_unacked(q), requeue=True)
    ch.sync()
    assert ch.count(q) == 1
    assert ch.purge(q) == 2
    assert ch.stays(q, 0, 0.5)


def test_the_delivery_limit_comes_before_the_delay(ch):
    dlq = ch.queue(name="dlq")
    q = retry_queue(ch, low=LONG_MS, delivery_limit=0, **dead_letters_to(dlq))
    ch.publish(q, "m")
    give_back(ch, q, "reject")
    assert ch.take(dlq).deaths == [(q, "delivery_limit", 1)]


@pytest.mark.better
def test_the_ttl_of_a_delayed_message(ch, by_broker):
    dlq = ch.queue(name="dlq")
    q = retry_queue(ch, low=by_broker(rabbitmq=4000, leveret=LONG_MS), **dead_letters_to(dlq))
    ch.publish(q, "m", expiration="1000")
    before = time.monotonic()
    give_back(ch, q, "reject")
    assert ch.take(dlq).deaths == [(q, "expired", 1)]
    # RabbitMQ looks at the deadline when the delay is over
    assert time.monotonic() - before > by_broker(rabbitmq=3.5, leveret=0)


@pytest.mark.parametrize("arguments", [
    {"delayed_retry_type": "all"}, {"delayed_retry_type": "nonsense", "delayed_retry_min": LONG_MS},
    {"delayed_retry_min": LONG_MS}, {"delayed_retry_type": "all", "delayed_retry_min": "x"},
    {"delayed_retry_type": "all", "delayed_retry_min": LONG_MS, "delayed_retry_max": 5},
])
def test_arguments_that_make_no_sense_disable_the_delay(ch, arguments):
    q = ch.queue("quorum", **arguments)
    ch.publish(q, "m")
    give_back(ch, q, "nack")
    ch.reaches(q, 1)


def test_delayed_retry_can_come_from_a_policy(defined):
    ch = defined(policies=[Policy({"delayed-retry-type": "all", "delayed-retry-min": 400})])
    q = ch.queue("quorum")
    ch.publish(q, "m")
    give_back(ch, q, "nack")
    assert ch.stays(q, 0, 0.2)
    ch.reaches(q, 1)


def test_the_policy_beats_the_argument_for_the_type_and_the_lower_delay_counts(defined):
    ch = defined(policies=[Policy({"delayed-retry-type": "returned", "delayed-retry-min": 2 * LONG_MS})])
    q = retry_queue(ch, "failed", low=1000)
    ch.publish(q, "m")
    give_back(ch, q, "nack")
    assert ch.stays(q, 0, 0.3)
    ch.reaches(q, 1)
    q = retry_queue(ch, "failed", low=LONG_MS)
    ch.publish(q, "m")
    give_back(ch, q, "reject")
    ch.reaches(q, 1)
