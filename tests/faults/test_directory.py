"""A data directory that another process uses, or that a newer version wrote."""

import json
import re

import pytest

from ledger import Ledger, check
from octets import NODE_JSON, put_crc, sealed_node_file
from workload import Workload


@pytest.fixture
def filled(broker, rng):
    """A broker that was stopped, with something in its directory, and what that is."""
    ledger = Ledger()
    broker.start()
    workload = Workload(broker, ledger, rng)
    broker.wait_until(lambda: len(ledger.messages) > 100, 120)
    workload.end()
    assert broker.stop() == 0
    return ledger


def test_a_second_process_is_refused(broker, leveret_bin, library, tmp_path, filled):
    broker.start()
    (tmp_path / "second").mkdir()
    second = type(broker)(leveret_bin, tmp_path / "second", library)
    second.data = broker.data
    second.launch()
    assert second.end() == 1
    said = f"data directory {broker.data} is in use by another process"
    assert said in second.said()
    assert broker.check() == (1, said + "\n")
    check(broker, filled)
    broker.kill()
    # A process that was killed holds nothing.
    broker.start()
    assert broker.stop() == 0


def second_broker(broker, leveret_bin, library, tmp_path):
    (tmp_path / "second").mkdir(exist_ok=True)
    second = type(broker)(leveret_bin, tmp_path / "second", library)
    second.data = broker.data
    return second


@pytest.mark.parametrize("harm", ["removed", "replaced", "exchanged"])
def test_locked_directory_admits_one_broker(broker, leveret_bin, library, tmp_path, filled, harm):
    """What was confirmed is there, and what is confirmed afterwards, too."""
    broker.start()
    lock = broker.data / "lock"
    second = second_broker(broker, leveret_bin, library, tmp_path)
    for _ in range(3):
        if harm == "exchanged":
            (broker.data / "lock.new").touch()
            (broker.data / "lock.new").rename(lock)
        else:
            lock.unlink(missing_ok=True)  # the broker may not have made it again yet
        if harm == "replaced":
            lock.touch()
        second.launch()
        assert second.end() == 1
        assert f"data directory {broker.data} is in use by another process" in second.said()
    assert broker.wait_until(lambda: "the lock was removed; it is made again" in broker.said(), 120)
    check(broker, filled)
    broker.kill()
    broker.start()
    check(broker, filled)
    assert broker.stop() == 0


def test_a_directory_that_is_moved_away_ends_the_broker(broker, filled):
    """Another one may be made in its place, into which nothing of the first must come."""
    broker.start()
    aside = broker.data.with_name("aside")
    broker.data.rename(aside)
    assert broker.end() == 74
    (line,) = broker.errors()
    assert "was moved or replaced while it was in use" in line
    assert not broker.data.exists()
    aside.rename(broker.data)
    broker.start()
    check(broker, filled)


def modes(folder):
    """What other users may do, file by file."""
    return {path: path.stat().st_mode & 0o077 for path in [folder, *folder.rglob("*")]}


def test_other_users_cannot_read_what_is_kept(broker, rng):
    """Neither new files, under any umask, nor those of an earlier version."""
    ledger = Ledger()
    broker.start_with(umask=0)
    workload = Workload(broker, ledger, rng)
    broker.wait_until(lambda: len(ledger.messages) > 300, 120)
    workload.end()
    assert len(modes(broker.data)) > 6 and not any(modes(broker.data).values()), modes(broker.data)
    assert "other users" not in broker.said()
    assert broker.stop() == 0
    for path in [broker.data, *broker.data.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    broker.start_with(umask=0)
    assert not any(modes(broker.data).values()), modes(broker.data)
    assert "other users of this machine could read files of the data directory; now they cannot" in broker.said()
    check(broker, ledger)


def newer_node_file(octets):
    return re.sub(rb'"format": \d+', b'"format": 9', octets)


def newer(octets):
    """A manifest, or the header of a log file, of version 9."""
    size = 64 if octets.startswith(b"LVRTLOG") else len(octets)
    header = bytearray(octets[:size])
    header[8:12] = (9).to_bytes(4, "little")
    return put_crc(header, 12) + octets[size:]


@pytest.mark.parametrize("name, change, known", [
    (NODE_JSON, newer_node_file, 2), ("vhosts/1/manifest", newer, 3), ("vhosts/1/0000000000000001.log", newer, 2),
])
def test_a_newer_format_is_refused(broker, filled, name, change, known):
    path = broker.data / name
    octets = path.read_bytes()
    path.write_bytes(change(octets))
    before = broker.files()
    code, text = broker.check()
    said = f"{path.name} has format version 9, but this Leveret knows version {known}"
    assert code == 1 and said in text, text
    broker.launch()
    assert broker.end() == 1
    (line,) = broker.errors()
    assert said in line, line
    assert broker.files() == before
    path.write_bytes(octets)
    broker.start()
    check(broker, filled)


def test_the_seal_of_node_json_is_what_the_test_makes(broker, filled):
    """So that the tests of damage know what they change."""
    octets = (broker.data / NODE_JSON).read_bytes()
    assert json.loads(sealed_node_file(json.loads(octets))) == json.loads(octets)
