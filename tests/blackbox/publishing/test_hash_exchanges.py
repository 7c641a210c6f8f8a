"""Exchanges that choose one queue for each message: consistent hash, modulus hash, local random."""

import pytest

# --- consistent hash

KEYS = [f"key-{n}" for n in range(400)]


def spread(ch, x, queues, keys=KEYS, **properties):
    """Publish every key with itself as the body; what each queue got. Every message is somewhere, once."""
    for key in keys:
        ch.publish(key, key, exchange=x, wait=False, **properties)
    ch.confirmed()
    found = [ch.drain(q) for q in queues]
    assert sorted(body for bodies in found for body in bodies) == sorted(keys)
    return found


def test_a_consistent_hash_exchange_sends_a_key_always_to_the_same_one_queue(ch):
    x = ch.exchange("x-consistent-hash")
    queues = ch.bound(x, "10", "10", "10")
    first, second = spread(ch, x, queues), spread(ch, x, queues)
    assert first == second
    assert all(bodies for bodies in first)


def test_a_consistent_hash_exchange_spreads_by_weight(ch):
    x = ch.exchange("x-consistent-hash")
    light, heavy = (len(bodies) for bodies in spread(ch, x, ch.bound(x, "5", "45")))
    assert heavy > 3 * light > 0


def test_a_consistent_hash_exchange_moves_only_a_part_of_the_keys_when_a_queue_joins(ch):
    x = ch.exchange("x-consistent-hash")
    queues = ch.bound(x, "20", "20", "20")
    before = spread(ch, x, queues)
    joined = ch.bound(x, "20")
    after = spread(ch, x, queues + joined)
    for old, new in zip(before, after):
        assert set(new) <= set(old)
    assert 0 < len(after[3]) < len(KEYS) / 2


def test_a_consistent_hash_exchange_can_hash_a_header(ch):
    x = ch.exchange("x-consistent-hash", arguments={"hash-header": "h"})
    found = spread(ch, x, ch.bound(x, "10", "10", "10"), headers={"h": "always the same"})
    assert sorted(len(bodies) for bodies in found) == [0, 0, len(KEYS)]


@pytest.mark.parametrize("name", ["message_id", "correlation_id", "timestamp"])
def test_a_consistent_hash_exchange_can_hash_a_property(ch, name):
    x = ch.exchange("x-consistent-hash", arguments={"hash-property": name})
    value = 1_700_000_000 if name == "timestamp" else "always the same"
    found = spread(ch, x, ch.bound(x, "10", "10", "10"), **{name: value})
    assert sorted(len(bodies) for bodies in found) == [0, 0, len(KEYS)]


@pytest.mark.parametrize("key, refusal", [
    ("abc", 'The binding key must be an integer: <<"abc">>'), ("", "The binding key must be an integer: <<>>"),
    ("1.5", 'The binding key must be an integer: <<"1.5">>'), ("0", "The binding key must be greater than 0"),
    ("-1", "The binding key must be greater than 0"),
])
def test_the_key_of_a_consistent_hash_binding_is_a_weight(ch, key, refusal):
    x, q = ch.exchange("x-consistent-hash"), ch.queue()
    ch.refuses(lambda c: c.bind(q, x, key), 406, refusal)


@pytest.mark.parametrize("arguments, refusal", [
    ({"hash-property": "foo"}, "Unsupported property: foo"),
    ({"hash-header": "h", "hash-property": "message_id"}, "hash-header and hash-property are mutually exclusive"),
])
def test_the_arguments_of_a_consistent_hash_exchange_are_checked(ch, arguments, refusal):
    ch.refuses(lambda c: c.exchange("x-consistent-hash", arguments=arguments), 406, refusal)


def test_a_consistent_hash_exchange_without_bindings_routes_nowhere(ch):
    x = ch.exchange("x-consistent-hash")
    ch.publish("k", "m", exchange=x, mandatory=True)
    assert ch.returned[-1].reply == (312, "NO_ROUTE")


# --- modulus hash, local random


def test_a_modulus_hash_exchange_sends_a_key_always_to_the_same_one_queue(ch):
    x = ch.exchange("x-modulus-hash")
    queues = ch.bound(x, "", "", "")
    first, second = spread(ch, x, queues), spread(ch, x, queues)
    assert first == second
    assert all(len(bodies) > len(KEYS) / 10 for bodies in first)


def test_a_local_random_exchange_sends_each_message_to_one_queue_by_chance(ch):
    x = ch.exchange("x-local-random")
    queues = ch.bound(x, "", "", "")
    first, second = spread(ch, x, queues), spread(ch, x, queues)
    assert first != second
    assert all(len(bodies) > len(KEYS) / 10 for bodies in first)


def test_a_local_random_binding_has_an_empty_key_and_a_classic_queue(ch):
    x = ch.exchange("x-local-random")
    classic, quorum = ch.queue(), ch.queue("quorum")
    ch.refuses(lambda c: c.bind(classic, x, "key"), 406, "Non empty binding 'key' key not permitted")
    refusal = "Queue type rabbit_quorum_queue not valid for this exchange type"
    ch.refuses(lambda c: c.bind(quorum, x, ""), 406, refusal)


def test_a_local_random_exchange_without_bindings_routes_nowhere(ch):
    ch.publish("k", "m", exchange=ch.exchange("x-local-random"), mandatory=True)
    assert ch.returned[-1].reply == (312, "NO_ROUTE")
