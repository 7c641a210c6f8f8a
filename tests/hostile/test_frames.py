"""Frames that are none: sizes, ends, types, and frames in places where they may not stand."""

import struct

import pytest

import wire
from answers import DROPPED, by_broker, connection_closed
from memory import MIB, Growth

STRANGERS = 200
STRANGERS_GROWTH_MAX = 8 * MIB  # of 800 GiB that they announce


def erlang(payload):
    """How RabbitMQ shows unprintable octets in a reply text."""
    return "<<" + ",".join(map(str, payload)) + ">>"


@pytest.mark.hb(4, 5)
@pytest.mark.parametrize(
    "attack, text",
    [
        (struct.pack(">BHI", 1, 0, 0xFFFFFFFF), "type 1, all octets = <<>>: {frame_too_large,4294967295,8184}"),
        (struct.pack(">BHI", 1, 0, 8193), "type 1, all octets = <<>>: {frame_too_large,8193,8184}"),
        (wire.frame(1, 0, b"x" * 8193), "type 1, all octets = <<>>: {frame_too_large,8193,8184}"),
        (wire.frame(9, 0), "type 9, all octets = <<>>: unknown_frame"),
        (wire.frame(0, 0), "type 0, all octets = <<>>: unknown_frame"),
        (wire.frame(1, 0, b""), "type 1, all octets = <<>>: unknown_frame"),
        (wire.method_frame(0, "connection.start-ok")[:-1] + b"\0",
         "type 1, all octets = <<0,10,0,11,0,0,0,0,0,0,0,0,0,0>>: {invalid_frame_end_marker,0}"),
    ],
    ids=["size-2^32", "size-8193", "8193-bytes", "type-9", "type-0", "empty-method", "frame-end"])
def test_frame_errors_before_tune(broker, attack, text):
    """RabbitMQ drops the socket without a word about three seconds later."""
    with broker.peer() as peer:
        peer.start()
        peer.send(attack)
        assert peer.outcome() == by_broker(rabbitmq=DROPPED, leveret=connection_closed(501, text))


@pytest.mark.leveret_only("its memory is looked at")
@pytest.mark.hb(4)
def test_announced_sizes_take_no_memory_before_login(fresh_broker):
    with Growth(fresh_broker) as growth:
        for _ in range(STRANGERS):
            with fresh_broker.peer() as peer:
                peer.start()
                peer.send(struct.pack(">BHI", 1, 0, 0xFFFFFFFF), bytes(8192))
                assert peer.outcome().code == 501
    assert growth.bytes <= STRANGERS_GROWTH_MAX


@pytest.mark.hb(5)
def test_start_ok_of_8192_bytes(broker):
    """The limit before tune is a payload of 8192 bytes, and up to that nothing is refused."""
    with broker.peer() as peer:
        peer.start()
        bare = len(wire.method("connection.start-ok", client_properties=[("fill", ("S", b""))], mechanism="PLAIN",
                               response=b"\0guest\0guest", locale="en_US"))
        peer.start_ok([("fill", ("S", b"x" * (8192 - bare)))])
        peer.expect(0, "connection.tune")


@pytest.mark.hb(21)
@pytest.mark.parametrize("end", [0, 0xCD, 0xCF, 0xFF])
@pytest.mark.parametrize(
    "type_, channel, payload",
    [(1, 1, wire.method("tx.select")), (2, 1, wire.header(3)), (3, 1, b"\x00\x01\x02"), (8, 0, b""),
     (1, 0, b"\x00\x0a")])
def test_frame_end(peer, type_, channel, payload, end):
    peer.send(wire.frame(type_, channel, payload, end=end))
    assert peer.outcome() == connection_closed(
        501, f"type {type_}, all octets = {erlang(payload)}: {{invalid_frame_end_marker,{end}}}")


