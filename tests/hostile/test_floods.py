"""Peers that send without end or never read: the broker's memory stays within a named bound.

Sizes differ by broker where the full size would only tire a RabbitMQ whose memory is not measured anyway.
"""

import select
import threading
import time

import pytest

import wire
from answers import UNHARMED, by_broker, connection_closed
from memory import MIB, Growth
from peer import client_properties

CHANNELS = 2047
STALLED_S = 1.0  # a socket that takes nothing for so long is not read by the broker any more
FLOOD_TIMEOUT_S = 60.0

IDLE_CHANNEL_BYTES_MAX = 4096  # an open channel with half a small message
IDLE_CONNECTION_BYTES_MAX = 32 * 1024  # a connection with half a frame
CLOSING_CHANNEL_GROWTH_MAX = 32 * MIB
FROZEN_READER_GROWTH_MAX = 32 * MIB  # of 60 MiB that wait; the buffers of the consumer that reads are in it
RETURN_FLOOD_GROWTH_MAX = 32 * MIB
CONFIRM_FLOOD_GROWTH_MAX = 32 * MIB
EMPTY_FRAMES_GROWTH_MAX = 8 * MIB
UNACKED_BYTES_MAX = 640  # on top of the message: what a delivery tag costs, allocator included
NAMES_GROWTH_MAX = 16 * MIB
TRANSACTION_GROWTH_MAX = 1024 * MIB
CANCEL_CPU_MAX_S = 5.0


def flood(peer, chunk, times):
    """Sends `chunk` so many times without reading, or until the broker stops reading.

    Returns how many were begun and the unsent rest of the last.
    """
    peer.socket.setblocking(False)
    try:
        for number in range(1, times + 1):
            rest = memoryview(chunk)
            while rest:
                try:
                    rest = rest[peer.socket.send(rest):]
                except BlockingIOError:
                    if not select.select([], [peer.socket], [], STALLED_S)[1]:
                        return number, bytes(rest)
        return times, b""
    finally:
        peer.socket.setblocking(True)


def finish(peer, rest):
    """Sends the rest of a stalled flood in the background, so that the caller can read meanwhile."""
    sender = threading.Thread(target=peer.send, args=(rest,), daemon=True)
    sender.start()
    return sender


@pytest.mark.slow
@pytest.mark.hb(76, 79)
def test_a_million_unfinished_channels(fresh_broker):
    """Connection after connection opens all its channels, begins a message on each and vanishes."""
    connections = by_broker(rabbitmq=3, leveret=489)
    attack = b"".join(
        wire.method_frame(channel, "channel.open") + wire.method_frame(channel, "basic.publish", routing_key="nowhere")
        + wire.header_frame(channel, 100) + wire.body_frame(channel, b"half")
        for channel in range(1, CHANNELS + 1))
    with Growth(fresh_broker) as growth:
        for number in range(connections):
            with fresh_broker.peer() as peer:
                peer.connect(channels=())
                peer.send(attack)
                for _ in range(CHANNELS):
                    assert peer.read_method()[1].name == "channel.open-ok"
                if number % 2:
                    peer.reset()
    assert growth.bytes <= CHANNELS * IDLE_CHANNEL_BYTES_MAX * 2 + 16 * MIB


@pytest.mark.hb(30)
def test_bodies_that_are_only_announced(fresh_broker):
    """A header on every channel that promises a body of the largest size: nothing is taken for it before it comes."""
    connections = by_broker(rabbitmq=1, leveret=5)
    attack = b"".join(
        wire.method_frame(channel, "channel.open") + wire.method_frame(channel, "basic.publish", routing_key="nowhere")
        + wire.header_frame(channel, 16 * MIB)
        for channel in range(1, CHANNELS + 1))
    peers = []
    try:
        with Growth(fresh_broker) as growth:
            for _ in range(connections):
                peers.append(fresh_broker.peer())
                peers[-1].connect(channels=()).send(attack)
                for _ in range(CHANNELS):
                    assert peers[-1].read_method()[1].name == "channel.open-ok"
        assert growth.bytes <= connections * CHANNELS * IDLE_CHANNEL_BYTES_MAX
    finally:
        for peer in peers:
            peer.socket.close()


