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
    broker.wait_until(lambda: len(ledger.messages) > 100, 20)
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


def newer_node_file(octets):
    return re.sub(rb'"format": \d+', b'"format": 9', octets)


def newer(octets):
    """A manifest, or the header of a log file, of version 9."""
    size = 64 if octets.startswith(b"LVRTLOG") else len(octets)
    header = bytearray(octets[:size])
    header[8:12] = (9).to_bytes(4, "little")
    return put_crc(header, 12) + octets[size:]


@pytest.mark.parametrize("name, change, known", [
    (NODE_JSON, newer_node_file, 2), ("vhosts/1/manifest", newer, 1), ("vhosts/1/0000000000000001.log", newer, 1),
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
