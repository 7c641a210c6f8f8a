"""Heartbeats in both directions."""

import time

import pytest

import wire
from answers import BeginsWith, connection_closed
from peer import Silent, SocketDropped

INTERVAL_S = 1  # the shortest that can be negotiated
DEAD_AFTER_S = (2 * INTERVAL_S - 0.1, 3 * INTERVAL_S + 1.5)  # two to three silent intervals; the machine is shared


def read_until(peer, deadline):
    """Arrival times of the heartbeats until the deadline or the drop, and whether it was dropped."""
    arrivals = []
    while time.monotonic() < deadline:
        try:
            frame = peer.read_frame(deadline - time.monotonic() + 0.01)
        except SocketDropped:
            return arrivals, True
        except Silent:
            break
        assert frame == wire.Frame(wire.FRAME_HEARTBEAT, 0, b"")
        arrivals.append(time.monotonic())
    return arrivals, False


@pytest.mark.hb(13)
def test_silent_peer_gets_heartbeats_and_is_dropped(broker):
    """The server speaks every half interval; a peer that says nothing for two to three intervals is dead."""
    with broker.peer() as peer:
        peer.connect(heartbeat=INTERVAL_S)
        began = time.monotonic()
        arrivals, dropped = read_until(peer, began + 6 * INTERVAL_S)
        lived = time.monotonic() - began
    assert dropped
    assert DEAD_AFTER_S[0] <= lived <= DEAD_AFTER_S[1]
    gaps = [after - before for before, after in zip([began] + arrivals, arrivals)]
    assert len(arrivals) >= 3 and max(gaps) <= INTERVAL_S, gaps


@pytest.mark.hb(13)
@pytest.mark.parametrize(
    "sign_of_life",
    [wire.heartbeat(), wire.method_frame(1, "basic.ack", multiple=True), b"\x08"],
    ids=["heartbeat", "method", "part-of-a-frame"])
def test_any_bytes_keep_a_peer_alive(broker, sign_of_life):
    with broker.peer() as peer:
        peer.connect(heartbeat=INTERVAL_S)
        began = time.monotonic()
        # The part of a frame is sent octet by octet of one long frame, so that it never becomes a whole one.
        drip = wire.frame(wire.FRAME_METHOD, 1, wire.method("queue.declare", queue="x" * 200))
        for step in range(6):
            peer.send(drip[step:step + 1] if len(sign_of_life) == 1 else sign_of_life)
            assert read_until(peer, began + (step + 1) * 0.75 * INTERVAL_S)[1] is False, f"dropped after step {step}"


@pytest.mark.hb(13)
def test_zero_means_no_heartbeats(broker):
    with broker.peer() as peer:
        peer.connect(heartbeat=0)
        assert read_until(peer, time.monotonic() + 3.5 * INTERVAL_S) == ([], False)
        peer.assert_usable()


def test_deliveries_do_not_keep_a_silent_reader_alive(broker):
    """What the server sends says nothing about the peer."""
    with broker.peer() as reader, broker.peer() as writer:
        reader.connect(heartbeat=INTERVAL_S)
        writer.connect()
        queue = reader.call(1, "queue.declare", exclusive=True).queue
        reader.call(1, "basic.consume", queue=queue, no_ack=True)
        began = time.monotonic()
        try:
            while time.monotonic() - began < 6 * INTERVAL_S:
                writer.publish(1, "", queue, b"tick")
                reader.expect(1, "basic.deliver")
                assert reader.read_content(1)[1] == b"tick"
                with pytest.raises(Silent):
                    writer.read_bytes(1, timeout=0.05)
        except SocketDropped:
            pass
        assert DEAD_AFTER_S[0] <= time.monotonic() - began <= DEAD_AFTER_S[1]


@pytest.mark.hb(23)
@pytest.mark.parametrize("channel", [1, 9, 65535])
def test_heartbeat_on_a_channel(peer, channel):
    peer.send(wire.heartbeat(channel))
    assert peer.outcome() == connection_closed(505, "type 8, all octets = <<>>")


@pytest.mark.hb(23)
@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize("payload", [b"\0", b"\x01\x02\x03", b"\xce" * 1000], ids=len)
def test_heartbeat_with_a_payload(peer, channel, payload):
    peer.send(wire.heartbeat(channel, payload))
    shown = "first 16 octets = <<" if len(payload) > 16 else "all octets = <<" + ",".join(map(str, payload)) + ">>: "
    assert peer.outcome() == connection_closed(501, BeginsWith(f"type 8, {shown}"))


def test_heartbeats_from_the_client_are_never_answered(peer):
    peer.send(wire.heartbeat() * 1000)
    peer.assert_usable()
