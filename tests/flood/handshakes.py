"""Thousands of sockets that never complete the handshake: half send nothing, half send one byte per second."""

import threading
import time

import wire
from bystander import Bystander
from crowd import Crowd
from measure import KB, MB, Memory, sockets, steady_bytes, wait_until
from workers import COUNT, Workers

HANDSHAKE_BYTES_MAX = 8 * KB
LEFT_BYTES_MAX = 32 * MB
EARLY_MAX_S = 0.2
LATE_MAX_S = 2.0
LOGIN_P99_MAX_MS = 500
LOGIN_LONGEST_MAX_MS = 2000
BYSTANDER_P99_MAX_MS = 500
BYSTANDER_LONGEST_MAX_MS = 3000

LIMIT_S = 40.0  # a socket that is open for longer is a leak
DRIP_S = 1.0
LOGIN_PAUSE_S = 0.1
LEFT_OVER_SOCKETS = 10


def run(subject, scale, figures):
    figures.begin(f"{scale.handshakes:,} sockets without a handshake")
    with subject.running(handshake_timeout_s=scale.handshake_timeout_s) as broker:
        bystander, logins = Bystander(broker), Logins(broker)
        open_before = sockets(broker.pid)
        with Workers(hold_open, broker.address, scale.handshakes // COUNT) as workers:
            workers.results()
            resident = steady_bytes(broker.pid)
            bystander.latencies_s()
            with Memory(broker.pid) as memory:
                lives_s = [life for each in workers.step() for life in each]
        figures.add("first closed after", min(lives_s), "s", at_least=broker.handshake_timeout_s - EARLY_MAX_S)
        figures.add("last closed after", max(lives_s), "s", at_most=broker.handshake_timeout_s + LATE_MAX_S)
        figures.add("memory of each", (memory.highest - resident) / scale.handshakes / KB, "KB",
                    at_most=HANDSHAKE_BYTES_MAX / KB)
        figures.waits("logins beside them", logins.stop(), LOGIN_P99_MAX_MS, LOGIN_LONGEST_MAX_MS)
        figures.waits("bystander", bystander.latencies_s(), BYSTANDER_P99_MAX_MS, BYSTANDER_LONGEST_MAX_MS)
        wait_until(lambda: sockets(broker.pid) <= open_before + LEFT_OVER_SOCKETS, LATE_MAX_S)
        figures.add("sockets left over", max(sockets(broker.pid) - open_before, 0),
                    at_most=LEFT_OVER_SOCKETS)
        figures.add("memory left over", (steady_bytes(broker.pid) - resident) / MB, "MB",
                    at_most=LEFT_BYTES_MAX / MB)
        bystander.stop()


def hold_open(is_over, number, address, count):
    """How long each of them lived."""
    crowd = Crowd(address, number)
    yield
    began, dripping, lives_s = {}, [], []
    for index in range(count):
        now = time.monotonic()
        descriptor = crowd.add()
        began[descriptor] = now
        if index % 2:
            dripping.append(descriptor)
    drips = 0
    while crowd.sockets and time.monotonic() - now < LIMIT_S:
        if time.monotonic() - now > drips * DRIP_S and drips < len(wire.PROTOCOL_HEADER) - 1:
            for descriptor in dripping:
                if descriptor in crowd.sockets:
                    crowd.send(descriptor, wire.PROTOCOL_HEADER[drips:drips + 1])
            drips += 1
        for descriptor, _ in crowd.ready():
            if crowd.read(descriptor) is None:
                lives_s.append(time.monotonic() - began[descriptor])
                crowd.remove(descriptor)
    lives_s += [LIMIT_S] * len(crowd.sockets)
    crowd.close()
    yield lives_s


class Logins:
    """Complete logins, one after the other."""

    def __init__(self, broker):
        self.broker, self.took_s, self.done = broker, [], threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.done.wait(LOGIN_PAUSE_S):
            began = time.monotonic()
            with self.broker.peer() as peer:
                peer.connect()
            self.took_s.append(time.monotonic() - began)

    def stop(self):
        """How long each has taken."""
        self.done.set()
        self.thread.join()
        return self.took_s
