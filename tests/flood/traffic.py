"""Publishers and consumers of one process that do nothing else, as fast as they can."""

import select
import struct
import time

import wire
from crowd import BLOCKED, CHANNEL_OPENED, UNBLOCKED, Crowd, greeting

TAG = "c"
ACK_BYTES = len(wire.method_frame(1, "basic.ack"))
CONSUMING = wire.method_frame(1, "basic.qos-ok") + wire.method_frame(1, "basic.consume-ok", consumer_tag=TAG)
PUBLISHES_PER_CHUNK = 50
UNCONFIRMED_MAX = 1000
FLOOD_CHUNK_BYTES = 1 << 18


def delivery_bytes(queue, body):
    """How long a delivery is of what was published without properties."""
    deliver = wire.method_frame(1, "basic.deliver", consumer_tag=TAG, routing_key=queue)
    return len(deliver + wire.header_frame(1, len(body)) + wire.body_frame(1, body))


def consume(is_over, number, address, queue, body, count, prefetch):
    """Consumers with a prefetch; each step runs until `is_over()`, and yields the number of deliveries of each so far."""
    crowd = Crowd(address, number)
    crowd.open(count, greeting(channels=(1,)), CHANNEL_OPENED)
    yield
    size = delivery_bytes(queue, body)
    received, acknowledged = {}, dict.fromkeys(crowd.sockets, 0)
    for descriptor in crowd.sockets:
        received[descriptor] = -len(CONSUMING)
        crowd.send(descriptor, wire.method_frame(1, "basic.qos", prefetch_count=prefetch)
                   + wire.method_frame(1, "basic.consume", queue=queue, consumer_tag=TAG))
    while True:
        while not is_over():
            for descriptor, _ in crowd.ready():
                received[descriptor] += len(crowd.read(descriptor))
                tag = received[descriptor] // size
                if tag - acknowledged[descriptor] >= prefetch / 2:
                    acknowledged[descriptor] = tag
                    crowd.send(descriptor, wire.method_frame(1, "basic.ack", delivery_tag=tag, multiple=True))
        # What is left over is acknowledged, so that nothing counts as outstanding that has been counted.
        for descriptor, bytes_read in received.items():
            if (tag := bytes_read // size) > acknowledged[descriptor]:
                acknowledged[descriptor] = tag
                crowd.send(descriptor, wire.method_frame(1, "basic.ack", delivery_tag=tag, multiple=True))
        yield [max(bytes_read, 0) // size for bytes_read in received.values()]


def publish_confirmed(is_over, number, address, queue, body, count):
    """Publishers with some publishes unconfirmed; how many of each were confirmed."""
    crowd = Crowd(address, number)
    crowd.open(count, greeting(channels=(1,)), CHANNEL_OPENED)
    yield
    select_ = wire.method_frame(1, "confirm.select", nowait=True)
    chunk = wire.publish(1, "", queue, body) * PUBLISHES_PER_CHUNK
    sent, confirmed, unsent = {}, {}, {}
    for descriptor in crowd.sockets:
        crowd.send(descriptor, select_)
        sent[descriptor] = confirmed[descriptor] = 0
        unsent[descriptor] = b""
        crowd.epoll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT)
    while not is_over():
        for descriptor, events in crowd.ready():
            if events & select.EPOLLIN:
                data = crowd.tails.get(descriptor, b"") + crowd.read(descriptor)
                whole = len(data) // ACK_BYTES * ACK_BYTES
                crowd.tails[descriptor] = data[whole:]
                if whole:
                    (tag,) = struct.unpack_from(">Q", data, whole - ACK_BYTES + 11)
                    confirmed[descriptor] = max(confirmed[descriptor], tag)
                    crowd.epoll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT)
            if not unsent[descriptor]:
                if sent[descriptor] - confirmed[descriptor] > UNCONFIRMED_MAX:
                    crowd.epoll.modify(descriptor, select.EPOLLIN)
                    continue
                unsent[descriptor] = chunk
                sent[descriptor] += PUBLISHES_PER_CHUNK
            count = crowd.send(descriptor, unsent[descriptor])
            unsent[descriptor] = unsent[descriptor][count:]
    yield list(confirmed.values())


def publish_until_blocked(is_over, number, address, queue, body, count, timeout_s):
    """Publishers that never stop: until each has `connection.blocked`, and then until each has `connection.unblocked`.
    Each step yields the number of publishers that have it."""
    crowd = Crowd(address, number)
    crowd.open(count, greeting(channels=(1,), connection__blocked=True), CHANNEL_OPENED)
    yield
    message = wire.publish(1, "", queue, body)
    chunk = message * max(FLOOD_CHUNK_BYTES // len(message), 1)
    unsent = dict.fromkeys(crowd.sockets, memoryview(b""))
    for answer in (BLOCKED, UNBLOCKED):
        notified = set()
        deadline = time.monotonic() + timeout_s
        while len(notified) < count and time.monotonic() < deadline and not is_over():
            for descriptor in crowd.sockets:
                crowd.epoll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT)
            for descriptor, events in crowd.ready():
                if events & select.EPOLLIN and crowd.count(descriptor, crowd.read(descriptor), answer):
                    notified.add(descriptor)
                    continue
                unsent[descriptor] = unsent[descriptor] or memoryview(chunk)
                unsent[descriptor] = unsent[descriptor][crowd.send(descriptor, unsent[descriptor]):]
            time.sleep(0)
        yield len(notified)


def fill(broker, queue, body, count):
    """Publishes so many messages and waits until all are confirmed."""
    message = wire.publish(1, "", queue, body)
    with broker.peer() as peer:
        peer.connect().call(1, "confirm.select")
        for first in range(0, count, UNCONFIRMED_MAX):
            peer.send(message * min(UNCONFIRMED_MAX, count - first))
        confirmed = 0
        while confirmed < count:
            confirmed = max(confirmed, peer.expect(1, "basic.ack", timeout=60.0).delivery_tag)
