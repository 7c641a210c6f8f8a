"""Definitions as RabbitMQ exports them: users with hashed and plain passwords, permissions, queues, exchanges."""

import pytest

from definitions import Policy, User
from expectations import no_access
from replies import Closed


@pytest.mark.parametrize("plain_password", [False, True])
def test_a_user_can_log_in_with_a_hashed_or_a_plain_password(defined, prefix, plain_password):
    defined(users=[User("bob", plain_password=plain_password)])
    defined.client.channel(user=prefix + "bob").queue()
    with pytest.raises(Closed) as refused:
        defined.client.connect(user=prefix + "bob", password="wrong")
    assert refused.value.code == 403


def test_queues_exchanges_and_bindings_are_there(defined, prefix):
    q, x, internal = prefix + "defined-q", prefix + "defined-x", prefix + "defined-e"
    ch = defined(
        queues=[
            {"vhost": "/", "name": q, "type": "classic", "durable": True, "auto_delete": False,
             "arguments": {"x-queue-type": "classic", "x-message-ttl": 60000, "x-max-length": 2}},
        ],
        exchanges=[
            {"vhost": "/", "name": name, "type": type, "durable": True, "auto_delete": False, "arguments": {}}
            for name, type in ((x, "topic"), (internal, "fanout"))
        ],
        bindings=[
            {"vhost": "/", "source": x, "destination": internal, "destination_type": "exchange", "routing_key": "a.#",
             "arguments": {}},
            {"vhost": "/", "source": internal, "destination": q, "destination_type": "queue", "routing_key": "",
             "arguments": {}},
        ],
    )
    ch.queue(name=q, message_ttl=60000, max_length=2)
    ch.exchange("topic", x)
    for key in ("a.1", "a.2", "b.1", "a.3"):
        ch.publish(key, key, exchange=x)
    assert ch.drain(q) == ["a.2", "a.3"]


def test_a_quorum_queue_with_dead_lettering_can_be_defined(defined, prefix):
    q, dlq = prefix + "defined-q", prefix + "defined-dlq"
    arguments = {
        "x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dlq, "x-message-ttl": 100,
    }
    ch = defined(queues=[
        {"vhost": "/", "name": q, "type": "quorum", "durable": True, "auto_delete": False, "arguments": arguments},
        {"vhost": "/", "name": dlq, "type": "classic", "durable": True, "auto_delete": False, "arguments": {}},
    ])
    ch.publish(q, "m")
    assert ch.take(dlq).deaths == [(q, "expired", 1)]


def test_headers_bindings_with_arguments_can_be_defined(defined, prefix):
    q, x = prefix + "defined-q", prefix + "defined-x"
    ch = defined(
        queues=[{"vhost": "/", "name": q, "durable": True, "auto_delete": False, "arguments": {}}],
        exchanges=[{"vhost": "/", "name": x, "type": "headers", "durable": True, "auto_delete": False,
                    "arguments": {}}],
        bindings=[{"vhost": "/", "source": x, "destination": q, "destination_type": "queue", "routing_key": "",
                   "arguments": {"x-match": "all", "colour": "red"}}],
    )
    ch.publish("", "yes", exchange=x, headers={"colour": "red"})
    ch.publish("", "no", exchange=x, headers={"colour": "blue"})
    assert ch.drain(q) == ["yes"]


def test_a_vhost_is_a_world_of_its_own(defined, prefix):
    ch = defined(vhosts=[prefix + "v"])
    other = defined.client.channel(vhost=prefix + "v").confirm_select()
    q = ch.queue()
    said = defined.client.channel(vhost=prefix + "v").answer_to(lambda c: c.passive(q))
    assert said == ("channel", 404, f"NOT_FOUND - no queue '{q}' in vhost '{prefix}v'")
    other.queue(name=q)
    ch.publish(q, "here")
    assert other.count(q) == 0


def test_the_dead_letter_exchange_is_looked_up_in_the_queues_own_vhost(defined, prefix):
    ch = defined(vhosts=[prefix + "v"])
    dlx, wrong = ch.exchange("fanout", name="dlx"), ch.queue(name="wrong")
    ch.bind(wrong, dlx)
    other = defined.client.channel(vhost=prefix + "v").confirm_select()
    q = other.queue(name="q", dead_letter_exchange=dlx)
    other.publish(q, "m")
    other.nack(other.get_unacked(q))
    other.sync()
    assert ch.stays(wrong, 0)


def test_a_user_may_have_different_permissions_in_each_vhost(defined, prefix):
    bob = User("bob", configure="^$")
    defined(users=[bob], vhosts=[prefix + "v"], permissions=[
        {"user": prefix + "bob", "vhost": prefix + "v", "configure": ".*", "write": ".*", "read": ".*"},
    ])
    here, there = (defined.client.channel(user=prefix + "bob", vhost=v) for v in ("/", prefix + "v"))
    name = prefix + "name"
    here.refuses(lambda c: c.queue(name=name), 403, no_access("configure", "queue", name, prefix + "bob"))
    there.queue(name=name)


def test_a_policy_without_apply_to_and_priority_is_for_everything(defined, prefix):
    ch = defined(policies=[Policy({"max-length": 1}, apply_to=None)])
    q = ch.queue()
    ch.publish(q, "a", "b")
    assert ch.drain(q) == ["b"]
