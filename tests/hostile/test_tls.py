"""What a client can do within TLS, below AMQP: key updates, tiny and empty records, handshakes that go on."""

import contextlib
import random
import shutil
import socket
import ssl
import subprocess
import time

import pytest

import tls_records
import wire
from memory import MIB, Growth
from peer import ANSWER_TIMEOUT_S, Peer, SocketDropped
from tls_records import APPLICATION_DATA, CLIENT_HELLO, HANDSHAKE, NOT_REQUESTED, REQUESTED, RecordSocket

pytestmark = pytest.mark.leveret_only("the certificates of a running RabbitMQ are not the suite's to change")

REQUESTS_MAX = 32  # key updates that want an answer, until something else comes (rustls)
FLOOD = 10_000
FLOOD_CPU_MAX_S = 10.0
GROWTH_MAX = 8 * MIB
HANDSHAKE_TIMEOUT_S = 5.0
HANDSHAKE_TOLERANCE_S = 2.0  # by the stopwatch
CROWD = 200


class RecordPeer(Peer):
    """A peer within TLS that sends given records, too."""

    def __init__(self, broker):
        self.socket = RecordSocket(broker.addresses["AMQPS"])
        self.buffer = bytearray()
        self.frame_max = 131072

    def flood(self, octets):
        """Sends as much of this as the broker takes."""
        try:
            self.socket.socket.sendall(octets)
        except OSError:
            pass


@pytest.mark.hb(87)
def test_peers_speak_tls_after_the_switch(broker):
    broker.transport = "tls"
    with broker.peer() as peer:
        assert peer.socket.version() == "TLSv1.3"
        peer.connect().assert_usable()


@pytest.mark.hb(93)
def test_deliveries_between_key_updates(broker, names):
    """A consumer that wants new keys all the time gets what it consumes, under the new keys."""
    queue = names.queue()
    with RecordPeer(broker) as consumer, broker.peer() as publisher:
        publisher.connect().call(1, "queue.declare", queue=queue)
        consumer.connect().call(1, "basic.consume", queue=queue, no_ack=True)
        for number in range(50):
            consumer.flood(consumer.socket.key_update(REQUESTED) + consumer.socket.key_update(NOT_REQUESTED))
            publisher.publish(1, "", queue, b"%d" % number * 100)
            consumer.expect(1, "basic.deliver")
            assert consumer.read_content(1)[1] == b"%d" % number * 100
            consumer.assert_usable()
        assert consumer.socket.key_updates >= 25


@pytest.mark.hb(93)
def test_key_updates_that_want_answers_without_end(fresh_broker):
    """Answered a few times, then it is over."""
    with RecordPeer(fresh_broker) as peer:
        peer.connect()
        with Growth(fresh_broker) as growth:
            before_s = fresh_broker.cpu_s()
            peer.flood(b"".join(peer.socket.key_update(REQUESTED) for _ in range(FLOOD)))
            with pytest.raises(SocketDropped):
                peer.read_bytes(1)
            assert fresh_broker.cpu_s() - before_s <= FLOOD_CPU_MAX_S
    assert peer.socket.key_updates <= REQUESTS_MAX
    assert growth.bytes <= GROWTH_MAX


@pytest.mark.hb(93)
def test_key_updates_that_want_nothing_without_end(fresh_broker):
    """Each costs a little work and no memory; the connection goes on, or is over."""
    with RecordPeer(fresh_broker) as peer:
        peer.connect()
        with Growth(fresh_broker) as growth:
            before_s = fresh_broker.cpu_s()
            peer.flood(b"".join(peer.socket.key_update(NOT_REQUESTED) for _ in range(FLOOD)))
            try:
                peer.assert_usable()
            except (SocketDropped, OSError):
                pass
            assert fresh_broker.cpu_s() - before_s <= FLOOD_CPU_MAX_S
    assert growth.bytes <= GROWTH_MAX


@pytest.mark.hb(93)
@pytest.mark.parametrize("empty", [0, 20], ids=["full", "with-empty-ones-between"])
def test_records_of_one_octet(fresh_broker, empty):
    with RecordPeer(fresh_broker) as peer:
        peer.connect()
        queue = peer.call(1, "queue.declare", exclusive=True).queue
        body = random.Random(1).randbytes(2000)
        with Growth(fresh_broker) as growth:
            records = [peer.socket.record(APPLICATION_DATA, b"") for _ in range(empty)]
            for octet in wire.publish(1, "", queue, body):
                records.append(peer.socket.record(APPLICATION_DATA, bytes([octet])))
                records += [peer.socket.record(APPLICATION_DATA, b"") for _ in range(empty)]
            peer.flood(b"".join(records))
            assert peer.get(1, queue)[2] == body
    assert growth.bytes <= GROWTH_MAX


HANDSHAKES = {
    "a second client hello": tls_records.message(CLIENT_HELLO, b"\x03\x03" + bytes(40)),
    "a key update of a kind that is none": tls_records.message(tls_records.KEY_UPDATE, b"\x07"),
    "a key update that is cut off": tls_records.message(tls_records.KEY_UPDATE, b""),
    "a finished again": tls_records.message(tls_records.FINISHED, bytes(32)),
    "an unknown message": tls_records.message(99, b"x"),
}


