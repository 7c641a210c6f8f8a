"""AMQP 0-9-1 bytes, written for tests that must be able to get them wrong.

The encoder never checks anything: every length, tag, class id and frame end can be overridden by the caller, because
the tests need invalid bytes as often as valid ones. The decoder is strict and keeps what a client library would throw
away: the type tag of every table value and the order of the keys.

A field table is a list of `(key, (tag, value))` pairs, an array a list of `(tag, value)`. Nested tables and arrays use
the same shapes. Where raw bytes are given instead of a list, they are taken as the finished body (without its length).
"""

import struct
from dataclasses import dataclass, field

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

FRAME_METHOD = 1
FRAME_HEADER = 2
FRAME_BODY = 3
FRAME_HEARTBEAT = 8
FRAME_END = 0xCE
FRAME_OVERHEAD = 8  # type, channel, size and end octet around a payload

# Scalar field types: tag -> struct format. `s` and `l` are RabbitMQ's signed readings, not the AMQP grammar's.
SCALARS = {
    "t": ">?", "b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I",
    "l": ">q", "L": ">q", "f": ">f", "d": ">d", "T": ">Q",
}

METHODS = {
    "connection.start": (10, 10, "version_major:o version_minor:o server_properties:F mechanisms:S locales:S"),
    "connection.start-ok": (10, 11, "client_properties:F mechanism:s response:S locale:s"),
    "connection.secure": (10, 20, "challenge:S"),
    "connection.secure-ok": (10, 21, "response:S"),
    "connection.tune": (10, 30, "channel_max:h frame_max:l heartbeat:h"),
    "connection.tune-ok": (10, 31, "channel_max:h frame_max:l heartbeat:h"),
    "connection.open": (10, 40, "virtual_host:s reserved1:s insist:b"),
    "connection.open-ok": (10, 41, "reserved1:s"),
    "connection.close": (10, 50, "reply_code:h reply_text:s class_id:h method_id:h"),
    "connection.close-ok": (10, 51, ""),
    "connection.blocked": (10, 60, "reason:s"),
    "connection.unblocked": (10, 61, ""),
    "connection.update-secret": (10, 70, "new_secret:S reason:s"),
    "connection.update-secret-ok": (10, 71, ""),
    "channel.open": (20, 10, "reserved1:s"),
    "channel.open-ok": (20, 11, "reserved1:S"),
    "channel.flow": (20, 20, "active:b"),
    "channel.flow-ok": (20, 21, "active:b"),
    "channel.close": (20, 40, "reply_code:h reply_text:s class_id:h method_id:h"),
    "channel.close-ok": (20, 41, ""),
    "access.request": (30, 10, "realm:s exclusive:b passive:b active:b write:b read:b"),
    "access.request-ok": (30, 11, "ticket:h"),
    "exchange.declare": (
        40, 10,
        "ticket:h exchange:s type:s passive:b durable:b auto_delete:b internal:b nowait:b arguments:F",
    ),
    "exchange.declare-ok": (40, 11, ""),
    "exchange.delete": (40, 20, "ticket:h exchange:s if_unused:b nowait:b"),
    "exchange.delete-ok": (40, 21, ""),
    "exchange.bind": (40, 30, "ticket:h destination:s source:s routing_key:s nowait:b arguments:F"),
    "exchange.bind-ok": (40, 31, ""),
    "exchange.unbind": (40, 40, "ticket:h destination:s source:s routing_key:s nowait:b arguments:F"),
    "exchange.unbind-ok": (40, 51, ""),
    "queue.declare": (50, 10, "ticket:h queue:s passive:b durable:b exclusive:b auto_delete:b nowait:b arguments:F"),
    "queue.declare-ok": (50, 11, "queue:s message_count:l consumer_count:l"),
    "queue.bind": (50, 20, "ticket:h queue:s exchange:s routing_key:s nowait:b arguments:F"),
    "queue.bind-ok": (50, 21, ""),
    "queue.purge": (50, 30, "ticket:h queue:s nowait:b"),
    "queue.purge-ok": (50, 31, "message_count:l"),
    "queue.delete": (50, 40, "ticket:h queue:s if_unused:b if_empty:b nowait:b"),
    "queue.delete-ok": (50, 41, "message_count:l"),
    "queue.unbind": (50, 50, "ticket:h queue:s exchange:s routing_key:s arguments:F"),
    "queue.unbind-ok": (50, 51, ""),
    "basic.qos": (60, 10, "prefetch_size:l prefetch_count:h global:b"),
    "basic.qos-ok": (60, 11, ""),
    "basic.consume": (
        60, 20, "ticket:h queue:s consumer_tag:s no_local:b no_ack:b exclusive:b nowait:b arguments:F",
    ),
    "basic.consume-ok": (60, 21, "consumer_tag:s"),
    "basic.cancel": (60, 30, "consumer_tag:s nowait:b"),
    "basic.cancel-ok": (60, 31, "consumer_tag:s"),
    "basic.publish": (60, 40, "ticket:h exchange:s routing_key:s mandatory:b immediate:b"),
    "basic.return": (60, 50, "reply_code:h reply_text:s exchange:s routing_key:s"),
    "basic.deliver": (60, 60, "consumer_tag:s delivery_tag:L redelivered:b exchange:s routing_key:s"),
    "basic.get": (60, 70, "ticket:h queue:s no_ack:b"),
    "basic.get-ok": (60, 71, "delivery_tag:L redelivered:b exchange:s routing_key:s message_count:l"),
    "basic.get-empty": (60, 72, "reserved1:s"),
    "basic.ack": (60, 80, "delivery_tag:L multiple:b"),
    "basic.reject": (60, 90, "delivery_tag:L requeue:b"),
    "basic.recover-async": (60, 100, "requeue:b"),
    "basic.recover": (60, 110, "requeue:b"),
    "basic.recover-ok": (60, 111, ""),
    "basic.nack": (60, 120, "delivery_tag:L multiple:b requeue:b"),
    "tx.select": (90, 10, ""),
    "tx.select-ok": (90, 11, ""),
    "tx.commit": (90, 20, ""),
    "tx.commit-ok": (90, 21, ""),
    "tx.rollback": (90, 30, ""),
    "tx.rollback-ok": (90, 31, ""),
    "confirm.select": (85, 10, "nowait:b"),
    "confirm.select-ok": (85, 11, ""),
}


