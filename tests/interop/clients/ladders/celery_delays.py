"""The delayed delivery of kombu, which Celery uses, declared and addressed by kombu's own functions."""

import kombu
from kombu import Connection, Exchange, Producer, Queue
from kombu.transport.native_delayed_delivery import (bind_queue_to_native_delayed_delivery_exchange,
                                                     calculate_routing_key,
                                                     declare_native_delayed_delivery_exchanges_and_queues, level_name)

import ladder
import runner
from ladder import LEVELS


class Ladder:
    """28 levels of queues of one type; every message enters at the top."""

    def __init__(self, queue_type, prefix=None):
        self.name = f"Celery, {queue_type} queues"
        self.endpoint = runner.unique()
        self._queue_type = queue_type
        self._prefix = prefix
        self.connect()

    def connect(self):
        self._connection = Connection(f"amqp://guest:guest@{runner.HOST}:{runner.PORT}//",
                                      transport_options={"confirm_publish": True})
        self._queue = Queue(self.endpoint, Exchange(self.endpoint, "topic"), self.endpoint,
                            queue_arguments={"x-queue-type": self._queue_type})
        self._producer = Producer(self._connection)

    def level(self, level):
        return level_name(level, self._prefix)

    @property
    def _delivery_exchange(self):
        return f"{self._prefix}_celery_delayed_delivery" if self._prefix else "celery_delayed_delivery"

    def arguments(self, level):
        """As kombu declares it."""
        strategy = {"x-dead-letter-strategy": "at-least-once"} if self._queue_type == "quorum" else {}
        return {"x-queue-type": self._queue_type, "x-overflow": "reject-publish", "x-message-ttl": 2 ** level * 1000,
                "x-dead-letter-exchange": self.level(level - 1) if level else self._delivery_exchange, **strategy}

    def declare(self):
        declare_native_delayed_delivery_exchanges_and_queues(self._connection, self._queue_type, self._prefix)
        self._queue(self._connection.default_channel).declare()
        bind_queue_to_native_delayed_delivery_exchange(self._connection, self._queue, self._prefix)

    def publish(self, delay_s, body):
        """Straight to the queue's exchange if there is nothing to wait for, as Celery does."""
        if delay_s == 0:
            self._producer.publish(body, exchange=self.endpoint, routing_key=self.endpoint)
        else:
            self._producer.publish(body, exchange=self.level(LEVELS - 1),
                                   routing_key=calculate_routing_key(delay_s, self.endpoint))

    def delete(self):
        channel = self._connection.default_channel
        for level in range(LEVELS):
            channel.queue_delete(self.level(level))
            channel.exchange_delete(self.level(level))
        channel.exchange_delete(self._delivery_exchange)
        channel.queue_delete(self.endpoint)
        channel.exchange_delete(self.endpoint)
        self._connection.release()


ladder.run(kombu.__version__, lambda: [Ladder("quorum"), Ladder("classic", prefix="interop")])
