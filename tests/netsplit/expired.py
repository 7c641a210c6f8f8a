"""Queues whose messages live for a while."""

import time

from ledger import Fault


def wait_until_empty(channel, queue, within_s):
    """Waits until all messages of a queue have expired."""
    deadline = time.monotonic() + within_s
    while channel.queue_declare(queue, passive=True).method.message_count:
        if time.monotonic() > deadline:
            raise Fault(f"messages of {queue} wait {within_s} s after their time to live")
        time.sleep(0.1)
