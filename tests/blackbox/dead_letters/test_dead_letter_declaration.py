"""Configuration of the dead-letter exchange: arguments, policies, permissions."""

from decimal import Decimal

import pytest

from definitions import Policy, User
from expectations import ERLANG_TYPE, NOTHING, bad_argument, dead_letters_to, inequivalent, no_access
from field_table import Wire

NOT_STRINGS = {
    "t": True, "b": 5, "B": 5, "s": 5, "u": 5, "I": 5, "i": 5, "l": 5, "d": 1.0, "f": 1.0, "D": Decimal("1"), "T": 1,
    "F": {}, "A": [], "x": b"x", "V": None,
}


@pytest.fixture(params=NOT_STRINGS)
def not_a_string(request):
    """A value of every type but longstr, and RabbitMQ's name for the type."""
    return Wire(request.param, NOT_STRINGS[request.param]), ERLANG_TYPE[request.param]


# --- validation


def test_a_dead_letter_exchange_must_be_a_string(ch, client, kind, not_a_string):
    value, erlang_type = not_a_string
    name = client.name("q")
    refusal = f"invalid type '{erlang_type}' for arg 'x-dead-letter-exchange' in queue '{name}' in vhost '/'"
    ch.refuses(lambda c: c.queue(kind, name, dead_letter_exchange=value), 406, refusal)


def test_a_dead_letter_routing_key_must_be_a_string(ch, client, kind, not_a_string):
    value, erlang_type = not_a_string
    name = client.name("q")
    refusal = bad_argument("x-dead-letter-routing-key", name, f"{{unacceptable_type,{erlang_type}}}")
    ch.refuses(
        lambda c: c.queue(kind, name, dead_letter_exchange="", dead_letter_routing_key=value), 406, refusal
    )


def test_a_dead_letter_routing_key_needs_a_dead_letter_exchange(ch, client, kind):
    name = client.name("q")
    refusal = bad_argument("x-dead-letter-routing-key", name, "routing_key_but_no_dlx_defined")
    ch.refuses(lambda c: c.queue(kind, name, dead_letter_routing_key="k"), 406, refusal)


def test_a_dead_letter_exchange_from_a_policy_does_not_permit_a_routing_key_argument(defined, kind):
    ch = defined(policies=[Policy({"dead-letter-exchange": "amq.fanout"})])
    name = defined.client.name("q")
    refusal = bad_argument("x-dead-letter-routing-key", name, "routing_key_but_no_dlx_defined")
    ch.refuses(lambda c: c.queue(kind, name, dead_letter_routing_key="k"), 406, refusal)


@pytest.mark.parametrize("strategy", ["at-most-once", "at-least-once"])
def test_a_quorum_queue_takes_a_dead_letter_strategy(ch, strategy):
    ch.queue("quorum", dead_letter_exchange="", dead_letter_strategy=strategy)


def test_a_dead_letter_strategy_without_an_exchange_is_accepted(ch):
    q = ch.queue("quorum", dead_letter_strategy="at-least-once")
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.stays(q, 0)


@pytest.mark.parametrize("value, reason", [
    ("sometimes", "invalid_dlx_strategy"), (5, "{unacceptable_type,signedint}"), (True, "{unacceptable_type,bool}"),
])
def test_a_dead_letter_strategy_must_be_one_of_two_strings(ch, client, value, reason):
    name = client.name("q")
    refusal = bad_argument("x-dead-letter-strategy", name, reason)
    ch.refuses(lambda c: c.queue("quorum", name, dead_letter_exchange="", dead_letter_strategy=value), 406, refusal)


@pytest.mark.parametrize("queue_type", ["classic", pytest.param("stream", marks=pytest.mark.stream)])
def test_only_quorum_queues_take_a_dead_letter_strategy(ch, client, queue_type):
    name = client.name("q")
    module = f"rabbit_{queue_type}_queue"
    refusal = f"invalid arg 'x-dead-letter-strategy' for queue '{name}' in vhost '/' of queue type {module}"
    ch.refuses(lambda c: c.queue(queue_type, name, dead_letter_strategy="at-most-once"), 406, refusal)


