"""The first eight bytes, and peers that never send them."""

import time

import pytest

import wire
from answers import by_broker
from http_client import WHOAMI, answers
from peer import Silent

HANDSHAKE_TIMEOUT_S = 10.0
HANDSHAKE_TOLERANCE_S = 1.5  # by the stopwatch

AMQP_0_9_1 = b"AMQP\x00\x00\x09\x01"
AMQP_1_0_SASL = b"AMQP\x03\x01\x00\x00"

# RabbitMQ also speaks AMQP 1.0 and offers that to clients of other protocols; Leveret offers 0-9-1.
OFFER_TO_STRANGERS = by_broker(rabbitmq=AMQP_1_0_SASL, leveret=AMQP_0_9_1)


@pytest.mark.parametrize("header", [b"AMQP\x00\x00\x09\x01", b"AMQP\x01\x01\x00\x09"], ids=["0-9-1", "1-1-0-9"])
def test_accepted_headers(broker, header):
    with broker.peer() as peer:
        peer.send(header)
        assert peer.expect(0, "connection.start").version_minor == 9


@pytest.mark.hb(3)
@pytest.mark.parametrize("version", [b"\x00\x00\x09\x00", b"\x00\x00\x09\x02", b"\x00\x00\x0a\x01"])
def test_other_0_9_versions_are_offered_0_9_1(broker, version):
    with broker.peer() as peer:
        peer.send(b"AMQP" + version)
        assert peer.read_until_drop() == AMQP_0_9_1


@pytest.mark.hb(3, 90)
@pytest.mark.parametrize(
    "header",
    [
        b"AMQP\x00\x00\x08\x00", b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x09\x01", b"AMQP1100", b"AMQP0091",
        b"AMQP\x00\x01\x00\x00", b"AMQP\x02\x01\x00\x00", b"AMQPxxxx", b"amqp\x00\x00\x09\x01",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),  # TLS client hello
        b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00",
        b"CONNECT\naccept-version:1.2\nhost:/\n\n\x00",
        bytes((index * 89 + 41) % 256 for index in range(64)), bytes(64), b"\xff" * 64,
    ],
    ids=[
        "amqp-0-8", "amqp-1-1-8-0", "amqp-1-1-9-1", "ascii-1100", "ascii-0091", "amqp-1-0", "amqp-1-0-tls", "letters",
        "lower-case", "http-request", "http-response", "tls-hello", "mqtt", "stomp", "noise", "zeros", "ones",
    ],
)
def test_wrong_protocol_header_gets_the_supported_one(broker, header):
    with broker.peer() as peer:
        peer.send(header)
        assert peer.read_until_drop() == OFFER_TO_STRANGERS


PROXY_V2 = b"\r\n\r\n\x00\r\nQUIT\n"
FROM_HERE = bytes([127, 0, 0, 1] * 2) + b"\x00\x01\x00\x02"


@pytest.mark.hb(3, 89)
@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + AMQP_0_9_1,
        b"PROXY UNKNOWN\r\n" + AMQP_0_9_1,
        b"PROXY TCP4 127.0.0.1",
        PROXY_V2 + b"\x21\x11\x00\x0c" + FROM_HERE + AMQP_0_9_1,
        PROXY_V2 + b"\x20\x00\x00\x00" + AMQP_0_9_1,
        PROXY_V2 + b"\x21\x11\xff\xff" + FROM_HERE + bytes(65_523) + AMQP_0_9_1,
        PROXY_V2[:9],
    ],
    ids=["v1", "v1-unknown", "v1-cut", "v2", "v2-local", "v2-64-kib", "v2-cut"])
def test_a_proxy_header_is_another_protocol(broker, header):
    """Leveret does not know it and refuses `proxy_protocol` in a configuration: no address in it is believed."""
    with broker.peer() as peer:
        peer.send(header)
        assert peer.read_until_drop() == OFFER_TO_STRANGERS


@pytest.mark.leveret_only("RabbitMQ's HTTP address is not known here")
@pytest.mark.hb(89)
@pytest.mark.parametrize(
    "header", [b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n", PROXY_V2 + b"\x21\x11\x00\x0c" + FROM_HERE], ids=["v1", "v2"])
def test_a_proxy_header_is_no_http(broker, header):
    said = answers(broker, header + WHOAMI + b"\r\n")
    assert not said or said.startswith(b"HTTP/1.1 400 ")


@pytest.mark.hb(90)
def test_amqp_1_0_with_sasl(broker):
    with broker.peer() as peer:
        peer.send(AMQP_1_0_SASL)
        # RabbitMQ goes on with SASL mechanisms here; Leveret does not speak AMQP 1.0.
        assert peer.read_bytes(8) == by_broker(rabbitmq=AMQP_1_0_SASL, leveret=AMQP_0_9_1)
        if by_broker(rabbitmq=False, leveret=True):
            assert peer.read_until_drop() == b""


def test_header_in_single_bytes(broker):
    with broker.peer() as peer:
        for octet in wire.PROTOCOL_HEADER:
            peer.send(bytes([octet]))
            peer.wait_until_read()
        peer.expect(0, "connection.start")


@pytest.mark.slow
@pytest.mark.hb(1, 2, 20)
def test_every_handshake_state_has_one_deadline(fresh_broker):
    """Sockets stuck in each state of the handshake are dropped at the deadline; dripping bytes does not move it."""
    broker = fresh_broker
    each = by_broker(rabbitmq=20, leveret=100)
    began, watch = time.monotonic(), broker.stopwatch()
    states = ("silent", "drip", "started", "tuning", "opening")
    stuck = {state: [broker.peer() for _ in range(each)] for state in states}
    try:
        for peers in (stuck["started"], stuck["tuning"], stuck["opening"]):
            for peer in peers:
                peer.start()
        for peer in stuck["tuning"] + stuck["opening"]:
            peer.start_ok()
            peer.expect(0, "connection.tune")
        for peer in stuck["opening"]:
            peer.send_method(0, "connection.tune-ok", channel_max=2047, frame_max=131072)
        # One byte every two seconds: the header is not complete when the time is up.
        for octet in wire.PROTOCOL_HEADER[:5]:
            if time.monotonic() - began > HANDSHAKE_TIMEOUT_S - 2 * HANDSHAKE_TOLERANCE_S:
                break  # on a busy machine, the handshakes have taken some of the time
            for peer in stuck["drip"]:
                peer.send(bytes([octet]))
            with pytest.raises(Silent):
                stuck["silent"][0].read_bytes(1, timeout=1.5)
        for peers in stuck.values():
            for peer in peers:
                assert peer.read_until_drop(HANDSHAKE_TIMEOUT_S + HANDSHAKE_TOLERANCE_S, watch) == b""
        assert time.monotonic() - began > HANDSHAKE_TIMEOUT_S - HANDSHAKE_TOLERANCE_S
    finally:
        for peers in stuck.values():
            for peer in peers:
                peer.socket.close()
