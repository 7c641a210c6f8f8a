"""Method frames that are no methods, methods from the wrong side, and methods cut in pieces."""

import struct

import pytest

import wire
from answers import DROPPED, UNHARMED, by_broker, channel_closed, connection_closed


def octets(payload):
    return "<<" + ",".join(map(str, payload)) + ">>"


def undecodable(name, arguments):
    return connection_closed(501, f"cannot decode {octets(arguments)}", name)


@pytest.mark.hb(35)
@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize(
    "class_id, method_id",
    [(60, 99), (60, 0), (60, 73), (20, 12), (50, 60), (10, 72), (85, 12), (90, 32), (999, 10), (0, 0),
     (30, 12), (70, 10), (80, 10), (110, 10), (65535, 65535)])
def test_unknown_class_or_method(peer, channel, class_id, method_id):
    """RabbitMQ resets the socket; 70, 80 and 110 are file, stream and tunnel, which left AMQP with 0-9-1."""
    peer.send(wire.frame(wire.FRAME_METHOD, channel, struct.pack(">HH", class_id, method_id) + b"\0\0\0"))
    assert peer.outcome() == by_broker(
        rabbitmq=DROPPED,
        leveret=connection_closed(540, f"unknown method {method_id} of class {class_id}", (class_id, method_id)))


WITH_ARGUMENTS = {
    "basic.qos": {},
    "basic.consume": {"queue": "q", "consumer_tag": "t"},
    "basic.publish": {"exchange": "x", "routing_key": "k"},
    "basic.get": {"queue": "q"},
    "basic.ack": {"delivery_tag": 1},
    "queue.declare": {"queue": "q", "arguments": [("k", ("I", 1))]},
    "queue.bind": {"queue": "q", "exchange": "x", "routing_key": "k"},
    "exchange.declare": {"exchange": "x", "type": "direct"},
    "channel.close": {"reply_text": "x"},
    "confirm.select": {},
}


@pytest.mark.hb(24, 35)
@pytest.mark.parametrize("name", WITH_ARGUMENTS)
def test_arguments_cut_at_every_byte(broker, name):
    """One octet less than the arguments, two octets less, ... none at all."""
    arguments = wire.method(name, **WITH_ARGUMENTS[name])[4:]
    for size in range(len(arguments)):
        with broker.peer() as peer:
            peer.connect()
            cut = arguments[:size]
            peer.send(wire.frame(wire.FRAME_METHOD, 1, struct.pack(">HH", *wire.METHOD_IDS[name]) + cut))
            assert peer.outcome() == undecodable(name, cut)


@pytest.mark.hb(35)
@pytest.mark.parametrize("name", [*WITH_ARGUMENTS, "tx.select", "basic.recover", "channel.open"])
def test_trailing_bytes(peer, name):
    channel = 2 if name == "channel.open" else 1
    payload = wire.method(name, **WITH_ARGUMENTS.get(name, {})) + b"\0\1\2"
    peer.send(wire.frame(wire.FRAME_METHOD, channel, payload))
    assert peer.outcome() == undecodable(name, payload[4:])


def test_unused_bits_mean_nothing(peer):
    """Bits of a flag octet that have no argument may be set."""
    peer.send(wire.frame(wire.FRAME_METHOD, 1, wire.method("basic.cancel", consumer_tag="none")[:-1] + b"\xfe"))
    assert peer.expect(1, "basic.cancel-ok").consumer_tag == "none"


def test_reserved_arguments_mean_nothing(peer):
    peer.call(1, "queue.declare", ticket=0xFFFF, exclusive=True)
    peer.call(2, "channel.open", reserved1="anything")


@pytest.mark.hb(39)
@pytest.mark.parametrize("name, arguments", [
    ("queue.declare", {"queue": b"\xff\xfe"}), ("queue.declare", {"queue": b"ok\xc3"}),
    ("queue.declare", {"queue": b"\xed\xa0\x80"}), ("basic.consume", {"consumer_tag": b"\x80"}),
    ("exchange.declare", {"exchange": "x", "type": b"\xff"}), ("queue.bind", {"routing_key": b"\xc0\xaf"}),
    ("channel.close", {"reply_text": b"\xff"}),
])
def test_short_strings_must_be_utf_8(peer, name, arguments):
    peer.send_method(1, name, **arguments)
    assert peer.outcome() == connection_closed(501, "Malformed UTF-8 in shortstr")


@pytest.mark.hb(39)
def test_malformed_utf_8_in_publish(peer):
    """The one method whose strings RabbitMQ does not look at: the key just matches nothing."""
    peer.publish(1, "", b"\xff\xfe", b"lost")
    assert peer.outcome_or_unharmed() == UNHARMED


