"""Policies that are set, changed and removed while a backlog waits.

Leveret puts a change in force for the whole backlog before it answers; RabbitMQ fixes deadlines when messages
arrive, and spreads the rest a moment after its answer.
"""

import pytest
from live_policies import live_policy

BACKLOG = 2000


def backlog(ch, queue, count=BACKLOG, **properties):
    ch.publish(queue, *(str(n) for n in range(count)), **properties)
    return queue


@pytest.mark.better
def test_a_ttl_dead_letters_a_whole_backlog_once_and_in_order(ch, client, kind, api, dlq, by_broker):
    q = backlog(ch, ch.queue(kind))
    ch.pause(0.3)
    definition = {"message-ttl": 200, "dead-letter-exchange": "", "dead-letter-routing-key": dlq}
    with live_policy(api, client, definition):
        if by_broker(rabbitmq=True, leveret=False):
            assert ch.stays(q, BACKLOG)
            return
        ch.reaches(dlq, BACKLOG)
        assert ch.count(q) == 0
        assert ch.drain(dlq) == [str(n) for n in range(BACKLOG)]


@pytest.mark.better
def test_of_a_backlog_only_what_is_older_than_the_ttl_goes(ch, client, kind, api, by_broker):
    q = backlog(ch, ch.queue(kind))
    ch.pause(0.5)
    ch.publish(q, "young")
    with live_policy(api, client, {"message-ttl": 3_600_000}) as change:
        assert ch.stays(q, BACKLOG + 1)
        change({"message-ttl": 450})
        if by_broker(rabbitmq=True, leveret=False):
            assert ch.stays(q, BACKLOG + 1)
            return
        ch.poll(lambda: ch.count(q) <= 1, what="the old ones to go")


@pytest.mark.better
def test_a_ttl_that_is_raised_or_removed_in_time_lets_a_backlog_live(ch, client, kind, api, by_broker):
    later = ch.queue(kind, name="later", message_ttl=4000)
    with live_policy(api, client, {"message-ttl": 4000}) as change:
        q = backlog(ch, ch.queue(kind), 100)
        raised = backlog(ch, ch.queue(kind), 100)
        change({"message-ttl": 3_600_000})
        ch.publish(later, "has the same TTL, and expires after them")
        ch.reaches(later, 0)
        assert ch.stays(raised, by_broker(rabbitmq=0, leveret=100))
    ch.pause(0.2)
    assert ch.stays(q, by_broker(rabbitmq=0, leveret=100))


@pytest.mark.better
def test_an_operators_ttl_acts_on_a_backlog_too(ch, client, kind, api, by_broker):
    q = backlog(ch, ch.queue(kind, message_ttl=3_600_000), 100)
    ch.pause(0.2)
    with live_policy(api, client, {"message-ttl": 100}, operator=True):
        if by_broker(rabbitmq=True, leveret=False):
            assert ch.stays(q, 100)
        else:
            ch.reaches(q, 0)


@pytest.mark.better
def test_unacked_message_expires_when_it_is_requeued(ch, client, kind, api, dlq, by_broker):
    q = ch.queue(kind)
    ch.publish(q, "out")
    message = ch.get_unacked(q)
    definition = {"message-ttl": 100, "dead-letter-exchange": "", "dead-letter-routing-key": dlq}
    with live_policy(api, client, definition):
        ch.pause(0.3)
        ch.reject(message, requeue=True)
        ch.sync()
        if by_broker(rabbitmq=True, leveret=False):
            assert ch.stays(q, 1)
        else:
            assert ch.take(dlq).deaths == [(q, "expired", 1)]


@pytest.mark.better
def test_a_message_keeps_the_lower_of_its_own_and_the_new_ttl(ch, client, kind, api, by_broker):
    q = ch.queue(kind)
    ch.publish(q, "long", expiration="3600000")
    ch.publish(q, "short", expiration="1800000")
    with live_policy(api, client, {"message-ttl": 400}):
        ch.pause(0.6)
        assert ch.stays(q, by_broker(rabbitmq=2, leveret=0))


def test_a_changed_dead_letter_exchange_is_used_from_then_on(ch, client, kind, api):
    first, second = ch.queue(name="first"), ch.queue(name="second")

    def to(name):
        return {"dead-letter-exchange": "", "dead-letter-routing-key": name, "message-ttl": 3_600_000}

    q = ch.queue(kind)
    ch.publish(q, "a", "b", "c")
    with live_policy(api, client, to(first)) as change:
        ch.pause(0.3)
        ch.nack(ch.get_unacked(q))
        assert ch.take(first).body == "a"
        held = ch.get_unacked(q)
        change(to(second))
        ch.pause(0.3)
        ch.nack(held)
        ch.nack(ch.get_unacked(q))
        ch.reaches(second, 2)
        assert ch.count(first) == 0 and sorted(ch.drain(second)) == ["b", "c"]


