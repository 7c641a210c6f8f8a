"""Message TTL: the queue's, the message's and the lower of both; from a policy; what a deadline survives."""

import time
from decimal import Decimal

import pytest

from definitions import Policy
from expectations import ERLANG_TYPE, TEN_YEARS_MS, bad_argument, dead_letters_to
from field_table import Wire
from live_policies import live_policy, until_dead_letter_policy_acts, until_ttl_policy_acts

AN_HOUR_MS = 3_600_000
A_LONG_TIME = str(AN_HOUR_MS)
HELD_MS = 500  # of messages that a consumer must have got by then; it waits for them already

# --- the queue argument


@pytest.mark.parametrize("wire_type", "bBsuIilL")
def test_x_message_ttl_may_be_of_any_integer_type(ch, kind, wire_type):
    q = ch.queue(kind, message_ttl=Wire(wire_type, 100))
    ch.publish(q, "m")
    ch.reaches(q, 0)


NOT_INTEGERS = {
    "t": True, "S": "1000", "d": 1000.0, "f": 1000.0, "D": Decimal("1000"), "T": 1000, "F": {}, "A": [], "x": b"1000",
    "V": None,
}


@pytest.mark.parametrize("wire_type", NOT_INTEGERS)
def test_x_message_ttl_of_any_other_type_is_refused(ch, client, kind, wire_type):
    value = Wire(wire_type, NOT_INTEGERS[wire_type])
    reason = f'"expected integer, got {ERLANG_TYPE[wire_type]}"'
    name = client.name("q")
    ch.refuses(lambda c: c.queue(kind, name, message_ttl=value), 406, bad_argument("x-message-ttl", name, reason))


@pytest.mark.parametrize("ttl", [0, 2**32 - 1, 2**32, TEN_YEARS_MS])
def test_x_message_ttl_may_be_zero_to_ten_years(ch, kind, ttl):
    ch.queue(kind, message_ttl=Wire("l", ttl))


@pytest.mark.parametrize("ttl, reason", [
    (-1, "{value_negative,-1}"), (-2000, "{value_negative,-2000}"),
    (TEN_YEARS_MS + 1, f"{{value_too_large,{TEN_YEARS_MS + 1}}}"), (2**63 - 1, f"{{value_too_large,{2**63 - 1}}}"),
])
def test_x_message_ttl_out_of_range_is_refused(ch, client, kind, ttl, reason):
    name = client.name("q")
    ch.refuses(lambda c: c.queue(kind, name, message_ttl=ttl), 406, bad_argument("x-message-ttl", name, reason))


def test_a_message_leaves_when_the_queue_ttl_has_passed_and_not_before(ch, kind):
    q, sent = ch.queue(kind, message_ttl=500), time.monotonic()
    ch.publish(q, "m")
    assert ch.keeps(q, 1, sent + 0.5, seconds=0.5)
    ch.reaches(q, 0)


def test_every_message_has_the_whole_queue_ttl_to_itself(ch, kind):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, message_ttl=600, **dead_letters_to(dlq))
    ch.publish(q, "early")
    ch.pause(0.4)
    sent = time.monotonic()
    ch.publish(q, "late")
    ch.reaches(dlq, 1)
    assert ch.keeps(q, 1, sent + 0.6)
    ch.reaches(dlq, 2)
    assert ch.drain(dlq) == ["early", "late"]


