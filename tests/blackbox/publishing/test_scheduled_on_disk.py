"""Many messages that wait for their delivery time on disk: they survive a kill, and are delivered once, in the order of
their times and never early. RabbitMQ has no delivery times.
"""

import random
import time

import pytest

from brokers import quoted
from client import Client

HOUR_MS = 3_600_000
GROUPS, PER_GROUP = 20, 60


@pytest.fixture
def small(under):
    """A broker that puts nearly everything aside."""
    if under.name != "leveret":
        pytest.skip("RabbitMQ has no delivery times")
    broker = under.start("vm_memory_high_watermark_paging_ratio = 0.00001\n")
    yield broker
    broker.stop()


def now_ms():
    return time.time_ns() // 1_000_000


def pages(broker):
    """The files of pages with content."""
    return [path for path in broker.data_dir.glob("vhosts/*/pages/*.page") if path.stat().st_size > 0]


@pytest.mark.parametrize("holder", ["classic", "quorum", "exchange"])
def test_messages_on_disk_are_delivered_in_time_after_a_kill(small, prefix, holder):
    ch = Client(small, prefix).connect().channel().confirm_select()
    q = ch.queue("quorum" if holder == "quorum" else "classic")
    x = ""
    if holder == "exchange":
        x = ch.exchange("x-delayed-message", arguments={"x-delayed-type": "direct"})
        ch.bind(q, x, q)
    target = ("exchange", x) if x else ("queue", q)

    def publish(at_ms, *bodies, **headers):
        time_header = {"x-delay": at_ms - now_ms()} if x else {"x-opt-delivery-time": at_ms}
        confirms = ch.publish(q, *bodies, exchange=x, delivery_mode=2, headers=time_header | headers)
        assert set(confirms) == {"a"}

    base_ms = now_ms()
    for name in ("cancelled", "moved", "stays"):
        publish(base_ms + HOUR_MS, name, **{"x-schedule-id": name})
    publish(base_ms + HOUR_MS, *(f"far {n} {'x' * 500}" for n in range(1000)))
    times_ms = [base_ms + 6000 + 150 * n for n in range(GROUPS)]
    random.Random(11).shuffle(times_ms)
    earliest_ms = {}
    for at_ms in times_ms:
        bodies = [f"{at_ms} {n} {'x' * 500}" for n in range(PER_GROUP)]
        publish(at_ms, *bodies)
        earliest_ms |= dict.fromkeys(bodies, at_ms)
    assert len(pages(small)) > 10

    small.kill_and_start_again()
    path = "/api/scheduled/" + quoted("/", *target)
    assert small.api.ask(path + "/cancelled", method="DELETE").json["cancelled"] == 1
    moved_ms = now_ms() + 1000
    answer = small.api.ask(path + "/moved", body={"delivery_time": moved_ms}, method="PUT")
    assert answer.status == 200, answer
    earliest_ms["moved"] = moved_ms

    ch = Client(small, prefix).connect().channel()
    consumer = ch.consume(q)
    delivered = []
    for _ in earliest_ms:
        message = consumer.next()
        assert now_ms() >= earliest_ms[message.body], message.body[:10]
        delivered.append(message.body)
    assert sorted(delivered) == sorted(earliest_ms)
    if not x:
        times = [int(body.split()[0]) for body in delivered if body != "moved"]
        assert times == sorted(times)
    left = small.api.ask("/api/scheduled/%2F?limit=500&target=" + "/".join(target)).json["messages"]
    assert len(left) == 500
    assert [message["id"] for message in small.api.do("GET", path + "/stays")] == ["stays"]
    assert consumer.hears_nothing()
