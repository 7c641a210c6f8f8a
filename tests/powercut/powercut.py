"""Cuts the power of a broker's disk again and again and checks what is on it. See README.md."""

import argparse
import collections
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "crash"))

from broker_process import Broker  # noqa: E402 - needs the path
from images import Images, Unavailable  # noqa: E402
from ledger import Fault, Ledger, check  # noqa: E402
from workload import Workload  # noqa: E402

UNAVAILABLE = 3  # exit code: the run could not take place
CUTS_PER_LIFE = 10
CUTS_OF_A_CUT = 2
# With `durability = os` the file systems have nothing on their disk for seconds: this many cuts see that.
CONTROL_CUTS = 5
PAUSE_S = (0.05, 0.5)


class Run:
    """Lives of a broker on a disk whose power is cut."""

    def __init__(self, binary, folder, durability, rng):
        self.binary, self.folder, self.rng = binary, folder, rng
        self.config = f"durability = {durability}\ndisk_free_limit.absolute = 1MB\n"
        self.totals = collections.Counter()
        self.is_control = durability == "os"
        self.lost = [] if self.is_control else None
        self.images = Images(folder)
        self.broker = self._broker("broker", self.images.disk)

    def _broker(self, name, disk):
        folder = self.folder / f"{name}.files"
        folder.mkdir(exist_ok=True)
        return Broker(self.binary, folder, self.config, data=disk / "data")

    def run(self, cuts):
        while self.totals["cuts"] < cuts:
            self.life(min(cuts - self.totals["cuts"], CUTS_PER_LIFE))
            print(f"{self.totals['cuts']} cuts, {self.totals['confirmed']} confirmed messages", file=sys.stderr)

    def life(self, cuts):
        """Clients work, and meanwhile the power is cut so many times."""
        self.broker.start()
        ledger = Ledger()
        workload = Workload(self.broker, ledger, self.rng)
        copies = []
        for _ in range(cuts):
            time.sleep(self.rng.uniform(*PAUSE_S))
            before = ledger.copy()
            copy = self.images.cut(f"cut-{self.totals['cuts']}")
            copies.append((copy, Ledger.of_cut(before, ledger.copy())))
            self.totals["cuts"] += 1
        self.broker.kill()
        workload.end()
        for copy, promised in copies:
            self.check_cut(copy, promised)
        # The disk that was never cut.
        self.broker.start()
        if self.is_control:
            check(self.broker, ledger)
        else:
            self.totals += check(self.broker, ledger)
        self.broker.kill()

    def check_cut(self, copy, promised):
        """The power is back, and goes again while the broker comes back."""
        again = []
        with self.images.power_on(copy) as disk:
            broker = self._broker(copy.stem, disk)
            try:
                broker.launch()
                for number in range(CUTS_OF_A_CUT):
                    time.sleep(self.rng.uniform(0, 0.02))
                    second = self.images.cut(f"{copy.stem}-{number}", of=copy)
                    again.append((second, Ledger.of_cut(promised, promised)))
                    self.totals["cuts while recovering"] += 1
                self.finish(broker, promised)
            finally:
                broker.kill()
        for second, promised in again:
            with self.images.power_on(second) as disk:
                broker = self._broker(second.stem, disk)
                try:
                    self.finish(broker, promised, starts=True)
                finally:
                    broker.kill()

    def finish(self, broker, promised, starts=False):
        if starts:
            broker.launch()
        if not broker.wait_until(broker.is_listening, 30):
            raise Fault(f"{broker.folder.name}: the broker does not start: {broker.said()[-1000:]}")
        if broker.errors() and not self.is_control:
            raise Fault(f"{broker.folder.name}: {broker.errors()[:3]}")
        self.totals += check(broker, promised, self.lost)
        shutil.rmtree(broker.folder)


def perform(arguments, durability, cuts, folder):
    """One run: its counts and its losses. A fault is printed and raised."""
    folder.mkdir()
    run = Run(arguments.leveret, folder, durability, random.Random(arguments.seed))
    try:
        run.run(cuts)
    finally:
        if run.broker.process and run.broker.process.poll() is None:
            run.broker.kill()
        run.images.close()
    return run.totals, len(run.lost or [])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="leveret-powercut-"))
    try:
        totals, _ = perform(arguments, "fsync", arguments.cuts, folder / "fsync")
        control, lost = perform(arguments, "os", CONTROL_CUTS, folder / "os")
    except Unavailable as reason:
        shutil.rmtree(folder)
        print(f"no power can be cut here: {reason}", file=sys.stderr)
        return UNAVAILABLE
    except Fault as fault:
        print(f"seed {arguments.seed}: {fault}; see {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print(json.dumps({
        "program": "powercut", "seed": arguments.seed, "cuts": totals["cuts"],
        "cuts_while_recovering": totals["cuts while recovering"], "confirmed": totals["confirmed"],
        "settled": totals["settled"], "lost": 0,
        "control": {"durability": "os", "cuts": control["cuts"], "confirmed": control["confirmed"], "lost_or_back": lost},
    }))
    if not lost:
        print("the control lost nothing: this run could not have seen a loss", file=sys.stderr)
        return 1
    print(f"{totals['cuts'] + totals['cuts while recovering']} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
