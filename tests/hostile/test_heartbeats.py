"""Heartbeats in both directions."""

import time

import pytest

import wire
from answers import BeginsWith, connection_closed
from peer import Silent, SocketDropped

INTERVAL_S = 1  # the shortest that can be negotiated
# A peer is dead after two to three silent intervals. The least is by the clock, the most by the stopwatch, with what a
# machine takes that does other things.
DEAD_MIN_S = 2 * INTERVAL_S
DEAD_MAX_S = 3 * INTERVAL_S + 1.5
STARVED_S = 0.5 * INTERVAL_S  # a try whose processes have waited so long for a processor says nothing about silence
STARVED_TRIES = 10


def read_until(peer, deadline):
    """The heartbeats until the deadline or the drop, and whether it was dropped."""
    count = 0
    while time.monotonic() < deadline:
        try:
            frame = peer.read_frame(deadline - time.monotonic() + 0.01)
        except SocketDropped:
            return count, True
        except Silent:
            break
        assert frame == wire.Frame(wire.FRAME_HEARTBEAT, 0, b"")
        count += 1
    return count, False


@pytest.mark.hb(13)
def test_silent_peer_gets_heartbeats_and_is_dropped(broker):
    """The server speaks every half interval; a peer that says nothing for two to three intervals is dead."""
    with broker.peer() as peer:
        began = time.monotonic()
        peer.connect(heartbeat=INTERVAL_S)
        watch = broker.stopwatch()
        at_s = [0.0]
        with pytest.raises(SocketDropped):
            while True:
                assert peer.read_frame() == wire.Frame(wire.FRAME_HEARTBEAT, 0, b"")
                at_s.append(watch.elapsed_s())
        at_s.append(watch.elapsed_s())
        lived_s = time.monotonic() - began
    assert lived_s >= DEAD_MIN_S and at_s[-1] <= DEAD_MAX_S
    gaps_s = [after_s - before_s for before_s, after_s in zip(at_s, at_s[1:])]
    assert max(gaps_s) <= INTERVAL_S, gaps_s


@pytest.mark.hb(13)
@pytest.mark.parametrize(
    "sign_of_life",
    [wire.heartbeat(), wire.method_frame(1, "basic.ack", multiple=True), b"\x08"],
    ids=["heartbeat", "method", "part-of-a-frame"])
def test_any_bytes_keep_a_peer_alive(broker, sign_of_life):
    # The part of a frame is sent octet by octet of one long frame, so that it never becomes a whole one.
    drip = wire.frame(wire.FRAME_METHOD, 1, wire.method("queue.declare", queue="x" * 200))
    signs = [drip[step:step + 1] if len(sign_of_life) == 1 else sign_of_life for step in range(6)]
    for _ in range(STARVED_TRIES):
        watch = broker.stopwatch()
        if lives(broker, signs):
            return
        # Whoever has no processor is silent itself.
        assert watch.waited_s() > STARVED_S, "dropped although it gave signs of life"
    raise AssertionError(f"dropped {STARVED_TRIES} times on a busy machine")


def lives(broker, signs):
    """Whether a peer that gives these signs of life, less than an interval apart, still has its connection then."""
    with broker.peer() as peer:
        peer.connect(heartbeat=INTERVAL_S)
        for sign in signs:
            peer.send(sign)
            if read_until(peer, time.monotonic() + 0.75 * INTERVAL_S)[1]:
                return False
    return True


@pytest.mark.hb(13)
def test_zero_means_no_heartbeats(broker):
    with broker.peer() as peer:
        peer.connect(heartbeat=0)
        assert read_until(peer, time.monotonic() + 3.5 * INTERVAL_S) == (0, False)
        peer.assert_usable()


def test_deliveries_do_not_keep_a_silent_reader_alive(broker):
    """What the server sends says nothing about the peer."""
    with broker.peer() as reader, broker.peer() as writer:
        writer.connect()
        began = time.monotonic()
        reader.connect(heartbeat=INTERVAL_S)
        queue = reader.call(1, "queue.declare", exclusive=True).queue
        reader.call(1, "basic.consume", queue=queue, no_ack=True)
        watch = broker.stopwatch()
        try:
            while watch.elapsed_s() <= DEAD_MAX_S:
                writer.publish(1, "", queue, b"tick")
                reader.expect(1, "basic.deliver")
                assert reader.read_content(1)[1] == b"tick"
                with pytest.raises(Silent):
                    writer.read_bytes(1, timeout=0.05)
        except SocketDropped:
            pass
        assert time.monotonic() - began >= DEAD_MIN_S and watch.elapsed_s() <= DEAD_MAX_S


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
