"""Runs the program of a client and understands the lines it prints."""

import os
import re
import subprocess
import threading
import time
from dataclasses import dataclass

LINE_WITHIN_S = 300.0  # the longest a scenario may take; most take less than two seconds
RUNS_MAX = 4  # of a scenario, if changes of the leader interrupt it

RESULT = re.compile(r"(ok|failed|without) ([a-z0-9-]+)(?:: (.*))?")
FIGURE = re.compile(r"figure (.*)")
VERSION = re.compile(r"version (\S+)")


@dataclass(frozen=True)
class Result:
    """How a scenario ended: `ok`, `failed` with the reason, or `without` what it needs, with what that is."""

    state: str
    text: str = ""


@dataclass(frozen=True)
class Run:
    """What came of one client."""

    client: object
    version: str
    results: dict
    figures: list
    log: str
    rerun: list

    @property
    def failed(self):
        return {name: result.text for name, result in self.results.items() if result.state == "failed"}


def run(client, broker):
    """Take the client through all of its scenarios. Those that a change of the leader has interrupted run again."""
    wanted = [name for name in client.scenarios if name not in broker.cannot]
    results = {name: Result("without", why) for name, why in broker.cannot.items() if name in client.scenarios}
    program = Program(client, broker)
    rerun = []
    for _ in range(RUNS_MAX):
        found, interrupted = program.run(wanted)
        results |= found
        if not interrupted:
            break
        wanted = interrupted
        rerun += interrupted
    return Run(client, program.version, {name: results[name] for name in client.scenarios}, program.figures,
               "".join(program.log), rerun)


class Program:
    """The program of a client, and what it has said."""

    def __init__(self, client, broker):
        self.client, self.broker = client, broker
        self.version, self.figures, self.log = "?", [], []

    def run(self, wanted):
        """Run scenarios, one after the other in one process: their results, and those that a change interrupted."""
        process = subprocess.Popen([*self.client.command, *wanted], env={**os.environ, **self.broker.environment},
                                   text=True, errors="replace", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, cwd=self.client.group.folder)
        watchdog = Watchdog(process)
        results, interrupted, began = {}, [], time.monotonic()
        for line in process.stdout:
            watchdog.feed()
            self.log.append(line)
            line = line.rstrip("\n")
            if found := VERSION.fullmatch(line):
                self.version = found[1]
            elif found := FIGURE.fullmatch(line):
                self.figures.append(found[1])
            elif line == "restart":
                self.broker.restart()
                answer(process)
            elif (found := RESULT.fullmatch(line)) and found[2] in wanted and found[2] not in results:
                results[found[2]] = Result(found[1], found[3] or "")
                if found[1] == "failed" and self.broker.has_moved_since(began):
                    interrupted.append(found[2])
                began = time.monotonic()
        status = process.wait()
        watchdog.stop()
        ended = f"nothing was printed for {LINE_WITHIN_S:.0f} s" if watchdog.fired else f"it ended with status {status}"
        for name in wanted:
            if name not in results and self.broker.has_moved_since(began):
                interrupted.append(name)
            results.setdefault(name, Result("failed", f"no result: {ended}"))
        if status != 0 and not any(result.state == "failed" for result in results.values()):
            results[wanted[-1]] = Result("failed", ended)
        return results, interrupted


def answer(process):
    """Tell the program that the broker is there again; it may have died of the restart."""
    try:
        process.stdin.write("restarted\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass


class Watchdog:
    """Kills a program that prints nothing for too long."""

    def __init__(self, process):
        self.process = process
        self.fired = False
        self._timer = None
        self.feed()

    def _bite(self):
        self.fired = True
        self.process.kill()

    def feed(self):
        """It has printed something."""
        self.stop()
        self._timer = threading.Timer(LINE_WITHIN_S, self._bite)
        self._timer.daemon = True
        self._timer.start()

    def stop(self):
        """It has ended."""
        if self._timer is not None:
            self._timer.cancel()
