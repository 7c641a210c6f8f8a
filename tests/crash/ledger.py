"""What clients saw of each message, and the comparison of that with what a broker has after a fault."""

import collections
import threading
import time
import zlib

import pika.exceptions

HOLD, WORK, BRIEF, MIXED, PURGED, DEAD = (
    "crash.hold", "crash.work", "crash.brief", "crash.mixed", "crash.purged", "crash.dead")
TTL_MS = 150
EXPIRED_WITHIN_S = 60.0


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

    __slots__ = ("queue", "publisher", "not_before_ns", "confirmed", "settled", "settling", "seen")

    def __init__(self, queue, confirmed=False, settled=None, settling=None, seen=(), publisher=None, not_before_ns=0):
        self.queue = queue
        self.publisher = publisher  # the channel, on which the numbers rise
        self.not_before_ns = not_before_ns  # it does not expire before, by the clock of the wall
        self.confirmed = confirmed
        self.settled = settled  # "ack", "reject" or "purge", answered for
        self.settling = settling  # the same, not answered for; "either" after an ack and a reject
        self.seen = set(seen)  # the queues in which a client has got it

    def copy(self):
        return Message(
            self.queue, self.confirmed, self.settled, self.settling, self.seen, self.publisher, self.not_before_ns)

    def attempt(self, kind):
        """A client settles it. An earlier attempt may have come true although the message came again, from a node that
        no longer led."""
        self.settling = kind if self.settling in (None, kind) else "either"


class Ledger:
    """What clients saw. With `marks`, what comes again must be marked."""

    def __init__(self, marks=True):
        self.marks = marks
        self.lock = threading.Lock()
        self.messages = {}
        self.queues = {}  # name: True if it must be there, False if it must not, None if unknown
        self.next = 0

    def new(self, queue, publisher=None, ttl_ms=0):
        """The number of the next message. Called before the publish: its time to live begins later than this."""
        not_before_ns = time.time_ns() + ttl_ms * 1_000_000
        with self.lock:
            self.next += 1
            self.messages[self.next] = Message(queue, publisher=publisher, not_before_ns=not_before_ns)
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
                message.queue, known.confirmed, known.settled, message.settling, known.seen, message.publisher,
                message.not_before_ns)
        for name, there in after.queues.items():
            cut.queues[name] = there if before.queues.get(name) == there else None
        return cut


def check_mark(ledger, queue, number, redelivered):
    """What a client has seen in a queue is marked when it comes there again."""
    message = ledger.messages.get(number)
    if ledger.marks and message and queue in message.seen and not redelivered:
        raise Fault(f"message {number} was seen in {queue} before and comes without the mark `redelivered`")


def check_death(ledger, number, properties):
    """A dead letter died once, of what its queue does, and not before its time."""
    now_ns = time.time_ns()
    message, deaths = ledger.messages.get(number), (properties.headers or {}).get("x-death")
    if not deaths:
        raise Fault(f"message {number} is dead without x-death")
    if message is None:
        return
    found = [(death["queue"], death["reason"], death["count"]) for death in deaths]
    if found != [(message.queue, "rejected" if message.queue == WORK else "expired", 1)]:
        raise Fault(f"message {number} of {message.queue} has the deaths {found}")
    if message.queue in (BRIEF, MIXED) and now_ns < message.not_before_ns:
        raise Fault(f"message {number} of {message.queue} is dead {(message.not_before_ns - now_ns) / 1e6:.3f} ms early")


def check_order(ledger, queue, last, number, redelivered):
    """What one publisher published comes in this order, unless it was there before; `last` has the last of each."""
    message = ledger.messages.get(number)
    if message is None or message.publisher is None or (redelivered and queue != HOLD):
        return
    before = last.get(message.publisher, 0)
    if number < before:
        raise Fault(f"message {number} comes from {queue} behind message {before} of the same publisher")
    last[message.publisher] = number


def drain(channel, queue, ledger):
    """Everything in a queue, acknowledged: numbers with how often each came."""
    seen, last = collections.Counter(), {}
    while True:
        method, properties, body = channel.basic_get(queue)
        if method is None:
            return seen
        seen[number_of(body)] += 1
        check_mark(ledger, queue, number_of(body), method.redelivered)
        if queue == DEAD:
            check_death(ledger, number_of(body), properties)
        else:
            check_order(ledger, queue, last, number_of(body), method.redelivered)
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


def await_expiry(connection, may_be_gone):
    """Waits until the queues whose messages expire are empty, or the time is over in which they are on any machine."""
    time.sleep(TTL_MS / 1000 + 0.05)
    deadline = time.monotonic() + EXPIRED_WITHIN_S
    for queue in BRIEF, MIXED:
        try:
            channel = connection.channel()
            while channel.queue_declare(queue, passive=True).method.message_count and time.monotonic() < deadline:
                time.sleep(TTL_MS / 1000)
        except pika.exceptions.ChannelClosedByBroker:
            if not may_be_gone:
                raise Fault(f"queue {queue} is not there") from None


def check(broker, ledger, lost=None):
    """Compares what is in the broker with the ledger; both are empty afterwards. How many of what there were.

    Losses are faults, unless there is a list that takes their numbers.
    """
    connection = broker.connect()
    if lost is None:
        check_queues(connection, ledger)
    may_be_gone = lost is not None
    await_expiry(connection, may_be_gone)
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
    may_be_gone = message.settling in ("ack", "purge", "either")
    if message.confirmed and not total and not may_be_gone:
        return f"confirmed message {number} of {message.queue} is lost"
    if dead and message.queue in (HOLD, PURGED):
        return f"message {number} of {message.queue} is dead"
    if dead and message.queue == WORK and message.settling not in ("reject", "either"):
        return f"message {number} is dead and nobody rejected it"
    return None
