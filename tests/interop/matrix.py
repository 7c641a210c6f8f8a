#!/usr/bin/env python3
"""Runs every client through its scenarios and says what passed; README.md describes it."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import clients
import programs
import report
from brokers_for_clients import Clustered, Foreign, Own

# The clients in Rust take ten minutes of two processors that a whole test run uses for other steps first.
PREPARED_WITHIN_S = 45 * 60


def main():
    options = arguments()
    chosen = [client for client in clients.read(work_folder(options)) if wanted(client, options.clients)]
    if not chosen:
        sys.exit(f"no client is called {' or '.join(options.clients)}")
    began = time.monotonic()
    for group in dict.fromkeys(client.group for client in chosen):
        prepare(group)
    if options.prepare:
        return
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(lambda client: attempt(client, options), chosen))
    if options.report:
        options.report.write_text(report.page(runs))
    states = [result.state for run in runs for result in run.results.values()]
    failed, passed, without = (states.count(state) for state in ("failed", "ok", "without"))
    said = f"{failed} failed, " if failed else ""
    print(f"{said}{passed} passed, {without} skipped in {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leveret", default=os.environ.get("LEVERET_BIN"), help="the broker (or LEVERET_BIN)")
    parser.add_argument("--rabbitmq", metavar="HOST:PORT", help="try the programs against this RabbitMQ instead")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of a client's Leveret; it uses the last one")
    parser.add_argument("--move-leaders", type=float, metavar="SECONDS",
                        help="let another of the nodes lead so often; scenarios that a change interrupts run again")
    parser.add_argument("--work", type=Path, help="where what clients need is built and installed; below the target "
                                                  "folder of the broker, or the folder for temporary files, otherwise")
    parser.add_argument("--report", type=Path, help="write the matrix to this file")
    parser.add_argument("--jobs", type=int, default=3, help="clients at a time [%(default)s]")
    parser.add_argument("--prepare", action="store_true", help="build and install what clients need, and end")
    parser.add_argument("--show", action="store_true", help="show what the programs print")
    parser.add_argument("clients", nargs="*", help="only these clients or folders of clients")
    options = parser.parse_args()
    if not options.leveret and not options.rabbitmq and not options.prepare:
        parser.error("--leveret PATH, LEVERET_BIN or --rabbitmq HOST:PORT must say what is tested")
    return options


def work_folder(options):
    """The folder below which `prepare` builds and installs."""
    if options.work:
        return options.work.resolve()
    if options.leveret:
        return Path(options.leveret).resolve().parent.parent / "xtask" / "interop"
    return Path(tempfile.gettempdir()) / "leveret-interop"


def wanted(client, names):
    return not names or client.name in names or client.group.name in names


def prepare(group):
    """Build or install what the clients of a folder need; quick when it is there."""
    if group.prepare is None:
        return
    began = time.monotonic()
    group.work.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([group.prepare], env={**os.environ, "WORK": str(group.work)}, cwd=group.folder, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                          timeout=PREPARED_WITHIN_S)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n{group.name}: {group.prepare.name} failed with status {done.returncode}")
    print(f"{group.name}: prepared in {time.monotonic() - began:.1f} s", flush=True)


def broker_for_client(options, directory):
    """What a client is tried against."""
    if options.rabbitmq:
        return Foreign(options.rabbitmq)
    if options.nodes > 1:
        return Clustered(options.leveret, directory, options.nodes, options.move_leaders)
    return Own(options.leveret, directory)


def attempt(client, options):
    """One client against a broker of its own, reported in one line."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leveret-interop-") as directory:
        broker = broker_for_client(options, Path(directory))
        run = programs.run(client, broker)
        broker.stop()
    states = [result.state for result in run.results.values()]
    score = f"{states.count('ok')} of {len(states) - states.count('without')}"
    lines = [f"{client.name} {run.version}: {score} in {time.monotonic() - began:.1f} s"]
    if moves := broker.moves:
        lines[0] += f"; {moves} changes of the leader, {len(run.rerun)} scenarios ran again"
    lines += [f"  {name}: {text}" for name, text in run.failed.items()]
    # As pytest says it, for the list of what a test run has not tested.
    lines += [f"SKIPPED [1] {client.name} {name}: {result.text}" for name, result in run.results.items()
              if result.state == "without"]
    if run.failed or options.show:
        lines.append(run.log)
    print("\n".join(lines), flush=True)
    return run


if __name__ == "__main__":
    main()
