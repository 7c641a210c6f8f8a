"""Retries in strict order: with a single active consumer, a queue delivers nothing while a returned message waits."""

import time

import pytest
from client import Client
from live_policies import live_policy

pytestmark = pytest.mark.better

STEP_MS = 300
LONG_MS = 600_000


@pytest.fixture(autouse=True)
def leveret_only(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no order of retries")


def now_ms():
    return time.time() * 1000


def held_queue(ch, kind, delay_ms, **arguments):
    return ch.queue(kind, single_active_consumer=True, delayed_retry_type="all", delayed_retry_min=delay_ms,
                    delayed_retry_order="strict", **arguments)


def ask(api, queue):
    return api.ask("/api/queues/%2F/" + queue).json


def test_messages_keep_their_order(ch, kind):
    q = held_queue(ch, kind, STEP_MS)
    ch.publish(q, "a", "b", "c")
    consumer = ch.consume(q, prefetch=1)
    since = time.monotonic()
    ch.reject(consumer.next(), requeue=True)
    bodies = []
    for _ in range(3):
        message = consumer.next()
        if not bodies:
            assert (time.monotonic() - since) * 1000 >= STEP_MS
        bodies.append(message.body)
        ch.ack(message)
    assert bodies == ["a", "b", "c"]


def test_returned_messages_come_back_in_the_order_of_arrival(ch, kind):
    q = held_queue(ch, kind, STEP_MS)
    ch.publish(q, "a", "b", "c")
    consumer = ch.consume(q)
    a, b, c = (consumer.next() for _ in range(3))
    for message in c, b, a:
        ch.nack(message, requeue=True)
    ch.publish(q, "d")
    assert consumer.next_bodies(4) == ["a", "b", "c", "d"]


def test_the_api_tells_until_when_the_queue_is_held(ch, kind, api):
    q = held_queue(ch, kind, LONG_MS)
    ch.publish(q, "a", "b")
    consumer = ch.consume(q, prefetch=1)
    assert ask(api, q)["held_until_ms"] is None
    from_ms = now_ms()
    ch.reject(consumer.next(), requeue=True)
    ch.sync()
    queue = ask(api, q)
    assert from_ms + LONG_MS - 1 <= queue["held_until_ms"] <= now_ms() + LONG_MS + 1
    assert (queue["messages_ready"], queue["messages_delayed"]) == (1, 1)
    assert consumer.hears_nothing()
    ch.purge(q)
    assert ask(api, q)["held_until_ms"] is None
    ch.publish(q, "c")
    assert consumer.next().body == "c"


def test_get_finds_nothing_while_the_queue_is_held(ch):
    q = held_queue(ch, "classic", LONG_MS)
    ch.publish(q, "a", "b")
    ch.reject(ch.get_unacked(q), requeue=True)
    assert ch.get(q) is None


def test_a_policy_holds_the_queue_and_lets_it_go(ch, kind, client, api):
    q = ch.queue(kind, single_active_consumer=True, delayed_retry_type="all", delayed_retry_min=LONG_MS)
    consumer = ch.consume(q, prefetch=1)
    with live_policy(api, client, {"delayed-retry-order": "strict"}):
        ch.publish(q, "a", "b")
        ch.reject(consumer.next(), requeue=True)
        assert consumer.hears_nothing()
    assert consumer.next().body == "b"


def test_strict_needs_a_single_active_consumer(ch, client, kind):
    name = client.name("q")
    refusal = (f"invalid arg 'x-delayed-retry-order' for queue '{name}' in vhost '/': "
               "strict_delayed_retry_order_but_no_single_active_consumer")
    ch.refuses(lambda c: c.queue(kind, name, delayed_retry_order="strict"), 406, refusal)


@pytest.fixture
def broker(under):
    broker = under.start()
    yield broker
    broker.stop()


@pytest.mark.parametrize("end", ["stop_and_start_again", "kill_and_start_again"])
def test_a_queue_is_held_after_a_restart(broker, prefix, end):
    client = Client(broker, prefix)
    ch = client.channel().confirm_select()
    delay_ms = 3000
    q = held_queue(ch, "quorum", delay_ms)
    ch.publish(q, "a", "b")
    assert ch.confirmed()
    consumer = ch.consume(q, prefetch=1)
    message = consumer.next()
    since_ms = now_ms()
    ch.reject(message, requeue=True)
    # The confirm is sent when the return before it is on disk.
    ch.publish(q, "c")
    assert ch.confirmed()
    getattr(broker, end)()
    client = Client(broker, prefix)
    consumer = client.channel().consume(q)
    assert consumer.next().body == "a"
    assert now_ms() >= since_ms + delay_ms
    assert consumer.next_bodies(2) == ["b", "c"]
    client.close()
