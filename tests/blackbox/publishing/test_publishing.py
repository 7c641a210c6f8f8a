"""Publishing: confirms, returns, transactions, and what the broker promises about their order."""

import pytest
from pika import spec

from expectations import dead_letters_to

# --- confirms


def test_every_message_is_confirmed_once_and_in_count(ch, kind):
    q = ch.queue(kind)
    other = ch.connection.channel().confirm_select()
    assert other.publish(q, *[str(n) for n in range(200)]) == "a" * 200
    assert ch.count(q) == 200


@pytest.mark.parametrize("delivery_mode", [None, 1, 2])
def test_persistent_and_transient_messages_are_confirmed(ch, kind, delivery_mode):
    q = ch.queue(kind)
    assert ch.publish(q, *"abc", delivery_mode=delivery_mode) == "aaa"


def test_a_message_is_in_the_queue_when_it_is_confirmed(ch, kind):
    q = ch.queue(kind)
    for n in range(1, 21):
        ch.publish(q, "m", delivery_mode=2)
        assert ch.count(q) == n


def test_a_message_consumed_at_once_is_confirmed(ch, kind):
    q = ch.queue(kind)
    consumer = ch.connection.channel().consume(q, auto_ack=True)
    assert ch.publish(q, *"abc", delivery_mode=2) == "aaa"
    assert consumer.next_bodies(3) == ["a", "b", "c"]


# --- returns


def test_a_mandatory_message_that_no_queue_takes_comes_back_whole(ch, client):
    x = ch.exchange("direct")
    ch.publish("nobody", "body", exchange=x, mandatory=True, message_id="id", headers={"a": 1}, expiration="1000")
    returned = ch.returned[-1]
    assert returned.reply == (312, "NO_ROUTE")
    assert (returned.body, returned.exchange, returned.routing_key) == ("body", x, "nobody")
    properties = returned.properties
    assert (properties.message_id, properties.headers, properties.expiration) == ("id", {"a": 1}, "1000")


def test_a_mandatory_message_that_is_routed_does_not_come_back(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m", mandatory=True)
    assert ch.returned == []


def test_bcc_is_still_in_a_returned_message(ch, client):
    nowhere = client.name("nowhere")
    ch.publish(nowhere, "m", mandatory=True, headers={"BCC": [nowhere], "CC": [nowhere]})
    assert ch.returned[-1].headers["CC"] == [nowhere]


# --- transactions


@pytest.mark.parametrize("delivery_mode", [1, 2])
def test_transactional_publishes_appear_at_commit(ch, kind, delivery_mode):
    q = ch.queue(kind)
    tx = ch.connection.channel().tx_select()
    tx.publish(q, *"abc", delivery_mode=delivery_mode)
    tx.sync()
    assert ch.stays(q, 0, 0.15)
    tx.tx_commit()
    ch.reaches(q, 3)
    assert ch.drain(q) == ["a", "b", "c"]


def test_transactional_publishes_are_dropped_at_rollback(ch, kind):
    q = ch.queue(kind)
    tx = ch.connection.channel().tx_select()
    tx.publish(q, "a")
    tx.tx_rollback()
    tx.publish(q, "b")
    tx.tx_commit()
    ch.reaches(q, 1)
    assert ch.drain(q) == ["b"]


def test_an_open_transaction_is_forgotten_when_its_channel_closes(ch, kind):
    q = ch.queue(kind)
    tx = ch.connection.channel().tx_select()
    tx.publish(q, "a")
    tx.close()
    assert ch.stays(q, 0, 0.15)


def test_acks_of_a_transaction_count_at_commit(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "a", "b")
    tx = ch.connection.channel().tx_select()
    a, b = tx.get_unacked(q, 2)
    tx.ack(a)
    tx.tx_commit()
    tx.ack(b)
    tx.close()
    ch.reaches(q, 1)
    assert ch.get(q).body == "b"


def test_after_a_rollback_the_acked_messages_are_outstanding_again_but_not_delivered_again(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "a")
    tx = ch.connection.channel().tx_select()
    consumer = tx.consume(q)
    message = consumer.next()
    tx.ack(message)
    tx.tx_rollback()
    assert consumer.hears_nothing()
    tx.ack(message)
    tx.tx_commit()
    tx.close()
    assert ch.stays(q, 0, 0.15)


def test_a_requeue_in_a_transaction_happens_at_commit(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "a")
    tx = ch.connection.channel().tx_select()
    tx.nack(tx.get_unacked(q), requeue=True)
    tx.sync()
    assert ch.stays(q, 0, 0.15)
    tx.tx_commit()
    ch.reaches(q, 1)


def test_an_unknown_delivery_tag_in_a_transaction_is_refused_at_once(ch):
    def ack_nothing(channel):
        channel.tx_select()
        channel.ack(1)

    ch.refuses(ack_nothing, 406, "unknown delivery tag 1")


# --- order


def test_messages_of_one_channel_keep_their_order_through_exchanges_of_every_type(ch):
    sent = [str(n) for n in range(50)]
    for type in ("direct", "fanout", "topic"):
        x, q = ch.exchange(type), ch.queue()
        ch.bind(q, x, "k")
        ch.publish("k", *sent, exchange=x)
        assert ch.drain(q) == sent


def test_a_fan_out_reaches_every_queue_before_the_confirm(ch):
    x = ch.exchange("fanout")
    queues = [ch.queue(kind) for kind in ("classic", "quorum", "classic", "quorum")]
    for q in queues:
        ch.bind(q, x)
    assert ch.publish("", "m", exchange=x) == "a"
    assert [ch.count(q) for q in queues] == [1, 1, 1, 1]


def test_a_dead_lettered_message_is_not_confirmed_again_and_not_returned(ch, client):
    q = ch.queue(message_ttl=50, **dead_letters_to(client.name("nowhere")))
    assert ch.publish(q, "m", mandatory=True) == "a"
    ch.reaches(q, 0)
    ch.pause(0.1)
    assert ch.returned == []
    assert len([m for m in ch.heard if isinstance(m, spec.Basic.Ack)]) == 1
