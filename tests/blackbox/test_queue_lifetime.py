"""How queues end: delete, purge, auto-delete, exclusive queues."""

import pytest
from pika import spec

from expectations import LOCKED

# --- auto-delete and exclusive


def test_an_auto_delete_queue_goes_with_its_last_consumer(ch):
    q = ch.queue(auto_delete=True)
    one, two = ch.consume(q), ch.connection.channel().consume(q)
    one.cancel()
    ch.pause(0.1)
    assert not ch.is_gone(q)
    two.channel.close()
    ch.vanishes(q)


def test_an_auto_delete_queue_that_never_had_a_consumer_stays(ch):
    q = ch.queue(auto_delete=True)
    ch.publish(q, "m")
    assert ch.get(q).body == "m"
    ch.pause(0.2)
    assert not ch.is_gone(q)


def test_an_exclusive_queue_goes_with_its_connection(ch, client):
    owner = client.channel()
    q = owner.queue(name="exclusive", exclusive=True)
    owner.connection.drop()
    ch.vanishes(q)


def test_an_exclusive_queue_serves_every_channel_of_its_connection(ch):
    q = ch.queue(name="exclusive", exclusive=True)
    ch.publish(q, "m")
    assert ch.connection.channel().get(q).body == "m"


@pytest.mark.parametrize("use", ["declare", "passive", "get", "consume", "purge", "delete", "bind"])
def test_an_exclusive_queue_is_locked_for_other_connections(ch, client, use):
    q = client.channel().queue(name="exclusive", exclusive=True)
    declare = spec.Queue.Declare(queue=q, durable=True, exclusive=True)
    actions = {
        "declare": lambda c: c.rpc(declare, spec.Queue.DeclareOk), "passive": lambda c: c.passive(q),
        "get": lambda c: c.get(q), "consume": lambda c: c.consume(q), "purge": lambda c: c.purge(q),
        "delete": lambda c: c.delete(q), "bind": lambda c: c.bind(q, "amq.direct", "k"),
    }
    ch.refuses(actions[use], 405, LOCKED.format(queue=q))


def test_other_connections_may_publish_to_an_exclusive_queue(ch, client):
    owner = client.channel()
    q = owner.queue(name="exclusive", exclusive=True)
    assert ch.publish(q, "m") == "a"
    assert owner.get(q).body == "m"


# --- delete and purge


def test_delete_and_purge_count_ready_messages_only(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, *"abc")
    ch.get_unacked(q)
    assert ch.purge(q) == 2
    ch.publish(q, "d", "e")
    assert ch.delete(q) == 2


def test_a_purge_leaves_unacked_messages(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "a", "b")
    message = ch.get_unacked(q)
    ch.purge(q)
    ch.nack(message, requeue=True)
    ch.reaches(q, 1)
    assert ch.get(q).body == "a"


def test_deleting_a_missing_queue_succeeds(ch, client):
    assert ch.delete(client.name("missing")) == 0


def test_purging_a_missing_queue_is_refused(ch, client):
    name = client.name("missing")
    ch.refuses(lambda c: c.purge(name), 404, f"no queue '{name}' in vhost '/'")


def test_if_unused_protects_a_queue_with_a_consumer(ch):
    q = ch.queue()
    consumer = ch.consume(q)
    ch.refuses(lambda c: c.delete(q, if_unused=True), 406, f"queue '{q}' in vhost '/' in use")
    consumer.cancel()
    ch.delete(q, if_unused=True)
    assert ch.is_gone(q)


def test_if_empty_protects_a_queue_with_messages(ch):
    q = ch.queue()
    ch.publish(q, "m")
    ch.refuses(lambda c: c.delete(q, if_empty=True), 406, f"queue '{q}' in vhost '/' not empty")
    ch.get(q)
    ch.delete(q, if_empty=True)
    assert ch.is_gone(q)


@pytest.mark.parametrize("flag", ["if_unused", "if_empty"])
def test_quorum_queues_know_neither_flag(ch, flag):
    q = ch.queue("quorum")
    dashed = flag.replace("_", "-")
    operation = f"queue.delete operations with {dashed} flag set"
    refusal = f"cannot delete queue '{q}' in vhost '/'. {operation} are not supported by quorum queues"
    ch.refuses(lambda c: c.delete(q, **{flag: True}), 540, refusal)


def test_a_queue_that_was_deleted_and_made_anew_is_empty_and_unbound(ch, kind):
    q = ch.queue(kind)
    ch.bind(q, "amq.direct", q)
    ch.publish(q, "m")
    ch.delete(q)
    ch.queue(kind, q)
    ch.publish(q, "m", exchange="amq.direct")
    assert ch.count(q) == 0
