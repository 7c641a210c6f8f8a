"""Pods of a StatefulSet without Kubernetes: processes with the network, the files and the variables that each would get.

Each pod has a network of its own on a bridge, at the ports of the manifest. DNS answers as CoreDNS does: the addresses of
the headless service, and for each pod its name and the name of its address. This needs root and namespaces.
"""

import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time

WITHIN_S = 60
NAMESPACE = "shop"
DOMAIN = f"{NAMESPACE}.svc.cluster.local"
SUBNET = "10.1.0"
DNS = f"{SUBNET}.254"


def why_not():
    """The reason why there can be no pods here, or nothing."""
    made = subprocess.run(["unshare", "--net", "--mount", "ip", "link", "add", "br0", "type", "bridge"],
                          capture_output=True, text=True, check=False)
    return None if made.returncode == 0 else f"no namespaces or no bridge here: {made.stderr}"


def eventually(look):
    """What `look` returns as soon as that is true."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing within a minute"
        time.sleep(0.1)
    return found


def does(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True, timeout=WITHIN_S)


class Pod:
    """A pod; `process` is none while it does not run."""

    def __init__(self, pods, ordinal):
        self.pods, self.name, self.address = pods, f"leveret-{ordinal}", f"{SUBNET}.{ordinal + 1}"
        self.host = f"{self.name}.{pods.service}.{DOMAIN}"
        self.folder = pods.folder / self.name
        self.folder.mkdir()
        self.log, self.process = self.folder / "log", None
        values = {"POD_NAME": self.name, "POD_NAMESPACE": NAMESPACE}
        for one in pods.variables:
            known = re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], one.get("value", ""))
            key = one.get("valueFrom", {}).get("secretKeyRef", {}).get("key")
            values.setdefault(one["name"], pods.secret[key] if key else known)
        self.node = values["RABBITMQ_NODENAME"]
        self.environment = os.environ | values | {"LEVERET_DATA_DIR": str(self.folder / "data")}
        # As the kubelet writes them.
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{self.address} {self.host} {self.name}\n")
        (self.folder / "resolv.conf").write_text(
            f"search {DOMAIN} svc.cluster.local cluster.local\nnameserver {DNS}\noptions ndots:5\n")
        self.keeper = pods.keep("unshare", "--net", "--mount", "sh", "-c", 'mount --bind "$0/hosts" /etc/hosts && '
                                'mount --bind "$0/resolv.conf" /etc/resolv.conf && exec sleep infinity', self.folder)
        eventually(lambda: pathlib.Path(f"/proc/{self.keeper.pid}/comm").read_text() == "sleep\n")
        link = f"to-{ordinal}"
        does(*pods.inside, "ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self.keeper.pid)
        does(*pods.inside, "ip", "link", "set", link, "master", "br0", "up")
        self.inside = ["nsenter", f"--target={self.keeper.pid}", "--net", "--mount"]
        for words in ("addr add {}/24 dev eth0", "link set eth0 up", "link set lo up"):
            does(*self.inside, "ip", *words.format(self.address).split())

    def start(self):
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                [*self.inside, self.pods.programs / "leveret", "--config", self.pods.folder / "rabbitmq.conf"],
                stdout=file, stderr=subprocess.STDOUT, env=self.environment)
        self.pods.tell_dns()
        return self

    def stop(self):
        """Stops as the kubelet does after the hook; returns the exit code."""
        self.process.terminate()
        code, self.process = self.process.wait(WITHIN_S), None
        self.pods.tell_dns()
        return code

    def exec(self, command):
        """The exit code of a command of the manifest."""
        program, *words = command
        tool = self.pods.folder / "tools" / program
        return subprocess.run([*self.inside, tool, *words], env=self.environment, capture_output=True, timeout=WITHIN_S,
                              check=False).returncode

    def running(self):
        """The nodes of the cluster that run, as this one knows them."""
        tool = self.pods.folder / "tools" / "rabbitmqctl"
        told = subprocess.run([*self.inside, tool, "-q", "--formatter", "json", "cluster_status"], env=self.environment,
                              capture_output=True, text=True, timeout=WITHIN_S, check=False)
        return set(json.loads(told.stdout)["running_nodes"]) if told.returncode == 0 else set()


class Pods:
    """The pods of a StatefulSet with the configuration and the variables of the manifests; to be used with `with`."""

    def __init__(self, programs, folder, service, configuration, variables, secret):
        self.programs, self.folder, self.service, self.variables = programs, folder, service, variables
        self.secret, self.kept, self.all = secret, [], []
        (folder / "rabbitmq.conf").write_text(configuration)
        (folder / "tools").mkdir()
        for name in ("rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-upgrade"):
            (folder / "tools" / name).symlink_to(programs / "leveretctl")

    def keep(self, *words):
        process = subprocess.Popen([str(word) for word in words])
        self.kept.append(process)
        return process

    def __enter__(self):
        self.names = self.folder / "names.json"
        self.tell_dns()
        self.dns = self.keep("unshare", "--net", sys.executable, "-B", __file__, self.names, self.service)
        self.inside = ["nsenter", f"--target={self.dns.pid}", "--net"]
        eventually(lambda: (self.folder / "dns-is-there").exists())
        return self

    def __exit__(self, *_):
        for pod in self.all:
            if pod.process:
                pod.process.kill()
                pod.process.wait()
        for process in self.kept:
            process.kill()
            process.wait()

    def add(self):
        self.all.append(Pod(self, len(self.all)))
        return self.all[-1]

    def tell_dns(self):
        """DNS lists the pods that run, ready or not."""
        written = self.folder / "names.next"
        written.write_text(json.dumps({pod.host: pod.address for pod in self.all if pod.process}))
        written.rename(self.names)


def labels_of(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def answer(query, hosts, service):
    """The answer to a query of DNS (RFC 1035) for addresses of version 4 and names of addresses."""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    at += 1
    (kind,) = struct.unpack_from(">H", query, at)
    name, found = ".".join(labels), []
    is_known = name == f"{service}.{DOMAIN}" or name in hosts
    if kind == 1 and is_known:
        addresses = [hosts[name]] if name in hosts else list(hosts.values())
        found = [socket.inet_aton(address) for address in addresses]
    elif kind == 12 and name.endswith(".in-addr.arpa"):
        address = ".".join(reversed(labels[:4]))
        found = [labels_of(host) for host, one in hosts.items() if one == address]
        is_known = bool(found)
    header = query[:2] + struct.pack(">HHHHH", 0x8580 | (0 if is_known else 3), 1, len(found), 0, 0)
    records = [struct.pack(">HHHIH", 0xC00C, kind, 1, 5, len(data)) + data for data in found]
    return header + query[12:at + 4] + b"".join(records)


def serve_dns(names, service):
    """Answers for ever, on the bridge of all pods."""
    # Without an address of its own the bridge takes the lowest of its ports: a pod that comes would change it, and the others,
    # which have just learnt it, would ask nobody for a minute.
    bridge = "link add br0 address 02:00:00:00:00:53 type bridge"
    for words in ("link set lo up", bridge, f"addr add {DNS}/24 dev br0", "link set br0 up"):
        does("ip", *words.split())
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((DNS, 53))
    (names.parent / "dns-is-there").touch()
    while True:
        query, client = server.recvfrom(512)
        server.sendto(answer(query, json.loads(names.read_text()), service), client)


if __name__ == "__main__":
    serve_dns(pathlib.Path(sys.argv[1]), sys.argv[2])
