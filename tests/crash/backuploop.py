"""Kills a broker while it is loaded and backed up, at random instants; restores every backup that is complete and
compares it with what was confirmed. See README.md."""

import argparse
import base64
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import pika

import seeds
from broker_process import Broker
from ledger import Fault

QUEUE = "backup.work"
BODY_BYTES = 2000
# Long queues are put aside as soon as they can be, or as usual.
PAGING = ("vm_memory_high_watermark_paging_ratio = 0\n", "")


class Load(threading.Thread):
    """Publishes numbers with confirms and consumes the oldest, until the broker is gone."""

    def __init__(self, broker, first):
        super().__init__(daemon=True)
        self.broker = broker
        # Every number below is confirmed, every number below `sent` may be in the queue.
        self.confirmed = self.sent = first
        self.acked = set()
        self.ends = threading.Event()

    def run(self):
        try:
            connection = self.broker.connect()
            channel = connection.channel()
            channel.tx_select()
            channel.basic_qos(prefetch_count=30)
            persistent = pika.BasicProperties(delivery_mode=2)
            while not self.ends.is_set():
                batch = range(self.sent, self.sent + 40)
                self.sent = batch.stop
                for number in batch:
                    channel.basic_publish("", QUEUE, f"{number:012}".encode().ljust(BODY_BYTES, b"."), persistent)
                acked = []
                for _ in range(20):
                    got, _, body = channel.basic_get(QUEUE)
                    if got is None:
                        break
                    channel.basic_ack(got.delivery_tag)
                    acked.append(int(body[:12]))
                # Before the commit: an acknowledgement that is not answered may have happened.
                self.acked.update(acked)
                channel.tx_commit()
                self.confirmed = batch.stop
            connection.close()
        except (pika.exceptions.AMQPError, OSError):
            pass  # killed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, help="instead of those of the test command")
    return seeds.play("backup", parser.parse_args(), run)


def run(arguments, seed):
    """Kills a broker that is backed up; how often, or nothing after a fault."""
    rng = random.Random(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-backup-"))
    broker = Broker(arguments.leveret, folder)
    counts = {"complete": 0, "incomplete": 0, "absent": 0}
    number, ever_acked = 0, set()
    try:
        declare(broker, rng)
        rounds = 0
        while rounds < arguments.kills or not (counts["complete"] and counts["incomplete"]):
            if rounds > 20 * arguments.kills:
                raise Fault(f"no kill was of use: {counts}")
            load = Load(broker, number)
            load.start()
            time.sleep(rng.uniform(0.05, 0.5))
            target = folder / f"backup-{rounds}"
            confirmed, acked = load.confirmed, set(load.acked)
            begun = ask(broker, "backup", {"directory": str(target)})
            if rounds % 2 == 0:
                # To the end, under load; every other backup is killed midway.
                while begun["ended_ms"] is None:
                    begun = ask(broker, "backup")
                if begun["state"] != "finished":
                    raise Fault(f"a backup says {begun}")
            else:
                time.sleep(rng.uniform(0, 0.05))
            sent = load.sent
            broker.kill()
            load.join()
            rounds += 1
            code, said = broker.check(target)
            if (target / "backup.json").exists():
                counts["complete"] += 1
                if code != 0:
                    raise Fault(f"the check of a complete backup says {said}")
                expect = set(range(confirmed)) - ever_acked - load.acked
                allowed = set(range(max(sent, load.sent))) - ever_acked - acked
                compare(read(arguments.leveret, folder, target), expect, allowed)
            elif target.exists():
                counts["incomplete"] += 1
                if code == 0:
                    raise Fault(f"the check takes an incomplete backup: {said}")
            else:
                counts["absent"] += 1
            shutil.rmtree(target, ignore_errors=True)
            number = load.sent
            ever_acked |= load.acked
            start(broker, rng)
            # The living broker has lost nothing by a broker that ran on files of the same inodes.
            ever_acked |= settle(broker, set(range(load.confirmed)) - ever_acked, number)
    except Fault as fault:
        broker.process.kill()
        print(f"{counts}, seed {seed}: {fault}; see {folder}", file=sys.stderr)
        return None
    broker.kill()
    code, said = broker.check()
    if code != 0:
        print(f"seed {seed}: {said}; see {folder}", file=sys.stderr)
        return None
    shutil.rmtree(folder)
    print(json.dumps({
        "program": "backuploop", "seed": seed, "kills": rounds, **counts, "messages": number, "faults": 0}))
    return rounds


def declare(broker, rng):
    start(broker, rng)
    connection = broker.connect()
    connection.channel().queue_declare(QUEUE, durable=True)
    connection.close()


def start(broker, rng):
    broker.config.write_text(rng.choice(PAGING))
    broker.start()


def ask(broker, path, body=None):
    """What the API says."""
    request = urllib.request.Request(f"http://{broker.http_address}/api/{path}")
    request.add_header("authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=60) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        raise Fault(f"{path}: {refused.read()}") from None


def drain(broker, acks):
    """The numbers in the queue, which is left as it was unless they are acknowledged."""
    connection = broker.connect()
    channel = connection.channel()
    waiting = channel.queue_declare(QUEUE, passive=True).method.message_count
    found, last = [], 0
    while len(found) < waiting:
        got, _, body = channel.basic_get(QUEUE)
        if got is None:
            break
        found.append(int(body[:12]))
        last = got.delivery_tag
    if last and acks:
        channel.tx_select()
        channel.basic_ack(last, multiple=True)
        channel.tx_commit()
    connection.close()
    if len(found) != len(set(found)) or len(found) != waiting:
        raise Fault(f"{len(found)} messages came of {waiting}, {len(set(found))} of them different")
    return set(found)


def read(binary, folder, target):
    """The messages of a backup, by a broker that runs on it, works on it and is stopped."""
    (folder / "restored").mkdir(exist_ok=True)
    restored = Broker(binary, folder / "restored", data=target)
    restored.start()
    found = drain(restored, acks=False)
    # New files and compactions in the backup must leave the living broker's files alone.
    drain(restored, acks=True)
    if restored.errors():
        raise Fault(f"a broker on a backup says {restored.errors()}")
    restored.stop()
    return found


def compare(found, expect, allowed):
    if expect - found or found - allowed:
        raise Fault(f"the backup misses {sorted(expect - found)[:9]} and has {sorted(found - allowed)[:9]} too many")


def settle(broker, expect, below):
    """Checks the broker after its kill; the numbers that are not in it."""
    found = drain(broker, acks=False)
    if expect - found:
        raise Fault(f"the broker has lost {sorted(expect - found)[:9]}")
    if broker.errors():
        raise Fault(f"the broker says {broker.errors()}")
    return set(range(below)) - found


if __name__ == "__main__":
    sys.exit(main())
