"""What the run says of the battery: a line at its end, and with `--report FILE` a table of what was measured.

A case is a test with a mark; a number of the battery is passed when all its cases are. Workers hand over what they
measured with the outcome of each test.
"""

import os
import platform
import statistics
import time
from collections import defaultdict
from pathlib import Path

import battery

PARTS = {"HB": ("AMQP", battery.AMQP), "HT": ("HTTP", battery.HTTP)}
MIB = 1 << 20
NOTHING = "-"


def cases_of(item):
    """The numbers of the battery that a test covers, such as `HB-21`."""
    return [f"{part}-{number}" for part in PARTS for mark in item.iter_markers(part.lower()) for number in mark.args]


def record(node, measured, in_quiet=None):
    """Leaves with a test what was measured while it ran. What a broker of its own measured first is what counts."""
    if not node.config.getoption("--report") or any(key == "measured" for key, _ in node.user_properties):
        return
    if "leveret_bin" in node.fixturenames:
        measured = None  # it has attacked a process without other clients
    node.user_properties.append(("measured", measured))
    if in_quiet is not None:
        node.user_properties.append(("in quiet", in_quiet["latencies_s"]))


def figures(latencies_s):
    """Median, 99th percentile and longest, in ms."""
    if not latencies_s:
        return [NOTHING] * 3
    ordered = sorted(latencies_s)
    chosen = (statistics.median(ordered), ordered[len(ordered) * 99 // 100], ordered[-1])
    return [f"{1000 * one:.1f}" for one in chosen]


class Case:
    """All tests of one number."""

    def __init__(self):
        self.count = self.passed = 0
        self.latencies_s = []
        self.resident = []


class Report:
    """Gathers the outcomes of all workers."""

    def __init__(self, config):
        self.path = config.getoption("--report")
        self.began = time.monotonic()
        self.load = os.getloadavg()[0]
        self.failed = set()
        self.tests = {}
        self.in_quiet = {}

    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed":
            self.failed.add(report.nodeid)
        if report.when == "teardown":
            said = dict(report.user_properties)
            self.tests[report.nodeid] = said.get("cases", []), said.get("measured")
            if "in quiet" in said:
                self.in_quiet[getattr(report, "worker_id", None)] = said["in quiet"]

    def cases(self):
        cases = defaultdict(Case)
        for test, (numbers, measured) in self.tests.items():
            for number in numbers:
                case = cases[number]
                case.count += 1
                case.passed += test not in self.failed
                if measured:
                    case.latencies_s += measured["latencies_s"]
                    case.resident.append(measured["resident"])
        return cases

    def summary(self, cases):
        """One line: how many numbers of each part are passed."""
        parts = []
        for part, (name, catalogue) in PARTS.items():
            numbers = [f"{part}-{number}" for number in catalogue]
            wanted = [number for number in numbers if number not in battery.LEFT_OUT]
            done = [number for number in wanted if cases[number].count and cases[number].passed == cases[number].count]
            left_out = len(numbers) - len(wanted)
            parts.append(f"{name} {len(done)} of {len(numbers)}" + (f" ({left_out} left out)" if left_out else ""))
        return "hostile battery: " + ", ".join(parts)

    def pytest_terminal_summary(self, terminalreporter):
        if not self.tests:
            return
        cases = self.cases()
        terminalreporter.write_line(self.summary(cases))
        if self.path:
            Path(self.path).write_text("\n".join(self.document(cases)) + "\n")

    def document(self, cases):
        everything = [one for _, measured in self.tests.values() if measured for one in measured["latencies_s"]]
        quiet = [one for latencies_s in self.in_quiet.values() for one in latencies_s]
        passed = len(self.tests) - len(self.failed)
        yield from [
            "# Hostile peers",
            "",
            "`cargo xtask hostile` writes this page. It runs the [hostile battery](../../tests/hostile/README.md) with one",
            "worker, and checks after every case the process, a new client, and the bystander: a client in a process of",
            "its own that publishes, confirms, consumes and acknowledges about 30 messages per second on one connection",
            "during the whole run. A case fails if one of its messages is lost, duplicated or out of order.",
            "",
            f"In this run of {time.monotonic() - self.began:.0f} s {passed} of {len(self.tests)} tests passed; "
            f"{self.summary(cases)}.",
            "",
            "| Bystander, ms from publish to delivery and confirm | messages | median | p99 | longest |",
            "| --- | --- | --- | --- | --- |",
            f"| without attacks | {len(quiet)} | {' | '.join(figures(quiet))} |",
            f"| under attack, all cases | {len(everything)} | {' | '.join(figures(everything))} |",
            "",
            f"Measured on {os.cpu_count()} cores and {memory_gib()} GiB of memory, {platform.system()}, with a load of "
            f"{self.load:.0f} from other programs",
            "at the start. Attacker, bystander and broker share the cores with these, so the figures include effects of",
            "scheduling.",
            "",
            "Memory is that of the broker before the first and after the last case of a number; `-` marks cases with a",
            "broker of their own.",
        ]
        for part, (name, catalogue) in PARTS.items():
            yield from [
                "", f"## {name}", "",
                "| Case | Attack | Answer | Passed | Median ms | p99 ms | Longest ms | Memory MiB |",
                "| --- | --- | --- | --- | --- | --- | --- | --- |"]
            for number, (attack, answer) in catalogue.items():
                yield row(f"{part}-{number}", attack, answer, cases[f"{part}-{number}"])
        if battery.LEFT_OUT:
            yield from ["", "## Left out", ""]
            yield from (f"* {number}: {why}" for number, why in battery.LEFT_OUT.items())


def row(number, attack, answer, case):
    memory = NOTHING
    if case.resident:
        memory = f"{case.resident[0][0] / MIB:.0f} to {case.resident[-1][1] / MIB:.0f}"
    passed = f"{case.passed} of {case.count}" if case.count else "left out"
    return f"| {number} | {attack} | {answer} | {passed} | {' | '.join(figures(case.latencies_s))} | {memory} |"


def memory_gib():
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30))
