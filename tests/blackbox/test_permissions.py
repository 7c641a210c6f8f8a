"""Permissions: configure, write and read, and the topic permissions of a user who is not allowed everything.

Those for declaring queues and dead-letter exchanges stand with these topics.
"""

import pytest

from expectations import NOTHING, no_access


def test_publishing_needs_write_access_to_the_exchange(bob, prefix):
    ch, mine = bob(write=NOTHING)
    x = ch.exchange()
    mine.refuses(lambda c: c.publish("k", "m", exchange=x), 403, no_access("write", "exchange", x, prefix + "bob"))


def test_publishing_to_the_default_exchange_needs_write_access_to_amq_default(bob, prefix):
    ch, mine = bob(NOTHING, write="-x$", read=NOTHING)
    q = ch.queue()
    refusal = no_access("write", "exchange", "amq.default", prefix + "bob")
    mine.refuses(lambda c: c.publish(q, "m"), 403, refusal)


def test_publishing_needs_no_access_to_the_queue(bob):
    ch, mine = bob(NOTHING, write="amq\\.default", read=NOTHING)
    q = ch.queue()
    mine.publish(q, "m")
    assert ch.take(q).body == "m"


@pytest.mark.parametrize("use", ["get", "consume", "purge"])
def test_taking_messages_needs_read_access_to_the_queue(bob, prefix, use):
    ch, mine = bob(read=NOTHING)
    q = ch.queue()
    actions = {"get": lambda c: c.get(q), "consume": lambda c: c.consume(q), "purge": lambda c: c.purge(q)}
    mine.refuses(actions[use], 403, no_access("read", "queue", q, prefix + "bob"))


def test_deleting_a_queue_needs_configure_access(bob, prefix):
    ch, mine = bob(configure=NOTHING)
    q = ch.queue()
    mine.refuses(lambda c: c.delete(q), 403, no_access("configure", "queue", q, prefix + "bob"))


def test_declaring_and_deleting_an_exchange_needs_configure_access(bob, prefix):
    ch, mine = bob(configure=NOTHING)
    x = ch.exchange()
    refusal = no_access("configure", "exchange", x, prefix + "bob")
    mine.refuses(lambda c: c.exchange("direct", x), 403, refusal)
    mine.refuses(lambda c: c.delete_exchange(x), 403, refusal)


@pytest.mark.parametrize("use", ["bind", "unbind"])
def test_binding_needs_write_access_to_the_queue_and_read_access_to_the_exchange(bob, prefix, use):
    ch, mine = bob(NOTHING, write="-writable$", read="-readable$")
    writable, other = ch.queue(name="writable"), ch.queue(name="other")
    readable, hidden = ch.exchange(name="readable"), ch.exchange(name="hidden")
    act = lambda q, x: lambda c: getattr(c, use)(q, x, "k")  # noqa: E731
    mine.refuses(act(other, readable), 403, no_access("write", "queue", other, prefix + "bob"))
    mine.refuses(act(writable, hidden), 403, no_access("read", "exchange", hidden, prefix + "bob"))
    getattr(mine, use)(writable, readable, "k")


def test_binding_exchanges_needs_write_access_to_the_destination_and_read_access_to_the_source(bob, prefix):
    ch, mine = bob(NOTHING, write="-writable$", read="-readable$")
    writable, readable = ch.exchange(name="writable"), ch.exchange(name="readable")
    not_written = no_access("write", "exchange", readable, prefix + "bob")
    mine.refuses(lambda c: c.bind_exchange(readable, readable), 403, not_written)
    not_read = no_access("read", "exchange", writable, prefix + "bob")
    mine.refuses(lambda c: c.bind_exchange(writable, writable), 403, not_read)
    mine.bind_exchange(writable, readable)


