"""What clients saw of each message, and the comparison of that with what a broker has after a fault."""

import collections
import threading
import time
import zlib

import pika.exceptions

HOLD, WORK, BRIEF, MIXED, PURGED, DEAD = (
    "crash.hold", "crash.work", "crash.brief", "crash.mixed", "crash.purged", "crash.dead")
TTL_MS = 150


class Fault(Exception):
    """Something is not as it must be."""


def body_of(number, rng):
    payload = rng.randbytes(rng.choice((0, 10, 100, 1000, 5000, 200_000 if rng.random() < 0.02 else 50)))
    head = f"{number}:{zlib.crc32(payload):08x}:".encode()
    return head + payload


def number_of(body):
    try:
        number, crc, payload = body.split(b":", 2)
        if int(crc, 16) == zlib.crc32(payload):
            return int(number)
    except ValueError:
        pass
    raise Fault(f"a message has changed: {body[:40]!r}")


class Message:
    """What is known of one message."""

    __slots__ = ("queue", "confirmed", "settled", "settling", "seen")

    def __init__(self, queue, confirmed=False, settled=None, settling=None, seen=()):
        self.queue = queue
        self.confirmed = confirmed
        self.settled = settled  # "ack", "reject" or "purge", answered for
        self.settling = settling  # the same, not answered for
        self.seen = set(seen)  # the queues in which a client has got it

    def copy(self):
        return Message(self.queue, self.confirmed, self.settled, self.settling, self.seen)


class Ledger:
    """What clients saw. With `marks`, what comes again must be marked."""

    def __init__(self, marks=True):
        self.marks = marks
        self.lock = threading.Lock()
        self.messages = {}
        self.queues = {}  # name: True if it must be there, False if it must not, None if unknown
        self.next = 0

    def new(self, queue):
        with self.lock:
            self.next += 1
            self.messages[self.next] = Message(queue)
            return self.next

    def copy(self):
        """The ledger of this instant; clients may go on."""
        copy = Ledger()
        with self.lock:
            copy.messages = {number: message.copy() for number, message in self.messages.items()}
            copy.queues = dict(self.queues)
            copy.next = self.next
        return copy

    @staticmethod
    def of_cut(before, after):
        """The required content of a copy of the disk made between these two: everything promised before it. The result
        of operations meanwhile is unknown."""
        cut = Ledger()
        for number, message in after.messages.items():
            known = before.messages.get(number) or Message(message.queue)
            cut.messages[number] = Message(
                message.queue, known.confirmed, known.settled, message.settling, known.seen)
        for name, there in after.queues.items():
            cut.queues[name] = there if before.queues.get(name) == there else None
        return cut


def check_mark(ledger, queue, number, redelivered):
    """What a client has seen in a queue is marked when it comes there again."""
    message = ledger.messages.get(number)
    if ledger.marks and message and queue in message.seen and not redelivered:
        raise Fault(f"message {number} was seen in {queue} before and comes without the mark `redelivered`")


def drain(channel, queue, ledger):
    """Everything in a queue, acknowledged: numbers with how often each came."""
    seen = collections.Counter()
    while True:
        method, properties, body = channel.basic_get(queue)
        if method is None:
            return seen
        seen[number_of(body)] += 1
        check_mark(ledger, queue, number_of(body), method.redelivered)
        if queue == DEAD and not (properties.headers or {}).get("x-death"):
            raise Fault(f"message {number_of(body)} is dead without x-death")
        channel.basic_ack(method.delivery_tag)


def found_in(connection, queue, may_be_gone, ledger):
    channel = connection.channel()
    try:
        channel.queue_declare(queue, passive=True)
    except pika.exceptions.ChannelClosedByBroker:
        if may_be_gone:
            return collections.Counter()
        raise Fault(f"queue {queue} is not there") from None
    seen = drain(channel, queue, ledger)
    channel.basic_qos(prefetch_count=0)
    return seen


def check_queues(connection, ledger):
    for name, expected in ledger.queues.items():
        try:
            connection.channel().queue_declare(name, passive=True)
            there = True
        except pika.exceptions.ChannelClosedByBroker:
            there = False
        if expected is not None and there != expected:
            raise Fault(f"queue {name} is {'' if there else 'not '}there")
        ledger.queues[name] = there


def check(broker, ledger, lost=None):
    """Compares what is in the broker with the ledger; both are empty afterwards. How many of what there were.

    Losses are faults, unless there is a list that takes their numbers.
    """
    connection = broker.connect()
    if lost is None:
        check_queues(connection, ledger)
    time.sleep(TTL_MS / 1000 + 0.05)
    may_be_gone = lost is not None
    queues = (HOLD, WORK, BRIEF, MIXED, PURGED, DEAD)
    found = {queue: found_in(connection, queue, may_be_gone, ledger) for queue in queues}
    connection.close()
    for queue in BRIEF, MIXED:
        if found[queue]:
            raise Fault(f"{len(found[queue])} messages of {queue} outlived their TTL")
    counts = collections.Counter()
    for number, message in ledger.messages.items():
        problem = check_message(number, message, found)
        if problem and lost is None:
            raise Fault(problem)
        if problem:
            lost.append(number)
        counts["confirmed"] += message.confirmed
        counts["settled"] += message.settled is not None
    everything = set().union(*found.values())
    if invented := everything - ledger.messages.keys():
        raise Fault(f"nobody published {sorted(invented)[:5]}")
    ledger.messages.clear()
    return counts


def check_message(number, message, found):
    """What is wrong with a message, if anything is."""
    own, dead = found[message.queue][number], found[DEAD][number]
    total = own + dead
    if total > 1:
        return f"message {number} of {message.queue} is there {total} times"
    if message.settled == "ack" and total:
        return f"message {number} is back after its acknowledgement was durable"
    if message.settled == "purge" and total:
        return f"message {number} is back after its queue was purged"
    if message.settled == "reject" and not dead:
        return f"message {number} was rejected and is not dead-lettered"
    may_be_gone = message.settling in ("ack", "purge")
    if message.confirmed and not total and not may_be_gone:
        return f"confirmed message {number} of {message.queue} is lost"
    if dead and message.queue in (HOLD, PURGED):
        return f"message {number} of {message.queue} is dead"
    if dead and message.queue == WORK and message.settling != "reject":
        return f"message {number} is dead and nobody rejected it"
    return None