@pytest.mark.stream
@pytest.mark.parametrize("argument", ["dead_letter_exchange", "dead_letter_routing_key"])
def test_a_stream_takes_no_dead_letter_arguments(ch, client, argument):
    name = client.name("q")
    arguments = {"dead_letter_exchange": "x"} | {argument: "x"}
    refusal = f"invalid arg 'x-dead-letter-exchange' for queue '{name}' in vhost '/' of queue type rabbit_stream_queue"
    said = ch.connection.channel().answer_to(lambda c: c.queue("stream", name, **arguments))
    assert said[:2] == ("channel", 406)
    if argument == "dead_letter_exchange":
        assert said[2] == "PRECONDITION_FAILED - " + refusal


def test_a_redeclaration_with_another_dead_letter_exchange_is_refused(ch, kind):
    q = ch.queue(kind, dead_letter_exchange="amq.fanout")
    refusal = inequivalent("x-dead-letter-exchange", q, "amq.direct", "amq.fanout")
    ch.refuses(lambda c: c.queue(kind, q, dead_letter_exchange="amq.direct"), 406, refusal)


def test_a_redeclaration_with_another_dead_letter_routing_key_is_refused(ch, kind):
    q = ch.queue(kind, dead_letter_exchange="", dead_letter_routing_key="one")
    refusal = inequivalent("x-dead-letter-routing-key", q, "two", "one")
    ch.refuses(
        lambda c: c.queue(kind, q, dead_letter_exchange="", dead_letter_routing_key="two"), 406, refusal
    )


# --- the exchange need not be there


def test_the_dead_letter_exchange_need_not_exist_when_the_queue_is_declared(ch, client, kind):
    dlx = client.name("dlx")
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.exchange("fanout", name=dlx)
    dlq = ch.queue(name="dlq")
    ch.bind(dlq, dlx)
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).body == "m"


def test_a_message_whose_dead_letter_exchange_is_missing_is_dropped_and_the_queue_works_on(ch, client, kind):
    q = ch.queue(kind, dead_letter_exchange=client.name("missing"))
    ch.publish(q, "lost", "next")
    ch.nack(ch.get_unacked(q))
    ch.reaches(q, 1)
    assert ch.get(q).body == "next"


def test_a_dead_letter_exchange_may_be_deleted_and_made_anew(ch, kind):
    dlx, dlq = ch.exchange("fanout", name="dlx"), ch.queue(name="dlq")
    ch.bind(dlq, dlx)
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.publish(q, "first", "second", "third")
    first, second, third = ch.get_unacked(q, 3)
    ch.nack(first)
    assert ch.take(dlq).body == "first"
    ch.delete_exchange(dlx)
    ch.nack(second)
    assert ch.stays(dlq, 0)
    ch.exchange("direct", name=dlx)
    ch.bind(dlq, dlx, q)
    ch.nack(third)
    assert ch.take(dlq).body == "third"


# --- permissions


def test_declaring_with_a_dead_letter_exchange_needs_write_access_to_it(bob, prefix, kind):
    _, mine = bob(write="-q$")
    dlx = prefix + "dlx"
    refusal = no_access("write", "exchange", dlx, prefix + "bob")
    mine.refuses(lambda c: c.queue(kind, dead_letter_exchange=dlx), 403, refusal)


def test_the_default_exchange_is_called_amq_default_when_access_is_refused(bob, prefix, kind):
    _, mine = bob(write="-q$")
    refusal = no_access("write", "exchange", "amq.default", prefix + "bob")
    mine.refuses(lambda c: c.queue(kind, dead_letter_exchange=""), 403, refusal)


def test_declaring_with_a_dead_letter_exchange_needs_read_access_to_the_queue(bob, prefix, kind):
    _, mine = bob(read=NOTHING)
    q = prefix + "q"
    refusal = no_access("read", "queue", q, prefix + "bob")
    mine.refuses(lambda c: c.queue(kind, q, dead_letter_exchange="x"), 403, refusal)


