"""One command with much work in it: a commit, an operation on a thousand schedules, a limit that is lowered."""

import time

import pika
import pytest

from small_disk import Disk
from test_amplification import fares
from test_retries import LATER_MS, fill
from work_broker import Bystander, count, wait_until

QUEUES = 500
TARGETS_MAX = 1_000_000
SCHEDULES = 1000
OPERATIONS = 600
LONG = 50_000


@pytest.fixture
def disk(tmp_path):
    """That of the machine: the logs of so many messages are more than the small disk holds."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return Disk(folder, is_small=False)


def test_a_commit_with_many_targets_delays_no_other_vhost(broker):
    """A transaction has as many targets as may be; one more is refused, and nothing of it is done."""
    channel = broker.channel()
    channel.exchange_declare("all", "fanout")
    for number in range(QUEUES):
        channel.queue_declare(f"q{number}")
        channel.queue_bind(f"q{number}", "all")
    publishes = TARGETS_MAX // QUEUES
    too_many = broker.channel()
    too_many.tx_select()
    for _ in range(publishes + 1):
        too_many.basic_publish("all", "", b"x")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        too_many.tx_commit()
    assert refused.value.reply_code == 406 and "1000000 queues in total" in refused.value.reply_text
    assert count(channel, "q0") == 0
    bystander = Bystander(broker)
    channel.tx_select()
    for _ in range(publishes):
        channel.basic_publish("all", "", b"x")
    count(channel, "q0")
    bystander.latencies_s()
    began = time.monotonic()
    channel.tx_commit()
    took_s = time.monotonic() - began
    print(f"the commit took {took_s:.2f} s")
    fares(bystander, "a commit with many targets")
    assert bystander.worst_s < took_s / 2, "others are served while it works"
    bystander.stop()
    assert count(channel, f"q{QUEUES - 1}") == publishes
    broker.assert_well()


def test_operations_on_many_schedules_delay_nobody(broker):
    """Each publish of some octets changes a thousand messages; others of the same vhost have turns between them."""
    channel = broker.channel()
    channel.queue_declare("later", durable=True)
    fill(broker, "later", SCHEDULES, {
        "x-opt-delivery-delay": LATER_MS, "x-schedule-id": "all", "x-schedule-mode": "add"})
    neighbour, bystander = Bystander(broker, "/"), Bystander(broker)
    neighbour.latencies_s()
    bystander.latencies_s()
    began = time.monotonic()
    for number in range(OPERATIONS):
        channel.basic_publish("amq.schedule", "", b"", pika.BasicProperties(headers={
            "x-schedule-op": "reschedule", "x-schedule-target": "queue/later", "x-schedule-id": "all",
            "x-opt-delivery-delay": LATER_MS + number}))
    count(channel, "later")
    took_s = time.monotonic() - began
    print(f"{OPERATIONS} operations took {took_s:.2f} s")
    fares(neighbour, "operations, in the same vhost")
    fares(bystander, "operations, in another vhost")
    assert neighbour.worst_s < took_s / 10, "others have their turns"
    neighbour.stop()
    bystander.stop()
    broker.assert_well()


def test_a_lowered_limit_is_kept_after_a_kill_in_between(broker):
    channel = broker.channel()
    channel.queue_declare("long", durable=True)
    fill(broker, "long", LONG)
    neighbour = Bystander(broker, "/")
    neighbour.latencies_s()
    broker.http("PUT", "/api/policies/%2F/short", {"pattern": "^long$", "definition": {"max-length": LONG // 2}})
    wait_until(lambda: count(channel, "long") == LONG // 2, "the limit is kept")
    fares(neighbour, "a lowered limit")
    neighbour.stop()
    broker.http("PUT", "/api/policies/%2F/short", {"pattern": "^long$", "definition": {"max-length": 10}})
    broker.kill()
    broker.start()
    channel = broker.channel()
    wait_until(lambda: count(channel, "long") == 10, "the limit is kept after the start")
    first = channel.basic_get("long", auto_ack=True)[2]
    assert first == b"%d" % (LONG - 10), "the oldest have left"
    broker.assert_well()
