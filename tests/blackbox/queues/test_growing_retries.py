"""Retries that Leveret has beside those of RabbitMQ 4.3: on classic queues too, with delays that grow by a multiplier
or follow a schedule, and with limits that count every delivery.
"""

import time

import pytest
from client import Client
from live_policies import live_policy

pytestmark = pytest.mark.better

STEP_MS = 150


@pytest.fixture(autouse=True)
def leveret_only(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no growing retries")


def give_back(ch, message, how):
    {"nack": ch.nack, "reject": ch.reject}[how](message, requeue=True)


def waits_ms(ch, queue, returns, how="nack"):
    """How long a message stays away after each of so many returns."""
    ch.publish(queue, "m")
    consumer = ch.consume(queue)
    message, waits = consumer.next(), []
    for _ in range(returns):
        before = time.monotonic()
        give_back(ch, message, how)
        message = consumer.next()
        waits.append((time.monotonic() - before) * 1000)
    assert message.headers["x-acquired-count"] == returns
    return waits


def assert_at_least(waited, expected):
    """No wait is shorter than it is to be, and the first and the last differ as they are to."""
    assert all(wait >= least for wait, least in zip(waited, expected, strict=True)), (waited, expected)


def test_nack_multiplies_the_delay(ch, kind):
    q = ch.queue(kind, delayed_retry_type="all", delayed_retry_min=STEP_MS, delayed_retry_multiplier=2)
    assert_at_least(waits_ms(ch, q, 4), [STEP_MS, 2 * STEP_MS, 4 * STEP_MS, 8 * STEP_MS])


def test_multiplier_with_a_fraction_and_a_maximum(ch, kind):
    q = ch.queue(kind, delayed_retry_type="all", delayed_retry_min=STEP_MS, delayed_retry_multiplier=1.5,
                 delayed_retry_max=2 * STEP_MS)
    assert_at_least(waits_ms(ch, q, 4), [STEP_MS, 1.5 * STEP_MS, 2 * STEP_MS, 2 * STEP_MS])


@pytest.mark.parametrize("schedule", ["100,300ms,1s", [100, 300, 1000]], ids=["text", "array"])
def test_schedule(ch, kind, schedule):
    q = ch.queue(kind, delayed_retry_type="all", delayed_retry_schedule=schedule)
    assert_at_least(waits_ms(ch, q, 4), [100, 300, 1000, 1000])


def test_classic_queues_have_the_linear_rule_of_quorum_queues(ch):
    q = ch.queue("classic", delayed_retry_type="failed", delayed_retry_min=STEP_MS, delayed_retry_max=2 * STEP_MS)
    assert_at_least(waits_ms(ch, q, 3, "reject"), [STEP_MS, 2 * STEP_MS, 2 * STEP_MS])


@pytest.mark.parametrize("schedule", ["60m", [3_600_000]], ids=["text", "array"])
def test_policy_gives_a_schedule_to_queues_that_exist(ch, kind, client, api, schedule):
    q = ch.queue(kind)
    with live_policy(api, client, {"delayed-retry-type": "all", "delayed-retry-schedule": schedule}):
        ch.publish(q, "m")
        message = ch.get_unacked(q)
        ch.nack(message, requeue=True)
        assert ch.count(q) == 0
        assert api.ask("/api/queues/%2F/" + q).json["messages_delayed"] == 1


def test_operator_policy_limits_the_multiplier(ch, kind, client, api):
    q = ch.queue(kind, delayed_retry_type="all", delayed_retry_min=STEP_MS, delayed_retry_multiplier=1000)
    with live_policy(api, client, {"delayed-retry-multiplier": 1}, operator=True):
        explained = {key["key"]: key for key in api.ask(f"/api/queues/%2F/{q}/explain").json["keys"]}
        assert explained["delayed-retry-multiplier"]["value"] == 1
        assert explained["delayed-retry-multiplier"]["source"] == "operator_policy"
        assert_at_least(waits_ms(ch, q, 3), [STEP_MS] * 3)


@pytest.mark.parametrize("how", ["nack", "reject", "recover"])
def test_consumer_asks_for_the_delay(ch, kind, how):
    q = ch.queue(kind)
    consumer = ch.consume(q, arguments={"x-requeue-delay": STEP_MS})
    ch.publish(q, "m")
    message = consumer.next()
    before = time.monotonic()
    if how == "recover":
        ch.recover()
    else:
        give_back(ch, message, how)
    assert consumer.next().redelivered
    assert (time.monotonic() - before) * 1000 >= STEP_MS


def test_delay_of_a_consumer_wins_over_that_of_the_queue(ch, kind):
    q = ch.queue(kind, delayed_retry_type="all", delayed_retry_min=3_600_000)
    consumer = ch.consume(q, arguments={"x-requeue-delay": 0})
    ch.publish(q, "m")
    ch.nack(consumer.next(), requeue=True)
    assert consumer.next().redelivered


def test_closed_channel_gives_back_without_the_delay_of_its_consumer(ch, kind):
    q = ch.queue(kind)
    other = ch.connection.channel()
    consumer = other.consume(q, arguments={"x-requeue-delay": 3_600_000})
    ch.publish(q, "m")
    consumer.next()
    other.close()
    ch.reaches(q, 1)


@pytest.mark.parametrize("value, reason", [
    (-1, "{value_negative,-1}"), (315_360_000_001, "{value_too_large,315360000001}"),
    ("5", '"expected integer, got longstr"'),
])
def test_wrong_delays_of_consumers_are_refused(ch, kind, value, reason):
    q = ch.queue(kind)
    refusal = f"invalid arg 'x-requeue-delay' for queue '{q}' in vhost '/': {reason}"
    ch.refuses(lambda c: c.consume(q, arguments={"x-requeue-delay": value}), 406, refusal)


def test_delivery_limit_of_a_classic_queue(ch, dlq):
    q = ch.queue("classic", delivery_limit=2, dead_letter_exchange="", dead_letter_routing_key=dlq)
    ch.publish(q, "m")
    for count in range(3):
        message = ch.get_unacked(q)
        assert message.headers.get("x-delivery-count", 0) == count
        ch.reject(message, requeue=True)
    assert ch.take(dlq).deaths == [(q, "delivery_limit", 1)]


@pytest.mark.parametrize("count, deliveries", [("acquired", 3), ("delivery", 6)])
def test_nack_counts_against_the_limit_if_all_deliveries_do(ch, kind, count, deliveries):
    q = ch.queue(kind, delivery_limit=2, delivery_limit_count=count)
    ch.publish(q, "m")
    for _ in range(deliveries):
        ch.nack(ch.get_unacked(q), requeue=True)
    assert ch.count(q) == (0 if count == "acquired" else 1)


def test_delivery_limit_of_a_policy_for_classic_queues_alone(ch, client, api):
    q = ch.queue("classic")
    with live_policy(api, client, {"delivery-limit": 0}, apply_to="classic_queues"):
        ch.publish(q, "m")
        ch.reject(ch.get_unacked(q), requeue=True)
        assert ch.count(q) == 0


def test_headers_of_other_classic_queues_stay_as_they_are(ch):
    q = ch.queue("classic")
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q), requeue=True)
    assert ch.get(q).headers in (None, {})


