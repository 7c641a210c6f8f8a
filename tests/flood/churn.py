"""Connections, channels and queues that come and go as fast as they can."""

import time

import wire
from bystander import Bystander
from crowd import CHANNEL_CLOSED, CLOSED, QUEUE_DELETED, Crowd, Lost, greeting
from measure import MB, Memory, sockets, steady_bytes, wait_until
from workers import Workers

CONNECTIONS_PER_S_MIN = 300
CHANNELS_PER_S_MIN = 5000
QUEUES_PER_S_MIN = 2000
DURABLE_QUEUES_PER_S_MIN = 50
GROWTH_BYTES_MAX = 48 * MB  # buffers and what the allocator keeps, however long it goes on
SLOPE_BYTES_PER_S_MAX = 2 * MB
BYSTANDER_P99_MAX_MS = 500
BYSTANDER_LONGEST_MAX_MS = 3000
GONE_WITHIN_S = 15.0

CONNECTIONS_AT_ONCE = 16  # of each load process
CONNECTIONS = 10  # of each load process, for channels and queues
CHANNELS_AT_ONCE = 50
QUEUES_AT_ONCE = 20
LEFT_OVER_SOCKETS = 10


def run(subject, scale, figures):
    figures.begin("Churn")
    for what, least, work, arguments in (
        ("connections with login", CONNECTIONS_PER_S_MIN, connections, ()),
        ("channels", CHANNELS_PER_S_MIN, repeat, (channel_batch, CHANNEL_CLOSED, CHANNELS_AT_ONCE)),
        ("queues", QUEUES_PER_S_MIN, repeat, (queue_batch, QUEUE_DELETED, QUEUES_AT_ONCE)),
        ("durable queues", DURABLE_QUEUES_PER_S_MIN, repeat, (durable_queue_batch, QUEUE_DELETED, QUEUES_AT_ONCE)),
    ):
        with subject.running() as broker:
            _churn(broker, scale, figures, what, least, work, arguments)


def _churn(broker, scale, figures, what, least, work, arguments):
    bystander = Bystander(broker)
    open_before = sockets(broker.pid)
    with Workers(work, broker.address, *arguments) as workers:
        workers.results()
        resident = steady_bytes(broker.pid)
        bystander.latencies_s()
        with Memory(broker.pid) as memory:
            began = time.monotonic()
            workers.go_on()
            time.sleep(scale.seconds)
            count = sum(workers.step())
            passed_s = time.monotonic() - began
        figures.add(f"{what}, opened and closed", count / passed_s, "/s", at_least=least)
        figures.add(f"{what}: load processes, busiest", 100 * workers.busiest, "% of a processor")
        figures.waits(f"{what}: bystander", bystander.latencies_s(), BYSTANDER_P99_MAX_MS, BYSTANDER_LONGEST_MAX_MS)
        figures.add(f"{what}: memory grows in the second half", memory.slope_per_s() / MB, "MB/s",
                    at_most=SLOPE_BYTES_PER_S_MAX / MB)
    bystander.stop()
    gone_s = wait_until(lambda: sockets(broker.pid) <= open_before + LEFT_OVER_SOCKETS, GONE_WITHIN_S)
    figures.add(f"{what}: all sockets closed", gone_s, "s", at_most=GONE_WITHIN_S)
    figures.add(f"{what}: memory is above that of before by", (steady_bytes(broker.pid) - resident) / MB, "MB",
                at_most=GROWTH_BYTES_MAX / MB)


def connections(is_over, number, address):
    """Connections whose handshake, channel and close are sent at once. Counts those that ended in order."""
    crowd = Crowd(address, number)
    yield
    life = greeting(channels=(1,)) + wire.method_frame(0, "connection.close", reply_code=200)
    count = 0
    while not is_over():
        while len(crowd.sockets) < CONNECTIONS_AT_ONCE:
            crowd.add(life)
        for descriptor, _ in crowd.ready():
            data = crowd.read(descriptor)
            if data is None:
                raise Lost("a connection was closed before its turn")
            # Who has been answered that it is closed closes the socket, and need not wait for the broker to do so.
            if crowd.count(descriptor, data, CLOSED):
                crowd.remove(descriptor)
                count += 1
    crowd.close()
    yield count


def repeat(is_over, number, address, batch, answer, per_batch):
    """The same again and again on a few connections; counts the answers."""
    crowd = Crowd(address, number)
    crowd.open(CONNECTIONS, greeting(channels=(1,)))
    yield
    saying = {descriptor: batch(f"{number}.{descriptor}") for descriptor in crowd.sockets}
    missing = {}
    count = 0
    for descriptor, request in saying.items():
        crowd.send(descriptor, request)
        missing[descriptor] = per_batch
    while not is_over():
        for descriptor, _ in crowd.ready():
            found = crowd.count(descriptor, crowd.read(descriptor), answer)
            count += found
            missing[descriptor] -= found
            if missing[descriptor] == 0:
                crowd.send(descriptor, saying[descriptor])
                missing[descriptor] = per_batch
    crowd.close()
    yield count


def channel_batch(_):
    # Each has a number of its own: one may only be used again when its end has been answered.
    return b"".join(
        wire.method_frame(channel, "channel.open") + wire.method_frame(channel, "channel.close", reply_code=200)
        for channel in range(2, CHANNELS_AT_ONCE + 2))


def queue_batch(name, **flags):
    flags = flags or {"exclusive": True}
    return b"".join(
        wire.method_frame(1, "queue.declare", queue=f"churn.{name}.{index}", **flags)
        + wire.method_frame(1, "queue.delete", queue=f"churn.{name}.{index}")
        for index in range(QUEUES_AT_ONCE))


def durable_queue_batch(name):
    return queue_batch(name, durable=True)
