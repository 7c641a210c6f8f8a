"""Measures what clients of a cluster of three notice while every node is restarted, and every disk replaced, one after the
other. See README.md."""

import argparse
import itertools
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import urllib.error

import pika

from cluster_processes import GONE, NAMES, Cluster
from failoverfigures import fill
from flood import Flood, check_flood
from ledger import Fault

CONFIG = "cluster.replace_lost_member = true\n"
PERSISTENT = pika.BasicProperties(delivery_mode=2)
QUEUE = "crash.rolling"
BYSTANDER = "bystander"
BYSTANDER_PAUSE_S = 0.01
WITHIN_S = 120.0
SETTLES_S = 1.0


class Publisher(threading.Thread):
    """Publishes one message after the other, each until it is confirmed, by way of any node. `waits` has the seconds of each."""

    def __init__(self, cluster, vhost, number, pause_s=0.0):
        super().__init__(daemon=True)
        self.cluster, self.vhost, self.number, self.pause_s = cluster, vhost, number, pause_s
        self.waits, self.ends = [], threading.Event()
        self.start()

    def run(self):
        connection = channel = None
        for nth in itertools.count():
            if self.ends.is_set():
                break
            began, confirmed = time.monotonic(), False
            while not confirmed:
                try:
                    if channel is None:
                        connection = self.connect()
                        channel = connection.channel()
                        channel.confirm_delivery()
                    channel.basic_publish("", QUEUE, f"{self.number}.{nth}".encode(), PERSISTENT)
                    confirmed = True
                except GONE:
                    channel = None
            self.waits.append(time.monotonic() - began)
            time.sleep(self.pause_s)
        connection.close()

    def connect(self):
        host, port = self.cluster.nodes[random.choice(NAMES)].address
        return pika.BlockingConnection(pika.ConnectionParameters(
            host, port, self.vhost, heartbeat=0, socket_timeout=5, blocked_connection_timeout=10))

    def confirmed(self):
        """Names of all messages that were confirmed, once it has ended."""
        self.ends.set()
        self.join()
        return {f"{self.number}.{nth}" for nth in range(len(self.waits))}


def wait_until(holds, what):
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        if time.monotonic() > deadline:
            raise Fault(f"not within {WITHIN_S} s: {what}")
        time.sleep(0.05)


def asked(cluster, name, path):
    """True if a health check of a node passes."""
    try:
        cluster.request(name, "GET", path)
    except (urllib.error.HTTPError, OSError):
        return False
    return True


def is_well(cluster):
    """True if every node may stop without harm: all replicas are up to date."""
    return all(asked(cluster, name, "/api/health/checks/node-is-quorum-critical") for name in NAMES)


def restart(cluster, name):
    """As an upgrade does it: the node gives away its leads, ends, and starts again."""
    node = cluster.nodes[name]
    cluster.request(name, "POST", f"/api/nodes/{cluster.full_names[name]}/actions", {"action": "drain"})
    node.stop()
    node.launch()


def replace_disk(cluster, name):
    """The node dies with its disk, and starts with an empty one."""
    node = cluster.nodes[name]
    node.kill()
    shutil.rmtree(node.data)
    node.launch()


def roll(cluster, publishers, change):
    """Changes one node after the other; what the publishers have waited meanwhile."""
    before = [len(one.waits) for one in publishers]
    began = time.monotonic()
    for name in NAMES:
        wait_until(lambda: is_well(cluster), "all replicas are up to date")
        time.sleep(SETTLES_S)
        change(cluster, name)
        wait_until(lambda name=name: cluster.nodes[name].is_listening(), f"node {name} serves clients")
    wait_until(lambda: is_well(cluster), "all replicas are up to date")
    waits = [sorted(one.waits[first:]) for one, first in zip(publishers, before)]
    *loads, bystander = waits
    return {"s": round(time.monotonic() - began, 1), "load": figures(sorted(itertools.chain(*loads))),
            "bystander": figures(bystander)}


def figures(seconds):
    def at(share):
        return round(seconds[min(len(seconds) - 1, int(len(seconds) * share))] * 1000, 1)
    return {"publishes": len(seconds), "p50_ms": at(0.5), "p99_ms": at(0.99), "most_ms": at(1)}


def found(cluster, vhost):
    """All messages that wait in a vhost."""
    host, port = cluster.nodes[NAMES[0]].address
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, vhost))
    channel, bodies = connection.channel(), []
    while (got := channel.basic_get(QUEUE, auto_ack=True))[0]:
        bodies.append(got[2].decode())
    connection.close()
    return bodies


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--publishers", type=int, default=8, help="beside the bystander, in the default vhost")
    parser.add_argument("--messages", type=int, default=1_000_000, help="that wait in other queues")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-rolling-"))
    cluster, flood, rounds = Cluster(arguments.leveret, folder, CONFIG), Flood(), []
    try:
        cluster.start()
        cluster.request("a", "PUT", f"/api/vhosts/{BYSTANDER}", {})
        for vhost in ("%2F", BYSTANDER):
            wait_until(lambda vhost=vhost: cluster.request("a", "GET", f"/api/vhosts/{vhost}")["leader"], "a leader")
            cluster.request("a", "PUT", f"/api/queues/{vhost}/{QUEUE}", {
                "durable": True, "arguments": {"x-queue-type": "quorum"}})
        fill(cluster, flood, arguments.messages)
        publishers = [Publisher(cluster, "/", number) for number in range(arguments.publishers)]
        publishers.append(Publisher(cluster, BYSTANDER, "bystander", BYSTANDER_PAUSE_S))
        for _ in range(arguments.rounds):
            rounds.append({"restarts": roll(cluster, publishers, restart), "disks": roll(cluster, publishers, replace_disk)})
        confirmed = set().union(*(one.confirmed() for one in publishers))
        waiting = [body for vhost in ("/", BYSTANDER) for body in found(cluster, vhost)]
        lost = confirmed - set(waiting)
        check_flood(cluster, flood)
    finally:
        cluster.stop()
        shutil.rmtree(folder)
    # A message that was on its way when its connection ended is published again: it may be there twice.
    print(json.dumps({"program": "rollingfigures", "confirmed": len(confirmed), "lost": len(lost),
                      "published_again": len(waiting) - len(set(waiting)), "rounds": rounds}))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
