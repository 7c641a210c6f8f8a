"""Three Leveret processes that are one cluster, each on a data directory that outlives it."""

import base64
import json
import random
import socket
import time
import urllib.request

import pika
import pika.adapters.utils.connection_workflow
import pika.exceptions

from broker_process import Broker
from ledger import Fault

NAMES = ("a", "b", "c")
LEADER_TIMEOUT_S = 30.0
GONE = (pika.exceptions.AMQPError, pika.adapters.utils.connection_workflow.AMQPConnectorException, OSError, EOFError)


class NoLeader(OSError):
    """No node serves clients, as it must be without a majority."""


def free_ports(count):
    """Ports of the loopback address that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """Stands for a broker: a client is connected to the node that leads, and a kill takes some of the nodes."""

    def __init__(self, binary, folder, config="", make=Broker):
        ports = dict(zip(NAMES, free_ports(len(NAMES))))
        (folder / "secret").write_text("the secret of three nodes on one machine\n")
        (folder / "secret").chmod(0o600)
        shared = config + "cluster_formation.peer_discovery_backend = classic_config\n"
        shared += f"cluster.secret_file = {folder / 'secret'}\n"
        for number, (name, port) in enumerate(ports.items(), 1):
            shared += f"cluster_formation.classic_config.nodes.{number} = {name}@127.0.0.1:{port}\n"
        self.nodes = {}
        for name, port in ports.items():
            (folder / name).mkdir()
            own = f"nodename = {name}@127.0.0.1\nlisteners.cluster.default = 127.0.0.1:{port}\n"
            self.nodes[name] = make(binary, folder / name, own + shared)
        self.leader = None
        self.failovers = []

    @property
    def http_address(self):
        """The address of the node that leads, as far as known."""
        return self.nodes[self.leader or NAMES[0]].http_address

    def leading_address(self):
        """Host and port for AMQP of the node that led when a client connected last."""
        return self.nodes[self.leader].address

    def running(self):
        return [name for name, node in self.nodes.items() if node.process and node.process.poll() is None]

    def start(self):
        """Starts every node that is down; the seconds until one of them serves clients."""
        began = time.monotonic()
        down = [node for name, node in self.nodes.items() if name not in self.running()]
        for node in down:
            node.launch()
        for node in down:
            if not node.wait_until(node.is_listening, LEADER_TIMEOUT_S):
                raise Fault(f"a node does not start: {node.said()[-1000:]}")
        self.served()
        return time.monotonic() - began

    def set_default_queue_type(self, queue_type):
        """The type of queues that are declared without one, on every node."""
        for node in self.nodes.values():
            request = urllib.request.Request(
                f"http://{node.http_address}/api/vhosts/%2F", method="PUT",
                data=json.dumps({"default_queue_type": queue_type}).encode(),
                headers={"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(),
                         "Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=10).close()

    def served(self):
        """Waits until a node serves clients."""
        try:
            self.connect().close()
        except NoLeader as problem:
            raise Fault(str(problem)) from None

    def connect(self):
        """A connection to the leader."""
        deadline, last = time.monotonic() + LEADER_TIMEOUT_S, None
        while True:
            first = [self.leader] if self.leader else []
            for name in first + [name for name in NAMES if name not in first]:
                if name not in self.running():
                    continue
                try:
                    connection = self.nodes[name].connect()
                    self.leader = name
                    return connection
                except GONE as problem:
                    last = problem
            if time.monotonic() > deadline:
                raise NoLeader(f"no node serves clients: {last!r}")
            time.sleep(0.01)

    def kill(self, rng=random):
        """Kills the leader, or a follower, or two nodes, or all; names of the killed ones."""
        running = self.running()
        followers = [name for name in running if name != self.leader]
        killed = rng.choices(
            ([self.leader], [rng.choice(followers)], [self.leader, rng.choice(followers)], running),
            weights=(6, 2, 2, 1))[0]
        for name in killed:
            self.nodes[name].kill()
        if killed == [self.leader] and len(running) == len(NAMES):
            began = time.monotonic()
            self.served()
            self.failovers.append(time.monotonic() - began)
        return killed

    def stop(self):
        """Ends all nodes that run, for good."""
        for name in self.running():
            self.nodes[name].kill()

    def errors(self):
        """The lines of the nodes' present lives that say ERROR."""
        return [f"{name}: {line}" for name, node in self.nodes.items() for line in node.errors()]
