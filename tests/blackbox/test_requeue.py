"""Messages that are given back: their place in the queue, the redelivered flag, recover; and classic priorities."""

import pytest
from pika import spec

# --- giving back


def test_get_ok_says_how_many_are_left(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abc")
    assert [ch.get(q).message_count for _ in range(3)] == [2, 1, 0]


def test_a_classic_queue_puts_a_requeued_message_back_to_its_place(ch):
    q = ch.queue()
    ch.publish(q, *"0123")
    messages = ch.get_unacked(q, 3)
    ch.nack(messages[1], requeue=True)
    ch.nack(messages[0], requeue=True)
    ch.reaches(q, 3)
    assert ch.drain(q) == ["0", "1", "3"]


def test_a_quorum_queue_serves_returned_messages_first_and_in_the_order_of_return(ch):
    q = ch.queue("quorum")
    ch.publish(q, *"0123")
    messages = ch.get_unacked(q, 3)
    ch.nack(messages[1], requeue=True)
    ch.nack(messages[0], requeue=True)
    ch.reaches(q, 3)
    assert ch.drain(q) == ["1", "0", "3"]


@pytest.mark.parametrize("loss", ["channel", "connection", "drop"])
def test_unacked_messages_return_in_their_order_when_their_channel_goes(ch, client, kind, loss):
    q = ch.queue(kind)
    ch.publish(q, *"0123")
    holder = client.channel()
    holder.get_unacked(q, 3)
    match loss:
        case "channel":
            holder.close()
        case "connection":
            holder.connection.close()
        case "drop":
            holder.connection.drop()
    ch.reaches(q, 4)
    assert ch.drain(q) == ["0", "1", "2", "3"]


def test_a_multiple_requeue_keeps_the_order(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"0123")
    ch.get_unacked(q, 3)
    ch.nack(0, requeue=True, multiple=True)
    ch.reaches(q, 4)
    assert ch.drain(q) == ["0", "1", "2", "3"]


def test_a_requeued_message_goes_to_another_consumer_that_is_free(ch, kind):
    q = ch.queue(kind)
    one = ch.connection.channel().consume(q, prefetch=1)
    ch.publish(q, "m")
    message = one.next()
    two = ch.connection.channel().consume(q, prefetch=1)
    one.cancel()
    one.channel.nack(message, requeue=True)
    assert two.next().redelivered


def test_a_classic_priority_queue_keeps_the_priority_of_a_requeued_message(ch):
    q = ch.queue(max_priority=10)
    ch.publish(q, "low", priority=1)
    message = ch.get_unacked(q)
    ch.publish(q, "high", priority=5)
    ch.nack(message, requeue=True)
    ch.reaches(q, 2)
    assert ch.drain(q) == ["high", "low"]


def test_redelivered_is_set_on_every_delivery_but_the_first(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m")
    seen = []
    for _ in range(3):
        ch.reaches(q, 1)
        message = ch.get_unacked(q)
        seen.append(message.redelivered)
        ch.nack(message, requeue=True)
    assert seen == [False, True, True]


def test_message_without_a_delivery_is_not_redelivered(ch, client, kind):
    q = ch.queue(kind)
    ch.publish(q, "a", "b")
    holder = client.channel()
    holder.consume(q, prefetch=1).next()
    holder.close()
    ch.reaches(q, 2)
    assert [ch.get(q).redelivered, ch.get(q).redelivered] == [True, False]


def test_a_redelivery_of_a_classic_queue_adds_no_headers(ch):
    q = ch.queue()
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q), requeue=True)
    ch.reaches(q, 1)
    assert ch.get(q).headers == {}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_recover_gives_everything_back_perhaps_to_the_same_consumer(ch, kind, asynchronous):
    q = ch.queue(kind)
    ch.publish(q, *"abc")
    consumer = ch.consume(q)
    consumer.next_bodies(3)
    if asynchronous:
        ch.send(spec.Basic.RecoverAsync(requeue=True))
    else:
        ch.recover()
    again = [consumer.next() for _ in range(3)]
    assert [(message.body, message.redelivered) for message in again] == [("a", True), ("b", True), ("c", True)]


def test_a_message_acked_is_gone(ch, client, kind):
    q = ch.queue(kind)
    ch.publish(q, "m")
    holder = client.channel()
    holder.ack(holder.get_unacked(q))
    holder.sync()
    holder.close()
    assert ch.stays(q, 0, 0.15)


# --- classic priorities


def test_a_classic_queue_with_max_priority_delivers_the_highest_first(ch):
    q = ch.queue(max_priority=5)
    for priority in (0, None, 1, 3, 4, 5, 7, 31, 40, 255):
        ch.publish(q, "none" if priority is None else f"p{priority}", priority=priority)
    # beyond the maximum is the maximum, none is the lowest; first in, first out at each level
    assert ch.drain(q) == ["p5", "p7", "p31", "p40", "p255", "p4", "p3", "p1", "p0", "none"]


def test_the_priority_is_delivered_as_it_was_sent(ch):
    q = ch.queue(max_priority=5)
    ch.publish(q, "m", priority=200)
    assert ch.get(q).properties.priority == 200


def test_a_classic_queue_without_max_priority_ignores_priorities(ch):
    q = ch.queue()
    ch.publish(q, "low", priority=0)
    ch.publish(q, "high", priority=9)
    assert ch.drain(q) == ["low", "high"]