def _fields(spec):
    return tuple(tuple(item.split(":")) for item in spec.split())


METHOD_FIELDS = {name: _fields(spec) for name, (_, _, spec) in METHODS.items()}
METHOD_IDS = {name: (class_id, method_id) for name, (class_id, method_id, _) in METHODS.items()}
METHOD_NAMES = {ids: name for name, ids in METHOD_IDS.items()}

# Basic properties in wire order; the first has flag bit 15, the next 14, and so on.
PROPERTIES = (
    ("content_type", "s"), ("content_encoding", "s"), ("headers", "F"), ("delivery_mode", "o"), ("priority", "o"),
    ("correlation_id", "s"), ("reply_to", "s"), ("expiration", "s"), ("message_id", "s"), ("timestamp", "L"),
    ("type", "s"), ("user_id", "s"), ("app_id", "s"), ("cluster_id", "s"),
)


class Malformed(Exception):
    """The broker sent bytes that are not AMQP 0-9-1. Always a failure of the broker (or of this decoder)."""


@dataclass(frozen=True)
class Frame:
    """One frame as read from the wire. `payload` does not contain the end octet."""

    type: int
    channel: int
    payload: bytes


@dataclass(frozen=True)
class Method:
    """A decoded method frame's payload."""

    name: str
    args: dict = field(default_factory=dict)

    def __getattr__(self, key):
        try:
            return self.args[key]
        except KeyError:
            raise AttributeError(key) from None


@dataclass(frozen=True)
class Header:
    """A decoded content header; `properties` holds only the properties that are present."""

    class_id: int
    weight: int
    body_size: int
    properties: dict


# ---------------------------------------------------------------------------------------------------------- writing


def frame(type_, channel, payload=b"", size=None, end=FRAME_END):
    """A whole frame. `size` lies about the payload length; `end` replaces the end octet."""
    size = len(payload) if size is None else size
    return struct.pack(">BHI", type_, channel, size) + payload + bytes([end])


def heartbeat(channel=0, payload=b""):
    return frame(FRAME_HEARTBEAT, channel, payload)


