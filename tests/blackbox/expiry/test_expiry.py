"""When an expired message leaves: behind others, with consumers, at any priority, with a TTL of zero; who sees it."""

import pytest
from pika import spec

from expectations import dead_letters_to

A_LONG_TIME = "3600000"

# --- who stands in front


@pytest.mark.better
def test_a_message_behind_one_that_lives_longer_leaves_in_time(ch, kind, by_broker):
    q = ch.queue(kind)
    ch.publish(q, "long", expiration=A_LONG_TIME)
    ch.publish(q, "short", expiration="150")
    ch.publish(q, "forever")
    ch.pause(0.4)
    assert ch.stays(q, by_broker(rabbitmq=3, leveret=2))
    head = ch.get_unacked(q)
    # RabbitMQ drops what stood behind the head when the head is taken, on quorum queues a moment later
    assert head.body == "long"
    assert kind == "quorum" or head.message_count == 1
    assert ch.get(q).body == "forever"


@pytest.mark.better
def test_a_message_leaves_in_time_while_the_only_consumer_is_busy(ch, kind, by_broker):
    q = ch.queue(kind)
    ch.publish(q, "held", "head")
    consumer = ch.consume(q, prefetch=1)
    assert consumer.next().body == "held"
    ch.publish(q, "brief", expiration="150")
    ch.pause(0.4)
    assert ch.stays(q, by_broker(rabbitmq=2, leveret=1))


@pytest.mark.better
def test_dead_letters_leave_in_the_order_of_their_deadlines(ch, kind, by_broker):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, **dead_letters_to(dlq))
    for ttl in (900, 300, 600):
        ch.publish(q, str(ttl), expiration=str(ttl))
    ch.reaches(dlq, 3)
    assert ch.drain(dlq) == by_broker(rabbitmq=["900", "300", "600"], leveret=["300", "600", "900"])


def test_dead_letters_with_one_deadline_leave_in_queue_order(ch, kind):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, message_ttl=200, **dead_letters_to(dlq))
    sent = [str(n) for n in range(50)]
    ch.publish(q, *sent)
    ch.reaches(dlq, 50)
    assert ch.drain(dlq) == sent


def test_x_expiry_order_head_lets_only_the_head_expire(ch, kind):
    q = ch.queue(kind, expiry_order="head")
    ch.publish(q, "long", expiration=A_LONG_TIME)
    ch.publish(q, "short", expiration="150")
    ch.publish(q, "forever")
    ch.pause(0.4)
    assert ch.stays(q, 3)
    assert ch.get_unacked(q).body == "long"
    ch.reaches(q, 1)


def test_x_expiry_order_head_dead_letters_in_queue_order(ch, kind):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, expiry_order="head", **dead_letters_to(dlq))
    for ttl in (900, 300, 600):
        ch.publish(q, str(ttl), expiration=str(ttl))
    ch.reaches(dlq, 3)
    assert ch.drain(dlq) == ["900", "300", "600"]


@pytest.mark.better
def test_an_expired_message_behind_the_head_does_not_use_up_the_length_limit(ch, by_broker):
    q = ch.queue(max_length=2, overflow="reject-publish")
    assert ch.publish(q, "long", expiration=A_LONG_TIME) == "a"
    assert ch.publish(q, "short", expiration="100") == "a"
    ch.pause(0.4)
    assert ch.stays(q, by_broker(rabbitmq=2, leveret=1))
    assert ch.publish(q, "new") == by_broker(rabbitmq="N", leveret="a")


@pytest.mark.better
def test_a_high_priority_message_expires_in_time_before_an_older_low_priority_one(ch, by_broker):
    dlq = ch.queue(name="dlq")
    q = ch.queue(max_priority=10, **dead_letters_to(dlq))
    ch.publish(q, "low", priority=1, expiration=A_LONG_TIME)
    ch.publish(q, "high", priority=5, expiration="150")
    ch.pause(0.4)
    assert ch.stays(dlq, by_broker(rabbitmq=0, leveret=1))


@pytest.mark.better
def test_a_classic_priority_queue_never_delivers_an_expired_message(ch, by_broker):
    q = ch.queue(max_priority=10)
    ch.publish(q, "low", priority=1, expiration=A_LONG_TIME)
    ch.publish(q, "high", priority=5, expiration="150")
    ch.pause(0.4)
    assert ch.get(q).body == by_broker(rabbitmq="high", leveret="low")


