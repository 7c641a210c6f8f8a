"""A disk that takes half a second for every sync: confirms wait for it, and nothing else does."""

import json
import re
import time

import wire
from peer import Peer
from test_clock import ask

DELAY_S = 0.5
WITHIN_S = 120.0
ROUNDS_MAX = 100
RULE = ("fsync", 10, 1_000_000, f"delay:{round(DELAY_S * 1000)}", ".log")
PERSISTENT = {"delivery_mode": 2}


def connect(broker, **options):
    return Peer(broker.address).connect(**options)


def confirms(peer, count):
    """Waits for so many confirms."""
    confirmed = 0
    while confirmed < count:
        confirmed = peer.expect(1, "basic.ack").delivery_tag


def slow(broker, rule=RULE):
    """Make the next sync of a broker a slow one: its publisher in confirm mode, with a durable queue, and its last number."""
    broker.start_with(rule)
    peer = connect(broker)
    peer.call(1, "queue.declare", queue="q", durable=True)
    peer.call(1, "confirm.select")
    number = 0
    while not broker.injected():
        number += 1
        peer.publish(1, "", "q", b"", PERSISTENT)
        confirms(peer, number)
    return peer, number


def test_a_confirm_waits_for_its_sync(broker):
    peer, number = slow(broker)
    for _ in range(3):
        number += 1
        began = time.monotonic()
        peer.publish(1, "", "q", b"", PERSISTENT)
        confirms(peer, number)
        assert time.monotonic() - began >= DELAY_S


def test_slow_sync_is_a_finding(broker):
    slow(broker, ("fsync", 10, 1_000_000, "delay:1100", ".log"))
    _, body = ask(f"http://{broker.http_address}/api/health/findings")
    [finding] = [one for one in json.loads(body)["findings"] if one["kind"] == "slow_disk"]
    assert finding["severity"] == "warning"
    assert float(re.search(r"a write took ([0-9.]+) ", finding["text"])[1]) >= 1.1, finding


def test_publishes_during_a_sync_share_the_next_one(broker):
    peer, number = slow(broker)
    syncs = len(broker.injected())
    # All in one write: a busy machine cannot spread them over more syncs.
    peer.send(wire.publish(1, "", "q", b"x" * 1000, PERSISTENT, peer.frame_max) * 50)
    confirms(peer, number + 50)
    assert len(broker.injected()) - syncs <= 3


def test_transient_publishes_do_not_wait_for_the_disk(broker):
    """Transient messages are delivered, and heartbeats of other clients sent, while a sync goes on."""
    peer, number = slow(broker)
    other = connect(broker)
    queue = other.call(1, "queue.declare", exclusive=True).queue
    quick, rounds = 0, 0
    while quick < 3:
        number, rounds = number + 1, rounds + 1
        began_s, syncs = time.monotonic(), len(broker.injected())
        peer.publish(1, "", "q", b"", PERSISTENT)
        assert broker.wait_until(lambda: len(broker.injected()) > syncs, WITHIN_S)
        other.publish(1, "", queue, b"quick")
        assert other.get(1, queue)[2] == b"quick"
        # On a busy machine the test itself may take as long as the sync.
        took_s = time.monotonic() - began_s
        quick += took_s < DELAY_S
        assert took_s < DELAY_S or rounds < ROUNDS_MAX, "every message waited for a sync"
        confirms(peer, number)
    with connect(broker, heartbeat=1) as idle:
        # One comes every half interval, and a sync takes as long.
        peer.send(wire.publish(1, "", "q", b"", PERSISTENT) * 3)
        assert idle.read_frame().type == wire.FRAME_HEARTBEAT


def test_consumer_is_served_and_its_answered_acks_are_safe(broker):
    peer, _ = slow(broker)
    peer.send_method(1, "basic.get", queue="q")
    got = peer.expect(1, "basic.get-ok")
    peer.read_content(1)
    began = time.monotonic()
    peer.send_method(1, "basic.ack", delivery_tag=got.delivery_tag)
    peer.assert_usable()
    assert time.monotonic() - began >= DELAY_S * 0.9
    left = got.message_count
    broker.kill()
    broker.start()
    assert connect(broker).call(1, "queue.declare", queue="q", durable=True, passive=True).message_count == left
