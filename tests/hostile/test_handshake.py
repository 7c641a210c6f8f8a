"""The handshake step by step: connection.start's contents and types, states, pipelining, virtual hosts."""

import pytest

import wire
from answers import DROPPED, BeginsWith, by_broker, connection_closed
from peer import CAPABILITIES, client_properties

TUNE_OK = wire.method_frame(0, "connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
OPEN = wire.method_frame(0, "connection.open", virtual_host="/")
START_OK = wire.method_frame(
    0, "connection.start-ok", mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US",
    client_properties=client_properties(authentication_failure_close=True))


def test_connection_start(broker):
    with broker.peer() as peer:
        start = peer.start()
    assert (start.version_major, start.version_minor) == (0, 9)
    # RabbitMQ's order changes from start to start; ANONYMOUS is not offered by Leveret.
    assert set(start.mechanisms.split()) == by_broker(
        rabbitmq={b"PLAIN", b"AMQPLAIN", b"ANONYMOUS"}, leveret={b"PLAIN", b"AMQPLAIN"})
    assert start.locales == b"en_US"


def test_server_property_types(broker):
    with broker.peer() as peer:
        properties = peer.start().server_properties
    keys = [key for key, _ in properties]
    assert keys == sorted(set(keys))
    properties = dict(properties)
    assert properties.pop("capabilities") == ("F", [(name, ("t", True)) for name in CAPABILITIES])
    names = ["cluster_name", "copyright", "information", "platform", "product", "version"]
    for name in names + by_broker(rabbitmq=[], leveret=["leveret_version"]):
        tag, text = properties.pop(name)
        assert tag == "S" and text, name
    assert properties == {}


def test_tune_and_open(broker):
    with broker.peer() as peer:
        tune = peer.log_in()
        assert tune.args == {"channel_max": 2047, "frame_max": 131072, "heartbeat": 60}
        peer.send(TUNE_OK, OPEN)
        assert peer.expect(0, "connection.open-ok").reserved1 == ""
        assert peer.call(1, "channel.open").reserved1 == b""


@pytest.mark.hb(17)
def test_pipelined_handshake(broker):
    """Header, start-ok, tune-ok, open, 100 channels and a declare on each in one write."""
    channels = range(1, 101)
    with broker.peer() as peer:
        peer.send(
            wire.PROTOCOL_HEADER, START_OK, TUNE_OK, OPEN,
            *(wire.method_frame(channel, "channel.open") for channel in channels),
            *(wire.method_frame(channel, "basic.qos") for channel in channels))
        for name in ("connection.start", "connection.tune", "connection.open-ok"):
            peer.expect(0, name)
        answers = [peer.read_method() for _ in range(2 * len(channels))]
        for channel in channels:
            assert [got.name for on, got in answers if on == channel] == ["channel.open-ok", "basic.qos-ok"]


@pytest.mark.parametrize("locale", ["en_US", "", "de_DE", "x" * 255])
def test_any_locale_is_taken(broker, locale):
    with broker.peer() as peer:
        peer.start()
        peer.start_ok(locale=locale)
        peer.expect(0, "connection.tune")


def test_heartbeats_are_allowed_in_every_state(broker):
    with broker.peer() as peer:
        peer.start()
        peer.send(wire.heartbeat(), START_OK, wire.heartbeat())
        peer.expect(0, "connection.tune")
        peer.send(wire.heartbeat(), TUNE_OK, wire.heartbeat(), OPEN, wire.heartbeat())
        peer.expect(0, "connection.open-ok")


def out_of_state(state, channel, name):
    """Before tune-ok RabbitMQ answers nothing and drops the socket after about three seconds."""
    if channel == 0:
        refused = connection_closed(504, f"unexpected method in connection state {state}", name)
    else:
        refused = unexpected_frame(name)
    return by_broker(rabbitmq=DROPPED, leveret=refused)


def unexpected_frame(name):
    octets = ",".join(map(str, wire.method(name)))
    return connection_closed(505, f"type 1, all octets = <<{octets}>>")


@pytest.mark.hb(10, 14, 16)
@pytest.mark.parametrize(
    "channel, name",
    [(0, "connection.open"), (0, "connection.secure-ok"), (0, "connection.tune-ok"), (1, "channel.open"),
     (0, "channel.open"), (0, "basic.publish"), (0, "connection.start")])
def test_wrong_method_instead_of_start_ok(broker, channel, name):
    with broker.peer() as peer:
        peer.start()
        peer.send_method(channel, name)
        assert peer.outcome() == out_of_state("starting", channel, name)


@pytest.mark.hb(10, 14, 16)
@pytest.mark.parametrize(
    "channel, name",
    [(0, "connection.open"), (0, "connection.secure-ok"), (0, "connection.start-ok"), (1, "channel.open"),
     (1, "basic.publish")])
def test_wrong_method_instead_of_tune_ok(broker, channel, name):
    with broker.peer() as peer:
        peer.log_in()
        peer.send_method(channel, name)
        assert peer.outcome() == out_of_state("tuning", channel, name)


@pytest.mark.hb(14)
@pytest.mark.parametrize("name", ["connection.tune-ok", "connection.start-ok", "connection.secure-ok", "basic.publish"])
def test_wrong_method_instead_of_open(broker, name):
    with broker.peer() as peer:
        peer.log_in()
        peer.send(TUNE_OK, wire.method_frame(0, name))
        assert peer.outcome() == connection_closed(504, "unexpected method in connection state opening", name)


@pytest.mark.hb(14)
def test_channel_frame_before_open(broker):
    with broker.peer() as peer:
        peer.log_in()
        peer.send(TUNE_OK, wire.method_frame(1, "channel.open"))
        assert peer.outcome() == unexpected_frame("channel.open")


@pytest.mark.parametrize("after", ["start", "tune"])
def test_closing_before_the_connection_is_open(broker, after):
    """RabbitMQ drops such a peer without an answer."""
    with broker.peer() as peer:
        peer.start() if after == "start" else peer.log_in()
        peer.send_method(0, "connection.close", reply_code=200)
        said = peer.read_until_drop()
        assert said == by_broker(rabbitmq=b"", leveret=wire.method_frame(0, "connection.close-ok"))


@pytest.mark.hb(16)
@pytest.mark.parametrize(
    "name",
    ["connection.open", "connection.start-ok", "connection.tune-ok", "connection.secure-ok", "connection.start",
     "connection.tune", "connection.secure", "connection.open-ok", "connection.close-ok", "connection.blocked",
     "connection.unblocked", "connection.update-secret-ok"])
def test_handshake_methods_on_an_open_connection(peer, name):
    peer.send_method(0, name)
    assert peer.outcome() == connection_closed(504, "unexpected method in connection state running", name)


def test_protocol_header_on_an_open_connection(peer):
    """Read as a frame: type 'A', channel 'MQ', size 'P', 0, 0, 9."""
    peer.send(wire.PROTOCOL_HEADER)
    assert peer.outcome() == connection_closed(501, "type 65, all octets = <<>>: {frame_too_large,1342177289,131064}")


@pytest.mark.hb(15)
@pytest.mark.parametrize(
    "vhost", ["nope", "", "/x", "//", "a\0b\nc", "v" * 255, "../../etc", "%2F"],
    ids=["nope", "empty", "slash-x", "slashes", "control", "255", "path", "escaped"])
def test_unknown_vhost(broker, vhost):
    with broker.peer() as peer:
        peer.log_in()
        peer.send(TUNE_OK, wire.method_frame(0, "connection.open", virtual_host=vhost))
        assert peer.outcome() == connection_closed(530, f"vhost {vhost} not found", "connection.open")


@pytest.mark.hb(15)
def test_unknown_vhost_with_a_long_non_ascii_name(broker):
    """RabbitMQ counts characters, builds a text of more than 255 bytes and dies of it."""
    with broker.peer() as peer:
        peer.log_in()
        peer.send(TUNE_OK, wire.method_frame(0, "connection.open", virtual_host="\u00e9" * 127))
        assert peer.outcome() == by_broker(
            rabbitmq=DROPPED,
            leveret=connection_closed(530, BeginsWith("vhost " + "\u00e9" * 100), "connection.open"))


@pytest.mark.hb(15, 39)
def test_vhost_that_is_not_utf_8(broker):
    with broker.peer() as peer:
        peer.log_in()
        peer.send(TUNE_OK, wire.method_frame(0, "connection.open", virtual_host=b"\xff\xfe"))
        assert peer.outcome() == connection_closed(501, "Malformed UTF-8 in shortstr", "connection.open")


@pytest.mark.hb(80, 94)
@pytest.mark.parametrize("secret", [b"guest", b"wrong", b"", b"g" * 100_000], ids=["same", "wrong", "empty", "100k"])
def test_update_secret_of_a_password_user(peer, secret):
    """Passwords do not expire, so the new secret is taken note of and changes nothing."""
    peer.call(0, "connection.update-secret", new_secret=secret, reason="rotation")
    peer.assert_usable()


@pytest.mark.hb(85)
def test_handshake_in_single_bytes(broker):
    with broker.peer() as peer:
        for octet in wire.PROTOCOL_HEADER + START_OK + TUNE_OK + OPEN:
            peer.send(bytes([octet]))
            peer.wait_until_read()
        for name in ("connection.start", "connection.tune", "connection.open-ok"):
            peer.expect(0, name)