def test_a_queue_without_a_ttl_keeps_its_messages(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m")
    assert ch.stays(q, 1)


# --- the message's expiration


@pytest.mark.parametrize("text, delivered", [
    ("60000", "60000"), ("00060000", "60000"), ("+60000", "60000"), ("0060001", "60001"),
    ("315360000000", "315360000000"),
])
def test_expiration_is_digits_with_an_optional_sign_and_is_delivered_in_canonical_form(ch, kind, text, delivered):
    q = ch.queue(kind)
    ch.publish(q, "m", expiration=text)
    assert ch.take(q).properties.expiration == delivered


@pytest.mark.parametrize("text", ["0", "00", "1", "007", "+5", "-0"])
def test_a_small_expiration_is_accepted_and_acts_at_once(ch, kind, text):
    q = ch.queue(kind)
    assert ch.publish(q, "m", expiration=text) == "a"
    ch.reaches(q, 0)


REFUSED_EXPIRATIONS = [
    ("", "no_integer"), ("abc", "no_integer"), (" 5", "no_integer"), ("+", "no_integer"), ("-", "no_integer"),
    ("\uff15", "no_integer"), ("\u0665", "no_integer"), ("--5", "no_integer"),
    ("5 ", '{leftover_string," "}'), ("1.5", '{leftover_string,".5"}'), ("1e3", '{leftover_string,"e3"}'),
    ("0x10", '{leftover_string,"x10"}'), ("1_000", '{leftover_string,"_000"}'),
    ("-1", "{value_negative,-1}"), ("-1000", "{value_negative,-1000}"),
    ("315360000001", "{value_too_large,315360000001}"),
    ("99999999999999999999", "{value_too_large,99999999999999999999}"),
]


@pytest.mark.parametrize("text, reason", REFUSED_EXPIRATIONS)
def test_any_other_expiration_closes_the_channel(ch, text, reason):
    q = ch.queue()
    ch.refuses(lambda c: c.publish(q, "m", expiration=text), 406, f"invalid expiration '{text}': {reason}")
    assert ch.count(q) == 0


def test_expiration_is_checked_even_when_the_message_goes_nowhere(ch, client):
    nowhere = client.name("nowhere")
    ch.refuses(lambda c: c.publish(nowhere, "m", expiration="abc"), 406, "invalid expiration 'abc': no_integer")


def test_a_missing_exchange_is_reported_before_a_bad_expiration(ch, client):
    x = client.name("missing")
    ch.refuses(lambda c: c.publish("k", "m", exchange=x, expiration="abc"), 404, f"no exchange '{x}' in vhost '/'")


def test_an_internal_exchange_is_reported_before_a_bad_expiration(ch):
    x = ch.exchange(internal=True)
    refusal = f"cannot publish to internal exchange '{x}' in vhost '/'"
    ch.refuses(lambda c: c.publish("k", "m", exchange=x, expiration="abc"), 403, refusal)


def test_a_refused_expiration_is_neither_acked_nor_nacked(ch):
    q = ch.queue()
    other = ch.connection.channel().confirm_select()
    said = other.answer_to(lambda c: c.publish(q, "m", expiration="abc"))
    assert said[:2] == ("channel", 406)
    assert other.outcomes == ["?"]


def test_a_message_leaves_when_its_own_ttl_has_passed_and_not_before(ch, kind):
    q, sent = ch.queue(kind), time.monotonic()
    ch.publish(q, "m", expiration="500")
    assert ch.keeps(q, 1, sent + 0.5, seconds=0.5)
    ch.reaches(q, 0)


@pytest.mark.parametrize("queue_ttl, expiration", [(200, A_LONG_TIME), (AN_HOUR_MS, "200")])
def test_the_lower_of_queue_ttl_and_message_ttl_counts(ch, kind, queue_ttl, expiration):
    q = ch.queue(kind, message_ttl=queue_ttl)
    ch.publish(q, "m", expiration=expiration)
    ch.reaches(q, 0)


def test_the_delivered_expiration_is_the_original_one_even_after_a_while(ch, kind):
    q = ch.queue(kind, message_ttl=30000)
    ch.publish(q, "m", expiration=A_LONG_TIME)
    ch.pause(0.2)
    assert ch.take(q).properties.expiration == A_LONG_TIME


# --- one message in several queues


def test_a_message_expires_in_each_queue_on_its_own(ch, kind):
    x = ch.exchange("fanout")
    brief, lasting = ch.queue(kind, message_ttl=100), ch.queue(kind)
    for q in (brief, lasting):
        ch.bind(q, x)
    ch.publish("", "m", exchange=x)
    ch.reaches(brief, 0)
    assert ch.count(lasting) == 1
    assert ch.take(lasting).body == "m"


# --- deadlines are fixed when the message arrives


def test_a_requeued_message_keeps_its_deadline(ch, kind):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, message_ttl=1000, **dead_letters_to(dlq))
    ch.publish(q, "m")
    message = ch.get_unacked(q)
    ch.pause(0.5)
    ch.publish(q, "later")
    ch.nack(message, requeue=True)
    ch.reaches(dlq, 2)
    assert ch.drain(dlq) == ["m", "later"]  # with a fresh TTL it would leave after the other one


def test_an_unacked_message_outlives_its_deadline_and_can_be_acked(ch, kind):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, message_ttl=HELD_MS, **dead_letters_to(dlq))
    consumer = ch.consume(q)
    ch.publish(q, "m")
    message = consumer.next()
    assert ch.stays(dlq, 0, seconds=HELD_MS / 1000 + 0.2)
    ch.ack(message)
    ch.sync()
    assert ch.stays(dlq, 0, seconds=0.1)
    assert ch.count(q) == 0


