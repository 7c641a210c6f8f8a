"""A disk that gets full: publishers are blocked while there is still room, consumers and their acks go on.

The small disk is a tmpfs of its own where this process may mount one (root). Everywhere else, and here as well, it is
the shared memory of the system, of which a ballast takes what is above the limit.
"""

import contextlib
import itertools
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time
import zlib
from pathlib import Path

import pytest

import wire
from disk import FaultyBroker
from ledger import body_of, number_of
from peer import Peer, Silent, SocketDropped, client_properties

MIB = 1 << 20
LIMIT_BYTES = 16 * MIB
TOLD_WITHIN_S = 120.0
QUIET_S = 0.5
BLOCKED = client_properties(connection__blocked=True)
PERSISTENT = {"delivery_mode": 2}
FLOOD = 1_000_000  # more messages than fit
SHARED_MEMORY = Path("/dev/shm")
RESERVE_BYTES = 32 * MIB  # what the broker takes of a large disk for itself
GIVEN_BACK_WITHIN_S = 120


def free_bytes(folder):
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


class SmallDisk:
    """A folder on a disk, the limit for it, and a ballast that takes room and gives it back."""

    def __init__(self, folder, limit_bytes):
        self.folder, self.limit_bytes = folder, limit_bytes
        self.ballast = folder / "ballast"

    def take(self, size):
        with open(self.ballast, "wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, size)

    def give_back(self):
        self.ballast.unlink()


@contextlib.contextmanager
def shared_memory():
    """The limit is so that 24 MiB above it are free beside the broker's reserve: others may use this disk, too, but
    hardly so much."""
    folder = Path(tempfile.mkdtemp(prefix="leveret-faults-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))
    try:
        yield SmallDisk(folder, max(free_bytes(folder) - RESERVE_BYTES - 24 * MIB, 0))
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def mounted():
    folder = Path(tempfile.mkdtemp(prefix="leveret-faults-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={4 * LIMIT_BYTES}", "tmpfs", str(folder)]
    try:
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            pytest.skip("no disk may be mounted here")
        try:
            yield SmallDisk(folder, LIMIT_BYTES)
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    finally:
        folder.rmdir()


@contextlib.contextmanager
def broker_on(disk, leveret_bin, library, folder):
    broker = FaultyBroker(leveret_bin, folder, library, f"disk_free_limit.absolute = {disk.limit_bytes}\n")
    broker.data = disk.folder / "data"
    broker.start()
    try:
        yield broker
        assert broker.process.poll() is None, broker.said()[-2000:]
        broker.assert_no_panic()
        assert broker.errors() == []
    finally:
        if broker.process.poll() is None:
            broker.kill()


def publisher(broker):
    peer = Peer(broker.address).connect(properties=BLOCKED)
    peer.call(1, "queue.declare", queue="q", durable=True)
    peer.call(1, "confirm.select")
    return peer


def read_all(broker, seen):
    """A consumer that acknowledges everything in the queue, durably."""
    with Peer(broker.address) as consumer:
        consumer.connect()
        consumer.call(1, "basic.qos", prefetch_count=50)
        count = consumer.call(1, "queue.declare", queue="q", durable=True, passive=True).message_count
        consumer.call(1, "basic.consume", queue="q")
        for _ in range(count):
            tag = consumer.expect(1, "basic.deliver").delivery_tag
            number = number_of(consumer.read_content(1)[1])
            assert number not in seen
            seen.add(number)
            consumer.send_method(1, "basic.ack", delivery_tag=tag)
        consumer.assert_usable()


@pytest.mark.parametrize("small_disk", [shared_memory, mounted])
def test_publishers_wait_until_there_is_room(small_disk, leveret_bin, library, tmp_path, rng):
    with small_disk() as disk, broker_on(disk, leveret_bin, library, tmp_path) as broker, publisher(broker) as peer:
        for number in range(1, 201):
            peer.publish(1, "", "q", body_of(number, rng), PERSISTENT)
        confirmed = 0
        while confirmed < 200:
            confirmed = peer.expect(1, "basic.ack").delivery_tag

        disk.take(free_bytes(disk.folder) - disk.limit_bytes + 2 * MIB)
        assert broker.wait_until(lambda: "alarm on" in broker.said(), TOLD_WITHIN_S)
        # A client that publishes now gets `connection.blocked` and is not read any more.
        for number in (201, 202):
            peer.publish(1, "", "q", body_of(number, rng), PERSISTENT)
        assert peer.expect(0, "connection.blocked", TOLD_WITHIN_S).reason == "low on disk"
        with pytest.raises(Silent):
            peer.read_bytes(1, timeout=QUIET_S)

        seen = set()
        read_all(broker, seen)
        assert seen == set(range(1, 201))

        disk.give_back()
        peer.expect(0, "connection.unblocked", TOLD_WITHIN_S)
        while confirmed < 202:
            confirmed = peer.expect(1, "basic.ack").delivery_tag
        assert "alarm off" in broker.said()
        broker.kill()
        broker.start()
        read_all(broker, seen)
        assert seen == set(range(1, 203))


def fill_up(disk):
    """Nothing is free any more, beyond the reserve of the broker."""
    disk.take(free_bytes(disk.folder))
    assert free_bytes(disk.folder) == 0


@pytest.mark.parametrize("way_out", ["consume", "purge", "delete"])
@pytest.mark.parametrize("stale_pages", [0, 8])
def test_a_full_disk_lets_a_start_and_the_way_out_work(way_out, stale_pages, leveret_bin, library, tmp_path, rng):
    """Nothing is free but the broker's reserve, or what pages of its last life take. It starts, and what consumers, a
    purge or a deletion take away gives its room back, without a new message."""
    body = rng.randbytes(20_000)
    payload = f"{zlib.crc32(body):08x}:".encode() + body
    count = 1000
    with mounted() as disk, broker_on(disk, leveret_bin, library, tmp_path) as broker:
        with publisher(broker) as peer:
            for number in range(count):
                peer.publish(1, "", "q", f"{number}:".encode() + payload, PERSISTENT)
            while peer.expect(1, "basic.ack", TOLD_WITHIN_S).delivery_tag < count:
                pass
        broker.kill()
        pages = broker.data / "vhosts/1/pages"
        for number in range(stale_pages):
            (pages / f"{0x1000 + number:016x}.page").write_bytes(bytes(MIB))
        fill_up(disk)
        broker.start()
        assert not any(path.stat().st_size == MIB for path in pages.iterdir()), "pages of another life are left"
        with Peer(broker.address) as peer:
            peer.connect()
            match way_out:
                case "consume":
                    seen = set()
                    read_all(broker, seen)
                    assert seen == set(range(count))
                case "purge":
                    assert peer.call(1, "queue.purge", queue="q").message_count == count
                case "delete":
                    assert peer.call(1, "queue.delete", queue="q").message_count == count
            reserve = broker.data / "reserve"
            # The reserve is made again of what is given back.
            assert broker.wait_until(reserve.exists, GIVEN_BACK_WITHIN_S), broker.said()[-2000:]
            has_room = lambda: free_bytes(disk.folder) + reserve.stat().st_size > 16 * MIB
            assert broker.wait_until(has_room, GIVEN_BACK_WITHIN_S), broker.said()[-2000:]
            peer.assert_usable()
        broker.kill()
        broker.start()
        with Peer(broker.address) as peer:
            peer.connect()
            assert peer.call(1, "queue.declare", queue="q", durable=True).message_count == 0


class Flood:
    """Publishes until it is not read or the connection is gone; knows what was confirmed."""

    def __init__(self, broker, first, rng):
        self.peer = publisher(broker)
        self.confirmed, self.is_blocked, self.ended = set(), threading.Event(), threading.Event()
        self.first = first
        payloads = [rng.randbytes(size) for size in (10, 100, 1000, 10_000)]
        self.payloads = [(f"{zlib.crc32(payload):08x}:".encode(), payload) for payload in payloads]
        self.threads = [threading.Thread(target=run, daemon=True) for run in (self._send, self._read)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        # Of its own, because the reader changes the time-out of the peer's.
        sender = self.peer.socket.dup()
        sender.setblocking(False)
        for number in itertools.count(self.first):
            crc, payload = self.payloads[number % len(self.payloads)]
            message = wire.publish(1, "", "q", f"{number}:".encode() + crc + payload, PERSISTENT)
            while message:
                if self.ended.is_set():
                    sender.close()
                    return
                if select.select([], [sender], [], 0.2)[1]:
                    with contextlib.suppress(OSError):  # no room after all, or gone: then it is ended soon
                        message = message[sender.send(message):]

    def _read(self):
        try:
            done = 0
            while not self.ended.is_set():
                try:
                    method = self.peer.read_method(0.2)[1]
                except Silent:
                    continue
                if method.name == "connection.blocked":
                    self.is_blocked.set()
                if method.name == "basic.ack":
                    self.confirmed.update(range(self.first + done, self.first + method.delivery_tag))
                    done = method.delivery_tag
        except (SocketDropped, OSError):
            pass

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(TOLD_WITHIN_S)
        self.peer.socket.close()


@pytest.mark.parametrize("small_disk", [shared_memory, mounted])
def test_a_flood_is_stopped_before_the_disk_is_full(small_disk, leveret_bin, library, tmp_path, rng):
    """Four publishers at full speed fill a small disk. The broker lives, what it confirmed is there, and when it was
    read there is room again."""
    with small_disk() as disk, broker_on(disk, leveret_bin, library, tmp_path) as broker:
        floods = [Flood(broker, number * FLOOD, rng) for number in range(4)]
        for flood in floods:
            assert broker.wait_until(flood.is_blocked.is_set, TOLD_WITHIN_S), broker.said()[-1000:]
        assert broker.process.poll() is None, broker.said()[-1000:]
        # Publishes read before `connection.blocked` are still confirmed.
        deadline = time.monotonic() + TOLD_WITHIN_S
        counts = None
        while counts != (counts := [len(flood.confirmed) for flood in floods]):
            assert time.monotonic() < deadline
            time.sleep(QUIET_S)
        confirmed = set().union(*(flood.confirmed for flood in floods))
        assert len(confirmed) > 1000
        for flood in floods:
            flood.end()
        broker.kill()
        broker.start()
        seen = set()
        read_all(broker, seen)
        assert confirmed <= seen
        # New messages make the log look for space to get back.
        deadline = time.monotonic() + GIVEN_BACK_WITHIN_S
        while free_bytes(disk.folder) < disk.limit_bytes + 8 * MIB:
            assert time.monotonic() < deadline, f"{free_bytes(disk.folder)} bytes are free"
            with Peer(broker.address) as peer:
                peer.connect()
                for _ in range(20):
                    peer.call(1, "queue.declare", queue=f"q{rng.random()}", durable=True)
                    peer.assert_usable()
        with publisher(broker) as peer:
            peer.publish(1, "", "q", body_of(4 * FLOOD, rng), PERSISTENT)
            while peer.read_method(TOLD_WITHIN_S)[1].name != "basic.ack":
                pass
