"""How queues end: delete, purge, auto-delete, exclusive queues."""

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


def test_a_queue_that_was_deleted_and_made_anew_is_empty_and_unbound(ch, kind):
    q = ch.queue(kind)
    ch.bind(q, "amq.direct", q)
    ch.publish(q, "m")
    ch.delete(q)
    ch.queue(kind, q)
    ch.publish(q, "m", exchange="amq.direct")
    assert ch.count(q) == 0
