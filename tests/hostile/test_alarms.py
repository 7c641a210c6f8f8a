"""The memory and the disk alarm: publishers get `connection.blocked` and are not read any more, all others go on.

The low watermark is exceeded by the process itself, so that its alarm never goes off; the high one leaves room for a
while. Memory is given back to the system a second or two after it is free, and only then the alarm ends.
"""

import contextlib
import select
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from answers import connection_closed
from brokers import Leveret
from http_client import Api
from memory import Growth
from peer import Silent, client_properties

pytestmark = pytest.mark.leveret_only("needs a broker process of its own")

WATERMARK_MB = 128
BODY = b"." * 100_000
BODIES_MAX = 4 * WATERMARK_MB * 1_000_000 // len(BODY)
UNACKNOWLEDGED_MAX = int(1.1 * WATERMARK_MB * 1_000_000) // len(BODY)
RESIDENT_MAX = 2 * WATERMARK_MB * 1_000_000  # what comes between two looks at the memory is beyond the watermark
PORTION = 40  # so many bodies are published between two looks at the memory
ALARM_TIMEOUT_S = 60.0
ALL_CLEAR_TIMEOUT_S = 60.0
QUIET_S = 0.5  # so long nothing comes from a broker that does not read
DRAINED_S = 3.0  # so long, by the stopwatch, nothing comes when there is nothing more, however busy the disk is

BLOCKED = client_properties(connection__blocked=True)


@contextlib.contextmanager
def with_alarm(leveret_bin, config):
    broker = Leveret(leveret_bin, config=config)
    deadline = time.monotonic() + ALARM_TIMEOUT_S
    while "alarm on" not in broker.log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield broker
    broker.assert_alive()
    broker.stop()


@pytest.fixture
def alarmed(leveret_bin):
    with with_alarm(leveret_bin, "vm_memory_high_watermark.absolute = 1MB\n") as broker:
        yield broker


def set_watermark(broker, limit_bytes):
    """When it returns, the alarm is as the limit says."""
    api = Api(broker)
    node = api.do("GET", "/api/nodes")[0]["name"]
    api.do("PUT", f"/api/nodes/{node}/vm-memory-high-watermark", {"absolute": limit_bytes})


def assert_not_read(peer):
    peer.send_method(1, "basic.qos")
    with pytest.raises(Silent):
        peer.read_bytes(1, timeout=QUIET_S)


@pytest.mark.hb(78)
def test_publisher_is_notified_and_not_read_any_more(alarmed):
    with alarmed.peer() as publisher, alarmed.peer() as consumer:
        publisher.connect(properties=BLOCKED).assert_usable()
        queue = publisher.call(1, "queue.declare", exclusive=False).queue
        publisher.publish(1, "", queue, b"too late")
        assert publisher.expect(0, "connection.blocked").reason == "low on memory"
        assert_not_read(publisher)
        consumer.connect(properties=BLOCKED)
        consumer.send_method(1, "basic.get", queue=queue)
        consumer.expect(1, "basic.get-empty")
        consumer.assert_usable()


@pytest.mark.hb(78)
@pytest.mark.parametrize("has_published", [True, False])
def test_publishes_read_during_an_alarm_reach_no_queue(leveret_bin, has_published):
    """What stands before the first publish is carried out, and all of the rest when the alarm is over."""
    broker = Leveret(leveret_bin)
    with broker.peer() as publisher, broker.peer() as observer:
        publisher.connect(properties=BLOCKED)
        observer.connect()
        queue = publisher.call(1, "queue.declare", exclusive=False).queue
        if has_published:
            publisher.publish(1, "", queue, b"before")
            publisher.assert_usable()
        set_watermark(broker, 1)
        burst = wire.publish(1, "", queue, b"." * 100) * 1000
        publisher.send(wire.method_frame(1, "basic.qos", prefetch_count=1), burst)
        publisher.expect(1, "basic.qos-ok")
        assert publisher.expect(0, "connection.blocked").reason == "low on memory"
        assert observer.call(1, "queue.declare", queue=queue, passive=True).message_count == has_published
        set_watermark(broker, 2**62)
        publisher.expect(0, "connection.unblocked")
        publisher.assert_usable()
        assert observer.call(1, "queue.declare", queue=queue, passive=True).message_count == 1000 + has_published
    broker.assert_alive()
    broker.stop()


@pytest.mark.hb(78)
def test_publisher_without_the_capability_is_blocked_without_notice(alarmed):
    with alarmed.peer() as publisher:
        publisher.connect()
        publisher.publish(1, "", "nowhere", b"x")
        publisher.wait_until_read()
        assert_not_read(publisher)


@pytest.mark.slow
@pytest.mark.hb(78)
def test_a_blocked_publisher_lives_without_heartbeats_of_its_own(alarmed):
    """They are not read, so that their absence has no effect; the broker sends its own."""
    with alarmed.peer() as publisher:
        publisher.connect(heartbeat=1)
        publisher.publish(1, "", "nowhere", b"x")
        for _ in range(10):
            assert publisher.read_frame().type == wire.FRAME_HEARTBEAT


