"""AMQP field tables with nothing hidden: every value keeps its wire type, its place and its duplicates.

pika gives a table as a dict of Python values: whether an integer was an `I` or an `l`, in which order the fields stood
and that a key was there twice is lost. `install()` replaces pika's table codec. What it decodes is still a dict (of
dicts), so pika itself notices nothing; `Table.fields` holds what was on the wire. What it encodes may contain `Wire`
values and `Pairs` tables.
"""

import contextlib
import struct
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import pika.data

INTEGERS = {"b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "L": ">q"}
FIXED = INTEGERS | {"f": ">f", "d": ">d"}


class Wire(NamedTuple):
    """A value to be sent with just this wire type: `Wire("s", 5)`. Types are RabbitMQ's, so `s` is a 16-bit integer."""

    type: str
    value: object = None


class Field(NamedTuple):
    """One field as it was received. A table is a `Table`, an array a list of (type, value), a timestamp its seconds."""

    name: str
    type: str
    value: object


class Pairs(list):
    """A table to be sent as this list of (name, value), in this order and with duplicates."""

    def items(self):
        return self


class Table(dict):
    """A received table: a dict to look things up, `fields` to see what was on the wire."""

    def __init__(self):
        super().__init__()
        self.fields = []

    def type_of(self, name):
        """The wire type of this field; the field must be there."""
        return next(field.type for field in self.fields if field.name == name)


def encode_value(pieces, value):
    """pika.data.encode_value, which also takes `Wire` and `Pairs`."""
    if not isinstance(value, Wire):
        value = _with_default_type(value)
    start = len(pieces)
    kind, value = value
    pieces.append(kind.encode())
    if kind in FIXED:
        pieces.append(struct.pack(FIXED[kind], value))
    elif kind in "Sx":
        value = value.encode() if isinstance(value, str) else value
        pieces.append(struct.pack(">I", len(value)) + value)
    elif kind == "t":
        pieces.append(struct.pack(">B", value))
    elif kind == "T":
        value = int(value.timestamp()) if isinstance(value, datetime) else value
        pieces.append(struct.pack(">Q", value))
    elif kind == "D":
        exponent = value.as_tuple().exponent
        pieces.append(struct.pack(">Bi", -exponent, int(value.scaleb(-exponent))))
    elif kind == "F":
        encode_table(pieces, value)
    elif kind == "A":
        members = []
        for member in value:
            encode_value(members, member)
        members = b"".join(members)
        pieces.append(struct.pack(">I", len(members)) + members)
    elif kind != "V":
        raise ValueError(f"no such wire type: {kind}")
    return sum(map(len, pieces[start:]))


def _with_default_type(value):
    """The type that most clients choose for a Python value."""
    match value:
        case None:
            return Wire("V")
        case bool():
            return Wire("t", value)
        case int():
            return Wire("I" if -(2**31) <= value < 2**31 else "l", value)
        case float():
            return Wire("d", value)
        case str():
            return Wire("S", value)
        case bytes():
            return Wire("x", value)
        case Decimal():
            return Wire("D", value)
        case datetime():
            return Wire("T", value)
        case dict() | Pairs():
            return Wire("F", value)
        case list():
            return Wire("A", value)
    raise ValueError(f"no wire type for {value!r}")


def encode_table(pieces, table):
    """pika.data.encode_table, which also takes `Pairs`."""
    fields = []
    for name, value in (table or {}).items():
        pika.data.encode_short_string(fields, name)
        encode_value(fields, value)
    fields = b"".join(fields)
    pieces.append(struct.pack(">I", len(fields)) + fields)
    return 4 + len(fields)


def decode_table(encoded, offset):
    """pika.data.decode_table, which gives a `Table`."""
    (size,) = struct.unpack_from(">I", encoded, offset)
    offset += 4
    end = offset + size
    table = Table()
    while offset < end:
        name, offset = pika.data.decode_short_string(encoded, offset)
        kind, value, offset = _decode_typed(encoded, offset)
        table.fields.append(Field(name, kind, value))
        table.setdefault(name, _plain(kind, value))
    return table, offset


def decode_value(encoded, offset):
    """pika.data.decode_value."""
    kind, value, offset = _decode_typed(encoded, offset)
    return _plain(kind, value), offset


def _plain(kind, value):
    return [_plain(*member) for member in value] if kind == "A" else value


def _decode_typed(encoded, offset):
    kind = chr(encoded[offset])
    offset += 1
    if kind in FIXED:
        (value,) = struct.unpack_from(FIXED[kind], encoded, offset)
        return kind, value, offset + struct.calcsize(FIXED[kind])
    if kind == "t":
        return kind, encoded[offset] != 0, offset + 1
    if kind == "V":
        return kind, None, offset
    if kind == "T":
        (seconds,) = struct.unpack_from(">Q", encoded, offset)
        return kind, seconds, offset + 8
    if kind == "D":
        scale, unscaled = struct.unpack_from(">Bi", encoded, offset)
        return kind, Decimal(unscaled).scaleb(-scale), offset + 5
    if kind == "F":
        value, offset = decode_table(encoded, offset)
        return kind, value, offset
    if kind not in "SxA":
        raise ValueError(f"no such wire type: {kind!r}")
    (size,) = struct.unpack_from(">I", encoded, offset)
    offset += 4
    end = offset + size
    if kind == "A":
        members = []
        while offset < end:
            member_kind, member, offset = _decode_typed(encoded, offset)
            members.append((member_kind, member))
        return kind, members, end
    value = encoded[offset:end]
    if kind == "S":
        with contextlib.suppress(UnicodeDecodeError):  # a longstr may hold any bytes
            value = value.decode()
    return kind, value, end


def install():
    """Make pika use this codec for every table it sends and receives."""
    pika.data.encode_table = encode_table
    pika.data.encode_value = encode_value
    pika.data.decode_table = decode_table
    pika.data.decode_value = decode_value
