"""Policies and operator policies: which one is in force, on which queues, and how they combine with arguments."""

import pytest

from definitions import Policy
from live_policies import live_policy


def limit(n, **options):
    """A policy whose effect is easy to see: so many messages are kept. Named after its number if no name is given."""
    return Policy({"max-length": n}, **({"name": f"limit-{n}"} | options))


def kept(ch, queue):
    """How many of ten messages the queue keeps."""
    ch.publish(queue, *"0123456789")
    ch.sync()
    count = ch.count(queue)
    ch.purge(queue)
    return count


# --- one policy is in force


def test_the_policy_of_the_highest_priority_is_in_force(defined, kind):
    ch = defined(policies=[limit(3, priority=1), limit(4, priority=7), limit(5, priority=2)])
    assert kept(ch, ch.queue(kind)) == 4


@pytest.mark.parametrize("low, high", [(-5, 0), (-5, -4), (1.25, 1.5), (0, 0.5), (1, 10)])
def test_priorities_are_numbers_with_signs_and_fractions(defined, low, high):
    ch = defined(policies=[limit(3, priority=low), limit(4, priority=high)])
    assert kept(ch, ch.queue()) == 4


def test_among_equal_priorities_one_policy_is_in_force_for_every_queue(defined):
    ch = defined(policies=[limit(3, name="m1"), limit(4, name="z1"), limit(5, name="a1")])
    first, second = kept(ch, ch.queue()), kept(ch, ch.queue())  # RabbitMQ does not say which
    assert first in (3, 4, 5) and second == first


def test_the_policies_are_not_merged(defined, kind):
    # The time to live is longer than a busy machine takes to publish and count.
    ch = defined(policies=[limit(3, priority=1), Policy({"message-ttl": 3000}, name="ttl", priority=2)])
    q = ch.queue(kind)
    ch.publish(q, *"012345")
    ch.reaches(q, 0)
    assert kept(ch, ch.queue(kind, message_ttl=60000)) == 10


def test_a_policy_and_an_operator_policy_are_merged(defined, kind):
    ch = defined(policies=[limit(3)], operator_policies=[Policy({"message-ttl": 1000})])
    q = ch.queue(kind)
    ch.publish(q, *"0123456789")
    assert ch.count(q) == 3
    ch.reaches(q, 0)


def test_only_the_operator_policy_of_the_highest_priority_is_in_force(defined, kind):
    ch = defined(operator_policies=[limit(3, priority=1), limit(4, priority=2)])
    assert kept(ch, ch.queue(kind)) == 4


def test_of_policy_and_operator_policy_the_lower_limit_counts(defined, kind):
    ch = defined(policies=[limit(6)], operator_policies=[limit(4)])
    assert kept(ch, ch.queue(kind)) == 4


def test_of_policy_and_operator_policy_the_operators_overflow_counts(defined):
    ch = defined(
        policies=[Policy({"max-length": 2, "overflow": "drop-head"})],
        operator_policies=[Policy({"overflow": "reject-publish"})],
    )
    q = ch.queue()
    assert ch.publish(q, *"012345") == "aaNNNN"


# --- on which queues


@pytest.mark.parametrize("apply_to, applies", [
    ("queues", {"classic", "quorum"}), ("classic_queues", {"classic"}), ("quorum_queues", {"quorum"}),
    ("streams", set()),
    ("all", {"classic", "quorum"}), (None, {"classic", "quorum"}), ("exchanges", set()),
])
def test_apply_to_says_which_queues_a_policy_is_for(defined, kind, apply_to, applies):
    definition = {"max-length": 3} if apply_to != "exchanges" else {"alternate-exchange": "x"}
    ch = defined(policies=[Policy(definition, apply_to=apply_to)])
    assert kept(ch, ch.queue(kind)) == (3 if kind in applies else 10)


@pytest.mark.parametrize("pattern, matches", [
    ("{}queue", True), ("^bb-{}queue$", True), ("{}que", True), ("{}.*", True), ("^bb-{}", True), ("{}q[a-z]+$", True),
    ("(?i){}QUEUE", True), ("{}(dlq|queue)", True), ("{}QUEUE", False), ("{}q$", False), ("^queue{}", False),
    ("{}queues", False), ("{}.ueu.", True), ("{}(?!queue)", False), ("{}(?=queue)", True),
    ("^\\Qbb-{}\\E.*", True), ("\\Q{}.\\E", False),
])
def test_a_pattern_is_searched_anywhere_in_the_name_and_case_matters(defined, prefix, pattern, matches):
    token = prefix.removeprefix("bb-")
    ch = defined(policies=[Policy({"max-length": 3}, pattern=pattern.format(token))])
    assert kept(ch, ch.queue(name="queue")) == (3 if matches else 10)


