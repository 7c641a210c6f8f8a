"""Field tables: every type in both directions, order and duplicates, and tables that are none."""

import struct

import pytest

import wire
from answers import DROPPED, UNHARMED, by_broker, connection_closed
from memory import MIB, Growth
from peer import client_properties

TABLE_DEPTH_MAX = 32
VOIDS = 131_000  # as many as one frame can hold
VOIDS_GROWTH_MAX = 2 * MIB  # as objects they would take twice that

TOO_DEEP = f"tables nested deeper than {TABLE_DEPTH_MAX}"
CUT = "a table field runs past the end"
NOT_FINITE = "a float in a table is not finite"


def unknown_type(tag):
    return f"unknown table field type {tag}"


def bad_arguments(reason, method="queue.declare"):
    """RabbitMQ resets the socket."""
    return by_broker(rabbitmq=DROPPED, leveret=connection_closed(502, reason, method))


def bad_headers(reason):
    """RabbitMQ dies of an internal error when it looks at them."""
    refused = connection_closed(502, f"cannot decode content properties: {reason}", "basic.publish")
    return by_broker(rabbitmq=connection_closed(541, ""), leveret=refused)


def bad_client_properties(reason):
    return by_broker(rabbitmq=DROPPED, leveret=connection_closed(501, reason, "connection.start-ok"))

EVERY_TYPE = [
    ("array", ("A", [("I", 1), ("S", b"two"), ("F", [("three", ("V", None))]), ("A", []), ("t", False)])),
    ("binary", ("x", bytes(range(256)))),
    ("bool-no", ("t", False)),
    ("bool-yes", ("t", True)),
    ("byte", ("b", -128)),
    ("decimal", ("D", (255, 0xFFFFFFFF))),
    ("decimal-0", ("D", (0, 0))),
    ("double", ("d", -1.5e300)),
    ("double-0", ("d", -0.0)),
    ("empty-array", ("A", [])),
    ("empty-string", ("S", b"")),
    ("empty-table", ("F", [])),
    ("float", ("f", 0.25)),
    ("int", ("I", -(1 << 31))),
    ("long", ("l", -(1 << 63))),
    ("long-max", ("l", (1 << 63) - 1)),
    ("short", ("s", -32768)),
    ("string", ("S", b"\x00\xff not utf-8")),
    ("table", ("F", [("z", ("I", 1)), ("a", ("I", 2)), ("z", ("I", 3))])),
    ("timestamp", ("T", (1 << 64) - 1)),
    ("timestamp-0", ("T", 0)),
    ("ubyte", ("B", 255)),
    ("uint", ("i", 0xFFFFFFFF)),
    ("ushort", ("u", 0xFFFF)),
    ("void", ("V", None)),
]


def headers_as_read(peer, headers):
    """Sends a message with these headers to itself; what comes back, tags and order kept."""
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    properties = b"\x20\x00" + wire.table(headers)
    peer.send(
        wire.method_frame(1, "basic.publish", routing_key=queue), wire.header_frame(1, 1, properties),
        wire.body_frame(1, b"x"))
    return peer.get(1, queue)[1].properties["headers"]


@pytest.mark.hb(40, 41)
def test_every_type_comes_back_as_it_was_sent(peer):
    """Types, widths and values; inner tables keep their order and their duplicates."""
    assert headers_as_read(peer, EVERY_TYPE) == EVERY_TYPE


@pytest.mark.hb(40)
def test_l_in_upper_case_comes_back_in_lower_case(peer):
    sent = [("a", ("L", -5)), ("b", ("A", [("L", 6)])), ("c", ("F", [("d", ("L", 1 << 62))]))]
    assert headers_as_read(peer, sent) == [
        ("a", ("l", -5)), ("b", ("A", [("l", 6)])), ("c", ("F", [("d", ("l", 1 << 62))]))]


def test_booleans_are_true_unless_zero(peer):
    sent = b"".join(wire.entry(f"t{octet}", b"t", bytes([octet])) for octet in (0, 1, 2, 255))
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    peer.publish(1, "", queue, b"x", b"\x20\x00" + wire.table(sent))
    peer.send_method(1, "basic.get", queue=queue, no_ack=True)
    peer.expect(1, "basic.get-ok")
    raw = peer.read_frame_but_heartbeat().payload
    for octet, read in ((0, 0), (1, 1), (2, 1), (255, 1)):
        assert wire.entry(f"t{octet}", b"t", bytes([read])) in raw


