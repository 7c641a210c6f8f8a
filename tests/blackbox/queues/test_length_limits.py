"""Length limits: what counts, what goes, what is refused, and who hears of it."""

import pytest

from definitions import Policy
from expectations import bad_argument, dead_letters_to
from field_table import Wire
from live_policies import live_policy

# --- arguments


@pytest.mark.parametrize("argument", ["max_length", "max_length_bytes"])
@pytest.mark.parametrize("value", [0, 1, 2**40, Wire("b", 7), Wire("B", 7), Wire("s", 7), Wire("u", 7), Wire("i", 7),
                                   Wire("L", 7)])
def test_a_limit_may_be_any_non_negative_integer(ch, kind, argument, value):
    ch.queue(kind, **{argument: value})


@pytest.mark.parametrize("argument", ["max_length", "max_length_bytes"])
@pytest.mark.parametrize("value, reason", [
    (-1, "{value_negative,-1}"), ("5", '"expected integer, got longstr"'), (5.0, '"expected integer, got double"'),
    (True, '"expected integer, got bool"'),
])
def test_limit_of_another_type_is_refused(ch, client, kind, argument, value, reason):
    name = client.name("q")
    refusal = bad_argument("x-" + argument.replace("_", "-"), name, reason)
    ch.refuses(lambda c: c.queue(kind, name, **{argument: value}), 406, refusal)


@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish", "reject-publish-dlx"])
def test_overflow_has_three_behaviours(ch, kind, overflow):
    ch.queue(kind, overflow=overflow)


@pytest.mark.parametrize("value, reason", [
    ("drop-tail", "invalid_overflow"), ("", "invalid_overflow"), (5, "{unacceptable_type,signedint}"),
])
def test_any_other_overflow_behaviour_is_refused(ch, client, kind, value, reason):
    name = client.name("q")
    ch.refuses(lambda c: c.queue(kind, name, overflow=value), 406, bad_argument("x-overflow", name, reason))


@pytest.mark.stream
@pytest.mark.parametrize("argument, value", [("max_length", 5), ("overflow", "drop-head")])
def test_a_stream_takes_neither_max_length_nor_overflow(ch, client, argument, value):
    name = client.name("q")
    x_argument = "x-" + argument.replace("_", "-")
    refusal = f"invalid arg '{x_argument}' for queue '{name}' in vhost '/' of queue type rabbit_stream_queue"
    ch.refuses(lambda c: c.queue("stream", name, **{argument: value}), 406, refusal)


# --- drop-head


def test_the_oldest_messages_go_and_every_publish_is_acked(ch, kind, dlq):
    q = ch.queue(kind, max_length=2, **dead_letters_to(dlq))
    assert ch.publish(q, *"012345") == "aaaaaa"
    ch.reaches(dlq, 4)
    assert ch.drain(dlq) == ["0", "1", "2", "3"]
    assert ch.drain(q) == ["4", "5"]


def test_without_a_dead_letter_exchange_they_are_discarded(ch, kind):
    q = ch.queue(kind, max_length=2)
    ch.publish(q, *"012345")
    assert ch.drain(q) == ["4", "5"]


def test_unacked_messages_do_not_count(ch, kind):
    q = ch.queue(kind, max_length=1)
    ch.publish(q, "0")
    ch.get_unacked(q)
    ch.publish(q, "1")
    ch.get_unacked(q)
    ch.publish(q, "2")
    assert ch.count(q) == 1


def test_a_requeued_message_that_is_too_much_is_the_head_and_goes(ch, kind, dlq):
    q = ch.queue(kind, max_length=1, **dead_letters_to(dlq))
    ch.publish(q, "1")
    first = ch.get_unacked(q)
    ch.publish(q, "2")
    ch.get_unacked(q)
    ch.publish(q, "3")
    ch.nack(first, requeue=True)
    dead = ch.take(dlq)
    assert (dead.body, dead.deaths) == ("1", [(q, "maxlen", 1)])
    assert ch.drain(q) == ["3"]