@pytest.mark.hb(2, 20)
def test_peers_that_stop_within_a_frame(fresh_broker):
    """Half a protocol header, half a frame: what is kept of a connection that waits is what it has sent."""
    strangers, clients = by_broker(rabbitmq=50, leveret=400), by_broker(rabbitmq=10, leveret=400)
    peers = []
    try:
        with Growth(fresh_broker) as growth:
            for _ in range(clients):
                peers.append(fresh_broker.peer())
                peers[-1].connect().send(wire.method_frame(1, "queue.declare", queue="x" * 200)[:-1])
            # They come last, because their time is over after that of a handshake.
            for _ in range(strangers):
                peers.append(fresh_broker.peer())
                peers[-1].send(wire.PROTOCOL_HEADER[:5])
            for peer in peers:
                peer.wait_until_read()
        assert growth.bytes <= (strangers + clients) * IDLE_CONNECTION_BYTES_MAX
    finally:
        for peer in peers:
            peer.socket.close()


@pytest.mark.hb(20)
def test_many_unfinished_channels_at_once(fresh_broker):
    connections = by_broker(rabbitmq=2, leveret=50)
    attack = b"".join(
        wire.method_frame(channel, "channel.open") + wire.method_frame(channel, "basic.publish", routing_key="nowhere")
        + wire.header_frame(channel, 100) + wire.body_frame(channel, b"half")
        for channel in range(1, CHANNELS + 1))
    peers = []
    try:
        with Growth(fresh_broker) as growth:
            for _ in range(connections):
                peers.append(fresh_broker.peer())
                peers[-1].connect(channels=()).send(attack)
                for _ in range(CHANNELS):
                    assert peers[-1].read_method()[1].name == "channel.open-ok"
        assert growth.bytes <= connections * CHANNELS * IDLE_CHANNEL_BYTES_MAX
        for peer in peers:
            peer.send(*(wire.body_frame(channel, b"." * 96) for channel in range(1, CHANNELS + 1)))
            peer.assert_usable(1)
    finally:
        for peer in peers:
            peer.socket.close()


@pytest.mark.hb(49)
def test_channels_whose_closing_is_never_answered(fresh_broker):
    """channel.open, an error, and no close-ok, on every channel number there is."""
    channels = by_broker(rabbitmq=2_000, leveret=65_535)
    with fresh_broker.peer() as peer, Growth(fresh_broker) as growth:
        peer.connect(channels=())
        answers = {}
        for first in range(1, channels + 1, 1000):
            numbers = range(first, min(first + 1000, channels + 1))
            peer.send(*(
                wire.method_frame(channel, "channel.open") + wire.publish(channel, "hostile.never.declared", "")
                for channel in numbers))
            waiting = 2 * len(numbers)
            while waiting:
                channel, got = peer.read_method()
                if channel == 0:
                    # Channels that wait for close-ok may count: then this is the limit's ordinary answer.
                    assert (got.name, got.reply_code) == ("connection.close", 530), got
                    assert len(answers) >= CHANNELS
                    break
                answers.setdefault(channel, []).append(got.name)
                waiting -= 1
            if waiting:
                break
        for channel, names in answers.items():
            assert names in (["channel.open-ok", "channel.close"], ["channel.open-ok"]), (channel, names)
    assert growth.bytes <= CLOSING_CHANNEL_GROWTH_MAX


