"""tune-ok's limits, channel_max as a count, frame_max in both directions."""

import pytest

import wire
from answers import DROPPED, UNHARMED, by_broker, connection_closed
from peer import client_properties

FRAME_MAX = 131072

FRAME_MIN = 8192
CHANNEL_MAX = 2047


def violation(key, asked, bound, limit):
    """RabbitMQ drops the socket without a word about three seconds later."""
    text = f"negotiated {key} = {asked} is {bound} allowed value ({limit})"
    return by_broker(rabbitmq=DROPPED, leveret=connection_closed(530, text, "connection.tune-ok"))


def tune(broker, channel_max=2047, frame_max=FRAME_MAX, heartbeat=0):
    peer = broker.peer()
    peer.log_in(client_properties(authentication_failure_close=True))
    peer.send_method(0, "connection.tune-ok", channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
    return peer


def assert_opens(peer):
    peer.send_method(0, "connection.open", virtual_host="/")
    peer.expect(0, "connection.open-ok")
    peer.call(1, "channel.open")


@pytest.mark.hb(11)
@pytest.mark.parametrize("frame_max", [1, 4095, 4096, 8191, FRAME_MAX + 1, 0xFFFFFFFF, 0])
def test_frame_max_refused(broker, frame_max):
    """Zero means "no limit" and is more than the server offers; RabbitMQ 4 wants 8192, AMQP's own minimum is 4096."""
    with tune(broker, frame_max=frame_max) as peer:
        if 0 < frame_max < FRAME_MIN:
            assert peer.outcome() == violation("frame_max", frame_max, "lower than the minimum", FRAME_MIN)
        else:
            assert peer.outcome() == violation("frame_max", frame_max, "greater than the maximum", FRAME_MAX)


@pytest.mark.parametrize("frame_max", [8192, 65536, FRAME_MAX])
def test_frame_max_accepted(broker, frame_max):
    with tune(broker, frame_max=frame_max) as peer:
        assert_opens(peer)


@pytest.mark.hb(12)
@pytest.mark.parametrize("channel_max", [2048, 65535, 0])
def test_channel_max_refused(broker, channel_max):
    with tune(broker, channel_max=channel_max) as peer:
        assert peer.outcome() == violation("channel_max", channel_max, "greater than the maximum", CHANNEL_MAX)


@pytest.mark.hb(13)
@pytest.mark.parametrize("heartbeat", [0, 1, 59, 60, 61, 65535])
def test_any_heartbeat_is_accepted(broker, heartbeat):
    with tune(broker, heartbeat=heartbeat) as peer:
        assert_opens(peer)


@pytest.mark.hb(47)
@pytest.mark.parametrize("limit", [1, 3])
def test_channel_max_limits_the_number_of_open_channels(broker, limit):
    with broker.peer() as peer:
        peer.connect(channel_max=limit, channels=range(10, 10 + limit))
        # One closed, one opened: the count is what matters, not how many there have ever been.
        peer.call(10, "channel.close", reply_code=200)
        peer.call(20, "channel.open")
        peer.send_method(21, "channel.open")
        assert peer.outcome() == connection_closed(
            530, f"number of channels opened ({limit}) has reached the negotiated channel_max ({limit})")


@pytest.mark.hb(47)
@pytest.mark.parametrize("channel", [2047, 2048, 3000, 65535])
def test_channel_numbers_are_not_limited(broker, channel):
    with broker.peer() as peer:
        peer.connect(channels=[channel])
        peer.assert_usable(channel)


@pytest.mark.hb(47)
def test_all_channels(broker):
    """2047 channels open at once, the next one is too much."""
    channels = range(1, 2048)
    with broker.peer() as peer:
        peer.connect(channels=())
        peer.send(*(wire.method_frame(channel, "channel.open") for channel in channels))
        assert sorted(peer.read_method()[0] for _ in channels) == list(channels)
        peer.send_method(2048, "channel.open")
        assert peer.outcome() == connection_closed(
            530, "number of channels opened (2047) has reached the negotiated channel_max (2047)")


@pytest.mark.hb(25)
@pytest.mark.parametrize("size", [FRAME_MAX - 9, FRAME_MAX - 8, FRAME_MAX - 7, FRAME_MAX - 1, FRAME_MAX])
def test_payloads_up_to_frame_max_are_taken(peer, size):
    """Strictly the payload may be frame_max - 8; RabbitMQ lets eight bytes more pass."""
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    body = bytes(size % 251 for size in range(size))
    peer.send(
        wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, size), wire.body_frame(1, body))
    assert peer.get(1, queue)[2] == body


@pytest.mark.hb(25)
@pytest.mark.parametrize("size", [FRAME_MAX + 1, 200_000, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("type_", [wire.FRAME_METHOD, wire.FRAME_BODY, 9])
def test_larger_payloads_are_refused_at_their_size(peer, size, type_):
    """The size alone is answered; the broker does not wait for four gigabytes."""
    peer.send(wire.frame(type_, 1, size=size)[:7])
    assert peer.outcome() == connection_closed(
        501, f"type {type_}, all octets = <<>>: {{frame_too_large,{size},{FRAME_MAX - 8}}}")


@pytest.mark.hb(25)
def test_negotiated_frame_max_counts(broker):
    with broker.peer() as peer:
        peer.connect(frame_max=8192)
        peer.send(wire.frame(wire.FRAME_BODY, 1, size=8193)[:7])
        assert peer.outcome() == connection_closed(501, "type 3, all octets = <<>>: {frame_too_large,8193,8184}")


@pytest.mark.hb(25, 83)
@pytest.mark.parametrize("frame_max", [8192, 65536, FRAME_MAX])
@pytest.mark.parametrize("extra", [-1, 0, 1])
@pytest.mark.parametrize("frames", [1, 3])
def test_bodies_are_delivered_in_full_frames(broker, frame_max, frames, extra):
    """A body comes back in as few frames as the reader's frame_max allows, however the writer cut it."""
    piece = frame_max - wire.FRAME_OVERHEAD
    body = bytes(index % 253 for index in range(frames * piece + extra))
    with broker.peer() as writer, broker.peer() as reader:
        writer.connect()
        reader.connect(frame_max=frame_max)
        queue = reader.call(1, "queue.declare", exclusive=True).queue
        writer.publish(1, "", queue, body)
        reader.call(1, "basic.consume", queue=queue, no_ack=True)
        reader.expect(1, "basic.deliver")
        header, content, sizes = reader.read_content(1)
    assert content == body and header.body_size == len(body)
    assert sizes == [piece] * (len(body) // piece) + [len(body) % piece] * (len(body) % piece > 0)


@pytest.mark.hb(25)
@pytest.mark.parametrize("cut", [1, 7, 1000, 8184])
def test_bodies_may_arrive_in_any_pieces(peer, cut):
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    body = bytes(index % 241 for index in range(20_000 if cut > 7 else 500))
    peer.send(
        wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, len(body)),
        *(wire.body_frame(1, body[at:at + cut]) for at in range(0, len(body), cut)))
    assert peer.get(1, queue)[2] == body


@pytest.mark.hb(83)
@pytest.mark.parametrize("size", [0, 1, FRAME_MAX - 1, FRAME_MAX, FRAME_MAX + 1, 16 * 1024 * 1024])
def test_message_sizes(peer, size):
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    body = b"\xce" * size  # every octet looks like a frame end
    peer.publish(1, "", queue, body)
    got, header, content = peer.get(1, queue)
    assert content == body and header.body_size == size and got.message_count == 0
    assert peer.outcome_or_unharmed() == UNHARMED
