"""The topologies of Spring AMQP and of Spring Cloud Stream's RabbitMQ binder, with their headers.

`autoBindDlq`, `dlqTtl` and `dlqDeadLetterExchange` make a queue whose dead letters wait and come back, counted by
`x-death`, until the application puts them into a parking lot; `delayedExchange` makes exchanges of the plugin's type.
"""

import time

import pika

from endpoint import Endpoint, runner, with_endpoint

DLQ_TTL_MS = 300
ATTEMPTS = 3


class Spring(Endpoint):
    def declare(self):
        if not hasattr(self, "name"):
            self.name = runner.unique()
        self.destination, self.group = self.name, f"{self.name}.billing"
        self.dlx, self.dlq, self.parking_lot = f"{self.name}.DLX", f"{self.group}.dlq", f"{self.group}.parkingLot"
        self.delayed, self.delayed_queue = f"{self.name}.delayed", f"{self.name}.delayed.queue"
        self.exchange(self.destination, "topic")
        self.queue(self.group, {"x-dead-letter-exchange": self.dlx, "x-dead-letter-routing-key": self.group})
        self.channel.queue_bind(self.group, self.destination, "#")
        self.exchange(self.dlx, "direct")
        self.queue(self.dlq, {
            "x-dead-letter-exchange": self.destination, "x-dead-letter-routing-key": self.group,
            "x-message-ttl": DLQ_TTL_MS})
        self.channel.queue_bind(self.dlq, self.dlx, self.group)
        self.queue(self.parking_lot)
        self.exchange(self.delayed, "x-delayed-message", {"x-delayed-type": "direct"})
        self.queue(self.delayed_queue)
        self.channel.queue_bind(self.delayed_queue, self.delayed, "work")

    def listen(self):
        """The application: rejects what fails, and parks it when it has failed often enough."""
        for attempt in range(ATTEMPTS):
            got, properties, body = self.take(self.group)
            deaths = {death["queue"]: death for death in (properties.headers or {}).get("x-death", [])}
            failed = deaths.get(self.group, {"count": 0})["count"]
            assert failed == attempt, (attempt, properties.headers)
            if attempt:
                waited = deaths[self.dlq]
                assert (waited["reason"], waited["count"]) == ("expired", attempt), waited
                assert time.monotonic() - self.rejected_at >= DLQ_TTL_MS / 1000
            if attempt == ATTEMPTS - 1:
                self.publish("", self.parking_lot, body, {
                    **properties.headers, "x-exception-message": "no funds", "x-original-exchange": self.destination,
                    "x-original-routingKey": "orders"})
                self.channel.basic_ack(got.delivery_tag)
                return
            self.rejected_at = time.monotonic()
            self.channel.basic_reject(got.delivery_tag, requeue=False)

    def publish_delayed(self, delay_ms):
        """Not mandatory: the plugin returns such a message at once, and Spring's documentation says so."""
        self.channel.basic_publish(self.delayed, "work", b"%d" % delay_ms, pika.BasicProperties(
            delivery_mode=2, headers={"x-delay": delay_ms}))


def declare(spring):
    spring.declare()
    for queue in spring.queues:
        assert spring.count(queue) == 0


def wait_queue(spring):
    """A message fails, waits and comes back, until it is parked."""
    spring.publish(spring.destination, "orders", b"order", {"a": 1})
    spring.listen()
    _, properties, body = spring.take(spring.parking_lot)
    assert body == b"order" and properties.headers["a"] == 1 and properties.message_id == "1"
    assert properties.headers["x-first-death-queue"] == spring.group
    assert spring.count(spring.group) == spring.count(spring.dlq) == 0


def delayed_exchange(spring):
    """`setDelayLong` of a template, and what `getReceivedDelayLong` reads."""
    sent = time.monotonic()
    for delay_ms in (700, 300):
        spring.publish_delayed(delay_ms)
    received = {}
    while len(received) < 2:
        _, properties, body = spring.take(spring.delayed_queue)
        received[int(body)] = abs(properties.headers["x-delay"])
        assert time.monotonic() - sent >= int(body) / 1000
    assert received == {700: 700, 300: 300}


def restart(spring):
    """The broker is killed while messages wait in both ways."""
    spring.publish(spring.destination, "orders", b"order", {})
    got, *_ = spring.take(spring.group)
    spring.channel.basic_reject(got.delivery_tag, requeue=False)
    sent = time.monotonic()
    # Behind a confirm on the same channel the reject is on disk, too.
    spring.publish_delayed(1500)
    runner.restart_broker()
    spring.connect()
    _, properties, body = spring.take(spring.group)
    deaths = {death["queue"]: death["count"] for death in properties.headers["x-death"]}
    assert body == b"order" and deaths == {spring.group: 1, spring.dlq: 1}, deaths
    _, _, body = spring.take(spring.delayed_queue)
    assert body == b"1500" and time.monotonic() - sent >= 1.5


runner.run(pika.__version__, {name: with_endpoint(Spring, scenario) for name, scenario in {
    "declare": declare, "wait-queue": wait_queue, "delayed-exchange": delayed_exchange, "restart": restart}.items()})