def test_limit_of_zero_drops_messages_without_a_consumer(ch, kind, dlq):
    q = ch.queue(kind, max_length=0, **dead_letters_to(dlq))
    assert ch.publish(q, "m") == "a"
    assert ch.take(dlq).deaths == [(q, "maxlen", 1)]
    assert ch.count(q) == 0


def test_a_limit_of_zero_still_serves_a_ready_consumer(ch, kind):
    q = ch.queue(kind, max_length=0)
    consumer = ch.consume(q)
    ch.publish(q, "a", "b")
    assert consumer.next_bodies(2) == ["a", "b"]


@pytest.mark.better
@pytest.mark.parametrize("queue_type, arguments", [("classic", {"max_priority": 10}), ("quorum", {})])
def test_the_oldest_message_of_the_lowest_priority_goes_first(ch, dlq, queue_type, arguments, by_broker):
    q = ch.queue(queue_type, max_length=2, **arguments, **dead_letters_to(dlq))
    ch.publish(q, "high", priority=9)
    ch.publish(q, "low 1", "low 2", priority=1)
    dead = ch.take(dlq)
    # RabbitMQ drops the head, which is the message of the highest priority
    assert dead.body == by_broker(rabbitmq="high", leveret="low 1")
    assert ch.drain(q) == by_broker(rabbitmq=["low 1", "low 2"], leveret=["high", "low 2"])


@pytest.mark.better
@pytest.mark.parametrize("queue_type, arguments", [("classic", {"max_priority": 10}), ("quorum", {})])
def test_a_new_message_of_the_lowest_priority_is_the_one_that_goes(ch, dlq, queue_type, arguments, by_broker):
    q = ch.queue(queue_type, max_length=2, **arguments, **dead_letters_to(dlq))
    ch.publish(q, "high 1", "high 2", priority=9)
    assert ch.publish(q, "low", priority=1) == "a"
    assert ch.take(dlq).body == by_broker(rabbitmq="high 1", leveret="low")


def test_both_limits_at_once_act_each_on_its_own(ch):
    q = ch.queue(max_length=3, max_length_bytes=10)
    ch.publish(q, *"abcd")
    assert ch.drain(q) == ["b", "c", "d"]
    ch.publish(q, "12345678", "1234")
    assert ch.drain(q) == ["1234"]


# --- bytes


def test_a_classic_queue_counts_the_bytes_of_bodies(ch):
    q = ch.queue(max_length_bytes=10)
    ch.publish(q, "1111", "2222", "33", "44")
    assert ch.drain(q) == ["2222", "33", "44"]


def test_a_classic_queue_does_not_count_headers(ch):
    q = ch.queue(max_length_bytes=100)
    ch.publish(q, "x" * 90, headers={"h": "y" * 200})
    assert ch.count(q) == 1


def test_a_quorum_queue_counts_properties_and_headers_too(ch):
    q = ch.queue("quorum", max_length_bytes=10)
    ch.publish(q, "1111", "2222", "33", "44")
    assert ch.drain(q) == ["33", "44"]
    q = ch.queue("quorum", max_length_bytes=100)
    ch.publish(q, "x" * 90, headers={"h": "y" * 200})
    assert ch.count(q) == 0


def test_a_message_larger_than_the_byte_limit_is_acked_and_dropped(ch, kind, dlq):
    q = ch.queue(kind, max_length_bytes=10, **dead_letters_to(dlq))
    ch.publish(q, "small")
    assert ch.publish(q, "x" * 11) == "a"
    ch.reaches(dlq, 2)
    assert ch.drain(dlq) == ["small", "x" * 11]
    assert ch.count(q) == 0


