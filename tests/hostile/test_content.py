"""Content: header and body frames out of order, too long, too large, interleaved, half sent."""

import struct
import time

import pytest

import wire
from answers import UNHARMED, by_broker, channel_closed, connection_closed, one_of
from memory import MIB, Growth

PUBLISH = wire.method_frame(1, "basic.publish", routing_key="hostile.nowhere")
CHANNELS = range(1, 2048)
MAX_MESSAGE_SIZE = 16 * MIB
MAX_ANNOUNCED_SIZE = 512 * MIB
MAX_ASSEMBLED_PER_CONNECTION = 64 * MIB
ASSEMBLY_GROWTH_MAX = MAX_ASSEMBLED_PER_CONNECTION + 32 * MIB
ANNOUNCED_GROWTH_MAX = 8 * MIB
GIVEN_BACK_BYTES_MAX = 32 * MIB
# The allocator keeps it for a second; the rest is for the connection to end and for a busy machine.
GIVEN_BACK_S = 60.0

NO_HEADER = connection_closed(
    505, "expected content header for class 60, got non content header frame instead", "basic.publish")
NO_BODY = connection_closed(505, "expected content body, got non content body frame instead", "basic.publish")
NO_METHOD = connection_closed(505, "expected method frame, got non method frame instead")
OVERRUN = connection_closed(501, "content body frame exceeds remaining content size", "basic.publish")

def bad_properties(reason):
    """RabbitMQ looks at properties only when it needs them and dies of undecodable ones with an internal error."""
    refused = connection_closed(502, f"cannot decode content properties: {reason}", "basic.publish")
    return by_broker(rabbitmq=connection_closed(541, ""), leveret=refused)


PROPERTIES_CUT = "the properties run past the end of the content header"
TABLE_CUT = "a table field runs past the end"
FLAGS_GO_ON = "the property flags announce another flags word"


def other_class(number):
    return connection_closed(
        505, f"expected content header for class 60, got one for class {number} instead", "basic.publish")


@pytest.mark.hb(27, 31, 32, 33)
@pytest.mark.parametrize(
    "frames, answer",
    [
        ([wire.header_frame(1, 3), wire.body_frame(1, b"abcd")], OVERRUN),
        ([wire.header_frame(1, 3), wire.body_frame(1, b"ab"), wire.body_frame(1, b"cd")], OVERRUN),
        ([wire.header_frame(1, 0), wire.body_frame(1, b"a")], NO_METHOD),
        ([wire.header_frame(1, 0), wire.body_frame(1, b"")], NO_METHOD),
        ([wire.header_frame(1, 3, weight=1)], NO_HEADER),
        ([wire.header_frame(1, 3, class_id=50)], other_class(50)),
        ([wire.header_frame(1, 3, class_id=999)], other_class(999)),
        ([wire.header_frame(1, 3, class_id=0)], other_class(0)),
        ([wire.body_frame(1, b"abc")], NO_HEADER),
        ([PUBLISH], NO_HEADER),
        ([wire.method_frame(1, "channel.close")], NO_HEADER),
        ([wire.header_frame(1, 3), PUBLISH], NO_BODY),
        ([wire.header_frame(1, 3), wire.method_frame(1, "basic.ack")], NO_BODY),
        ([wire.header_frame(1, 3), wire.body_frame(1, b"ab"), wire.method_frame(1, "channel.close")], NO_BODY),
        ([wire.header_frame(1, 3), wire.header_frame(1, 3)], NO_BODY),
    ],
    ids=[
        "body-too-long", "second-body-too-long", "body-after-empty", "empty-body-after-empty", "weight", "class-50",
        "class-999", "class-0", "body-first", "publish-first", "close-first", "publish-in-body", "ack-in-body",
        "close-in-body", "second-header"])
def test_content_out_of_order(peer, frames, answer):
    peer.send(PUBLISH, *frames)
    assert peer.outcome() == answer


@pytest.mark.hb(28)
@pytest.mark.parametrize("size", [MAX_ANNOUNCED_SIZE + 1, 1 << 32, 1 << 63, (1 << 64) - 1])
def test_absurd_body_size(peer, size):
    peer.send(PUBLISH, wire.header_frame(1, size))
    assert peer.outcome() == connection_closed(
        501, f"content body size {size} exceeds maximum allowed size {MAX_ANNOUNCED_SIZE}", "basic.publish")


def too_large(size):
    return channel_closed(
        406, f"message size {size} is larger than configured max size {MAX_MESSAGE_SIZE}", "basic.publish")


