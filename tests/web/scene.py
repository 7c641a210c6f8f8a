"""A shop whose messages expire, are rejected and retried, for pages to have something to show."""

import json
import threading
import time

import pika

from clients import connect

ORDER = json.dumps({"order": 4711, "customer": "Ada", "lines": [{"item": "tea", "count": 2}]})
POLICIES = {
    "TTL": ("^sms$", {"message-ttl": 60_000, "dead-letter-exchange": "dlx"}, "queues"),
    "shop": ("^orders", {"dead-letter-exchange": "retry", "max-length": 10_000}, "queues"),
}


class Scene:
    """Queues, exchanges and policies of a shop, and a thread that keeps it busy until `stop`."""

    def __init__(self, broker):
        self.broker = broker
        for name, (pattern, definition, apply_to) in POLICIES.items():
            policy = {"pattern": pattern, "definition": definition, "apply-to": apply_to, "priority": 1}
            broker.api.do("PUT", f"/api/policies/%2F/{name}", policy)
        limit = {"pattern": ".*", "definition": {"max-length-bytes": 100_000_000}, "apply-to": "queues", "priority": 0}
        broker.api.do("PUT", "/api/operator-policies/%2F/nobody-fills-the-disk", limit)
        self.connection = self._connect()
        self.channel = self.connection.channel()
        self._declare()
        self._fill()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._be_busy, daemon=True)
        self.thread.start()

    def _connect(self):
        return connect(self.broker, client_properties={"connection_name": "shop"})

    def _declare(self):
        channel = self.channel
        for exchange, kind in [("shop", "topic"), ("dlx", "direct"), ("retry", "direct")]:
            channel.exchange_declare(exchange, kind, durable=True)

        def queue(name, exchange=None, keys=(), **arguments):
            arguments = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
            channel.queue_declare(name, durable=True, arguments=arguments)
            for key in keys:
                channel.queue_bind(name, exchange, key)

        queue("sms", "shop", ["sms.#"])
        queue("dead-sms", "dlx", ["sms.code", "sms.news"])
        queue("orders", "shop", ["order.*"])
        queue("orders.wait", "retry", ["order.new", "order.paid"], message_ttl=30_000, dead_letter_exchange="shop")
        queue("mails", "shop", ["mail"], queue_type="quorum", dead_letter_exchange="dlx", delivery_limit=3,
              dead_letter_routing_key="nobody")
        queue("reports", "shop", ["report"], message_ttl=5_000, dead_letter_exchange="archive")
        queue("reminders")
        queue("audit", "shop", ["#"], max_length=500, overflow="drop-head")

    def _publish(self, key, body, exchange="shop", **properties):
        self.channel.basic_publish(exchange, key, body, pika.BasicProperties(delivery_mode=2, **properties))

    def _fill(self):
        for number in range(40):
            self._publish("sms.code", f"Your code is {1000 + number}", expiration="200", message_id=f"sms-{number}")
            self._publish("sms.news", "Tea is cheap today", headers={"campaign": "autumn", "try": number})
            self._publish("order.new", ORDER, content_type="application/json", headers={"tenant": f"t{number % 3}"})
        for number in range(12):
            self._publish("mail", bytes(range(256)) if number % 4 == 0 else "Dear Ada", content_type="text/plain")
        for number in range(90):
            headers = {"x-opt-delivery-delay": 60_000 + number * number * 700, "x-schedule-id": f"reminder-{number}"}
            self._publish("reminders", "Your tea is cold", exchange="", headers=headers, message_id=f"r{number}")
        time.sleep(0.5)
        for _ in range(6):
            method, _, _ = self.channel.basic_get("orders")
            self.channel.basic_reject(method.delivery_tag, requeue=False)

    def _be_busy(self):
        connection = self._connect()
        channel = connection.channel()
        channel.basic_qos(prefetch_count=20)
        channel.basic_consume("orders", lambda *_: None, consumer_tag="packer")
        number = 0
        while not self.done.is_set():
            number += 1
            properties = pika.BasicProperties(expiration=str(1_000 + number * 37 % 20_000), delivery_mode=2)
            channel.basic_publish("shop", "sms.news", "Tea is cheap today", properties)
            channel.basic_publish("shop", "order.paid", ORDER)
            connection.process_data_events(0.02)
        connection.close()

    def stop(self):
        """Ends the thread."""
        self.done.set()
        self.thread.join()
        self.connection.close()
