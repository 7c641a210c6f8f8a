"""x-single-active-consumer: one consumer gets everything, the others wait for it to go."""

import pytest


@pytest.fixture
def q(ch, kind):
    return ch.queue(kind, single_active_consumer=True)


def consumers(ch, q, *arguments, prefetch=0):
    """A consumer per item of `arguments`, each on its own channel."""
    return [ch.connection.channel().consume(q, prefetch=prefetch, arguments=a) for a in arguments]


def test_only_the_first_consumer_gets_messages(ch, q):
    first, second = consumers(ch, q, {}, {})
    ch.publish(q, *"abc")
    assert first.next_bodies(3) == ["a", "b", "c"]
    assert second.hears_nothing(0.15)


def test_a_full_active_consumer_is_not_helped_by_the_others(ch, q):
    first, second = consumers(ch, q, {}, {}, prefetch=1)
    ch.publish(q, *"abc")
    assert first.next().body == "a"
    assert second.hears_nothing()
    assert first.hears_nothing(0)


def test_next_consumer_takes_over_when_the_active_one_is_cancelled(ch, q):
    first, second, third = consumers(ch, q, {}, {}, {})
    ch.publish(q, "a")
    held = first.next()
    first.cancel()
    ch.publish(q, "b")
    assert second.next().body == "b"
    assert third.hears_nothing(0.15)
    first.channel.ack(held)
    first.channel.sync()


def test_unacked_messages_of_the_cancelled_consumer_go_to_the_new_active_one(ch, q):
    first, second = consumers(ch, q, {}, {})
    ch.publish(q, "a")
    first.next()
    first.cancel()
    assert second.hears_nothing(0.15)
    first.channel.close()
    message = second.next()
    assert (message.body, message.redelivered) == ("a", True)


def test_next_consumer_takes_over_when_the_channel_closes(ch, q):
    first, second = consumers(ch, q, {}, {})
    ch.publish(q, "a")
    first.next()
    first.channel.close()
    assert second.next().redelivered


def test_waiting_consumer_leaves_without_effect(ch, q):
    first, second, third = consumers(ch, q, {}, {}, {})
    second.cancel()
    ch.publish(q, "a")
    assert first.next().body == "a"
    assert third.hears_nothing(0.15)


def test_a_classic_queue_lets_the_active_one_be_whatever_the_priority_of_a_newcomer(ch):
    q = ch.queue(single_active_consumer=True)
    first, second = consumers(ch, q, {}, {"x-priority": 10})
    ch.publish(q, "a")
    assert first.next().body == "a"
    assert second.hears_nothing(0.15)


def test_a_quorum_queue_switches_to_a_newcomer_of_higher_priority(ch):
    q = ch.queue("quorum", single_active_consumer=True)
    first, second = consumers(ch, q, {}, {"x-priority": 10})
    ch.publish(q, "a")
    assert second.next().body == "a"
    assert first.hears_nothing(0.15)


def test_a_quorum_queue_switches_only_when_the_active_one_holds_nothing_any_more(ch):
    q = ch.queue("quorum", single_active_consumer=True)
    (first,) = consumers(ch, q, {})
    ch.publish(q, "a")
    held = first.next()
    (second,) = consumers(ch, q, {"x-priority": 10})
    ch.publish(q, "b")
    assert second.hears_nothing()
    assert first.hears_nothing(0)
    first.channel.ack(held)
    assert second.next().body == "b"


def test_an_exclusive_consumer_and_a_single_active_one_exclude_each_other_on_classic_queues(ch):
    q = ch.queue(single_active_consumer=True)
    refusal = f"queue '{q}' in vhost '/' in exclusive use"
    ch.refuses(lambda c: c.consume(q, exclusive=True), 403, refusal)


def test_basic_get_is_allowed_on_a_classic_queue(ch):
    q = ch.queue(single_active_consumer=True)
    ch.publish(q, "m")
    assert ch.get(q).body == "m"


def test_basic_get_is_refused_on_a_quorum_queue(ch):
    q = ch.queue("quorum", single_active_consumer=True)
    operations = 'basic.get operations are not supported by <<"quorum">> queues with single active consumer'
    refusal = f"cannot obtain access to locked queue '{q}' in vhost '/'. {operations}"
    ch.refuses(lambda c: c.get(q), 405, refusal)
