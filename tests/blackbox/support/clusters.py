"""A cluster of Leveret processes on this machine, whose nodes are listed in their configuration."""

import os
import signal

from brokers import Leveret
from patience import eventually  # of tests/machine, whose place brokers.py has told
from ports import free_port, free_ports, give_back


class Cluster:
    """Nodes with data directories of their own."""

    def __init__(self, binary, directory, letters="abc", settings=None):
        self.binary, self.directory, self.settings = binary, directory, settings or {}
        self.names = [f"{letter}@127.0.0.1" for letter in letters]
        self.ports = dict(zip(self.names, free_ports(len(self.names))))
        self.secret = directory / "secret"
        self.secret.write_text("the secret of this cluster\n")
        self.secret.chmod(0o600)
        self.nodes = {}
        self.amqp = {}  # addresses of nodes that take no free port

    def config(self, name, **instead):
        """The configuration of a node."""
        values = {"nodename": name, "listeners.cluster.default": f"127.0.0.1:{self.ports[name]}",
                  "cluster.secret_file": self.secret, "cluster_formation.peer_discovery_backend": "classic_config"}
        for at, node in enumerate(self.names, 1):
            values[f"cluster_formation.classic_config.nodes.{at}"] = f"{node}:{self.ports[node]}"
        values |= self.settings | {key.replace("__", "."): value for key, value in instead.items()}
        return "".join(f"{key} = {value}\n" for key, value in values.items())

    def start(self, name, **instead):
        """Start a node."""
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        amqp = self.amqp.get(name, "127.0.0.1:0")
        self.nodes[name] = Leveret(self.binary, directory, self.config(name, **instead), amqp=amqp)
        return self.nodes[name]

    def start_alone(self, name):
        """Start a node without a cluster, which knows the secret of this one."""
        give_back([self.ports.get(name)])
        self.ports[name] = free_port()
        own = ("nodename", "listeners.cluster.default", "cluster.secret_file")
        lines = self.config(name).splitlines(keepends=True)
        (self.directory / name).mkdir()
        config = "".join(line for line in lines if line.startswith(own))
        self.nodes[name] = Leveret(self.binary, self.directory / name, config)
        return self.nodes[name]

    def start_all(self):
        """Start every node, and wait until they serve clients; the last one, which leads or does not."""
        for name in self.names:
            self.start(name)
        self.await_service()
        return self.nodes[self.names[-1]]

    def await_service(self):
        """Wait until every node serves clients."""
        for node in self.nodes.values():
            ready = "/api/health/checks/ready-to-serve-clients"
            eventually(lambda node=node: node.api.ask(ready).status == 200)
            eventually(lambda node=node: node.api.do("GET", "/api/vhosts/%2F").get("leader"))

    def kill_and_start_again(self):
        """End all nodes without a warning, and start them again."""
        for node in self.nodes.values():
            node.kill()
        for node in self.nodes.values():
            node.start_again()
        self.await_service()

    def seen(self, name):
        """The nodes that a node lists, each with whether it runs."""
        return {node["name"]: node["running"] for node in self.nodes[name].api.do("GET", "/api/nodes")}

    def await_seen(self, name, running):
        """Wait until a node sees exactly these nodes running."""
        wanted = {node: node in running for node in self.names}
        eventually(lambda: self.seen(name) == wanted)

    def suspend(self, name):
        """Stop the process of a node without ending it: its sockets stay open."""
        os.kill(self.nodes[name].process.pid, signal.SIGSTOP)

    def resume(self, name):
        os.kill(self.nodes[name].process.pid, signal.SIGCONT)

    def log(self, name):
        """The log of a node."""
        return "".join(self.nodes[name].log)

    def stop(self):
        """End all nodes at once. Their clients are still connected, and a node that is asked to stop waits for them."""
        for node in self.nodes.values():
            if node.alive:
                node.kill()
            node.check_log()
        give_back(self.ports.values())
