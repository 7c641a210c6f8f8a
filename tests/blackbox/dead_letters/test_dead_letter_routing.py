"""Where a dead letter goes, and what it looks like there (the death headers apart)."""

import pytest

from expectations import dead_letters_to
from field_table import Pairs, Wire

# --- where it goes


def test_without_a_dead_letter_routing_key_the_message_keeps_its_own(ch, kind, dlq):
    dlx, x = ch.exchange("direct", name="dlx"), ch.exchange("direct")
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.bind(q, x, "foo")
    ch.bind(dlq, dlx, "foo")
    ch.publish("foo", "m", exchange=x)
    ch.nack(ch.get_unacked(q))
    dead = ch.take(dlq)
    assert (dead.exchange, dead.routing_key) == (dlx, "foo")


def test_with_a_dead_letter_routing_key_the_message_gets_that(ch, kind, dlq):
    dlx, x = ch.exchange("direct", name="dlx"), ch.exchange("direct")
    q = ch.queue(kind, dead_letter_exchange=dlx, dead_letter_routing_key="bar")
    ch.bind(q, x, "foo")
    ch.bind(dlq, dlx, "bar")
    ch.publish("foo", "m", exchange=x)
    ch.nack(ch.get_unacked(q))
    dead = ch.take(dlq)
    assert (dead.exchange, dead.routing_key) == (dlx, "bar")


def test_without_a_dead_letter_routing_key_cc_and_bcc_keys_are_used_too(ch, kind):
    dlx = ch.exchange("direct", name="dlx")
    targets = {key: ch.queue(name=key) for key in ("cc1", "cc2", "bcc1")}
    for key, target in targets.items():
        ch.bind(target, dlx, key)
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.kill(q, headers={"CC": ["cc1", "cc2"], "BCC": ["bcc1"]})
    for target in targets.values():
        dead = ch.take(target)
        assert (dead.exchange, dead.routing_key) == (dlx, q)
        assert dead.headers["CC"] == ["cc1", "cc2"]
        assert "BCC" not in dead.headers
        assert dead.headers["x-death"][0]["routing-keys"] == [q, "cc1", "cc2"]


def test_with_a_dead_letter_routing_key_cc_and_bcc_keys_are_not_used_but_the_cc_header_stays(ch, kind, dlq):
    dlx = ch.exchange("direct", name="dlx")
    others = [ch.queue(name=key) for key in ("cc1", "bcc1")]
    ch.bind(others[0], dlx, "cc1")
    ch.bind(others[1], dlx, "bcc1")
    ch.bind(dlq, dlx, "new")
    q = ch.queue(kind, dead_letter_exchange=dlx, dead_letter_routing_key="new")
    ch.kill(q, headers={"CC": ["cc1"], "BCC": ["bcc1"]})
    dead = ch.take(dlq)
    assert dead.headers["CC"] == ["cc1"]
    assert "BCC" not in dead.headers
    assert [ch.count(other) for other in others] == [0, 0]


def test_an_empty_dead_letter_routing_key_is_a_routing_key(ch, kind, dlq):
    dlx = ch.exchange("direct", name="dlx")
    q = ch.queue(kind, dead_letter_exchange=dlx, dead_letter_routing_key="")
    ch.bind(dlq, dlx, "")
    ch.kill(q)
    assert ch.take(dlq).routing_key == ""


def test_a_fanout_dead_letter_exchange_gives_a_copy_to_every_queue(ch, kind):
    dlx = ch.exchange("fanout", name="dlx")
    targets = [ch.queue(k, name="target") for k in ("classic", "quorum", "classic")]
    for target in targets:
        ch.bind(target, dlx)
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.kill(q)
    assert [ch.take(target).body for target in targets] == ["m", "m", "m"]


def test_a_queue_reached_by_several_keys_gets_one_copy(ch, kind, dlq):
    dlx = ch.exchange("direct", name="dlx")
    q = ch.queue(kind, dead_letter_exchange=dlx)
    for key in (q, "cc1", "cc2"):
        ch.bind(dlq, dlx, key)
    ch.kill(q, headers={"CC": ["cc1", "cc2"]})
    assert ch.stays(dlq, 1)


