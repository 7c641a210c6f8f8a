"""The firehose: while tracing is on in a vhost, published and delivered messages are copied to amq.rabbitmq.trace."""

import pytest

from brokers import quoted

TRACE = "amq.rabbitmq.trace"


class Firehose:
    """A vhost of its own: a channel for the traced client, one for the listener, and the listener's queue."""

    def __init__(self, client, vhost):
        self.api, self.vhost = client.broker.api, vhost
        self.node = self.api.ask("/api/overview").json["node"]
        self.ch = client.channel(vhost=vhost).confirm_select()
        self.listener = client.channel(vhost=vhost)
        self.heard = self.listener.queue(name="heard")
        self.listener.bind(self.heard, TRACE, "#")

    def set(self, on):
        """Turn it on or off."""
        answer = self.api.ask("/api/vhosts/" + quoted(self.vhost), method="PUT", body={"tracing": on})
        assert answer.status in (201, 204), answer

    def next(self):
        """The next copy: the routing key, the body, and the headers with their wire types."""
        message = self.listener.take(self.heard)
        assert message.exchange == TRACE
        return message.routing_key, message.body, {f.name: (f.type, f.value) for f in message.headers.fields}

    def is_silent(self):
        return self.listener.stays(self.heard, 0)


@pytest.fixture
def firehose(defined, prefix):
    vhost = prefix + "v"
    defined(vhosts=[vhost])
    firehose = Firehose(defined.client, vhost)
    firehose.set(True)
    return firehose


def plain(value):
    """A value as a test writes it: tables as dicts of (type, value), arrays as lists."""
    if hasattr(value, "fields"):
        return {field.name: (field.type, plain(field.value)) for field in value.fields}
    return value


def origin(firehose, exchange, *keys, channel=1):
    """The headers that everything has."""
    address = "{}:{}".format(*firehose.ch.connection.pika._transport._sock.getsockname()[:2])
    host, port = firehose.ch.connection.client.broker.amqp
    return {
        "channel": ("I", channel), "connection": ("S", f"{address} -> {host}:{port}"), "exchange_name": ("S", exchange),
        "node": ("S", firehose.node), "properties": ("F", {}), "routing_keys": ("A", [("S", key) for key in keys]),
        "user": ("S", "guest"), "vhost": ("S", firehose.vhost),
    }


def told(firehose):
    key, body, headers = firehose.next()
    headers = {name: (type, plain(value)) for name, (type, value) in headers.items()}
    if "routed_queues" in headers:
        headers["routed_queues"][1].sort()
    return key, body, headers


def test_publish_and_its_deliveries_are_copied(firehose):
    ch = firehose.ch
    q, r = ch.queue(name="q"), ch.queue(name="r")
    for queue in (q, r):
        ch.bind(queue, "amq.fanout")
    properties = {
        "content_type": "a/b", "content_encoding": "c", "delivery_mode": 2, "priority": 4, "correlation_id": "d",
        "reply_to": "e", "expiration": "60000", "message_id": "f", "timestamp": 1234567890, "type": "g",
        "user_id": "guest", "app_id": "h", "cluster_id": "i",
    }
    ch.publish("key", "body", exchange="amq.fanout", headers={"n": 1, "CC": ["x"], "BCC": ["y"]}, **properties)
    shown = {name: ("I" if isinstance(value, int) else "S", value) for name, value in properties.items()}
    shown["headers"] = ("F", {"CC": ("A", [("S", "x")]), "n": ("I", 1)})
    headers = origin(firehose, "amq.fanout", "key", "x", "y") | {"properties": ("F", shown)}
    routed = {"routed_queues": ("A", sorted([("S", q), ("S", r)]))}
    assert told(firehose) == ("publish.amq.fanout", "body", headers | routed)
    message = ch.get(q, ack=False)
    assert told(firehose) == ("deliver." + q, "body", headers | {"redelivered": ("I", 0)})
    ch.nack(message, requeue=True)
    ch.take(q)
    assert told(firehose) == ("deliver." + q, "body", headers | {"redelivered": ("I", 1)})
    ch.consume(r).next()
    assert told(firehose) == ("deliver." + r, "body", headers | {"redelivered": ("I", 0)})
    assert firehose.is_silent()


@pytest.mark.better
def test_unroutable_message_is_copied(firehose, by_broker):
    firehose.ch.publish("nope", "u")
    routed = {"routed_queues": ("A", by_broker(rabbitmq=[("S", "nope")], leveret=[]))}
    assert told(firehose) == ("publish.", "u", origin(firehose, "", "nope") | routed)


def test_dead_letter_is_copied_when_it_is_delivered(firehose):
    ch = firehose.ch
    dead = ch.queue(name="dead")
    q = ch.queue(name="q", message_ttl=20, dead_letter_exchange="", dead_letter_routing_key=dead)
    ch.publish(q, "a")
    assert told(firehose)[0] == "publish."
    ch.take(dead)
    key, _, headers = told(firehose)
    assert key == "deliver." + dead
    deaths = headers["properties"][1]["headers"][1]
    assert deaths["x-first-death-queue"] == ("S", q)
    assert firehose.is_silent()


def test_transaction_is_copied_when_it_is_published(firehose):
    tx = firehose.ch.connection.channel()
    q = tx.queue(name="q")
    tx.tx_select()
    tx.publish(q, "a")
    assert told(firehose)[2]["routed_queues"] == ("A", [("S", q)])
    tx.tx_commit()
    assert firehose.is_silent()


def test_firehose_does_not_trace_itself(firehose):
    consumer = firehose.listener.consume(firehose.heard, auto_ack=True)
    q = firehose.ch.queue(name="q")
    firehose.ch.publish(q, "a")
    assert consumer.next().routing_key == "publish."
    assert consumer.hears_nothing()


def test_the_api_is_traced_like_everybody(firehose):
    q = firehose.ch.queue(name="q")
    message = {"routing_key": q, "properties": {}, "payload": "a", "payload_encoding": "string"}
    get = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    for path, body in (("exchanges", "amq.default", "publish"), message), (("queues", q, "get"), get):
        what, name, verb = path
        path = "/api/" + quoted(what, firehose.vhost, name, verb)
        assert firehose.api.ask(path, method="POST", body=body).status == 200
    assert [told(firehose)[0] for _ in range(2)] == ["publish.", "deliver." + q]


def test_firehose_can_be_turned_off(firehose):
    q = firehose.ch.queue(name="q")
    firehose.set(False)
    firehose.ch.publish(q, "a")
    assert firehose.is_silent()
    firehose.set(True)
    firehose.ch.publish(q, "b")
    assert told(firehose)[1] == "b"
