"""Closing connections and channels, from both sides, politely and not."""

import pytest

import wire
from answers import DROPPED, UNHARMED, by_broker, channel_closed, connection_closed
from peer import Silent

# By the stopwatch: RabbitMQ hangs up 30 s after close if the peer neither answers nor hangs up.
CLOSE_OK_TIMEOUT_S = 31.0
PROMPT_S = 3.0


def close_channel_by_error(peer, channel=1):
    """Makes the broker close `channel`, without answering it."""
    peer.send_method(channel, "queue.declare", queue="hostile.never.declared", passive=True)
    assert peer.outcome() == channel_closed(
        404, "no queue 'hostile.never.declared' in vhost '/'", "queue.declare")


def test_client_closes_the_connection(peer):
    peer.call(0, "connection.close", reply_code=200, reply_text="bye")
    peer.half_close()
    assert peer.read_until_drop(PROMPT_S) == b""


@pytest.mark.hb(18)
def test_commands_after_connection_close_are_ignored(peer, broker, names):
    """Publishes, declares and even garbage behind connection.close are thrown away."""
    queue = names.queue()
    peer.call(1, "queue.declare", queue=queue)
    peer.send(
        wire.method_frame(0, "connection.close", reply_code=200), wire.publish(1, "", queue, b"late") * 10,
        wire.method_frame(1, "queue.delete", queue=queue), wire.publish(1, "nope", queue, b"late"))
    peer.expect(0, "connection.close-ok")
    peer.half_close()
    assert peer.read_until_drop(PROMPT_S) == b""
    with broker.peer() as other:
        assert other.connect().call(1, "queue.declare", queue=queue, passive=True).message_count == 0


@pytest.mark.slow
@pytest.mark.hb(18, 19)
def test_peers_that_do_not_finish_closing_are_dropped(broker):
    """After connection.close in either direction the broker waits for the peer, but not for ever."""
    peers = {name: broker.peer().connect() for name in ("closed by client", "frame error", "chatty", "method error")}
    try:
        peers["closed by client"].call(0, "connection.close", reply_code=200)
        for name in ("frame error", "chatty"):
            peers[name].send(wire.frame(9, 0))
            assert peers[name].outcome() == connection_closed(501, "type 9, all octets = <<>>: unknown_frame")
        peers["method error"].send_method(1, "basic.qos", prefetch_size=1)
        assert peers["method error"].outcome() == connection_closed(540, "prefetch_size!=0 (1)", "basic.qos")
        watch = broker.stopwatch()
        chatty = peers.pop("chatty")
        while True:  # keeps talking instead of answering: that must not keep it alive
            chatty.send(wire.heartbeat(), wire.publish(1, "", "nowhere", b"x"))
            try:
                assert chatty.read_until_drop(0.5) == b""
                break
            except Silent:
                assert watch.elapsed_s() < CLOSE_OK_TIMEOUT_S
        for peer in peers.values():
            assert peer.read_until_drop(CLOSE_OK_TIMEOUT_S, watch) == b""
    finally:
        for peer in peers.values():
            peer.socket.close()


@pytest.mark.hb(19)
def test_close_ok_ends_it_at_once(peer):
    peer.send(wire.frame(9, 0))
    peer.outcome()
    peer.send_method(0, "connection.close-ok")
    assert peer.read_until_drop(PROMPT_S) == b""


def test_both_sides_close_the_connection_at_once(peer):
    """The client's close crosses the server's: it is answered, then close-ok ends it."""
    peer.send(wire.frame(9, 0), wire.method_frame(0, "connection.close", reply_code=200))
    assert peer.outcome() == connection_closed(501, "type 9, all octets = <<>>: unknown_frame")
    peer.send_method(0, "connection.close-ok")
    said = peer.read_until_drop(PROMPT_S)
    assert said in (b"", wire.method_frame(0, "connection.close-ok"))


@pytest.mark.hb(21)
def test_bytes_after_a_frame_error_are_ignored(peer, broker, names):
    queue = names.queue()
    peer.call(1, "queue.declare", queue=queue)
    peer.send(
        wire.publish(1, "", queue, b"before"), wire.method_frame(1, "basic.qos")[:-1] + b"\x00",
        wire.publish(1, "", queue, b"after"), wire.method_frame(1, "queue.delete", queue=queue))
    assert peer.outcome() == connection_closed(
        501, "type 1, all octets = <<0,60,0,10,0,0,0,0,0,0,0>>: {invalid_frame_end_marker,0}")
    peer.send_method(0, "connection.close-ok")
    peer.assert_dropped(PROMPT_S)
    with broker.peer() as other:
        assert other.connect().get(1, queue)[2] == b"before"
        assert other.call(1, "queue.declare", queue=queue, passive=True).message_count == 0


