"""Consumers: prefetch, cancellation, exclusiveness, priorities."""

import re

from pika import spec

from expectations import dead_letters_to
from patience import PATIENCE_S


def have(ch, count, *consumers):
    """Wait until these consumers have so many messages together; no further ones come for a moment."""
    together = lambda: sum(len(consumer.messages) for consumer in consumers)
    ch.wait(lambda: together() >= count, PATIENCE_S, f"{count} messages")
    ch.pause(0.2)
    assert together() == count


# --- prefetch


def test_prefetch_limits_what_a_consumer_holds_unacknowledged(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abcde")
    consumer = ch.consume(q, prefetch=2)
    first = consumer.next()
    assert consumer.next().body == "b"
    assert consumer.hears_nothing()
    ch.ack(first)
    assert consumer.next().body == "c"
    assert consumer.hears_nothing()


def test_acking_several_at_once_makes_room_for_several(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abcdef")
    consumer = ch.consume(q, prefetch=3)
    third = [consumer.next() for _ in range(3)][2]
    ch.ack(third, multiple=True)
    assert consumer.next_bodies(3) == ["d", "e", "f"]


def test_prefetch_is_per_consumer_not_per_channel(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abcdef")
    one, two = ch.consume(q, prefetch=2), ch.consume(q, prefetch=2)
    have(ch, 4, one, two)
    assert (len(one.messages), len(two.messages)) == (2, 2)


def test_a_new_prefetch_is_for_consumers_to_come(ch, kind):
    q = ch.queue(kind)
    old = ch.consume(q, prefetch=1)
    ch.qos(3)
    new = ch.consume(q)
    ch.publish(q, *"abcdef")
    have(ch, 4, old, new)
    assert (len(old.messages), len(new.messages)) == (1, 3)


def test_without_prefetch_everything_is_delivered(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *[str(n) for n in range(100)])
    assert ch.consume(q).next_bodies(100) == [str(n) for n in range(100)]


def test_prefetch_does_not_limit_auto_ack_consumers(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abcdef")
    assert ch.consume(q, prefetch=1, auto_ack=True).next_bodies(6) == list("abcdef")
    ch.reaches(q, 0)


def test_prefetch_does_not_limit_basic_get(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abc")
    ch.qos(1)
    assert [message.body for message in ch.get_unacked(q, 3)] == ["a", "b", "c"]


def test_delivery_tags_count_everything_a_channel_delivers(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abcd")
    assert ch.get(q).tag == 1
    assert ch.get(q, ack=False).tag == 2
    consumer = ch.consume(q, auto_ack=True)
    assert [consumer.next().tag for _ in range(2)] == [3, 4]
    consumer.cancel()
    ch.publish(q, "e")
    assert ch.connection.channel().get(q).tag == 1


def test_consumers_of_a_queue_take_turns(ch, kind):
    q = ch.queue(kind)
    one, two = ch.consume(q), ch.consume(q)
    for n in range(10):
        ch.publish(q, str(n))
    have(ch, 10, one, two)
    assert (len(one.messages), len(two.messages)) == (5, 5)


def test_a_consumer_that_is_full_is_passed_over(ch, kind):
    q = ch.queue(kind)
    full, free = ch.consume(q, prefetch=1), ch.connection.channel().consume(q)
    ch.publish(q, *"abcdef")
    have(ch, 6, full, free)
    assert len(full.messages) == 1
    assert len(free.messages) == 5


def test_the_order_of_a_queue_is_first_in_first_out(ch, kind):
    q = ch.queue(kind)
    sent = [str(n) for n in range(200)]
    ch.publish(q, *sent)
    assert ch.drain(q) == sent


# --- cancelling


def test_after_a_cancel_its_deliveries_can_still_be_settled(ch, kind):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, *"abc")
    consumer = ch.consume(q)
    a, b, c = [consumer.next() for _ in range(3)]
    consumer.cancel()
    ch.ack(a)
    ch.nack(b)
    ch.nack(c, requeue=True)
    assert ch.take(dlq).body == "b"
    ch.reaches(q, 1)
    assert ch.get(q).body == "c"


def test_a_cancelled_consumer_gets_nothing_more_and_its_unacked_messages_return_with_the_channel(ch, kind):
    q = ch.queue(kind)
    holder = ch.connection.channel()
    consumer = holder.consume(q)
    ch.publish(q, "a")
    consumer.next()
    consumer.cancel()
    ch.publish(q, "b")
    assert ch.stays(q, 1)
    holder.close()
    ch.reaches(q, 2)
    assert holder.lost_deliveries == []


def test_a_consumer_tag_can_be_used_again_after_a_cancel(ch, kind):
    q = ch.queue(kind)
    ch.consume(q, tag="t").cancel()
    consumer = ch.consume(q, tag="t")
    ch.publish(q, "m")
    assert consumer.next().consumer_tag == "t"


def test_the_broker_names_a_consumer_that_has_no_tag(ch, kind):
    q = ch.queue(kind)
    tag = ch.rpc(spec.Basic.Consume(queue=q), spec.Basic.ConsumeOk).consumer_tag
    assert re.fullmatch(r"amq\.ctag-[A-Za-z0-9_-]{22}", tag)


def test_deleting_a_queue_cancels_its_consumers_with_a_notification(ch, kind):
    q = ch.queue(kind)
    consumer = ch.consume(q)
    ch.connection.channel().delete(q)
    ch.wait(lambda: consumer.cancelled, PATIENCE_S, "basic.cancel")
    cancel = next(method for method in ch.heard if isinstance(method, spec.Basic.Cancel))
    assert (cancel.consumer_tag, cancel.nowait) == (consumer.tag, True)
    ch.sync()


def test_the_channel_that_deletes_is_answered_before_its_consumers_are_cancelled(ch, kind):
    q = ch.queue(kind)
    consumer = ch.consume(q)
    ch.heard.clear()
    ch.delete(q)
    ch.wait(lambda: consumer.cancelled, PATIENCE_S, "basic.cancel")
    assert [type(method) for method in ch.heard] == [spec.Queue.DeleteOk, spec.Basic.Cancel]


def test_a_client_without_the_capability_is_not_notified(ch, client, kind):
    q = ch.queue(kind)
    other = client.channel(capabilities={"publisher_confirms": True, "basic.nack": True})
    consumer = other.consume(q)
    ch.delete(q)
    other.pause(0.3)
    assert not consumer.cancelled
    other.sync()


def test_acking_a_delivery_of_a_deleted_queue_is_ignored(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m")
    message = ch.get_unacked(q)
    ch.connection.channel().delete(q)
    ch.ack(message)
    ch.sync()


# --- exclusive consumers


def in_exclusive_use(q):
    return f"queue '{q}' in vhost '/' in exclusive use"


def test_a_quorum_queue_ignores_the_exclusive_flag(ch):
    q = ch.queue("quorum")
    ch.consume(q, exclusive=True)
    ch.connection.channel().consume(q, exclusive=True)


# --- priorities


def test_a_negative_priority_is_lower_than_none(ch, kind):
    q = ch.queue(kind)
    lower = ch.consume(q, prefetch=10, arguments={"x-priority": -1})
    normal = ch.consume(q, prefetch=1)
    ch.publish(q, "a")
    ch.publish(q, "b")
    have(ch, 2, lower, normal)
    assert (normal.bodies, lower.bodies) == (["a"], ["b"])


def test_consumers_of_equal_priority_take_turns(ch, kind):
    q = ch.queue(kind)
    consumers = [ch.consume(q, arguments={"x-priority": 3}) for _ in range(3)]
    for n in range(9):
        ch.publish(q, str(n))
    have(ch, 9, *consumers)
    assert [len(consumer.messages) for consumer in consumers] == [3, 3, 3]


def test_no_local_is_ignored(ch, kind):
    q = ch.queue(kind)
    consumer = ch.consume(q, no_local=True)
    ch.publish(q, "m")
    assert consumer.next().body == "m"
