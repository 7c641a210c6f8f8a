"""Leveret processes that are one cluster, three if nothing else is said, each on a data directory that outlives it."""

import base64
import json
import random
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pika
import pika.adapters.utils.connection_workflow
import pika.exceptions

sys.path.append(str(Path(__file__).resolve().parent.parent / "machine"))

from broker_process import ANSWER_TIMEOUT_S, Broker  # noqa: E402 - needs the path
from ledger import Fault  # noqa: E402
from patience import Patience  # noqa: E402
from ports import free_ports, give_back  # noqa: E402

NAMES = ("a", "b", "c")
LEADER_TIMEOUT_S = 120.0
GONE = (pika.exceptions.AMQPError, pika.adapters.utils.connection_workflow.AMQPConnectorException, OSError, EOFError)


class NoLeader(OSError):
    """No node serves clients, as it must be without a majority."""


class Cluster:
    """Stands for a broker: a client is connected to the node that leads, and a kill takes some of the nodes.

    `via` is asked at which port one node dials another one that listens at a port; without it, that is the same port.
    Nodes are on this machine's loopback address, or where `hosts` says.
    """

    def __init__(self, binary, folder, config="", make=Broker, names=NAMES, via=None, hosts=None):
        self.binary, self.folder, self.make, self.via, self.hosts = binary, folder, make, via, hosts or {}
        (folder / "secret").write_text("the secret of three nodes on one machine\n")
        (folder / "secret").chmod(0o600)
        self.shared = config + "cluster_formation.peer_discovery_backend = classic_config\n"
        self.shared += f"cluster.secret_file = {folder / 'secret'}\n"
        self.full_names, self.ports, self.nodes = {}, {}, {}
        self.name_nodes(*names)
        for name in names:
            self.add(name)
        self.leader = None
        self.failovers = []

    def name_nodes(self, *names):
        """Gives nodes their names and ports, before any of them is configured."""
        self.ports.update(zip(names, free_ports(len(names))))
        self.full_names.update({name: f"{name}@{self.hosts.get(name, '127.0.0.1')}" for name in names})

    def own_config(self, name):
        """The lines of one node alone: its name and its listener for links."""
        host = self.full_names[name].split("@")[1]
        return f"nodename = {name}@{host}\nlisteners.cluster.default = {host}:{self.ports[name]}\n"

    def add(self, name, config=None):
        """A node, which is not started yet. Its configuration lists all nodes, if nothing else is said."""
        if name not in self.ports:
            self.name_nodes(name)
        if config is None:
            config = "".join(
                f"cluster_formation.classic_config.nodes.{number} = {self.place_of(other, name)}\n"
                for number, other in enumerate(self.ports, 1))
        (self.folder / name).mkdir(exist_ok=True)
        self.nodes[name] = self.make(self.binary, self.folder / name, self.own_config(name) + config + self.shared)
        return self.nodes[name]

    def place_of(self, name, seen_by=None):
        """Name and address of a node, as another one dials it."""
        port = self.ports[name]
        dialed = self.via(seen_by, name, port) if self.via and seen_by not in (None, name) else port
        return f"{self.full_names[name]}:{dialed}"

    def remove(self, name):
        """Forgets a node here: it is not started any more."""
        if self.leader == name:
            self.leader = None
        give_back([self.ports[name]])
        del self.full_names[name], self.ports[name], self.nodes[name]

    @property
    def http_address(self):
        """The address of the node that leads, as far as known."""
        return self.nodes[self.leader or next(iter(self.nodes))].http_address

    def leading_address(self):
        """Host and port for AMQP of the node that led when a client connected last."""
        return self.nodes[self.leader].address

    def running(self):
        return [name for name, node in self.nodes.items() if node.process and node.process.poll() is None]

    def start(self):
        """Starts every node that is down; the seconds until one of them serves clients."""
        began = time.monotonic()
        self.launch_all_but()
        self.listen()
        self.served()
        return time.monotonic() - began

    def launch_all_but(self, *names):
        """Starts every node that is down, but these."""
        for name, node in self.nodes.items():
            if name not in names and name not in self.running():
                node.launch()

    def listen(self):
        """Waits until every node serves clients or holds them."""
        for node in self.nodes.values():
            if not node.wait_until(node.is_listening, LEADER_TIMEOUT_S):
                raise Fault(f"a node does not start: {node.said()[-1000:]}")

    def set_default_queue_type(self, queue_type):
        """The type of queues that are declared without one, on every node."""
        for node in self.nodes.values():
            request = urllib.request.Request(
                f"http://{node.http_address}/api/vhosts/%2F", method="PUT",
                data=json.dumps({"default_queue_type": queue_type}).encode(),
                headers={"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(),
                         "Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S).close()

    def served(self):
        """Waits until a node serves clients."""
        try:
            self.connect().close()
        except NoLeader as problem:
            raise Fault(str(problem)) from None

    def leads(self, name):
        """Whether a node says of itself that it leads; it may still be about to serve."""
        request = urllib.request.Request(f"http://{self.nodes[name].http_address}/api/vhosts/%2F")
        request.add_header("Authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
        with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
            return (json.load(answer).get("leader") or "").split("@")[0] == name

    def connect(self):
        """A connection to the leader, without a node between."""
        patience, last = Patience(LEADER_TIMEOUT_S), None
        while True:
            first = [self.leader] if self.leader else []
            for name in first + [name for name in self.nodes if name not in first]:
                if name not in self.running():
                    continue
                try:
                    if not self.leads(name):
                        continue
                    connection = self.nodes[name].connect()
                    self.leader = name
                    return connection
                except GONE as problem:
                    last = problem
            if patience.is_over():
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
        if killed == [self.leader] and len(running) == len(self.nodes):
            began = time.monotonic()
            self.served()
            self.failovers.append(time.monotonic() - began)
        return killed

    def request(self, name, method, path, body=None):
        """The answer of a node's management API, from JSON."""
        request = urllib.request.Request(
            f"http://{self.nodes[name].http_address}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(),
                     "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=LEADER_TIMEOUT_S) as answer:
            return json.loads(answer.read() or b"null")

    def text(self, name, path, timeout_s=LEADER_TIMEOUT_S):
        """A text of a node's management API."""
        request = urllib.request.Request(
            f"http://{self.nodes[name].http_address}{path}",
            headers={"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()})
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.read().decode()

    def transfer_when_possible(self, to, timeout_s):
        """Lets this node lead once it can, because it has just started."""
        patience = Patience(timeout_s)
        while True:
            try:
                leader = self.request(to, "GET", "/api/vhosts/%2F")["leader"]
                self.leader = leader.split("@")[0] if leader else self.leader
                if self.leader == to or self.transfer(to) == to:
                    return
            except urllib.error.HTTPError as refused:
                if refused.code != 503 or patience.is_over():
                    raise Fault(refused.read().decode()) from None
            time.sleep(0.1)

    def transfer(self, to=None):
        """Lets another node lead; its name."""
        body = {} if to is None else {"node": self.full_names[to]}
        answer = self.request(self.leader, "POST", "/api/vhosts/%2F/leader", body)
        self.leader = answer["leader"].split("@")[0]
        return self.leader

    def change_leader(self, rng=random):
        """Lets another node lead, by command or because the leader stops; what was done."""
        if rng.random() < 0.3 and len(self.running()) == len(self.nodes):
            self.nodes[self.leader].stop()
            return "stop"
        try:
            self.transfer(rng.choice([name for name in self.running() if name != self.leader]))
        except urllib.error.HTTPError as refused:
            # The other node may be starting, or the leader have lost the lead.
            if refused.code != 503:
                raise
            return "refused transfer"
        return "transfer"

    def stop(self):
        """Ends all nodes that run, for good."""
        for name in self.running():
            self.nodes[name].kill()
        give_back(self.ports.values())

    def errors(self):
        """The lines of the nodes' present lives that say ERROR."""
        return [f"{name}: {line}" for name, node in self.nodes.items() for line in node.errors()]
