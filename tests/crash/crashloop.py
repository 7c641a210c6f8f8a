"""Kills a broker at random instants and checks every message it had confirmed. See README.md."""

import argparse
import collections
import json
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import pika
import pika.exceptions

HOLD, WORK, BRIEF, DEAD = "crash.hold", "crash.work", "crash.brief", "crash.dead"
TTL_MS = 150
GONE = (pika.exceptions.AMQPError, OSError, EOFError)
CONFIRM_BATCH = 8


class Fault(Exception):
    """Something is not as it must be."""


def body_of(number, rng):
    payload = rng.randbytes(rng.choice((0, 10, 100, 1000, 5000, 200_000 if rng.random() < 0.02 else 50)))
    head = f"{number}:{zlib.crc32(payload):08x}:".encode()
    return head + payload


def number_of(body):
    number, crc, payload = body.split(b":", 2)
    if int(crc, 16) != zlib.crc32(payload):
        raise Fault(f"message {number.decode()} has changed")
    return int(number)


class Message:
    """What is known of one message."""

    __slots__ = ("queue", "confirmed", "settled", "settling", "purged")

    def __init__(self, queue):
        self.queue = queue
        self.confirmed = False
        self.settled = None  # "ack" or "reject", answered for
        self.settling = None  # the same, not answered for
        self.purged = False


class Ledger:
    """What clients saw."""

    def __init__(self):
        self.lock = threading.Lock()
        self.messages = {}
        self.next = 0

    def new(self, queue):
        with self.lock:
            self.next += 1
            self.messages[self.next] = Message(queue)
            return self.next


class Broker:
    def __init__(self, binary, folder, config):
        self.binary, self.folder, self.config = binary, folder, config
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self.amqp, self.http = one.getsockname()[1], other.getsockname()[1]
        self.process = None

    def start(self):
        log = open(self.folder / "broker.log", "ab")
        began = time.monotonic()
        self.process = subprocess.Popen(
            [self.binary, "--config", self.config, "--data-dir", self.folder / "data",
             "--amqp", f"127.0.0.1:{self.amqp}", "--http", f"127.0.0.1:{self.http}"],
            stdout=log, stderr=log)
        while True:
            try:
                self.connect().close()
                return time.monotonic() - began
            except GONE:
                if self.process.poll() is not None or time.monotonic() - began > 30:
                    raise Fault("the broker does not start") from None
                time.sleep(0.01)

    def connect(self):
        return pika.BlockingConnection(pika.ConnectionParameters(
            "127.0.0.1", self.amqp, heartbeat=0, socket_timeout=10, blocked_connection_timeout=10))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def declare(channel):
    channel.exchange_declare("crash.dlx", "fanout", durable=True)
    channel.queue_declare(DEAD, durable=True)
    channel.queue_bind(DEAD, "crash.dlx")
    dlx = {"x-dead-letter-exchange": "crash.dlx"}
    channel.queue_declare(HOLD, durable=True)
    channel.queue_declare(WORK, durable=True, arguments=dlx)
    channel.queue_declare(BRIEF, durable=True, arguments={**dlx, "x-message-ttl": TTL_MS})


def publish(broker, ledger, seed, stop):
    rng = random.Random(seed)
    persistent = pika.BasicProperties(delivery_mode=2)
    try:
        channel = broker.connect().channel()
        confirmed, numbers = threading.Event(), {}

        def on_confirm(frame):
            method = frame.method
            if not isinstance(method, pika.spec.Basic.Ack):
                return
            tags = [t for t in numbers if t <= method.delivery_tag] if method.multiple else [method.delivery_tag]
            for tag in tags:
                number = numbers.pop(tag, None)
                if number is not None:
                    ledger.messages[number].confirmed = True
            if not numbers:
                confirmed.set()

        channel._impl.confirm_delivery(on_confirm)
        channel.connection.process_data_events(0.01)
        tag = 0
        while not stop.is_set():
            confirmed.clear()
            for _ in range(rng.randint(1, CONFIRM_BATCH)):
                queue = rng.choice((HOLD, WORK, WORK, BRIEF))
                number = ledger.new(queue)
                tag += 1
                numbers[tag] = number
                channel._impl.basic_publish("", queue, body_of(number, rng), persistent)
            while numbers and not stop.is_set():
                channel.connection.process_data_events(0.005)
    except GONE:
        pass


def work(broker, ledger, seed, stop):
    """Gets, then acks, rejects or keeps; a method with an answer now and then."""
    rng = random.Random(seed)
    try:
        channel = broker.connect().channel()
        pending = []
        while not stop.is_set():
            method, _, body = channel.basic_get(WORK)
            if method is None:
                channel.connection.process_data_events(0.005)
                continue
            message = ledger.messages[number_of(body)]
            fate = rng.random()
            if fate < 0.6:
                message.settling = "ack"
                channel.basic_ack(method.delivery_tag)
                pending.append(message)
            elif fate < 0.8:
                message.settling = "reject"
                channel.basic_reject(method.delivery_tag, requeue=False)
                pending.append(message)
            elif fate < 0.9:
                channel.basic_reject(method.delivery_tag, requeue=True)
            if rng.random() < 0.2:
                channel.basic_qos(prefetch_count=0)
                for one in pending:
                    one.settled = one.settling
                pending.clear()
    except GONE:
        pass


