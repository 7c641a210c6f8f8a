"""Nodes that join a cluster and are forgotten, at random, while others are killed."""

import time
import urllib.error

from ledger import Fault

NODES = range(3, 6)
WITHIN_S = 120.0


def change_members(cluster, rng):
    """Lets a new node join, or ends one and forgets it; what was done. Does not wait until a replica is there."""
    count = len(cluster.nodes)
    joins = count == NODES.start or (count < NODES.stop - 1 and rng.random() < 0.5)
    done = join(cluster) if joins else forget(cluster, rng)
    for name in cluster.running():
        node = cluster.nodes[name]
        if not node.wait_until(node.is_listening, WITHIN_S):
            raise Fault(f"a node does not start: {node.said()[-1000:]}")
    return done


def join(cluster):
    numbers = [int(name[1:]) for name in cluster.nodes if name[1:]]
    cluster.joined = max(numbers + [getattr(cluster, "joined", 0)]) + 1
    cluster.add(f"n{cluster.joined}").launch()
    return "join"


def forget(cluster, rng):
    """Forgets a node that is down, or the one that is ended for it."""
    down = [name for name in cluster.nodes if name not in cluster.running()]
    name = rng.choice(down or sorted(cluster.nodes))
    cluster.nodes[name].kill()
    deadline = time.monotonic() + WITHIN_S
    while not is_forgotten(cluster, name):
        if time.monotonic() > deadline:
            raise Fault(f"node {name} is not forgotten")
        # The others may have no leader without it: those that are down are needed.
        cluster.launch_all_but(name)
        time.sleep(0.1)
    cluster.remove(name)
    return "forget"


def is_forgotten(cluster, name):
    """Asks a node that runs to forget another one; true if it is forgotten, now or by an earlier question."""
    asked = next((other for other in cluster.running() if other != name), None)
    if asked is None:
        return False
    try:
        cluster.request(asked, "DELETE", f"/api/nodes/{cluster.full_names[name]}")
    except urllib.error.HTTPError as refused:
        # A node that joins may not be in the list yet.
        return refused.code == 404 and name not in listed(cluster, asked)
    except OSError:
        return False
    return True


def listed(cluster, asked):
    try:
        return [node["name"].split("@")[0] for node in cluster.request(asked, "GET", "/api/nodes")]
    except OSError:
        return list(cluster.nodes)
