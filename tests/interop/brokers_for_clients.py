"""The brokers under test: a Leveret with TLS for each client, or a RabbitMQ that runs already."""

import contextlib
import random
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "blackbox" / "support"))

from brokers import Leveret  # noqa: E402
from certificates import Authority  # noqa: E402

MAX_MESSAGE_SIZE_BYTES = 64 * 1024 * 1024  # the default is 16 MiB, and one scenario sends 20 MB

SETTINGS = """
max_message_size = {size}
listeners.ssl.1 = 127.0.0.1:{port}
ssl_options.cacertfile = {authority}
ssl_options.certfile = {certificate}
ssl_options.keyfile = {key}
"""


def free_port():
    """A free port that stays free while the broker restarts: below those that outgoing connections are given."""
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.randrange(10_000, max(end, 20_000))))
            return probe.getsockname()[1]


class Own:
    """A Leveret process for one client."""

    cannot = {}

    def __init__(self, binary, directory):
        authority = Authority(directory)
        pair = authority.sign("localhost", key_type="rsa")
        amqp, amqps = free_port(), free_port()
        settings = SETTINGS.format(size=MAX_MESSAGE_SIZE_BYTES, port=amqps, authority=authority.file,
                                   certificate=pair.certificate, key=pair.key)
        self._leveret = Leveret(binary, directory, settings, amqp=f"127.0.0.1:{amqp}")
        self.environment = {
            "AMQP_HOST": "localhost", "AMQP_PORT": str(amqp), "AMQPS_PORT": str(amqps), "CA_FILE": str(authority.file),
            "HTTP_URL": self._leveret.api.url}

    def restart(self):
        """Without a warning: what was confirmed must be there again."""
        self._leveret.kill_and_start_again()

    def stop(self):
        """Also fails when the broker died or panicked."""
        self._leveret.stop()


class Foreign:
    """A RabbitMQ that runs already, to try the programs themselves."""

    cannot = {"tls": "not tried against a broker of others", "restart": "not tried against a broker of others",
              "large": "its max_message_size is not ours to set", "http-api": "its HTTP API is not told"}

    def __init__(self, amqp):
        host, port = amqp.rsplit(":", 1)
        self.environment = {"AMQP_HOST": host, "AMQP_PORT": port}

    def stop(self):
        """It goes on."""
