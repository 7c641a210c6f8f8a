"""The exchange amq.settle: a delay and headers for one delivery, given by its consumer."""

import time

import pytest
from brokers import quoted
from client import Client

pytestmark = pytest.mark.better

DELAY_MS = 400


@pytest.fixture(autouse=True)
def leveret_only(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no exchange amq.settle")


def settle(ch, tag, mandatory=False, **headers):
    headers = {"x-" + name.replace("_", "-"): value for name, value in headers.items()}
    ch.publish("", "", exchange="amq.settle", mandatory=mandatory, headers={"x-delivery-tag": tag, **headers})


def delivery(ch, kind, **arguments):
    """A queue, its consumer and its first delivery."""
    q = ch.queue(kind, **arguments)
    ch.publish(q, "m", delivery_mode=2)
    consumer = ch.consume(q)
    return q, consumer, consumer.next()


def test_annotation_holds_for_the_nack(ch, kind):
    _, consumer, message = delivery(ch, kind)
    since = time.monotonic()
    settle(ch, message.tag, reason="503", opt_delivery_delay=DELAY_MS)
    ch.nack(message, requeue=True)
    again = consumer.next()
    assert time.monotonic() - since >= DELAY_MS / 1000
    assert again.headers["x-reason"] == "503"


@pytest.mark.parametrize("op", ["requeue", "dead-letter"])
def test_operation_settles_and_the_reason_stays_through_death(ch, kind, op):
    ch.confirm_select()
    dead = ch.queue(kind)
    _, consumer, message = delivery(ch, kind, dead_letter_exchange="", dead_letter_routing_key=dead)
    settle(ch, message.tag, op=op, reason="503")
    if op == "requeue":
        again = consumer.next()
        assert again.headers["x-reason"] == "503"
        ch.reject(again, requeue=False)
    letter = ch.consume(dead).next()
    assert letter.headers["x-reason"] == "503"
    assert letter.headers["x-death"][0]["reason"] == "rejected"


def test_nack_of_several_uses_the_annotation_of_each(ch, kind):
    q, consumer, first = delivery(ch, kind)
    ch.publish(q, "n")
    second = consumer.next()
    settle(ch, first.tag, reason="503")
    ch.nack(second, requeue=True, multiple=True)
    reasons = {}
    for _ in range(2):
        message = consumer.next()
        reasons[message.body] = (message.headers or {}).get("x-reason")
    assert reasons == {"m": "503", "n": None}


def test_unknown_tag_is_returned_if_mandatory(ch, kind):
    delivery(ch, kind)
    settle(ch, 99, mandatory=True, reason="503")
    assert ch.returned[-1].reply == (312, "NO_ROUTE")


@pytest.mark.parametrize("name", ["x-death", "x-first-death-queue", "x-last-a", "x-delivery-count", "x-acquired-count",
                                  "CC", "BCC"])
def test_reserved_names_are_refused(ch, name):
    headers = {"x-delivery-tag": 1, name: ["v"]}
    ch.refuses(lambda c: c.publish("", "", exchange="amq.settle", headers=headers), 406,
               f"header '{name}' is reserved and cannot be set")


@pytest.mark.parametrize("headers, size", [
    ({"x-long": "." * 4096}, "1 headers with 4108 bytes"),
    ({f"x-{number}": True for number in range(33)}, "33 headers with 221 bytes"),
])
def test_annotations_are_limited(ch, headers, size):
    headers = {"x-delivery-tag": 1, **headers}
    text = f"annotation of {size} exceeds the limit of 32 headers with 4096 bytes"
    ch.refuses(lambda c: c.publish("", "", exchange="amq.settle", headers=headers), 406, text)


@pytest.fixture
def broker(under):
    broker = under.start()
    yield broker
    broker.stop()


@pytest.mark.parametrize("delay_ms", [None, DELAY_MS])
@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_annotations_survive_a_kill(broker, prefix, queue_type, delay_ms):
    client = Client(broker, prefix)
    ch = client.channel().confirm_select()
    dead = ch.queue(durable=True)
    q = ch.queue(durable=True, queue_type=queue_type, dead_letter_exchange="", dead_letter_routing_key=dead)
    for body in ["returned", "dead"]:
        ch.publish(q, body, delivery_mode=2)
    consumer = ch.consume(q)
    first, second = consumer.next(), consumer.next()
    delay = {} if delay_ms is None else {"opt_delivery_delay": delay_ms}
    settle(ch, second.tag, op="dead-letter", reason="404")
    settle(ch, first.tag, op="requeue", reason="503", **delay)
    broker.kill_and_start_again()
    client = Client(broker, prefix)
    ch = client.channel()
    assert ch.consume(q).next().headers["x-reason"] == "503"
    assert ch.consume(dead).next().headers["x-reason"] == "404"
    client.close()


@pytest.mark.parametrize("end", ["channel", "connection"])
def test_annotation_is_forgotten_if_the_channel_ends_before_the_settlement(client, ch, kind, end):
    q = ch.queue(kind)
    ch.publish(q, "m", delivery_mode=2)
    other = client.channel().confirm_select()
    message = other.consume(q).next()
    settle(other, message.tag, reason="503", opt_delivery_delay=3_600_000)
    assert other.confirmed()
    other.close() if end == "channel" else other.connection.drop()
    again = ch.consume(q).next()
    assert again.redelivered and "x-reason" not in (again.headers or {})


@pytest.mark.parametrize("op", [None, "dead-letter"])
def test_reason_stays_with_a_dead_letter_that_its_queue_keeps(broker, prefix, op):
    client = Client(broker, prefix)
    ch = client.channel().confirm_select()
    dead = prefix + "dead"
    q = ch.queue("quorum", durable=True, overflow="reject-publish", dead_letter_strategy="at-least-once",
                 dead_letter_exchange="", dead_letter_routing_key=dead)
    for body in ["kept", "waits"]:
        ch.publish(q, body, delivery_mode=2)
    message = ch.get_unacked(q)
    settle(ch, message.tag, reason="404", **({"op": op} if op else {}))
    if op is None:
        ch.reject(message)
        # Its own confirm is behind the settlement.
        ch.publish(q, "later", delivery_mode=2)
    assert ch.confirmed()
    broker.kill_and_start_again()
    client = Client(broker, prefix)
    ch = client.channel()
    answer = broker.api.ask("/api/queues/" + quoted("/", q) + "/messages?state=dead").json
    [kept] = answer["messages"]
    assert (kept["payload"], kept["properties"]["headers"]["x-reason"]) == ("kept", "404")
    ch.queue(name="dead", durable=True)
    letter = ch.consume(dead).next()
    assert (letter.body, letter.headers["x-reason"], letter.headers["x-death"][0]["reason"]) == ("kept", "404", "rejected")
    client.close()
