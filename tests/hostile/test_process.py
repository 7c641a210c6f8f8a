"""Attacks on the process itself, each on a Leveret of its own: file descriptors, HTTP, the log and shutdown."""

import resource
import socket
import subprocess
import time

import pytest

import wire
from answers import connection_closed
from brokers import START_TIMEOUT_S, STOP_TIMEOUT_S, Leveret
from http_client import Api, path
from peer import ANSWER_TIMEOUT_S, Silent, SocketDropped, client_properties
from ports import free_port

pytestmark = pytest.mark.leveret_only("needs a broker process of its own")

DESCRIPTORS = 64
BUSY_SHARE_MAX = 0.10  # of one core, while the listener cannot accept
ROUNDS = 20
QUIET_S = 0.1
RECOVERY_S = 2.0  # by the stopwatch
HTTP_CROWD = 300  # more than the broker serves at the same time, and more than it has descriptors
PROMPT_S = 2.0  # a shutdown that waits for no client, by the stopwatch
NO_DISK = "/dev/shm"  # for a broker whose times are bounded: a sync of a busy disk may take seconds


@pytest.mark.hb(86)
def test_out_of_file_descriptors(leveret_bin):
    """The listener waits instead of spinning, connected clients are served, and new ones as soon as there is room."""
    broker = Leveret(leveret_bin, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
    crowd = []
    try:
        with broker.peer() as friend:
            friend.connect()
            for _ in range(2 * DESCRIPTORS):
                stranger = socket.create_connection(broker.address, timeout=ANSWER_TIMEOUT_S)
                crowd.append(stranger)
            began, before_s = time.monotonic(), broker.cpu_s()
            for _ in range(ROUNDS):
                friend.assert_usable()
                with pytest.raises(Silent):
                    friend.read_bytes(1, timeout=QUIET_S)
            assert broker.cpu_s() - before_s <= BUSY_SHARE_MAX * (time.monotonic() - began)
            for stranger in crowd:
                stranger.close()
            crowd.clear()
            watch = broker.stopwatch()
            while True:
                try:
                    with broker.peer() as newcomer:
                        newcomer.connect().assert_usable()
                    break
                except (SocketDropped, Silent, OSError):
                    assert watch.elapsed_s() < RECOVERY_S, "no new connection after the crowd had left"
            friend.assert_usable()
        broker.assert_alive()
    finally:
        for stranger in crowd:
            stranger.close()
        broker.stop()


@pytest.mark.hb(99)
def test_publishing_while_the_broker_shuts_down(leveret_bin):
    """Clients get the reason; everything sent before is confirmed or not, never both; the process ends by itself."""
    broker = Leveret(leveret_bin)
    try:
        with broker.peer() as peer, broker.peer() as idle:
            peer.connect()
            idle.connect()
            queue = peer.call(1, "queue.declare", exclusive=True).queue
            peer.call(1, "confirm.select")
            peer.send(wire.publish(1, "", queue, b"x", {"delivery_mode": 2}) * 500)
            broker.terminate()
            assert idle.outcome() == connection_closed(320)
            confirmed = 0
            while True:
                channel, got = peer.read_method()
                if got.name == "connection.close":
                    assert got.reply_code == 320 and got.reply_text.startswith("CONNECTION_FORCED"), got
                    break
                assert (channel, got.name) == (1, "basic.ack") and got.delivery_tag > confirmed
                confirmed = got.delivery_tag
            for each in (peer, idle):
                each.send_method(0, "connection.close-ok")
                each.assert_dropped()
        assert broker.process.wait(STOP_TIMEOUT_S) == 0
    finally:
        broker.stop()


@pytest.mark.hb(99)
def test_shutdown_does_not_wait_for_silent_peers(leveret_bin):
    broker = Leveret(leveret_bin)
    try:
        with broker.peer() as stuck, broker.peer() as stranger:
            stuck.connect()
            stranger.start()
            broker.terminate()
            assert broker.process.wait(STOP_TIMEOUT_S) == 0
    finally:
        broker.stop()


@pytest.mark.hb(99)
def test_shutdown_ends_those_who_are_not_in_yet(leveret_bin):
    """A silent socket and a client in the middle of its handshake do not delay the end."""
    broker = Leveret(leveret_bin, parent=NO_DISK)
    try:
        with broker.peer(), broker.peer() as stranger:
            stranger.log_in()
            watch = broker.stopwatch()
            broker.terminate()
            stranger.assert_dropped()
            assert broker.process.wait(STOP_TIMEOUT_S) == 0
            assert watch.elapsed_s() < PROMPT_S
    finally:
        broker.stop()


@pytest.mark.hb(99)
def test_connections_are_refused_during_the_shutdown(leveret_bin):
    broker = Leveret(leveret_bin)
    try:
        with broker.peer() as silent, broker.peer() as late:
            silent.connect()  # does not agree, so that the broker waits
            late.log_in()
            broker.terminate()
            assert silent.outcome() == connection_closed(320)
            late.send_method(0, "connection.tune-ok", channel_max=2047, frame_max=131072)
            late.send_method(0, "connection.open", virtual_host="/")
            assert late.read_until_drop() == b""
            with pytest.raises(OSError):
                broker.peer()
    finally:
        broker.stop()


@pytest.mark.hb(99)
def test_a_second_signal_is_obeyed_at_once(leveret_bin):
    broker = Leveret(leveret_bin, parent=NO_DISK)
    try:
        with broker.peer() as silent:
            silent.connect()
            broker.terminate()
            assert silent.outcome() == connection_closed(320)
            watch = broker.stopwatch()
            broker.terminate()
            assert broker.process.wait(STOP_TIMEOUT_S) == 0
            assert watch.elapsed_s() < PROMPT_S
    finally:
        broker.stop()


@pytest.mark.slow
@pytest.mark.hb(62, 85)
@pytest.mark.parametrize("size", [100_000, 16_000_000], ids=["held back by the core", "held back by the socket"])
def test_a_dead_peer_is_let_go_with_what_it_did_not_take(leveret_bin, size):
    """Its heartbeats stop while megabytes wait for it: the socket goes, and its messages are there for others."""
    broker = Leveret(leveret_bin)
    try:
        with broker.peer() as peer:
            peer.connect()
            queue = peer.call(1, "queue.declare", exclusive=False).queue
            for _ in range(16_000_000 // size):
                peer.publish(1, "", queue, b"." * size)
            peer.assert_usable()
            with broker.peer(rcvbuf=4096) as dead:
                dead.connect(heartbeat=1)
                before = broker.descriptors()
                dead.send_method(1, "basic.consume", queue=queue)
                deadline = time.monotonic() + ANSWER_TIMEOUT_S
                while broker.descriptors() >= before:
                    assert time.monotonic() < deadline, "its socket is still open"
                    time.sleep(0.05)
            count = peer.call(1, "queue.declare", queue=queue, passive=True).message_count
            assert count == 16_000_000 // size
        broker.assert_alive()
    finally:
        broker.stop()


@pytest.mark.slow
@pytest.mark.hb(62, 85)
def test_a_slow_peer_that_lives_is_not_let_go(leveret_bin):
    """It takes nothing of 16 MB for a while, but its heartbeats come, whether they are read or not."""
    broker = Leveret(leveret_bin)
    try:
        with broker.peer() as peer:
            peer.connect()
            queue = peer.call(1, "queue.declare", exclusive=False).queue
            peer.publish(1, "", queue, b"." * 16_000_000)
            peer.assert_usable()
            with broker.peer(rcvbuf=4096) as slow:
                slow.connect(heartbeat=1)
                slow.send_method(1, "basic.consume", queue=queue, no_ack=True)
                for _ in range(30):
                    slow.send(wire.heartbeat())
                    time.sleep(0.2)
                slow.expect(1, "basic.consume-ok")
                slow.expect(1, "basic.deliver")
                assert len(slow.read_content(1)[1]) == 16_000_000
        broker.assert_alive()
    finally:
        broker.stop()


@pytest.mark.hb(86)
def test_slow_http_clients_leave_descriptors_to_amqp(leveret_bin):
    """Requests that never end take a bounded share of the process."""
    broker = Leveret(leveret_bin, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (HTTP_CROWD, HTTP_CROWD)))
    crowd = []
    try:
        for _ in range(HTTP_CROWD):
            crowd.append(socket.create_connection(broker.http_address, timeout=ANSWER_TIMEOUT_S))
            crowd[-1].send(b"GET /metrics HTTP/1.1\r\nhost: ")
        for _ in range(20):
            with broker.peer() as peer:
                peer.connect().assert_usable()
        broker.assert_alive()
    finally:
        for client in crowd:
            client.close()
        broker.stop()


def test_a_log_that_cannot_be_written_is_no_reason_to_stop(leveret_bin, tmp_path):
    """The disk of the log is full, as /dev/full is."""
    port = free_port()
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen(
            [leveret_bin, "--data-dir", str(tmp_path), "--amqp", f"127.0.0.1:{port}", "--http", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=full)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            assert process.poll() is None, f"ended with {process.returncode}"
            try:
                socket.create_connection(("127.0.0.1", port), timeout=ANSWER_TIMEOUT_S).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        process.terminate()
        assert process.wait(STOP_TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()


def test_names_from_outside_stay_on_their_line_of_the_log(leveret_bin):
    forged = "evil\n2026-01-01T00:00:00Z  INFO all is well\x1b[31m\x9b1m\r\x7f"
    broker = Leveret(leveret_bin)
    try:
        with broker.peer() as peer:
            peer.start()
            properties = client_properties(authentication_failure_close=True)
            peer.start_ok(properties, response=b"\0" + forged.encode() + b"\0x")
            peer.outcome()
        with broker.peer() as peer:
            peer.log_in([("connection_name", ("S", forged.encode()))])
            peer.send_method(0, "connection.tune-ok", channel_max=2047, frame_max=131072)
            peer.send_method(0, "connection.open", virtual_host=forged)
            peer.outcome()
        with broker.peer() as peer:
            peer.connect(properties=[("connection_name", ("S", forged.encode()))])
        api = Api(broker)
        for kind, body in [("vhosts", {}), ("users", {"password": "x", "tags": ""})]:
            api.do("PUT", f"/api/{kind}/" + path(forged), body)
        policy = {"pattern": "x", "definition": {"message-ttl": 5}}
        api.do("PUT", "/api/policies/" + path("/", forged), policy)
        for queue in (forged, forged + "2"):
            api.do("PUT", "/api/queues/" + path("/", queue), {"arguments": {"x-expires": 60_000}})
        api.ask("POST", "/api/queues/" + path("/", forged, "redrive"), {"to": {"queue": forged + "2"}})
        api.do("DELETE", "/api/vhosts/" + path(forged))
        log = broker.log.read_text()
        assert log.count("evil") >= 3
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in log.replace("\n", ""))
        assert not any(line.startswith("2026-01-01") for line in log.splitlines())
    finally:
        broker.stop()
