"""Messages that reach two queues together or none: by a fan-out, a transaction, or a dead letter with two targets."""

import collections
import threading
import time

import pika

from expired import wait_until_empty
from ledger import Fault

BOTH = "split.both"
LEFT, RIGHT, SOURCE = "split.left", "split.right", "split.source"
QUEUES = {LEFT: "quorum", RIGHT: "classic", SOURCE: "quorum"}
TTLS_MS = (1, 50, 300, 1000)
PERIOD_S = 0.1
WITHIN_S = 120.0


class Pair:
    """What is known of one message."""

    __slots__ = ("kind", "confirmed", "rolled_back", "not_before_ns")

    def __init__(self, kind, not_before_ns=0):
        self.kind = kind
        self.confirmed = False  # by a confirm or by tx.commit-ok
        self.rolled_back = False
        self.not_before_ns = not_before_ns  # in the targets


class Pairs:
    """All messages by number."""

    def __init__(self):
        self.lock = threading.Lock()
        self.messages = {}

    def new(self, kind, ttl_ms=0):
        pair = Pair(kind, time.time_ns() + ttl_ms * 1_000_000)
        with self.lock:
            number = len(self.messages) + 1
            self.messages[number] = pair
        return number, pair


def declare(channel):
    channel.exchange_declare(BOTH, "fanout", durable=True)
    for queue, queue_type in QUEUES.items():
        arguments = {"x-queue-type": queue_type}
        if queue == SOURCE:
            arguments["x-dead-letter-exchange"] = BOTH
        channel.queue_declare(queue, durable=True, arguments=arguments)
    channel.queue_bind(LEFT, BOTH)
    channel.queue_bind(RIGHT, BOTH)


def fan_out(channel, pairs, rng, stop):
    """Publishes to both, or to the queue whose dead letters reach both, and waits for each confirm."""
    channel.confirm_delivery()
    while not stop.is_set():
        ttl_ms = rng.choice(TTLS_MS) if rng.random() < 0.6 else 0
        number, pair = pairs.new("death" if ttl_ms else "fan-out", ttl_ms)
        properties = pika.BasicProperties(delivery_mode=2, expiration=str(ttl_ms) if ttl_ms else None)
        exchange, key = ("", SOURCE) if ttl_ms else (BOTH, "")
        channel.basic_publish(exchange, key, str(number).encode(), properties)
        pair.confirmed = True
        stop.wait(PERIOD_S)


def transact(channel, pairs, rng, stop):
    """Publishes to one after the other in a transaction, and commits most."""
    channel.tx_select()
    persistent = pika.BasicProperties(delivery_mode=2)
    while not stop.is_set():
        new = [pairs.new("transaction") for _ in range(rng.randint(1, 4))]
        for queue in (LEFT, RIGHT):
            for number, _ in new:
                channel.basic_publish("", queue, str(number).encode(), persistent)
        is_rolled_back = rng.random() < 0.2
        for _, pair in new:
            pair.rolled_back = is_rolled_back
        if is_rolled_back:
            channel.tx_rollback()
        else:
            channel.tx_commit()
            for _, pair in new:
                pair.confirmed = True
        stop.wait(PERIOD_S)


def check_pairs(broker, pairs):
    """Takes all messages and compares; the number of confirmed ones."""
    connection = broker.connect()
    channel = connection.channel()
    wait_until_empty(channel, SOURCE, WITHIN_S)
    found = {queue: take(channel, queue, pairs) for queue in (LEFT, RIGHT)}
    connection.close()
    for number, pair in pairs.messages.items():
        if problem := check_pair(number, pair, found):
            raise Fault(problem)
    return sum(pair.confirmed for pair in pairs.messages.values())


def take(channel, queue, pairs):
    """How often each number is in a queue, which is empty afterwards."""
    numbers = collections.Counter()
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return numbers
        number, deaths = int(body), (properties.headers or {}).get("x-death")
        pair = pairs.messages.get(number)
        if pair is None:
            raise Fault(f"nobody published message {number} of {queue}")
        found = [(death["queue"], death["reason"], death["count"]) for death in deaths or ()]
        if found != ([(SOURCE, "expired", 1)] if pair.kind == "death" else []):
            raise Fault(f"message {number} of a {pair.kind} has the deaths {found} in {queue}")
        if time.time_ns() < pair.not_before_ns:
            raise Fault(f"message {number} is in {queue} before its time to live is over")
        numbers[number] += 1


def check_pair(number, pair, found):
    """What is wrong with a message, if anything is."""
    left, right = found[LEFT][number], found[RIGHT][number]
    if max(left, right) > 1:
        return f"message {number} of a {pair.kind} is there {left} and {right} times"
    if left != right:
        return f"message {number} of a {pair.kind} is in {LEFT if left else RIGHT} only"
    if pair.rolled_back and left:
        return f"message {number} of a transaction is there, which was rolled back"
    if pair.confirmed and not left:
        return f"confirmed message {number} of a {pair.kind} is lost"
    return None