@pytest.mark.hb(39)
def test_keys_are_sorted_and_the_first_of_duplicates_is_kept(peer):
    sent = [("z", ("I", 1)), ("m", ("S", b"first")), ("a", ("I", 2)), ("m", ("S", b"second")), ("Z", ("V", None)),
            ("", ("I", 3)), ("aa", ("I", 4)), ("a", ("I", 5)), ("\u00e9", ("I", 6))]
    assert headers_as_read(peer, sent) == [
        ("", ("I", 3)), ("Z", ("V", None)), ("a", ("I", 2)), ("aa", ("I", 4)), ("m", ("S", b"first")),
        ("z", ("I", 1)), ("\u00e9", ("I", 6))]


@pytest.mark.hb(39)
def test_odd_keys(peer):
    keys = ["", "k" * 255, "nul\0", "line\n", "\u202e", "\U0001f407", "%2F", "x" * 254 + "y"]
    sent = sorted(((key, ("I", 1)) for key in keys), key=lambda entry: entry[0].encode())
    assert headers_as_read(peer, sent) == sent


@pytest.mark.hb(39)
def test_keys_need_not_be_utf_8(peer):
    queue = peer.call(1, "queue.declare", exclusive=True, arguments=wire.entry(b"\xff\xfe", "I", 1)).queue
    peer.publish(1, "", queue, b"x", b"\x20\x00" + wire.table(wire.entry(b"\xff\xfe", "I", 1)))
    peer.send_method(1, "basic.get", queue=queue, no_ack=True)
    peer.expect(1, "basic.get-ok")
    assert wire.entry(b"\xff\xfe", "I", 1) in peer.read_frame_but_heartbeat().payload


def test_an_empty_table_stays_present(peer):
    assert headers_as_read(peer, []) == []


def test_all_properties_come_back(peer):
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    sent = {
        "content_type": "text/plain", "content_encoding": "utf-8", "headers": [("k", ("S", b"v"))], "delivery_mode": 2,
        "priority": 255, "correlation_id": "c" * 255, "reply_to": "nobody", "expiration": "60000", "message_id": "",
        "timestamp": (1 << 64) - 1, "type": "\u00e9", "user_id": "guest", "app_id": "a", "cluster_id": "x",
    }
    peer.publish(1, "", queue, b"x", sent)
    assert peer.get(1, queue)[1].properties == sent


@pytest.mark.hb(43)
@pytest.mark.parametrize("delivery_mode", [0, 1, 2, 3, 255])
@pytest.mark.parametrize("priority", [0, 9, 255])
def test_odd_delivery_modes_and_priorities(peer, delivery_mode, priority):
    queue = peer.call(1, "queue.declare", exclusive=True, arguments=[("x-max-priority", ("I", 10))]).queue
    sent = {"delivery_mode": delivery_mode, "priority": priority}
    peer.publish(1, "", queue, b"x", sent)
    read = peer.get(1, queue)[1].properties
    assert read["priority"] == priority
    # RabbitMQ keeps the meaning (1 or 2), not the value sent.
    assert read["delivery_mode"] in ({1, 2} if delivery_mode not in (1, 2) else {delivery_mode}) | {delivery_mode}


@pytest.mark.hb(43)
def test_priorities_beyond_the_largest_are_the_largest(peer):
    """Ten is as high as this queue goes: what asks for more comes in the order of arrival."""
    queue = peer.call(1, "queue.declare", exclusive=True, arguments=[("x-max-priority", ("I", 10))]).queue
    for body, priority in ((b"a", 10), (b"b", 255), (b"c", 9), (b"d", 11), (b"e", 10)):
        peer.publish(1, "", queue, body, {"priority": priority})
    assert [peer.get(1, queue)[2] for _ in range(5)] == [b"a", b"b", b"d", b"e", b"c"]


KNOWN_TYPES = b"tbBsuIilLfdDSxTFAV"


@pytest.mark.hb(40)
@pytest.mark.parametrize("first", range(0, 256, 32))
def test_unknown_types_in_arguments(broker, first):
    """Every octet that is not one of the eighteen types; `U` of the AMQP grammar is one of them."""
    for tag in range(first, first + 32):
        if tag in KNOWN_TYPES:
            continue
        with broker.peer() as peer:
            peer.connect()
            table = wire.entry("k", bytes([tag]), bytes(16))
            peer.send_method(1, "queue.declare", exclusive=True, arguments=table)
            assert peer.outcome() == bad_arguments(unknown_type(tag))


