"""Cycles: a message that would come to a queue again without anybody having rejected it on the way is dropped there."""

from expectations import dead_letters_to


def test_a_queue_that_dead_letters_expired_messages_to_itself_drops_them(ch, kind):
    q = ch.queue(kind, message_ttl=100, dead_letter_exchange="")
    ch.publish(q, "m")
    ch.reaches(q, 0)
    assert ch.stays(q, 0)


def test_a_queue_that_dead_letters_pushed_out_messages_to_itself_drops_them(ch, kind):
    q = ch.queue(kind, max_length=1, dead_letter_exchange="")
    ch.publish(q, "old", "new")
    assert ch.stays(q, 1)
    assert ch.get(q).body == "new"


def test_a_quorum_queue_drops_what_exceeds_its_delivery_limit_towards_itself(ch):
    q = ch.queue("quorum", delivery_limit=0, dead_letter_exchange="")
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q), requeue=True)
    assert ch.stays(q, 0)


def test_a_rejected_message_is_never_a_cycle_and_goes_to_the_end_of_its_own_queue(ch, kind):
    q = ch.queue(kind, dead_letter_exchange="")
    ch.publish(q, "a", "b")
    for _ in range(3):
        ch.nack(ch.get_unacked(q))
        ch.reaches(q, 2)
        assert ch.get(q).body == "b"
        ch.publish(q, "b")
    message = ch.get(q)
    assert (message.body, message.deaths) == ("a", [(q, "rejected", 3)])


def test_two_queues_with_a_ttl_do_not_pass_a_message_round_and_round(ch, client, kind):
    a, b = client.name("a"), client.name("b")
    ch.queue(kind, a, message_ttl=100, **dead_letters_to(b))
    ch.queue(kind, b, message_ttl=800, **dead_letters_to(a))
    ch.publish(a, "m")
    ch.reaches(b, 1)
    ch.reaches(b, 0)
    assert ch.stays(a, 0)


def test_a_rejection_on_the_way_breaks_the_cycle(ch, client, kind):
    a, b = client.name("a"), client.name("b")
    ch.queue(kind, a, message_ttl=80, **dead_letters_to(b))
    ch.queue(kind, b, **dead_letters_to(a))
    ch.publish(a, "m")
    for count in (1, 2, 3):
        ch.reaches(b, 1)
        message = ch.get_unacked(b)
        assert message.deaths[0] == (a, "expired", count)
        ch.nack(message)


def test_a_rejection_in_the_queue_itself_breaks_the_cycle(ch, client, kind):
    a, b = client.name("a"), client.name("b")
    ch.queue(kind, a, **dead_letters_to(b))
    ch.queue(kind, b, message_ttl=80, **dead_letters_to(a))
    ch.publish(a, "m")
    for count in (1, 2, 3):
        ch.reaches(a, 1)
        message = ch.get_unacked(a)
        assert len(message.deaths) == (0 if count == 1 else 2)
        ch.nack(message)


def test_only_the_way_since_the_last_visit_counts(ch, client, kind):
    """a -reject-> b -expire-> a: allowed. Then a -expire-> b: b was left by expiry, and no rejection since."""
    a, b = client.name("a"), client.name("b")
    ch.queue(kind, a, message_ttl=900, **dead_letters_to(b))
    ch.queue(kind, b, message_ttl=100, **dead_letters_to(a))
    ch.publish(a, "m")
    ch.nack(ch.get_unacked(a))
    ch.reaches(a, 1)
    ch.reaches(a, 0)
    assert ch.stays(b, 0)


def test_only_the_target_that_makes_the_cycle_is_left_out(ch, kind):
    dlx, other = ch.exchange("fanout", name="dlx"), ch.queue(name="other")
    q = ch.queue(kind, message_ttl=100, dead_letter_exchange=dlx)
    for target in (q, other):
        ch.bind(target, dlx)
    ch.publish(q, "m")
    assert ch.take(other).deaths == [(q, "expired", 1)]
    assert ch.stays(q, 0)


def test_a_queue_that_was_made_anew_under_the_same_name_still_counts(ch, client, kind):
    a, b = client.name("a"), client.name("b")
    ch.queue(kind, a, message_ttl=100, **dead_letters_to(b))
    ch.queue(kind, b, message_ttl=900, **dead_letters_to(a))
    ch.publish(a, "m")
    ch.reaches(b, 1)
    ch.delete(a)
    ch.queue(kind, a)
    ch.reaches(b, 0)
    assert ch.stays(a, 0)


def test_a_retry_loop_of_rejection_and_expiry_goes_on_for_ever(ch, client, kind):
    work, wait = client.name("work"), client.name("wait")
    ch.queue(kind, work, **dead_letters_to(wait))
    ch.queue(kind, wait, message_ttl=60, **dead_letters_to(work))
    consumer = ch.consume(work)
    ch.publish(work, "m")
    for _ in range(5):
        ch.nack(consumer.next())
    assert consumer.next().deaths == [(wait, "expired", 5), (work, "rejected", 5)]
