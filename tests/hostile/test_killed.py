"""The broker is killed in the middle of everything, and what was promised is there when it lives again."""

import threading

import pytest

import wire
from brokers import Leveret
from peer import Silent, SocketDropped

pytestmark = pytest.mark.leveret_only("needs a broker process of its own")

CROWDS = 8
KILLS = 3
CONNECTIONS_MIN = 1000  # that came and went before the first kill, so that it hits them


@pytest.fixture
def mortal(leveret_bin):
    broker = Leveret(leveret_bin)
    yield broker
    broker.assert_alive()
    broker.stop()


class Crowd:
    """Connects and says connection.close, again and again, on one thread; every third does not wait for the answer."""

    def __init__(self, broker):
        self.broker = broker
        self.count = 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.is_over.is_set():
            try:
                with self.broker.peer() as peer:
                    peer.connect(channels=())
                    peer.send_method(0, "connection.close", reply_code=200)
                    if self.count % 3:
                        peer.expect(0, "connection.close-ok")
                    self.count += 1
            except (OSError, SocketDropped, Silent, wire.Malformed):
                pass  # the broker is dead, or was when this began

    def end(self):
        self.is_over.set()
        self.thread.join(120)


def publish_until_it_dies(peer, queue, first, has_confirmed):
    """The number of the last message that was confirmed, and of the last that was sent."""
    sent, confirmed = first - 1, first - 1
    try:
        while True:
            for _ in range(20):
                sent += 1
                peer.publish(1, "", queue, b"%d" % sent, {"delivery_mode": 2})
            while confirmed < sent:
                confirmed = first - 1 + peer.expect(1, "basic.ack").delivery_tag
            has_confirmed.set()
    except (SocketDropped, OSError):
        return confirmed, sent


@pytest.mark.slow
@pytest.mark.hb(100)
def test_killed_while_thousands_connect_and_close(mortal):
    """Each time it starts again, serves those who still come, and has every message that it had confirmed, in order."""
    crowds = [Crowd(mortal) for _ in range(CROWDS)]
    kept, last = [], 0
    try:
        for _ in range(KILLS):
            came = sum(crowd.count for crowd in crowds)
            with mortal.peer() as peer:
                peer.connect().call(1, "queue.declare", queue="q", durable=True)
                peer.call(1, "confirm.select")
                has_confirmed = threading.Event()
                wanted = came + CONNECTIONS_MIN
                killer = threading.Thread(target=kill_after, args=(mortal, crowds, wanted, has_confirmed))
                killer.start()
                confirmed, sent = publish_until_it_dies(peer, "q", last + 1, has_confirmed)
                killer.join()
            mortal.start_again()
            kept.append((last + 1, confirmed))
            last = sent
    finally:
        for crowd in crowds:
            crowd.end()
    with mortal.peer() as peer:
        peer.connect()
        count = peer.call(1, "queue.declare", queue="q", durable=True).message_count
        found = [int(peer.get(1, "q")[2]) for _ in range(count)]
    assert found == sorted(set(found))
    for first, confirmed in kept:
        assert confirmed > first and set(range(first, confirmed + 1)) <= set(found)


def kill_after(broker, crowds, count, has_confirmed):
    """When so many connections have come and gone, and something was confirmed meanwhile."""
    has_confirmed.wait(120)
    while sum(crowd.count for crowd in crowds) < count:
        crowds[0].is_over.wait(0.01)
    broker.kill()


@pytest.mark.hb(43)
@pytest.mark.tcp_only("about the disk, not about frames")
def test_persistence_is_as_declared(mortal):
    """Delivery modes that are none count as transient."""
    modes = (0, 1, 2, 3, 255, None)
    with mortal.peer() as peer:
        peer.connect().call(1, "queue.declare", queue="q", durable=True)
        peer.call(1, "confirm.select")
        for number, mode in enumerate(modes):
            peer.publish(1, "", "q", b"%d" % number, {} if mode is None else {"delivery_mode": mode})
            peer.expect(1, "basic.ack")
    mortal.kill()
    mortal.start_again()
    with mortal.peer() as peer:
        peer.connect()
        assert peer.call(1, "queue.declare", queue="q", durable=True).message_count == 1
        assert peer.get(1, "q")[2] == b"%d" % modes.index(2)


@pytest.mark.hb(57)
def test_odd_names_survive(mortal):
    """Names of durable queues and exchanges come back from the log as they were."""
    names = ["../../etc/passwd", "nul\0byte", "\u202ertl", "\U0001f407" * 60, "%2F", "'\"\\", "n" * 255, " "]
    with mortal.peer() as peer:
        peer.connect()
        for name in names:
            peer.call(1, "queue.declare", queue=name, durable=True)
            peer.call(1, "exchange.declare", exchange=name, type="direct", durable=True)
            peer.call(1, "queue.bind", queue=name, exchange=name, routing_key=name)
            peer.publish(1, name, name, name.encode(), {"delivery_mode": 2})
        peer.call(1, "confirm.select")
        peer.publish(1, "", names[0], b"last", {"delivery_mode": 2})
        peer.expect(1, "basic.ack")
    mortal.kill()
    mortal.start_again()
    with mortal.peer() as peer:
        peer.connect()
        for name in names:
            assert peer.get(1, name)[2] == name.encode()
            peer.call(1, "exchange.declare", exchange=name, type="direct", durable=True, passive=True)
            peer.publish(1, name, name, b"again")
            peer.get(1, name)
