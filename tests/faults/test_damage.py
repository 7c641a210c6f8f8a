"""Files of a data directory that are damaged while no broker runs: every loss is reported, and nothing wrong is served.

`leveret check` and the broker say which file it is and where. What is delivered afterwards was waiting before and is
unchanged. What had been acknowledged stays gone, unless the damaged file had the acknowledgement.
"""

import base64
import collections
import dataclasses
import hashlib
import itertools
import json
import re
import shutil
import zlib
from pathlib import Path

import pika
import pika.exceptions
import pytest

import damage
from ledger import Fault, body_of, number_of

PARTS = 4
FLIPS_PER_REGION = 1
OTHERS_PER_FILE = 1
FAILURES_MAX = 5
LOST_MESSAGES = 300
TTL_MS = 600_000  # longer than any machine takes to publish them
TOLD = re.compile(r"(\S+) at (\d+): ([^,]+), (\d+) bytes")
VHOSTS = ("/", "other")
VHOST_FOLDERS = {"vhosts/1": "/", "vhosts/2": "other"}
PERSISTENT = pika.BasicProperties(delivery_mode=2)
SALT = b"salt"
WAITING = {"/": ("wait", "dead", "limited", "large"), "other": ("wait",)}


def definitions():
    password_hash = base64.b64encode(SALT + hashlib.sha256(SALT + b"secret").digest()).decode()
    queue = {"durable": True, "auto_delete": False}
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    return {
        "vhosts": [{"name": name} for name in VHOSTS],
        "users": [
            {"name": "guest", "tags": "administrator", "password_hash": password_hash,
             "hashing_algorithm": "rabbit_password_hashing_sha256"}],
        "permissions": [
            {"user": "guest", "vhost": name, "configure": ".*", "write": ".*", "read": ".*"} for name in VHOSTS],
        "policies": [
            {"vhost": "/", "name": "short", "pattern": "^limited$", "apply-to": "queues", "priority": 1,
             "definition": {"max-length": 5}}],
        "exchanges": [{"name": "in", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False}],
        "queues": [
            *({"name": name, "vhost": "/", "arguments": {}, **queue} for name in ("wait", "dead", "limited", "large")),
            {"name": "work", "vhost": "/", "arguments": dead, **queue},
            {"name": "brief", "vhost": "/", "arguments": {**dead, "x-message-ttl": 1}, **queue},
            {"name": "wait", "vhost": "other", "arguments": {}, **queue}],
        "bindings": [
            {"source": "in", "vhost": "/", "destination": "wait", "destination_type": "queue",
             "routing_key": "a.#", "arguments": {}}],
    }


def connect(broker, vhost):
    host, port = broker.address
    return pika.BlockingConnection(pika.ConnectionParameters(
        host, port, vhost, pika.PlainCredentials("guest", "secret"), heartbeat=0))


@dataclasses.dataclass(frozen=True)
class Found:
    """Where a message is."""

    vhost: str
    queue: str
    redelivered: bool = dataclasses.field(compare=False)


class Original:
    """A directory of a broker that was stopped, and what is in it."""

    def __init__(self, broker, rng):
        broker.config.write_text(f"load_definitions = {broker.folder / 'definitions.json'}\n")
        (broker.folder / "definitions.json").write_text(json.dumps(definitions()))
        broker.start()
        broker.config.write_text("")
        self.data = broker.data
        self.numbers = itertools.count(1)
        self.settled = set()
        for vhost in VHOSTS:
            with connect(broker, vhost) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                self.fill(channel, vhost, rng)
        assert broker.stop() == 0
        code, text = broker.check()
        assert code == 0 and "nothing is wrong" in text, text
        self.files = {path.relative_to(self.data): octets for path, octets in broker.files().items()}
        self.waiting = self.read(broker)
        # Acknowledged, or dropped for the policy.
        self.gone = set(range(1, next(self.numbers))) - self.waiting.keys()
        assert len(self.waiting) > 60 and self.gone > self.settled and len(self.settled) > 100
        shutil.rmtree(self.data)
        for path, octets in self.files.items():
            (self.data / path).parent.mkdir(parents=True, exist_ok=True)
            (self.data / path).write_bytes(octets)
        counts = collections.Counter(path.parent for path in self.files if path.suffix == ".log")
        assert counts[Path("vhosts/1")] > 2, counts

    def publish(self, channel, queue, rng, exchange=""):
        number = next(self.numbers)
        channel.basic_publish(exchange, queue, body_of(number, rng), PERSISTENT)

    def fill(self, channel, vhost, rng):
        for _ in range(20):
            self.publish(channel, "wait", rng)
        if vhost != "/":
            return
        for _ in range(10):
            self.publish(channel, "a.b", rng, "in")
        for _ in range(8):
            self.publish(channel, "limited", rng)
        for _ in range(150):
            self.publish(channel, "work", rng)
        for fate in range(140):
            method, _, body = channel.basic_get("work")
            if fate % 10 == 0:
                channel.basic_reject(method.delivery_tag, requeue=False)
            else:
                self.settled.add(number_of(body))
                channel.basic_ack(method.delivery_tag)
        for _ in range(5):
            self.publish(channel, "brief", rng)
        for _ in range(3):
            number = next(self.numbers)
            payload = rng.randbytes(700_000)
            channel.basic_publish(
                "", "large", f"{number}:{zlib.crc32(payload):08x}:".encode() + payload, PERSISTENT)
        channel.basic_qos(prefetch_count=0)

    def read(self, broker):
        """What a broker on its directory has."""
        broker.start()
        found = contents(broker)
        broker.kill()
        return found


