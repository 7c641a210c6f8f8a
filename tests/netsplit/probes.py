"""Two promises that a network decides: a minority confirms nothing, and everybody soon does when it has healed."""

import threading
import time

import pika

from cluster_processes import GONE
from ledger import Fault
from stopwatch import Stopwatch

QUEUE = "split.alive"
ALIVE_WITHIN_S = 10.0  # by the stopwatch
# Syncs one after the other until a confirm, after the healing: of two starts, elections and publishes.
SYNCS_MAX = 50
PERIOD_S = 0.05
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def declare(channel):
    channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum", "x-max-length": 100})


class Silence:
    """Publishes by each of these nodes, which reach no majority, until it is told to end."""

    def __init__(self, cluster, names):
        self.ended = threading.Event()
        self.begun = threading.Event()
        self.fault = None
        self.ready = threading.Semaphore(0)
        self.threads = [
            threading.Thread(target=self._run, args=(name, cluster.nodes[name]), daemon=True) for name in names]
        for thread in self.threads:
            thread.start()
        for _ in names:
            self.ready.acquire(timeout=1.0)

    def _run(self, name, node):
        is_ready = False
        while not self.ended.is_set():
            try:
                connection = node.open("/")
                channel = connection.channel()
                confirms = []
                channel._impl.confirm_delivery(confirms.append)
                connection.process_data_events(PERIOD_S)
                if not is_ready:
                    is_ready = True
                    self.ready.release()
                self.begun.wait()
                while not self.ended.is_set():
                    channel._impl.basic_publish("", QUEUE, b"a minority", PERSISTENT)
                    connection.process_data_events(PERIOD_S)
                    if any(isinstance(frame.method, pika.spec.Basic.Ack) for frame in confirms):
                        if not self.ended.is_set():
                            self.fault = f"node {name} confirms, and reaches no majority"
                        break
                connection.close()
            except GONE:
                self.ended.wait(PERIOD_S)

    def begin(self):
        """The nodes are cut off now."""
        self.begun.set()

    def end(self):
        """They are about to be connected again."""
        self.ended.set()
        self.begun.set()
        if self.fault:
            raise Fault(self.fault)


class Awakening:
    """After everything has healed, publishes by each node until a confirm comes: how long it took."""

    def __init__(self, cluster, vhosts, since):
        self.since, self.took = since, {}
        self.within_s = ALIVE_WITHIN_S + SYNCS_MAX * cluster.sync_ms / 1000
        self.watch = Stopwatch(*(node.process.pid for node in cluster.nodes.values()))
        self.threads = {
            (name, vhost): threading.Thread(target=self._run, args=(name, node, vhost), daemon=True)
            for name, node in cluster.nodes.items() for vhost in vhosts}
        for thread in self.threads.values():
            thread.start()

    def _run(self, name, node, vhost):
        while not self._is_late():
            try:
                connection = node.open(vhost)
                channel = connection.channel()
                channel.confirm_delivery()
                channel.basic_publish("", QUEUE, b"alive", PERSISTENT, mandatory=True)
                self.took[name, vhost] = time.monotonic() - self.since
                connection.close()
                return
            except GONE:
                time.sleep(PERIOD_S)

    def _is_late(self):
        return time.monotonic() > self.since + self.within_s and self.watch.elapsed_s() > self.within_s

    def most_s(self):
        """The time of the slowest node; a node that confirms nothing is a fault."""
        for thread in self.threads.values():
            while thread.is_alive() and not self._is_late():
                thread.join(PERIOD_S)
        late = [f"{name} in vhost {vhost}" for name, vhost in self.threads if (name, vhost) not in self.took]
        if late:
            raise Fault(f"{self.within_s} s after everything has healed nothing is confirmed by {', '.join(late)}")
        return max(self.took.values())
