"""Very many returned and scheduled messages at once, beside a bystander in another vhost.

`--messages 1000000` gives the figures of the documentation; the tests have fewer by default.
"""

import threading
import time

import pika
import pytest

from small_disk import Disk
from test_amplification import fares
from work_broker import Bystander

DELAY_MS = 3000
LATER_MS = 3_600_000


@pytest.fixture
def disk(tmp_path):
    """That of the machine: a million messages are more than the small disk holds."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return Disk(folder, is_small=False)


@pytest.fixture
def messages(pytestconfig):
    return pytestconfig.getoption("--messages")


def fill(broker, queue, count, headers=None):
    """Publishes small messages, and waits until the queue has all of them."""
    channel = broker.channel()
    properties = pika.BasicProperties(delivery_mode=2, headers=headers)
    for number in range(count):
        channel.basic_publish("", queue, b"%d" % number, properties)
    channel.queue_declare(queue, passive=True)
    channel.connection.close()


class Consumer(threading.Thread):
    """Takes messages, and returns all of them at their first delivery, a thousand by one `basic.nack`."""

    def __init__(self, broker, queue, count):
        super().__init__(daemon=True)
        self.channel, self.queue, self.left = broker.channel(), queue, count
        self.returned_at, self.seen, self.early, self.failure = {}, {}, [], None
        self.start()

    def run(self):
        try:
            self.channel.basic_qos(prefetch_count=1000)
            open_deliveries = []
            for method, _, body in self.channel.consume(self.queue, inactivity_timeout=0.2):
                if method is not None:
                    open_deliveries.append((method, body))
                if len(open_deliveries) == 1000 or method is None:
                    self.settle(open_deliveries)
                    open_deliveries = []
                if self.left == 0:
                    return
        except BaseException as failure:  # noqa: BLE001 - raised by the test
            self.failure = failure

    def settle(self, deliveries):
        """Returns what came for the first time, and acknowledges what came again."""
        now = time.monotonic()
        first = [(method, body) for method, body in deliveries if body not in self.seen]
        for method, body in deliveries:
            self.seen[body] = self.seen.get(body, 0) + 1
            if self.seen[body] == 2:
                self.left -= 1
                if now - self.returned_at[body] < DELAY_MS / 1000:
                    self.early.append(body)
        if len(first) == len(deliveries) and deliveries:
            self.channel.basic_nack(deliveries[-1][0].delivery_tag, multiple=True, requeue=True)
        else:
            for method, body in deliveries:
                if self.seen[body] == 2:
                    self.channel.basic_ack(method.delivery_tag)
                else:
                    self.channel.basic_nack(method.delivery_tag, requeue=True)
        returned = time.monotonic()
        for _, body in first:
            # Before the return is written: a lower bound of what the broker waits for.
            self.returned_at[body] = min(now, returned)

    def finish(self):
        self.join()
        if self.failure:
            raise self.failure


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_a_storm_of_returns_starves_nobody(broker, messages, queue_type):
    """A consumer returns everything; each message comes again after its delay, once, and others are served meanwhile."""
    broker.channel().queue_declare("storm", durable=True, arguments={
        "x-queue-type": queue_type, "x-delayed-retry-type": "all", "x-delayed-retry-min": DELAY_MS})
    fill(broker, "storm", messages)
    bystander = Bystander(broker)
    bystander.latencies_s()
    began = time.monotonic()
    consumer = Consumer(broker, "storm", messages)
    consumer.finish()
    print(f"{messages} messages returned and delivered again in {time.monotonic() - began:.1f} s")
    fares(bystander, f"a storm of returns, {queue_type}")
    bystander.stop()
    assert consumer.early == []
    assert set(consumer.seen.values()) == {2} and len(consumer.seen) == messages
    broker.assert_well()


def test_all_schedules_of_a_queue_are_cancelled_at_once(broker, messages):
    """DELETE of everything that matches works in slices: others are served meanwhile. No kill brings a message back."""
    channel = broker.channel()
    channel.queue_declare("later", durable=True)
    fill(broker, "later", messages, {"x-opt-delivery-delay": LATER_MS})
    assert scheduled(broker) == messages
    bystander = Bystander(broker)
    bystander.latencies_s()
    began = time.monotonic()
    cancelled, is_complete = 0, False
    while not is_complete:
        answer = broker.http("DELETE", "/api/scheduled/%2F?target=queue/later")
        cancelled, is_complete = cancelled + answer["cancelled"], answer["complete"]
    assert cancelled == messages
    print(f"{messages} schedules cancelled in {time.monotonic() - began:.1f} s")
    fares(bystander, "all schedules cancelled")
    bystander.stop()
    assert channel.queue_declare("later", passive=True).method.message_count == 0
    broker.kill()
    broker.start()
    assert scheduled(broker) == 0
    broker.assert_well()


def scheduled(broker):
    """The messages before their delivery time."""
    return broker.http("GET", "/api/queues/%2F/later")["messages_delayed"]