@pytest.mark.hb(29, 83)
def test_message_one_byte_too_large(broker):
    """Leveret answers when it sees the header and throws the body away; RabbitMQ takes all of it first."""
    size = MAX_MESSAGE_SIZE + 1
    with broker.peer() as peer:
        peer.connect(channels=[1, 2])
        whole = wire.publish(1, "", "hostile.nowhere", b"x" * size)
        head = len(PUBLISH) + len(wire.header_frame(1, size))
        peer.send(whole[:head])
        if by_broker(rabbitmq=False, leveret=True):
            assert peer.outcome() == too_large(size)
            peer.send(whole[head:])
        else:
            peer.send(whole[head:])
            assert peer.outcome() == too_large(size)
        peer.assert_usable(2)
        peer.send_method(1, "channel.close-ok")
        peer.call(1, "channel.open")
        assert peer.outcome_or_unharmed() == UNHARMED


@pytest.mark.leveret_only("RabbitMQ would assemble it")
@pytest.mark.hb(28, 29)
@pytest.mark.parametrize("size", [MAX_MESSAGE_SIZE + 1, 100 * MIB, MAX_ANNOUNCED_SIZE])
def test_too_large_is_answered_at_header_time(peer, size):
    peer.send(PUBLISH, wire.header_frame(1, size))
    assert peer.outcome() == too_large(size)


def open_all_channels(broker):
    """A peer with as many channels as can be."""
    peer = broker.peer().connect(channels=())
    peer.send(*(wire.method_frame(channel, "channel.open") for channel in CHANNELS))
    for _ in CHANNELS:
        assert peer.read_method()[1].name == "channel.open-ok"
    return peer


@pytest.mark.leveret_only("RabbitMQ would wait for the bodies")
@pytest.mark.hb(30)
def test_too_large_on_every_channel(fresh_broker):
    """500 MiB announced on each of 2047 channels: 2047 channel errors and no memory."""
    size = 500 * MIB
    with open_all_channels(fresh_broker) as peer, Growth(fresh_broker) as growth:
        for channel in CHANNELS:
            peer.send(wire.method_frame(channel, "basic.publish"), wire.header_frame(channel, size))
            assert peer.outcome() == too_large(size)
    assert growth.bytes <= ANNOUNCED_GROWTH_MAX


@pytest.mark.leveret_only("RabbitMQ has no such limit and would take gigabytes")
@pytest.mark.hb(29, 30)
def test_assembly_is_limited_per_connection(fresh_broker):
    """A mebibyte of a message on each of many channels: at 64 MiB in all the connection is closed."""
    piece = b"\x5a" * (131072 - wire.FRAME_OVERHEAD)
    per_channel = 8 * len(piece)
    enough = MAX_ASSEMBLED_PER_CONNECTION // per_channel + 2
    before = fresh_broker.resident_bytes()
    with open_all_channels(fresh_broker) as peer, Growth(fresh_broker) as growth:
        for channel in CHANNELS[:enough]:
            peer.send(
                wire.method_frame(channel, "basic.publish", routing_key="hostile.nowhere"),
                wire.header_frame(channel, MAX_MESSAGE_SIZE), wire.body_frame(channel, piece) * 8)
        text = f"more than {MAX_ASSEMBLED_PER_CONNECTION} bytes of unfinished messages on one connection"
        assert peer.outcome() == connection_closed(506, text, "basic.publish")
    assert growth.bytes <= ASSEMBLY_GROWTH_MAX
    deadline = time.monotonic() + GIVEN_BACK_S
    while fresh_broker.resident_bytes() - before > GIVEN_BACK_BYTES_MAX:
        assert time.monotonic() < deadline, "the memory of a dead connection was not given back"
        time.sleep(0.05)


@pytest.mark.hb(29)
def test_assembly_limit_is_given_back(broker):
    """What one connection had half assembled is free again once the messages are whole or the channels closed."""
    piece = b"\x5a" * (131072 - wire.FRAME_OVERHEAD)
    with broker.peer() as peer:
        peer.connect(channels=range(1, 9))
        for _ in range(12):  # 12 x 8 MiB finished, never more than 8 MiB open
            for channel in range(1, 9):
                peer.send(
                    wire.method_frame(channel, "basic.publish", routing_key="hostile.nowhere"),
                    wire.header_frame(channel, 8 * len(piece)), wire.body_frame(channel, piece) * 7)
            for channel in range(1, 9):
                peer.send(wire.body_frame(channel, piece))
        peer.assert_usable()


@pytest.mark.hb(34)
def test_contents_of_two_channels_interleaved(broker):
    """Every alternation of two publishes' frames arrives as two whole messages."""
    with broker.peer() as peer:
        peer.connect(channels=[1, 2])
        queue = peer.call(1, "queue.declare", exclusive=True).queue

        def frames(channel, letter):
            return [
                wire.method_frame(channel, "basic.publish", routing_key=queue),
                wire.header_frame(channel, 6, {"message_id": f"on {channel}"}),
                wire.body_frame(channel, letter * 2), wire.body_frame(channel, letter * 3),
                wire.body_frame(channel, letter)]

        one, two = frames(1, b"a"), frames(2, b"b")
        for first in range(6):
            # channel 2's frames start after `first` frames of channel 1, then they alternate
            order = one[:first] + [frame for pair in zip(two, one[first:] + [b""] * 5) for frame in pair]
            peer.send(*order)
            got = {}
            for _ in range(2):
                _, header, body = peer.get(1, queue)
                got[header.properties["message_id"]] = body
            assert got == {"on 1": b"aaaaaa", "on 2": b"bbbbbb"}


