"""Random bytes and random methods. The attacker may get any answer; other clients must not notice.

What is sent follows from a seed and not from the pace of the broker; `--seed` is for another one.
"""

import os
import random

import pytest

import wire
from answers import DROPPED, Closed
from peer import Silent, SocketDropped, client_properties

NOISES, LOGINS, BATCHES, FLIPS = 15_000, 300, 1000, 1200
CLIENTS = 10


def is_lawful(outcome):
    """An attacker may be closed with a reason or dropped."""
    return outcome == DROPPED or isinstance(outcome, Closed)


def swallow(peer):
    """Reads what is there without waiting; True when the broker hung up or closed."""
    try:
        while True:
            frame = peer.read_frame(0.0005)
            if frame.type == wire.FRAME_METHOD and frame.payload[:4] == b"\x00\x0a\x00\x32":
                return True
    except Silent:
        return False
    except SocketDropped:
        return True


def random_value(dice, depth=0):
    tag = dice.choice("tbBsuIilLfdDSxTFAV")
    if tag in "FA" and depth > 3:
        tag = "V"
    if tag == "F":
        return tag, [(random_text(dice), random_value(dice, depth + 1)) for _ in range(dice.randrange(4))]
    if tag == "A":
        return tag, [random_value(dice, depth + 1) for _ in range(dice.randrange(4))]
    if tag in "Sx":
        return tag, dice.randbytes(dice.randrange(40))
    if tag == "D":
        return tag, (dice.randrange(256), dice.randrange(1 << 32))
    if tag in "fd":
        return tag, dice.uniform(-1e6, 1e6)
    if tag == "t":
        return tag, dice.random() < 0.5
    if tag == "V":
        return tag, None
    low, high = {"b": (-128, 127), "B": (0, 255), "s": (-(1 << 15), 1 << 15), "u": (0, 1 << 16),
                 "I": (-(1 << 31), 1 << 31), "i": (0, 1 << 32), "T": (0, 1 << 64)}.get(tag, (-(1 << 63), 1 << 63))
    return tag, dice.randrange(low, high)


def random_text(dice):
    return "".join(dice.choice("ab.*#\u00e9\0") for _ in range(dice.choice((0, 1, 3, 30))))


KNOWN_ARGUMENTS = [
    "x-message-ttl", "x-expires", "x-max-length", "x-overflow", "x-max-priority", "x-match", "x-priority",
    "x-dead-letter-exchange", "x-single-active-consumer", "alternate-exchange", "CC", "x-death"]


def random_table(dice):
    size = dice.randrange(4)
    keys = [dice.choice(KNOWN_ARGUMENTS) if dice.random() < 0.7 else random_text(dice) for _ in range(size)]
    return [(key, random_value(dice)) for key in keys]


def random_argument(dice, key, kind, names):
    """Names are the attacker's own, so that it can only hurt itself."""
    if key in ("queue", "exchange", "source", "destination"):
        return dice.choice(names) if key != "exchange" or dice.random() < 0.8 else dice.choice(("", "amq.topic"))
    if key == "routing_key":
        return dice.choice(names + ["#.a", "*"])
    if key in ("durable", "passive"):
        return key == "passive" and dice.random() < 0.1
    if kind == "b":
        return key == "exclusive" or dice.random() < 0.3
    if kind == "F":
        return random_table(dice)
    if kind == "s":
        return dice.choice(("direct", "fanout", "topic", "headers")) if key == "type" else random_text(dice)
    if kind == "S":
        return dice.randbytes(dice.randrange(20))
    return dice.choice((0, 1, 2, dice.randrange(1 << {"o": 8, "h": 16, "l": 32, "L": 64}[kind])))


CLIENT_METHODS = [
    name for name in wire.METHODS
    if not name.startswith("connection.") and not name.endswith("-ok") and name not in ("basic.deliver", "basic.return")
]