@pytest.mark.hb(78)
def test_a_blocked_publisher_agrees_to_the_shutdown(alarmed):
    """It is read again, so that the broker need not wait for it."""
    with alarmed.peer() as publisher:
        publisher.connect()
        publisher.publish(1, "", "nowhere", b"x")
        publisher.wait_until_read()
        assert_not_read(publisher)
        alarmed.terminate()
        assert publisher.outcome() == connection_closed(320)
        publisher.send_method(0, "connection.close-ok")
        assert alarmed.process.wait(10) == 0
        assert "timed out waiting for clients" not in alarmed.log.read_text()
    alarmed.revive()


@pytest.mark.slow
@pytest.mark.hb(77, 78)
def test_consumers_make_room_and_the_publisher_goes_on(leveret_bin):
    """A flood is held at the watermark. A consumer that published before the alarm acknowledges in it, and ends it.

    What only waits would go to the disk and might never reach the watermark: what is unacknowledged stays in memory. Of
    that there may be a quarter of the watermark at the start.
    """
    config = f"vm_memory_high_watermark.absolute = {8 * WATERMARK_MB}MB\nvm_memory_high_watermark_paging_ratio = 0.02\n"
    broker = Leveret(leveret_bin, config=config)
    try:
        set_watermark(broker, WATERMARK_MB * 1_000_000)
        with broker.peer() as consumer, broker.peer() as publisher, ThreadPoolExecutor(1) as aside:
            consumer.connect(properties=BLOCKED)
            queue = consumer.call(1, "queue.declare", exclusive=True).queue
            consumer.publish(1, "", "nowhere", b"long ago")
            consumer.call(1, "basic.qos", prefetch_count=UNACKNOWLEDGED_MAX)
            consumer.call(1, "basic.consume", queue=queue)
            publisher.connect(properties=BLOCKED)
            with Growth(broker) as growth:
                unacknowledged = aside.submit(read_deliveries, consumer)
                rest = flood(publisher, wire.publish(1, "", queue, BODY))
                assert publisher.expect(0, "connection.blocked", timeout=ALL_CLEAR_TIMEOUT_S).reason == "low on memory"
                assert unacknowledged.result() > 0
            assert growth.highest <= RESIDENT_MAX

            consumer.send_method(1, "basic.ack", delivery_tag=0, multiple=True)
            drain(consumer)
            publisher.send(rest, wire.method_frame(1, "basic.qos"))
            assert_usable_in_turns(publisher)
            publisher.publish(1, "", queue, b"the last")
            while take(consumer, ALL_CLEAR_TIMEOUT_S) != b"the last":
                pass
        broker.assert_alive()
    finally:
        broker.stop()


@pytest.mark.hb(77, 78)
def test_a_consumer_that_never_acknowledges_gets_its_share_and_another_the_rest(leveret_bin):
    """Four times as much waits on the disk as may be unacknowledged, and no alarm goes on."""
    share = WATERMARK_MB * 1_000_000 // 4
    count = 4 * share // len(BODY)
    broker = Leveret(leveret_bin, config=f"vm_memory_high_watermark.absolute = {WATERMARK_MB}MB\n")
    try:
        with broker.peer() as publisher, broker.peer() as hoarder, broker.peer() as worker, Growth(broker) as growth:
            publisher.connect()
            queue = publisher.call(1, "queue.declare", exclusive=False).queue
            for number in range(count):
                publisher.publish(1, "", queue, BODY)
                if number % PORTION == 0:
                    publisher.assert_usable()
                    await_room(broker)
            publisher.assert_usable()
            hoarder.connect()
            hoarder.call(1, "basic.consume", queue=queue)
            taken = read_share(hoarder, broker)
            assert 0.8 * share < taken * len(BODY) < 1.2 * share
            worker.connect()
            worker.call(1, "basic.qos", prefetch_count=1)
            worker.call(1, "basic.consume", queue=queue)
            for _ in range(count - taken):
                take(worker, ALL_CLEAR_TIMEOUT_S)
            hoarder.assert_usable()
        assert growth.highest <= RESIDENT_MAX
        log = broker.log.read_text()
        assert log.count("deliveries wait") == 1 and "alarm on" not in log
        broker.assert_alive()
    finally:
        broker.stop()


