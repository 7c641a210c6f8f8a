"""Delays made of levels, a queue for each bit of a number of seconds: what all such ladders have to do right."""

import random
import statistics
import sys
import threading
import time
from pathlib import Path

import pika

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import expected  # noqa: E402
import runner  # noqa: E402

LEVELS = 28
MESSAGES = 400  # of each ladder, in `delays`
OF_EACH = 10  # messages with the same delay, in `restart`


def connect():
    return pika.BlockingConnection(pika.ConnectionParameters(runner.HOST, runner.PORT))


class Arrivals:
    """A consumer that notes what comes, when, and by way of which queues."""

    def __init__(self, queue):
        self.come = []  # in order: a number, a moment, and the queues that the message expired in
        channel = connect().channel()
        channel.basic_consume(queue, lambda _channel, _method, properties, body: self.come.append(
            (int(body), time.monotonic(), expired_in(properties))), auto_ack=True)
        self.since = time.monotonic()
        threading.Thread(target=channel.start_consuming, daemon=True).start()  # until the queue is deleted


def expired_in(properties):
    """Names of the queues that a message expired in, sorted; a queue that it expired in twice is named twice."""
    return sorted(death["queue"] for death in (properties.headers or {}).get("x-death", ())
                  for _ in range(death["count"]))


class Run:
    """Messages on their way through a ladder."""

    def __init__(self, ladder):
        self._ladder = ladder
        self._sent = []  # for each message its delay, and the moments between which the broker began to count it

    def publish(self, delay_s):
        """A message whose body is its number; it is confirmed when this returns."""
        before = time.monotonic()
        self._ladder.publish(delay_s, b"%d" % len(self._sent))
        self._sent.append((delay_s, before, time.monotonic()))

    def check(self, arrivals, down=None):
        """Each has come once, not too early, and through the levels of its delay and no others.

        `down` is when the broker was killed, and when it was there again. How late messages are is printed: it
        depends on what else the machine does.
        """
        due = [max(moment_due(confirmed, delay_s, down), arrivals.since) for delay_s, _, confirmed in self._sent]
        deadline = max(due) + expected.WITHIN_S
        while len(arrivals.come) < len(due) and time.monotonic() < deadline:
            time.sleep(0.01)
        numbers = sorted(number for number, _, _ in arrivals.come)
        missing = set(range(len(due))) - set(numbers)
        assert numbers == list(range(len(due))), f"{len(numbers)} of {len(due)} came; missing: {missing}"
        for number, moment, queues in arrivals.come:
            delay_s, before, _ = self._sent[number]
            assert moment - before >= delay_s, f"{delay_s} s, but came after {moment - before:.3f} s"
            levels = sorted(self._ladder.level(level) for level in levels_of(delay_s))
            assert queues == levels, f"{delay_s} s, but by way of {queues}"
        lateness_s = [moment - due[number] for number, moment, _ in arrivals.come]
        half_s, most_s = statistics.median(lateness_s), max(lateness_s)
        print(f"figure {self._ladder.name}: {len(due)} messages, half of them at most {half_s * 1000:.0f} ms late, "
              f"all at most {most_s * 1000:.0f} ms", flush=True)


def levels_of(delay_s):
    """Levels that a message with this delay waits in, in order."""
    return [level for level in reversed(range(LEVELS)) if delay_s & 2 ** level]


def moment_due(confirmed, delay_s, down):
    """When a message leaves its last level; what expires while the broker is down begins the next level afterwards."""
    moment = confirmed
    for level in levels_of(delay_s):
        moment += 2 ** level
        if down and down[0] <= moment < down[1]:
            moment = down[1]
    return moment


def in_levels(ladder, levels=range(LEVELS)):
    """How many messages wait in each level where any does."""
    with connect() as connection:
        channel = connection.channel()
        waiting = {level: channel.queue_declare(ladder.level(level), passive=True).method.message_count
                   for level in levels}
    return {level: count for level, count in waiting.items() if count}


