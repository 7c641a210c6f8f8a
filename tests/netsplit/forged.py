"""A broker whose queues a test fills by hand, to show a judge what it must not accept."""

import types
import zlib

import pika


class Forged:
    """Stands for broker, connection and channel: what is in its queues can be taken."""

    def __init__(self):
        self.queues = {}

    def put(self, queue, body, deaths=(), redelivered=False):
        """Puts a message behind the others; `deaths` are `(queue, reason, count)`."""
        headers = {"x-death": [{"queue": name, "reason": reason, "count": count} for name, reason, count in deaths]}
        properties = pika.BasicProperties(headers=headers if deaths else None)
        self.queues.setdefault(queue, []).append((properties, body, redelivered))

    def connect(self):
        return self

    def channel(self):
        return self

    def close(self):
        """Nothing is to close."""

    def queue_declare(self, queue, passive):
        return types.SimpleNamespace(method=types.SimpleNamespace(message_count=len(self.queues.get(queue, ()))))

    def basic_get(self, queue, auto_ack=False):
        if not self.queues.get(queue):
            return None, None, None
        properties, body, redelivered = self.queues[queue].pop(0)
        return types.SimpleNamespace(redelivered=redelivered, delivery_tag=1), properties, body

    def basic_ack(self, tag):
        """It is gone already."""

    def basic_qos(self, prefetch_count):
        """Nothing is in flight."""


def body(number, payload=b"payload"):
    """A body as those of the ledger."""
    return f"{number}:{zlib.crc32(payload):08x}:".encode() + payload
