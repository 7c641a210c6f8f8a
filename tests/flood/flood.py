"""Floods a broker and prints the costs. See README.md."""

import argparse
import dataclasses
import os
import platform
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hostile"))

import churn  # noqa: E402 - needs the path
import handshakes  # noqa: E402
import idle_channels  # noqa: E402
import idle_connections  # noqa: E402
import publishers  # noqa: E402
import stuck_consumers  # noqa: E402
from crowd import raise_descriptor_limit  # noqa: E402
from figures import Figures, table  # noqa: E402
from scale import LARGE, SMALL  # noqa: E402
from subjects import Leveret, RabbitMQ, parsed_address  # noqa: E402
from workers import COUNT  # noqa: E402

SCENARIOS = {
    "connections": idle_connections, "channels": idle_channels, "churn": churn, "publishers": publishers,
    "consumers": stuck_consumers, "handshakes": handshakes,
}
# Descriptors that a broker needs for itself and its log, and that it does not give to clients.
RESERVED_DESCRIPTORS = 1000

INTRODUCTION = """\
# Floods

`cargo xtask flood` writes this page: {names}, flooded in turn by the same [program](../../tests/flood/README.md),
on one machine with {cpus} processors and {memory} GB of memory (Linux {kernel}), which also ran the clients. All
figures are from one run. If the busiest of the {workers} load processes took nearly 100 % of a processor, the load
was the bottleneck, not the broker. Latencies of the bystander, a well-behaved client, and of logins include their
wait for a processor. Memory is resident memory (VmRSS). `cargo xtask flood` fails if Leveret exceeds a bound.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--broker", choices=("leveret", "rabbitmq", "both"), default="leveret")
    parser.add_argument("--amqp", default="127.0.0.1:5672", help="address of a RabbitMQ that runs on this machine")
    parser.add_argument("--rabbitmqctl", default="rabbitmqctl", help="the command that runs its rabbitmqctl")
    parser.add_argument("--small", action="store_true", help="a minute of it, for every day")
    parser.add_argument("--seconds", type=int, help="of everything that goes on for a while")
    parser.add_argument("--connections", type=int, help="that are idle")
    parser.add_argument("--only", choices=SCENARIOS, nargs="*", default=list(SCENARIOS))
    parser.add_argument("--report", type=Path, help="the file to which the table is written")
    arguments = parser.parse_args()

    # A program that is asked to end stops its brokers and removes their files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    given = {key: getattr(arguments, key) for key in ("seconds", "connections")}
    scale = SMALL if arguments.small else LARGE
    scale = dataclasses.replace(scale, **{key: value for key, value in given.items() if value})
    limit = raise_descriptor_limit(scale.connections + RESERVED_DESCRIPTORS)
    if scale.connections > limit - RESERVED_DESCRIPTORS:
        scale = dataclasses.replace(scale, connections=limit - RESERVED_DESCRIPTORS)
        print(f"{scale.connections} connections: a process may have {limit} files here")

    subjects = []
    if arguments.broker != "rabbitmq":
        subjects.append(Leveret(arguments.leveret))
    if arguments.broker != "leveret":
        subjects.append(RabbitMQ(parsed_address(arguments.amqp), arguments.rabbitmqctl))
    all_figures = [Figures(subject, scale.slack) for subject in subjects]
    began = time.monotonic()
    for name in arguments.only:
        for subject, figures in zip(subjects, all_figures):
            SCENARIOS[name].run(subject, scale, figures)
    if arguments.report:
        arguments.report.write_text(introduction(subjects) + table(all_figures))
    return report_figures(all_figures, time.monotonic() - began)


def introduction(subjects):
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return INTRODUCTION.format(
        names=" and ".join(subject.name for subject in subjects), cpus=os.cpu_count(),
        memory=round(memory_bytes / (1 << 30)), kernel=".".join(platform.release().split(".")[:2]), workers=COUNT)


def report_figures(all_figures, passed_s):
    """Says which bounds did not hold; the exit code."""
    faults = [figure for figures in all_figures for figure in figures.faults]
    for figure in faults:
        print(f"{figure.scenario}: {figure.what}: {figure.text}, not {figure.bound}", file=sys.stderr)
    if faults:
        return 1
    held = sum(bool(figure.bound) for figures in all_figures for figure in figures.all if figures.subject.is_ours)
    print(f"{passed_s:.0f} s: {held} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
