"""Files of redrives that a full or failing disk does not take: nothing is promised that a restart would not keep."""

import json
import time

import pytest

from test_changes import ask

QUEUE, OTHER = "/api/queues/%2F/q", "/api/queues/%2F/other"
COUNT = 300
DONE_WITHIN_S = 120
DELAY_MS = 600


@pytest.fixture
def filled(broker):
    """A broker with messages in a queue, and another queue."""
    broker.start_with()
    for queue in (QUEUE, OTHER):
        assert ask(broker, "PUT", queue, {"durable": True})[0] == 201
    message = {"properties": {"delivery_mode": 2}, "routing_key": "q", "payload": "m", "payload_encoding": "string"}
    for _ in range(COUNT):
        assert ask(broker, "POST", "/api/exchanges/%2F/amq.default/publish", message)[0] == 200
    yield broker
    broker.assert_no_panic()


def begin(broker, **wishes):
    return ask(broker, "POST", f"{QUEUE}/redrive", {"to": {"queue": "other"}, **wishes})


def job(broker, id):
    return ask(broker, "GET", f"/api/redrives/{id}")[1]


def until(broker, id, holds):
    """The job once that holds."""
    deadline = time.monotonic() + DONE_WITHIN_S
    while not holds(now := job(broker, id)):
        assert time.monotonic() < deadline, now
        time.sleep(0.02)
    return now


def ended(now):
    return now["ended_ms"] is not None


def counts(broker):
    """How many messages are in the queue and in the other one."""
    return [ask(broker, "GET", path)[1]["messages"] for path in (QUEUE, OTHER)]


def on_disk(broker, id):
    return json.loads((broker.data / "redrives" / f"{id}.json").read_text())


def refuse(broker, call, action):
    broker.rules((call, 0, 1_000_000, action, ".json" if call == "rename" else ".json.new"))


FAULTS = pytest.mark.parametrize("call, action", [
    ("write", "ENOSPC"), ("write", "EDQUOT"), ("fsync", "EIO"), ("open", "EROFS"), ("rename", "EIO")])


@FAULTS
def test_redrive_whose_file_is_refused_does_not_begin(filled, call, action):
    broker = filled
    refuse(broker, call, action)
    status, answer = begin(broker)
    assert (status, answer["error"]) == (503, "unavailable"), answer
    assert ask(broker, "GET", "/api/redrives")[1] == [] and counts(broker) == [COUNT, 0]
    assert any(action in line for line in broker.injected())
    broker.rules()
    status, begun = begin(broker, limit=10)
    assert status == 201
    assert until(broker, begun["id"], ended)["moved"] == 10
    broker.kill()
    broker.start_with()
    assert [one["id"] for one in ask(broker, "GET", "/api/redrives")[1]] == [begun["id"]]
    assert counts(broker) == [COUNT - 10, 10]


def test_redrive_goes_on_without_its_progress(filled):
    broker = filled
    _, begun = begin(broker, rate=100)
    refuse(broker, "write", "ENOSPC")
    now = until(broker, begun["id"], ended)
    assert (now["state"], now["moved"]) == ("finished", COUNT)
    assert on_disk(broker, begun["id"])["state"] == "running" and broker.injected()
    # The file does not say what has been moved: the log knows better.
    broker.kill()
    broker.start_with()
    now = until(broker, begun["id"], ended)
    assert (now["state"], now["moved"] + now["gone"]) == ("finished", COUNT) and now["gone"] > 0, now
    assert counts(broker) == [0, COUNT]


def test_redrive_with_a_limit_ends_rather_than_exceed_it(filled):
    """Without its progress on the disk, it would move as many once more after a kill."""
    broker = filled
    _, begun = begin(broker, rate=50, limit=250)
    until(broker, begun["id"], lambda now: now["moved"] > 0)
    refuse(broker, "write", "ENOSPC")
    now = until(broker, begun["id"], ended)
    assert now["state"] == "failed" and "cannot write" in now["reason"] and now["moved"] < 250, now
    broker.kill()
    broker.start_with()
    now = until(broker, begun["id"], ended)
    assert (now["state"], now["moved"]) == ("finished", 250)
    left, moved = counts(broker)
    assert moved <= 250 and left + moved == COUNT


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_cancellation_is_on_the_disk_before_its_answer(filled, call):
    broker = filled
    _, begun = begin(broker, rate=1)
    refuse(broker, call, f"delay:{DELAY_MS}")
    since = time.monotonic()
    assert ask(broker, "DELETE", f"/api/redrives/{begun['id']}")[0] == 204
    assert time.monotonic() - since >= DELAY_MS / 1000
    broker.kill()
    assert on_disk(broker, begun["id"])["state"] == "cancelled"
    broker.start_with()
    assert job(broker, begun["id"])["state"] == "cancelled"
    left, moved = counts(broker)
    assert left + moved == COUNT and moved < COUNT


@FAULTS
def test_cancellation_that_is_not_on_the_disk_is_no_success(filled, call, action):
    broker = filled
    _, begun = begin(broker, rate=10)
    refuse(broker, call, action)
    status, answer = ask(broker, "DELETE", f"/api/redrives/{begun['id']}")
    assert (status, answer["error"]) == (503, "unavailable"), answer
    # The job of this process stops all the same; the next one knows nothing of that.
    assert until(broker, begun["id"], ended)["state"] == "cancelled"
    broker.kill()
    broker.start_with()
    assert job(broker, begun["id"])["state"] == "running"
    assert ask(broker, "DELETE", f"/api/redrives/{begun['id']}")[0] == 204
    assert until(broker, begun["id"], ended)["state"] == "cancelled"


def test_check_reports_a_damaged_redrive(filled):
    broker = filled
    ids = []
    for limit in (1, 2):
        ids.append(begin(broker, limit=limit)[1]["id"])
        until(broker, ids[-1], ended)
    ids.append(begin(broker, rate=1)[1]["id"])
    broker.kill()
    code, said = broker.check()
    assert code == 0 and "redrives: 3 jobs, of which 1 go on at the next start" in said, said
    path = broker.data / "redrives" / f"{ids[0]}.json"
    path.write_bytes(path.read_bytes().replace(b'"moved":1', b'"moved":7', 1))
    code, said = broker.check()
    assert code == 1 and "redrives: 2 jobs, of which 1 go on" in said, said
    assert f"redrives/{ids[0]}.json: 'sha256' does not fit" in said, said
    # The broker starts, without the job.
    broker.start_with()
    assert sorted(one["id"] for one in ask(broker, "GET", "/api/redrives")[1]) == ids[1:]