def test_configure_is_checked_before_read_and_read_before_write(bob, prefix, kind):
    _, mine = bob(configure="-configurable", write=NOTHING, read=NOTHING)
    q, other = prefix + "configurable", prefix + "other"
    refusal = no_access("configure", "queue", other, prefix + "bob")
    mine.refuses(lambda c: c.queue(kind, other, dead_letter_exchange="x"), 403, refusal)
    refusal = no_access("read", "queue", q, prefix + "bob")
    mine.refuses(lambda c: c.queue(kind, q, dead_letter_exchange="x"), 403, refusal)


def test_declaring_without_a_dead_letter_exchange_needs_neither(bob, kind):
    _, mine = bob(write=NOTHING, read=NOTHING)
    mine.queue(kind)


def test_the_permissions_are_not_checked_when_the_queue_exists_already(bob, kind):
    ch, mine = bob(write=NOTHING, read=NOTHING)
    q = ch.queue(kind, dead_letter_exchange="amq.fanout")
    mine.queue(kind, q, dead_letter_exchange="amq.fanout")


def test_the_permissions_are_checked_neither_for_a_policy_nor_when_a_message_dies(defined, prefix, kind):
    policy = Policy({"dead-letter-exchange": prefix + "dlx"}, on="q")
    ch = defined(users=[User("bob", write="^$")], policies=[policy])
    bob = defined.client.channel(user=prefix + "bob")
    dlx, dlq = ch.exchange("fanout", name="dlx"), ch.queue(name="dlq")
    ch.bind(dlq, dlx)
    q = bob.queue(kind)
    ch.publish(q, "m")
    bob.nack(bob.get_unacked(q))
    assert ch.take(dlq).body == "m"


# --- argument and policy


def test_the_dead_letter_exchange_can_come_from_a_policy(defined, prefix, kind):
    ch = defined(policies=[Policy({"dead-letter-exchange": prefix + "dlx"}, on="q")])
    dlx, dlq = ch.exchange("direct", name="dlx"), ch.queue(name="dlq")
    q = ch.queue(kind)
    ch.bind(dlq, dlx, q)
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).body == "m"


def test_the_dead_letter_routing_key_can_come_from_a_policy(defined, prefix, kind):
    ch = defined(policies=[Policy({"dead-letter-exchange": "", "dead-letter-routing-key": prefix + "dlq"}, on="q")])
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind)
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).body == "m"


def test_the_argument_beats_the_policy_for_the_dead_letter_exchange(defined, prefix, kind):
    ch = defined(policies=[Policy({"dead-letter-exchange": prefix + "policy"}, on="q")])
    by_policy, by_argument = ch.exchange("fanout", name="policy"), ch.exchange("fanout", name="argument")
    wrong, right = ch.queue(name="wrong"), ch.queue(name="right")
    ch.bind(wrong, by_policy)
    ch.bind(right, by_argument)
    q = ch.queue(kind, dead_letter_exchange=by_argument)
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.take(right).body == "m"
    assert ch.count(wrong) == 0


def test_the_argument_beats_the_policy_for_the_dead_letter_routing_key(defined, prefix, kind):
    policy = {"dead-letter-exchange": "", "dead-letter-routing-key": prefix + "wrong"}
    ch = defined(policies=[Policy(policy, on="q")])
    wrong, right = ch.queue(name="wrong"), ch.queue(name="right")
    q = ch.queue(kind, **dead_letters_to(right))
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.take(right).body == "m"
    assert ch.count(wrong) == 0


def test_exchange_and_routing_key_may_come_from_different_places(defined, prefix, kind):
    ch = defined(policies=[Policy({"dead-letter-routing-key": prefix + "dlq"}, on="q")])
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, dead_letter_exchange="")
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).body == "m"


def test_a_routing_key_in_a_policy_without_any_exchange_does_nothing(defined, prefix, kind):
    ch = defined(policies=[Policy({"dead-letter-routing-key": prefix + "dlq"}, on="q")])
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind)
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    assert ch.stays(dlq, 0)
    assert ch.count(q) == 0
