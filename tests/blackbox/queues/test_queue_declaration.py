"""queue.declare: names, counts, passive declaration, what a redeclaration may differ in, permissions."""

import re
from decimal import Decimal

import pytest
from pika import spec

from expectations import LOCKED, NOTHING, inequivalent, no_access
from field_table import Wire

STREAM = pytest.param("stream", marks=pytest.mark.stream)

# --- names


def test_the_broker_names_a_queue_that_has_no_name(ch):
    names = {ch.queue(name="", exclusive=True) for _ in range(5)}
    assert len(names) == 5
    assert all(re.fullmatch(r"amq\.gen-[A-Za-z0-9_-]{22}", name) for name in names)


@pytest.mark.parametrize("queue_type", ["quorum", STREAM])
def test_only_classic_queues_can_be_named_by_the_broker(ch, queue_type):
    refusal = f"Cannot declare a server-named queue for type rabbit_{queue_type}_queue"
    ch.refuses(lambda c: c.queue(queue_type, name=""), 406, refusal)


@pytest.mark.parametrize("name", ["amq.foo", "amq.gen-foo", "amq."])
def test_names_that_begin_with_amq_dot_are_reserved(ch, name):
    refusal = f"queue name '{name}' contains reserved prefix 'amq.*'"
    ch.refuses(lambda c: declare(c, name), 403, refusal)


def test_the_reserved_prefix_does_not_matter_for_a_passive_declaration(ch):
    q = ch.queue(name="", exclusive=True)
    ch.passive(q)
    ch.refuses(lambda c: c.passive("amq.foo"), 404, "no queue 'amq.foo' in vhost '/'")


def declare(ch, name, **properties):
    """A declaration with just this name, nothing in front of it."""
    return ch.rpc(spec.Queue.Declare(queue=name, **properties), spec.Queue.DeclareOk)


@pytest.mark.parametrize("length", [100, 255])
def test_names_may_be_255_bytes_long(ch, kind, length):
    name = ch.client.prefix.ljust(length, "n")
    ch.queue(kind, name)
    ch.publish(name, "m")
    assert ch.get(name).routing_key == name


@pytest.mark.parametrize("wish", ["with space", "slash/and%", "ünïcödé", "队列", "'quoted'", "a.b#c*"])
def test_names_may_have_any_characters(ch, kind, wish):
    q = ch.queue(kind, wish)
    ch.publish(q, "m")
    assert ch.get(q).body == "m"


def test_carriage_returns_and_newlines_are_stripped_from_names(ch):
    name = ch.client.name("stripped")
    ch.client.queues.append(name)
    declared = declare(ch, name[:5] + "\r\n" + name[5:] + "\n")
    assert declared.queue == name


def test_the_last_declared_queue_of_a_channel_is_meant_by_an_empty_name(ch):
    q = ch.queue()
    ch.bind("", "amq.direct", "")
    assert ch.purge("") == 0
    ch.publish(q, "m")
    assert ch.get("").body == "m"


# --- counts


