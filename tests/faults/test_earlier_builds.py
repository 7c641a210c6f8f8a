"""Data directories that earlier builds wrote: each is read as it was meant, and stays readable for these builds."""

import pytest

import earlier

NAMES = sorted(path.name.removesuffix(".json") for path in earlier.FOLDER.glob("*.json"))
RESTARTED_MS = 2  # a delivery time is told in whole milliseconds


def manifest_version(broker, vhost=1):
    return int.from_bytes((broker.data / f"vhosts/{vhost}/manifest").read_bytes()[8:12], "little")


def holds(found, expected):
    """Whether `found` has all of `expected`; a later build may tell more of the same thing."""
    if isinstance(expected, dict):
        return all(key in found and holds(found[key], value) for key, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(holds, found, expected))
    return found == expected


def assert_scheduled(found, expected):
    assert len(found) == len(expected)
    for (target, name, time), (*wanted, wanted_time) in zip(sorted(found), sorted(expected)):
        assert [target, name] == wanted and abs(time - wanted_time) <= RESTARTED_MS


def assert_content(found, expected):
    if expected["declared"] is not None:
        assert holds(found["declared"], expected["declared"]), found["declared"]
    assert holds(found["messages"], expected["messages"]), found["messages"]
    for part in ["waiting", "delayed"]:
        assert found.get(part) == expected.get(part)
    assert_scheduled(found.get("scheduled", []), expected.get("scheduled", []))


def test_formats_have_a_directory():
    """One for each format of `node.json` and of the log."""
    assert NAMES == ["node1-log1", "node2-log1", "node2-log2"]


@pytest.mark.parametrize("name", NAMES)
def test_directory_of_an_earlier_build_is_read(broker, name):
    expected = earlier.unpack(name, broker)
    code, text = broker.check()
    assert code == 0 and text.endswith("nothing is wrong\n"), text
    version = int(name[-1])
    assert f"vhosts/1: format {version}, " in text
    # A start and a stop change nothing for the earlier build.
    broker.start()
    assert not broker.errors() and broker.stop() == 0
    assert manifest_version(broker) == version
    broker.start()
    assert_content(earlier.content(broker), expected)
    assert not broker.errors(), broker.errors()
    broker.kill()
    broker.start()
    again = earlier.content(broker)
    assert all(messages == [] for messages in again["messages"].values())
    assert_scheduled(again.get("scheduled", []), expected.get("scheduled", []))


def test_log_has_the_oldest_format_that_suffices(broker):
    """So that an earlier build can be started again until a newer feature is used, and then says why it cannot."""
    broker.start()
    channel = broker.connect().channel()
    channel.confirm_delivery()
    earlier.declare(channel)
    earlier.fill(channel)
    earlier.declare_over_http(broker)
    assert (manifest_version(broker), manifest_version(broker, 2)) == (1, 1)
    earlier.publish(channel, "plain", "later", headers={"x-opt-delivery-delay": 1000})
    assert (manifest_version(broker), manifest_version(broker, 2)) == (2, 1)
    earlier.ask(broker, "PUT", "/policies/second/retries", {
        "pattern": "", "definition": {"delayed-retry-schedule": "1s"}})
    assert (manifest_version(broker), manifest_version(broker, 2)) == (2, 2)
    broker.kill()
    broker.start()
    assert not broker.errors()
