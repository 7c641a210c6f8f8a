"""Kills nodes of a cluster at random instants and checks every message it had confirmed. See README.md."""

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
from cluster_processes import Cluster
from delays import Delays, DelayWorkload, check_delays
from flood import Flood, FloodWorkload, check_flood
from ledger import Fault, Ledger, check
from members import change_members
from workload import Workload


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--minutes", type=float, help="instead of a number of kills")
    parser.add_argument("--seed", type=int, help="instead of those of the test command")
    parser.add_argument("--queue-type", default="quorum", choices=("classic", "quorum"))
    parser.add_argument("--delays", action="store_true", help="with messages that wait for their delivery time")
    parser.add_argument("--planned", type=float, default=0, help="share of planned changes of the leader, from 0 to 1")
    parser.add_argument("--members", type=float, default=0, help="share of nodes that join or are forgotten, from 0 to 1")
    parser.add_argument("--flood", action="store_true", help="with thousands of small messages in flight")
    return seeds.play("cluster-crash", parser.parse_args(), run)


def run(arguments, seed):
    """Kills nodes; how often, or nothing after a fault."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-cluster-"))
    cluster = Cluster(arguments.leveret, folder)
    # Deliveries of classic queues leave before a majority has the message: a failover can take a dead letter back that
    # was seen, and that dies again later, unmarked.
    is_planned = arguments.planned >= 1
    ledger, delays = Ledger(marks=arguments.queue_type == "quorum" or is_planned), Delays()
    flood = Flood()
    totals, restarts, kills, rounds = collections.Counter(), [], collections.Counter(), 0
    ends = time.monotonic() + arguments.minutes * 60 if arguments.minutes else None
    try:
        restarts.append(cluster.start())
        cluster.set_default_queue_type(arguments.queue_type)
        while time.monotonic() < ends if ends else kills.total() < arguments.kills:
            # How much a round has drawn depends on who leads: the next one begins anew.
            rng = random.Random(f"{seed} {rounds}")
            rounds += 1
            workload = Workload(cluster, ledger, rng)
            delay_workload = DelayWorkload(cluster, delays, rng) if arguments.delays else None
            flood_workload = FloodWorkload(cluster, flood) if arguments.flood else None
            time.sleep(rng.uniform(0.05, 0.8))
            if rng.random() < arguments.members:
                kills[change_members(cluster, rng)] += 1
            elif rng.random() < arguments.planned:
                kills[cluster.change_leader(rng)] += 1
            else:
                kills.update(cluster.kill(rng))
            workload.end()
            if delay_workload:
                delay_workload.end()
            if flood_workload:
                flood_workload.end()
            # Sometimes a node stays away for a round.
            if rng.random() < 0.8 or is_planned or len(cluster.running()) <= len(cluster.nodes) // 2:
                restarts.append(cluster.start())
            if rng.random() < 0.6:
                totals += check(cluster, ledger)
            if arguments.delays and rng.random() < 0.15:
                totals["delayed"] += check_delays(cluster, delays)
            if arguments.flood and rng.random() < 0.3:
                totals["flood"] += check_flood(cluster, flood)
            if errors := cluster.errors():
                raise Fault(f"a node says: {errors[0]}")
        restarts.append(cluster.start())
        if arguments.delays:
            totals["delayed"] += check_delays(cluster, delays)
        if arguments.flood:
            totals["flood"] += check_flood(cluster, flood)
        totals += check(cluster, ledger)
    except Fault as fault:
        print(f"after {kills.total()} kills, seed {seed}: {fault}; see {folder}", file=sys.stderr)
        return None
    finally:
        cluster.stop()
    shutil.rmtree(folder)
    failovers = sorted(cluster.failovers) or [0]
    print(json.dumps({
        "program": "clusterloop", "seed": seed, "queue_type": arguments.queue_type, "kills": kills.total(),
        "planned": {what: kills[what] for what in ("transfer", "stop", "join", "forget") if kills[what]},
        "confirmed": totals["confirmed"], "settled": totals["settled"], "delayed": totals["delayed"],
        "flood": totals["flood"],
        **delays.operations, "faults": 0,
        "failover_ms": {"median": round(failovers[len(failovers) // 2] * 1000), "most": round(failovers[-1] * 1000)},
    }))
    return kills.total()


if __name__ == "__main__":
    sys.exit(main())
