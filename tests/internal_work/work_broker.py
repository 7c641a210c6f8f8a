"""A broker on a small disk, its clients, its alarm, and a bystander in another vhost."""

import base64
import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

import pika

from broker_process import Broker
from patience import Patience

TIMEOUT_S = 120.0  # a second or less, on a machine that does nothing else
LIMIT_BYTES = 64 << 20
CONFIG = f"""disk_free_limit.absolute = {LIMIT_BYTES}
vm_memory_high_watermark.absolute = 1GB
"""
LOGIN = "Basic " + base64.b64encode(b"guest:guest").decode()
PERSISTENT = 2


class WorkBroker(Broker):
    def __init__(self, binary, folder, disk):
        super().__init__(binary, folder, CONFIG, disk.folder / "data")
        self.disk = disk

    def http(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.http_address}{path}", data, method=method)
        request.add_header("authorization", LOGIN)
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            octets = answer.read()
        return json.loads(octets) if octets else None

    def metric(self, name):
        request = urllib.request.Request(f"http://{self.http_address}/metrics")
        request.add_header("authorization", LOGIN)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            found = re.search(rf"^{name}\b.* ([0-9.e+]+)$", answer.read().decode(), re.MULTILINE)
        return float(found[1])

    def make_vhost(self, name):
        self.http("PUT", f"/api/vhosts/{quote(name, safe='')}")
        self.http("PUT", f"/api/permissions/{quote(name, safe='')}/guest",
                  {"configure": ".*", "write": ".*", "read": ".*"})

    def channel(self, vhost="/"):
        host, port = self.address
        connection = pika.BlockingConnection(pika.ConnectionParameters(
            host, port, vhost, heartbeat=0, socket_timeout=TIMEOUT_S))
        return connection.channel()

    def node(self):
        return quote(self.http("GET", "/api/overview")["node"], safe="")

    def set_disk_limit(self, bytes_free):
        """The limit is in force when this returns, and so is the alarm."""
        self.http("PUT", f"/api/nodes/{self.node()}/disk-free-limit", {"absolute": bytes_free})

    @contextlib.contextmanager
    def alarm(self):
        """The disk alarm is on meanwhile, though there is room."""
        self.set_disk_limit(1 << 50)
        yield
        self.set_disk_limit(LIMIT_BYTES)

    def assert_well(self):
        assert self.process.poll() is None, self.said()[-3000:]
        assert self.errors() == []
        assert "panicked" not in self.said()


class Bystander:
    """The bystander of the hostile suite, in a vhost of its own."""

    def __init__(self, broker, vhost="bystander"):
        broker.make_vhost(vhost)
        host, port = broker.address
        program = Path(__file__).with_name("in_vhost.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program), host, str(port), vhost, str(broker.process.pid)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.latencies_s()

    def latencies_s(self):
        """How long each round took since the last question, ascending; nothing was lost, changed or repeated.

        `worst_s` is then the longest one by the stopwatch.
        """
        self.process.stdin.write("how do you fare?\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["failure"] is None, f"the bystander suffered: {answer['failure']}"
        self.worst_s = answer["worst_s"]
        return sorted(answer["latencies_s"])

    def stop(self):
        self.process.stdin.close()
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()


def wait_until(holds, what, timeout_s=TIMEOUT_S):
    patience = Patience(timeout_s)
    while not holds():
        assert not patience.is_over(), f"not in time: {what}"
        time.sleep(0.02)


def count(channel, queue):
    return channel.queue_declare(queue, passive=True).method.message_count


def declare(channel, queue, ttl_ms=None, exchange=None, key=None):
    """A durable queue that dead-letters to an exchange, or to a queue by its key."""
    arguments = {}
    if ttl_ms is not None:
        arguments["x-message-ttl"] = ttl_ms
    if exchange is not None:
        arguments["x-dead-letter-exchange"] = exchange
    if key is not None:
        arguments["x-dead-letter-routing-key"] = key
    channel.queue_declare(queue, durable=True, arguments=arguments)


def publish(channel, queue, body=b"m", headers=None, exchange="", expiration=None):
    properties = pika.BasicProperties(delivery_mode=PERSISTENT, headers=headers, expiration=expiration)
    channel.basic_publish(exchange, queue, body, properties)