@pytest.mark.hb(93)
@pytest.mark.parametrize("case", HANDSHAKES)
def test_handshakes_after_the_handshake(broker, case):
    """There is no renegotiation: a client that begins one is disconnected."""
    with RecordPeer(broker) as peer:
        peer.connect()
        peer.flood(peer.socket.record(HANDSHAKE, HANDSHAKES[case]))
        with pytest.raises(SocketDropped):
            peer.read_bytes(1)


@pytest.mark.hb(93)
def test_a_handshake_message_that_never_ends(fresh_broker):
    """Sixteen mebibytes are announced, and come in records that are full."""
    with RecordPeer(fresh_broker) as peer:
        peer.connect()
        with Growth(fresh_broker) as growth:
            message = bytes([tls_records.KEY_UPDATE]) + b"\xff\xff\xff" + bytes(16 * MIB)
            peer.flood(b"".join(
                peer.socket.record(HANDSHAKE, message[at:at + 16_384]) for at in range(0, len(message), 16_384)))
            with pytest.raises(SocketDropped):
                peer.read_bytes(1)
    assert growth.bytes <= GROWTH_MAX


@pytest.mark.hb(93)
@pytest.mark.skipif(shutil.which("openssl") is None, reason="asks for renegotiation with the openssl program")
def test_renegotiation_of_tls_1_2(broker):
    """Asked for again and again, it never happens."""
    host, port = broker.addresses["AMQPS"]
    client = subprocess.Popen(
        ["openssl", "s_client", "-tls1_2", "-connect", f"{host}:{port}"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for _ in range(5):
            client.stdin.write("R\n")
            client.stdin.flush()
            time.sleep(0.2)
        said, _ = client.communicate(timeout=ANSWER_TIMEOUT_S)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        client.kill()
        said, _ = client.communicate()
    assert "RENEGOTIATING" in said and said.count("SSL handshake has read") == 1
    assert "no renegotiation" in said or "unexpected message" in said or "handshake failure" in said


@pytest.mark.hb(93)
@pytest.mark.parametrize("version", ["SSLv3", "TLSv1", "TLSv1_1"])
def test_old_versions_are_not_spoken(broker, version):
    """For any range of versions of the client; its hello has the version in the record layer, too."""
    minor = {"SSLv3": 0, "TLSv1": 1, "TLSv1_1": 2}[version]
    hello = bytes([3, minor]) + bytes(32) + b"\0" + b"\x00\x04\xc0\x14\x00\x2f" + b"\x01\x00"
    hello = tls_records.message(CLIENT_HELLO, hello)
    with socket.create_connection(broker.addresses["AMQPS"], timeout=ANSWER_TIMEOUT_S) as client:
        client.sendall(bytes([HANDSHAKE, 3, minor]) + len(hello).to_bytes(2, "big") + hello)
        said = client.recv(65536)
    assert not said or said[0] == tls_records.ALERT


@pytest.mark.slow
@pytest.mark.hb(20, 93)
def test_handshakes_of_tls_that_stop(fresh_broker):
    """A crowd that says nothing, half a hello, or drips: all dropped at the deadline, and a client of TLS gets in."""
    host, port = fresh_broker.addresses["AMQPS"]
    began, watch = time.monotonic(), fresh_broker.stopwatch()
    crowd = [socket.create_connection((host, port), timeout=ANSWER_TIMEOUT_S) for _ in range(CROWD)]
    try:
        with Growth(fresh_broker) as growth:
            for number, client in enumerate(crowd):
                client.sendall((b"", b"\x16\x03\x01\x02\x00\x01", b"\x16")[number % 3])
            for client in crowd:
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(1) == b""
            assert watch.elapsed_s() <= HANDSHAKE_TIMEOUT_S + HANDSHAKE_TOLERANCE_S
        assert time.monotonic() - began >= HANDSHAKE_TIMEOUT_S - 0.5
        fresh_broker.transport = "tls"
        with fresh_broker.peer() as peer:
            peer.connect().assert_usable()
    finally:
        for client in crowd:
            client.close()
    assert growth.bytes <= GROWTH_MAX


@pytest.mark.hb(87)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_hanging_up_without_a_farewell(broker, names, version):
    """A client that is cut off within TLS: half a message is discarded, what it held is there again."""
    queue = names.queue()
    context = broker.certificate.context(version)
    with socket.create_connection(broker.addresses["AMQPS"]) as plain:
        peer = Peer.__new__(Peer)
        peer.socket, peer.buffer, peer.frame_max = context.wrap_socket(plain), bytearray(), 131072
        peer.connect().call(1, "queue.declare", queue=queue)
        peer.publish(1, "", queue, b"held")
        assert peer.get(1, queue, no_ack=False)[2] == b"held"
        peer.send(wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, 100), b"\x03\x00")
        peer.reset()
    with broker.peer() as other:
        got, _, body = other.connect().get(1, queue)
        assert body == b"held" and got.redelivered and got.message_count == 0