def short(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return bytes([len(raw)]) + raw


def long(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack(">I", len(raw)) + raw


def value(tag, content):
    """The bytes of one field value without its tag."""
    if tag in SCALARS:
        return struct.pack(SCALARS[tag], content)
    if tag in "Sx":
        return long(content)
    if tag == "F":
        return table(content)
    if tag == "A":
        return array(content)
    if tag == "D":
        return struct.pack(">BI", *content)
    if tag == "V":
        return b""
    raise AssertionError(f"no encoding for tag {tag!r}; pass raw bytes instead")


def tagged(tag, content):
    return tag.encode("latin-1") + value(tag, content)


def entry(key, tag, content):
    """One table entry; for raw values give `tag` as bytes and `content` as the finished bytes."""
    if isinstance(tag, bytes):
        return short(key) + tag + content
    return short(key) + tagged(tag, content)


def table(entries):
    body = entries if isinstance(entries, bytes) else b"".join(entry(key, *item) for key, item in entries)
    return struct.pack(">I", len(body)) + body


def array(items):
    body = items if isinstance(items, bytes) else b"".join(tagged(*item) for item in items)
    return struct.pack(">I", len(body)) + body


def nested_table(depth):
    """The body of a table that holds a table that holds ... `depth` tables in all, counting the outermost."""
    body = b""
    for _ in range(depth - 1):
        body = b"\x00F" + struct.pack(">I", len(body)) + body
    return body


_DEFAULTS = {"o": 0, "h": 0, "l": 0, "L": 0, "s": "", "S": "", "F": (), "b": False}


def _argument(kind, content):
    if kind == "s":
        return short(content)
    if kind == "S":
        return long(content)
    if kind == "F":
        return table(content if isinstance(content, bytes) else list(content))
    return struct.pack({"o": ">B", "h": ">H", "l": ">I", "L": ">Q"}[kind], content)


def method(name, **args):
    """A method frame's payload; arguments that are not given are zero, empty or false."""
    class_id, method_id = METHOD_IDS[name]
    out = [struct.pack(">HH", class_id, method_id)]
    bits = []
    for key, kind in METHOD_FIELDS[name]:
        content = args.pop(key, _DEFAULTS[kind])
        if kind == "b":
            bits.append(content)
            continue
        out.append(_packed_bits(bits))
        bits = []
        out.append(_argument(kind, content))
    out.append(_packed_bits(bits))
    assert not args, f"{name} has no {sorted(args)}"
    return b"".join(out)


def _packed_bits(bits):
    return bytes([sum(1 << index for index, bit in enumerate(bits) if bit)]) if bits else b""


def method_frame(channel, name, **args):
    return frame(FRAME_METHOD, channel, method(name, **args))


def header(body_size, properties=(), class_id=60, weight=0):
    """A content header frame's payload. `properties` is a dict, or raw bytes starting with the flags."""
    head = struct.pack(">HHQ", class_id, weight, body_size)
    if isinstance(properties, bytes):
        return head + properties
    properties = dict(properties)
    flags, body = 0, b""
    for index, (key, kind) in enumerate(PROPERTIES):
        if key in properties:
            flags |= 1 << (15 - index)
            body += _argument(kind, properties.pop(key))
    assert not properties, f"unknown properties {sorted(properties)}"
    return head + struct.pack(">H", flags) + body


def header_frame(channel, body_size, properties=(), **overrides):
    return frame(FRAME_HEADER, channel, header(body_size, properties, **overrides))


def body_frame(channel, payload):
    return frame(FRAME_BODY, channel, payload)


def publish(channel, exchange, routing_key, body=b"", properties=(), frame_max=131072, **flags):
    """All frames of one publish, the body cut to `frame_max`."""
    piece = frame_max - FRAME_OVERHEAD
    out = [
        method_frame(channel, "basic.publish", exchange=exchange, routing_key=routing_key, **flags),
        header_frame(channel, len(body), properties),
    ]
    out += [body_frame(channel, body[at:at + piece]) for at in range(0, len(body), piece)]
    return b"".join(out)


# ---------------------------------------------------------------------------------------------------------- reading


class Cursor:
    """Reads typed values from bytes and refuses to run past the end."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise Malformed(f"{count} bytes wanted at {self.at} of {len(self.data)}")
        piece = self.data[self.at:self.at + count]
        self.at += count
        return piece

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def left(self):
        return len(self.data) - self.at

    def short(self):
        return self.take(self.unpack(">B")[0]).decode()

    def long(self):
        return self.take(self.unpack(">I")[0])

    def value(self, tag):
        if tag in SCALARS:
            return self.unpack(SCALARS[tag])[0]
        if tag in "Sx":
            return self.long()
        if tag == "F":
            return self.table()
        if tag == "A":
            inner, items = Cursor(self.long()), []
            while inner.left():
                item_tag = inner.take(1).decode("latin-1")
                items.append((item_tag, inner.value(item_tag)))
            return items
        if tag == "D":
            return self.unpack(">BI")
        if tag == "V":
            return None
        raise Malformed(f"unknown field type {tag!r}")

    def table(self):
        inner, entries = Cursor(self.long()), []
        while inner.left():
            key = inner.short()
            tag = inner.take(1).decode("latin-1")
            entries.append((key, (tag, inner.value(tag))))
        return entries

    def argument(self, kind):
        if kind == "s":
            return self.short()
        if kind == "S":
            return self.long()
        if kind == "F":
            return self.table()
        return self.unpack({"o": ">B", "h": ">H", "l": ">I", "L": ">Q"}[kind])[0]

    def end(self):
        if self.left():
            raise Malformed(f"{self.left()} bytes left over: {self.data[self.at:][:40]!r}")


def decode_method(payload):
    cursor = Cursor(payload)
    ids = cursor.unpack(">HH")
    if ids not in METHOD_NAMES:
        raise Malformed(f"unknown method {ids}")
    name, args, bit = METHOD_NAMES[ids], {}, 8
    for key, kind in METHOD_FIELDS[name]:
        if kind == "b":
            if bit == 8:
                octet, bit = cursor.unpack(">B")[0], 0
            args[key] = bool(octet >> bit & 1)
            bit += 1
        else:
            args[key], bit = cursor.argument(kind), 8
    cursor.end()
    return Method(name, args)


def decode_header(payload):
    cursor = Cursor(payload)
    class_id, weight, body_size, flags = cursor.unpack(">HHQH")
    if flags & 3:
        raise Malformed(f"flags {flags:#x} name properties that do not exist")
    properties = {
        key: cursor.argument(kind) for index, (key, kind) in enumerate(PROPERTIES) if flags >> (15 - index) & 1
    }
    cursor.end()
    return Header(class_id, weight, body_size, properties)
