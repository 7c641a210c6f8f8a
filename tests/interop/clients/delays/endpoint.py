"""What both frameworks do on a channel: a consumer that keeps its deliveries, and messages that say when they were sent."""

import sys
import time
from pathlib import Path

import pika

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import runner  # noqa: E402 - needs the path

DELIVERY_WITHIN_S = 60.0
PERSISTENT = 2


class Endpoint:
    """A connection with a channel in confirm mode, a queue that it consumes, and all that was declared through it."""

    def __init__(self):
        self.queues, self.exchanges = [], []
        self.connect()

    def connect(self):
        self.connection = pika.BlockingConnection(pika.ConnectionParameters(runner.HOST, runner.PORT))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()

    def exchange(self, name, kind, arguments=None):
        self.channel.exchange_declare(name, kind, durable=True, arguments=arguments)
        self.exchanges.append(name)

    def queue(self, name, arguments=None):
        self.channel.queue_declare(name, durable=True, arguments=arguments)
        self.queues.append(name)

    def publish(self, exchange, key, body, headers):
        """Confirmed and routed when this returns."""
        self.channel.basic_publish(exchange, key, body, pika.BasicProperties(
            delivery_mode=PERSISTENT, headers=headers, message_id="1"), mandatory=True)

    def take(self, queue):
        """The next message of a queue, which is not acknowledged."""
        deadline = time.monotonic() + DELIVERY_WITHIN_S
        while time.monotonic() < deadline:
            got, properties, body = self.channel.basic_get(queue)
            if got is not None:
                return got, properties, body
            self.connection.sleep(0.01)
        raise AssertionError(f"nothing came to {queue} within {DELIVERY_WITHIN_S:.0f} s")

    def count(self, queue):
        return self.channel.queue_declare(queue, passive=True).method.message_count

    def delete(self):
        for name in self.queues:
            self.channel.queue_delete(name)
        for name in self.exchanges:
            self.channel.exchange_delete(name)
        self.connection.close()


def with_endpoint(make, scenario):
    """A scenario with an endpoint of its own, which is deleted afterwards."""
    def run():
        endpoint = make()
        try:
            endpoint.declare()
            scenario(endpoint)
        finally:
            endpoint.delete()
    return run
