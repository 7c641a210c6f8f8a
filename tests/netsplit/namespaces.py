"""A network namespace for each node instead of proxies: packets are lost, and TCP does what it does then.

| Rule | Effect on packets from `a` to `b` |
| --- | --- |
| `hold` | they are lost |
| `cut` | they are answered by a reset |
| `delay_ms`, `rate` | some are lost: a kernel that can delay packets is rare where tests run |

Connections that were held are never reset: these networks remember nothing.
"""

import os
import subprocess
import sys
import time

from ledger import Fault

ENTERED = "NETSPLIT_NAMESPACE"
SUBNET, BRIDGE = "10.99.0", "nodes"
LOSS = {"delay_ms": 0.2, "rate": 0.3}
BEGIN_WITHIN_S = 60.0


def enter():
    """Goes on as the same program in a network namespace of its own, which has nothing of the machine's network."""
    if os.environ.get(ENTERED):
        return
    if os.geteuid() != 0:
        sys.exit("--namespaces needs root")
    os.environ[ENTERED] = "1"
    os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])


def does(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise Fault(f"{' '.join(map(str, command))}: {done.stderr}")


class Namespaces:
    """A bridge to which each node is connected; it has the rules of a `Network`."""

    def __init__(self, names):
        does("ip", "link", "set", "lo", "up")
        does("ip", "link", "add", BRIDGE, "type", "bridge")
        does("ip", "addr", "add", f"{SUBNET}.254/24", "dev", BRIDGE)
        does("ip", "link", "set", BRIDGE, "up")
        self.hosts = {name: f"{SUBNET}.{number}" for number, name in enumerate(names, 1)}
        # Each keeps a namespace while nodes end and begin.
        self.keepers = {name: subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) for name in names}
        for name in names:
            self._connect(name)

    def _connect(self, name):
        pid = self.keepers[name].pid
        deadline = time.monotonic() + BEGIN_WITHIN_S
        while os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            if time.monotonic() > deadline:
                raise Fault("a network namespace cannot be made")
            time.sleep(0.01)
        does("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        does("ip", "link", "set", f"to-{name}", "master", BRIDGE, "up")
        does(*self.prefix(name), "ip", "addr", "add", f"{self.hosts[name]}/24", "dev", "eth0")
        does(*self.prefix(name), "ip", "link", "set", "eth0", "up")
        does(*self.prefix(name), "ip", "link", "set", "lo", "up")

    def host(self, name):
        """Where a node is."""
        return self.hosts[name]

    def prefix(self, name):
        """The command that runs a node."""
        return ("nsenter", f"--net=/proc/{self.keepers[name].pid}/ns/net")

    def via(self, dialer, dialed, port):
        """Nodes dial each other without anything between."""
        return port

    def rule(self, rules, reset=False):
        """Sets the rules of all directions; when this returns they hold."""
        for name in self.hosts:
            lines = ["*filter", ":INPUT ACCEPT"]
            for (source, target), rule in rules.items():
                if target == name and source != name:
                    lines += [f"-A INPUT -s {self.hosts[source]} {effect}" for effect in effects(rule)]
            does(*self.prefix(name), "iptables-restore", text="\n".join([*lines, "COMMIT", ""]))

    def close(self):
        for name, keeper in self.keepers.items():
            does("ip", "link", "del", f"to-{name}")
            keeper.kill()
            keeper.wait()
        does("ip", "link", "del", BRIDGE)


def effects(rule):
    """The rest of the lines of iptables for a rule."""
    if rule.get("hold"):
        yield "-j DROP"
    elif rule.get("cut"):
        yield "-p tcp -j REJECT --reject-with tcp-reset"
    for key, share in LOSS.items():
        if key in rule:
            yield f"-m statistic --mode random --probability {share} -j DROP"