@pytest.mark.leveret_only("RabbitMQ hands half of the queue to the peer that does not read")
@pytest.mark.hb(62)
def test_a_consumer_that_never_reads(fresh_broker):
    """It ties up a bounded part of the queue; the others get the rest, and everything when it is gone."""
    count, body = 30_000, b"." * 2048
    with fresh_broker.peer() as peer, fresh_broker.peer(rcvbuf=4096) as frozen:
        peer.connect()
        frozen.connect()  # what comes now may take longer than a handshake may
        queue = peer.call(1, "queue.declare", queue="", exclusive=False, auto_delete=False).queue
        try:
            peer.call(1, "confirm.select")
            peer.send(wire.publish(1, "", queue, body) * count)
            confirmed = 0
            while confirmed < count:
                confirmed = peer.expect(1, "basic.ack", timeout=FLOOD_TIMEOUT_S).delivery_tag
            with Growth(fresh_broker) as growth:
                frozen.send_method(1, "basic.consume", queue=queue)
                deadline = time.monotonic() + FLOOD_TIMEOUT_S
                while count - peer.call(1, "queue.declare", queue=queue, passive=True).message_count == 0:
                    assert time.monotonic() < deadline
                peer.call(2, "channel.open")
                peer.send_method(2, "basic.consume", queue=queue, no_ack=True)
                peer.expect(2, "basic.consume-ok")
                received = 0
                while received < count * 0.85:
                    peer.expect(2, "basic.deliver")
                    assert peer.read_content(2)[1] == body
                    received += 1
            assert growth.bytes <= FROZEN_READER_GROWTH_MAX
            frozen.reset()
            while received < count:
                peer.expect(2, "basic.deliver")
                peer.read_content(2)
                received += 1
            assert peer.call(1, "queue.declare", queue=queue, passive=True).message_count == 0
        finally:
            with fresh_broker.peer() as other:
                other.connect().call(1, "queue.delete", queue=queue)


@pytest.mark.hb(63)
def test_unread_returns(fresh_broker):
    """Mandatory and unroutable without end: the broker stops reading, and loses nothing once the peer reads."""
    body = b"." * 4000
    chunk = wire.publish(1, "", "nowhere", body, mandatory=True) * 50
    with fresh_broker.peer() as peer, Growth(fresh_broker) as growth:
        peer.connect()
        begun, rest = flood(peer, chunk, by_broker(rabbitmq=20, leveret=2000))
        assert begun < 2000, "400 MB were taken in although no answer was read"
        sender = finish(peer, rest)
        for _ in range(begun * 50):
            assert peer.expect(1, "basic.return").reply_text == "NO_ROUTE"
            assert peer.read_content(1)[1] == body
        sender.join(FLOOD_TIMEOUT_S)
        peer.assert_usable()
    assert growth.bytes <= RETURN_FLOOD_GROWTH_MAX


@pytest.mark.hb(64)
def test_unread_confirms(fresh_broker):
    """Every publish is confirmed exactly once, however late the confirms are read."""
    chunk = wire.publish(1, "", "nowhere") * 1000
    with fresh_broker.peer() as peer, Growth(fresh_broker) as growth:
        peer.connect()
        peer.call(1, "confirm.select")
        begun, rest = flood(peer, chunk, by_broker(rabbitmq=100, leveret=1000))
        sender = finish(peer, rest)
        total, confirmed = begun * 1000, 0
        while confirmed < total:
            got = peer.expect(1, "basic.ack", timeout=FLOOD_TIMEOUT_S)
            assert got.delivery_tag > confirmed if got.multiple else got.delivery_tag == confirmed + 1
            confirmed = got.delivery_tag
        assert confirmed == total
        sender.join(FLOOD_TIMEOUT_S)
        peer.assert_usable()
    assert growth.bytes <= CONFIRM_FLOOD_GROWTH_MAX


@pytest.mark.hb(26)
def test_a_million_empty_body_frames(fresh_broker):
    """Leveret takes that for what it is; RabbitMQ counts them all."""
    with fresh_broker.peer() as peer, Growth(fresh_broker) as growth:
        peer.connect()
        queue = peer.call(1, "queue.declare", exclusive=True).queue
        peer.send(wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, 2))
        chunk = wire.body_frame(1, b"") * 10_000
        for _ in range(100):
            peer.send(chunk)
        if by_broker(rabbitmq=False, leveret=True):
            assert peer.outcome() == connection_closed(
                501, "too many content body frames without payload", "basic.publish")
        else:
            peer.send(wire.body_frame(1, b"ab"))
            assert peer.get(1, queue, timeout=FLOOD_TIMEOUT_S)[2] == b"ab"
    assert growth.bytes <= EMPTY_FRAMES_GROWTH_MAX


