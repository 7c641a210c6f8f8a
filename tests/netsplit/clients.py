"""Clients that go on by another node whenever their connection is lost."""

import collections
import random
import threading
import time
import traceback

import pika.exceptions

from cluster_processes import GONE
from ledger import Fault

PAUSE_S = 0.05


class Clients:
    """Runs clients `(name, function, broker, book)` until they are stopped. `losses` says why connections were lost."""

    def __init__(self, clients, rng):
        self.failures = []
        self.stop = threading.Event()
        self.losses = collections.Counter()
        self.threads = [
            threading.Thread(target=self._run, name=name, args=(name, *client, rng.random()), daemon=True)
            for name, *client in clients]
        for thread in self.threads:
            thread.start()

    def _run(self, name, function, broker, book, seed):
        rng = random.Random(seed)
        while not self.stop.is_set():
            try:
                connection = broker.connect()
                function(connection.channel(), book, rng, self.stop)
                connection.close()
            except pika.exceptions.ChannelClosedByBroker as refused:
                self.failures.append(Fault(f"{name}: the channel was closed with {refused.args}"))
                return
            except pika.exceptions.ConnectionClosedByBroker as closed:
                self.losses[closed.reply_code] += 1
            except GONE as gone:
                self.losses[type(gone).__name__] += 1
            except Fault as fault:
                self.failures.append(Fault(f"{name}: {fault}"))
                return
            except BaseException:  # noqa: BLE001 - raised when the clients end
                self.failures.append(Fault(f"{name}: {traceback.format_exc()}"))
                return
            self.stop.wait(PAUSE_S)

    def end(self, within_s):
        """Stops them; a client that nobody answers is a fault."""
        self.stop.set()
        deadline = time.monotonic() + within_s
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self.check()
        if waiting := [thread.name for thread in self.threads if thread.is_alive()]:
            raise Fault(f"clients wait for an answer {within_s} s after all nodes run and are connected: {waiting}")

    def check(self):
        """Raises the first fault that a client has seen."""
        if self.failures:
            raise self.failures[0]
