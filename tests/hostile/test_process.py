"""Attacks on the process itself, each on a Leveret of its own: file descriptors and shutdown."""

import os
import resource
import socket
import time
from pathlib import Path

import pytest

import wire
from answers import connection_closed
from brokers import Leveret
from peer import Silent, SocketDropped

pytestmark = pytest.mark.leveret_only("needs a broker process of its own")

DESCRIPTORS = 64
BUSY_SHARE_MAX = 0.10  # of one core, while the listener cannot accept
MEASURE_S = 2.0
RECOVERY_S = 2.0


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.hb(86)
def test_out_of_file_descriptors(leveret_bin):
    """The listener waits instead of spinning, connected clients are served, and new ones as soon as there is room."""
    broker = Leveret(leveret_bin, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
    crowd = []
    try:
        with broker.peer() as friend:
            friend.connect()
            for _ in range(2 * DESCRIPTORS):
                stranger = socket.create_connection(broker.address, timeout=5)
                crowd.append(stranger)
            began = cpu_seconds(broker.process.pid)
            deadline = time.monotonic() + MEASURE_S
            rounds = 0
            while time.monotonic() < deadline:
                friend.assert_usable()
                with pytest.raises(Silent):
                    friend.read_bytes(1, timeout=0.1)
                rounds += 1
            assert rounds >= 5
            assert cpu_seconds(broker.process.pid) - began <= BUSY_SHARE_MAX * MEASURE_S
            for stranger in crowd:
                stranger.close()
            crowd.clear()
            deadline = time.monotonic() + RECOVERY_S
            while True:
                try:
                    with broker.peer() as newcomer:
                        newcomer.connect().assert_usable()
                    break
                except (SocketDropped, Silent, OSError):
                    assert time.monotonic() < deadline, "no new connection after the crowd had left"
            friend.assert_usable()
        broker.assert_alive()
    finally:
        for stranger in crowd:
            stranger.close()
        broker.stop()


@pytest.mark.hb(99)
def test_publishing_while_the_broker_shuts_down(leveret_bin):
    """Clients are told why; everything sent before is confirmed or not, never both; the process ends by itself."""
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
        assert broker.process.wait(10) == 0
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
            assert broker.process.wait(10) == 0
    finally:
        broker.stop()
