"""The brokers under load: a new Leveret process for each scenario, or one RabbitMQ that runs already."""

import contextlib
import shlex
import socket
import subprocess
import time
from pathlib import Path

import brokers
from memory import fill_what_logins_left
from peer import Peer

from measure import MB, resident_bytes

LISTEN = "0A"
GIVEN_BACK_S = 2.0  # until a start has given back what hashing the first password took


class Leveret:
    name = "Leveret"
    is_ours = True

    def __init__(self, binary):
        self.binary = binary

    @contextlib.contextmanager
    def running(self, config="", watermark_bytes=None, handshake_timeout_s=10):
        """A fresh process with an address and a `pid`."""
        config += f"handshake_timeout = {handshake_timeout_s * 1000}\n"
        if watermark_bytes:
            config += f"vm_memory_high_watermark.absolute = {watermark_bytes}\n"
        broker = brokers.Leveret(self.binary, config=config)
        try:
            broker.handshake_timeout_s = handshake_timeout_s
            broker.watermark_bytes = watermark_bytes
            time.sleep(GIVEN_BACK_S)
            broker.start_bytes = resident_bytes(broker.pid)
            broker.start_own_bytes = resident_bytes(broker.pid, "RssAnon")
            with broker.peer() as ballast:
                if not watermark_bytes:
                    fill_what_logins_left(ballast)
                yield broker
            broker.assert_alive()
        finally:
            broker.stop()


class RabbitMQ:
    is_ours = False

    def __init__(self, address, rabbitmqctl):
        self.address, self.rabbitmqctl = address, shlex.split(rabbitmqctl)
        self.pid = listener_of(address[1])
        with Peer(address) as peer:
            properties = dict(peer.start().server_properties)
        self.name = f"RabbitMQ {properties['version'][1].decode()}"

    @contextlib.contextmanager
    def running(self, config="", watermark_bytes=None, handshake_timeout_s=10):
        """The same process every time; it has its own configuration and 10 s for a handshake."""
        broker = brokers.RabbitMQ(self.address)
        broker.pid, broker.handshake_timeout_s = self.pid, 10
        broker.start_bytes = broker.start_own_bytes = None
        broker.watermark_bytes = watermark_bytes
        try:
            if watermark_bytes:
                # What earlier scenarios have left behind is not to be in the way.
                broker.watermark_bytes = watermark_bytes + resident_bytes(self.pid)
                self._set_watermark("absolute", str(broker.watermark_bytes // MB) + "MB")
            yield broker
        finally:
            if watermark_bytes:
                self._set_watermark("0.6")

    def _set_watermark(self, *value):
        subprocess.run([*self.rabbitmqctl, "set_vm_memory_high_watermark", *value], check=True, capture_output=True)


def listener_of(port):
    """The id of the process that listens on a port of this machine."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == LISTEN and int(columns[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{columns[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(entry.readlink()) in inodes for entry in (process / "fd").iterdir()):
                return int(process.name)
    raise SystemExit(f"no process of this machine listens on port {port}")


def parsed_address(text):
    host, port = text.rsplit(":", 1)
    return socket.gethostbyname(host), int(port)
