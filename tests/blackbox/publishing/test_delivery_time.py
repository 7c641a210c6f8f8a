"""Delivery times: messages that are delivered later, by headers of a publish and by exchanges of type
`x-delayed-message`. RabbitMQ 4.3 has neither without a plugin, and the plugin does not start there.
"""

import time

import pytest

from client import Client

pytestmark = pytest.mark.better

DELAY_MS = 400


@pytest.fixture(autouse=True)
def leveret_only(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no delivery times")


def now_ms():
    return time.time_ns() // 1_000_000


def delayed_exchange(ch, type="direct", **more):
    return ch.exchange("x-delayed-message", arguments={"x-delayed-type": type} | more)


def assert_delayed(consumer, body, since_ms, delay_ms=DELAY_MS):
    """The next delivery is this body, no earlier than the delay."""
    message = consumer.next()
    assert message.body == body
    assert now_ms() - since_ms >= delay_ms
    return message


# --- on any publish


def test_a_relative_delay(ch, kind):
    q = ch.queue(kind)
    consumer = ch.consume(q)
    since_ms = now_ms()
    assert ch.publish(q, "later", delivery_mode=2, headers={"x-opt-delivery-delay": DELAY_MS}) == "a"
    assert ch.publish(q, "now") == "a"
    assert consumer.next().body == "now"
    message = assert_delayed(consumer, "later", since_ms)
    assert "x-opt-delivery-delay" not in message.properties.headers
    assert message.properties.headers["x-scheduled-for"] >= since_ms + DELAY_MS
    assert not message.redelivered


def test_an_absolute_time(ch, kind):
    q = ch.queue(kind)
    consumer = ch.consume(q)
    at_ms = now_ms() + DELAY_MS
    ch.publish(q, "m", headers={"x-opt-delivery-time": at_ms})
    message = consumer.next()
    assert now_ms() >= at_ms
    assert message.properties.headers["x-scheduled-for"] == at_ms


def test_a_time_in_the_past_changes_nothing(ch, kind):
    q = ch.queue(kind)
    headers = {"x-opt-delivery-time": now_ms() - 1000, "x-opt-delivery-delay": 0}
    ch.publish(q, "m", headers=headers)
    assert ch.take(q).properties.headers == headers


def test_further_away_than_ten_years(ch):
    q = ch.queue()
    headers = {"x-opt-delivery-delay": 315_360_000_001}
    ch.refuses(
        lambda c: c.publish(q, "m", headers=headers), 406,
        "invalid x-opt-delivery-delay '315360000001': further away than 315360000000 ms")


def test_waiting_messages_are_counted_and_purged(ch, api, kind):
    q = ch.queue(kind)
    ch.publish(q, "a", "b", headers={"x-opt-delivery-delay": 60_000})
    queue = api.do("GET", f"/api/queues/%2F/{q}?disable_stats=false")
    assert (queue["messages"], queue["messages_ready"], queue["messages_delayed"]) == (2, 0, 2)
    assert ch.purge(q) == 2


def test_the_ttl_begins_when_the_message_is_ready(ch, dlq):
    q = ch.queue(dead_letter_exchange="", dead_letter_routing_key=dlq)
    since_ms = now_ms()
    ch.publish(q, "m", expiration="100", headers={"x-opt-delivery-delay": DELAY_MS})
    dead = ch.take(dlq)
    assert now_ms() - since_ms >= DELAY_MS + 100
    assert dead.properties.headers["x-first-death-reason"] == "expired"


# --- exchanges


def test_a_delayed_exchange(ch):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    consumer = ch.consume(q)
    since_ms = now_ms()
    assert ch.publish("k", "later", exchange=x, delivery_mode=2, headers={"x-delay": DELAY_MS, "a": 1}) == "a"
    assert ch.publish("k", "now", exchange=x) == "a"
    assert consumer.next().body == "now"
    message = assert_delayed(consumer, "later", since_ms)
    assert message.properties.headers == {"x-delay": -DELAY_MS, "a": 1}
    assert (message.exchange, message.routing_key) == (x, "k")


@pytest.mark.parametrize("type, keys", [("topic", ["a.#", "*.b"]), ("fanout", ["", ""])])
def test_a_delayed_exchange_routes_by_its_type(ch, type, keys):
    x = delayed_exchange(ch, type)
    queues = ch.bound(x, *keys)
    ch.publish("a.b", "m", exchange=x, headers={"x-delay": 50})
    assert [ch.take(q).body for q in queues] == ["m", "m"]


def test_messages_are_routed_in_the_order_of_their_times(ch):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    for delay_ms in (600, 300, 450, 301):
        ch.publish("k", str(delay_ms), exchange=x, headers={"x-delay": delay_ms})
    consumer = ch.consume(q)
    assert consumer.next_bodies(4) == ["300", "301", "450", "600"]


@pytest.mark.parametrize("arguments, text", [
    ({}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
    ({"x-delayed-type": 1}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
    ({"x-delayed-type": "x-delayed-message"}, "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'"),
    ({"x-delayed-type": "nonsense"}, "unknown exchange type 'nonsense'"),
])
def test_a_wrong_routing_type(ch, arguments, text):
    ch.refuses(lambda c: c.exchange("x-delayed-message", arguments=arguments), 406, text)


def test_a_wrong_delay(ch):
    x = delayed_exchange(ch)
    ch.refuses(lambda c: c.publish("k", "m", exchange=x, headers={"x-delay": "soon"}), 406, "invalid x-delay 'soon'")


def test_a_delayed_exchange_over_http(ch, api):
    x = delayed_exchange(ch)
    ch.bound(x, "k")
    ch.publish("k", "a", "b", exchange=x, headers={"x-delay": 60_000})
    exchange = api.do("GET", f"/api/exchanges/%2F/{x}")
    assert (exchange["type"], exchange["arguments"]) == ("x-delayed-message", {"x-delayed-type": "direct"})
    assert exchange["messages_delayed"] == 2
    definitions = api.do("GET", "/api/definitions")["exchanges"]
    arguments, = [known["arguments"] for known in definitions if known["name"] == x]
    assert arguments == {"x-delayed-type": "direct"}


# --- they survive


@pytest.fixture
def broker(under):
    broker = under.start()
    yield broker
    broker.stop()


@pytest.mark.parametrize("end", ["stop_and_start_again", "kill_and_start_again"])
def test_delays_go_on_after_a_restart(broker, prefix, end):
    client = Client(broker, prefix)
    ch = client.channel().confirm_select()
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    since_ms = now_ms()
    delay_ms = 2000
    ch.publish("k", "c", exchange=x, delivery_mode=2, headers={"x-delay": delay_ms + 500})
    ch.publish("k", "b", exchange=x, delivery_mode=2, headers={"x-delay": delay_ms})
    ch.publish(q, "a", delivery_mode=2, headers={"x-opt-delivery-delay": delay_ms - 500})
    ch.publish(q, "lost", delivery_mode=1, headers={"x-opt-delivery-delay": delay_ms - 500})
    ch.publish(q, "overdue", delivery_mode=2, headers={"x-opt-delivery-delay": 1})
    getattr(broker, end)()
    client = Client(broker, prefix)
    consumer = client.channel().consume(q)
    assert consumer.next().body == "overdue"
    assert_delayed(consumer, "a", since_ms, delay_ms - 500)
    assert assert_delayed(consumer, "b", since_ms, delay_ms).properties.headers == {"x-delay": -delay_ms}
    assert_delayed(consumer, "c", since_ms, delay_ms + 500)
    assert consumer.hears_nothing()
    client.close()


def test_the_log_names_both_types_of_a_redeclaration(broker, prefix):
    client = Client(broker, prefix)
    ch = client.channel()
    x = delayed_exchange(ch, "direct")
    for _ in range(2):
        ch.exchange("x-delayed-message", x, arguments={"x-delayed-type": "topic"})

    def warnings():
        return [line for line in broker.log if "x-delayed-type of a redeclaration ignored" in line and x in line]

    ch.poll(warnings, what="the line in the log")
    line, = warnings()
    assert "direct" in line and "topic" in line
    client.close()
