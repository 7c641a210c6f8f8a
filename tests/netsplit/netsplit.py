"""Parts the nodes of a cluster from each other, in every way, and checks every message it confirmed. See README.md."""

import argparse
import collections
import functools
import itertools
import json
import pathlib
import random
import shutil
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
# The clients, the ledger and the processes of the crash loop; the slow disks of the fault runs; the certificates of the
# black-box tests.
sys.path += [str(TESTS / one) for one in ("crash", "faults", "hostile", "blackbox/support")]

import delays  # noqa: E402 - needs the path
import foreign  # noqa: E402
import namespaces  # noqa: E402
import nemeses  # noqa: E402
import pairs  # noqa: E402
import probes  # noqa: E402
import rounds  # noqa: E402
import schedules  # noqa: E402
import seeds  # noqa: E402
import workload  # noqa: E402
from clients import Clients  # noqa: E402
from cluster_processes import GONE  # noqa: E402
from ledger import Fault, Ledger, check  # noqa: E402
from network import Network  # noqa: E402
from nodes import VHOSTS, Entrance, SplitCluster, settled  # noqa: E402
from sabotage import SABOTAGES  # noqa: E402

NAMES = "abcde"
STEPS = (2, 6)
# Seed of the first run, unless another is given: this one and the next do almost every harm in less than a minute.
FIRST = 743
# A sync of every disk takes so long in a run: nothing more than it does, or as much as of a busy disk.
SYNCS_MS = (0, 0, 50, 200)
PERIOD_S = 0.1
# A client that was passed on to a lost leader may be held for 8 s at its next attempt.
END_WITHIN_S = 120.0  # seconds, on a machine that does nothing else


class Sabotage(Exception):
    """A fault that was made by hand, as the judges see it."""


class Books:
    """What clients saw in one run."""

    def __init__(self):
        self.ledgers = {vhost: Ledger(marks=queue_type == "quorum") for vhost, queue_type in VHOSTS.items()}
        self.delays = delays.Delays(marks=False)
        self.pairs = pairs.Pairs()
        self.rounds = rounds.Rounds()


def declare(entrances, programs):
    for entrance in entrances.values():
        workload.declare(entrance)
        connection = entrance.connect()
        probes.declare(connection.channel())
        connection.close()
    delays.declare(entrances["/"])
    connection = entrances["/"].connect()
    pairs.declare(connection.channel())
    rounds.declare(connection.channel())
    programs.declare(connection.channel())
    connection.close()


def clients_of(entrances, books):
    """Every client: name, function, where it connects, and its book."""
    for vhost, ledger in books.ledgers.items():
        for name, client in (("publish 1", paced(workload.publish)), ("publish 2", paced(workload.publish)),
                             ("work", paced(workload.work)), ("watch_dead", workload.watch_dead)):
            yield f"{name} of vhost {vhost}", client, entrances[vhost], ledger
    for name, client in (("publish", delays.publish), ("operate", schedules.operate), ("consume", delays.consume)):
        yield f"delays: {name}", paced(client), entrances["/"], books.delays
    for client in (pairs.fan_out, pairs.transact):
        yield f"pairs: {client.__name__}", client, entrances["/"], books.pairs
    for client in (rounds.publish, rounds.consume):
        yield f"rounds: {client.__name__}", client, entrances["/"], books.rounds


def paced(client):
    """The client with waits between its messages: a run takes a machine less than half of a processor, so that some run at once."""
    return functools.partial(client, period_s=PERIOD_S)


def judge(entrances, books):
    """Takes everything that is there, and compares it with what clients saw; the numbers of confirmed messages."""
    totals = collections.Counter()
    for entrance in entrances.values():
        if left := settled(entrance, END_WITHIN_S):
            raise Fault(f"{END_WITHIN_S} s after all clients have gone, messages are with some: {left}")
    for vhost, ledger in books.ledgers.items():
        totals += check(entrances[vhost], ledger)
    totals["delayed"] = delays.check_delays(entrances["/"], books.delays)
    totals["pairs"] = pairs.check_pairs(entrances["/"], books.pairs)
    totals["rounds"] = rounds.check_rounds(entrances["/"], books.rounds)
    return totals


def commit(sabotage, cluster, entrances, books):
    """Makes a fault by hand: `Sabotage` if the judges see it."""
    connection = entrances["/"].connect()
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        SABOTAGES[sabotage](cluster, channel, books)
        judge(entrances, books)
    except Fault as fault:
        raise Sabotage(str(fault)) from None
    finally:
        connection.close()


