"""The acknowledgement timeout of quorum queues: who holds a message too long loses it."""

import time

import pytest

from definitions import Policy
from patience import PATIENCE_S

TIMEOUT_MS = 400
TIMED_OUT = (
    "channel", 406,
    "PRECONDITION_FAILED - delivery acknowledgement on channel {} timed out. Timeout value used: -1 ms. "
    "This timeout value can be configured, see consumers doc guide to learn more",
)


@pytest.fixture
def q(ch):
    return ch.queue("quorum", consumer_timeout=TIMEOUT_MS)


def await_cancel(consumer):
    consumer.channel.wait(lambda: consumer.cancelled, PATIENCE_S, "the consumer to be cancelled")


def timed_out(channel):
    """Wait until the channel is closed; whether it was for the timeout."""
    assert channel.client.run_until(lambda: channel.closed, 8), "the channel was not closed"
    scope, code, text = TIMED_OUT
    return channel.closed.said == (scope, code, text.format(channel.number))


def test_a_consumer_that_holds_a_message_too_long_is_cancelled_and_the_message_goes_on(ch, q):
    slow = ch.connection.channel().consume(q, prefetch=1)
    ch.publish(q, "m")
    slow.next()
    await_cancel(slow)
    ch.reaches(q, 1)
    message = ch.get(q)
    assert (message.body, message.redelivered, message.headers) == ("m", True, {"x-acquired-count": 1})


def test_not_before_the_timeout(ch):
    q = ch.queue("quorum", consumer_timeout=1000)
    consumer = ch.connection.channel().consume(q)
    began = time.monotonic()
    ch.publish(q, "m")
    await_cancel(consumer)
    assert consumer.bodies == ["m"]
    assert time.monotonic() - began >= 0.999  # one clock counts milliseconds, the other is exact


def test_an_acknowledgement_in_time_ends_the_timeout(ch):
    """The timeout of a message that is delivered later, and held, is over later."""
    q, later = ch.queue("quorum", consumer_timeout=2500), ch.queue("quorum", name="later", consumer_timeout=2500)
    consumer = ch.consume(q)
    ch.publish(q, "m")
    ch.ack(consumer.next())
    ch.sync()
    holder = ch.connection.channel().consume(later)
    ch.publish(later, "held")
    await_cancel(holder)
    assert consumer.hears_nothing() and not consumer.cancelled
    assert ch.count(q) == 0


def test_unacked_messages_of_a_timed_out_consumer_are_requeued_in_order(ch, q):
    ch.publish(q, *"abc")
    consumer = ch.connection.channel().consume(q)
    consumer.next_bodies(3)
    await_cancel(consumer)
    ch.reaches(q, 3)
    assert ch.drain(q) == ["a", "b", "c"]


def test_the_channel_stays_open_and_a_late_ack_is_ignored(ch, q):
    consumer = ch.connection.channel().consume(q)
    ch.publish(q, "m")
    message = consumer.next()
    await_cancel(consumer)
    consumer.channel.ack(message)
    consumer.channel.sync()
    ch.reaches(q, 1)


@pytest.mark.better
def test_a_consumer_that_was_cancelled_for_the_timeout_gets_nothing_more(ch, q, by_broker):
    slow = ch.connection.channel().consume(q, prefetch=1)
    ch.publish(q, "held")
    message = slow.next()
    await_cancel(slow)
    assert ch.take(q).body == "held"
    slow.channel.ack(message)
    slow.channel.sync()
    ch.publish(q, "new")
    # RabbitMQ keeps the consumer, and once it has settled, gives it further messages
    assert slow.hears_nothing() == by_broker(rabbitmq=False, leveret=True)


def test_other_consumers_take_over(ch, q):
    slow = ch.connection.channel().consume(q, prefetch=1)
    ch.publish(q, "m")
    slow.next()
    other = ch.connection.channel().consume(q, prefetch=1)
    message = other.next()
    other.channel.ack(message)
    assert (message.body, message.redelivered) == ("m", True)


def test_without_the_capability_the_channel_is_closed(ch, client, q):
    other = client.channel(capabilities={"basic.nack": True, "publisher_confirms": True})
    consumer = other.consume(q)
    ch.publish(q, "m")
    assert timed_out(other)
    assert consumer.bodies == ["m"]
    ch.reaches(q, 1)


def test_a_basic_get_that_is_not_acked_in_time_closes_the_channel(ch, q):
    ch.publish(q, "m")
    getter = ch.connection.channel()
    getter.get_unacked(q)
    assert timed_out(getter)
    ch.reaches(q, 1)


def test_the_consumers_own_timeout_overrides_the_queues(ch):
    q = ch.queue("quorum", consumer_timeout=3_600_000)
    ch.publish(q, "m")
    consumer = ch.connection.channel().consume(q, arguments={"x-consumer-timeout": TIMEOUT_MS})
    consumer.next()
    await_cancel(consumer)


def test_a_longer_timeout_of_the_consumer_overrides_the_queues_too(ch, q):
    ch.publish(q, "m")
    consumer = ch.consume(q, arguments={"x-consumer-timeout": 3_600_000})
    consumer.next()
    ch.pause(TIMEOUT_MS / 1000 * 2)
    assert not consumer.cancelled


@pytest.mark.parametrize("value, reason", [("a", '"expected integer, got longstr"'), (-1, "{value_negative,-1}")])
def test_a_consumers_timeout_must_be_a_non_negative_integer(ch, q, value, reason):
    refusal = f"invalid arg 'x-consumer-timeout' for queue '{q}' in vhost '/': {reason}"
    ch.refuses(lambda c: c.consume(q, arguments={"x-consumer-timeout": value}), 406, refusal)


def test_classic_queues_have_no_such_timeout(ch):
    q = ch.queue()
    refusal = f"invalid arg 'x-consumer-timeout' for queue '{q}' in vhost '/' of queue type rabbit_classic_queue"
    ch.refuses(lambda c: c.consume(q, arguments={"x-consumer-timeout": TIMEOUT_MS}), 406, refusal)


@pytest.mark.parametrize("argument, policy", [(3_600_000, TIMEOUT_MS), (TIMEOUT_MS, 3_600_000), (None, TIMEOUT_MS)])
def test_the_lower_of_argument_and_policy_counts(defined, argument, policy):
    ch = defined(policies=[Policy({"consumer-timeout": policy})])
    q = ch.queue("quorum", **({"consumer_timeout": argument} if argument else {}))
    ch.publish(q, "m")
    consumer = ch.connection.channel().consume(q)
    consumer.next()
    await_cancel(consumer)


def test_the_nodes_own_timeout_is_for_queues_without_one(under, defined):
    if under.name == "rabbitmq":
        pytest.skip("the setting of a running RabbitMQ is not the suite's to change")
    ch = defined(settings=f"consumer_timeout = {TIMEOUT_MS}")
    q = ch.queue("quorum")
    ch.publish(q, "m")
    consumer = ch.connection.channel().consume(q)
    consumer.next()
    await_cancel(consumer)
