"""Measures how long a cluster of three confirms nothing when its leader is killed or falls silent. See README.md."""

import argparse
import base64
import contextlib
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import pika

from cluster_processes import GONE, Cluster
from flood import QUEUE, Flood, FloodWorkload, check_flood

PROBE = "crash.probe"
PERSISTENT = pika.BasicProperties(delivery_mode=2)
BETWEEN_S = 1.0


class PeerNode:
    """A node of RabbitMQ: a program starts it at a port (`start PORT`), and tells its process (`pid PORT`)."""

    def __init__(self, program, port):
        self.program, self.port, self.address = program, port, ("127.0.0.1", port)
        self.http_address = f"127.0.0.1:1{port}"

    def pid(self):
        return int(subprocess.run([self.program, "pid", str(self.port)], capture_output=True, text=True, check=False).stdout)

    def connect(self):
        return pika.BlockingConnection(pika.ConnectionParameters(*self.address, heartbeat=0, socket_timeout=10))

    def is_listening(self):
        with contextlib.suppress(*GONE):
            self.connect().close()
            return True
        return False

    def wait_until(self, holds, timeout_s):
        deadline = time.monotonic() + timeout_s
        while not holds() and time.monotonic() < deadline:
            time.sleep(0.1)

    def signal(self, number):
        os.kill(self.pid(), number)

    def launch(self):
        subprocess.run([self.program, "start", str(self.port)], capture_output=True, check=True)


class Peer:
    """A cluster of RabbitMQ that runs already; stands for a cluster as far as this program needs it."""

    def __init__(self, program, ports):
        self.nodes = {f"peer{port}": PeerNode(program, port) for port in ports}

    def connect(self):
        return next(iter(self.nodes.values())).connect()

    def leading_address(self):
        return next(iter(self.nodes.values())).address

    def set_default_queue_type(self, queue_type):
        for node in self.nodes.values():
            asked(node, "/api/vhosts/%2F", {"default_queue_type": queue_type})

    def leading_node(self):
        """The node that leads the queue of the probes."""
        for node in self.nodes.values():
            leader = (asked(node, f"/api/queues/%2F/{PROBE}").get("leader") or "").split("@")[0]
            if leader in self.nodes:
                return leader
        return None


class Nodes(Cluster):
    """A cluster of Leveret."""

    def leading_node(self):
        """The node that leads the vhost."""
        return next((name for name in self.nodes if self.leads(name)), None)


def asked(node, path, body=None):
    """The answer of a management API, or of the change that a body asks for."""
    request = urllib.request.Request(
        f"http://{node.http_address}{path}", method="GET" if body is None else "PUT",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(), "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"{}")


def fill(cluster, flood, messages):
    """Publishes messages until so many wait."""
    workload = FloodWorkload(cluster, flood)
    while flood.last < messages:
        time.sleep(0.01)
        if not workload.thread.is_alive():
            workload.end()
            workload = FloodWorkload(cluster, flood)
    workload.end()


def declare(cluster):
    """Makes the queue that the probes are published to, which has to be there when they are confirmed."""
    connection = cluster.connect()
    connection.channel().queue_declare(PROBE, durable=True)
    connection.close()


def is_confirmed(node):
    """Whether a node confirms a publish of a new client."""
    with contextlib.suppress(*GONE):
        connection = node.connect()
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", PROBE, b"probe", PERSISTENT, mandatory=True)
        connection.close()
        return True
    return False


def confirmed_by(cluster, names):
    """Tries these nodes in turn, one client after the other, until one confirms a publish."""
    while not any(is_confirmed(cluster.nodes[name]) for name in names):
        pass


def confirmed_soonest(cluster, names):
    """Lets a new client try every 100 ms, whatever the others wait for, until one of them has a confirm."""
    confirmed = threading.Event()

    def attempt(name):
        if is_confirmed(cluster.nodes[name]):
            confirmed.set()

    for name in itertools.cycle(names):
        threading.Thread(target=attempt, args=(name,), daemon=True).start()
        if confirmed.wait(0.1):
            return


def leader_of(cluster):
    """The node that leads, once one does."""
    while True:
        with contextlib.suppress(*GONE):
            if leader := cluster.leading_node():
                return leader
        time.sleep(0.1)


def measure(cluster, runs, harm, heal):
    """Seconds until another node confirms, for each run, sorted: for new clients, and for one that comes at once and waits."""
    soonest, patient = [], []
    for _ in range(runs):
        confirmed_by(cluster, list(cluster.nodes))
        time.sleep(BETWEEN_S + random.random())
        leader = leader_of(cluster)
        node, others = cluster.nodes[leader], [name for name in cluster.nodes if name != leader]
        began = time.monotonic()
        harm(node)

        def wait():
            confirmed_by(cluster, others)
            patient.append(time.monotonic() - began)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        confirmed_soonest(cluster, others)
        soonest.append(time.monotonic() - began)
        waiting.join()
        heal(node)
        node.wait_until(node.is_listening, 60)
        time.sleep(BETWEEN_S)
    found = {"new_clients": figures(sorted(soonest)), "one_client": figures(sorted(patient))}
    print(json.dumps({"runs": runs, **found}), file=sys.stderr, flush=True)
    return found


def figures(seconds):
    def at(share):
        return round(seconds[min(len(seconds) - 1, int(len(seconds) * share))] * 1000)
    return {"p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99), "most_ms": at(1)}


def measured_peer(arguments):
    cluster = Peer(arguments.peer, [int(port) for port in arguments.peer_ports.split(",")])
    cluster.set_default_queue_type(arguments.queue_type)
    fill(cluster, Flood(), arguments.messages)
    declare(cluster)
    killed = measure(cluster, arguments.runs, lambda node: node.signal(signal.SIGKILL), lambda node: node.launch())
    silent = measure(
        cluster, arguments.silent_runs, lambda node: node.signal(signal.SIGSTOP), lambda node: node.signal(signal.SIGCONT))
    return killed, silent


def measured(arguments):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-failover-"))
    cluster, flood = Nodes(arguments.leveret, folder), Flood()
    try:
        cluster.start()
        cluster.set_default_queue_type(arguments.queue_type)
        fill(cluster, flood, arguments.messages)
        declare(cluster)
        killed = measure(cluster, arguments.runs, lambda node: node.kill(), lambda node: node.launch())
        silent = measure(
            cluster, arguments.silent_runs, lambda node: node.process.send_signal(signal.SIGSTOP),
            lambda node: node.process.send_signal(signal.SIGCONT))
        cluster.served()
        check_flood(cluster, flood)
    finally:
        cluster.stop()
        shutil.rmtree(folder)
    return killed, silent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", help="the broker's binary")
    parser.add_argument("--peer", help="instead of it, a program that starts and finds the nodes of a cluster of RabbitMQ")
    parser.add_argument("--peer-ports", help="the ports of these nodes for AMQP, which run already: 5731,5732,5733")
    parser.add_argument("--messages", type=int, default=1_000_000, help="that wait")
    parser.add_argument("--runs", type=int, default=30, help="with a leader that is killed")
    parser.add_argument("--silent-runs", type=int, default=30, help="with one that is suspended")
    parser.add_argument("--queue-type", default="quorum", choices=("classic", "quorum"))
    arguments = parser.parse_args()
    killed, silent = measured_peer(arguments) if arguments.peer else measured(arguments)
    print(json.dumps({
        "program": "failoverfigures", "queue": QUEUE, "queue_type": arguments.queue_type,
        "kill -9": killed, "silent": silent}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