def is_down(broker, vhost):
    try:
        connect(broker, vhost).close()
    except pika.exceptions.AMQPConnectionError as refused:
        assert f"(541) \"INTERNAL_ERROR - vhost '{vhost}' is down\"" in str(refused), refused
        return True
    return False


def contents(broker, vhosts=VHOSTS):
    """Every message in the broker, by number. Raises Fault if one has changed or is there twice."""
    found = {}
    for vhost in vhosts:
        with connect(broker, vhost) as connection:
            for queue in (*WAITING[vhost], "work"):
                channel = connection.channel()
                try:
                    while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
                        number = number_of(got[2])
                        if number in found:
                            raise Fault(f"message {number} is there twice")
                        found[number] = Found(vhost, queue, got[0].redelivered)
                except pika.exceptions.ChannelClosedByBroker as closed:
                    if closed.reply_code != 404:
                        raise
    return found


class Case:
    """One kind of damage, done to a copy of the directory."""

    def __init__(self, original, broker, what):
        self.original, self.broker, self.what = original, broker, what
        shutil.rmtree(broker.data, ignore_errors=True)
        shutil.copytree(original.data, broker.data)
        what.do(broker.data)

    def run(self):
        """How it ended; raises Fault."""
        before = self.files()
        code, text = self.broker.check()
        self.expect(code in (0, 1) and "panicked" not in text, text)
        self.expect(self.files() == before, "check has changed something")
        self.broker.launch()
        if not self.broker.wait_until(self.broker.is_listening, 120):
            self.refused(before, code, text)
            return "refused"
        try:
            down = [vhost for vhost in VHOSTS if is_down(self.broker, vhost)]
            found = contents(self.broker, [vhost for vhost in VHOSTS if vhost not in down])
        finally:
            self.broker.kill()
        if down:
            self.costs_its_vhosts(down, found, before, text)
            return "down"
        self.expect("panicked" not in self.broker.said(), self.broker.said())
        lost = self.original.waiting.keys() - found.keys()
        back = found.keys() - self.original.waiting.keys()
        self.expect(back <= self.original.gone, f"nobody published {sorted(back)[:5]}")
        moved = [n for n in found.keys() - back if found[n] != self.original.waiting[n]]
        errors = "\n".join(self.broker.errors())
        if not (lost or back or moved) and code == 0:
            self.expect(not errors, errors)
            return "harmless"
        what = f"lost {sorted(lost)[:5]}, back {sorted(back)[:5]}, moved {moved[:5]}"
        self.expect(code == 1, f"{what}, and check says {text}")
        for told in (text, errors):
            self.expect(self.is_told(told), f"{what}, and this is said: {told}")
        # A message that is delivered again is marked, unless it has just died (again).
        harmed = {VHOST_FOLDERS[str(path.parent)] for path in self.paths()}
        known = [place.redelivered for place in found.values() if place.vhost in harmed and place.queue != "dead"]
        self.expect(all(known), f"{what}, and not marked as redelivered")
        return "reported, acknowledged messages are back" if back else "reported"

    def files(self):
        return {path: octets for path, octets in self.broker.files().items() if path.name != "lock"}

    def costs_its_vhosts(self, down, found, before, text):
        """Those of the damaged files, and nothing of the others."""
        self.expect(set(down) == {VHOST_FOLDERS[str(path.parent)] for path in self.paths()}, f"{down} are down")
        others = {number for number, place in self.original.waiting.items() if place.vhost not in down}
        self.expect(found.keys() == others, f"lost {sorted(others - found.keys())[:5]} of the other vhost")
        self.is_told_and_unchanged(before, text, len(down))

    def refused(self, before, code, text):
        self.expect(self.broker.process.returncode == 1, f"exit code {self.broker.process.returncode}")
        self.expect(code == 1, f"check says {text}")
        self.expect(not all(str(path.parent) in VHOST_FOLDERS for path in self.paths()), "others could be served")
        self.is_told_and_unchanged(before, text, 1)

    def is_told_and_unchanged(self, before, text, errors_expected):
        errors = self.broker.errors()
        self.expect(len(errors) == errors_expected, f"{errors}")
        for told in (text, *errors):
            self.expect(any(path.name in told for path in self.paths()), f"this is said: {told}")
        for path in self.paths():
            folder = self.broker.data / path.parent
            now = {file: octets for file, octets in self.files().items() if file.parent == folder}
            then = {file: octets for file, octets in before.items() if file.parent == folder}
            self.expect(now == then, "something was changed")

    def paths(self):
        return [path for path in (self.what.path, self.what.other) if path]

    def is_told(self, text):
        """Whether the damaged place is named."""
        places = TOLD.findall(text)
        if self.what.kind != "flip":
            return any(path.name == name for path in self.paths() for name, *_ in places)
        at = self.what.offset()
        return any(
            name == self.what.path.name and int(offset) <= at < int(offset) + int(size)
            for name, offset, _, size in places)

    def expect(self, holds, otherwise):
        if not holds:
            raise Fault(otherwise)