@pytest.mark.better
def test_a_low_priority_message_behind_a_high_one_expires_in_time(ch, by_broker):
    q = ch.queue(max_priority=10)
    ch.publish(q, "high", priority=5, expiration=A_LONG_TIME)
    ch.publish(q, "low", priority=1, expiration="150")
    ch.pause(0.4)
    assert ch.stays(q, by_broker(rabbitmq=2, leveret=1))


def test_the_head_of_every_priority_of_a_quorum_queue_expires_in_time(ch):
    q = ch.queue("quorum")
    ch.publish(q, "high", priority=9, expiration=A_LONG_TIME)
    ch.publish(q, "low", priority=1, expiration="150")
    ch.reaches(q, 1)
    assert ch.get(q).body == "high"


# --- TTL zero


@pytest.fixture(params=["argument", "expiration"])
def zero(request):
    """Both ways to say zero: (queue keywords, publish keywords)."""
    return ({"message_ttl": 0}, {}) if request.param == "argument" else ({}, {"expiration": "0"})


def test_zero_ttl_message_without_a_consumer_dies_at_once(ch, kind, zero):
    queue, message = zero
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, **queue, **dead_letters_to(dlq))
    ch.publish(q, "m", **message)
    dead = ch.take(dlq)
    assert dead.deaths == [(q, "expired", 1)]
    assert ch.get(q) is None


@pytest.mark.better
def test_basic_get_never_finds_a_zero_ttl_message(ch, kind, zero, by_broker):
    queue, message = zero
    q = ch.queue(kind, **queue)
    for _ in range(20):
        ch.publish(q, "m", **message)
        found = ch.get(q)
        # a quorum queue of RabbitMQ keeps it for a millisecond, in which basic.get may find it
        assert found is None or by_broker(rabbitmq=kind == "quorum", leveret=False)


def test_a_zero_ttl_message_is_delivered_to_a_consumer_that_can_take_it(ch, kind, zero):
    queue, message = zero
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, **queue, **dead_letters_to(dlq))
    consumer = ch.consume(q)
    ch.publish(q, "m", **message)
    assert consumer.next().body == "m"
    assert ch.stays(dlq, 0)


def test_a_zero_ttl_message_dies_when_the_only_consumer_is_busy(ch, kind, zero):
    queue, message = zero
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, **queue, **dead_letters_to(dlq))
    consumer = ch.consume(q, prefetch=1)
    ch.publish(q, "first", **message)
    consumer.next()
    ch.publish(q, "second", **message)
    assert ch.take(dlq).body == "second"
    assert consumer.hears_nothing()


def test_a_zero_ttl_delivery_that_is_requeued_dies_even_if_the_consumer_is_free_again(ch, kind, zero):
    queue, message = zero
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, **queue, **dead_letters_to(dlq))
    consumer = ch.consume(q, prefetch=1)
    ch.publish(q, "m", **message)
    delivery = consumer.next()
    ch.pause(0.01)  # RabbitMQ's quorum queues take zero for a millisecond
    ch.nack(delivery, requeue=True)
    assert ch.take(dlq).deaths == [(q, "expired", 1)]
    assert consumer.hears_nothing()


def test_a_zero_ttl_message_is_confirmed_and_never_returned(ch, kind, zero):
    queue, message = zero
    q = ch.queue(kind, **queue)
    assert ch.publish(q, "m", mandatory=True, **message) == "a"
    assert ch.returned == []


def test_immediate_is_not_implemented(ch):
    q = ch.queue()
    immediate = spec.Basic.Publish(routing_key=q, immediate=True)
    ch.refuses(lambda c: c.send(immediate, (spec.BasicProperties(), b"m")), 540, "immediate=true")


# --- who sees an expired message


def test_an_expired_message_is_acked_to_its_publisher(ch, kind):
    q = ch.queue(kind, message_ttl=1)
    assert ch.publish(q, *"abcdefgh") == "aaaaaaaa"


def test_basic_get_never_returns_an_expired_message(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abcdef", expiration="100")
    ch.pause(0.15)
    assert ch.get(q) is None


def test_basic_deliver_never_carries_an_expired_message(ch, kind):
    q = ch.queue(kind)
    for _ in range(20):
        ch.publish(q, "brief", expiration="100")
        ch.publish(q, "lasting")
    ch.pause(0.3)
    consumer = ch.consume(q)
    assert consumer.next_bodies(20) == ["lasting"] * 20
    assert consumer.hears_nothing(0.1)