def run(cluster, rng, steps, totals, programs, sabotage=None):
    """One run: the clients work, the steps are done and healed, and everything is compared."""
    cluster.begin()
    entrances = {vhost: Entrance(cluster, vhost, random.Random(rng.random())) for vhost in VHOSTS}
    declare(entrances, programs)
    books = Books()
    clients = Clients(clients_of(entrances, books), rng)
    programs.start(cluster.tls, rng)
    time.sleep(rng.uniform(0.5, 1.5))
    for step in steps:
        victims = nemeses.harm(cluster, step, functools.partial(probes.Silence, cluster))
        healed = cluster.heal(step.reset)
        took_s = probes.Awakening(cluster, VHOSTS, healed).most_s()
        totals["most_ms"] = max(totals["most_ms"], round(took_s * 1000))
        totals["steps"] += 1
        print(f"  {step} (victims {', '.join(victims)}): confirms from every node {took_s:.2f} s after healing")
        clients.check()
        programs.check()
        cluster.check_replicas()
        time.sleep(step.quiet_s)
    clients.end(END_WITHIN_S)
    totals["foreign"] += programs.judge(END_WITHIN_S)
    programs.end()
    totals.update({"lost_connections": clients.losses.total()})
    if sabotage:
        commit(sabotage, cluster, entrances, books)
        raise Fault(f"nobody has seen the sabotage {sabotage}")
    totals += judge(entrances, books)
    cluster.check_replicas()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--minutes", type=float, help="instead of a number of runs")
    parser.add_argument(
        "--seed", type=int, help="of the first run, instead of that of the test command; each next has one more")
    parser.add_argument("--nodes", type=int, default=3, choices=(3, 5))
    parser.add_argument("--sabotage", choices=SABOTAGES, help="a fault made by hand at the end: it must be seen")
    either = parser.add_mutually_exclusive_group()  # certificates are for nodes on the loopback address
    either.add_argument(
        "--namespaces", action="store_true", help="a network namespace for each node instead of proxies; needs root")
    either.add_argument("--programs", action="store_true", help="also programs with clients of other languages, over TLS")
    parser.add_argument("--work", type=pathlib.Path, help="where the clients of other languages are installed; below the "
                                                          "target folder of the broker otherwise")
    arguments = parser.parse_args()
    work = arguments.work or pathlib.Path(arguments.leveret).resolve().parent.parent / "xtask" / "interop"
    if arguments.programs:
        foreign.prepare(work)
    names = tuple(NAMES[:arguments.nodes])
    if arguments.namespaces:
        namespaces.enter()
    totals, runs = collections.Counter(), 0
    first = FIRST if arguments.seed is None else arguments.seed
    if arguments.minutes:
        ends = time.monotonic() + arguments.minutes * 60
        played = itertools.takewhile(lambda _: time.monotonic() < ends, itertools.count(first))
    else:
        played = [*range(first, first + arguments.runs), *(seeds.kept("netsplit") if arguments.seed is None else ())]
    for seed in played:
        rng = random.Random(seed)
        steps = nemeses.draw(rng, names, rng.randint(*STEPS))
        # By a generator of its own, so that a seed means the harms that it always meant.
        sync_ms = random.Random(f"disk {seed}").choice(SYNCS_MS)
        mode = " --namespaces" * arguments.namespaces
        print(f"run {runs + 1}: --runs 1 --seed {seed} --nodes {arguments.nodes}{mode} (syncs take {sync_ms} ms more)", flush=True)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="leveret-netsplit-"))
        network = namespaces.Namespaces(names) if arguments.namespaces else Network()
        cluster = SplitCluster(arguments.leveret, folder, network, names, with_tls=arguments.programs, sync_ms=sync_ms)
        programs = foreign.Programs(foreign.commands(work) if arguments.programs else {})
        try:
            run(cluster, rng, steps, totals, programs, arguments.sabotage)
        except Sabotage as seen:
            print(f"seen: {seen}")
        except (Fault, *GONE) as fault:
            print(f"run {runs + 1}, seed {seed}: {cluster.ended() or repr(fault)}; see {folder}", file=sys.stderr)
            print("; ".join(map(str, steps)), file=sys.stderr)
            return 1
        finally:
            programs.end()
            cluster.close()
        shutil.rmtree(folder)
        runs += 1
    print(json.dumps({
        "program": "netsplit", "seed": first, "nodes": arguments.nodes, "runs": runs, **totals, "faults": 0}))
    print(f"{runs} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
