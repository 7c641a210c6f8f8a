"""Messages at the delivery limit that no dead-letter exchange takes: with `delivery-limit-action` `keep`, their queue
keeps them, to be seen, counted, redriven and purged.
"""

import pytest
from brokers import quoted
from client import Client
from live_policies import live_policy
from redrives import Redrives

pytestmark = pytest.mark.better


@pytest.fixture(autouse=True)
def leveret_only(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ drops messages at the delivery limit")


@pytest.fixture
def redrives(api):
    return Redrives(api)


def keeping_queue(ch, kind, **arguments):
    return ch.queue(kind, delivery_limit=0, delivery_limit_action="keep", **arguments)


def fail(ch, queue, *bodies):
    """Brings messages to the limit."""
    for body in bodies:
        ch.publish(queue, body, delivery_mode=2)
        ch.reject(ch.get_unacked(queue), requeue=True)
    ch.sync()


def ask(api, queue):
    return api.ask("/api/queues/" + quoted("/", queue)).json


def kept(api, queue):
    """The bodies of the kept messages."""
    listed = api.ask("/api/queues/" + quoted("/", queue) + "/messages?state=dead").json
    return [message["payload"] for message in listed["messages"]]


def test_kept_messages_are_listed_and_counted(ch, kind, api):
    q = keeping_queue(ch, kind)
    fail(ch, q, "a", "b")
    assert ch.get(q) is None
    queue = ask(api, q)
    assert (queue["messages"], queue["messages_ready"], queue["messages_dlx"]) == (2, 0, 2)
    assert queue["message_bytes_dlx"] >= 2
    assert kept(api, q) == ["a", "b"]
    findings = api.ask("/api/health/findings/%2F").json
    waiting = [one for one in findings["findings"] if one["kind"] == "dead_letters_wait"]
    assert q in [resource["name"] for one in waiting for resource in one["resources"]]


def test_a_policy_keeps_messages_and_a_later_exchange_takes_them(ch, kind, client, api):
    q = ch.queue(kind)
    dead = ch.queue(name="dead")
    with live_policy(api, client, {"delivery-limit": 0, "delivery-limit-action": "keep"}, apply_to=f"{kind}_queues"):
        fail(ch, q, "a")
        assert ask(api, q)["messages_dlx"] == 1
    ch.sync()
    assert ask(api, q)["messages_dlx"] == 1
    with live_policy(api, client, {"dead-letter-exchange": "", "dead-letter-routing-key": dead}):
        message = ch.take(dead)
    assert (message.body, message.headers["x-first-death-reason"]) == ("a", "delivery_limit")
    assert ask(api, q)["messages_dlx"] == 0


def test_a_redrive_puts_kept_messages_back(ch, kind, api, redrives):
    q = keeping_queue(ch, kind)
    fail(ch, q, "a", "b")
    job = redrives.run(q, kept=True, to="origin")
    assert job["moved"] == 2
    assert ask(api, q)["messages_dlx"] == 0
    assert ch.drain(q) == ["a", "b"]


def test_a_purge_removes_kept_messages(ch, kind, api):
    q = keeping_queue(ch, kind)
    fail(ch, q, "a", "b")
    assert ch.purge(q) == 2
    assert ask(api, q)["messages"] == 0


def test_a_consumer_that_fails_every_message_keeps_no_more_than_the_limit(ch, kind, api):
    q = keeping_queue(ch, kind, max_length=10)
    consumer = ch.consume(q)
    for number in range(100):
        ch.publish(q, str(number))
        ch.reject(consumer.next(), requeue=True)
    ch.sync()
    queue = ask(api, q)
    assert (queue["messages"], queue["messages_dlx"]) == (10, 10)
    assert kept(api, q) == [str(number) for number in range(90, 100)]


@pytest.fixture
def broker(under):
    broker = under.start()
    yield broker
    broker.stop()


@pytest.mark.parametrize("end", ["stop_and_start_again", "kill_and_start_again"])
def test_kept_messages_survive(broker, prefix, kind, end):
    client = Client(broker, prefix)
    ch = client.channel().confirm_select()
    q = keeping_queue(ch, kind)
    fail(ch, q, "a", "b")
    # The confirm is sent when what happened before it is on disk.
    ch.publish(q, "c", delivery_mode=2)
    ch.confirmed()
    getattr(broker, end)()
    client = Client(broker, prefix)
    ch = client.channel()
    assert kept(client.broker.api, q) == ["a", "b"]
    assert ch.drain(q) == ["c"]
    client.close()