def random_method(dice, channel, names, name=None):
    name = name or dice.choice(CLIENT_METHODS)
    arguments = {key: random_argument(dice, key, kind, names) for key, kind in wire.METHOD_FIELDS[name]}
    frames = wire.method_frame(channel, name, **arguments)
    if name == "basic.publish":
        body = dice.randbytes(dice.randrange(50))
        properties = {} if dice.random() < 0.5 else {
            "headers": random_table(dice), "delivery_mode": dice.randrange(4), "priority": dice.randrange(256),
            "expiration": dice.choice(("0", "1", "1000", "x"))}
        frames += wire.header_frame(channel, len(body), properties)
        frames += wire.body_frame(channel, body) if body else b""
    return frames


@pytest.mark.hb(88)
def test_random_bytes_without_a_login(broker, seed):
    """Noise instead of the header, behind the header, instead of start-ok's payload."""
    dice = random.Random(seed)
    peers = []
    try:
        for _ in range(NOISES):
            peer = broker.peer()
            peers.append(peer)
            noise = dice.randbytes(dice.choice((1, 7, 8, 9, 100, 9000)))
            shape = dice.randrange(3)
            if shape:
                peer.send(wire.PROTOCOL_HEADER)
            peer.send(wire.frame(dice.randrange(256), dice.choice((0, 1)), noise[:4000]) if shape == 2 else noise)
            if len(peers) > 200:  # none of them may hold the broker's attention for longer than it takes
                peers.pop(0).socket.close()
    finally:
        for peer in peers:
            peer.socket.close()


@pytest.mark.hb(88)
def test_random_methods_without_a_login(broker, seed):
    """Well-formed methods in any order before login: none may get anywhere."""
    dice = random.Random(seed)
    names = [f"hostile.fuzz.{os.getpid()}.never"]
    outcomes = []
    peers = []
    for _ in range(LOGINS):
        peer = broker.peer()
        peers.append(peer)
        peer.send(wire.PROTOCOL_HEADER)
        for _ in range(dice.randrange(1, 5)):
            peer.send(random_method(dice, dice.choice((0, 1)), names, dice.choice(CLIENT_METHODS)))
    for peer in peers:
        with peer:
            outcomes.append(peer.outcome())
    assert all(map(is_lawful, outcomes))


@pytest.mark.hb(88)
def test_random_methods_from_a_client(broker, names, seed):
    """Ten connections do anything at all to objects of their own."""
    dice = random.Random(seed)
    own = [names.any() for _ in range(6)] + [""]
    peers = {}
    try:
        for _ in range(BATCHES):
            number = dice.randrange(CLIENTS)
            if number not in peers:
                peers[number] = broker.peer()
                peers[number].connect(properties=client_properties(consumer_cancel_notify=True), channels=[1, 2])
            peer = peers[number]
            for _ in range(20):
                peer.send(random_method(dice, dice.choice((1, 2)), own))
            peer.send(wire.method_frame(1, "channel.close-ok") * (dice.random() < 0.02))
            if swallow(peer):
                peers.pop(number).socket.close()
    finally:
        for peer in peers.values():
            peer.socket.close()
        names.exchanges += own[:-1]


@pytest.mark.hb(21, 88)
def test_flipped_bits(broker, seed):
    """A lawful conversation with one random octet changed, as broken hardware would."""
    dice = random.Random(seed)
    for _ in range(FLIPS):
        with broker.peer() as peer:
            peer.connect()
            queue = peer.call(1, "queue.declare", exclusive=True, arguments=[("x-message-ttl", ("I", 60000))]).queue
            talk = bytearray(
                wire.method_frame(1, "confirm.select")
                + wire.publish(1, "", queue, b"body", {"headers": [("k", ("S", b"v"))], "priority": 1})
                + wire.method_frame(1, "basic.get", queue=queue, no_ack=True)
                + wire.method_frame(1, "queue.bind", queue=queue, exchange="amq.topic", routing_key="a.b",
                                    arguments=[("k", ("A", [("I", 1)]))]))
            talk[dice.randrange(len(talk))] ^= 1 << dice.randrange(8)
            peer.send(talk)
            peer.half_close()
            peer.read_until_drop()  # it may be answered or closed, but it ends