@pytest.mark.hb(61)
def test_gets_that_are_never_acknowledged(fresh_broker):
    count = by_broker(rabbitmq=5_000, leveret=50_000)
    with fresh_broker.peer() as peer:
        peer.connect()
        queue = peer.call(1, "queue.declare", exclusive=True).queue
        peer.call(1, "confirm.select")
        peer.send(wire.publish(1, "", queue, b"sixteen octets..") * count)
        confirmed = 0
        while confirmed < count:
            confirmed = peer.expect(1, "basic.ack", timeout=FLOOD_TIMEOUT_S).delivery_tag
        batch = wire.method_frame(1, "basic.get", queue=queue) * 500
        with Growth(fresh_broker) as growth:
            for _ in range(count // 500):
                peer.send(batch)
                for _ in range(500):
                    peer.expect(1, "basic.get-ok")
                    peer.read_content(1)
        assert growth.bytes <= count * UNACKED_BYTES_MAX
        peer.send_method(1, "basic.nack", delivery_tag=0, multiple=True, requeue=True)
        deadline = time.monotonic() + FLOOD_TIMEOUT_S
        while peer.call(1, "queue.declare", queue=queue, passive=True).message_count != count:
            assert time.monotonic() < deadline, "not everything came back"


@pytest.mark.hb(48, 49)
def test_recover_storm(peer):
    """Every recover gives all unacknowledged messages back, a thousand times over."""
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    peer.publish(1, "", queue, b"again")
    storm = wire.method_frame(1, "basic.get", queue=queue) + wire.method_frame(1, "basic.recover-async", requeue=True)
    tags = []
    for _ in range(20):
        peer.send(storm * 50)
        for _ in range(50):
            channel, got = peer.read_method()
            if got.name == "basic.get-ok":
                assert got.redelivered == bool(tags)
                tags.append(got.delivery_tag)
                peer.read_content(1)
    assert tags == list(range(1, len(tags) + 1)) and len(tags) >= 500
    peer.send_method(1, "basic.recover", requeue=True)
    peer.expect(1, "basic.recover-ok")
    assert peer.get(1, queue)[2] == b"again"


@pytest.mark.hb(76)
def test_names_leave_no_trace(fresh_broker):
    """Distinct routing keys, reply-to and message ids, consumer tags, client properties: gone when they are over."""
    publishes = by_broker(rabbitmq=2_000, leveret=200_000)
    connections = by_broker(rabbitmq=5, leveret=100)
    with fresh_broker.peer() as peer:
        peer.connect()
        queue = peer.call(1, "queue.declare", exclusive=True).queue
        with Growth(fresh_broker) as growth:
            for first in range(0, publishes, 1000):
                peer.send(*(
                    wire.publish(1, "amq.topic", f"a.{index}.b.{index}", b"", {
                        "reply_to": f"reply {index}", "message_id": f"id {index}", "type": f"type {index}",
                        "headers": [(f"header {index}", ("S", b"v"))]})
                    for index in range(first, first + 1000)))
                peer.assert_usable()
            for first in range(0, publishes // 10, 1000):
                for index in range(first, first + 1000):
                    tag = f"tag {index}"
                    peer.send_method(1, "basic.consume", queue=queue, consumer_tag=tag, nowait=True)
                    peer.send_method(1, "basic.cancel", consumer_tag=tag, nowait=True)
                peer.assert_usable()
            for number in range(connections):
                with fresh_broker.peer() as other:
                    other.connect(properties=[(f"key {number} {index}", ("V", None)) for index in range(400)])
    assert growth.bytes <= NAMES_GROWTH_MAX


@pytest.mark.leveret_only("RabbitMQ has no limit")
@pytest.mark.hb(53)
def test_a_transaction_without_end(fresh_broker):
    """A million publishes and no commit: refused at a limit that is not far above."""
    chunk = wire.publish(1, "", "nowhere") * 10_000
    with fresh_broker.peer() as peer, Growth(fresh_broker) as growth:
        peer.connect()
        peer.call(1, "tx.select")
        for _ in range(110):
            peer.send(chunk)
        assert peer.outcome(FLOOD_TIMEOUT_S) == connection_closed(
            506, "transaction holds more than 1000000 operations", "basic.publish")
    assert growth.bytes <= TRANSACTION_GROWTH_MAX


@pytest.mark.hb(102)
def test_queue_deleted_under_thousands_of_consumers(fresh_broker):
    """Each gets basic.cancel, by work that does not grow with their square."""
    count = by_broker(rabbitmq=2_000, leveret=65_536)
    with fresh_broker.peer() as peer:
        peer.connect(properties=client_properties(consumer_cancel_notify=True))
        queue = peer.call(1, "queue.declare", exclusive=True).queue
        for first in range(0, count, 2048):
            peer.send(*(
                wire.method_frame(1, "basic.consume", queue=queue, consumer_tag=f"t{index}", nowait=True)
                for index in range(first, min(first + 2048, count))))
        assert peer.call(1, "queue.declare", queue=queue, passive=True).consumer_count == count
        before_s = fresh_broker.cpu_s()
        peer.send_method(1, "queue.delete", queue=queue)
        cancelled, deleted = set(), False
        while len(cancelled) < count or not deleted:
            _, got = peer.read_method(FLOOD_TIMEOUT_S)
            if got.name == "queue.delete-ok":
                deleted = True
            else:
                assert got.name == "basic.cancel" and got.nowait
                cancelled.add(got.consumer_tag)
        assert fresh_broker.cpu_s() - before_s <= CANCEL_CPU_MAX_S
        assert peer.outcome_or_unharmed() == UNHARMED


@pytest.mark.leveret_only("RabbitMQ now and then closes a connection with 541 in this race")
@pytest.mark.hb(81)
def test_one_name_declared_and_deleted_from_many_connections(fresh_broker, names):
    """Every call is answered as if the calls had come one after the other; at the end the name is gone."""
    name = names.queue()
    peers = [fresh_broker.peer().connect() for _ in range(20)]
    try:
        rounds = wire.method_frame(1, "queue.declare", queue=name) + wire.method_frame(1, "queue.delete", queue=name)
        for peer in peers:
            peer.send(rounds * 50)
        for peer in peers:
            for _ in range(50):
                peer.expect(1, "queue.declare-ok", timeout=FLOOD_TIMEOUT_S)
                peer.expect(1, "queue.delete-ok", timeout=FLOOD_TIMEOUT_S)
        peers[0].send_method(1, "queue.declare", queue=name, passive=True)
        assert peers[0].outcome().code == 404
    finally:
        for peer in peers:
            peer.socket.close()


@pytest.mark.hb(59)
@pytest.mark.tcp_only("about the order of commands, not about frames")
def test_deleting_what_is_unused_races_with_consuming(broker, names):
    """Either the consumer has the queue, or the deletion finds it without consumers: never both."""
    pairs = [(broker.peer().connect(channels=()), broker.peer().connect(channels=())) for _ in range(10)]
    try:
        for channel in range(1, 21):
            queue = names.queue()
            for peer in (peer for pair in pairs for peer in pair):
                peer.call(channel, "channel.open")
            pairs[0][0].call(channel, "queue.declare", queue=queue)
            for consumer, deleter in pairs:
                consumer.send_method(channel, "basic.consume", queue=queue)
                deleter.send_method(channel, "queue.delete", queue=queue, if_unused=True)
            consuming = 0
            for consumer, deleter in pairs:
                _, got = consumer.read_method()
                assert got.name == "basic.consume-ok" or got.reply_code == 404, got
                consuming += got.name == "basic.consume-ok"
                _, got = deleter.read_method()
                assert got.name == "queue.delete-ok" or got.reply_code == 406, got
            with broker.peer() as other:
                other.connect().send_method(1, "queue.declare", queue=queue, passive=True)
                _, got = other.read_method()
                if consuming:
                    assert got.consumer_count == consuming
                else:
                    assert got.reply_code == 404
    finally:
        for peer in (peer for pair in pairs for peer in pair):
            peer.socket.close()
