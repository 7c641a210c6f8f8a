"""Writes and syncs that fail while clients work: what was not durable was not confirmed, and the broker ends.

The clients are those of the crash loop, and so is the comparison afterwards: every confirmed message once, unchanged,
what was settled gone.
"""

import pytest

from ledger import Ledger, check
from workload import Workload

EXIT_DISK = 74
FAILS_WITHIN_S = 120.0
ENDS = "the log cannot be written, so that nothing more can be confirmed"


def work_until(broker, ledger, rng, holds, timeout_s=FAILS_WITHIN_S):
    """Clients work until something holds or the broker has ended. They are all gone afterwards."""
    workload = Workload(broker, ledger, rng)
    broker.wait_until(holds, timeout_s)
    return workload


def confirmed_of(ledger):
    return sum(bool(message.confirmed) for message in list(ledger.messages.values()))


def assert_all_there(broker, ledger):
    """A new life on a good disk has everything, and so says `leveret check` of what it leaves."""
    broker.start()
    check(broker, ledger)
    broker.assert_no_panic()
    assert broker.stop() == 0
    code, text = broker.check()
    assert code == 0 and "nothing is wrong" in text, text


@pytest.mark.parametrize("call, action", [
    ("fsync", "lose"), ("fsync", "EIO"), ("fsync", "ENOSPC"), ("write", "EIO"), ("write", "ENOSPC"), ("write", "EDQUOT"),
])
def test_a_write_that_fails_is_the_last(broker, rng, call, action):
    """Once, and a second try would succeed: there must be none. `lose` takes away what had been written before the sync."""
    ledger = Ledger()
    broker.start_with()
    published = rng.randint(50, 1500)
    aimed_at = None

    def aim():
        """At the file that is written, not at one that is made in the background."""
        nonlocal aimed_at
        name = broker.active_file()
        if len(ledger.messages) > published and name != aimed_at:
            aimed_at = name
            broker.rules((call, 0, 1, action, name))
        return False

    workload = work_until(broker, ledger, rng, aim)
    assert broker.end() == EXIT_DISK
    workload.end()
    (line,) = broker.errors()
    assert ENDS in line and "0000000000000" in line and ".log" in line, line
    assert len(broker.injected()) == 1
    assert any(message.confirmed for message in ledger.messages.values())
    assert_all_there(broker, ledger)


@pytest.mark.parametrize("call, action, suffix", [
    ("open", "ENOSPC", ".log"), ("open", "EMFILE", ".log"), ("write", "ENOSPC", "0000000000000002.log"),
    ("fsync", "EIO", "0000000000000002.log"),
])
def test_a_file_that_cannot_be_made_ahead_is_made_when_it_is_needed(broker, rng, call, action, suffix):
    ledger = Ledger()
    broker.start_with((call, 1 if call == "open" else 0, 1, action, suffix))
    workload = work_until(broker, ledger, rng, lambda: (broker.data / "vhosts/1/0000000000000004.log").exists())
    assert broker.process.poll() is None, broker.said()[-1000:]
    assert "cannot make the next log file yet" in broker.said()
    assert not (broker.data / "vhosts/1/0000000000000002.log").exists(), "half a file stays behind"
    assert broker.errors() == []
    broker.kill()
    workload.end()
    assert len(broker.injected()) == 1
    assert_all_there(broker, ledger)


@pytest.mark.parametrize("call, suffix", [("open", ".log"), ("write", "manifest.new")])
def test_a_log_waits_for_room(broker, rng, call, suffix):
    """The disk is full and stays so: nothing is confirmed, nothing is lost, and the broker goes on when it is not."""
    ledger = Ledger()
    broker.start_with((call, 1, 1_000_000, "ENOSPC", suffix))
    workload = work_until(broker, ledger, rng, lambda: "until there is room" in broker.said())
    assert broker.process.poll() is None, broker.said()[-1000:]
    assert len(broker.errors()) == 1, broker.errors()
    # The disk has room in truth: the broker may have reserved it again meanwhile.
    assert "reserve released" in broker.said()
    confirmed = confirmed_of(ledger)
    broker.rules()
    assert broker.wait_until(lambda: "the disk has room again" in broker.said(), FAILS_WITHIN_S)
    assert broker.wait_until(lambda: confirmed_of(ledger) > confirmed + 100, FAILS_WITHIN_S)
    broker.kill()
    workload.end()
    assert_all_there(broker, ledger)


def test_a_broker_that_is_stopped_while_it_waits_for_room_says_so(broker, rng):
    ledger = Ledger()
    broker.start_with(("open", 1, 1_000_000, "ENOSPC", ".log"))
    workload = work_until(broker, ledger, rng, lambda: "until there is room" in broker.said())
    broker.process.terminate()
    assert broker.end() == EXIT_DISK
    workload.end()
    assert "not everything could be written" in broker.errors()[-1]
    assert_all_there(broker, ledger)


@pytest.mark.parametrize("call, action, suffix", [
    ("open", "EROFS", "manifest.new"), ("fsync", "EIO", "manifest.new"),
    ("rename", "EIO", "manifest"),
])
def test_no_new_file_when_the_old_one_is_full(broker, rng, call, action, suffix):
    """For good: the broker ends, with nothing lost."""
    ledger = Ledger()
    broker.start_with((call, 1, 1_000_000, action, suffix))
    workload = work_until(broker, ledger, rng, lambda: False)
    assert broker.end() == EXIT_DISK
    workload.end()
    (line,) = broker.errors()
    assert ENDS in line, line
    assert_all_there(broker, ledger)


def test_short_and_interrupted_writes_are_completed(broker, rng):
    """Short writes and interrupted calls are no failures."""
    ledger = Ledger()
    broker.start_with(
        ("write", 5, 1_000_000, "short", ".log"), ("write", 20, 7, "EINTR", ".log"), ("fsync", 20, 7, "EINTR", ".log"))
    workload = work_until(broker, ledger, rng, lambda: len(broker.injected()) > 300)
    broker.kill()
    workload.end()
    assert broker.errors() == []
    done = [line.split()[2] for line in broker.injected()]
    assert done.count("EINTR") == 14 and done.count("short") > 200
    assert_all_there(broker, ledger)


@pytest.mark.parametrize("call, action, suffix", [
    ("open", "EROFS", "lock"), ("open", "ENOSPC", ".log"), ("write", "ENOSPC", ".log"), ("fsync", "EIO", ".log"),
    ("open", "ENOSPC", "manifest.new"), ("fsync", "EIO", "manifest.new"), ("rename", "EIO", "manifest"),
    ("write", "ENOSPC", "node.json.new"), ("fsync", "EIO", "node.json.new"), ("rename", "EIO", "node.json"),
])
def test_disk_that_fails_at_the_start_is_reported_without_harm(broker, rng, call, action, suffix):
    """At the first start and at a later one."""
    ledger = Ledger()
    for _ in range(2):
        # A full disk must stay full: there is a reserve.
        times = 1_000_000 if action == "ENOSPC" else 1
        broker.launch_with((call, 0, times, action, suffix))
        assert broker.end() == 1
        (line,) = broker.errors()
        assert "os error" in line and str(broker.data) in line, line
        broker.assert_no_panic()
        if not ledger.messages:
            broker.start()
            workload = work_until(broker, ledger, rng, lambda: len(ledger.messages) > 100)
            broker.kill()
            workload.end()
    assert len(broker.injected()) >= 2
    assert_all_there(broker, ledger)
