"""The topology of MassTransit's RabbitMQ transport: an exchange for each message type, one for each endpoint, and delayed
redelivery through an exchange of the delayed-message plugin's type."""

import time

import pika

from endpoint import Endpoint, runner, with_endpoint

INTERVALS_MS = (200, 500)


class MassTransit(Endpoint):
    def declare(self):
        if not hasattr(self, "name"):
            self.name = runner.unique()
        self.message_type, self.delay = f"Contracts:{self.name}", f"{self.name}_delay"
        self.error, self.skipped = f"{self.name}_error", f"{self.name}_skipped"
        self.exchange(self.message_type, "fanout")
        for name in (self.name, self.error, self.skipped):
            self.exchange(name, "fanout")
            self.queue(name, {"x-queue-type": "quorum"})
            self.channel.queue_bind(name, name)
        self.channel.exchange_bind(self.name, self.message_type)
        self.exchange(self.delay, "x-delayed-message", {"x-delayed-type": "fanout"})
        self.channel.exchange_bind(self.name, self.delay)

    def redeliver(self, got, body, count, delay_ms):
        """Sends a copy with a delay, then acknowledges."""
        self.channel.basic_publish(self.delay, "", body, pika.BasicProperties(
            delivery_mode=2, headers={"MT-Redelivery-Count": count, "x-delay": delay_ms}))
        self.channel.basic_ack(got.delivery_tag)


def declare(bus):
    bus.declare()
    for queue in bus.queues:
        assert bus.count(queue) == 0


def redelivery(bus):
    """A consumer fails, is called again after each interval, and the message goes to the error queue at last."""
    bus.publish(bus.message_type, "", b"{}", {"Content-Type": "application/vnd.masstransit+json"})
    got, _, body = bus.take(bus.name)
    for count, interval_ms in enumerate(INTERVALS_MS, start=1):
        sent = time.monotonic()
        bus.redeliver(got, body, count, interval_ms)
        got, properties, body = bus.take(bus.name)
        assert time.monotonic() - sent >= interval_ms / 1000
        assert properties.headers["MT-Redelivery-Count"] == count, properties.headers
    bus.publish(bus.error, "", body, {"MT-Reason": "fault", "MT-Fault-Message": "no funds"})
    bus.channel.basic_ack(got.delivery_tag)
    _, properties, body = bus.take(bus.error)
    assert (body, properties.headers["MT-Reason"]) == (b"{}", "fault")
    assert bus.count(bus.name) == 0


def skipped(bus):
    """A message that no consumer understands is moved, not lost."""
    bus.publish(bus.name, "", b"?", {})
    got, _, body = bus.take(bus.name)
    bus.publish(bus.skipped, "", body, {"MT-Reason": "dead-letter"})
    bus.channel.basic_ack(got.delivery_tag)
    assert bus.take(bus.skipped)[2] == b"?"


def restart(bus):
    """The broker is killed while a redelivery waits, and another one is due meanwhile."""
    sent = time.monotonic()
    for number, delay_ms in enumerate((1, 1500)):
        bus.channel.basic_publish(bus.delay, "", b"%d" % number, pika.BasicProperties(
            delivery_mode=2, headers={"x-delay": delay_ms, "MT-Redelivery-Count": 1}))
    runner.restart_broker()
    bus.connect()
    assert bus.take(bus.name)[2] == b"0"
    assert bus.take(bus.name)[2] == b"1" and time.monotonic() - sent >= 1.5
    bus.connection.close()  # nothing was acknowledged
    bus.connect()
    assert sorted(bus.take(bus.name)[2] for _ in range(2)) == [b"0", b"1"]


runner.run(pika.__version__, {name: with_endpoint(MassTransit, scenario) for name, scenario in {
    "declare": declare, "redelivery": redelivery, "skipped": skipped, "restart": restart}.items()})