def test_a_topic_dead_letter_exchange_routes_by_pattern(ch, kind, dlq):
    dlx = ch.exchange("topic", name="dlx")
    ch.bind(dlq, dlx, "dead.#")
    q = ch.queue(kind, dead_letter_exchange=dlx, dead_letter_routing_key="dead.by.reject")
    ch.kill(q)
    assert ch.take(dlq).body == "m"


def test_a_headers_dead_letter_exchange_routes_by_the_messages_headers(ch, kind, dlq):
    dlx = ch.exchange("headers", name="dlx")
    ch.bind(dlq, dlx, **{"x-match": "all", "colour": "red"})
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.kill(q, headers={"colour": "red"})
    assert ch.take(dlq).body == "m"


@pytest.mark.parametrize("header, value", [("x-first-death-reason", "rejected"), ("x-last-death-reason", "rejected")])
@pytest.mark.parametrize("x_match, routed", [("all-with-x", True), ("any-with-x", True), ("any", False)])
def test_death_headers_are_matched_only_with_x(ch, dlq, header, value, x_match, routed):
    dlx = ch.exchange("headers", name="dlx")
    ch.bind(dlq, dlx, **{"x-match": x_match, header: value})
    q = ch.queue(dead_letter_exchange=dlx)
    ch.kill(q)
    assert ch.stays(dlq, 1 if routed else 0, 0.15)


def test_the_alternate_exchange_of_the_dead_letter_exchange_is_used(ch, kind, dlq):
    alternate = ch.exchange("fanout", name="ae")
    dlx = ch.exchange("direct", name="dlx", alternate_exchange=alternate)
    ch.bind(dlq, alternate)
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.kill(q)
    assert ch.take(dlq).exchange == dlx


def test_exchange_to_exchange_bindings_of_the_dead_letter_exchange_are_followed(ch, kind, dlq):
    dlx, further = ch.exchange("fanout", name="dlx"), ch.exchange("fanout", name="further")
    ch.bind_exchange(further, dlx)
    ch.bind(dlq, further)
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.kill(q)
    assert ch.take(dlq).exchange == dlx


def test_the_dead_letter_exchange_may_be_internal(ch, kind, dlq):
    dlx = ch.exchange("fanout", name="dlx", internal=True)
    ch.bind(dlq, dlx)
    q = ch.queue(kind, dead_letter_exchange=dlx)
    ch.kill(q)
    assert ch.take(dlq).exchange == dlx


