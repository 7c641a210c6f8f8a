"""Dead-lettering at least once (quorum queues): what has no place to go is kept, as far as a client can see that."""

import pytest

from definitions import Policy
from expectations import dead_letters_to


def source(ch, overflow="reject-publish", **arguments):
    """A quorum queue that dead-letters at least once."""
    return ch.queue("quorum", dead_letter_strategy="at-least-once", overflow=overflow, **arguments)


def kill(ch, queue, count):
    """Publish and reject so many messages."""
    for n in range(count):
        assert ch.publish(queue, str(n)) == "a"
    for message in [ch.get_unacked(queue) for _ in range(count)]:
        ch.nack(message)
    ch.sync()


def room(ch, queue, attempts):
    """The outcomes of so many publishes, one after the other."""
    return "".join(ch.publish(queue, "more") for _ in range(attempts))


@pytest.fixture
def nowhere(ch):
    """An exchange without bindings."""
    return ch.exchange("direct", name="nowhere")


@pytest.mark.parametrize("target_type", ["classic", "quorum"])
def test_dead_letters_arrive_once_and_in_order(ch, target_type):
    target = ch.queue(target_type, name="target")
    q = source(ch, **dead_letters_to(target))
    kill(ch, q, 5)
    ch.reaches(target, 5)
    assert ch.stays(target, 5)
    assert ch.drain(target) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("reason", ["rejected", "expired", "delivery_limit"])
def test_every_reason_but_maxlen_occurs(ch, reason):
    target = ch.queue(name="target")
    arguments = {"rejected": {}, "expired": {"message_ttl": 50}, "delivery_limit": {"delivery_limit": 0}}[reason]
    q = source(ch, **arguments, **dead_letters_to(target))
    ch.publish(q, "m")
    match reason:
        case "rejected":
            ch.nack(ch.get_unacked(q))
        case "delivery_limit":
            ch.reject(ch.get_unacked(q), requeue=True)
    assert ch.take(target).deaths == [(q, reason, 1)]


def test_the_routing_keys_are_the_same_as_at_most_once(ch):
    dlx, targets = ch.exchange("direct", name="dlx"), [ch.queue(name=n) for n in ("cc1", "bcc1")]
    ch.bind(targets[0], dlx, "cc1")
    ch.bind(targets[1], dlx, "bcc1")
    q = source(ch, dead_letter_exchange=dlx)
    ch.publish(q, "m", headers={"CC": ["cc1"], "BCC": ["bcc1"]})
    ch.nack(ch.get_unacked(q))
    assert [ch.take(target).body for target in targets] == ["m", "m"]


def test_a_dead_letter_that_waits_is_neither_ready_nor_delivered(ch, nowhere):
    q = source(ch, dead_letter_exchange=nowhere)
    kill(ch, q, 3)
    assert ch.stays(q, 0)
    assert ch.get(q) is None


@pytest.mark.better
def test_dead_letters_that_wait_count_against_the_length_limit(ch, nowhere, by_broker):
    q = source(ch, dead_letter_exchange=nowhere, max_length=4)
    kill(ch, q, 3)
    ch.pause(0.2)
    # RabbitMQ accepts one more than fits
    assert room(ch, q, 4) == by_broker(rabbitmq="aaNN", leveret="aNNN")


@pytest.mark.better
def test_a_missing_dead_letter_exchange_keeps_the_messages(ch, client, by_broker):
    q = source(ch, dead_letter_exchange=client.name("missing"), max_length=4)
    kill(ch, q, 3)
    ch.pause(0.2)
    assert room(ch, q, 4) == by_broker(rabbitmq="aaNN", leveret="aNNN")


@pytest.mark.better
def test_a_target_that_refuses_keeps_the_messages(ch, by_broker):
    target = ch.queue("classic", name="target", max_length=1, overflow="reject-publish")
    q = source(ch, max_length=4, **dead_letters_to(target))
    kill(ch, q, 4)
    ch.reaches(target, 1)
    assert ch.stays(target, 1)
    assert room(ch, q, 4) == by_broker(rabbitmq="aaNN", leveret="aNNN")


@pytest.mark.better
def test_a_cycle_keeps_the_message(ch, by_broker):
    q = source(ch, message_ttl=100, dead_letter_exchange="", max_length=2)
    assert ch.publish(q, "m") == "a"
    ch.reaches(q, 0)
    ch.pause(0.2)
    assert room(ch, q, 3) == by_broker(rabbitmq="aaN", leveret="aNN")


@pytest.mark.better
def test_purging_throws_the_waiting_dead_letters_away(ch, nowhere, by_broker):
    q = source(ch, dead_letter_exchange=nowhere, max_length=4)
    kill(ch, q, 3)
    assert ch.stays(q, 0)
    assert ch.purge(q) == 3  # they count here, though they are not ready
    assert room(ch, q, 6) == by_broker(rabbitmq="aaaaaN", leveret="aaaaNN")


@pytest.mark.parametrize("overflow", ["drop-head", None])
def test_with_drop_head_messages_are_dead_lettered_at_most_once(ch, nowhere, overflow):
    arguments = {"dead_letter_exchange": nowhere, "max_length": 4} | ({"overflow": overflow} if overflow else {})
    q = ch.queue("quorum", dead_letter_strategy="at-least-once", **arguments)
    kill(ch, q, 3)
    assert ch.publish(q, *"abcd") == "aaaa"
    assert ch.drain(q) == ["a", "b", "c", "d"]


def test_the_strategy_can_come_from_a_policy(defined):
    ch = defined(policies=[Policy({"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}, on="q")])
    target = ch.queue(name="target")
    q = ch.queue("quorum", **dead_letters_to(target))
    kill(ch, q, 3)
    ch.reaches(target, 3)


def test_the_default_strategy_loses_what_has_no_place_to_go(ch, nowhere):
    q = ch.queue("quorum", dead_letter_exchange=nowhere, max_length=4, overflow="reject-publish")
    kill(ch, q, 3)
    ch.pause(0.2)
    assert room(ch, q, 4) == "aaaa"
