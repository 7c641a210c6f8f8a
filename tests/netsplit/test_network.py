"""The proxies do what their rules say, in one direction and not in the other; a seed says all that is drawn."""

import random
import socket
import time

import pytest

from nemeses import HOLD, Harm, Running, draw, kinds, minority
from network import Network, between, merged, one_way

WITHIN_S = 30.0
SILENCE_S = 0.3
# Far longer than anything takes that waits for nothing.
LONG_MS = 600_000


@pytest.fixture
def network():
    network = Network()
    yield network
    network.close()


def passes(source, target, octets=b"octets"):
    """The seconds until the octets are there."""
    began = time.monotonic()
    source.sendall(octets)
    left = len(octets)
    while left:
        left -= len(target.recv(left))
    return time.monotonic() - began


class Ends:
    """Both ends of a connection that `a` dials to `b`."""

    def __init__(self, network):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = network.via("a", "b", server.getsockname()[1])
            self.a = socket.create_connection(("127.0.0.1", self.port))
            self.b, _ = server.accept()
        for end in (self.a, self.b):
            end.settimeout(WITHIN_S)
        passes(self.a, self.b)


@pytest.fixture
def ends(network):
    ends = Ends(network)
    yield ends
    ends.a.close()
    ends.b.close()


def silent(end):
    end.settimeout(SILENCE_S)
    with pytest.raises(TimeoutError):
        end.recv(10)
    end.settimeout(WITHIN_S)


def test_passage(ends):
    passes(ends.a, ends.b)
    passes(ends.b, ends.a, bytes(10_000_000))


def test_end_passes(ends):
    ends.a.close()
    assert ends.b.recv(10) == b""


def test_held_direction(network, ends):
    network.rule(one_way("a", "b", HOLD))
    ends.a.sendall(b"later")
    silent(ends.b)
    passes(ends.b, ends.a)
    network.rule({})
    assert ends.b.recv(10) == b"later"


def test_held_end(network, ends):
    network.rule(one_way("a", "b", HOLD))
    ends.a.close()
    silent(ends.b)
    network.rule({})
    assert ends.b.recv(10) == b""


def test_reset_after_holding(network, ends):
    network.rule(one_way("a", "b", HOLD))
    ends.a.sendall(b"never")
    silent(ends.b)
    network.rule({}, reset=True)
    for end in (ends.a, ends.b):
        with pytest.raises(ConnectionResetError):
            end.recv(10)


def test_delayed_direction(network, ends):
    network.rule(one_way("a", "b", {"delay_ms": 200}))
    assert passes(ends.a, ends.b) >= 0.2
    network.rule(one_way("a", "b", {"delay_ms": LONG_MS}))
    ends.a.sendall(b"much later")
    passes(ends.b, ends.a)
    silent(ends.b)


def test_throttled_direction(network, ends):
    network.rule(one_way("a", "b", {"rate": 40_000}))
    assert passes(ends.a, ends.b, bytes(20_000)) >= 0.4
    network.rule(one_way("a", "b", {"rate": 40}))
    assert passes(ends.b, ends.a, bytes(20_000)) < 20_000 / 40


def test_cut(network, ends):
    network.rule(between("a", "b", {"cut": True}))
    for end in (ends.a, ends.b):
        with pytest.raises(ConnectionResetError):
            end.recv(10)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ends.port))
    network.rule({})
    socket.create_connection(("127.0.0.1", ends.port)).close()


@pytest.mark.parametrize("names", ["abc", "abcde"])
def test_draw_of_a_seed(names):
    steps = draw(random.Random(7), names, 40)
    assert steps == draw(random.Random(7), names, 40)
    kinds_of_harms = {harm.kind.removesuffix(" all") for step in steps for harm in step.harms}
    assert kinds_of_harms == {kind for kind in kinds(len(names)) if "and" not in kind and kind != "combined"}


class Nodes:
    """Stands for a cluster that `a` leads."""

    def __init__(self, names):
        self.nodes = dict.fromkeys(names)

    def leader_now(self):
        return "a"


@pytest.mark.parametrize(("names", "kind", "few"), [
    ("abc", "cut off", "a"), ("abc", "cut off in", "a"), ("abc", "cut off out", "a"), ("abc", "parts", "abc"),
    ("abc", "bridge", ""), ("abcde", "cut off", "a"), ("abcde", "halves", "ab"), ("abcde", "ring", ""),
    ("abcde", "bridge", "")])
def test_minority(names, kind, few):
    rules = Running(Harm(kind, None, tuple(names), HOLD), Nodes(names)).rules(0.0)
    assert minority(names, rules) == list(few)


def test_merged_rules():
    slow = {"delay_ms": 100}
    rules = merged(between("a", "bc", HOLD), one_way("a", "b", slow))
    assert rules["a", "b"] == {"hold": True, "delay_ms": 100}
    assert rules["b", "a"] == rules["a", "c"] == HOLD