@pytest.mark.hb(40)
@pytest.mark.parametrize("first", range(0, 256, 32))
@pytest.mark.parametrize("depth", ["table", "inner-table", "array"])
def test_unknown_types_in_headers(broker, first, depth):
    for octet in range(first, first + 32):
        if octet in KNOWN_TYPES:
            continue
        tag = bytes([octet])
        bad = wire.entry("k", tag, bytes(8))
        if depth == "inner-table":
            bad = wire.entry("outer", b"F", wire.long(bad))
        elif depth == "array":
            bad = wire.entry("outer", b"A", wire.long(tag + bytes(8)))
        with broker.peer() as peer:
            peer.connect()
            peer.publish(1, "", "hostile.nowhere", b"x", b"\x20\x00" + wire.table(bad))
            assert peer.outcome() == bad_headers(unknown_type(octet))


@pytest.mark.hb(41)
@pytest.mark.parametrize("raw", [
    (b"d", struct.pack(">d", float("nan"))), (b"d", struct.pack(">d", float("inf"))),
    (b"f", struct.pack(">f", float("nan"))), (b"f", struct.pack(">f", float("-inf"))),
], ids=["double-nan", "double-inf", "float-nan", "float-inf"])
def test_numbers_that_are_none(broker, raw):
    """Erlang has no such floats, so that to RabbitMQ they are unknown types."""
    with broker.peer() as peer:
        peer.connect()
        peer.send_method(1, "queue.declare", exclusive=True, arguments=wire.entry("k", *raw))
        assert peer.outcome() == bad_arguments(NOT_FINITE)
    with broker.peer() as peer:
        peer.connect()
        peer.publish(1, "", "hostile.nowhere", b"x", b"\x20\x00" + wire.table(wire.entry("k", *raw)))
        assert peer.outcome() == bad_headers(NOT_FINITE)


CUT_TABLES = {
    "key-cut": b"\x05ab",
    "key-without-value": b"\x01k",
    "string-one-too-long": b"\x01kS\x00\x00\x00\x03ab",
    "string-of-4-gib": b"\x01kS\xff\xff\xff\xffab",
    "int-cut": b"\x01kI\x00\x00\x00",
    "long-cut": b"\x01kl\x00\x00\x00",
    "decimal-cut": b"\x01kD\x00\x00",
    "array-one-too-long": b"\x01kA\x00\x00\x00\x02V",
    "array-item-cut": b"\x01kA\x00\x00\x00\x02I\x00",
    "array-of-4-gib": b"\x01kA\xff\xff\xff\xff",
    "table-one-too-long": b"\x01kF\x00\x00\x00\x04\x01kV",
    "table-of-4-gib": b"\x01kF\xff\xff\xff\xff",
    "bool-missing": b"\x01kt",
    "binary-cut": b"\x01kx\x00\x00\x00\x09short",
}


@pytest.mark.hb(38)
@pytest.mark.parametrize("case", CUT_TABLES)
def test_lengths_inside_a_table(broker, case):
    with broker.peer() as peer:
        peer.connect()
        peer.send_method(1, "queue.declare", exclusive=True, arguments=CUT_TABLES[case])
        assert peer.outcome() == bad_arguments(CUT)
    with broker.peer() as peer:
        peer.connect()
        peer.publish(1, "", "hostile.nowhere", b"x", b"\x20\x00" + wire.table(CUT_TABLES[case]))
        assert peer.outcome() == bad_headers(CUT)


@pytest.mark.hb(38)
@pytest.mark.parametrize("length", [0xFF, 0xFFFFFFFF, 4, 2])
def test_length_of_the_table_itself(peer, length):
    """Longer or shorter than the frame that carries it: then the arguments as a whole cannot be cut into fields."""
    arguments = b"\0\0\x01q\0" + struct.pack(">I", length) + b"\x01kV"
    peer.send(wire.frame(wire.FRAME_METHOD, 1, struct.pack(">HH", 50, 10) + arguments))
    shown = "cannot decode <<" + ",".join(map(str, arguments)) + ">>"
    assert peer.outcome() == connection_closed(501, shown, "queue.declare")


