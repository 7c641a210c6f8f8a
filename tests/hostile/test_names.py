"""Names are opaque: every legal short string is a legal name, without a meaning."""

import hashlib

import pytest

import wire
from answers import UNHARMED

ODD_NAMES = [
    "../../etc/passwd", "..", ".", "/", "\\", "C:\\con", "nul\0byte", "\u202ertl", "\U0001f407" * 60,
    "%2F", "%00", "a b", " ", "'", "\"", "'; drop table queues; --", "<script>alert(1)</script>", "${jndi:ldap://x}",
    "{{7*7}}", "$(id)", "-rf", "a/b/c", "*", "#", "a.*.#", "\x7f", "\x1b[31m", "n" * 200, "\u00e9\u0301", "__proto__",
]


@pytest.mark.hb(57)
@pytest.mark.parametrize("odd", ODD_NAMES, ids=lambda text: repr(text)[:24])
def test_odd_names(peer, names, odd):
    """As queue, exchange, routing key, consumer tag, header key and value, and in every property."""
    name = (names.any() + odd).encode()[:255].decode(errors="ignore")
    names.exchanges.append(name)
    assert peer.call(1, "queue.declare", queue=name, exclusive=True).queue == name
    peer.call(1, "exchange.declare", exchange=name, type="topic", auto_delete=True)
    key = name.replace("#", "-").replace("*", "-")
    peer.call(1, "queue.bind", queue=name, exchange=name, routing_key=key)
    properties = {
        "headers": [(name, ("S", name.encode()))], "correlation_id": name, "reply_to": name, "message_id": name,
        "type": name, "app_id": name, "content_type": name,
    }
    peer.publish(1, name, key, b"x", properties, mandatory=True)
    got, header, _ = peer.get(1, name)
    assert (got.exchange, got.routing_key) == (name, key)
    assert header.properties == properties
    assert peer.call(1, "basic.consume", queue=name, consumer_tag=name).consumer_tag == name
    assert peer.call(1, "basic.cancel", consumer_tag=name).consumer_tag == name


@pytest.mark.hb(57)
@pytest.mark.parametrize("size", [1, 254, 255])
def test_long_names(peer, names, worker_id, size):
    name = (names.any() * 20)[-size:] if size > 1 else worker_id[-1]
    assert peer.call(1, "queue.declare", queue=name, exclusive=True).queue == name
    peer.publish(1, "", name, b"x")
    assert peer.get(1, name)[0].routing_key == name


@pytest.mark.hb(57)
@pytest.mark.parametrize("name, stored", [("a\nb", "ab"), ("\r\na", "a"), ("a\r", "a"), ("a\n\n\nb\r\r", "ab")])
def test_line_ends_are_stripped(peer, names, name, stored):
    """CR and LF leave the names of queues and exchanges; the answer has what is stored."""
    prefix = names.any()
    queue, short = f"{prefix}-{name}", f"{prefix}-{stored}"
    names.exchanges.append(short)
    assert peer.call(1, "queue.declare", queue=queue, exclusive=True).queue == short
    peer.call(1, "exchange.declare", exchange=queue, type="fanout")
    peer.call(1, "exchange.declare", exchange=short, type="fanout", passive=True)
    peer.publish(1, "", short, b"x")
    assert peer.get(1, short)[2] == b"x"


def test_server_given_names(peer):
    """Unguessable, of the documented shape, never twice."""
    queues = {peer.call(1, "queue.declare", exclusive=True).queue for _ in range(50)}
    tags = {peer.call(1, "basic.consume").consumer_tag for _ in range(50)}
    assert len(queues) == len(tags) == 50
    for prefix, given in (("amq.gen-", queues), ("amq.ctag-", tags)):
        for name in given:
            assert name.startswith(prefix) and len(name) == len(prefix) + 22, name


# Marc Stevens's pair of printable texts with one MD5 sum (2024).
MD5_PAIR = (
    "TEXTCOLLBYfGiJUETHQ4hAcKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak",
    "TEXTCOLLBYfGiJUETHQ4hEcKSMd5zYpgqf1YRDhkmxHkhPWptrkoyz28wnI9V0aHeAuaKnak",
)


@pytest.mark.hb(101)
def test_names_with_one_md5_sum_are_two_queues(peer):
    one, two = MD5_PAIR
    assert one != two and hashlib.md5(one.encode()).digest() == hashlib.md5(two.encode()).digest()
    peer.call(1, "queue.declare", queue=one, exclusive=True)
    peer.call(1, "queue.declare", queue=two, exclusive=True)
    peer.publish(1, "", one, b"one")
    peer.publish(1, "", two, b"two")
    assert peer.get(1, one)[2] == b"one" and peer.get(1, two)[2] == b"two"


@pytest.mark.hb(76)
def test_a_name_is_forgotten_with_its_object(peer, names):
    """The same name may become something else at once."""
    name = names.queue()
    names.exchanges.append(name)
    for durable in (True, False) * 10:
        peer.call(1, "queue.declare", queue=name, durable=durable, exclusive=not durable)
        peer.call(1, "exchange.declare", exchange=name, type="direct" if durable else "fanout")
        peer.call(1, "queue.bind", queue=name, exchange=name, routing_key=name)
        peer.call(1, "queue.delete", queue=name)
        peer.call(1, "exchange.delete", exchange=name)
    peer.send(wire.heartbeat())
    assert peer.outcome_or_unharmed() == UNHARMED