@pytest.mark.hb(34)
def test_methods_of_another_channel_inside_a_content(broker):
    """A content in progress does not hold up other channels, heartbeats or channel 0."""
    with broker.peer() as peer:
        peer.connect(channels=[1, 2])
        queue = peer.call(1, "queue.declare", exclusive=True).queue
        peer.send(wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, 4))
        peer.assert_usable(2)
        peer.send(wire.heartbeat(), wire.body_frame(1, b"ab"))
        peer.call(0, "connection.update-secret", new_secret=b"guest")
        peer.call(2, "channel.close", reply_code=200)
        peer.send(wire.body_frame(1, b""), wire.body_frame(1, b"cd"))
        assert peer.get(1, queue)[2] == b"abcd"


@pytest.mark.hb(26)
def test_empty_body_frames(peer):
    """Legal, useless, and never the end of a message that wants more. Both brokers take a few."""
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    peer.send(
        wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, 2),
        wire.body_frame(1, b"") * 30, wire.body_frame(1, b"a"), wire.body_frame(1, b"") * 30,
        wire.body_frame(1, b"b"))
    assert peer.get(1, queue)[2] == b"ab"


@pytest.mark.hb(42)
@pytest.mark.parametrize(
    "properties, reason",
    [
        (b"\x00\x00xyz", "3 octets follow the properties"),
        (b"\x00\x01" * 5000 + b"\x00\x00", FLAGS_GO_ON),
        (b"\x80\x00\x05ab", PROPERTIES_CUT),
        (b"\x10\x00", PROPERTIES_CUT),
        (b"\x00\x40\x00\x00", PROPERTIES_CUT),
        (b"\x20\x00\xff\xff\xff\xff", TABLE_CUT),
        (b"\x20\x00\x00\x00\x00\x01", TABLE_CUT),
        (b"\x80\x00", PROPERTIES_CUT),
    ],
    ids=[
        "trailing", "flags-without-end", "short-string-cut", "delivery-mode-missing", "timestamp-cut",
        "table-of-4-gib", "table-cut", "short-string-missing"])
def test_undecodable_properties(peer, properties, reason):
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    peer.send(
        wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, 3, properties),
        wire.body_frame(1, b"abc"))
    assert peer.outcome() == bad_properties(reason)


@pytest.mark.hb(42)
@pytest.mark.parametrize("flags", [1, 2, 3], ids=["continuation", "reserved", "both"])
def test_flags_of_properties_that_do_not_exist(peer, flags):
    """RabbitMQ ignores the two lowest bits of the last flag word."""
    peer.send(PUBLISH, wire.header_frame(1, 3, struct.pack(">H", flags)), wire.body_frame(1, b"abc"))
    refused = connection_closed(502, f"cannot decode content properties: {FLAGS_GO_ON}", "basic.publish")
    assert peer.outcome_or_unharmed() == by_broker(
        rabbitmq=one_of(UNHARMED, connection_closed(541, "")), leveret=refused if flags & 1 else UNHARMED)


@pytest.mark.parametrize("size", [12, 13], ids=["no-flags", "half-flags"])
def test_header_without_property_flags(peer, size):
    """RabbitMQ does not notice before the properties are read."""
    peer.send(PUBLISH, wire.frame(wire.FRAME_HEADER, 1, wire.header(3)[:size]), wire.body_frame(1, b"abc"))
    assert peer.outcome() == bad_properties(PROPERTIES_CUT)


@pytest.mark.hb(34)
def test_publish_split_at_every_byte(broker):
    """Method, header and body frames cut in two at each octet: the broker reads each half on its own."""
    with broker.peer() as peer:
        peer.connect()
        queue = peer.call(1, "queue.declare", exclusive=True).queue
        peer.call(1, "basic.consume", queue=queue, no_ack=True)
        frames = wire.publish(1, "", queue, b"cut", {"message_id": "m", "headers": [("k", ("S", b"v"))]})
        for cut in range(1, len(frames)):
            peer.send(frames[:cut])
            peer.wait_until_read()
            peer.send(frames[cut:])
            peer.expect(1, "basic.deliver")
            header, body, _ = peer.read_content(1)
            assert body == b"cut" and header.properties == {"message_id": "m", "headers": [("k", ("S", b"v"))]}
