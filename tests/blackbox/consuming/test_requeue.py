"""Messages that are given back: their order, the redelivered flag, recover. What a channel alone sees of it is in the scripts."""

import pytest
from pika import spec

# --- giving back


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


def test_a_requeued_message_goes_to_another_consumer_that_is_free(ch, kind):
    q = ch.queue(kind)
    one = ch.connection.channel().consume(q, prefetch=1)
    ch.publish(q, "m")
    message = one.next()
    two = ch.connection.channel().consume(q, prefetch=1)
    one.cancel()
    one.channel.nack(message, requeue=True)
    assert two.next().redelivered


def test_message_without_a_delivery_is_not_redelivered(ch, client, kind):
    q = ch.queue(kind)
    ch.publish(q, "a", "b")
    holder = client.channel()
    holder.consume(q, prefetch=1).next()
    holder.close()
    ch.reaches(q, 2)
    assert [ch.get(q).redelivered, ch.get(q).redelivered] == [True, False]


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
