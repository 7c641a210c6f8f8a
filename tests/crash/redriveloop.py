"""Kills a broker while it redrives, at random instants, and checks that every message is in exactly one of two queues.
See README.md."""

import argparse
import base64
import json
import pathlib
import random
import shutil
import sys
import tempfile
import time
import urllib.request

import pika

import seeds
from broker_process import Broker
from ledger import Fault, body_of, number_of

DEAD, WORK = "redrive.dead", "redrive.work"
# Long queues are put aside as soon as they can be, or as usual.
PAGING = ("vm_memory_high_watermark_paging_ratio = 0\n", "")
FILL_BATCH = 500
RATE = 10_000
ENDED_S = 20.0  # so long after its beginning a job without a rate is over on any machine


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--seed", type=int, help="instead of those of the test command")
    return seeds.play("redrive", parser.parse_args(), run)


def run(arguments, seed):
    """Kills a broker that redrives; how often, or nothing after a fault."""
    rng = random.Random(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-redrive-"))
    broker = Broker(arguments.leveret, folder)
    kills, midway, finished, ends_first = 0, 0, 0, True
    try:
        start(broker, rng)
        fill(broker, arguments.messages, rng)
        expected = set(range(arguments.messages))
        while kills < arguments.kills or not (midway and finished):
            if kills > 10 * arguments.kills:
                raise Fault(f"{midway} kills came midway, {finished} after the end")
            source, target, to = rng.choice((
                (DEAD, WORK, "origin"), (DEAD, WORK, "first"), (WORK, DEAD, {"queue": DEAD}),
                (WORK, DEAD, {"exchange": "amq.fanout"})))
            gather(broker, source)
            before = look(broker, source)
            # Every other job is killed midway, which takes a job with a rate: without one it is over in no time.
            ends_first = not ends_first
            wishes = {"limit": rng.choice((None, 1000))} if ends_first else {"rate": RATE}
            lives_s = ENDED_S if ends_first else rng.uniform(0, arguments.messages / RATE)
            began = time.monotonic()
            job = ask(broker, f"queues/%2F/{source}/redrive", {"to": to, **wishes})
            while job["ended_ms"] is None and time.monotonic() - began < lives_s:
                job = ask(broker, "redrives/" + job["id"])
            broker.kill()
            kills += 1
            start(broker, rng)
            if rng.random() < 0.5:
                # Once more, while the job goes on.
                time.sleep(rng.uniform(0, 0.1))
                broker.kill()
                kills += 1
                start(broker, rng)
            resumed = end_of(broker, job["id"])
            found = check(broker, expected)
            moved = len(before & found[target])
            if job["ended_ms"] is None:
                midway += 0 < job["moved"] < len(before)
                if resumed["state"] != "finished" or moved != len(before):
                    raise Fault(f"{moved} of {len(before)} messages have moved, and the job that went on says {resumed}")
            else:
                finished += 1
                if resumed != job or job["state"] != "finished" or job["moved"] != moved:
                    raise Fault(f"{moved} messages have moved, and the job said {job}, after the start {resumed}")
    except Fault as fault:
        broker.process.kill()
        print(f"after {kills} kills, seed {seed}: {fault}; see {folder}", file=sys.stderr)
        return None
    broker.kill()
    shutil.rmtree(folder)
    print(json.dumps({
        "program": "redriveloop", "seed": seed, "kills": kills, "messages": arguments.messages,
        "killed_midway": midway, "finished_before": finished, "faults": 0}))
    return kills


def start(broker, rng):
    broker.config.write_text(rng.choice(PAGING))
    broker.start()


def ask(broker, path, body=None):
    """What the API says."""
    request = urllib.request.Request(f"http://{broker.http_address}/api/{path}")
    request.add_header("authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request, data, timeout=60) as answer:
        return json.loads(answer.read())


def finish(broker, queue, body):
    """A job to its end."""
    job = end_of(broker, ask(broker, f"queues/%2F/{queue}/redrive", body)["id"])
    if job["state"] != "finished":
        raise Fault(f"a job did not finish: {job}")


def end_of(broker, id):
    """The job, when it has ended."""
    while (job := ask(broker, "redrives/" + id))["ended_ms"] is None:
        time.sleep(0.01)
    return job


def gather(broker, queue):
    """Everything goes into one of the queues; into that of the dead by death."""
    finish(broker, DEAD, {"to": {"queue": WORK}})
    if queue == DEAD:
        nack_all(broker, WORK)


def fill(broker, count, rng):
    """Messages that died in the one queue and wait in the other."""
    connection = broker.connect()
    channel = connection.channel()
    channel.queue_declare(DEAD, durable=True)
    channel.queue_bind(DEAD, "amq.fanout")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}
    channel.queue_declare(WORK, durable=True, arguments=arguments)
    channel.tx_select()
    persistent = pika.BasicProperties(delivery_mode=2)
    for first in range(0, count, FILL_BATCH):
        for number in range(first, min(first + FILL_BATCH, count)):
            channel.basic_publish("", WORK, body_of(number, rng), persistent)
        channel.tx_commit()
    connection.close()
    nack_all(broker, WORK)


def nack_all(broker, queue):
    """Everything in a queue dies; answered when it has."""
    connection = broker.connect()
    channel = connection.channel()
    waiting = channel.queue_declare(queue, passive=True).method.message_count
    if waiting:
        for method, _, _ in channel.consume(queue):
            waiting -= 1
            if not waiting:
                channel.basic_nack(method.delivery_tag, multiple=True, requeue=False)
                break
        channel.cancel()
    channel.basic_qos(prefetch_count=0)
    connection.close()


def look(broker, queue):
    """The numbers of all messages in a queue, each once; they stay."""
    connection = broker.connect()
    channel = connection.channel()
    waiting = channel.queue_declare(queue, passive=True).method.message_count
    numbers = set()
    if waiting:
        for _, _, body in channel.consume(queue):
            number = number_of(body)
            if number in numbers:
                raise Fault(f"message {number} is twice in {queue}")
            numbers.add(number)
            waiting -= 1
            if not waiting:
                break
    connection.close()
    return numbers


def check(broker, expected):
    """Every message is in exactly one queue; which are where."""
    found = {queue: look(broker, queue) for queue in (DEAD, WORK)}
    if twice := found[DEAD] & found[WORK]:
        raise Fault(f"{len(twice)} messages are in both queues, as {min(twice)}")
    if lost := expected - found[DEAD] - found[WORK]:
        raise Fault(f"{len(lost)} messages are lost, as {min(lost)}")
    if invented := (found[DEAD] | found[WORK]) - expected:
        raise Fault(f"nobody published {min(invented)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
