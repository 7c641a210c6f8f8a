"""x-death and its companions, to the wire type, and what happens to headers of these names that a client sends."""

import time

import pytest

from expectations import dead_letters_to

A_LONG_TIME = "3600000"


def fields(table):
    """A received table as (name, type, value) in wire order, without the time, which tests look at apart."""
    return [tuple(field) for field in table.fields if field.name != "time"]


# --- the entry


def test_an_entry_has_these_fields_of_these_types_in_this_order(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    before = int(time.time())
    ch.publish(q, "m", expiration="100")
    dead = ch.take(dlq)
    assert dead.headers.type_of("x-death") == "A"
    (entry_type, entry), = next(f.value for f in dead.headers.fields if f.name == "x-death")
    assert entry_type == "F"
    assert [(f.name, f.type) for f in entry.fields] == [
        ("original-expiration", "S"), ("count", "l"), ("reason", "S"), ("queue", "S"), ("time", "T"), ("exchange", "S"),
        ("routing-keys", "A"),
    ]
    assert fields(entry) == [
        ("original-expiration", "S", "100"), ("count", "l", 1), ("reason", "S", "expired"), ("queue", "S", q),
        ("exchange", "S", ""), ("routing-keys", "A", [("S", q)]),
    ]
    assert before <= entry["time"] <= int(time.time()) + 1


def test_the_six_first_and_last_death_headers_are_strings(ch, kind, dlq):
    x = ch.exchange("fanout")
    q = ch.queue(kind, message_ttl=100, **dead_letters_to(dlq))
    ch.bind(q, x)
    ch.publish("k", "m", exchange=x)
    headers = ch.take(dlq).headers
    assert [tuple(f) for f in headers.fields if f.name != "x-death"] == [
        ("x-first-death-exchange", "S", x), ("x-first-death-queue", "S", q), ("x-first-death-reason", "S", "expired"),
        ("x-last-death-exchange", "S", x), ("x-last-death-queue", "S", q), ("x-last-death-reason", "S", "expired"),
    ]


@pytest.mark.parametrize("reason", ["rejected", "expired", "maxlen"])
def test_the_entry_of_each_reason(ch, kind, dlq, reason):
    arguments = {"rejected": {}, "expired": {"message_ttl": 50}, "maxlen": {"max_length": 0}}[reason]
    x = ch.exchange("direct")
    q = ch.queue(kind, **arguments, **dead_letters_to(dlq))
    ch.bind(q, x, "key")
    ch.publish("key", "m", exchange=x)
    if reason == "rejected":
        ch.nack(ch.get_unacked(q))
    dead = ch.take(dlq)
    assert [fields(entry) for entry in dead.headers["x-death"]] == [[
        ("count", "l", 1), ("reason", "S", reason), ("queue", "S", q), ("exchange", "S", x),
        ("routing-keys", "A", [("S", "key")]),
    ]]


def test_original_expiration_is_there_whatever_the_reason(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m", expiration="003600000")
    ch.nack(ch.get_unacked(q))
    dead = ch.take(dlq)
    assert dead.headers["x-death"][0]["original-expiration"] == A_LONG_TIME
    assert dead.headers["x-death"][0].type_of("original-expiration") == "S"
    assert dead.properties.expiration is None


def test_original_expiration_is_there_even_if_the_queue_ttl_was_the_lower_one(ch, kind, dlq):
    q = ch.queue(kind, message_ttl=100, **dead_letters_to(dlq))
    ch.publish(q, "m", expiration=A_LONG_TIME)
    assert ch.take(dlq).headers["x-death"][0]["original-expiration"] == A_LONG_TIME


def test_original_expiration_is_absent_when_only_the_queue_had_a_ttl(ch, kind, dlq):
    q = ch.queue(kind, message_ttl=100, **dead_letters_to(dlq))
    ch.publish(q, "m")
    assert "original-expiration" not in ch.take(dlq).headers["x-death"][0]


def test_routing_keys_has_the_cc_keys_and_not_the_bcc_keys(ch, kind, dlq):
    x = ch.exchange("direct")
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.bind(q, x, "bcc1")
    ch.publish("key", "m", exchange=x, headers={"CC": ["cc1", "cc2"], "BCC": ["bcc1"]})
    ch.nack(ch.get_unacked(q))
    entry = ch.take(dlq).headers["x-death"][0]
    assert fields(entry)[-1] == ("routing-keys", "A", [("S", "key"), ("S", "cc1"), ("S", "cc2")])


# --- the second death


def test_a_death_in_another_queue_goes_in_front(ch, kind, dlq):
    second = ch.queue(kind, name="second", message_ttl=100, **dead_letters_to(dlq))
    first = ch.queue(kind, name="first", **dead_letters_to(second))
    ch.publish(first, "m", expiration=A_LONG_TIME)
    ch.nack(ch.get_unacked(first))
    dead = ch.take(dlq)
    assert dead.deaths == [(second, "expired", 1), (first, "rejected", 1)]
    newest, oldest = dead.headers["x-death"]
    assert (newest["exchange"], newest["routing-keys"]) == ("", [second])
    assert (oldest["exchange"], oldest["routing-keys"]) == ("", [first])
    assert "original-expiration" not in newest
    assert oldest["original-expiration"] == A_LONG_TIME


def test_first_death_headers_never_change_and_last_death_headers_always_do(ch, kind, dlq):
    dlx = ch.exchange("fanout", name="dlx")
    second = ch.queue(kind, name="second", message_ttl=100, **dead_letters_to(dlq))
    ch.bind(second, dlx)
    first = ch.queue(kind, name="first", dead_letter_exchange=dlx)
    ch.publish(first, "m")
    ch.nack(ch.get_unacked(first))
    headers = ch.take(dlq).headers
    assert [headers[f"x-first-death-{what}"] for what in ("queue", "reason", "exchange")] == [first, "rejected", ""]
    assert [headers[f"x-last-death-{what}"] for what in ("queue", "reason", "exchange")] == [second, "expired", dlx]


def test_another_death_of_the_same_queue_and_reason_counts_up_and_moves_to_the_front(ch, kind):
    """Rejected in q, expired in rest, and round again."""
    q_name = ch.client.name("q")
    rest = ch.queue(kind, name="rest", message_ttl=100, **dead_letters_to(q_name))
    q = ch.queue(kind, name=q_name, **dead_letters_to(rest))
    x = ch.exchange("fanout")
    ch.bind(q, x)
    ch.publish("original", "m", exchange=x, expiration=A_LONG_TIME)
    seen = []
    for _ in range(3):
        ch.reaches(q, 1)
        message = ch.get_unacked(q)
        seen.append(message)
        ch.nack(message)
    assert [message.deaths for message in seen] == [
        [],
        [(rest, "expired", 1), (q, "rejected", 1)],
        [(rest, "expired", 2), (q, "rejected", 2)],
    ]
    # the rest of an entry says how it was the first time
    for entry in (0, 1):
        before, after = (dict(message.headers["x-death"][entry]) for message in seen[1:])
        assert before.pop("count") == 1 and after.pop("count") == 2
        assert before == after
    first_rejection = seen[2].headers["x-death"][1]
    assert first_rejection["exchange"] == x
    assert first_rejection["routing-keys"] == ["original"]
    assert first_rejection["original-expiration"] == A_LONG_TIME


def test_the_time_of_an_entry_is_that_of_the_first_death(ch):
    q_name = ch.client.name("q")
    rest = ch.queue(name="rest", message_ttl=1100, **dead_letters_to(q_name))
    q = ch.queue(name=q_name, **dead_letters_to(rest))
    ch.publish(q, "m")
    times = []
    for _ in range(3):
        ch.reaches(q, 1)
        message = ch.get_unacked(q)
        times.append([entry["time"] for entry in message.headers.get("x-death", []) if entry["queue"] == q])
        ch.nack(message)
    assert times[1] == times[2] and len(times[1]) == 1


def test_entries_are_distinguished_by_queue_and_reason(ch, kind):
    q_name = ch.client.name("q")
    rest = ch.queue(kind, name="rest", message_ttl=600, **dead_letters_to(q_name))
    q = ch.queue(kind, name=q_name, **dead_letters_to(rest))
    ch.publish(q, "m")
    for verb in ("nack", "nack"):
        ch.reaches(q, 1)
        getattr(ch, verb)(ch.get_unacked(q))
    ch.reaches(rest, 1)
    ch.nack(ch.get_unacked(rest))
    ch.reaches(q, 1)
    assert ch.get(q).deaths == [(rest, "rejected", 1), (q, "rejected", 2), (rest, "expired", 1)]


# --- headers of these names from a client

FORGED = {
    "x-death": [{"count": 7, "reason": "rejected", "queue": "forged", "exchange": "", "routing-keys": ["forged"]}],
    "x-first-death-queue": "forged", "x-first-death-reason": "forged", "x-first-death-exchange": "forged",
    "x-last-death-queue": "forged", "x-last-death-reason": "forged", "x-last-death-exchange": "forged",
    "x-retry": 3, "x-delivery-count": 9,
}


def test_death_headers_of_a_client_pass_through_until_the_first_death(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m", headers=FORGED)
    assert ch.take(q).headers == FORGED


@pytest.mark.parametrize("value", ["a string", 5, True, []])
def test_an_x_death_of_any_type_passes_through(ch, kind, value):
    q = ch.queue(kind)
    ch.publish(q, "m", headers={"x-death": value})
    assert ch.take(q).headers == {"x-death": value}


def test_the_first_death_replaces_the_death_headers_of_a_client(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m", headers=FORGED)
    ch.nack(ch.get_unacked(q))
    dead = ch.take(dlq)
    assert dead.deaths == [(q, "rejected", 1)]
    assert [dead.headers[f"x-{which}-death-queue"] for which in ("first", "last")] == [q, q]
    assert [dead.headers[f"x-{which}-death-reason"] for which in ("first", "last")] == ["rejected", "rejected"]
    assert [dead.headers[f"x-{which}-death-exchange"] for which in ("first", "last")] == ["", ""]
    assert (dead.headers["x-retry"], dead.headers["x-delivery-count"]) == (3, 9)


@pytest.mark.parametrize("value", ["a string", 5])
def test_the_first_death_replaces_an_x_death_of_another_type(ch, kind, dlq, value):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m", headers={"x-death": value})
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).deaths == [(q, "rejected", 1)]


def test_a_forged_x_death_does_not_make_a_cycle(ch, kind, dlq):
    q = ch.queue(kind, message_ttl=50, **dead_letters_to(dlq))
    forged = [{"count": 1, "reason": "expired", "queue": dlq, "exchange": "", "routing-keys": [dlq]}]
    ch.publish(q, "m", headers={"x-death": forged})
    assert ch.take(dlq).deaths == [(q, "expired", 1)]


def test_a_republished_dead_letter_starts_its_history_anew(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    ch.nack(ch.get_unacked(q))
    dead = ch.take(dlq)
    ch.publish(q, "m", headers=dict(dead.headers))
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).deaths == [(q, "rejected", 1)]