def refuses_another_ttl(ladder, level):
    """The level's queue has the time to live that it has to have: the broker tells which when another is asked for."""
    ttl_ms, name = 2 ** level * 1000, ladder.level(level)
    with connect() as connection:
        try:
            connection.channel().queue_declare(name, durable=True, arguments={
                **ladder.arguments(level), "x-message-ttl": ttl_ms + 1})
            raise AssertionError(f"{name} was declared with another x-message-ttl")
        except pika.exceptions.ChannelClosedByBroker as error:
            expected.check_refusal(expected.inequivalent(name), error.reply_code, error.reply_text)
            assert f"received '{ttl_ms + 1}' but current is '{ttl_ms}'" in error.reply_text, error


def declare(ladders):
    """All levels, and the same once more: no error."""
    for ladder in ladders:
        ladder.declare()
        with connect() as connection:
            for level in range(LEVELS):
                connection.channel().exchange_declare(ladder.level(level), "topic", durable=True, passive=True)
                refuses_another_ttl(ladder, level)
        ladder.declare()
        assert in_levels(ladder) == {}


def delays(ladders):
    """Many messages with delays of 0 to 7 s, in no order."""
    runs = [Run(ladder) for ladder in ladders]
    arrivals = [Arrivals(ladder.endpoint) for ladder in ladders]
    order = [number % 8 for number in range(MESSAGES)]
    random.Random(7).shuffle(order)
    for delay_s in order:
        for run in runs:
            run.publish(delay_s)
    for run, come in zip(runs, arrivals):
        run.check(come)
    for ladder, come in zip(ladders, arrivals):
        assert in_levels(ladder) == {} and len(come.come) == MESSAGES, "more came than was sent"


def longest(ladders):
    """A delay of every level but the short ones, and the longest of all: each waits where it belongs."""
    for ladder in ladders:
        run = Run(ladder)
        for level in range(5, LEVELS):
            run.publish(2 ** level)
        run.publish(2 ** LEVELS - 1)
        levels = {level: 1 for level in range(5, LEVELS)}
        levels[LEVELS - 1] = 2
        assert in_levels(ladder) == levels, in_levels(ladder)
        refuses_another_ttl(ladder, LEVELS - 1)


def restart(ladders):
    """The broker is killed while messages wait in several levels, one of them for years."""
    runs = [Run(ladder) for ladder in ladders]
    for ladder in ladders:
        ladder.publish(2 ** (LEVELS - 1) + 1, b"years")
    for delay_s in OF_EACH * (3, 4, 5, 6, 7):
        for run in runs:
            run.publish(delay_s)
    for ladder in ladders:
        # How many messages are there at once depends on the machine: each stays for one second.
        runner.eventually(lambda ladder=ladder: in_levels(ladder, [0]), "messages have gone on to level 0")
    for delay_s in OF_EACH * (2, 3):
        for run in runs:
            run.publish(delay_s)
    killed = time.monotonic()
    runner.restart_broker()
    down = killed, time.monotonic()
    arrivals = [Arrivals(ladder.endpoint) for ladder in ladders]
    for ladder in ladders:
        ladder.connect()
    for run, come in zip(runs, arrivals):
        run.check(come, down)
    for ladder in ladders:
        assert in_levels(ladder) == {LEVELS - 1: 1}, in_levels(ladder)


def run(version, make_ladders):
    """Run the scenarios that the command line names, each with ladders of its own."""
    def with_ladders(scenario):
        ladders = make_ladders()
        try:
            if scenario is not declare:
                for ladder in ladders:
                    ladder.declare()
            scenario(ladders)
        finally:
            for ladder in ladders:
                ladder.delete()
    runner.run(version, {scenario.__name__: lambda scenario=scenario: with_ladders(scenario)
                         for scenario in (declare, delays, longest, restart)})