DEEP = [TABLE_DEPTH_MAX + 1, 1000, 21_000]


def nested_arrays(depth):
    """An entry whose value is an array in an array ...; with the table around it `depth` levels in all."""
    body = b""
    for _ in range(depth - 2):
        body = b"A" + struct.pack(">I", len(body)) + body
    return wire.entry("k", b"A", wire.long(body))


@pytest.mark.hb(36)
@pytest.mark.parametrize("nested", [wire.nested_table, nested_arrays])
@pytest.mark.parametrize("depth", [TABLE_DEPTH_MAX, *DEEP])
@pytest.mark.parametrize("where", ["queue.declare", "exchange.declare", "queue.bind", "basic.consume", "headers"])
def test_nesting(peer, where, depth, nested, names):
    """RabbitMQ has no limit; Leveret takes 32 levels and refuses the thirty-third."""
    table = nested(depth)
    peer.call(1, "queue.declare", exclusive=True)
    if where == "headers":
        peer.publish(1, "", "hostile.nowhere", b"x", b"\x20\x00" + wire.table(table))
    elif where == "exchange.declare":
        peer.send_method(1, where, exchange=names.exchange(), type="fanout", arguments=table)
    elif where == "queue.declare":
        peer.send_method(1, where, exclusive=True, arguments=table)
    elif where == "queue.bind":
        peer.send_method(1, where, exchange="amq.headers", arguments=table)
    else:
        peer.send_method(1, where, arguments=table)
    if depth > TABLE_DEPTH_MAX and by_broker(rabbitmq=False, leveret=True):
        assert peer.outcome() == (bad_headers(TOO_DEEP) if where == "headers" else bad_arguments(TOO_DEEP, where))
    else:
        assert peer.outcome_or_unharmed() == UNHARMED


@pytest.mark.hb(6)
@pytest.mark.parametrize("depth", [TABLE_DEPTH_MAX, TABLE_DEPTH_MAX + 1, 1300])
def test_nesting_in_client_properties(broker, depth):
    with broker.peer() as peer:
        peer.start()
        peer.start_ok(wire.nested_table(depth))
        if depth > TABLE_DEPTH_MAX and by_broker(rabbitmq=False, leveret=True):
            assert peer.outcome() == bad_client_properties(TOO_DEEP)
        else:
            peer.expect(0, "connection.tune")


@pytest.mark.hb(6)
def test_bad_table_in_client_properties(broker):
    with broker.peer() as peer:
        peer.start()
        peer.start_ok(wire.entry("k", b"Z", b""))
        assert peer.outcome() == bad_client_properties(unknown_type(ord("Z")))


@pytest.mark.hb(6)
def test_many_client_properties(broker):
    """8 KiB of them, as many as fit before tune; hardly one is known."""
    with broker.peer() as peer:
        table = b"".join(wire.entry(f"{index:x}", "V", None) for index in range(1500))
        assert len(table) < 8000
        peer.connect(properties=table)
        peer.assert_usable()
    with broker.peer() as peer:
        peer.connect(properties=client_properties(consumer_cancel_notify=True) * 50)


@pytest.mark.hb(37)
def test_array_of_voids(fresh_broker):
    """131,000 values of no size at all must not become 131,000 objects: they take no more than as many octets in one
    value, which go through the same buffers before them."""
    with fresh_broker.peer() as peer:
        queue = peer.connect().call(1, "queue.declare", exclusive=True).queue
        send_and_get(peer, queue, b"x", VOIDS)
        with Growth(fresh_broker) as growth:
            send_and_get(peer, queue, b"A", VOIDS)
    assert growth.bytes <= VOIDS_GROWTH_MAX


def send_and_get(peer, queue, tag, count):
    """Messages with a header of this type, of so many octets or values."""
    headers = wire.table(wire.entry("v", tag, wire.long(b"V" * count)))
    for _ in range(20):
        peer.publish(1, "", queue, b"x", b"\x20\x00" + headers)
        assert len(peer.get(1, queue)[1].properties["headers"][0][1][1]) == count


@pytest.mark.hb(76)
def test_table_with_ten_thousand_keys(peer):
    sent = [(f"{index:05}", ("I", index)) for index in range(10_000)]
    assert headers_as_read(peer, sent) == sent
