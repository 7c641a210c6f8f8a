"""Many channels on few connections, and many queues, all of which do nothing."""

import wire
from idle_connections import hold
from measure import KB, steady_bytes
from workers import COUNT, Workers

CHANNEL_BYTES_MAX = 2 * KB  # with its samples for statistics
QUEUE_BYTES_MAX = 2 * KB  # with its samples for statistics

HEARTBEAT_S = 60
# A channel costs a RabbitMQ four processes: of so many it has only this share, which says as much of one.
RABBITMQ_SHARE = 10
QUEUES_AT_ONCE = 500


def run(subject, scale, figures):
    figures.begin("Idle channels and queues")
    channels = scale.channels if subject.is_ours else scale.channels // RABBITMQ_SHARE
    with subject.running() as broker:
        numbers = range(1, channels + 1)
        count = scale.channel_connections
        with Workers(hold, broker.address, count // COUNT, numbers, HEARTBEAT_S) as workers:
            first = sum(workers.results())
            before = steady_bytes(broker.pid)
            workers.step()
            grown = steady_bytes(broker.pid) - before
            figures.add("channels", count * channels)
            figures.add("memory of an idle channel", grown / (count - first) / channels / KB, "KB",
                        at_most=CHANNEL_BYTES_MAX / KB)
    with subject.running() as broker, broker.peer() as peer:
        peer.connect()
        before = steady_bytes(broker.pid)
        count = scale.queues if subject.is_ours else scale.queues // RABBITMQ_SHARE
        for first in range(0, count, QUEUES_AT_ONCE):
            peer.send(*(
                wire.method_frame(1, "queue.declare", queue=f"idle.{number}", exclusive=True)
                for number in range(first, first + QUEUES_AT_ONCE)))
            for _ in range(QUEUES_AT_ONCE):
                peer.expect(1, "queue.declare-ok", timeout=60.0)
        figures.add("queues", count)
        grown = steady_bytes(broker.pid) - before
        # A RabbitMQ still gives memory of the channels back, which may be more than its queues take.
        figures.add("memory of an idle queue", grown / count / KB if grown > 0 else None, "KB",
                    at_most=QUEUE_BYTES_MAX / KB)
