"""What makes a message a dead letter, in which order dead letters come, and transactions."""

import pytest

from definitions import Policy
from expectations import dead_letters_to

# --- what makes a dead letter


def test_a_nacked_message_is_dead_lettered(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).deaths == [(q, "rejected", 1)]


def test_a_rejected_message_is_dead_lettered(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q))
    assert ch.take(dlq).deaths == [(q, "rejected", 1)]


def test_a_multiple_nack_dead_letters_everything_up_to_its_tag(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, *"abcd")
    messages = ch.get_unacked(q, 4)
    ch.nack(messages[2], multiple=True)
    ch.reaches(dlq, 3)
    assert ch.drain(dlq) == ["a", "b", "c"]
    ch.ack(messages[3])
    ch.sync()


def test_nack_multiple_with_tag_zero_dead_letters_everything_outstanding(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, *"abc")
    ch.get_unacked(q, 3)
    ch.nack(0, multiple=True)
    ch.reaches(dlq, 3)


def test_an_expired_message_is_dead_lettered(ch, kind, dlq):
    q = ch.queue(kind, message_ttl=100, **dead_letters_to(dlq))
    ch.publish(q, "m")
    assert ch.take(dlq).deaths == [(q, "expired", 1)]


def test_a_message_that_is_pushed_out_is_dead_lettered(ch, kind, dlq):
    q = ch.queue(kind, max_length=1, **dead_letters_to(dlq))
    ch.publish(q, "old", "new")
    dead = ch.take(dlq)
    assert (dead.body, dead.deaths) == ("old", [(q, "maxlen", 1)])


def test_a_message_beyond_the_delivery_limit_is_dead_lettered(ch, dlq):
    q = ch.queue("quorum", delivery_limit=0, **dead_letters_to(dlq))
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q), requeue=True)
    assert ch.take(dlq).deaths == [(q, "delivery_limit", 1)]


def test_a_requeued_message_is_not_dead_lettered(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q), requeue=True)
    ch.reaches(q, 1)
    assert ch.stays(dlq, 0)


def test_purged_messages_are_not_dead_lettered(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "a", "b")
    assert ch.purge(q) == 2
    assert ch.stays(dlq, 0)


def test_the_messages_of_a_deleted_queue_are_not_dead_lettered(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "a", "b")
    ch.get_unacked(q)
    ch.delete(q)
    assert ch.stays(dlq, 0)


def test_cancelling_a_consumer_dead_letters_nothing(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    consumer = ch.consume(q)
    consumer.next()
    consumer.cancel()
    assert ch.stays(dlq, 0)


def test_a_message_without_a_dead_letter_exchange_is_gone_when_it_is_rejected(ch, kind):
    q = ch.queue(kind)
    ch.kill(q)
    assert ch.stays(q, 0)


# --- in which order


def test_dead_letters_of_several_nacks_come_in_the_order_of_the_nacks_and_tags(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, *"012345")
    messages = ch.get_unacked(q, 6)
    ch.nack(messages[2])
    ch.nack(messages[5], multiple=True)
    ch.reaches(dlq, 6)
    assert ch.drain(dlq) == ["2", "0", "1", "3", "4", "5"]


def test_dead_letters_that_were_pushed_out_come_in_queue_order(ch, kind, dlq):
    q = ch.queue(kind, max_length=2, **dead_letters_to(dlq))
    ch.publish(q, *"012345")
    ch.reaches(dlq, 4)
    assert ch.drain(dlq) == ["0", "1", "2", "3"]
    assert ch.drain(q) == ["4", "5"]


def test_a_dead_letter_is_in_its_target_once_it_has_left_its_source(ch, kind, dlq):
    q = ch.queue(kind, message_ttl=300, **dead_letters_to(dlq))
    ch.publish(q, *"abcdefghij")
    ch.reaches(q, 0)
    ch.reaches(dlq, 10)


# --- transactions


@pytest.mark.parametrize("verb", ["nack", "reject"])
def test_in_a_transaction_messages_are_dead_lettered_at_commit(ch, kind, dlq, verb):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    tx = ch.connection.channel().tx_select()
    getattr(tx, verb)(tx.get_unacked(q))
    tx.sync()
    assert ch.stays(dlq, 0)
    tx.tx_commit()
    assert ch.take(dlq).deaths == [(q, "rejected", 1)]


def test_a_rolled_back_rejection_dead_letters_nothing(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    tx = ch.connection.channel().tx_select()
    message = tx.get_unacked(q)
    tx.nack(message)
    tx.tx_rollback()
    assert ch.stays(dlq, 0)
    tx.ack(message)
    tx.tx_commit()
    tx.close()
    assert ch.stays(dlq, 0, 0.1)
    assert ch.count(q) == 0


def test_messages_that_expire_while_a_transaction_publishes_are_dead_lettered(ch, kind, dlq):
    q = ch.queue(kind, message_ttl=50, **dead_letters_to(dlq))
    tx = ch.connection.channel().tx_select()
    tx.publish(q, "a", "b")
    tx.tx_commit()
    ch.reaches(dlq, 2)


# --- through policies


def test_a_policy_can_dead_letter_what_a_policy_lets_expire(defined, prefix, kind):
    ch = defined(policies=[Policy(
        {"message-ttl": 100, "dead-letter-exchange": "", "dead-letter-routing-key": prefix + "dlq"}, on="q"
    )])
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind)
    ch.publish(q, "m")
    assert ch.take(dlq).deaths == [(q, "expired", 1)]


def test_a_policy_on_all_queues_dead_letters_every_one_of_them(defined, prefix):
    ch = defined(policies=[Policy({"dead-letter-exchange": prefix + "dlx"})])
    dlx, dlq = ch.exchange("fanout", name="dlx"), ch.queue(name="dlq")
    ch.bind(dlq, dlx)
    sources = [ch.queue(kind) for kind in ("classic", "quorum", "classic")]
    for q in sources:
        ch.kill(q)
    assert sorted(ch.take(dlq).deaths[0][0] for _ in sources) == sorted(sources)


def test_publishing_to_a_dead_letter_exchange_directly_makes_no_death(ch):
    dlx, dlq = ch.exchange("fanout", name="dlx"), ch.queue(name="dlq")
    ch.bind(dlq, dlx)
    ch.publish("", "m", exchange=dlx)
    assert ch.take(dlq).headers == {}
