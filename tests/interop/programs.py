"""Runs the program of a client and understands the lines it prints."""

import os
import re
import subprocess
import threading
from dataclasses import dataclass

LINE_WITHIN_S = 60.0  # the longest a scenario may take; most take less than two seconds

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

    @property
    def failed(self):
        return {name: result.text for name, result in self.results.items() if result.state == "failed"}


def run(client, broker):
    """Take the client through all of its scenarios, one after the other in one process."""
    wanted = [name for name in client.scenarios if name not in broker.cannot]
    results = {name: Result("without", why) for name, why in broker.cannot.items() if name in client.scenarios}
    process = subprocess.Popen([*client.command, *wanted], env={**os.environ, **broker.environment}, text=True,
                               errors="replace", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, cwd=client.group.folder)
    watchdog = Watchdog(process)
    version, figures, log = "?", [], []
    for line in process.stdout:
        watchdog.feed()
        log.append(line)
        line = line.rstrip("\n")
        if found := VERSION.fullmatch(line):
            version = found[1]
        elif found := FIGURE.fullmatch(line):
            figures.append(found[1])
        elif line == "restart":
            broker.restart()
            answer(process)
        elif (found := RESULT.fullmatch(line)) and found[2] in wanted and found[2] not in results:
            results[found[2]] = Result(found[1], found[3] or "")
    status = process.wait()
    watchdog.stop()
    ended = f"nothing was printed for {LINE_WITHIN_S:.0f} s" if watchdog.fired else f"it ended with status {status}"
    for name in wanted:
        results.setdefault(name, Result("failed", f"no result: {ended}"))
    if status != 0 and not any(result.state == "failed" for result in results.values()):
        results[wanted[-1]] = Result("failed", ended)
    return Run(client, version, {name: results[name] for name in client.scenarios}, figures, "".join(log))


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