@pytest.mark.parametrize("definition, left", [
    ({"max-length": 3}, 3), ({"max-length": 0}, 0), ({"max-length": 3, "max-length-bytes": 1000000}, 3),
])
def test_a_length_limit_trims_a_backlog_from_its_head(ch, client, kind, api, definition, left):
    q = backlog(ch, ch.queue(kind))
    with live_policy(api, client, definition):
        ch.reaches(q, left)
        assert ch.drain(q) == [str(n) for n in range(BACKLOG - left, BACKLOG)]


def test_a_limit_of_bytes_trims_a_backlog(ch, client, api):
    q = ch.queue("classic")
    ch.publish(q, *("x" * n for n in (100, 10, 10, 5)))
    with live_policy(api, client, {"max-length-bytes": 15}):
        ch.reaches(q, 2)
        assert [len(body) for body in ch.drain(q)] == [10, 5]


def test_a_queue_ttl_removes_an_idle_queue_with_its_backlog(ch, client, api, dlq):
    q = backlog(ch, ch.queue(dead_letter_exchange="", dead_letter_routing_key=dlq), 100)
    with live_policy(api, client, {"expires": 500}):
        ch.vanishes(q)
    assert ch.count(dlq) == 0


def test_a_queue_ttl_that_is_removed_in_time_spares_the_queue(ch, client, api):
    q = backlog(ch, ch.queue(), 10)
    with live_policy(api, client, {"expires": 4000}):
        ch.pause(0.2)
        later = ch.queue(name="later", expires=4000)
    ch.vanishes(later)
    assert not ch.is_gone(q)


def test_an_overflow_that_changes_counts_from_then_on(ch, client, api):
    """A quorum queue of RabbitMQ goes on refusing until there is room."""
    q = ch.queue("classic", max_length=3)
    ch.publish(q, *"abc")
    with live_policy(api, client, {"overflow": "reject-publish"}):
        ch.poll(lambda: ch.publish(q, "refused") == "N", what="the policy to act")
    ch.poll(lambda: ch.publish(q, "taken") == "a", what="the policy to go")
    ch.reaches(q, 3)
    assert ch.drain(q)[-1] == "taken"


@pytest.mark.better
def test_policy_with_all_keys_is_one_change(ch, client, kind, api, dlq, by_broker):
    """With half of it in force the backlog would be evicted, or expire without a trace."""
    q = backlog(ch, ch.queue(kind), 500)
    ch.pause(0.3)
    definition = {"message-ttl": 200, "max-length": 3, "max-length-bytes": 10, "overflow": "reject-publish",
                  "dead-letter-exchange": "", "dead-letter-routing-key": dlq, "expires": 60000}
    with live_policy(api, client, definition) as change:
        if by_broker(rabbitmq=True, leveret=False):
            return
        ch.reaches(dlq, 500)
        assert ch.take(dlq).deaths == [(q, "expired", 1)]
        change(definition | {"message-ttl": 60000})
        assert ch.publish(q, *"abcd") == "aaaN"


def test_a_policy_of_higher_priority_takes_a_queue_over_and_gives_it_back(ch, client, kind, api):
    q = ch.queue(kind)
    ch.publish(q, *"0123456789")
    with live_policy(api, client, {"max-length": 5}):
        ch.reaches(q, 5)
        with live_policy(api, client, {"max-length": 2}, name="over", priority=1):
            ch.reaches(q, 2)
        ch.poll(lambda: ch.publish(q, "more") and ch.count(q) == 5, what="the first policy to act again")


@pytest.mark.better
@pytest.mark.parametrize("names", ["am", "ma", "za"])
def test_of_equal_priorities_the_last_name_counts_whenever_it_was_set(ch, client, kind, api, names, by_broker):
    """In RabbitMQ that is so for new queues; those that are there may keep the one that came first."""
    first, second = names
    limits = {first: 6, second: 4}
    q = ch.queue(kind)
    ch.publish(q, *"0123456789")
    with live_policy(api, client, {"max-length": 20}, name=first) as change_first, \
            live_policy(api, client, {"max-length": 20}, name=second) as change_second:
        change_first({"max-length": limits[first]})
        change_second({"max-length": limits[second]})
        ch.poll(lambda: ch.count(q) < 10, what="one of them to act")
        ch.pause(0.3)
        assert ch.count(q) in by_broker(rabbitmq=(4, 6), leveret=(limits[max(names)],))
