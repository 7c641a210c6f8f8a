"""Which messages are marked as redelivered when the broker comes back: none that a consumer may have seen lacks the mark.

RabbitMQ does the same; but a RabbitMQ that runs already is not killed here, and only Leveret is tested.
"""

import pytest
from client import Client


@pytest.fixture
def broker(under):
    if under.name == "rabbitmq":
        pytest.skip("a RabbitMQ that somebody else runs is not stopped")
    broker = under.start()
    yield broker
    broker.stop()


@pytest.fixture
def connect(broker, prefix):
    """What makes a channel of a new connection."""
    clients = []

    def channel():
        clients.append(Client(broker, prefix))
        return clients[-1].connect().channel()

    yield channel
    for client in clients:
        client.close()


@pytest.fixture
def queue(connect, kind):
    """A queue with three messages, one of which was delivered and not acknowledged."""
    ch = connect().confirm_select()
    queue = ch.queue(kind)
    assert ch.publish(queue, "seen", "unseen", "unseen", delivery_mode=2) == "aaa"
    assert not ch.get_unacked(queue).redelivered
    return queue


def marks(ch, queue):
    """The flags of its messages."""
    return [message.redelivered for message in ch.get_unacked(queue, count=3)]


def test_after_a_stop_what_was_delivered_is_marked(broker, connect, queue):
    broker.stop_and_start_again()
    assert marks(connect(), queue) == [True, False, False]


def test_after_a_crash_everything_is_marked(broker, connect, queue):
    """The last deliveries may be missing in the log, and they are not known."""
    broker.kill_and_start_again()
    assert marks(connect(), queue) == [True, True, True]


def test_mark_of_a_crash_stays(broker, connect, queue):
    broker.kill_and_start_again()
    broker.stop_and_start_again()
    assert marks(connect(), queue) == [True, True, True]


def test_messages_after_a_crash_are_not_marked(broker, connect, queue):
    broker.kill_and_start_again()
    ch = connect()
    ch.drain(queue)
    ch.publish(queue, "new")
    assert not ch.take(queue).redelivered
