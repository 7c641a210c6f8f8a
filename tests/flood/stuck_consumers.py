"""Consumers without a prefetch limit that never read, and others of the same queue that do."""

import time

import wire
from bystander import Bystander
from crowd import CHANNEL_OPENED, Crowd, greeting
from measure import MB, Memory, sockets, steady_bytes, wait_until
from publishers import declared, depth
from traffic import consume, fill
from workers import COUNT, Workers

BYTES_PER_STUCK_MAX = 6 * MB  # 1 MiB unsent, the socket's buffer, a share of the pages read back into memory
READ_PER_S_MIN = 3000
BYSTANDER_P99_MAX_MS = 500
BYSTANDER_LONGEST_MAX_MS = 3000

BODY = bytes(4096)
PREFETCH = 200
DRAIN_TIMEOUT_S = 120.0
# Twice the heartbeat, as AMQP requires; half of one until the broker checks again; and delays of a busy machine.
HEARTBEATS = 2.5
LATE_MAX_S = 1.5
RCVBUF_BYTES = 4096
ON_THEIR_WAY_S = 1.0  # until deliveries that have left the queue are read


def run(subject, scale, figures):
    figures.begin(f"{scale.stuck} consumers that never read")
    with subject.running() as broker, broker.peer() as peer:
        bystander = Bystander(broker)
        queue = declared(peer)
        figures.add("consumers that read, alone", _alone(broker, scale, peer, queue), "/s")
        fill(broker, queue, BODY, scale.backlog)
        bystander.latencies_s()
        _beside(broker, scale, figures, peer, queue)
        figures.waits("bystander", bystander.latencies_s(), BYSTANDER_P99_MAX_MS, BYSTANDER_LONGEST_MAX_MS)
        bystander.stop()
        peer.call(1, "queue.delete", queue=queue)


def _alone(broker, scale, peer, queue):
    """How fast a backlog is consumed by those that read."""
    fill(broker, queue, BODY, scale.backlog)
    with Workers(consume, broker.address, queue, BODY, 1, PREFETCH) as readers:
        readers.results()
        began = time.monotonic()
        readers.go_on()
        _until_empty(peer, queue)
        took_s = time.monotonic() - began
        readers.step()
    # With the queue goes what they leave unacknowledged, which would else be counted again.
    peer.call(1, "queue.delete", queue=queue)
    peer.call(1, "queue.declare", queue=queue)
    return scale.backlog / took_s


def _until_empty(peer, queue):
    wait_until(lambda: depth(peer, queue) == 0, DRAIN_TIMEOUT_S)


def _beside(broker, scale, figures, peer, queue):
    with Workers(consume, broker.address, queue, BODY, 1, PREFETCH) as readers:
        readers.results()
        resident = steady_bytes(broker.pid)
        open_before = sockets(broker.pid)
        with Memory(broker.pid) as memory:
            stuck = Crowd(broker.address, COUNT, RCVBUF_BYTES)
            stuck.open(scale.stuck, greeting(scale.heartbeat_s, (1,)), CHANNEL_OPENED)
            for descriptor in stuck.sockets:
                stuck.send(descriptor, wire.method_frame(1, "basic.consume", queue=queue))
            joined = began = time.monotonic()
            readers.go_on()
            _until_empty(peer, queue)
            passed_s = time.monotonic() - began
            count = sum(sum(each) for each in readers.step())
            figures.add("consumers that read, beside them", count / passed_s, "/s", at_least=READ_PER_S_MIN)
            wait_until(lambda: sockets(broker.pid) <= open_before, DRAIN_TIMEOUT_S)
            figures.add(f"those that never read are gone (heartbeat {scale.heartbeat_s} s)", time.monotonic() - joined,
                        "s", at_most=HEARTBEATS * scale.heartbeat_s + LATE_MAX_S)
        figures.add("memory for each that never reads", (memory.highest - resident) / scale.stuck / MB, "MB",
                    at_most=BYTES_PER_STUCK_MAX / MB)
        stuck.close()
        _until_empty(peer, queue)
        time.sleep(ON_THEIR_WAY_S)
        count = sum(sum(each) for each in readers.step())
        figures.add("messages that were never delivered to the others", scale.backlog - count, at_least=0, at_most=0)