def test_the_default_exchange_sends_dead_letters_to_the_queue_named_by_the_key(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.kill(q)
    dead = ch.take(dlq)
    assert (dead.exchange, dead.routing_key) == ("", dlq)


def test_an_unroutable_dead_letter_is_lost_and_not_returned_to_anybody(ch, kind):
    dlx = ch.exchange("fanout", name="dlx")
    q = ch.queue(kind, message_ttl=50, dead_letter_exchange=dlx)
    assert ch.publish(q, "m", mandatory=True) == "a"
    assert ch.stays(q, 0)
    assert ch.returned == []


def test_a_full_classic_target_that_rejects_loses_the_dead_letter(ch, kind):
    target = ch.queue("classic", name="target", max_length=1, overflow="reject-publish")
    q = ch.queue(kind, **dead_letters_to(target))
    ch.publish(target, "in the way")
    ch.kill(q)
    assert ch.stays(target, 1)
    assert ch.drain(target) == ["in the way"]


@pytest.mark.better
def test_a_full_quorum_target_that_rejects_takes_the_dead_letter_nevertheless_in_rabbitmq(ch, kind, by_broker):
    target = ch.queue("quorum", name="target", max_length=1, overflow="reject-publish")
    q = ch.queue(kind, **dead_letters_to(target))
    ch.publish(target, "in the way")
    ch.kill(q)
    ch.pause(0.3)
    assert ch.count(target) in by_broker(rabbitmq=[2], leveret=[1, 2])


def test_dead_letters_push_out_the_oldest_of_a_full_target(ch, kind):
    pushed_out = ch.queue(name="pushed-out")
    target = ch.queue(name="target", max_length=1, **dead_letters_to(pushed_out))
    q = ch.queue(kind, **dead_letters_to(target))
    ch.publish(target, "old")
    ch.kill(q)
    assert ch.take(pushed_out).body == "old"
    assert ch.drain(target) == ["m"]


# --- what it looks like


def test_every_property_but_expiration_survives(ch, client, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    properties = dict(
        content_type="text/plain", content_encoding="utf-8", delivery_mode=2, priority=3, correlation_id="c",
        reply_to="r", message_id="m", timestamp=1_700_000_000, type="t", user_id="guest", app_id="a", cluster_id="cl",
    )
    ch.kill(q, expiration="60000", **properties)
    dead = ch.take(dlq)
    assert {name: getattr(dead.properties, name) for name in properties} == properties
    assert dead.properties.expiration is None


def test_the_delivery_mode_of_a_transient_message_stays_absent(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.kill(q)
    assert ch.take(dlq).properties.delivery_mode is None


def test_a_dead_letter_does_not_expire_again_by_its_own_ttl(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m", expiration="100")
    ch.reaches(dlq, 1)
    assert ch.stays(dlq, 1, seconds=0.4)


def test_a_dead_letter_is_subject_to_the_ttl_of_the_queue_it_goes_to(ch, kind):
    target = ch.queue(kind, name="target", message_ttl=800)
    q = ch.queue(kind, **dead_letters_to(target))
    ch.kill(q)
    ch.reaches(target, 1)
    ch.reaches(target, 0)


def test_other_headers_survive_with_their_types(ch, kind, dlq):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.kill(q, headers=Pairs([("a", Wire("s", -7)), ("b", Wire("l", 1)), ("c", Wire("x", b"\0"))]))
    headers = ch.take(dlq).headers
    assert [(f.name, f.type, f.value) for f in headers.fields if not f.name.startswith("x-")] == [
        ("a", "s", -7), ("b", "l", 1), ("c", "x", b"\0"),
    ]


def test_headers_are_delivered_sorted_and_without_duplicates(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m", headers=Pairs([("z", 1), ("a", 2), ("m", 3), ("a", 4), ("B", 5)]))
    message = ch.take(q)
    assert [(f.name, f.value) for f in message.headers.fields] == [("B", 5), ("a", 2), ("m", 3), ("z", 1)]


@pytest.mark.better
@pytest.mark.parametrize("verb", ["nack", "reject"])
def test_the_first_delivery_of_a_dead_letter_is_not_a_redelivery(ch, kind, dlq, verb, by_broker):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    getattr(ch, verb)(ch.get_unacked(q))
    assert ch.take(dlq).redelivered == by_broker(rabbitmq=verb == "reject", leveret=False)


@pytest.mark.better
def test_the_first_delivery_of_a_dead_letter_is_not_a_redelivery_even_if_it_was_redelivered_before(
    ch, kind, dlq, by_broker
):
    q = ch.queue(kind, **dead_letters_to(dlq))
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q), requeue=True)
    ch.reaches(q, 1)
    ch.nack(ch.get_unacked(q))
    assert ch.take(dlq).redelivered == by_broker(rabbitmq=True, leveret=False)


@pytest.mark.better
def test_the_first_delivery_of_a_dead_letter_beyond_the_delivery_limit_is_not_a_redelivery(ch, dlq, by_broker):
    q = ch.queue("quorum", delivery_limit=0, **dead_letters_to(dlq))
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q), requeue=True)
    assert ch.take(dlq).redelivered == by_broker(rabbitmq=True, leveret=False)


@pytest.mark.parametrize("cause", ["expired", "maxlen"])
def test_dead_letter_without_an_earlier_delivery_is_not_a_redelivery(ch, kind, dlq, cause):
    arguments = {"message_ttl": 50} if cause == "expired" else {"max_length": 0}
    q = ch.queue(kind, **arguments, **dead_letters_to(dlq))
    ch.publish(q, "m")
    dead = ch.take(dlq)
    assert (dead.deaths, dead.redelivered) == ([(q, cause, 1)], False)


@pytest.mark.better
def test_delivery_counts_start_afresh_in_the_target_queue(ch, by_broker):
    graveyard = ch.queue(name="graveyard")
    target = ch.queue("quorum", name="target", delivery_limit=1, **dead_letters_to(graveyard))
    q = ch.queue("quorum", **dead_letters_to(target))
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q))
    ch.reaches(target, 1)
    dead = ch.get_unacked(target)
    assert dead.headers.get("x-delivery-count") == by_broker(rabbitmq=1, leveret=None)
    ch.reject(dead, requeue=True)
    # RabbitMQ counts the rejection in the source against the limit of the target
    ch.reaches(by_broker(rabbitmq=graveyard, leveret=target), 1)
