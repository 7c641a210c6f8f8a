"""leveretctl schedule: messages before their delivery time are listed, cancelled, rescheduled and delivered early."""

import json
import re
import time

import pytest

from client import Client
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

HOUR_MS = 3_600_000
COLUMNS = ["target", "id", "handle", "time", "delivery_time", "exchange", "routing_key", "message_id", "payload_bytes",
           "persistent"]


@pytest.fixture
def ctl(under, by_broker, pytestconfig, tmp_path):
    """leveretctl, and a broker with delivery times."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no delivery times")
    return tools(under.shared(), pytestconfig, tmp_path)


def now_ms():
    return time.time_ns() // 1_000_000


def schedule(ch, queue, body, at_ms, id=None):
    headers = {"x-opt-delivery-time": at_ms} | ({} if id is None else {"x-schedule-id": id})
    assert ch.publish(queue, body, headers=headers, message_id=body) == "a"


def rows(ctl, *words):
    return json.loads(ctl.run("schedule", *words, "--formatter", "json").out)


def test_messages_are_listed(ctl, ch):
    q = ch.queue()
    base = now_ms() + HOUR_MS
    schedule(ch, q, "late", base + 60_000, id="a b/c")
    schedule(ch, q, "soon", base)
    header, soon, late = ctl.do("schedule", "ls", "-q", "--target", "queue/" + q)
    assert header.split("\t") == COLUMNS
    target, id, handle, at, delivery_time, exchange, key, message_id, size, persistent = late.split("\t")
    assert (target, id, exchange, key, message_id, size) == ("queue/" + q, "a b/c", "", q, "late", "4")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", at) and int(delivery_time) == base + 60_000
    assert soon.split("\t")[7] == "soon"
    assert [row["message_id"] for row in rows(ctl, "ls", "--target", "queue/" + q)] == ["soon", "late"]
    assert rows(ctl, "show", "--target", "queue/" + q, "--id", "a b/c") == \
        rows(ctl, "show", "--target", "queue/" + q, "--handle", handle) == \
        rows(ctl, "ls", "--target", "queue/" + q, "--id", "a b/c")
    assert [row["message_id"] for row in rows(ctl, "ls", "--target", "queue/" + q, "--before", str(base + 30_000))] == ["soon"]
    assert [row["message_id"] for row in rows(ctl, "ls", "--target", "queue/" + q, "--after", "+30m", "--limit", "1")] == ["soon"]
    assert rows(ctl, "ls", "--target", "queue/" + q, "--after", "2100-01-01T00:00:00Z") == []
    assert ctl.do("schedule", "ls", "--target", "queue/" + q)[0] == "Listing scheduled messages for vhost / ..."


def test_lists_have_more_than_one_request(ctl, ch):
    q = ch.queue()
    for number in range(520):
        schedule(ch, q, str(number), now_ms() + HOUR_MS)
    assert len(rows(ctl, "ls", "--target", "queue/" + q)) == 100
    assert len(rows(ctl, "ls", "--target", "queue/" + q, "--limit", "510")) == 510
    assert len({row["message_id"] for row in rows(ctl, "ls", "--target", "queue/" + q, "--limit", "999")}) == 520


def test_one_schedule_is_changed(ctl, ch):
    q = ch.queue()
    consumer = ch.consume(q)
    base = now_ms() + HOUR_MS
    for body in ("cancelled", "early", "moved"):
        schedule(ch, q, body, base, id=body)
    target = ["--target", "queue/" + q]
    assert ctl.do("schedule", "cancel", "-q", *target, "--id", "cancelled", "--dry-run") == ["1 message would be cancelled"]
    assert ctl.do("schedule", "cancel", "-q", *target, "--id", "cancelled") == ["1 message cancelled"]
    assert ctl.do("schedule", "deliver", *target, "--id", "early") == [
        f"Delivering scheduled messages 'early' of 'queue/{q}' in vhost '/' ...", "1 message delivered"]
    assert consumer.next().body == "early"
    said = ctl.do("schedule", "reschedule", "-q", *target, "--id", "moved", "--time", "2036-01-31T08:00:00+01:00")
    assert said == ["1 message rescheduled for 2036-01-31T07:00:00Z"]
    [row] = rows(ctl, "ls", *target)
    assert row["time"] == "2036-01-31T07:00:00Z"
    told = rows(ctl, "reschedule", *target, "--handle", str(row["handle"]), "--delay", "100ms")
    assert told["rescheduled"] == 1
    assert consumer.next().body == "moved"
    for words in (["cancel"], ["deliver"], ["show"], ["reschedule", "--delay", "1h"]):
        ran = ctl.run("schedule", *words, *target, "--id", "moved")
        assert (ran.code, ran.err) == (65, f"Error:\nno scheduled message 'moved' in queue '{q}' in vhost '/'\n"), words


def test_all_that_match_are_cancelled(ctl, ch):
    q = ch.queue()
    base = now_ms() + HOUR_MS
    for number in range(10):
        schedule(ch, q, str(number), base + number * 60_000)
    target = ["--target", "queue/" + q]
    limits = ["--after", str(base + 150_000), "--before", str(base + 330_000)]
    assert ctl.do("schedule", "cancel", "-q", *target, *limits, "--dry-run") == ["3 messages would be cancelled"]
    assert ctl.do("schedule", "cancel", "-q", *target, *limits) == ["3 messages cancelled"]
    assert [row["message_id"] for row in rows(ctl, "ls", *target)] == list("0126789")
    assert rows(ctl, "cancel", *target) == {"cancelled": 7, "refused": 0}
    assert rows(ctl, "ls", *target) == []


def test_invalid_options_are_refused(ctl, ch):
    q = ch.queue()
    schedule(ch, q, "m", now_ms() + HOUR_MS, id="a")
    target, one = ["--target", "queue/" + q], ["--target", "queue/" + q, "--id", "a"]
    moments = "milliseconds since 1970, a time as 2030-01-31T08:00:00Z, or +DURATION from now"
    for words, problem in [
        (["ls", "--target", q], "--target must be queue/NAME or exchange/NAME"),
        (["ls", "--after", "soon"], f"--after must be {moments}"),
        (["ls", "--before", "2030-02-30T00:00:00Z"], f"--before must be {moments}"),
        (["ls", "--id", ""], "--id must have 1 to 255 bytes"),
        (["ls", "--limit", "0"], "--limit must be more than 0"),
        (["show", "--id", "a"], "--target is needed"),
        (["show", *target], "one of --id and --handle is needed"),
        (["show", *one, "--handle", "1"], "one of --id and --handle is needed"),
        (["show", *target, "--handle", "x"], "--handle must be the number of a message, as schedule ls shows it"),
        (["cancel"], "one of --target, --id, --after and --before is needed; --after 0 selects all messages"),
        (["cancel", *target, "--handle", "1", "--before", "+1h"],
         "--handle names one message: --after and --before do not apply"),
        (["reschedule", *one], "one of --time and --delay is needed"),
        (["reschedule", *one, "--time", "+1h", "--delay", "1h"], "one of --time and --delay is needed"),
        (["reschedule", *one, "--delay", "1 hour"], "--delay must be milliseconds, or a number with ms, s, m, h or d"),
        (["deliver", *target], "one of --id and --handle is needed"),
    ]:
        ran = ctl.run("schedule", *words)
        assert ran.code == 65 and f"Error (argument validation): Bad argument: {problem}\n" in ran.err, (words, ran)
    for words, problem in [
        (["deliver", "--target", f"queue/{q}x", "--id", "a"], f"Error:\nNOT_FOUND - no queue '{q}x' in vhost '/'\n"),
        (["reschedule", *one, "--delay", "4000d"], "further away than 315360000000 ms\n"),
        (["ls", "-p", "no-such-vhost"], "Virtual host 'no-such-vhost' does not exist\n"),
    ]:
        ran = ctl.run("schedule", *words)
        assert ran.code == 65 and problem in ran.err, (words, ran)
    assert ctl.run("schedule", "ls", "word").code == 64
    assert ctl.run("schedule", "ls", "--unknown").code == 64
    assert len(rows(ctl, "ls", *one)) == 1


def test_schedules_survive_a_kill(under, pytestconfig, tmp_path, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("it belongs to somebody else")
    broker = under.start()
    try:
        ctl = tools(broker, pytestconfig, tmp_path)
        ch = Client(broker, "").channel().confirm_select()
        ch.queue(name="q", durable=True)
        for body in ("cancelled", "moved", "kept"):
            headers = {"x-opt-delivery-delay": HOUR_MS, "x-schedule-id": body}
            ch.publish("q", body, headers=headers, delivery_mode=2, message_id=body)
        ctl.do("schedule", "cancel", "--target", "queue/q", "--id", "cancelled")
        ctl.do("schedule", "reschedule", "--target", "queue/q", "--id", "moved", "--time", "2035-01-01T00:00:00Z")
        broker.kill_and_start_again()
        again = tmp_path / "again"
        again.mkdir()
        ctl = tools(broker, pytestconfig, again)
        assert [row["message_id"] for row in rows(ctl, "ls")] == ["kept", "moved"]
        assert rows(ctl, "show", "--target", "queue/q", "--id", "moved")[0]["time"][:4] in ("2034", "2035")
    finally:
        broker.stop()