@pytest.mark.parametrize("part", range(PARTS))
def test_damage_is_reported_or_has_no_effect(part, broker, rng, pytestconfig):
    all_positions = pytestconfig.getoption("--all-positions")
    original = Original(broker, rng)
    copy = type(broker)(broker.binary, broker.folder, "", "")
    copy.data = broker.folder / "copy"
    cases = [
        *damage.flips(original.files, rng, None if all_positions else FLIPS_PER_REGION),
        *damage.others(original.files, rng, OTHERS_PER_FILE)]
    if all_positions:
        cases = cases[part::PARTS]
    failures, outcomes = [], collections.Counter()
    for what in cases:
        try:
            outcomes[Case(original, copy, what).run()] += 1
        except Fault as fault:
            failures.append(f"{what}: {str(fault)[:1500]}")
            shutil.copytree(copy.data, broker.folder / f"failure-{len(failures)}", dirs_exist_ok=True)
            if len(failures) == FAILURES_MAX:
                break
        finally:
            if copy.process and copy.process.poll() is None:
                copy.kill()
    print(dict(outcomes))
    assert not failures, "\n".join(failures)
    assert all(outcomes[outcome] for outcome in ("harmless", "reported", "down", "refused")), outcomes


def test_messages_come_back_when_the_declaration_of_their_queue_is_lost(broker, start_at, rng):
    """One byte of it has changed. Its messages are intact: they are found, reported, kept and served, beyond their TTL."""
    broker.start()
    with connect_as_guest(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("other", durable=True)
        channel.queue_declare("orders", durable=True, arguments={"x-message-ttl": TTL_MS})
        channel.queue_bind("orders", "amq.fanout")
        for number in range(LOST_MESSAGES):
            properties = pika.BasicProperties(delivery_mode=2, expiration=str(TTL_MS))
            channel.basic_publish("", "orders", body_of(number, rng), properties)
    assert broker.stop() == 0
    path, at = declaration_of(broker, b"orders")
    octets = bytearray(path.read_bytes())
    octets[at] ^= 1
    path.write_bytes(octets)
    lost = f"has lost its declaration: its {LOST_MESSAGES} messages are kept in queue 'orders', under its old name"
    code, text = broker.check()
    assert code == 1 and "told the declaration of a queue" in text and lost in text, text
    later_s = 2 * TTL_MS // 1000
    start_at(later_s)
    errors = "\n".join(broker.errors())
    assert "told the declaration of a queue" in errors and f"{path.name} at " in errors and lost in errors, errors
    broker.kill()  # before anything else is written
    for _ in range(2):
        start_at(later_s)
        assert broker.said().count("has lost its declaration") == 0, broker.said()
        with connect_as_guest(broker) as connection:
            channel = connection.channel()
            assert channel.queue_declare("orders", passive=True).method.message_count == LOST_MESSAGES
            # It is a queue again that messages of its exchanges come to, and whose own leave for good.
            channel.confirm_delivery()
            channel.basic_publish("amq.fanout", "", "one more", PERSISTENT, mandatory=True)
            assert channel.queue_purge("other").method.message_count == 0
            bodies = [channel.basic_get("orders") for _ in range(LOST_MESSAGES + 1)]
            assert all(method.redelivered for method, *_ in bodies[:-1])
            assert {number_of(body) for *_, body in bodies[:-1]} == set(range(LOST_MESSAGES))
            assert bodies[-1][2] == b"one more"
            channel.basic_nack(0, multiple=True, requeue=True)
            channel.basic_get("orders")
            channel.basic_ack(0, multiple=True)
            channel.queue_purge("orders")
            for number in range(LOST_MESSAGES):
                channel.basic_publish("", "orders", body_of(number, rng), PERSISTENT)
        broker.kill()


def declaration_of(broker, name):
    """Where the record is that declares a queue: the first that names it."""
    for path in sorted((broker.data / "vhosts/1").glob("*.log")):
        at = path.read_bytes().find(name)
        if at >= 0:
            return path, at + len(name) + 2
    raise AssertionError(f"no log names {name}")


def connect_as_guest(broker):
    return pika.BlockingConnection(pika.ConnectionParameters(*broker.address, heartbeat=0))
