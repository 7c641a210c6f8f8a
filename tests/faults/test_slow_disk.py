"""A disk that takes half a second for every sync: confirms wait for it, and nothing else does."""

import json
import time

import wire
from peer import Peer
from test_clock import ask

DELAY_S = 0.5
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
    assert finding["severity"] == "warning" and "a write took 1." in finding["text"]


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
    other = connect(broker, heartbeat=1)
    queue = other.call(1, "queue.declare", exclusive=True).queue
    syncs = len(broker.injected())
    for _ in range(5):
        number += 1
        peer.publish(1, "", "q", b"", PERSISTENT)
        broker.wait_until(lambda: len(broker.injected()) > syncs, 5)
        syncs = len(broker.injected())
        began = time.monotonic()
        other.publish(1, "", queue, b"quick")
        assert other.get(1, queue)[2] == b"quick"
        assert time.monotonic() - began < DELAY_S / 2
        confirms(peer, number)
    assert other.read_frame(2.0).type == wire.FRAME_HEARTBEAT


def test_consumer_is_served_and_its_answered_acks_are_safe(broker):
    peer, _ = slow(broker)
    peer.send_method(1, "basic.get", queue="q")
    got = peer.expect(1, "basic.get-ok")
    peer.read_content(1)
    peer.send_method(1, "basic.ack", delivery_tag=got.delivery_tag)
    began = time.monotonic()
    peer.assert_usable()
    assert time.monotonic() - began >= DELAY_S * 0.9
    left = got.message_count
    broker.kill()
    broker.start()
    assert connect(broker).call(1, "queue.declare", queue="q", durable=True, passive=True).message_count == left