@pytest.mark.parametrize("properties", [{"exclusive": True}, {"auto_delete": True}, {"durable": False}])
def test_policies_apply_to_every_sort_of_queue(defined, properties):
    ch = defined(policies=[limit(3)])
    assert kept(ch, ch.queue(**properties)) == 3


def test_policies_apply_to_server_named_queues_too(defined, prefix):
    ch = defined(vhosts=[prefix + "v"], policies=[Policy({"max-length": 3}, pattern="^amq", vhost=prefix + "v")])
    ch = defined.client.channel(vhost=prefix + "v").confirm_select()
    assert kept(ch, ch.queue(name="", exclusive=True)) == 3


def test_a_policy_is_for_its_own_vhost_only(defined, prefix):
    ch = defined(vhosts=[prefix + "v"], policies=[limit(3, vhost=prefix + "v")])
    assert kept(ch, ch.queue()) == 10
    ch = defined.client.channel(vhost=prefix + "v").confirm_select()
    assert kept(ch, ch.queue()) == 3


def test_a_policy_of_another_name_pattern_leaves_a_queue_alone(defined, kind):
    ch = defined(policies=[limit(3, on="limited")])
    assert kept(ch, ch.queue(kind, name="limited")) == 3
    assert kept(ch, ch.queue(kind, name="unlimited")) == 10


# --- a key that a queue type does not have takes the whole policy away from it

NOT_FOR_CLASSIC = [
    {"delivery-limit": 5}, {"dead-letter-strategy": "at-least-once"}, {"target-group-size": 3},
    {"max-in-memory-length": 5}, {"max-in-memory-bytes": 5}, {"max-age": "1D"},
    {"stream-max-segment-size-bytes": 1000000}, {"initial-cluster-size": 1},
]
NOT_FOR_QUORUM = [
    {"queue-mode": "lazy"}, {"max-age": "1D"}, {"stream-max-segment-size-bytes": 1000000}, {"initial-cluster-size": 1},
]
IGNORED_BY_CLASSIC = [
    {"consumer-timeout": 60000}, {"delayed-retry-type": "all", "delayed-retry-min": 1000},
    {"queue-leader-locator": "balanced"},
    {"stream-filter-size-bytes": 16}, {"queue-mode": "lazy"}, {"queue-version": 2},
    {"consumer-disconnected-timeout": 60000},
]
IGNORED_BY_QUORUM = [
    {"queue-version": 2}, {"stream-filter-size-bytes": 16}, {"queue-leader-locator": "balanced"},
    {"max-in-memory-length": 5}, {"target-group-size": 1},
]


def idfn(definition):
    return next(iter(definition))


@pytest.mark.parametrize("key", NOT_FOR_CLASSIC, ids=idfn)
def test_a_key_that_classic_queues_lack_disqualifies_the_policy_and_the_next_one_counts(defined, key):
    ch = defined(policies=[limit(5, priority=1), Policy({"max-length": 3} | key, name="other", priority=2)])
    assert kept(ch, ch.queue("classic")) == 5


@pytest.mark.parametrize("key", NOT_FOR_QUORUM, ids=idfn)
def test_a_key_that_quorum_queues_lack_disqualifies_the_policy_and_the_next_one_counts(defined, key):
    ch = defined(policies=[limit(5, priority=1), Policy({"max-length": 3} | key, name="other", priority=2)])
    assert kept(ch, ch.queue("quorum")) == 5


@pytest.mark.parametrize("key", IGNORED_BY_CLASSIC, ids=idfn)
def test_other_keys_that_classic_queues_do_not_use_are_merely_ignored(defined, key):
    ch = defined(policies=[limit(5, priority=1), Policy({"max-length": 3} | key, name="other", priority=2)])
    assert kept(ch, ch.queue("classic")) == 3


@pytest.mark.parametrize("key", IGNORED_BY_QUORUM, ids=idfn)
def test_other_keys_that_quorum_queues_do_not_use_are_merely_ignored(defined, key):
    ch = defined(policies=[limit(5, priority=1), Policy({"max-length": 3} | key, name="other", priority=2)])
    assert kept(ch, ch.queue("quorum")) == 3


def test_a_disqualified_policy_has_no_effect_even_when_there_is_no_other(defined):
    ch = defined(policies=[Policy({"max-length": 3, "delivery-limit": 5})])
    assert kept(ch, ch.queue("classic")) == 10
    assert kept(ch, ch.queue("quorum")) == 3


def test_operator_policies_are_disqualified_likewise(defined):
    ch = defined(operator_policies=[
        limit(5, priority=1), Policy({"max-length": 3, "delivery-limit": 5}, name="other", priority=2),
    ])
    assert kept(ch, ch.queue("classic")) == 5
    assert kept(ch, ch.queue("quorum")) == 3


