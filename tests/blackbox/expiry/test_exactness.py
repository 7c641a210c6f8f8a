"""How exactly messages expire: 20,000 of them with random TTLs of 1-4 s in one queue, watched where they go to die.

Figures are printed at the end of the run, not asserted. What is asserted: nothing comes early, nothing is lost or
doubled, and, for Leveret, the dead letters come in the order of their deadlines.
"""

import random
import statistics
import time

import pika
import pytest
from pika import spec

from expectations import dead_letters_to
from patience import PATIENCE_S

MESSAGES = 20_000
FIRST_MS, LAST_MS = 1000, 4000


class Arrivals(list):
    """In place of a consumer's list of messages: when each body came."""

    def append(self, message):
        super().append((time.time_ns(), message.body))


class Outcomes(list):
    """In place of a channel's list of outcomes: when each publish was confirmed, too."""

    def __init__(self):
        super().__init__()
        self.confirmed_ns = {}

    def __setitem__(self, index, outcome):
        super().__setitem__(index, outcome)
        self.confirmed_ns[index] = time.time_ns()


def assert_in_deadline_order(order, sent_ns, confirmed_ns, ttl_ms):
    """The numbers of the messages in `order` are sorted by deadline, as far as one can know the broker's deadlines.

    The broker got message n between sent_ns[n] and confirmed_ns[n], and it got the messages in the order of their
    numbers. So a message with a later number and no lower TTL must not come first; neither must one whose earliest
    possible deadline is after the latest possible one of the other (a millisecond is allowed for rounding).
    """
    waiting = {}  # numbers that have not come yet, by TTL, the lowest last
    for n in range(len(sent_ns) - 1, -1, -1):
        waiting.setdefault(ttl_ms[n], []).append(n)
    first_waiting = FirstWaiting({ttl: numbers[-1] for ttl, numbers in waiting.items()})
    latest_start_ns = 0
    for n in order:
        earlier = first_waiting.up_to(ttl_ms[n])
        assert earlier == n, f"{n} (TTL {ttl_ms[n]}) came before {earlier} (TTL {ttl_ms[earlier]})"
        numbers = waiting[ttl_ms[n]]
        numbers.pop()
        first_waiting.put(ttl_ms[n], numbers[-1] if numbers else FirstWaiting.NONE)
        latest_possible_ns = confirmed_ns[n] + (ttl_ms[n] + 1) * 1_000_000
        assert latest_possible_ns >= latest_start_ns, f"{n} (TTL {ttl_ms[n]}) came after one with a later deadline"
        latest_start_ns = max(latest_start_ns, sent_ns[n] + ttl_ms[n] * 1_000_000)


class FirstWaiting:
    """The lowest number that waits with a TTL up to a given one: a tree of minima."""

    NONE = 1 << 60
    LEAVES = 4096

    def __init__(self, numbers):
        self.nodes = [self.NONE] * (2 * self.LEAVES)
        for ttl, number in numbers.items():
            self.put(ttl, number)

    def put(self, ttl, number):
        node = self.LEAVES + ttl - FIRST_MS
        self.nodes[node] = number
        while node > 1:
            node //= 2
            self.nodes[node] = min(self.nodes[2 * node], self.nodes[2 * node + 1])

    def up_to(self, ttl):
        node, lowest = self.LEAVES + ttl - FIRST_MS, self.NONE
        lowest = self.nodes[node]
        while node > 1:
            if node % 2:
                lowest = min(lowest, self.nodes[node - 1])
            node //= 2
        return lowest


@pytest.mark.better
def test_messages_with_random_ttls_reach_the_dead_letter_queue_in_time(client, by_broker, record_property):
    publisher, watcher = client.channel().confirm_select(), client.channel()
    dlq = publisher.queue(name="dlq")
    q = publisher.queue(**dead_letters_to(dlq))
    arrivals, outcomes = Arrivals(), Outcomes()
    watcher.consume(dlq, auto_ack=True).messages = arrivals
    publisher.outcomes = outcomes

    rng = random.Random(20_000)
    ttl_ms = [rng.randint(FIRST_MS, LAST_MS) for _ in range(MESSAGES)]
    sent_ns = []
    for n, ttl in enumerate(ttl_ms):
        sent_ns.append(time.time_ns())
        publisher.published += 1
        outcomes.append("?")
        content = (pika.BasicProperties(expiration=str(ttl)), f"{n} {sent_ns[n]}".encode())
        publisher.send(spec.Basic.Publish(routing_key=q), content)
        if n % 100 == 99:
            publisher.flush()
    assert publisher.confirmed() == "a" * MESSAGES
    watcher.wait(lambda: len(arrivals) >= MESSAGES, PATIENCE_S, f"{MESSAGES} dead letters")
    watcher.pause(0.3)

    order, lateness_ms = [], []
    for arrived_ns, body in arrivals:
        n, published_ns = map(int, body.split())
        order.append(n)
        lateness_ms.append((arrived_ns - published_ns) / 1e6 - ttl_ms[n])
    lateness_ms.sort()
    median, p99 = statistics.median(lateness_ms), lateness_ms[int(len(order) * 0.99)]
    figures = f"median {median:.1f} ms, p99 {p99:.1f} ms, least {lateness_ms[0]:.1f} ms, most {lateness_ms[-1]:.1f} ms"
    record_property("figures", f"lateness of {len(order)} dead letters, TTLs of {FIRST_MS}-{LAST_MS} ms: {figures}")

    assert sorted(order) == list(range(MESSAGES)), "every message arrives, and once"
    assert lateness_ms[0] >= 0, "no message arrives early"
    if by_broker(rabbitmq=False, leveret=True):
        assert_in_deadline_order(order, sent_ns, outcomes.confirmed_ns, ttl_ms)