def test_client_closes_a_channel_and_opens_it_again(peer):
    peer.call(1, "channel.close", reply_code=200, reply_text="done")
    peer.call(1, "channel.open")
    peer.assert_usable()


@pytest.mark.hb(46)
def test_method_on_a_channel_closed_by_the_client(peer):
    peer.call(1, "channel.close", reply_code=200)
    peer.send_method(1, "basic.qos")
    assert peer.outcome() == connection_closed(504, "expected 'channel.open'", "basic.qos")


def test_channel_error_leaves_other_channels_alone(broker):
    with broker.peer() as peer:
        peer.connect(channels=[1, 2])
        close_channel_by_error(peer, 1)
        peer.assert_usable(2)
        peer.send_method(1, "channel.close-ok")
        peer.call(1, "channel.open")
        peer.assert_usable(1)


@pytest.mark.hb(49)
def test_frames_until_close_ok_are_ignored(broker):
    """Between the server's channel.close and close-ok all well-formed traffic is ignored."""
    with broker.peer() as peer:
        peer.connect(channels=[1, 2])
        close_channel_by_error(peer)
        peer.send(
            *(wire.method_frame(1, name, delivery_tag=7) for name in ("basic.ack", "basic.nack", "basic.reject")) ,
            wire.publish(1, "nope", "x", b"abc") * 100, wire.method_frame(1, "basic.qos", prefetch_size=1),
            wire.method_frame(1, "queue.declare"), wire.publish(1, "", "x", b"", immediate=True),
            wire.method_frame(1, "channel.close-ok"), wire.method_frame(1, "channel.open"))
        peer.expect(1, "channel.open-ok")
        assert peer.outcome_or_unharmed() == UNHARMED


@pytest.mark.hb(49)
def test_storm_on_a_closing_channel(broker):
    with broker.peer() as peer:
        peer.connect(channels=[1, 2])
        close_channel_by_error(peer)
        storm = wire.method_frame(1, "basic.ack", delivery_tag=1) + wire.publish(1, "nope", "x", b"abc")
        peer.send(storm * 10_000)
        peer.assert_usable(2)


def test_both_sides_close_the_channel_at_once(peer):
    """The client's channel.close crosses the server's: it is answered, then close-ok frees the number."""
    close_channel_by_error(peer)
    peer.call(1, "channel.close", reply_code=200)
    peer.send_method(1, "channel.close-ok")
    peer.call(1, "channel.open")
    peer.assert_usable()


def test_channel_open_on_a_closing_channel(peer):
    close_channel_by_error(peer)
    peer.send_method(1, "channel.open")
    assert peer.outcome() == connection_closed(504, "second 'channel.open' seen", "channel.open")


@pytest.mark.parametrize("name", ["basic.qos", "channel.close-ok", "channel.close", "channel.flow"])
def test_after_close_ok_the_channel_is_unknown(peer, name):
    close_channel_by_error(peer)
    peer.send(wire.method_frame(1, "channel.close-ok"), wire.method_frame(1, name))
    assert peer.outcome() == connection_closed(504, "expected 'channel.open'", name)


@pytest.mark.parametrize(
    "frame, answer",
    [
        (wire.frame(1, 1, b"\x00\x3c\x00\x0a\x00"), connection_closed(501, "cannot decode <<0>>", "basic.qos")),
        (wire.frame(3, 1, b"abc"), connection_closed(505, "expected method frame, got non method frame instead")),
        (wire.frame(1, 1, b"\x00\x3c\x00\x63"), by_broker(
            rabbitmq=DROPPED, leveret=connection_closed(540, method=(60, 99)))),
    ],
    ids=["undecodable", "body", "unknown-method"])
def test_bytes_on_a_closing_channel_must_still_be_amqp(peer, frame, answer):
    close_channel_by_error(peer)
    peer.send(frame)
    assert peer.outcome() == answer


@pytest.mark.hb(79)
@pytest.mark.parametrize("how", ["fin", "rst"])
def test_half_a_message_dies_with_its_connection(broker, names, how):
    """A partial content is discarded and what the peer held unacknowledged is ready again, marked redelivered."""
    queue = names.queue()
    peer = broker.peer().connect()
    peer.call(1, "queue.declare", queue=queue)
    peer.publish(1, "", queue, b"held")
    assert peer.get(1, queue, no_ack=False)[2] == b"held"
    peer.send(
        wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, 100),
        wire.body_frame(1, b"half"))
    peer.wait_until_read()
    if how == "rst":
        peer.reset()
    else:
        peer.socket.close()
    with broker.peer() as other:
        got, _, body = other.connect().get(1, queue)
        assert body == b"held" and got.redelivered and got.message_count == 0