def topology(broker, names, seed, stop):
    """Declares, purges and deletes queues of its own, and knows which must be there."""
    rng = random.Random(seed)
    try:
        channel = broker.connect().channel()
        while not stop.is_set():
            name = f"crash.t{rng.randint(0, 20)}"
            if names.get(name) is True and rng.random() < 0.5:
                names[name] = None
                channel.queue_delete(name)
                names[name] = False
            else:
                if names.get(name) is not True:
                    names[name] = None
                channel.queue_declare(name, durable=True)
                names[name] = True
            channel.connection.process_data_events(0.01)
    except GONE:
        pass


def drain(channel, queue):
    """Everything in a queue, acknowledged: numbers with how often each came."""
    seen = collections.Counter()
    while True:
        method, properties, body = channel.basic_get(queue)
        if method is None:
            return seen
        seen[number_of(body)] += 1
        if queue == DEAD and not (properties.headers or {}).get("x-death"):
            raise Fault(f"message {number_of(body)} is dead without x-death")
        channel.basic_ack(method.delivery_tag)


def check(broker, ledger, names):
    """Compares what is in the broker with the ledger; both are empty afterwards."""
    connection = broker.connect()
    channel = connection.channel()
    for name, expected in names.items():
        try:
            connection.channel().queue_declare(name, passive=True)
            there = True
        except pika.exceptions.ChannelClosedByBroker:
            there = False
        if expected is not None and there != expected:
            raise Fault(f"queue {name} is {'' if there else 'not '}there")
        names[name] = there
    time.sleep(TTL_MS / 1000 + 0.05)
    found = {queue: drain(channel, queue) for queue in (HOLD, WORK, BRIEF, DEAD)}
    channel.basic_qos(prefetch_count=0)
    connection.close()
    if found[BRIEF]:
        raise Fault(f"{len(found[BRIEF])} messages outlived their TTL")
    counts = collections.Counter()
    for number, message in ledger.messages.items():
        own, dead = found[message.queue][number], found[DEAD][number]
        total = own + dead
        if total > 1:
            raise Fault(f"message {number} of {message.queue} is there {total} times")
        if message.settled == "ack" and total:
            raise Fault(f"message {number} is back after its acknowledgement was durable")
        if message.settled == "reject" and not dead:
            raise Fault(f"message {number} was rejected and is not dead-lettered")
        may_be_gone = message.settled == "ack" or message.settling == "ack"
        if message.confirmed and not total and not may_be_gone:
            raise Fault(f"confirmed message {number} of {message.queue} is lost")
        if dead and message.queue == HOLD:
            raise Fault(f"message {number} of {HOLD} is dead")
        if dead and message.queue == WORK and message.settling != "reject":
            raise Fault(f"message {number} is dead and nobody rejected it")
        counts["confirmed"] += message.confirmed
        counts["settled"] += message.settled is not None
    everything = set().union(*found.values())
    if invented := everything - ledger.messages.keys():
        raise Fault(f"nobody published {sorted(invented)[:5]}")
    ledger.messages.clear()
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--minutes", type=float, help="instead of a number of kills")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--durability", default="fsync", choices=("fsync", "os"))
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-crash-"))
    config = folder / "rabbitmq.conf"
    config.write_text(f"durability = {arguments.durability}\n")
    broker = Broker(arguments.leveret, folder, config)
    ledger, names = Ledger(), {}
    totals, restarts, kills = collections.Counter(), [], 0
    ends = time.monotonic() + arguments.minutes * 60 if arguments.minutes else None
    try:
        restarts.append(broker.start())
        while time.monotonic() < ends if ends else kills < arguments.kills:
            connection = broker.connect()
            declare(connection.channel())
            connection.close()
            stop = threading.Event()
            threads = [
                threading.Thread(target=publish, args=(broker, ledger, rng.random(), stop), daemon=True)
                for _ in range(2)]
            threads.append(threading.Thread(target=work, args=(broker, ledger, rng.random(), stop), daemon=True))
            threads.append(threading.Thread(target=topology, args=(broker, names, rng.random(), stop), daemon=True))
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.05, 0.8))
            broker.kill()
            kills += 1
            stop.set()
            for thread in threads:
                thread.join(15)
            restarts.append(broker.start())
            # Sometimes the next life goes on with what is there.
            if rng.random() < 0.6:
                totals += check(broker, ledger, names)
        totals += check(broker, ledger, names)
    except Fault as fault:
        broker.process.kill()
        print(f"after {kills} kills, seed {arguments.seed}: {fault}; see {folder}", file=sys.stderr)
        return 1
    broker.kill()
    shutil.rmtree(folder)
    restarts.sort()
    print(json.dumps({
        "program": "crashloop", "seed": arguments.seed, "durability": arguments.durability, "kills": kills,
        "confirmed": totals["confirmed"], "settled": totals["settled"], "faults": 0,
        "restart_ms": {"median": round(restarts[len(restarts) // 2] * 1000), "most": round(restarts[-1] * 1000)},
    }))
    print(f"{kills} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
