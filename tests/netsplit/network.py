"""The links between the nodes, each through a proxy that holds, delays, throttles or cuts either direction."""

import itertools
import json
import pathlib
import subprocess
import sys
import threading

PROXY = pathlib.Path(__file__).with_name("proxy.py")


class Network:
    """The proxies of all links. A rule is of a direction: `{("a", "b"): {"hold": True}}`; see proxy.py."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, PROXY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()

    def _command(self, command):
        with self.lock:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def via(self, dialer, dialed, port):
        """The port at which a node dials another one that listens at this port."""
        return self._command({"open": [dialer, dialed, port]})

    def rule(self, rules, reset=False):
        """Sets the rules of all directions; when this returns they hold. With `reset`, connections that were held are
        lost, as by a network that has forgotten them."""
        self._command({"rules": {">".join(direction): rule for direction, rule in rules.items()}, "reset": reset})

    def host(self, name):
        """Where a node is."""
        return "127.0.0.1"

    def prefix(self, name):
        """The command that runs a node."""
        return ()

    def close(self):
        self.process.kill()
        self.process.wait()


def between(some, others, rule):
    """A rule for both directions between two sets of nodes."""
    return one_way(some, others, rule) | one_way(others, some, rule)


def one_way(some, others, rule):
    """A rule for the directions from some nodes to others."""
    return {(one, other): rule for one, other in itertools.product(some, others)}


def merged(*parts):
    """All these rules; those of one direction together."""
    rules = {}
    for direction, rule in itertools.chain.from_iterable(part.items() for part in parts):
        rules[direction] = rules.get(direction, {}) | rule
    return rules