def test_an_alternate_exchange_needs_read_access_to_the_exchange_and_write_access_to_the_alternate(bob, prefix):
    ch, mine = bob(read="-x", write="-ae$")
    x, unread, alternate = prefix + "x", prefix + "unread", prefix + "ae"
    mine.refuses(lambda c: c.exchange("direct", unread, alternate_exchange=alternate), 403,
                 no_access("read", "exchange", unread, prefix + "bob"))
    mine.refuses(lambda c: c.exchange("direct", x, alternate_exchange=prefix + "other"), 403,
                 no_access("write", "exchange", prefix + "other", prefix + "bob"))
    mine.exchange("direct", x, alternate_exchange=alternate)


def test_permissions_are_regular_expressions_searched_in_the_name(bob, prefix):
    ch, mine = bob(configure="able", write=NOTHING, read="^bb-.*readable$")
    q = mine.queue(name="readable-too")
    mine.refuses(lambda c: c.get(q), 403, no_access("read", "queue", q, prefix + "bob"))
    mine.get(mine.queue(name="readable"))


def test_a_missing_queue_is_reported_after_a_missing_permission(bob, prefix):
    _, mine = bob(NOTHING, NOTHING, NOTHING)
    name = prefix + "missing"
    mine.refuses(lambda c: c.get(name), 403, no_access("read", "queue", name, prefix + "bob"))


def test_a_refused_publish_is_reported_before_a_missing_exchange(bob, prefix):
    _, mine = bob(NOTHING, NOTHING, NOTHING)
    name = prefix + "missing"
    refusal = no_access("write", "exchange", name, prefix + "bob")
    mine.refuses(lambda c: c.publish("k", "m", exchange=name), 403, refusal)


# --- topic permissions


@pytest.fixture
def topical(bob, prefix):
    """A topic exchange on which bob may publish `allowed.*` and bind to `readable.*`; his channel; the exchange."""

    def topical(write="^allowed\\.", read="^readable\\."):
        x = prefix + "topic"
        permission = {"user": prefix + "bob", "vhost": "/", "exchange": x, "write": write, "read": read}
        exchange = {"vhost": "/", "name": x, "type": "topic", "durable": True, "auto_delete": False, "arguments": {}}
        ch, mine = bob(topic_permissions=[permission], exchanges=[exchange])
        return ch, mine, x

    return topical


def topic_refusal(permission, key, exchange, user):
    return f"{permission} access to topic '{key}' in exchange '{exchange}' in vhost '/' refused for user '{user}'"


def test_publishing_to_a_topic_needs_the_topic_permission_too(topical, prefix):
    ch, mine, x = topical()
    mine.publish("allowed.1", "m", exchange=x)
    refusal = topic_refusal("write", "denied.1", x, prefix + "bob")
    mine.refuses(lambda c: c.publish("denied.1", "m", exchange=x), 403, refusal)


def test_binding_to_a_topic_needs_the_topic_permission_too(topical, prefix):
    ch, mine, x = topical()
    q = ch.queue()
    mine.bind(q, x, "readable.#")
    mine.refuses(lambda c: c.bind(q, x, "secret.#"), 403, topic_refusal("read", "secret.#", x, prefix + "bob"))


def test_topic_permissions_may_name_the_user(topical, prefix):
    _, mine, x = topical(write="^{username}\\.")
    mine.publish(f"{prefix}bob.1", "m", exchange=x)
    refusal = topic_refusal("write", "alice.1", x, prefix + "bob")
    mine.refuses(lambda c: c.publish("alice.1", "m", exchange=x), 403, refusal)


def test_topic_permissions_are_for_the_named_exchange_only(topical):
    ch, mine, _ = topical()
    other = ch.exchange("topic", name="other")
    mine.publish("whatever", "m", exchange=other)
    mine.sync()


def test_topic_permissions_do_not_matter_when_a_message_dies(topical):
    ch, mine, x = topical()
    dlq = ch.queue(name="dlq")
    ch.bind(dlq, x, "denied")
    q = mine.queue(dead_letter_exchange=x, dead_letter_routing_key="denied")
    ch.publish(q, "m")
    mine.nack(mine.get_unacked(q))
    assert ch.take(dlq).body == "m"
