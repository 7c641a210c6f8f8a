"""The management API: every field of RabbitMQ's answers about clients, queues, vhosts and the node, with its type.

What Leveret has not is listed here, so that nothing is lost unseen; `shapes.py` records the answers of a RabbitMQ.
"""

import json
import time

import pytest

import shapes
from brokers import quoted
from patience import Patience

SPANS = "lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5&data_rates_age=60&data_rates_incr=5"

# Fields that Leveret does not have, by answer.
MISSING = {
    "quorum queue": ["messages_active_priorities", "messages_by_priority", "messages_ready_returned", "publishers"],
    "node": ["applications[]", "applications[].name", "applications[].description", "applications[].version",
             "config_files[]", "contexts[].protocol"],
    "overview": ["contexts[].protocol"],
    "feature flags": ["[].callbacks[]"],
}
MISSING["overview with its past"] = MISSING["overview"]

# Fields that RabbitMQ leaves out, or has no value for, before the first event or the second request.
SOMETIMES = ("idle_since", "policy", "operator_policy", "message_stats.publish")


class Scene:
    """A client that does a little of everything, and the paths that show it."""

    def __init__(self, client):
        self.client, self.api = client, client.broker.api
        ch = client.channel().confirm_select()
        self.queue = ch.queue(durable=True)
        self.quorum = ch.queue("quorum", name="qq")
        exchange = ch.exchange()
        ch.bind(self.queue, exchange, "k")
        ch.publish("k", "a", "b", exchange=exchange)
        ch.publish(self.quorum, "c")
        ch.get(self.queue)
        ch.get(self.quorum)
        ch.consume(self.queue, tag="me", prefetch=5)
        sock = ch.connection.pika._transport._sock
        (here, port), (there, peer_port) = sock.getsockname(), sock.getpeername()
        connection = quoted(f"{here}:{port} -> {there}:{peer_port}")
        node = quoted(self.api.ask("/api/overview").json["node"])
        self.paths = {
            "connection": f"connections/{connection}",
            "channel": f"channels/{connection}%20({ch.number})",
            "channels": f"connections/{connection}/channels",
            "queue": "queues/" + quoted("/", self.queue),
            "quorum queue": "queues/" + quoted("/", self.quorum),
            "queue with its past": "queues/" + quoted("/", self.queue) + f"?columns=name,message_stats.publish_details,messages_details&{SPANS}",
            "exchange": "exchanges/" + quoted("/", exchange),
            "vhost": "vhosts/%2F",
            "overview": "overview",
            "overview with its past": "overview?" + SPANS,
            "node": "nodes/" + node,
            "memory": f"nodes/{node}/memory",
            "whoami": "whoami",
            "cluster name": "cluster-name",
            "feature flags": "feature-flags",
            "deprecated features": "deprecated-features",
        }

    def shape_of(self, name, is_whole):
        """The shape of an answer, once it `is_whole` or the time is over."""
        patience = Patience()
        while True:
            answer = self.api.ask("/api/" + self.paths[name])
            shape = shapes.shape(answer.json) if answer.status == 200 else {}
            if is_whole(shape) or patience.is_over():
                return shape
            time.sleep(0.2)


def is_same(ours, theirs):
    """Whether a type is another's; a field that RabbitMQ has no value for may have one, or be an empty text."""
    return ours == theirs or theirs == "null" or (ours == "null" and theirs == "text")


@pytest.fixture
def scene(client):
    """The paths are requested while their client lives."""
    return Scene(client)


@pytest.mark.alone
def test_answers_have_the_fields_of_rabbitmq(scene):
    recorded = json.loads(shapes.RECORDED.read_text())
    assert recorded.keys() == scene.paths.keys()
    for name, theirs in recorded.items():
        known = MISSING.get(name, [])
        expected = [path for path in theirs if path not in known and not path.endswith(SOMETIMES)]
        ours = scene.shape_of(name, lambda shape: all(path in shape for path in expected))
        assert [path for path in expected if path not in ours] == [], name
        wrong = {path: (ours[path], kind) for path, kind in theirs.items()
                 if path in ours and not is_same(ours[path], kind)}
        assert wrong == {}, name
        if scene.client.broker.name == "leveret":
            assert [path for path in known if path in ours] == [], name
