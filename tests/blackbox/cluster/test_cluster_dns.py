"""Nodes that DNS lists: they wait until it lists them all, and remember each other from then on.

The nodes have a file of their own in the place of /etc/hosts, which their resolver reads before it asks a server.
"""

import os
import json
import re
import signal
import subprocess
import time

import pytest

from brokers import Api
from patience import PATIENCE_S, eventually
from ports import free_port

pytestmark = [pytest.mark.better]

HOST = "nodes.test"
ADDRESSES = {"a": "127.0.0.11", "b": "127.0.0.12", "c": "127.0.0.13", "d": "127.0.0.14", "e": "127.0.0.15"}
FIRST = "abc"
ALL = {f"leveret@{letter}.{HOST}" for letter in FIRST}
# A node looks again every second.
LOOKS_S = 2.5
# A mount of its own, which others than root need a user namespace for.
UNSHARE = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])


class Node:
    """A process of a node, which may wait for the others."""

    def __init__(self, binary, directory, letter, config, hosts):
        self.directory, self.log_path = directory, directory / "log"
        (directory / "leveret.conf").write_text(config)
        run = 'mount --bind "$0" /etc/hosts && exec "$@"'
        self.command = [*UNSHARE, "sh", "-c", run, str(hosts), binary, "--data-dir", str(directory / "data"),
                        "--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--config", str(directory / "leveret.conf")]
        self.start()

    def start(self):
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(self.command, stderr=log, stdout=subprocess.DEVNULL)

    def log(self):
        return self.log_path.read_text()

    def waits(self):
        """The lines that tell why the node waits."""
        return [line for line in self.log().splitlines() if "waiting for the nodes of the cluster" in line]

    def knows_cluster(self):
        record = self.directory / "data" / "cluster.json"
        return record.exists() and int(json.loads(record.read_text())["cluster"], 16) != 0

    def api(self):
        """The API of the node, once it serves."""
        found = eventually(lambda: re.search(r"HTTP on 127\.0\.0\.1:(\d+)", self.log()))
        return Api(f"http://127.0.0.1:{found[1]}")

    def stop(self):
        """Stop the process; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def found(pytestconfig, by_broker, tmp_path):
    """`found(letter, **instead)` starts a node; `found.list(letters)` sets what DNS lists."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ's clusters are of Erlang")
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces here")
    hosts, secret, port = tmp_path / "hosts", tmp_path / "secret", free_port()
    secret.write_text("the secret of this cluster\n")
    secret.chmod(0o600)
    nodes = []

    def start(letter, **instead):
        directory = tmp_path / letter
        directory.mkdir(exist_ok=True)
        values = {"nodename": f"leveret@{letter}.{HOST}", "listeners.cluster.default": f"{ADDRESSES[letter]}:{port}",
                  "cluster_formation.peer_discovery_backend": "dns", "cluster_formation.dns.hostname": HOST,
                  "cluster_formation.target_cluster_size_hint": 3, "cluster.secret_file": secret}
        values |= {key.replace("__", "."): value for key, value in instead.items()}
        config = "".join(f"{key} = {value}\n" for key, value in values.items())
        nodes.append(Node(pytestconfig.getoption("--leveret-bin"), directory, letter, config, hosts))
        return nodes[-1]

    def list_(letters, known="abc"):
        lines = [f"{ADDRESSES[letter]} {letter}.{HOST} {HOST if letter in letters else ''}\n" for letter in known]
        # In place: the file is mounted.
        hosts.write_text("127.0.0.1 localhost\n" + "".join(lines))

    start.list = list_
    yield start
    for node in nodes:
        node.process.kill()
        node.process.wait()


def running(node):
    return {one["name"] for one in node.api().do("GET", "/api/nodes") if one["running"]}


def test_nodes_wait_until_dns_lists_all_and_remember_each_other(found):
    found.list("ab", known="ab")
    nodes = {letter: found(letter) for letter in FIRST}
    two = f"'{HOST}' lists 2 of 3 nodes: leveret@a.{HOST}, leveret@b.{HOST}"
    for node in nodes.values():
        eventually(lambda node=node: node.waits())
        assert two in node.waits()[0] and "cluster_formation.target_cluster_size_hint is 3" in node.waits()[0]
    time.sleep(LOOKS_S)
    for node in nodes.values():
        assert len(node.waits()) == 1, "a reason that lasts is not logged at every look"
        assert not node.knows_cluster() and "AMQP on" not in node.log()
    # A node that waits can be stopped.
    assert nodes["c"].stop() == 0
    nodes["c"].start()
    found.list("abc")
    for node in nodes.values():
        eventually(lambda node=node: running(node) == ALL)
        eventually(lambda node=node: node.api().ask("/api/health/checks/ready-to-serve-clients").status == 200)
    assert "DNS lists all nodes of the cluster" in nodes["a"].log()
    # DNS lists one node now: the others are known, by the file of the first start.
    found.list("b")
    assert nodes["b"].stop() == 0
    nodes["b"].start()
    eventually(lambda: running(nodes["b"]) == ALL)
    assert nodes["b"].waits() == []


def test_cluster_grows_by_nodes_that_dns_lists_more(found):
    found.list(FIRST)
    nodes = {letter: found(letter) for letter in FIRST}
    for node in nodes.values():
        eventually(lambda node=node: running(node) == ALL)
    # One is there before the other: neither founds another cluster, nor waits for the number.
    found.list("abcd", known="abcde")
    for letter in "de":
        nodes[letter] = found(letter, cluster_formation__target_cluster_size_hint=5)
        eventually(lambda letter=letter: f"leveret@{letter}.{HOST}" in running(nodes["a"]))
    assert "this node joins a cluster" in nodes["d"].log() and "this node joins a cluster" in nodes["e"].log()
    whole = ALL | {f"leveret@{letter}.{HOST}" for letter in "de"}
    for node in nodes.values():
        eventually(lambda node=node: running(node) == whole)
    # The old nodes find the new ones in their file, whatever their configuration says.
    assert nodes["b"].stop() == 0
    nodes["b"].start()
    eventually(lambda: running(nodes["b"]) == whole)


def test_node_that_dns_does_not_list_waits(found):
    found.list("abc")
    node = found("a", nodename="leveret@a")
    eventually(node.waits)
    assert f"'{HOST}' does not list this node, 'leveret@a' (see nodename): leveret@a.{HOST}" in node.waits()[0]
    other = found("b", cluster_formation__dns__hostname="nowhere.invalid")
    eventually(other.waits)
    assert "cannot look up the addresses of 'nowhere.invalid'" in other.waits()[0]
    assert not node.knows_cluster() and not other.knows_cluster()
