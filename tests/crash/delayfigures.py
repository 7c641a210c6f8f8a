"""Measures how exact a million messages with random delivery times are, and what many that wait cost. See README.md."""

import argparse
import json
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import time

from broker_process import Broker, cpu_s

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "hostile"))

import wire  # noqa: E402 - needs the path
from peer import Peer  # noqa: E402

EXCHANGE, QUEUE, TAG = "later", "later", "later"
BLOCK = 200
# Messages without a confirm: those to be released are few, because a delay begins when the broker has read the message.
IN_FLIGHT_MAX, IN_FLIGHT_EXACT_MAX = 10_000, 600
# The wall clock in nanoseconds at which a message is due at the earliest.
DUE = struct.Struct(">Q")
TEN_YEARS_MS = 10 * 365 * 86_400_000
LATE_S = 90
START_S = 300


def resident_bytes(broker):
    status = pathlib.Path(f"/proc/{broker.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


class Messages:
    """Messages of one form: frames around a delay and a due time, which all have the same lengths."""

    def __init__(self, header, exchange):
        marks = bytes(range(8))
        delay = int.from_bytes(marks)
        properties = {"headers": [(header, ("l", delay))], "delivery_mode": 2}
        frames = wire.publish(1, exchange, QUEUE, DUE.pack(0), properties)
        at = frames.index(marks)
        self.parts = frames[:at], frames[at + 8:-9], frames[-1:]

    def block(self, delays_ms):
        before, between, end = self.parts
        now = time.time_ns()
        return b"".join(
            before + delay.to_bytes(8) + between + DUE.pack(now + delay * 1_000_000) + end for delay in delays_ms)


def publish(broker, messages, count, delay_ms, in_flight_max=IN_FLIGHT_MAX):
    """Publishes, and waits for all confirms; seconds, and processor time for each message."""
    peer = Peer(broker.address).connect()
    peer.call(1, "confirm.select")
    began, cpu = time.monotonic(), cpu_s([broker.process.pid])
    sent = confirmed = 0
    while confirmed < count:
        while sent < count and sent - confirmed < in_flight_max:
            peer.socket.sendall(messages.block([delay_ms() for _ in range(BLOCK)]))
            sent += BLOCK
        confirmed = peer.expect(1, "basic.ack", timeout=LATE_S).delivery_tag
    took, cpu = time.monotonic() - began, cpu_s([broker.process.pid]) - cpu
    peer.socket.close()
    return took, cpu / count * 1e6


def delivery_bytes(octets):
    """Bytes of the first delivery, of which all have the same: those of a method, a header and a body frame. None if they
    have not come."""
    size = 0
    for _ in range(3):
        size += wire.FRAME_OVERHEAD + int.from_bytes(octets[size + 3:size + 7])
        if size > len(octets):
            return None
    return size


def consume(peer, count):
    """Takes messages; how late each is, in milliseconds, sorted."""
    late, size, buffer = [], None, peer.buffer
    peer.socket.settimeout(LATE_S)
    while len(late) < count:
        size = size or delivery_bytes(bytes(buffer[:4096]))
        if size and len(buffer) >= size:
            now, whole = time.time_ns(), len(buffer) // size * size
            late += [(now - due) / 1e6 for (due,) in struct.iter_unpack(f">{size - 9}xQx", buffer[:whole])]
            del buffer[:whole]
        else:
            buffer += peer.socket.recv(1 << 18)
    return sorted(late)


def release(broker, name, messages, arguments):
    """The figures of messages at random times within some seconds."""
    delays = random.Random(1)
    took, insert_us = publish(
        broker, messages, arguments.messages,
        lambda: delays.randrange(arguments.begins_ms, arguments.ends_ms), IN_FLIGHT_EXACT_MAX)
    peer = Peer(broker.address).connect()
    cpu = cpu_s([broker.process.pid])
    peer.call(1, "basic.consume", queue=QUEUE, consumer_tag=TAG, no_ack=True)
    late = consume(peer, arguments.messages)
    release_us = (cpu_s([broker.process.pid]) - cpu) / arguments.messages * 1e6
    peer.socket.close()
    at = lambda share: round(late[int((len(late) - 1) * share)], 2)
    return {
        "by": name, "published_s": round(took, 1), "insert_us": round(insert_us, 2), "release_us": round(release_us, 1),
        "early": sum(one < 0 for one in late), "late_ms": {"p50": at(0.5), "p99": at(0.99), "most": at(1)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--messages", type=int, default=1_000_000, help="to release")
    parser.add_argument("--begins-ms", type=int, default=10_000)
    parser.add_argument("--ends-ms", type=int, default=60_000)
    parser.add_argument("--waiting", type=int, default=10_000_000, help="that wait up to ten years")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-delays-"))
    broker = Broker(arguments.leveret, folder)
    by_header, by_exchange = Messages("x-opt-delivery-delay", ""), Messages("x-delay", EXCHANGE)
    try:
        broker.start()
        peer = Peer(broker.address).connect()
        delayed = [("x-delayed-type", ("S", b"fanout"))]
        peer.call(1, "exchange.declare", exchange=EXCHANGE, type="x-delayed-message", durable=True, arguments=delayed)
        peer.call(1, "queue.declare", queue=QUEUE, durable=True)
        peer.call(1, "queue.bind", queue=QUEUE, exchange=EXCHANGE)
        for name, messages in (("x-opt-delivery-delay", by_header), ("x-delay", by_exchange)):
            print(json.dumps(release(broker, name, messages, arguments)), flush=True)
        before = resident_bytes(broker)
        delays = random.Random(2)
        took, insert_us = publish(broker, by_header, arguments.waiting, lambda: delays.randrange(1000_000, TEN_YEARS_MS))
        each = (resident_bytes(broker) - before) / arguments.waiting
        rate = round(arguments.waiting / took)
        broker.kill()
        began = time.monotonic()
        broker.launch()
        broker.wait_until(broker.is_listening, START_S)
        start_s = time.monotonic() - began
        print(json.dumps({
            "waiting": arguments.waiting, "published_per_s": rate, "insert_us": round(insert_us, 2),
            "resident_bytes_each": round(each, 1), "start_s": round(start_s, 1),
            "resident_after_start_mb": round(resident_bytes(broker) / 1e6)}), flush=True)
    finally:
        broker.kill()
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
