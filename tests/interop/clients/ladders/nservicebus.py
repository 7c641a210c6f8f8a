"""The delay infrastructure of NServiceBus.RabbitMQ, version 2, and its conventional routing topology."""

import pika

import ladder
import runner
from ladder import LEVELS

DELIVERY_EXCHANGE = "nsb.v2.delay-delivery"


class Ladder:
    """28 levels of quorum queues; the message enters at the level of its highest bit."""

    name = "NServiceBus"

    def __init__(self):
        self.endpoint = runner.unique()
        self.connect()

    def connect(self):
        self._channel = ladder.connect().channel()
        self._channel.confirm_delivery()

    def level(self, level):
        return f"nsb.v2.delay-level-{level:02}"

    def arguments(self, level):
        return {"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
                "x-message-ttl": 2 ** level * 1000,
                "x-dead-letter-exchange": self.level(level - 1) if level else DELIVERY_EXCHANGE}

    def declare(self):
        channel = self._channel
        for level in reversed(range(LEVELS)):
            channel.exchange_declare(self.level(level), "topic", durable=True)
            channel.queue_declare(self.level(level), durable=True, arguments=self.arguments(level))
            channel.queue_bind(self.level(level), self.level(level), self._key(level, "1"))
        channel.exchange_declare(DELIVERY_EXCHANGE, "topic", durable=True)
        for level in reversed(range(LEVELS)):
            below = self.level(level - 1) if level else DELIVERY_EXCHANGE
            channel.exchange_bind(below, self.level(level), self._key(level, "0"))
        channel.queue_declare(self.endpoint, durable=True, arguments={"x-queue-type": "quorum"})
        channel.exchange_declare(self.endpoint, "fanout", durable=True)
        channel.queue_bind(self.endpoint, self.endpoint, "")
        channel.exchange_bind(self.endpoint, DELIVERY_EXCHANGE, f"#.{self.endpoint}")

    def _key(self, level, bit):
        """A binding key for one bit of the routing key: those above it may be anything."""
        return "*." * (LEVELS - 1 - level) + f"{bit}.#"

    def publish(self, delay_s, body):
        """Straight to the endpoint if there is nothing to wait for."""
        properties = pika.BasicProperties(delivery_mode=2, headers={
            "NServiceBus.Transport.RabbitMQ.DelayInSeconds": delay_s})
        if delay_s == 0:
            self._channel.basic_publish(self.endpoint, "", body, properties, mandatory=True)
        else:
            bits = ".".join(f"{delay_s:0{LEVELS}b}")
            highest = self.level(delay_s.bit_length() - 1)
            self._channel.basic_publish(highest, f"{bits}.{self.endpoint}", body, properties, mandatory=True)

    def delete(self):
        for level in range(LEVELS):
            self._channel.queue_delete(self.level(level))
            self._channel.exchange_delete(self.level(level))
        self._channel.exchange_delete(DELIVERY_EXCHANGE)
        self._channel.queue_delete(self.endpoint)
        self._channel.exchange_delete(self.endpoint)
        self._channel.connection.close()


ladder.run("v2", lambda: [Ladder()])
