"""Messages with a delivery time, with names and without, and messages that are retried with a delay, across kills of the
broker.
"""

import collections
import json
import random
import threading
import time
import urllib.request

import pika

import schedules
from ledger import Fault
from workload import GONE, JOIN_TIMEOUT_S

EXCHANGE = "crash.later"
SCHEDULED = ("crash.later.classic", "crash.later.quorum")
HELD = ("crash.held.classic", "crash.held.quorum")
RETRIED = ("crash.retry.classic", "crash.retry.quorum")
QUEUES = SCHEDULED + HELD + RETRIED + schedules.NAMED
EXCHANGES = (EXCHANGE, schedules.EXCHANGE)
DELAYS_MS = (0, 1, 20, 100, 300, 300, 1000)
RETRY_MS = 200
PREFETCH = 20
# After the last delivery time; a machine without a free CPU may need seconds.
LATE_S = 120.0
PERIOD_S = 0.02


class Place:
    """What is known of one message in one queue; times are nanoseconds of the wall clock."""

    __slots__ = (
        "not_before_ns", "ever_before_ns", "confirmed", "settled", "settling", "seen", "is_cancelled", "may_be_gone")

    def __init__(self, not_before_ns):
        self.not_before_ns = not_before_ns
        self.ever_before_ns = not_before_ns  # no operation or return made it come earlier than this
        self.confirmed = False
        self.settled = False  # acknowledged, and a later method was answered
        self.settling = False  # acknowledged, without an answer so far
        self.seen = False  # a client has got it
        self.is_cancelled = False  # cancelled or replaced, and that is confirmed
        self.may_be_gone = False  # cancelled or replaced, or about to be


class Delays:
    """What clients saw of all messages that have not been checked: a `Place` by queue and number.

    Without `marks`, a node that no longer leads, and does not know it, may deliver messages of classic queues as it knows
    them. No queue delivers one before the earliest time that it ever had.
    """

    def __init__(self, marks=True):
        self.marks = marks
        self.lock = threading.Lock()
        self.places = {}
        self.last = 0
        self.operations = collections.Counter()

    def new(self, queues, delay_ms):
        """The number of the next message, and its places in these queues. Called before the publish: the delay
        begins later than this."""
        due = time.time_ns() + delay_ms * 1_000_000
        with self.lock:
            self.last += 1
            places = {(queue, self.last): Place(due) for queue in queues}
            self.places.update(places)
            return self.last, list(places.values())

    def arrived(self, queue, method, properties, body, is_final=False):
        """Checks a delivery; its place. With `is_final`, a node that leads delivers."""
        now_ns = time.time_ns()
        number = int(body.split(b":")[0])
        place = self.places.get((queue, number))
        if place is None:
            raise Fault(f"nobody published message {number} to {queue}, or it is back after a check")
        is_marked = self.marks or queue.endswith("quorum")
        is_known = is_marked or is_final
        early_ns = (place.not_before_ns if is_known else place.ever_before_ns) - now_ns
        if early_ns > 0:
            raise Fault(f"message {number} comes to {queue} {early_ns / 1e6:.3f} ms early")
        if place.is_cancelled and is_known:
            raise Fault(f"message {number} comes to {queue} after its cancellation was confirmed")
        if place.settled and is_known:
            raise Fault(f"message {number} is back in {queue} after its acknowledgement was durable")
        if place.seen and is_marked and not method.redelivered:
            raise Fault(f"message {number} was released to {queue} twice, or lost its mark `redelivered`")
        place.seen = True
        check_headers(queue, number, properties.headers or {}, body)
        return place


def check_headers(queue, number, headers, body):
    delay_ms = int(body.split(b":")[1])
    if queue in HELD and delay_ms and headers.get("x-delay") != -delay_ms:
        raise Fault(f"message {number} of {queue} has x-delay {headers.get('x-delay')} after {delay_ms}")
    if queue in SCHEDULED and "x-opt-delivery-delay" in headers and delay_ms:
        raise Fault(f"message {number} of {queue} still asks for its delay")


