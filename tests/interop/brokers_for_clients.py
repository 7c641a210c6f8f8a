"""The brokers under test: a Leveret with TLS for each client, a cluster of them, or a RabbitMQ that runs already."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "blackbox" / "support"))

from brokers import Leveret  # noqa: E402
from certificates import Authority  # noqa: E402
from clusters import Cluster  # noqa: E402
from moving_leaders import MovingLeaders  # noqa: E402
from ports import free_ports, give_back  # noqa: E402

MAX_MESSAGE_SIZE_BYTES = 64 * 1024 * 1024  # the default is 16 MiB, and one scenario sends 20 MB


class Tls:
    """The certificate of the nodes of a client's broker."""

    def __init__(self, directory):
        self.authority = Authority(directory)
        self.pair = self.authority.sign("localhost", key_type="rsa")

    def settings(self, amqps):
        """The settings of a node whose listener for TLS has this port."""
        return {"max_message_size": MAX_MESSAGE_SIZE_BYTES, **self.authority.listener(self.pair, amqps)}

    def environment(self, amqp, amqps, api, others=()):
        """What a client is told of a node, and of the management APIs of the other ones."""
        return {"AMQP_HOST": "localhost", "AMQP_PORT": str(amqp), "AMQPS_PORT": str(amqps),
                "CA_FILE": str(self.authority.file), "HTTP_URL": api.url,
                "HTTP_URLS": " ".join(one.url for one in (api, *others))}


class Own:
    """A Leveret process for one client."""

    cannot = {}
    moves = 0

    def __init__(self, binary, directory):
        tls, self._ports = Tls(directory), free_ports(2)
        amqp, amqps = self._ports
        settings = "".join(f"{key} = {value}\n" for key, value in tls.settings(amqps).items())
        self._leveret = Leveret(binary, directory, settings, amqp=f"127.0.0.1:{amqp}")
        self.environment = tls.environment(amqp, amqps, self._leveret.api)

    def has_moved_since(self, _):
        """It leads all the time."""
        return False

    def restart(self):
        """Without a warning: what was confirmed must be there again."""
        self._leveret.kill_and_start_again()

    def stop(self):
        """Also fails when the broker died or panicked."""
        self._leveret.stop()
        give_back(self._ports)


class Clustered:
    """A cluster of Leveret processes for one client, which uses one of them, while another one may come to lead."""

    cannot = {}

    def __init__(self, binary, directory, nodes, move_leaders_s):
        tls, self._moving = Tls(directory), None
        self._cluster = Cluster(binary, directory, "abcde"[:nodes])
        amqps, self._ports = {}, free_ports(2 * nodes)
        for name, amqp, amqps[name] in zip(self._cluster.names, self._ports[:nodes], self._ports[nodes:]):
            self._cluster.amqp[name] = f"127.0.0.1:{amqp}"
            self._cluster.start(name, **tls.settings(amqps[name]))
        self._cluster.await_service()
        name = self._cluster.names[-1]
        node = self._cluster.nodes[name]
        others = [other.api for other in self._cluster.nodes.values() if other is not node]
        self.environment = tls.environment(node.amqp[1], amqps[name], node.api, others)
        if move_leaders_s is not None:
            self._moving = MovingLeaders(self._cluster, move_leaders_s)

    def has_moved_since(self, began):
        """True if a leader has moved after this time of the monotonic clock."""
        return self._moving is not None and self._moving.has_moved_since(began)

    @property
    def moves(self):
        """How often another node came to lead."""
        return self._moving.moves if self._moving is not None else 0

    def restart(self):
        """All nodes at once, without a warning."""
        self._cluster.kill_and_start_again()

    def stop(self):
        """Also fails when a node died or panicked."""
        if self._moving is not None:
            self._moving.stop()
        self._cluster.stop()
        give_back(self._ports)


class Foreign:
    """A RabbitMQ that runs already, to try the programs themselves."""

    cannot = {"tls": "not tried against a broker of others", "restart": "not tried against a broker of others",
              "large": "its max_message_size is not ours to set", "http-api": "its HTTP API is not told",
              "page": "its metrics are not told"}
    moves = 0

    def __init__(self, amqp):
        host, port = amqp.rsplit(":", 1)
        self.environment = {"AMQP_HOST": host, "AMQP_PORT": port}

    def has_moved_since(self, _):
        """Its leaders are its own affair."""
        return False

    def stop(self):
        """It goes on."""
