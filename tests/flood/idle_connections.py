"""Tens of thousands of connections that do nothing but live."""

import time

from bystander import Bystander
from crowd import CHANNEL_OPENED, OPENED, Crowd, greeting
from measure import KB, MB, cpu_s, percentile, sockets, steady_bytes, wait_until
from workers import COUNT, Workers

START_BYTES_MAX = 18.5 * MB  # 18.1, of which 15.1 are pages of the program
START_OWN_BYTES_MAX = 3.2 * MB  # without the program: 2.9 to 3.1 from run to run
CONNECTION_BYTES_MAX = 10 * KB
CONNECTION_WITH_CHANNEL_BYTES_MAX = 12 * KB
CONNECTS_PER_S_MIN = 500
CPU_PER_10_000_MAX = 0.25  # of one processor
BYSTANDER_P99_MAX_MS = 500
BYSTANDER_LONGEST_MAX_MS = 3000
GONE_WITHIN_S = 15.0

HEARTBEAT_S = 60
FIRST_SHARE = 5
LEFT_OVER_SOCKETS = 10


def run(subject, scale, figures):
    figures.begin(f"{scale.connections:,} idle connections")
    heartbeat_s = min(HEARTBEAT_S, 3 * scale.seconds)
    with subject.running() as broker:
        figures.add("resident after the start", broker.start_bytes and broker.start_bytes / MB, "MB",
                    at_most=START_BYTES_MAX / MB)
        figures.add("of which not the program", broker.start_own_bytes and broker.start_own_bytes / MB, "MB",
                    at_most=START_OWN_BYTES_MAX / MB)
        bystander = Bystander(broker)
        _crowd(broker, scale.connections, (), heartbeat_s, figures, bystander)
        bystander.stop()
    with subject.running() as broker:
        _crowd(broker, scale.connections // 2, (1,), heartbeat_s, figures)


def _crowd(broker, count, channels, heartbeat_s, figures, bystander=None):
    """`bystander` if it is to be measured how fast they come and what they take while they are there."""
    with Workers(hold, broker.address, count // COUNT, channels, heartbeat_s) as workers:
        open_before = sockets(broker.pid)
        first = sum(workers.results())
        before, began = steady_bytes(broker.pid), time.monotonic()
        took_s = [took for each in workers.step() for took in each]
        passed_s = time.monotonic() - began
        if bystander:
            figures.add("connections opened", len(took_s) / passed_s, "/s", at_least=CONNECTS_PER_S_MIN)
            figures.add("load processes then, busiest", 100 * workers.busiest, "% of a processor")
            figures.add("time to open, median", 1000 * percentile(took_s, 0.5), "ms")
            figures.add("time to open, 99 %", 1000 * percentile(took_s, 0.99), "ms")
            figures.waits("bystander while they open", bystander.latencies_s(), BYSTANDER_P99_MAX_MS,
                          BYSTANDER_LONGEST_MAX_MS)
        workers.go_on()
        resident = steady_bytes(broker.pid)
        what, most = ("an idle connection with a channel", CONNECTION_WITH_CHANNEL_BYTES_MAX) if channels else (
            "an idle connection", CONNECTION_BYTES_MAX)
        figures.add(f"memory of {what}", (resident - before) / (count - first) / KB, "KB", at_most=most / KB)
        if bystander:
            bystander.latencies_s()
            cpu, began = cpu_s(broker.pid), time.monotonic()
            time.sleep(heartbeat_s / 2)
            share = (cpu_s(broker.pid) - cpu) / (time.monotonic() - began)
            figures.add(f"processor, all with a heartbeat of {heartbeat_s} s", 100 * share, "% of a processor",
                        at_most=100 * CPU_PER_10_000_MAX * max(count / 10_000, 1))
            figures.waits("bystander beside them", bystander.latencies_s(), BYSTANDER_P99_MAX_MS, BYSTANDER_LONGEST_MAX_MS)
        lost = sum(workers.step())
        if bystander:
            figures.add("connections lost", lost, at_most=0)
            gone_s = wait_until(lambda: sockets(broker.pid) <= open_before + LEFT_OVER_SOCKETS, GONE_WITHIN_S)
            figures.add("all sockets closed after theirs", gone_s, "s", at_most=GONE_WITHIN_S)


def hold(is_over, number, address, count, channels, heartbeat_s):
    """Opens so many connections, lives, and is gone. The first come apart: with them comes what is needed only once."""
    crowd = Crowd(address, number)
    opening, answer = greeting(heartbeat_s, channels), CHANNEL_OPENED if channels else OPENED
    answers = len(channels) or 1
    first = count // FIRST_SHARE
    crowd.open(first, opening, answer, answers)
    yield first
    yield crowd.open(count - first, opening, answer, answers)
    lost = crowd.live(is_over, heartbeat_s)
    crowd.close()
    yield lost
