"""Measures how long a cluster of three confirms nothing when its leader is killed or falls silent. See README.md."""

import argparse
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

import pika

from cluster_processes import GONE, NAMES, Cluster
from flood import QUEUE, Flood, FloodWorkload, check_flood

PROBE = "crash.probe"
PERSISTENT = pika.BasicProperties(delivery_mode=2)
BETWEEN_S = 1.0


def fill(cluster, flood, messages):
    """Publishes messages until so many wait."""
    workload = FloodWorkload(cluster, flood)
    while flood.last < messages:
        time.sleep(0.01)
        if not workload.thread.is_alive():
            workload.end()
            workload = FloodWorkload(cluster, flood)
    workload.end()


def confirmed_by(cluster, names):
    """Tries these nodes in turn until one confirms a publish; its name."""
    while True:
        for name in names:
            try:
                connection = cluster.nodes[name].connect()
                channel = connection.channel()
                channel.queue_declare(PROBE, durable=True)
                channel.confirm_delivery()
                channel.basic_publish("", PROBE, b"probe", PERSISTENT)
                connection.close()
                return name
            except GONE:
                pass


def measure(cluster, runs, harm, heal):
    """Seconds until another node confirms, for each run, sorted."""
    found = []
    for _ in range(runs):
        leader = confirmed_by(cluster, NAMES)
        time.sleep(BETWEEN_S + random.random())
        node = cluster.nodes[leader]
        began = time.monotonic()
        harm(node)
        confirmed_by(cluster, [name for name in NAMES if name != leader])
        found.append(time.monotonic() - began)
        heal(node)
        node.wait_until(node.is_listening, 60)
        time.sleep(BETWEEN_S)
    return sorted(found)


def figures(seconds):
    def at(share):
        return round(seconds[min(len(seconds) - 1, int(len(seconds) * share))] * 1000)
    return {"p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "most_ms": at(1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--messages", type=int, default=1_000_000, help="that wait")
    parser.add_argument("--runs", type=int, default=30, help="of each kind")
    parser.add_argument("--queue-type", default="quorum", choices=("classic", "quorum"))
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-failover-"))
    cluster, flood = Cluster(arguments.leveret, folder), Flood()
    try:
        cluster.start()
        cluster.set_default_queue_type(arguments.queue_type)
        fill(cluster, flood, arguments.messages)
        killed = measure(cluster, arguments.runs, lambda node: node.kill(), lambda node: node.launch())
        silent = measure(
            cluster, arguments.runs, lambda node: node.process.send_signal(signal.SIGSTOP),
            lambda node: node.process.send_signal(signal.SIGCONT))
        cluster.served()
        confirmed = check_flood(cluster, flood)
    finally:
        cluster.stop()
        shutil.rmtree(folder)
    print(json.dumps({
        "program": "failoverfigures", "queue": QUEUE, "queue_type": arguments.queue_type, "confirmed": confirmed,
        "runs": arguments.runs, "kill -9": figures(killed), "silent": figures(silent)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