@pytest.mark.hb(21)
@pytest.mark.parametrize("size", [17, 5000, 131064])
def test_frame_end_behind_long_payloads(peer, size):
    """At most sixteen octets are shown."""
    peer.send(wire.frame(3, 1, b"\x00\x81" * (size // 2) + b"\x00" * (size % 2), end=0))
    shown = f"first 16 octets = {erlang(bytes((0, 129)) * 8)}"
    assert peer.outcome() == connection_closed(501, f"type 3, {shown}: {{invalid_frame_end_marker,0}}")


@pytest.mark.hb(21)
def test_frame_end_behind_text(peer):
    """RabbitMQ shows printable octets as a string."""
    peer.send(wire.frame(3, 1, b"hello", end=0))
    assert peer.outcome() == connection_closed(501, 'type 3, all octets = <<"hello">>: {invalid_frame_end_marker,0}')


@pytest.mark.hb(21, 35)
def test_size_one_too_small_and_one_too_large(broker):
    """The end octet is then looked for inside the frame, or in the next one."""
    good = wire.method("basic.cancel", consumer_tag="\x01\x02")
    for size, wrong_end, shown in (
        (len(good) - 1, 0, good[:-1]),
        (len(good) + 1, 1, good + b"\xce"),
    ):
        with broker.peer() as peer:
            peer.connect()
            peer.send(wire.frame(1, 1, good, size=size), wire.method_frame(1, "basic.qos"))
            assert peer.outcome() == connection_closed(
                501, f"type 1, all octets = {erlang(shown)}: {{invalid_frame_end_marker,{wrong_end}}}")


@pytest.mark.hb(22)
@pytest.mark.parametrize("type_", [0, 4, 5, 6, 7, 9, 127, 255])
@pytest.mark.parametrize("channel", [0, 1, 77])
@pytest.mark.parametrize("payload", [b"", b"\x00\x01\x02"], ids=["empty", "three"])
def test_unknown_frame_types(peer, type_, channel, payload):
    """Never skipped, on no channel."""
    peer.send(wire.frame(type_, channel, payload))
    assert peer.outcome() == connection_closed(
        501, f"type {type_}, all octets = {erlang(payload)}: unknown_frame")


@pytest.mark.hb(24)
@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("channel", [0, 1])
def test_method_frame_without_a_method(peer, channel, size):
    payload = struct.pack(">HH", 60, 10)[:size]
    peer.send(wire.frame(1, channel, payload))
    assert peer.outcome() == connection_closed(501, f"type 1, all octets = {erlang(payload)}: unknown_frame")


@pytest.mark.hb(24)
@pytest.mark.parametrize("size", range(12))
def test_header_frame_without_a_body_size(peer, size):
    payload = wire.header(3)[:size]
    peer.send(wire.method_frame(1, "basic.publish"), wire.frame(2, 1, payload))
    assert peer.outcome() == connection_closed(501, f"type 2, all octets = {erlang(payload)}: unknown_frame")


@pytest.mark.parametrize("type_", [wire.FRAME_HEADER, wire.FRAME_BODY])
@pytest.mark.parametrize("channel", [1, 5], ids=["open-channel", "unknown-channel"])
def test_content_where_a_method_is_expected(peer, type_, channel):
    peer.send(wire.frame(type_, channel, wire.header(3)))
    assert peer.outcome() == connection_closed(505, "expected method frame, got non method frame instead")


@pytest.mark.parametrize("type_", [wire.FRAME_HEADER, wire.FRAME_BODY])
def test_content_on_channel_zero(peer, type_):
    payload = wire.header(3)
    peer.send(wire.frame(type_, 0, payload))
    assert peer.outcome() == connection_closed(505, f"type {type_}, all octets = {erlang(payload)}")


@pytest.mark.hb(85)
def test_urgent_data(peer):
    """Out-of-band bytes are not part of the stream."""
    peer.socket.send(b"!", 1)  # MSG_OOB
    peer.assert_usable()
