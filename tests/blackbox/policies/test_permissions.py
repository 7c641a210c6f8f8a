"""Permissions: configure, write and read, and the topic permissions of a user who is not allowed everything.

Those for declaring queues and dead-letter exchanges stand with these topics.
"""

import pytest

from expectations import NOTHING, no_access


def test_publishing_needs_no_access_to_the_queue(bob):
    ch, mine = bob(NOTHING, write="amq\\.default", read=NOTHING)
    q = ch.queue()
    mine.publish(q, "m")
    assert ch.take(q).body == "m"


def test_permissions_are_regular_expressions_searched_in_the_name(bob, prefix):
    ch, mine = bob(configure="able", write=NOTHING, read="^bb-.*readable$")
    q = mine.queue(name="readable-too")
    mine.refuses(lambda c: c.get(q), 403, no_access("read", "queue", q, prefix + "bob"))
    mine.get(mine.queue(name="readable"))


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


def test_topic_permissions_may_name_the_user(topical, prefix):
    _, mine, x = topical(write="^{username}\\.")
    mine.publish(f"{prefix}bob.1", "m", exchange=x)
    refusal = topic_refusal("write", "alice.1", x, prefix + "bob")
    mine.refuses(lambda c: c.publish("alice.1", "m", exchange=x), 403, refusal)


def test_topic_permissions_do_not_matter_when_a_message_dies(topical):
    ch, mine, x = topical()
    dlq = ch.queue(name="dlq")
    ch.bind(dlq, x, "denied")
    q = mine.queue(dead_letter_exchange=x, dead_letter_routing_key="denied")
    ch.publish(q, "m")
    mine.nack(mine.get_unacked(q))
    assert ch.take(dlq).body == "m"
