"""The resources of a process on this machine, by its process id."""

import contextlib
import math
import statistics
import threading
import time
from pathlib import Path

SAMPLE_S = 0.05
STEADY_S = 1.0
STEADY_SHARE = 0.005
TICKS_PER_S = 100
KB, MB = 1000, 1_000_000


def resident_bytes(pid, field="VmRSS"):
    """All of it; with `RssAnon`, without the pages of the program, of which the system maps what it has in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field}: the process is gone")


def cpu_s(pid):
    """Time it has had of processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def sockets(pid):
    """How many sockets it has open."""
    count = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            count += str(entry.readlink()).startswith("socket:")
    return count


def steady_bytes(pid, timeout_s=10.0):
    """VmRSS when it does not change much any more."""
    deadline, last = time.monotonic() + timeout_s, resident_bytes(pid)
    while time.monotonic() < deadline:
        time.sleep(STEADY_S)
        now = resident_bytes(pid)
        if abs(now - last) <= last * STEADY_SHARE:
            return now
        last = now
    return last


def wait_until(is_so, timeout_s):
    """How long it took; infinite when it did not come about within the timeout."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > timeout_s:
            return math.inf
        time.sleep(SAMPLE_S)
    return time.monotonic() - began


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


class Memory:
    """VmRSS while the block runs."""

    def __init__(self, pid):
        self.pid, self.samples = pid, []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self):
        self.before = resident_bytes(self.pid)
        self.began = time.monotonic()
        self.thread.start()
        return self

    def _sample(self):
        while not self.done.wait(SAMPLE_S):
            self.samples.append((time.monotonic() - self.began, resident_bytes(self.pid)))

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.samples.append((time.monotonic() - self.began, resident_bytes(self.pid)))

    @property
    def highest(self):
        return max(resident for _, resident in self.samples)

    def slope_per_s(self):
        """Growth per second in the second half, when what is taken once has been taken."""
        late = [sample for sample in self.samples if sample[0] >= self.samples[-1][0] / 2]
        return statistics.linear_regression(*zip(*late)).slope if len(late) > 1 else 0.0