SERVER_METHODS = [
    name for name in wire.METHODS
    if not name.startswith("connection.")
    and (name.endswith("-ok") or name in ("basic.deliver", "basic.return", "basic.get-empty"))
]
WITH_CONTENT = ("basic.deliver", "basic.return", "basic.get-ok")


@pytest.mark.hb(60)
@pytest.mark.parametrize("name", SERVER_METHODS)
def test_methods_that_only_a_server_sends(peer, name):
    peer.send_method(1, name)
    if name in WITH_CONTENT:
        # RabbitMQ waits for the content before it looks at the method.
        peer.send(wire.header_frame(1, 0))
    refused = connection_closed(503, "unimplemented method", name)
    if name == "basic.cancel-ok":  # RabbitMQ takes it, finds no consumer of that tag and dies of it
        assert peer.outcome() == by_broker(rabbitmq=connection_closed(541, ""), leveret=refused)
    else:
        assert peer.outcome() == refused


@pytest.mark.hb(60)
@pytest.mark.parametrize("name", ["connection.close", "connection.open", "connection.start-ok", "connection.close-ok"])
def test_connection_methods_on_a_channel(peer, name):
    peer.send_method(1, name)
    assert peer.outcome() == connection_closed(503, "unimplemented method", name)


@pytest.mark.hb(46)
@pytest.mark.parametrize(
    "name",
    ["basic.qos", "basic.publish", "channel.close", "channel.close-ok", "channel.flow", "queue.declare", "tx.select",
     "connection.open", "connection.close", "basic.ack"])
@pytest.mark.parametrize("channel", [2, 65535])
def test_methods_on_an_unknown_channel(peer, channel, name):
    peer.send_method(channel, name)
    if name == "basic.publish":  # RabbitMQ looks at it when its content is there
        peer.send(wire.header_frame(channel, 0))
    assert peer.outcome() == connection_closed(504, "expected 'channel.open'", name)


@pytest.mark.hb(46, 47)
@pytest.mark.parametrize("name", ["channel.open", "queue.declare", "basic.publish", "basic.ack", "channel.close"])
def test_channel_methods_on_channel_zero(peer, name):
    peer.send_method(0, name)
    assert peer.outcome() == connection_closed(504, "unexpected method in connection state running", name)


@pytest.mark.hb(46)
def test_channel_open_twice(peer):
    peer.send_method(1, "channel.open")
    assert peer.outcome() == connection_closed(504, "second 'channel.open' seen", "channel.open")


def test_access_request(peer):
    """Left from AMQP 0-8; every realm is granted, with a ticket that means nothing."""
    assert peer.call(1, "access.request", realm="/data", active=True).ticket == 1


def test_channel_flow(peer):
    """Switching flow on is answered, switching it off is not implemented."""
    assert peer.call(1, "channel.flow", active=True).active is True
    peer.send_method(1, "channel.flow", active=False)
    assert peer.outcome() == connection_closed(540, "active=false", "channel.flow")


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("queue.declare", {"exclusive": True, "arguments": [("x-message-ttl", ("I", 1000)), ("note", ("S", b"x"))]}),
        ("basic.qos", {"prefetch_count": 7}),
        ("exchange.declare", {"exchange": "amq.direct", "type": "direct", "durable": True}),
        ("channel.flow", {"active": True}),
        ("tx.select", {}),
    ])
def test_methods_split_at_every_byte(peer, name, arguments):
    """Each frame cut in two at each octet, the second half sent when the broker has read the first."""
    frame = wire.method_frame(1, name, **arguments)
    for cut in range(1, len(frame)):
        peer.send(frame[:cut])
        peer.wait_until_read()
        peer.send(frame[cut:])
        peer.expect(1, name + "-ok")


@pytest.mark.hb(85)
def test_whole_dialogue_in_single_bytes(peer):
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    for octet in wire.publish(1, "", queue, b"slow", {"headers": [("k", ("F", [("i", ("l", 1))]))]}):
        peer.send(bytes([octet]))
        peer.wait_until_read()
    assert peer.get(1, queue)[2] == b"slow"


def test_many_methods_in_one_segment(peer):
    """And the answers come in the order of the questions."""
    peer.send(*(
        wire.method_frame(1, "basic.cancel", consumer_tag=f"tag {index}") for index in range(2000)))
    for index in range(2000):
        assert peer.expect(1, "basic.cancel-ok").consumer_tag == f"tag {index}"


def test_channel_error_names_the_method(peer):
    peer.send_method(1, "queue.purge", queue="hostile.never.declared")
    assert peer.outcome() == channel_closed(404, "no queue 'hostile.never.declared' in vhost '/'", "queue.purge")
