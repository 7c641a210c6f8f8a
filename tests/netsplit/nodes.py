"""A cluster whose links can be harmed, and the way of clients into it: by any node."""

import json
import signal
import subprocess
import threading
import time

import pika

import disk
from broker_process import Broker
from cluster_processes import GONE, Cluster
from foreign import Tls
from ledger import Fault
from ports import free_ports, give_back

ASK_TIMEOUT_S = 1.0
# A node holds `connection.open` for 8 s.
OPEN_TIMEOUT_S = 12.0
VHOSTS = {"/": "quorum", "classic": "classic"}


class Node(Broker):
    """A node that may be suspended."""

    is_suspended = False
    ends = False  # it was killed, or told to stop
    environment = {}

    def launch(self, environment=None, **options):
        super().launch(self.environment | (environment or {}), **options)

    def slow_syncs(self, library, sync_ms):
        """From its next life on, every sync of its disk takes so long."""
        rules = self.folder / "rules"
        rules.write_text(f"0 fsync 0 1000000000 delay:{sync_ms} *\n")
        self.environment = disk.environment(library, self.data, rules)

    def suspend(self):
        self.process.send_signal(signal.SIGSTOP)
        self.is_suspended = True

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_suspended = False

    def kill(self):
        self.ends = True
        super().kill()
        self.is_suspended = False

    def ask_to_stop(self):
        """Lets it end as an operator does, without waiting for that; its clients find it no more."""
        self.ends = True
        self.process.send_signal(signal.SIGTERM)

    def wait_for_end(self):
        try:
            code = self.end()
        except subprocess.TimeoutExpired:
            raise Fault(f"a node does not stop: {self.said()[-2000:]}") from None
        if code:
            raise Fault(f"a node stops with the code {code}: {self.said()[-2000:]}")

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def relaunch(self):
        """Begins another life; clients find it once it listens."""
        if not self.ends:
            raise Fault("a node has ended by itself")
        self.address = None
        self.ends = False
        self.launch()

    def open(self, vhost):
        """A connection of a client; `OSError` if the node is down."""
        if self.address is None:
            raise ConnectionRefusedError("the node starts")
        host, port = self.address
        return pika.BlockingConnection(pika.ConnectionParameters(
            host, port, vhost, heartbeat=0, socket_timeout=OPEN_TIMEOUT_S, stack_timeout=OPEN_TIMEOUT_S,
            blocked_connection_timeout=OPEN_TIMEOUT_S))


class SplitCluster(Cluster):
    """Nodes with a vhost for each queue type, whose links are proxies, and whose disks may be slow."""

    def __init__(self, binary, folder, network, names, with_tls=False, sync_ms=0):
        self.sync_ms = sync_ms
        library = disk.compile_library("faults", folder) if sync_ms else None
        self.tls = Tls(folder, dict(zip(names, free_ports(len(names))))) if with_tls else None

        def make(binary, folder, config):
            node = Node(binary, folder, config + (self.tls.config(folder.name) if self.tls else ""))
            node.host, node.prefix = network.host(folder.name), network.prefix(folder.name)
            if sync_ms:
                node.slow_syncs(library, sync_ms)
            return node

        self.network = network
        hosts = {name: network.host(name) for name in names}
        super().__init__(binary, folder, "loopback_users = none\n", make, names, network.via, hosts)

    def begin(self):
        """Starts all nodes, and makes the vhosts."""
        self.start()
        name = next(iter(self.nodes))
        for vhost, queue_type in VHOSTS.items():
            path = f"/api/vhosts/{vhost.replace('/', '%2F')}"
            self.request(name, "PUT", path, {"default_queue_type": queue_type})
            # Connections that are lost must not end a message.
            self.request(name, "PUT", path.replace("vhosts", "policies") + "/no-limit", {
                "pattern": "^crash[.](work|dead)$|^split[.]", "definition": {"delivery-limit": -1},
                "apply-to": "queues"})

    def leader_now(self, vhost="/"):
        """The node that says of itself that it leads, as far as one answers."""
        for name in self.awake():
            try:
                text = self.text(name, "/metrics", ASK_TIMEOUT_S)
            except OSError:
                continue
            if f'leveret_replica_state{{vhost="{vhost}",state="leader"}} 1\n' in text:
                return name
        return None

    def ask_to_transfer(self, to):
        """Asks for another leader of each vhost, without waiting for the answer: it may be no."""
        def ask(vhost):
            try:
                name = self.leader_now(vhost) or next(iter(self.awake()))
                path = f"/api/vhosts/{vhost.replace('/', '%2F')}/leader"
                self.request(name, "POST", path, {"node": self.full_names[to]})
            except (OSError, StopIteration):
                return

        for vhost in VHOSTS:
            threading.Thread(target=ask, args=(vhost,), daemon=True).start()

    def awake(self):
        return [name for name, node in self.nodes.items()
                if node.is_running() and node.address and not node.is_suspended and not node.ends]

    def heal(self, reset=False):
        """Ends all faults: every link works, every node runs; the instant at which that was so."""
        for node in self.nodes.values():
            if node.is_suspended:
                node.resume()
        self.network.rule({}, reset)
        for node in self.nodes.values():
            if node.ends and node.is_running():
                node.wait_for_end()
            if not node.is_running():
                node.relaunch()
        self.listen()
        return time.monotonic()

    def ended(self):
        """What a node says that has ended by itself, if one has."""
        for name, node in self.nodes.items():
            if not node.is_running() and not node.ends:
                return f"node {name} has ended by itself: {node.said()[-3000:]}"
        return None

    def check_replicas(self):
        """No replica differs from others, and no node has met an error or an end that nobody made."""
        if ended := self.ended():
            raise Fault(ended)
        for name in self.nodes:
            if 'state="quarantined"} 1\n' in self.text(name, "/metrics"):
                raise Fault(f"a replica of node {name} is quarantined")
        if errors := self.errors():
            raise Fault(f"a node says: {errors[0]}")

    def close(self):
        self.stop()
        if self.tls:
            give_back(self.tls.ports.values())
        self.network.close()


class Entrance:
    """Stands for a broker: each client is connected to a node that is drawn."""

    def __init__(self, cluster, vhost, rng):
        self.cluster, self.vhost, self.rng = cluster, vhost, rng

    @property
    def http_address(self):
        return self.cluster.nodes[self.rng.choice(self.cluster.awake())].http_address

    def connect(self):
        nodes = [node for node in self.cluster.nodes.values() if node.is_running() and node.address]
        if not nodes:
            raise ConnectionRefusedError("all nodes are down")
        return self.rng.choice(nodes).open(self.vhost)

    def ask(self, path):
        """An answer of the management API of a node that is drawn."""
        return self.cluster.request(self.rng.choice(self.cluster.awake()), "GET", path)


def settled(entrance, within_s):
    """Waits until no message is with a client, because the connections of all clients are gone; what is left after that
    time, as text."""
    vhost = entrance.vhost.replace("/", "%2F")
    deadline, last = time.monotonic() + within_s, None
    while time.monotonic() < deadline:
        try:
            queues = entrance.ask(f"/api/queues/{vhost}")
            left = {queue["name"]: queue["messages_unacknowledged"] for queue in queues
                    if queue["messages_unacknowledged"]}
            if not left:
                return None
            last = json.dumps(left)
        except GONE as problem:
            last = repr(problem)
        time.sleep(0.1)
    return last