def test_declare_ok_counts_ready_messages_and_consumers(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abc")
    declared = ch.declare(kind, q)
    assert (declared.queue, declared.message_count, declared.consumer_count) == (q, 3, 0)
    consumers = [ch.connection.channel().consume(q, prefetch=1) for _ in range(2)]
    for consumer in consumers:
        consumer.next()
    passive = ch.passive(q)
    assert (passive.message_count, passive.consumer_count) == (1, 2)


# --- passive


def test_a_passive_declaration_ignores_flags_and_arguments(ch, kind):
    q = ch.queue(kind)
    method = spec.Queue.Declare(queue=q, passive=True, auto_delete=True, arguments={"x-message-ttl": "nonsense"})
    assert ch.rpc(method, spec.Queue.DeclareOk).queue == q


# --- equivalence


def test_an_equal_redeclaration_is_fine(ch, kind):
    arguments = {"message_ttl": 60000, "max_length": 5, "dead_letter_exchange": "x", "overflow": "drop-head"}
    q = ch.queue(kind, **arguments)
    ch.publish(q, "m")
    assert ch.declare(kind, q, **arguments).message_count == 1


@pytest.mark.parametrize("wire_type", "bBsuIilL")
def test_the_width_of_an_integer_does_not_matter(ch, kind, wire_type):
    q = ch.queue(kind, message_ttl=Wire("I", 100))
    ch.queue(kind, q, message_ttl=Wire(wire_type, 100))


@pytest.mark.better
def test_a_decimal_for_an_integer_is_not_the_end_of_the_connection(ch, client, by_broker):
    q = ch.queue(message_ttl=1000)
    said = client.channel().answer_to(lambda c: c.queue(name=q, message_ttl=Decimal("1001")))
    assert said[:2] == by_broker(rabbitmq=("connection", 541), leveret=("channel", 406))


@pytest.mark.parametrize("received, shown", [
    (1001, "received '1001' but current is '1000'"),
    ("1000", "received '1000' but current is '1000'"),
    ("a", "received 'a' but current is '1000'"),
    (1000.0, "received '1.0e3' but current is '1000'"),
    (1000.5, "received '1000.5' but current is '1000'"),
    (True, "received 'true' but current is '1000'"),
])
def test_another_value_or_type_is_refused(ch, kind, received, shown):
    q = ch.queue(kind, message_ttl=1000)
    refusal = f"inequivalent arg 'x-message-ttl' for queue '{q}' in vhost '/': {shown}"
    ch.refuses(lambda c: c.queue(kind, q, message_ttl=received), 406, refusal)


@pytest.mark.parametrize("wire_type, shown", [("f", "1.0e3"), ("d", "1.0e3")])
def test_floats_are_another_class_than_integers(ch, wire_type, shown):
    q = ch.queue(message_ttl=1000)
    refusal = inequivalent("x-message-ttl", q, shown, "1000")
    ch.refuses(lambda c: c.queue(name=q, message_ttl=Wire(wire_type, 1000.0)), 406, refusal)


@pytest.mark.parametrize("argument, value, shown", [
    ("message_ttl", 1000, "'1000' of type 'signedint'"), ("message_ttl", Wire("l", 1000), "'1000' of type 'long'"),
    ("message_ttl", Wire("s", 1000), "'1000' of type 'short'"), ("max_length", Wire("b", 5), "'5' of type 'byte'"),
    ("expires", Wire("u", 60000), "'60000' of type 'unsignedshort'"),
    ("expires", Wire("i", 60000), "'60000' of type 'unsignedint'"),
    ("max_length", Wire("B", 5), "'5' of type 'unsignedbyte'"),
    ("dead_letter_exchange", "x", "'x' of type 'longstr'"), ("overflow", "drop-head", "'drop-head' of type 'longstr'"),
    ("single_active_consumer", True, "'true' of type 'bool'"),
])
def test_an_argument_that_is_missing_or_new_is_refused(ch, kind, argument, value, shown):
    x_argument = "x-" + argument.replace("_", "-")
    having, lacking = ch.queue(kind, **{argument: value}), ch.queue(kind)
    inequivalent_in = f"inequivalent arg '{x_argument}' for queue '{{}}' in vhost '/': ".format
    missing = f"received none but current is the value {shown}"
    ch.refuses(lambda c: c.queue(kind, having), 406, inequivalent_in(having) + missing)
    new = f"received the value {shown} but current is none"
    ch.refuses(lambda c: c.queue(kind, lacking, **{argument: value}), 406, inequivalent_in(lacking) + new)


def test_an_invalid_value_for_an_existing_queue_is_merely_another_value(ch, kind):
    q = ch.queue(kind, message_ttl=1000)
    ch.refuses(lambda c: c.queue(kind, q, message_ttl=-1), 406, inequivalent("x-message-ttl", q, "-1", "1000"))


def test_unknown_arguments_are_accepted_and_not_compared(ch, kind):
    q = ch.queue(kind, arguments={"x-unknown": 1, "whatever": "a"})
    ch.queue(kind, q)
    ch.queue(kind, q, arguments={"x-unknown": "other", "more": True})


def test_the_classic_type_and_no_type_are_the_same(ch):
    q = ch.queue(None)
    ch.queue("classic", q)
    ch.queue(None, ch.queue("classic"))


@pytest.mark.parametrize("first, second", [("classic", "quorum"), ("quorum", "classic"), ("quorum", None)])
def test_another_queue_type_is_refused(ch, first, second):
    q = ch.queue(first)
    ch.refuses(lambda c: c.queue(second, q), 406, inequivalent("x-queue-type", q, second or "classic", first))


def test_another_durability_is_refused(ch):
    q = ch.queue()
    ch.refuses(lambda c: c.queue(name=q, durable=False), 406, inequivalent("durable", q, "false", "true"))
    q = ch.queue(durable=False)
    ch.refuses(lambda c: c.queue(name=q), 406, inequivalent("durable", q, "true", "false"))


def test_another_auto_delete_is_refused(ch):
    q = ch.queue()
    ch.refuses(lambda c: c.queue(name=q, auto_delete=True), 406, inequivalent("auto_delete", q, "true", "false"))
    q = ch.queue(auto_delete=True)
    ch.refuses(lambda c: c.queue(name=q), 406, inequivalent("auto_delete", q, "false", "true"))


def test_durable_is_compared_before_auto_delete_and_that_before_arguments(ch):
    q = ch.queue()
    ch.refuses(lambda c: c.queue(name=q, durable=False, auto_delete=True, message_ttl=1), 406,
               inequivalent("durable", q, "false", "true"))
    ch.refuses(lambda c: c.queue(name=q, auto_delete=True, message_ttl=1), 406,
               inequivalent("auto_delete", q, "true", "false"))


def test_exclusiveness_is_compared_before_durability(ch):
    q = ch.queue()
    ch.refuses(lambda c: c.queue(name=q, exclusive=True, durable=False), 405, LOCKED.format(queue=q))


@pytest.mark.parametrize("first, second", [(True, False), (False, True)])
def test_the_durable_flag_of_an_exclusive_queue_does_not_matter(ch, first, second):
    q = ch.queue(name="exclusive", exclusive=True, durable=first)
    ch.queue(name=q, exclusive=True, durable=second)


@pytest.mark.stream
def test_the_max_age_of_a_stream_is_compared_as_a_duration(ch):
    q = ch.queue("stream", max_age="7D")
    ch.queue("stream", q, max_age="168h")


# --- permissions


def test_declaring_needs_configure_access_even_if_the_arguments_are_wrong(bob, prefix):
    _, mine = bob(configure=NOTHING)
    q = prefix + "q"
    refusal = no_access("configure", "queue", q, prefix + "bob")
    mine.refuses(lambda c: c.queue(name=q, message_ttl=-1), 403, refusal)


def test_redeclaring_needs_configure_access_even_if_nothing_differs(bob, prefix):
    ch, mine = bob(configure=NOTHING)
    q = ch.queue()
    mine.refuses(lambda c: c.queue(name=q), 403, no_access("configure", "queue", q, prefix + "bob"))


@pytest.mark.parametrize("permission", ["configure", "write", "read"])
def test_a_passive_declaration_needs_any_one_permission(bob, permission):
    ch, mine = bob(**dict.fromkeys(["configure", "write", "read"], NOTHING) | {permission: ".*"})
    q = ch.queue()
    assert mine.passive(q).queue == q


def test_a_passive_declaration_without_any_permission_is_refused(bob, prefix):
    ch, mine = bob(NOTHING, NOTHING, NOTHING)
    q = ch.queue()
    mine.refuses(lambda c: c.passive(q), 403, no_access("configure", "queue", q, prefix + "bob"))