@pytest.mark.better
def test_reject_publish_refuses_what_exceeds_the_byte_limit_of_a_quorum_queue(ch, by_broker):
    q = ch.queue("quorum", max_length_bytes=30, overflow="reject-publish")
    # ten bytes, and two of properties each
    outcomes = "".join(ch.publish(q, "0123456789") for _ in range(4))
    assert outcomes == by_broker(rabbitmq="aaaN", leveret="aaNN")


# --- reject-publish


@pytest.mark.better
def test_reject_publish_nacks_what_does_not_fit(ch, kind, by_broker):
    q = ch.queue(kind, max_length=2, overflow="reject-publish")
    outcomes = "".join(ch.publish(q, str(n)) for n in range(6))
    soft = kind == "quorum"  # RabbitMQ tells the publisher after it has overshot
    assert outcomes == by_broker(rabbitmq="aaaNNN" if soft else "aaNNNN", leveret="aaNNNN")
    assert ch.drain(q) == by_broker(rabbitmq=["0", "1", "2"] if soft else ["0", "1"], leveret=["0", "1"])


@pytest.mark.better
def test_reject_publish_is_a_hard_limit_for_publishers_without_confirms(ch, kind, by_broker):
    q = ch.queue(kind, max_length=2, overflow="reject-publish")
    plain = ch.connection.channel()
    plain.publish(q, *"01234")
    plain.sync()
    ch.pause(0.3)
    # RabbitMQ's quorum queues tell the publisher when it is too late, if it is fast
    assert ch.count(q) in by_broker(rabbitmq=[3, 4, 5] if kind == "quorum" else [2], leveret=[2])


@pytest.mark.better
def test_reject_publish_fails_a_transaction_that_does_not_fit(ch, kind, by_broker):
    q = ch.queue(kind, max_length=1, overflow="reject-publish")
    tx = ch.connection.channel().tx_select()
    tx.publish(q, *"abcd")
    failed = ("channel", 406, "PRECONDITION_FAILED - partial tx completion")
    soft = kind == "quorum"
    assert tx.answer_to(lambda c: c.tx_commit()) == by_broker(rabbitmq=None if soft else failed, leveret=failed)
    ch.pause(0.3)
    assert ch.count(q) in by_broker(rabbitmq=[2, 3, 4] if soft else [1], leveret=[1])


@pytest.mark.better
def test_reject_publish_with_a_limit_of_zero_refuses_even_with_an_idle_consumer(ch, kind, by_broker):
    q = ch.queue(kind, max_length=0, overflow="reject-publish")
    consumer = ch.consume(q)
    soft = kind == "quorum"
    assert ch.publish(q, "m") == by_broker(rabbitmq="a" if soft else "N", leveret="N")
    assert consumer.hears_nothing() == by_broker(rabbitmq=not soft, leveret=True)


def test_reject_publish_accepts_again_when_there_is_room(ch, kind):
    q = ch.queue(kind, max_length=5, overflow="reject-publish")
    outcomes = "".join(ch.publish(q, "m") for _ in range(7))
    assert outcomes.startswith("aaaaa") and outcomes.endswith("N")
    ch.drain(q)
    ch.poll(lambda: ch.publish(q, "m") == "a")


def test_a_requeued_message_is_always_accepted(ch, kind):
    q = ch.queue(kind, max_length=1, overflow="reject-publish")
    ch.publish(q, "1")
    message = ch.get_unacked(q)
    assert ch.publish(q, "2") == "a"
    ch.nack(message, requeue=True)
    ch.reaches(q, 2)
    assert ch.drain(q) == ["1", "2"]


# --- reject-publish-dlx