@pytest.mark.parametrize("argument, value, reason", [
    ("multiplier", 0.5, "{value_too_small,0.5}"), ("multiplier", "2", '"expected number, got longstr"'),
    ("jitter", 1.1, "{value_too_large,1.1}"), ("jitter", -1, "{value_too_small,-1}"),
    ("schedule", "soon", "invalid_delayed_retry_schedule"), ("schedule", [], "invalid_delayed_retry_schedule"),
    ("schedule", 5, "invalid_delayed_retry_schedule"), ("schedule", "1s,0", "invalid_delayed_retry_schedule"),
    ("count", "all", "invalid_delayed_retry_count"),
])
def test_wrong_arguments_are_refused(ch, client, kind, argument, value, reason):
    name, argument = client.name("q"), f"x-delayed-retry-{argument}"
    refusal = f"invalid arg '{argument}' for queue '{name}' in vhost '/': {reason}"
    ch.refuses(lambda c: c.queue(kind, name, arguments={argument: value}), 406, refusal)


@pytest.mark.parametrize("key, good, bad, complaint", [
    ("delayed-retry-multiplier", [1, 2, 1.5], [0, 0.99, -1, "2"], "multiplier. Must be a number from 1"),
    ("delayed-retry-jitter", [0, 1, 0.25], [1.01, -0.5, "0"], "jitter. Must be a number from 0 to 1"),
    ("delayed-retry-schedule", ["1s,10s,5m", "250"], ["", "1y", "0", 5], "schedule. Must be delays such as 1s,10s,5m"),
    ("delayed-retry-count", ["delivery", "acquired"], ["all", 1], "count. Must be one of: delivery, acquired"),
])
def test_values_of_policies(api, client, key, good, bad, complaint):
    path = "/api/policies/%2F/" + client.name("p")
    for value in good:
        api.do("PUT", path, {"pattern": "^nothing$", "definition": {key: value}})
        assert api.ask(path).json["definition"] == {key: value}
    for value in bad:
        answer = api.ask(path, method="PUT", body={"pattern": "^nothing$", "definition": {key: value}})
        assert answer.status == 400, value
        assert answer.json["reason"].strip().endswith(f" is not a valid delayed retry {complaint}"), value
    api.do("DELETE", path)


def test_delays_and_counts_survive_a_kill(under, prefix, kind):
    broker = under.start()
    clients = []

    def channel():
        clients.append(Client(broker, prefix))
        return clients[-1].connect().channel().confirm_select()

    try:
        ch = channel()
        q = ch.queue(kind, durable=True, delivery_limit=2, delayed_retry_type="all", delayed_retry_schedule="1,2s,60m")
        assert ch.publish(q, "m", delivery_mode=2) == "a"
        ch.reject(ch.get_unacked(q), requeue=True)
        ch.reaches(q, 1)
        message = ch.get_unacked(q)
        returned = time.monotonic()
        ch.reject(message, requeue=True)
        # The confirm comes after everything before it is on disk.
        assert ch.publish(ch.queue(kind, durable=True), "later", delivery_mode=2) == "a"
        broker.kill_and_start_again()
        ch = channel()
        ch.reaches(q, 1)
        assert time.monotonic() - returned >= 2
        message = ch.get_unacked(q)
        assert message.headers["x-delivery-count"] == 2
        ch.reject(message, requeue=True)
        ch.reaches(q, 0)
    finally:
        for client in clients:
            client.close()
        broker.stop()
