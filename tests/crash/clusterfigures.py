"""Measures the throughput of three nodes on one machine, beside another cluster that runs already. See README.md."""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from broker_process import cpu_s
from cluster_processes import Cluster

# The loads of `cargo xtask bench` with these names. Another broker may replicate only its quorum queues.
LOADS = {
    "quorum-1k": "--size 1024 --persistent --confirm 10000 -A x-queue-type=quorum",
    "persistent-1k": "--size 1024 --persistent --confirm 10000",
    "persistent-16": "--size 16 --persistent --confirm 10000",
    "reject-16": "--size 16 --reject --persistent",
    "confirm-1": "--size 100 --persistent --confirm 1 --consumers 0",
}
QUORUM = "-A x-queue-type=quorum"


def measure(perf, address, pids, load, seconds, entry=()):
    """The figures of one run; those of the processes `entry` are told apart, too."""
    command = [perf, "--json", "--quiet", "--uri", f"amqp://guest:guest@{address}/%2f", "throughput",
               "--time", str(seconds), *load.split()]
    before, entry_before = cpu_s(pids), cpu_s(entry)
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 10 + 60, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    [run] = json.loads(done.stdout)
    counts, rates = run["counts"], run["rates"]
    messages = max(counts["confirmed"], counts["consumed"], counts["dead_lettered"], 1)
    latency = run["confirm_latency_us"] or {}
    shares = {"entry_cpu_us_each": (cpu_s(entry) - entry_before) / messages * 1e6} if entry else {}
    return {
        **shares, "confirmed_per_s": rates["confirmed"], "consumed_per_s": rates["consumed"],
        "dead_lettered_per_s": rates["dead_lettered"], "confirm_p50_us": latency.get("p50", 0),
        "confirm_p99_us": latency.get("p99", 0), "cpu_us_each": (cpu_s(pids) - before) / messages * 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--perf", required=True, help="leveret-perf")
    parser.add_argument("--peer", help="HOST:PORT of a node of another cluster")
    parser.add_argument("--peer-pids", default="", help="its processes, for their processor time")
    parser.add_argument("--relayed", action="store_true", help="measure through a follower, too")
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-figures-"))
    cluster = Cluster(arguments.leveret, folder)
    try:
        cluster.start()
        address = "{}:{}".format(*cluster.leading_address())
        pids = [node.process.pid for node in cluster.nodes.values()]
        follower = next(node for name, node in cluster.nodes.items() if name != cluster.leader)
        entry, through = [follower.process.pid], "{}:{}".format(*follower.address)
        for name in arguments.loads.split(","):
            load, found = LOADS[name], {"leveret": [], "relayed": [], "peer": []}
            for _ in range(arguments.rounds):
                found["leveret"].append(measure(arguments.perf, address, pids, load, arguments.seconds, entry))
                if arguments.relayed:
                    found["relayed"].append(measure(arguments.perf, through, pids, load, arguments.seconds, entry))
                if arguments.peer:
                    replicated = load if QUORUM in load else f"{load} {QUORUM}"
                    peer_pids = arguments.peer_pids.split(",") if arguments.peer_pids else []
                    found["peer"].append(
                        measure(arguments.perf, arguments.peer, peer_pids, replicated, arguments.seconds))
            for who, runs in ((who, runs) for who, runs in found.items() if runs):
                print(json.dumps({"load": name, "of": who, **shown(runs)}), flush=True)
    finally:
        cluster.stop()
        shutil.rmtree(folder)
    return 0


def shown(runs):
    """Medians of the numbers of all runs, and the reason if one failed."""
    if failed := [run for run in runs if "failed" in run]:
        return failed[0]
    return {key: round(statistics.median(run[key] for run in runs), 2) for key in runs[0]}


if __name__ == "__main__":
    sys.exit(main())