@pytest.mark.hb(78)
def test_bindings_stop_growing_in_an_alarm_and_what_is_there_works(leveret_bin):
    arguments = [("a", ("S", b"x" * 60_000))]
    broker = Leveret(leveret_bin)
    with broker.peer() as peer, broker.peer() as consumer:
        peer.connect()
        queue = peer.call(1, "queue.declare", exclusive=False).queue
        set_watermark(broker, 1)
        bound = 0
        with pytest.raises(Refused):
            for bound in range(1000):
                peer.send_method(1, "queue.bind", queue=queue, exchange="amq.headers", routing_key=str(bound),
                                 arguments=arguments)
                channel, got = peer.read_method()
                if got.name == "channel.close":
                    assert got.reply_code == 406 and "memory alarm is on" in got.reply_text
                    raise Refused
        assert 400 < bound < 600, "32 MiB of them"
        consumer.connect()
        assert consumer.call(1, "queue.declare", queue=queue, passive=True).queue == queue
        consumer.call(1, "basic.consume", queue=queue)
        consumer.call(1, "queue.unbind", queue=queue, exchange="amq.headers", routing_key="0", arguments=arguments)
        consumer.call(1, "queue.bind", queue=queue, exchange="amq.headers", routing_key="1", arguments=arguments)
        api = Api(broker)
        assert api.ask("PUT", "/api/vhosts/another").status == 503
        set_watermark(broker, 2**62)
        consumer.call(1, "queue.bind", queue=queue, exchange="amq.headers", routing_key="new", arguments=arguments)
        assert api.ask("PUT", "/api/vhosts/another").status == 201
    broker.assert_alive()
    broker.stop()


class Refused(Exception):
    pass


def read_deliveries(consumer):
    """Reads, and acknowledges nothing, until nothing comes any more: how many came."""
    count = 0
    while consumer.arrives(DRAINED_S):
        consumer.expect(1, "basic.deliver")
        consumer.read_content(1)
        count += 1
    return count


def await_room(broker):
    """Waits until what was published is on the disk, but for what may stay in memory.

    However slow the disk is, the alarm can then go on only if the broker keeps too much.
    """
    deadline = time.monotonic() + ALL_CLEAR_TIMEOUT_S
    while broker.resident_bytes() > WATERMARK_MB * 1_000_000 * 3 // 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read_share(consumer, broker):
    """Reads, and acknowledges nothing, until the broker says that further deliveries wait: how many it has made.

    The answer to a basic.qos then comes behind them.
    """
    deadline = time.monotonic() + 2 * ALL_CLEAR_TIMEOUT_S
    count, has_asked = 0, False
    while True:
        if not has_asked and "deliveries wait" in broker.log.read_text():
            consumer.send_method(1, "basic.qos")
            has_asked = True
        try:
            got = consumer.read_method(QUIET_S)[1]
        except Silent:
            assert time.monotonic() < deadline
            continue
        if got.name == "basic.qos-ok":
            return count
        assert got.name == "basic.deliver"
        consumer.read_content(1)
        count += 1


def drain(consumer):
    """Takes and acknowledges until nothing comes any more; the publisher may go on now and then meanwhile."""
    while consumer.arrives(DRAINED_S):
        take(consumer, ALL_CLEAR_TIMEOUT_S)


def take(consumer, timeout_s):
    """Acknowledges the next delivery, whose body it returns."""
    tag = consumer.expect(1, "basic.deliver", timeout=timeout_s).delivery_tag
    body = consumer.read_content(1)[1]
    consumer.send_method(1, "basic.ack", delivery_tag=tag)
    return body


def assert_usable_in_turns(publisher):
    """The answer to its basic.qos comes. It was blocked and is not, and may be again with what it had sent before."""
    expected = ["connection.unblocked", "connection.blocked"]
    while True:
        channel, got = publisher.read_method(ALL_CLEAR_TIMEOUT_S)
        if channel == 1:
            assert got.name == "basic.qos-ok"
            return
        assert got.name == expected[0]
        expected.reverse()


def flood(peer, message, stalled_s=1.0):
    """Sends the message many times, or until the broker says that it stops reading, and has for a while: what is unsent
    of the last.

    What waits is put on disk meanwhile, so that the broker may go on before long.
    """
    deadline = time.monotonic() + 2 * ALL_CLEAR_TIMEOUT_S
    peer.socket.setblocking(False)
    try:
        for _ in range(BODIES_MAX):
            rest = memoryview(message)
            while rest:
                try:
                    rest = rest[peer.socket.send(rest):]
                except BlockingIOError:
                    can_write = select.select([], [peer.socket], [], stalled_s)[1]
                    if not can_write and select.select([peer.socket], [], [], 0)[0]:
                        return bytes(rest)
                    assert time.monotonic() < deadline
        return b""
    finally:
        peer.socket.setblocking(True)


@pytest.mark.hb(78)
@pytest.mark.parametrize("config, reason", [
    ("disk_free_limit.absolute = 1000000GB\n", "low on disk"),
    ("disk_free_limit.relative = 100000\nvm_memory_high_watermark.absolute = 1MB\n", "low on memory & disk"),
])
def test_a_disk_that_is_nearly_full_blocks_publishers(leveret_bin, config, reason):
    with with_alarm(leveret_bin, config) as broker, broker.peer() as publisher:
        publisher.connect(properties=BLOCKED)
        publisher.publish(1, "", "nowhere", b"")
        assert publisher.expect(0, "connection.blocked").reason == reason
        assert_not_read(publisher)
