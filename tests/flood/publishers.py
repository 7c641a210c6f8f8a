"""Publishers that never stop: until memory is short, and all against one consumer that is slow."""

import threading
import time

from bystander import Bystander
from measure import MB, Memory
from traffic import consume, publish_confirmed, publish_until_blocked
from workers import COUNT, Workers

PEAK_OF_WATERMARK_MAX = 1.5  # the watermark is low: buffers of publishers weigh more than with gigabytes
UNBLOCKED_WITHIN_S = 30.0
BYSTANDER_P99_MAX_MS = 500
BYSTANDER_LONGEST_MAX_MS = 3000
PUBLISHERS_SPREAD_MAX = 2.0
CONSUMERS_SPREAD_MAX = 1.5
DRAINED_PER_S_MIN = 500

BLOCKED_TIMEOUT_S = 60.0
DRAIN_TIMEOUT_S = 120.0
# Messages after which shares are compared: a disk that stalls meanwhile stalls everybody.
PUBLISHED_MIN = 40_000
DELIVERED_MIN = 20_000
SHARE_TIMEOUT_S = 60.0
FLOODING = 4  # publishers of each load process
LARGE_BODY = bytes(16 * 1024)
SMALL_BODY = bytes(256)
PUBLISHERS = 8  # of each load process
CONSUMERS = 4
PREFETCH = 100
SLOW_PAUSE_S = 0.01


def run(subject, scale, figures):
    figures.begin("Publishers that never stop")
    with subject.running(watermark_bytes=scale.watermark_mb * MB) as broker:
        with broker.peer() as peer:
            queue = declared(peer)
            _watermark(broker, scale, figures, peer, queue)
            peer.call(1, "queue.delete", queue=queue)
    with subject.running() as broker:
        with broker.peer() as peer:
            queue = declared(peer)
            _fairness(broker, scale, figures, peer, queue)
            peer.call(1, "queue.delete", queue=queue)


def declared(peer):
    return peer.connect().call(1, "queue.declare", queue="flood.queue").queue


def _watermark(broker, scale, figures, peer, queue):
    arguments = (broker.address, queue, LARGE_BODY, FLOODING, BLOCKED_TIMEOUT_S)
    with Workers(publish_until_blocked, *arguments) as flood, Memory(broker.pid) as memory:
        flood.results()
        began = time.monotonic()
        blocked = sum(flood.step())
        figures.add("publishers with connection.blocked", blocked, f"of {FLOODING * COUNT}",
                    at_least=FLOODING * COUNT)
        figures.add("until all are", time.monotonic() - began, "s")
        waiting = depth(peer, queue)
        time.sleep(scale.seconds)
        figures.add("highest memory against the watermark", memory.highest / broker.watermark_bytes, "times",
                    at_most=PEAK_OF_WATERMARK_MAX)
        figures.add("messages in the queue then", waiting)
        with Workers(consume, broker.address, queue, LARGE_BODY, 1, PREFETCH) as consumers:
            consumers.results()
            consumers.go_on()
            began = time.monotonic()
            while depth(peer, queue) > 0 and time.monotonic() - began < DRAIN_TIMEOUT_S:
                time.sleep(0.02)
            drained_s = time.monotonic() - began
            # The publishers go on as soon as they may, and the consumers with them.
            began = time.monotonic()
            unblocked = sum(flood.step())
            figures.add("publishers with connection.unblocked", unblocked, f"of {FLOODING * COUNT}",
                        at_least=FLOODING * COUNT)
            figures.add("after the queue was empty", time.monotonic() - began, "s", at_most=UNBLOCKED_WITHIN_S)
            consumers.step()
        figures.add("consumers meanwhile", waiting / drained_s, "/s", at_least=DRAINED_PER_S_MIN)


def depth(peer, queue):
    return peer.call(1, "queue.declare", queue=queue, passive=True).message_count


def wait_for_shares(peer, queue, seconds, least):
    """Until `seconds` are over, and `least` messages have come or gone."""
    before, began = depth(peer, queue), time.monotonic()
    time.sleep(seconds)
    while abs(depth(peer, queue) - before) < least and time.monotonic() - began < SHARE_TIMEOUT_S:
        time.sleep(0.05)


class Slow:
    """A consumer that takes one message after the other, with pauses."""

    def __init__(self, broker, queue):
        self.peer, self.count, self.done = broker.peer().connect(), 0, threading.Event()
        self.peer.call(1, "basic.qos", prefetch_count=10)
        self.peer.call(1, "basic.consume", queue=queue)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.done.wait(SLOW_PAUSE_S):
            tag = self.peer.expect(1, "basic.deliver", timeout=30.0).delivery_tag
            self.peer.read_content(1)
            self.peer.send_method(1, "basic.ack", delivery_tag=tag)
            self.count += 1

    def stop(self):
        self.done.set()
        self.thread.join()
        self.peer.socket.close()


def _fairness(broker, scale, figures, peer, queue):
    slow = None
    bystander = Bystander(broker)
    with Workers(publish_confirmed, broker.address, queue, SMALL_BODY, PUBLISHERS) as publishers:
        publishers.results()
        bystander.latencies_s()
        began = time.monotonic()
        publishers.go_on()
        slow, slow_began = Slow(broker, queue), time.monotonic()
        wait_for_shares(peer, queue, scale.seconds, PUBLISHED_MIN)
        counts = [count for each in publishers.step() for count in each]
        figures.shares("confirmed publishes", counts, time.monotonic() - began, "/s", PUBLISHERS_SPREAD_MAX)
        figures.add("load processes, busiest", 100 * publishers.busiest, "% of a processor")
        figures.waits("bystander beside publishers", bystander.latencies_s(), BYSTANDER_P99_MAX_MS,
                      BYSTANDER_LONGEST_MAX_MS)
    slow.stop()
    slow_s = time.monotonic() - slow_began
    figures.add("a slow consumer beside them", slow.count / slow_s, "/s")
    with Workers(consume, broker.address, queue, SMALL_BODY, CONSUMERS, PREFETCH) as consumers:
        consumers.results()
        began = time.monotonic()
        consumers.go_on()
        wait_for_shares(peer, queue, scale.seconds / 2, DELIVERED_MIN)
        counts = [count for each in consumers.step() for count in each]
        figures.shares("deliveries", counts, time.monotonic() - began, "/s", CONSUMERS_SPREAD_MAX)
        figures.add("load processes of consumers, busiest", 100 * consumers.busiest, "% of a processor")
        figures.waits("bystander beside consumers", bystander.latencies_s(), BYSTANDER_P99_MAX_MS,
                      BYSTANDER_LONGEST_MAX_MS)
    bystander.stop()