# --- keys that only quorum queues have


def deliveries_until_gone(ch, queue, most=30):
    """How often a message is delivered that is rejected every time."""
    ch.publish(queue, "m")
    for n in range(most):
        message = ch.get(queue, ack=False)
        if message is None:
            return n
        ch.reject(message, requeue=True)
        ch.sync()
    return most


@pytest.mark.parametrize("argument, policy, operator, deliveries", [
    (None, 2, None, 3), (None, None, 2, 3), (5, 1, None, 2), (1, 5, None, 2), (5, -1, None, 6), (-1, 3, None, 4),
    (5, 4, 3, 4), (5, 4, -1, 5), (9, -1, 3, 4),
])
def test_delivery_limits_combine_to_the_lowest_but_a_negative_yields(defined, argument, policy, operator, deliveries):
    ch = defined(
        policies=[Policy({"delivery-limit": policy})] if policy is not None else [],
        operator_policies=[Policy({"delivery-limit": operator})] if operator is not None else [],
    )
    q = ch.queue("quorum", **({"delivery_limit": argument} if argument is not None else {}))
    assert deliveries_until_gone(ch, q) == deliveries


# --- exchanges


def test_a_policy_can_give_an_exchange_an_alternate_exchange(defined, prefix):
    ch = defined(policies=[Policy({"alternate-exchange": prefix + "ae"}, on="x", apply_to="exchanges")])
    alternate, q = ch.exchange("fanout", name="ae"), ch.queue()
    ch.bind(q, alternate)
    x = ch.exchange("direct", name="x")
    ch.publish("nobody", "m", exchange=x)
    assert ch.take(q).exchange == x


def test_the_argument_beats_the_policy_for_the_alternate_exchange(defined, prefix):
    ch = defined(policies=[Policy({"alternate-exchange": prefix + "policy"}, on="x", apply_to="exchanges")])
    queues = {}
    for name in ("policy", "argument"):
        exchange = ch.exchange("fanout", name=name)
        queues[name] = ch.queue()
        ch.bind(queues[name], exchange)
    x = ch.exchange("direct", name="x", alternate_exchange=prefix + "argument")
    ch.publish("nobody", "m", exchange=x)
    assert ch.take(queues["argument"]).body == "m"
    assert ch.count(queues["policy"]) == 0


def test_a_policy_for_queues_does_not_apply_to_exchanges(defined, prefix):
    ch = defined(policies=[Policy({"alternate-exchange": prefix + "ae"}, on="x", apply_to="all"),
                           Policy({"max-length": 3}, on="x", apply_to="queues", priority=5, name="higher")])
    alternate, q = ch.exchange("fanout", name="ae"), ch.queue()
    ch.bind(q, alternate)
    x = ch.exchange("direct", name="x")
    ch.publish("nobody", "m", exchange=x)
    assert ch.take(q).body == "m"


# --- policies and declaration


def test_policies_take_no_part_in_the_equivalence_of_declarations(defined, kind):
    ch = defined(policies=[Policy({"message-ttl": 60000, "max-length": 3})])
    q = ch.queue(kind)
    ch.queue(kind, q)
    difference = "received the value '60000' of type 'signedint' but current is none"
    refusal = f"inequivalent arg 'x-message-ttl' for queue '{q}' in vhost '/': {difference}"
    ch.refuses(lambda c: c.queue(kind, q, message_ttl=60000), 406, refusal)


def test_a_policy_may_contain_everything_at_once(defined, prefix):
    """TTL, limits and dead-lettering of a whole group of queues, as operators write them."""
    ch = defined(policies=[Policy({
        "message-ttl": 300, "expires": 60000, "max-length": 2, "max-length-bytes": 1000, "overflow": "drop-head",
        "dead-letter-exchange": "", "dead-letter-routing-key": prefix + "dlq",
    }, on="q")])
    dlq = ch.queue(name="dlq")
    for kind in ("classic", "quorum"):
        q = ch.queue(kind)
        ch.publish(q, *"abc")
        assert ch.take(dlq).deaths == [(q, "maxlen", 1)]
        assert [ch.take(dlq).deaths for _ in "bc"] == [[(q, "expired", 1)]] * 2


# --- policies that change while queues live


def test_a_delivery_limit_policy_changes_the_limit_of_a_living_queue(ch, client, api):
    q = ch.queue("quorum")
    with live_policy(api, client, {"delivery-limit": 1}):
        ch.pause(0.3)
        assert deliveries_until_gone(ch, q) == 2


def test_a_cleared_policy_no_longer_acts(ch, client, kind, api):
    q = ch.queue(kind)
    with live_policy(api, client, {"max-length": 2}):
        ch.poll(lambda: kept(ch, q) == 2)
    ch.poll(lambda: kept(ch, q) == 10)