def declare(broker):
    connection = broker.connect()
    channel = connection.channel()
    channel.exchange_declare(EXCHANGE, "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    for queue in QUEUES:
        arguments = {"x-queue-type": "quorum" if queue.endswith("quorum") else "classic"}
        if queue in RETRIED:
            arguments.update({
                "x-delayed-retry-type": "all", "x-delayed-retry-min": RETRY_MS, "x-delayed-retry-max": RETRY_MS,
                "x-delivery-limit": -1})
        channel.queue_declare(queue, durable=True, arguments=arguments)
    for queue in HELD:
        channel.queue_bind(queue, EXCHANGE)
    schedules.declare(channel)
    connection.close()


class DelayWorkload:
    """Publishers and consumers of delayed messages, until the broker is gone or they are stopped."""

    def __init__(self, broker, delays, rng):
        declare(broker)
        self.failure = None
        self.stop = threading.Event()
        self.threads = [
            threading.Thread(target=self._run, args=(client, broker, delays, rng.random()), daemon=True)
            for client in (publish, publish, schedules.operate, consume)]
        for thread in self.threads:
            thread.start()

    def _run(self, client, broker, delays, seed):
        try:
            connection = broker.connect()
            client(connection.channel(), delays, random.Random(seed), self.stop)
            connection.close()
        except GONE:
            pass
        except BaseException as failure:  # noqa: BLE001 - raised when the workload ends
            self.failure = failure

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(JOIN_TIMEOUT_S)
        if self.failure:
            raise self.failure


def publish(channel, delays, rng, stop, period_s=0):
    """Publishes, and waits for each confirm and for a time after it."""
    channel.confirm_delivery()
    while not stop.is_set():
        delay_ms = rng.choice(DELAYS_MS)
        kind = rng.choice((SCHEDULED, HELD, RETRIED))
        queues = HELD if kind is HELD else (rng.choice(kind),)
        if kind is RETRIED:
            delay_ms = 0
        number, places = delays.new(queues, delay_ms)
        headers = {SCHEDULED: {"x-opt-delivery-delay": delay_ms}, HELD: {"x-delay": delay_ms}, RETRIED: {}}[kind]
        exchange, key = (EXCHANGE, "") if kind is HELD else ("", queues[0])
        properties = pika.BasicProperties(delivery_mode=2, headers=headers)
        body = f"{number}:{delay_ms}:".encode() + rng.randbytes(rng.choice((0, 50, 5000)))
        channel.basic_publish(exchange, key, body, properties)
        for place in places:
            place.confirmed = True
        stop.wait(period_s)


def consume(channel, delays, rng, stop, period_s=PERIOD_S):
    """Acknowledges, returns or keeps deliveries; a method with an answer now and then."""
    acked, returned, unanswered = [], [], []

    def delivered(queue):
        def callback(_, method, properties, body):
            place = delays.arrived(queue, method, properties, body)
            fate = rng.random()
            if fate < 0.5:
                place.settling = True
                channel.basic_ack(method.delivery_tag)
                acked.append(place)
            elif fate < 0.9 and queue in RETRIED:
                returned.append((place, time.time_ns() + RETRY_MS * 1_000_000))
                channel.basic_reject(method.delivery_tag, requeue=True)
            elif fate < 0.95:
                channel.basic_nack(method.delivery_tag, requeue=True)
        return callback

    channel.basic_qos(prefetch_count=PREFETCH)
    for queue in QUEUES:
        channel.basic_consume(queue, delivered(queue))
    try:
        while not stop.is_set():
            # A returned message cannot come again while the client reads nothing: its time is known before that.
            for place, not_before_ns in returned:
                unanswered.append((place, place.not_before_ns))
                place.not_before_ns = not_before_ns
            returned.clear()
            known = acked[:]
            del acked[:]
            channel.basic_qos(prefetch_count=PREFETCH)
            unanswered.clear()
            for place in known:
                place.settled = True
            channel.connection.process_data_events(period_s)
    finally:
        # The broker may not have written these returns: then the messages are ready at its start.
        for place, not_before_ns in unanswered:
            place.not_before_ns = not_before_ns


def check_delays(broker, delays):
    """Waits for the delivery time of every message and takes all of them; the number of confirmed ones."""
    connection = broker.connect()
    channel = connection.channel()
    came = set()

    def delivered(queue):
        def callback(_, method, properties, body):
            delays.arrived(queue, method, properties, body, is_final=True)
            key = (queue, int(body.split(b":")[0]))
            if key in came:
                raise Fault(f"message {key[1]} is in {queue} twice")
            came.add(key)
            channel.basic_ack(method.delivery_tag)
        return callback

    for queue in QUEUES:
        channel.basic_consume(queue, delivered(queue))
    last_s = max((place.not_before_ns for place in delays.places.values()), default=0) / 1e9
    ends = max(last_s, time.time()) + LATE_S
    while time.time() < ends:
        connection.process_data_events(PERIOD_S)
        channel.queue_declare(QUEUES[0], passive=True)
        if time.time() > last_s and messages_left(broker) == 0:
            break
    else:
        raise Fault(f"{messages_left(broker)} delayed messages wait {LATE_S} s after the last delivery time")
    connection.close()
    for (queue, number), place in delays.places.items():
        if place.confirmed and not (place.settling or place.may_be_gone or (queue, number) in came):
            raise Fault(f"confirmed message {number} of {queue} is lost")
    confirmed = sum(place.confirmed for place in delays.places.values())
    delays.places.clear()
    return confirmed


def messages_left(broker):
    """The messages of all exchanges and queues, delayed and unacknowledged ones included. Exchanges first: a message goes from
    an exchange to its queue meanwhile, and would be seen in neither."""
    left = sum(ask(broker, f"exchanges/%2F/{exchange}")["messages_delayed"] for exchange in EXCHANGES)
    return left + sum(ask(broker, f"queues/%2F/{queue}")["messages"] for queue in QUEUES)


def ask(broker, path):
    request = urllib.request.Request(f"http://{broker.http_address}/api/{path}")
    request.add_header("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
