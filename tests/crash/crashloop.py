"""Kills a broker at random instants and checks every message it had confirmed. See README.md."""

import argparse
import collections
import json
import pathlib
import random
import shutil
import sys
import tempfile
import time

import seeds
from broker_process import Broker
from delays import Delays, DelayWorkload, check_delays
from ledger import Fault, Ledger, check
from workload import Workload

# Long queues are put aside as soon as they can be, or as usual.
PAGING = ("vm_memory_high_watermark_paging_ratio = 0\n", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--minutes", type=float, help="instead of a number of kills")
    parser.add_argument("--seed", type=int, help="instead of those of the test command")
    parser.add_argument("--durability", default="fsync", choices=("fsync", "os"))
    parser.add_argument("--delays", action="store_true", help="with messages that wait for their delivery time")
    return seeds.play("crash", parser.parse_args(), run)


def run(arguments, seed):
    """Kills a broker; how often, or nothing after a fault."""
    rng = random.Random(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-crash-"))
    broker = Broker(arguments.leveret, folder)

    def start():
        broker.config.write_text(f"durability = {arguments.durability}\n" + rng.choice(PAGING))
        restarts.append(broker.start())

    ledger, delays = Ledger(), Delays()
    totals, restarts, kills = collections.Counter(), [], 0
    ends = time.monotonic() + arguments.minutes * 60 if arguments.minutes else None
    try:
        start()
        while time.monotonic() < ends if ends else kills < arguments.kills:
            # How much a life has drawn depends on its pace: the next one begins anew.
            rng = random.Random(f"{seed} {kills}")
            workload = Workload(broker, ledger, rng)
            delay_workload = DelayWorkload(broker, delays, rng) if arguments.delays else None
            time.sleep(rng.uniform(0.05, 0.8))
            broker.kill()
            kills += 1
            workload.end()
            if delay_workload:
                delay_workload.end()
            start()
            # Sometimes the next life goes on with what is there.
            if rng.random() < 0.6:
                totals += check(broker, ledger)
            if arguments.delays and rng.random() < 0.15:
                totals["delayed"] += check_delays(broker, delays)
        if arguments.delays:
            totals["delayed"] += check_delays(broker, delays)
        totals += check(broker, ledger)
    except Fault as fault:
        broker.process.kill()
        print(f"after {kills} kills, seed {seed}: {fault}; see {folder}", file=sys.stderr)
        return None
    broker.kill()
    shutil.rmtree(folder)
    restarts.sort()
    print(json.dumps({
        "program": "crashloop", "seed": seed, "durability": arguments.durability, "kills": kills,
        "confirmed": totals["confirmed"], "settled": totals["settled"], "delayed": totals["delayed"], **delays.operations, "faults": 0,
        "restart_ms": {"median": round(restarts[len(restarts) // 2] * 1000), "most": round(restarts[-1] * 1000)},
    }))
    return kills


if __name__ == "__main__":
    sys.exit(main())
