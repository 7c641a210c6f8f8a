"""Time as the broker and the test had it, for bounds that are about the broker and not about the machine.

A thread that is ready and has no processor waits; the kernel counts that for each thread, in
`/proc/PID/task/TID/schedstat`. What the threads of the broker and of the test waited is no time of theirs. A broker
that sleeps, hangs or works too long does not wait, so its time is the clock's, however busy the machine is.
"""

import os
import time
from pathlib import Path


# A machine that does other things is slower by this factor at most: whoever waits for a bound must come to an end.
SLOWER_MAX = 10


class Stopwatch:
    """Runs from its making on, for this process and those with the given ids."""

    def __init__(self, *pids):
        self.pids = [pid for pid in (os.getpid(), *pids) if pid is not None]
        self.waits_ns = self._waits_ns()
        self.began = time.monotonic()

    def elapsed_s(self):
        """Seconds of the clock, less what the threads waited for a processor."""
        by_clock_s = time.monotonic() - self.began
        return max(by_clock_s - self.waited_s(), by_clock_s / SLOWER_MAX)

    def waited_s(self):
        """How long the threads, together, waited for a processor."""
        waits_ns = self._waits_ns().items()
        return sum(max(0, wait_ns - self.waits_ns.get(task, 0)) for task, wait_ns in waits_ns) / 1e9

    def _waits_ns(self):
        """For each thread, how long it has waited for a processor in all."""
        waits_ns = {}
        for pid in self.pids:
            for task in _tasks(pid):
                try:
                    waits_ns[task] = int((task / "schedstat").read_text().split()[1])
                except (OSError, IndexError):  # the thread has ended, or the kernel counts nothing
                    continue
        return waits_ns


def cpu_s(pid):
    """Processor time that the process has used: what its work takes is the same on a machine that does other things."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _tasks(pid):
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # the process has ended
        return []