@pytest.mark.parametrize("give_back", ["nack", "reject", "recover", "close"])
def test_a_message_given_back_after_its_deadline_dies_as_expired(ch, client, kind, give_back):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, message_ttl=HELD_MS, **dead_letters_to(dlq))
    holder = ch.connection.channel()
    consumer = holder.consume(q)
    ch.publish(q, "m")
    message = consumer.next()
    assert ch.stays(dlq, 0, seconds=HELD_MS / 1000 + 0.1)
    match give_back:
        case "nack":
            holder.nack(message, requeue=True)
        case "reject":
            holder.reject(message, requeue=True)
        case "recover":
            holder.recover()
        case "close":
            holder.close()
    dead = ch.take(dlq)
    assert dead.deaths == [(q, "expired", 1)]
    assert consumer.taken == len(consumer.messages)


def test_a_message_rejected_after_its_deadline_dies_as_rejected(ch, kind):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind, message_ttl=HELD_MS, **dead_letters_to(dlq))
    consumer = ch.consume(q)
    ch.publish(q, "m")
    message = consumer.next()
    ch.pause(HELD_MS / 1000 + 0.1)
    ch.nack(message)
    assert ch.take(dlq).deaths == [(q, "rejected", 1)]


def test_the_ttl_of_a_transaction_starts_at_commit(ch, kind):
    q = ch.queue(kind, message_ttl=800)
    tx = ch.connection.channel().tx_select()
    tx.publish(q, "m")
    ch.pause(0.9)
    assert ch.count(q) == 0
    committed = time.monotonic()
    tx.tx_commit()
    assert ch.keeps(q, 1, committed + 0.8)
    ch.reaches(q, 0)


# --- policies that change while messages wait


@pytest.mark.better
def test_a_ttl_policy_reaches_messages_that_wait_already(ch, client, kind, api, by_broker):
    """In RabbitMQ it does not: deadlines are fixed when messages arrive."""
    q = ch.queue(kind)
    ch.publish(q, "old")
    ch.reaches(q, 1)
    with live_policy(api, client, {"message-ttl": 200}):
        until_ttl_policy_acts(ch, kind)
        assert ch.stays(q, by_broker(rabbitmq=1, leveret=0))


@pytest.mark.better
def test_messages_lose_their_deadline_when_the_ttl_policy_goes(ch, client, kind, api, by_broker):
    with live_policy(api, client, {"message-ttl": 4000}):
        q = ch.queue(kind)
        ch.publish(q, "m")
    ch.pause(4.2)
    assert ch.stays(q, by_broker(rabbitmq=0, leveret=1))


def test_the_dead_letter_exchange_in_force_at_the_time_of_death_counts(ch, client, kind, api):
    dlq = ch.queue(name="dlq")
    q = ch.queue(kind)
    ch.publish(q, "m")
    message = ch.consume(q).next()
    with live_policy(api, client, {"dead-letter-exchange": "", "dead-letter-routing-key": dlq}):
        until_dead_letter_policy_acts(ch, kind, dlq)
        ch.nack(message)
        assert ch.take(dlq).body == "m"


# --- policies


def test_message_ttl_can_come_from_a_policy(defined, kind):
    ch = defined(policies=[Policy({"message-ttl": 150})])
    q = ch.queue(kind)
    ch.publish(q, "m")
    ch.reaches(q, 0)


@pytest.mark.parametrize("argument, policy, operator", [
    (150, AN_HOUR_MS, AN_HOUR_MS), (AN_HOUR_MS, 150, AN_HOUR_MS), (AN_HOUR_MS, AN_HOUR_MS, 150),
])
def test_the_lowest_of_argument_policy_and_operator_policy_counts(defined, kind, argument, policy, operator):
    ch = defined(
        policies=[Policy({"message-ttl": policy})],
        operator_policies=[Policy({"message-ttl": operator})],
    )
    q = ch.queue(kind, message_ttl=argument)
    ch.publish(q, "m", expiration=A_LONG_TIME)
    ch.reaches(q, 0)


def test_a_policy_may_name_a_ttl_beyond_ten_years(defined, kind):
    # RabbitMQ accepts more, too, but beyond 10^13 ms the timers of its virtual machine fail
    ch = defined(policies=[Policy({"message-ttl": 10 * TEN_YEARS_MS})])
    q = ch.queue(kind)
    assert ch.publish(q, "m", delivery_mode=2) == "a"
    assert ch.stays(q, 1)


# --- streams


@pytest.mark.stream
def test_a_stream_takes_no_x_message_ttl(ch, client):
    name = client.name("q")
    refusal = f"invalid arg 'x-message-ttl' for queue '{name}' in vhost '/' of queue type rabbit_stream_queue"
    ch.refuses(lambda c: c.queue("stream", name, message_ttl=1000), 406, refusal)
