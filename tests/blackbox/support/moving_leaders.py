"""Leaders that move while tests run, and tests that a move has interrupted: they run again."""

import contextlib
import random
import threading
import time

from _pytest.runner import runtestprotocol

# The time in which a node takes a lead, and clients that it did not close find out.
SETTLES_S = 2.0
RUNS_MAX = 4


class MovingLeaders:
    """Lets another node of a cluster lead the default vhost, again and again."""

    def __init__(self, cluster, every_s):
        self.cluster, self.every_s = cluster, every_s
        self.moves, self.last, self.reruns = 0, 0.0, []
        self.ended = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        draws = random.Random(1)
        while not self.ended.wait(self.every_s):
            node = draws.choice(list(self.cluster.nodes.values()))
            self.last = time.monotonic()
            # Refused if the other node cannot lead now; the nodes may be down.
            with contextlib.suppress(OSError):
                self.moves += node.api.ask("/api/vhosts/%2F/leader", method="POST", body={}).status == 200
            self.last = time.monotonic()

    def stop(self):
        """Move no more leaders."""
        self.ended.set()

    def has_moved_since(self, began):
        return self.last + SETTLES_S > began


def run(item, nextitem, moving):
    """Runs a test. One that has failed while a leader moved runs again, with other names."""
    for _ in range(RUNS_MAX):
        began = time.monotonic()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if moving() is None or not any(report.failed for report in reports) or not moving().has_moved_since(began):
            break
        moving().reruns.append(item.nodeid)
        item._initrequest()  # noqa: SLF001 - new fixtures, as pytest itself makes them
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