@pytest.mark.better
def test_reject_publish_dlx_nacks_and_dead_letters_what_does_not_fit(ch, kind, dlq, by_broker):
    q = ch.queue(kind, max_length=2, overflow="reject-publish-dlx", **dead_letters_to(dlq))
    outcomes = "".join(ch.publish(q, str(n)) for n in range(6))
    ch.reaches(dlq, 4)
    drops_head = kind == "quorum"  # RabbitMQ takes it for drop-head there
    assert outcomes == by_broker(rabbitmq="aaaaaa" if drops_head else "aaNNNN", leveret="aaNNNN")
    dead = [ch.take(dlq) for _ in range(4)]
    refused, dropped = ["2", "3", "4", "5"], ["0", "1", "2", "3"]
    assert [d.body for d in dead] == by_broker(rabbitmq=dropped if drops_head else refused, leveret=refused)
    assert {d.deaths[0] for d in dead} == {(q, "maxlen", 1)}
    assert ch.drain(q) == by_broker(rabbitmq=["4", "5"] if drops_head else ["0", "1"], leveret=["0", "1"])


def test_reject_publish_dlx_without_a_dead_letter_exchange_only_nacks(ch):
    q = ch.queue(max_length=1, overflow="reject-publish-dlx")
    assert ch.publish(q, "a", "b") == "aN"
    assert ch.drain(q) == ["a"]


# --- arguments and policies


@pytest.mark.parametrize("argument, policy, operator, kept", [(5, 3, 4, 3), (3, 5, 4, 3), (5, 4, 3, 3)])
def test_the_lowest_of_argument_policy_and_operator_policy_counts(defined, kind, argument, policy, operator, kept):
    ch = defined(policies=[Policy({"max-length": policy})], operator_policies=[Policy({"max-length": operator})])
    q = ch.queue(kind, max_length=argument)
    ch.publish(q, *"0123456789")
    assert ch.drain(q) == ["7", "8", "9"]


def test_max_length_bytes_can_come_from_a_policy(defined):
    ch = defined(policies=[Policy({"max-length-bytes": 10})])
    q = ch.queue(max_length_bytes=1000)
    ch.publish(q, "12345", "12345", "1")
    assert ch.count(q) == 2


@pytest.mark.better
def test_an_overflow_argument_beats_the_policy_on_classic_and_loses_on_quorum_queues(defined, kind, by_broker):
    ch = defined(policies=[Policy({"overflow": "reject-publish"})])
    q = ch.queue(kind, max_length=2, overflow="drop-head")
    outcomes = "".join(ch.publish(q, str(n)) for n in range(6))
    if kind == "classic":
        assert (outcomes, ch.drain(q)) == ("aaaaaa", ["4", "5"])
    else:
        assert outcomes == by_broker(rabbitmq="aaaNNN", leveret="aaNNNN")


# --- policies that change while messages wait


def test_a_new_length_policy_acts_on_what_is_there(ch, client, kind, api):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, *"012345")
    with live_policy(api, client, {"max-length": 2}):
        ch.reaches(q, 2)
        assert ch.drain(q) == ["4", "5"]
        ch.reaches(dlq, 4)
        assert ch.drain(dlq) == ["0", "1", "2", "3"]


@pytest.mark.better
def test_a_policy_of_limit_and_overflow_in_one_step_loses_nothing(ch, client, kind, api, by_broker):
    q = ch.queue(kind)
    ch.publish(q, *"012345")
    with live_policy(api, client, {"max-length": 2, "overflow": "reject-publish"}):
        # a classic queue of RabbitMQ sees the limit before the overflow behaviour
        assert ch.stays(q, by_broker(rabbitmq=2 if kind == "classic" else 6, leveret=6), 0.5)
        ch.poll(lambda: ch.publish(q, "more") == "N", what="the policy to act")


def test_removing_the_overflow_behaviour_evicts_down_to_the_limit(ch, client, kind, api):
    q = ch.queue(kind)
    ch.publish(q, *"012345")
    with live_policy(api, client, {"overflow": "reject-publish"}) as change:
        change({"overflow": "reject-publish", "max-length": 2})
        assert ch.stays(q, 6)
        change({"max-length": 2})
        ch.reaches(q, 2)
        assert ch.drain(q) == ["4", "5"]
