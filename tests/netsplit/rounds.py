"""Messages that are rejected, wait for a time to live, and come back: each round is two deaths in `x-death`."""

import threading
import time

import pika

from expired import wait_until_empty
from ledger import Fault

WORK, WAIT = "split.work", "split.wait"
WAIT_MS = 200
PREFETCH = 20
PUBLISH_PERIOD_S = 0.1
READ_PERIOD_S = 0.1
WITHIN_S = 120.0


class Message:
    """What is known of one message."""

    __slots__ = ("confirmed", "settling", "settled", "seen", "rejects", "rejected", "not_before_ns")

    def __init__(self):
        self.confirmed = False
        self.settling = False  # acknowledged
        self.settled = False  # acknowledged, and a later method was answered
        self.seen = 0  # rounds behind it at its last delivery
        self.rejects = 0  # rejections that may have happened
        self.rejected = 0  # those of them that certainly did
        self.not_before_ns = 0  # of a delivery with more rounds than the last


class Rounds:
    """All messages by number."""

    def __init__(self):
        self.lock = threading.Lock()
        self.messages = {}

    def new(self):
        with self.lock:
            number = len(self.messages) + 1
            message = self.messages[number] = Message()
        return number, message

    def arrived(self, number, headers):
        """Checks a delivery; the message."""
        now_ns, message = time.time_ns(), self.messages.get(number)
        if message is None:
            raise Fault(f"nobody published message {number} of {WORK}")
        if message.settled:
            raise Fault(f"message {number} is back in {WORK} after its acknowledgement was durable")
        found = {(death["queue"], death["reason"]): death["count"] for death in (headers or {}).get("x-death") or ()}
        rounds = found.get((WORK, "rejected"), 0)
        if found != ({(WORK, "rejected"): rounds, (WAIT, "expired"): rounds} if rounds else {}):
            raise Fault(f"message {number} of {WORK} has the deaths {found}")
        if not message.rejected <= rounds <= message.rejects:
            raise Fault(f"message {number} has {rounds} rounds behind it, and {message.rejected} of its"
                        f" {message.rejects} rejections are certain")
        if rounds > message.seen and now_ns < message.not_before_ns:
            raise Fault(f"message {number} is back {(message.not_before_ns - now_ns) / 1e6:.3f} ms early")
        # A delivery proves the rejections before it, and that another one did not happen.
        message.seen = message.rejects = message.rejected = rounds
        return message


def declare(channel):
    for queue, target in ((WORK, WAIT), (WAIT, WORK)):
        arguments = {"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
        if queue == WAIT:
            arguments["x-message-ttl"] = WAIT_MS
        channel.queue_declare(queue, durable=True, arguments=arguments)


def publish(channel, rounds, rng, stop):
    """Publishes, and waits for each confirm."""
    channel.confirm_delivery()
    while not stop.is_set():
        number, message = rounds.new()
        channel.basic_publish("", WORK, str(number).encode(), pika.BasicProperties(delivery_mode=2))
        message.confirmed = True
        stop.wait(PUBLISH_PERIOD_S)


def consume(channel, rounds, rng, stop):
    """Rejects most deliveries, and acknowledges the others."""
    acked, rejected = [], []

    def delivered(_, method, properties, body):
        message = rounds.arrived(int(body), properties.headers)
        fate = rng.random()
        if fate < 0.7:
            message.rejects = message.seen + 1
            message.not_before_ns = time.time_ns() + WAIT_MS * 1_000_000
            channel.basic_reject(method.delivery_tag, requeue=False)
            rejected.append((message, message.rejects))
        elif fate < 0.9:
            message.settling = True
            channel.basic_ack(method.delivery_tag)
            acked.append(message)
        else:
            channel.basic_nack(method.delivery_tag, requeue=True)

    channel.basic_qos(prefetch_count=PREFETCH)
    channel.basic_consume(WORK, delivered)
    while not stop.is_set():
        known, certain = acked[:], rejected[:]
        channel.basic_qos(prefetch_count=PREFETCH)
        for message in known:
            message.settled = True
        for message, count in certain:
            message.rejected = max(message.rejected, count)
        del acked[:len(known)], rejected[:len(certain)]
        channel.connection.process_data_events(READ_PERIOD_S)


def check_rounds(broker, rounds):
    """Takes all messages and compares; the number of confirmed ones."""
    connection = broker.connect()
    channel = connection.channel()
    wait_until_empty(channel, WAIT, WITHIN_S)
    came = set()
    while True:
        method, properties, body = channel.basic_get(WORK, auto_ack=True)
        if method is None:
            break
        rounds.arrived(int(body), properties.headers)
        if int(body) in came:
            raise Fault(f"message {int(body)} is in {WORK} twice")
        came.add(int(body))
    connection.close()
    for number, message in rounds.messages.items():
        if message.confirmed and not message.settling and number not in came:
            raise Fault(f"confirmed message {number} of {WORK} is lost")
    return sum(message.confirmed for message in rounds.messages.values())
