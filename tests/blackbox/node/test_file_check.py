"""The check of files that are in use: an octet that rots on the disk is known before the next start needs it."""

import json

import pytest

from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

BODY = "the only copy of this text"


@pytest.fixture
def own(defined, by_broker):
    """A channel to a broker of its own."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such thing")
    return defined()


@pytest.fixture
def ctl(own, pytestconfig, tmp_path):
    return tools(own.client.broker, pytestconfig, tmp_path)


def rot(folder):
    """Flips a bit of a message in its log; the path of the file below the data directory."""
    for log in folder.glob("vhosts/*/*.log"):
        octets = log.read_bytes()
        if (at := octets.find(BODY.encode())) >= 0:
            with log.open("r+b") as file:
                file.seek(at)
                file.write(bytes([octets[at] ^ 1]))
            return str(log.relative_to(folder))
    raise AssertionError("no log has the message")


def test_octet_that_rots_is_found_while_the_broker_runs(own, ctl):
    queue = own.queue(name="q")
    own.confirm_select()
    own.publish(queue, *["before"] * 50, BODY, *["behind"] * 50, delivery_mode=2)
    whole = ctl.run("check_files", "-q")
    assert (whole.code, whole.out.splitlines()[-1]) == (0, "Nothing has changed since it was written"), whole.out
    assert "files_damaged" not in ctl.run("doctor", "--formatter", "json").out
    file = rot(own.client.broker.data_dir)
    found = ctl.run("check_files", "-q")
    assert found.code == 2, found.out
    assert f"DAMAGED {file} of vhost '/', 1 places; not mended: no other node has the log\n" in found.out
    assert "told a message" in found.out
    doctor = ctl.run("doctor", "-q")
    assert doctor.code == 2
    assert "1 file has changed since it was written: the next start loses what stood there." in doctor.out and file in doctor.out
    # What is in memory is served as before.
    assert [own.get(queue).body for _ in range(51)][-1] == BODY
    again = json.loads(ctl.run("check_files_status", "--formatter", "json").out)
    assert [(one["file"], one["repair"], one["places"]) for one in again["damaged"]] == [(file, "none", 1)]
    assert not again["running"] and again["ended"] == 2 and again["bytes"] <= again["bytes_total"]


def test_check_of_files_is_for_administrators(own):
    api = own.client.broker.api
    api.do("PUT", "/api/users/watches", {"password": "watches", "tags": "monitoring"})
    for method in ("GET", "POST"):
        assert api.ask("/api/file-check", method=method, user="watches").status == 401
    api.do("DELETE", "/api/users/watches")
    assert api.ask("/api/file-check").json["started_ms"] is None


@pytest.fixture
def often(under):
    """A broker that checks its files every second."""
    broker = under.start("file_check.interval = 1000\nfile_check.bytes_per_second = 1GiB\n")
    yield broker
    broker.stop()


def test_files_are_checked_at_the_interval(often, own):
    own.poll(lambda: often.api.ask("/api/file-check").json["ended"] >= 2, what="the second check")
    assert often.api.ask("/metrics").text.decode().count("\nrabbitmq_damaged_files 0") == 1
