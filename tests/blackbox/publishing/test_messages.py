"""Messages as they are: bodies of every size, all properties, every type of header value."""

import struct
from decimal import Decimal

import pika
import pytest

from field_table import Pairs, Wire
from patience import PATIENCE_S

FRAME_MAX = 8192
FRAME_OVERHEAD = 8
MIB = 1024 * 1024


def body_of(size):
    """A body in which a misplaced piece would show."""
    return b"".join(struct.pack(">I", n) for n in range(size // 4 + 1))[:size]


def raw(message):
    return message.body if isinstance(message.body, bytes) else message.body.encode(errors="surrogateescape")


@pytest.mark.parametrize("size", [
    0, 1, FRAME_MAX - FRAME_OVERHEAD - 1, FRAME_MAX - FRAME_OVERHEAD, FRAME_MAX - FRAME_OVERHEAD + 1, FRAME_MAX - 1,
    FRAME_MAX, FRAME_MAX + 1, 2 * (FRAME_MAX - FRAME_OVERHEAD), 100_000,
])
@pytest.mark.parametrize("how", ["get", "consume"])
def test_a_body_arrives_as_it_was_sent_whatever_its_size(client, kind, size, how):
    ch = client.channel(frame_max=FRAME_MAX).confirm_select()
    q = ch.queue(kind)
    assert ch.publish(q, body_of(size)) == "a"
    message = ch.get(q) if how == "get" else ch.consume(q).next()
    assert raw(message) == body_of(size)


@pytest.mark.parametrize("sent, received", [(8192, 131072), (131072, 8192)])
def test_each_connection_has_its_own_frame_size(client, sent, received):
    sender, receiver = client.channel(frame_max=sent).confirm_select(), client.channel(frame_max=received)
    q = sender.queue()
    sender.publish(q, body_of(300_000))
    assert raw(receiver.get(q)) == body_of(300_000)


def test_a_body_of_five_mebibytes(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, body_of(5 * MIB))
    assert raw(ch.consume(q).next()) == body_of(5 * MIB)


def test_the_largest_body_is_16_mebibytes(ch):
    q = ch.queue()
    assert ch.publish(q, body_of(16 * MIB)) == "a"
    assert raw(ch.get(q)) == body_of(16 * MIB)


def test_many_messages_of_many_sizes_keep_their_order(ch, kind):
    q = ch.queue(kind)
    sizes = [n * 997 % 50_000 for n in range(60)]
    ch.publish(q, *[body_of(size) for size in sizes])
    consumer = ch.consume(q)
    assert [len(raw(consumer.next())) for _ in sizes] == sizes


PROPERTIES = {
    "content_type": "text/plain", "content_encoding": "gzip", "delivery_mode": 2, "priority": 9,
    "correlation_id": "c" * 255,
    "reply_to": "r", "expiration": "60000", "message_id": "m", "timestamp": 1_700_000_000, "type": "t",
    "user_id": "guest",
    "app_id": "a", "cluster_id": "cl",
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_each_property_travels_alone(ch, kind, name):
    q = ch.queue(kind)
    ch.publish(q, "m", **{name: PROPERTIES[name]})
    received = ch.get(q).properties
    assert {n: getattr(received, n) for n in PROPERTIES} == {n: None for n in PROPERTIES} | {name: PROPERTIES[name]}


def test_all_properties_travel_together(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m", headers={"a": 1}, **PROPERTIES)
    message = ch.get(q)
    assert {n: getattr(message.properties, n) for n in PROPERTIES} == PROPERTIES
    assert message.headers == {"a": 1}


def test_no_headers_and_empty_headers_are_both_possible(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m")
    assert ch.get(q).properties.headers is None
    ch.publish(q, "m", headers=Pairs())
    assert not ch.get(q).properties.headers


@pytest.mark.parametrize("delivery_mode", [1, 2])
def test_the_delivery_mode_stays(ch, kind, delivery_mode):
    q = ch.queue(kind)
    ch.publish(q, "m", delivery_mode=delivery_mode)
    assert ch.get(q).properties.delivery_mode == delivery_mode


VALUES = [
    ("t", True), ("t", False), ("b", -128), ("B", 255), ("s", -32768), ("u", 65535), ("I", -(2**31)), ("i", 2**32 - 1),
    ("l", -(2**63)), ("l", 2**63 - 1), ("f", 1.5), ("d", 3.141592653589793), ("D", Decimal("12.34")), ("S", "text"),
    ("S", ""), ("S", b"\xff\x00"), ("x", b"bytes"), ("T", 1_700_000_000), ("V", None), ("T", 0),
]


@pytest.mark.parametrize("wire_type, value", VALUES)
def test_every_header_type_is_kept(ch, kind, wire_type, value):
    q = ch.queue(kind)
    ch.publish(q, "m", headers={"h": Wire(wire_type, value)})
    (field,) = ch.get(q).headers.fields
    assert tuple(field) == ("h", wire_type, value)


def test_a_capital_l_comes_back_as_a_small_one(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m", headers={"h": Wire("L", -5)})
    (field,) = ch.get(q).headers.fields
    assert tuple(field) == ("h", "l", -5)


def test_nested_tables_and_arrays_are_kept(ch, kind):
    q = ch.queue(kind)
    nested = {"table": {"z": Wire("s", 1), "deeper": {"list": [1, "two", [3.0], {"k": None}]}}, "empty": {}, "none": []}
    ch.publish(q, "m", headers=nested)
    headers = ch.get(q).headers
    assert headers == {
        "table": {"z": 1, "deeper": {"list": [1, "two", [3.0], {"k": None}]}}, "empty": {}, "none": [],
    }
    assert headers["table"].type_of("z") == "s"


@pytest.mark.parametrize("name", ["", "n" * 255, "with space", "ünïcödé"])
def test_header_names_may_be_anything_of_255_bytes(ch, name):
    q = ch.queue()
    ch.publish(q, "m", headers={name: 1})
    assert ch.get(q).headers == {name: 1}


def test_routing_keys_may_be_255_bytes_long(ch):
    x, q = ch.exchange("direct"), ch.queue()
    ch.bind(q, x, "k" * 255)
    ch.publish("k" * 255, "m", exchange=x)
    assert ch.get(q).routing_key == "k" * 255


def test_the_broker_introduces_itself_with_its_capabilities(client):
    connection = client.connect()
    capabilities = connection.pika.server_capabilities
    expected = [
        "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities", "authentication_failure_close", "per_consumer_qos", "direct_reply_to",
    ]
    assert {name: capabilities.get(name) for name in expected} == dict.fromkeys(expected, True)
    assert {"cluster_name", "copyright", "information", "platform", "product", "version"} <= set(
        connection.pika.server_properties
    )


def test_the_library_as_applications_use_it_works(client):
    """pika's blocking connection, without anything of this suite in between."""
    host, port = client.broker.amqp
    queue = client.fresh_name("q")
    client.queues.append(queue)
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(queue, durable=True, arguments={"x-message-ttl": 60000})
        channel.basic_qos(prefetch_count=1)
        for n in range(5):
            channel.basic_publish("", queue, str(n), pika.BasicProperties(delivery_mode=2), mandatory=True)
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("", queue + "-missing", "lost", mandatory=True)
        seen = []
        for method, _, body in channel.consume(queue, inactivity_timeout=PATIENCE_S):
            seen.append(body.decode())
            channel.basic_ack(method.delivery_tag)
            if len(seen) == 5:
                break
        channel.cancel()
        assert seen == ["0", "1", "2", "3", "4"]
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            channel.queue_declare(queue, durable=False, arguments={"x-message-ttl": 60000})
        assert refused.value.reply_code == 406
        assert connection.is_open
