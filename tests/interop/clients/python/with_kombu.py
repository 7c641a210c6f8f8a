"""kombu over py-amqp, through every scenario; ../../README.md says what each does."""

import queue as waiting
import ssl
import threading
import time

import amqp.exceptions
import kombu
from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.mixins import ConsumerMixin

import expected
import runner
from runner import unique

RETRIES = {"interval_start": 0.1, "interval_step": 0.1, "interval_max": 0.5, "max_retries": 20}


def connection(confirmed=True, **options):
    """A connection on which every publish returns when it is confirmed, unless that is not wanted."""
    return Connection(**{"hostname": runner.HOST, "port": runner.PORT, "userid": "guest", "password": "guest",
                         "virtual_host": "/", "transport_options": {"confirm_publish": confirmed}, **options})


def declared(channel, name=None, **options):
    """A queue of the scenario's own, in kombu's units: message_ttl and expires are seconds."""
    queue = Queue(name or unique(), **{"exclusive": True, **options}).bind(channel)
    queue.declare()
    return queue


def count(queue):
    return queue.queue_declare(passive=True).message_count


def publish(channel, queue, body=b"", **options):
    Producer(channel).publish(body, routing_key=queue.name, **options)


def get(queue):
    return queue.get(no_ack=True)


def wait_for(queue):
    """The next message, when it comes."""
    runner.eventually(lambda: count(queue), f"a message in {queue.name}")
    return get(queue)


class Deliveries:
    """The messages of a consumer, in the order in which they come."""

    def __init__(self, channel, queue, prefetch_count=None, **options):
        self._connection = channel.connection
        self.come = []
        self.consumer = Consumer(channel, [queue], on_message=self.come.append, accept=["text/plain", "json"],
                                 prefetch_count=prefetch_count, **options)
        self.consumer.consume()

    def next(self):
        while not self.come:
            self._connection.drain_events(timeout=expected.WITHIN_S)
        return self.come.pop(0)


def round_trip(opened):
    opened.connect()
    channel = opened.channel()
    queue = Queue("", exclusive=True).bind(channel)
    queue.declare()
    assert queue.name.startswith("amq.gen-"), queue
    sent = {"correlation_id": "c-1", "reply_to": "somewhere", "message_id": "m-1", "timestamp": 1_700_000_000,
            "type": "greeting", "user_id": "guest", "app_id": "interop", "delivery_mode": 2, "priority": 3}
    Producer(channel).publish({"hello": "world"}, routing_key=queue.name, headers=expected.HEADERS, **sent)
    message = queue.get()
    assert message.payload == {"hello": "world"}, message
    assert (message.content_type, message.content_encoding) == ("application/json", "utf-8"), message
    expected.check_headers(message.headers)
    assert {name: message.properties[name] for name in sent} == sent, message.properties
    assert (message.delivery_info["routing_key"], message.delivery_info["redelivered"]) == (queue.name, False)
    message.ack()
    assert queue.get() is None
    channel.close()
    assert not channel.is_open and opened.connected
    opened.release()
    assert not opened.connected


def connect():
    round_trip(connection())


def tls():
    round_trip(Connection(f"amqps://guest:guest@{runner.HOST}:{runner.TLS_PORT}//", ssl={
        "ca_certs": runner.CA_FILE, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": runner.HOST}))


def confirms():
    with connection() as opened:
        channel, returned = opened.channel(), []
        queue = declared(channel, exclusive=False, durable=True)
        for number in range(1000):
            publish(channel, queue, {"number": number})
        assert count(queue) == 1000
        queue.delete()
        producer = Producer(channel, on_return=lambda *told: returned.append(told))
        producer.publish(b"nobody", routing_key=unique(), mandatory=True)
        ((error, _, _, message),) = returned
        assert (error.reply_code, error.reply_text, bytes(message.body)) == (312, "NO_ROUTE", b"nobody"), returned
        short = declared(channel, max_length=1, queue_arguments={"x-overflow": "reject-publish"})
        publish(channel, short)
        try:
            publish(channel, short)
            raise AssertionError("the second message was not refused")
        except amqp.exceptions.MessageNacked:
            assert count(short) == 1


def prefetch():
    with connection() as opened:
        channel = opened.channel()
        queue = declared(channel, exclusive=False)  # to kombu, what is exclusive is also deleted with its last consumer
        for number in range(100):
            publish(channel, queue, {"number": number})
        deliveries = Deliveries(channel, queue, prefetch_count=10)
        batch = []
        for number in range(100):
            message = deliveries.next()
            assert message.payload == {"number": number} and not message.delivery_info["redelivered"], message
            batch.append(message)
            if len(batch) == 10:
                assert (count(queue), deliveries.come) == (90 - number // 10 * 10, [])
                for one in batch[:3]:
                    one.ack()
                batch[-1].ack(multiple=True)
                batch = []
        send_back(channel, queue, deliveries)
        deliveries.consumer.cancel()
        assert count(queue) == 0
        queue.delete()


def global_prefetch():
    """kombu goes by product and version to say what `global` means, and Celery by kombu. Both meanings are kept."""
    with connection() as opened:
        properties = opened.connection.server_properties
        assert (properties["product"], properties["version"][:2]) == ("RabbitMQ", "4."), properties
        # Of ten messages two consumers with a prefetch of four leave two, or six when they share it.
        for is_global, left in ((not opened.qos_semantics_matches_spec, 2), (True, 6)):
            with opened.channel() as channel:
                queue = declared(channel)
                for number in range(10):
                    publish(channel, queue, str(number))
                channel.basic_qos(0, 4, is_global)
                consumers = [Deliveries(channel, queue) for _ in range(2)]
                runner.eventually(lambda: count(queue) <= left, f"at most {left} messages are left")
                assert (len(consumers), count(queue)) == (2, left)


def send_back(channel, queue, deliveries):
    publish(channel, queue, b"back")
    deliveries.next().requeue()
    again = deliveries.next()
    assert again.body == b"back" and again.delivery_info["redelivered"], again
    again.reject()
    publish(channel, queue, b"the next one")
    message = deliveries.next()
    assert message.body == b"the next one" and not message.delivery_info["redelivered"], message
    message.ack()


def queue_ttl():
    with connection() as opened:
        channel = opened.channel()
        queue, leased = declared(channel, message_ttl=1), declared(channel, exclusive=False, expires=0.3)
        for _ in range(3):
            publish(channel, queue)
        assert count(queue) == 3
        runner.eventually(lambda: count(queue) == 0, "the messages expire")
        runner.eventually(lambda: is_gone(opened, leased.name), "the queue expires")


def is_gone(opened, name):
    """Asking renews the lease of a queue that is there: do not ask more often than it lasts."""
    time.sleep(0.4)
    try:
        opened.channel().queue_declare(name, passive=True)
    except amqp.exceptions.NotFound as error:
        expected.check_refusal(expected.no_queue(name), error.code, error.reply_text)
        return True
    return False


def message_ttl():
    with connection() as opened:
        channel = opened.channel()
        queue = declared(channel)
        publish(channel, queue, b"short", expiration=1)
        publish(channel, queue, b"long", expiration=60)
        assert count(queue) == 2
        runner.eventually(lambda: count(queue) == 1, "the first message expires")
        message = get(queue)
        assert (message.body, message.properties["expiration"]) == (b"long", "60000"), message
        publish(channel, queue, expiration=0)
        assert get(queue) is None


def dead_letter():
    with connection() as opened:
        channel = opened.channel()
        dead = declared(channel)
        to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
        work = declared(channel, queue_arguments=to_dead)
        short = declared(channel, queue_arguments=to_dead, max_length=1)

        publish(channel, work, b"expires", expiration=0.1)
        message = wait_for(dead)
        assert message.body == b"expires" and "expiration" not in message.properties, message.properties
        expected.check_first_death(message.headers, "expired", work.name, "", work.name, original_expiration="100")

        publish(channel, work, b"rejected")
        work.get().reject()
        message = wait_for(dead)
        assert message.body == b"rejected", message
        expected.check_first_death(message.headers, "rejected", work.name, "", work.name)

        publish(channel, short, b"first")
        publish(channel, short, b"second")
        message = wait_for(dead)
        assert message.body == b"first", message
        expected.check_first_death(message.headers, "maxlen", short.name, "", short.name)
        retry_twice(channel)


def retry_twice(channel):
    work, wait = unique(), unique()
    queue = declared(channel, work, queue_arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait})
    declared(channel, wait, message_ttl=0.1,
             queue_arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": work})
    publish(channel, queue, b"again")
    deliveries = Deliveries(channel, queue)
    for _ in range(2):
        deliveries.next().reject()
    message = deliveries.next()
    assert message.body == b"again", message
    expected.check_retries(message.headers, work, wait, count=2)
    message.ack()


def priorities():
    with connection() as opened:
        channel = opened.channel()
        queue = declared(channel, max_priority=5)
        for priority in (1, 5, 3, None):
            publish(channel, queue, priority=priority)
        order = [get(queue).properties.get("priority") for _ in range(4)]
        assert order == [5, 3, 1, None], order


def transactions():
    with connection(confirmed=False) as opened:
        channel = opened.channel()
        queue = declared(channel, exclusive=False)
        channel.tx_select()
        for end, wanted in ((channel.tx_rollback, 0), (channel.tx_commit, 2)):
            publish(channel, queue)
            publish(channel, queue)
            end()
            assert count(queue) == wanted
        queue.get().ack()
        channel.tx_commit()
        queue.get().ack()  # and never committed
    with connection() as opened:
        queue = queue.bind(opened.channel())
        assert get(queue).delivery_info["redelivered"]
        assert get(queue) is None
        queue.delete()


def rpc():
    with connection() as serving, connection() as asking:
        server, client, answers = serving.channel(), asking.channel(), {}
        queue = declared(server, exclusive=False)
        requests = Deliveries(server, queue)
        reply_to = Queue("amq.rabbitmq.reply-to", no_ack=True, no_declare=True)
        with Consumer(client, [reply_to], on_message=lambda answer: answers.update(
                {answer.properties["correlation_id"]: answer.payload}), accept=["json"], auto_declare=False):
            for number in range(100):
                publish(client, queue, number, reply_to=reply_to.name, correlation_id=f"c-{number}")
            for _ in range(100):
                request = requests.next()
                assert request.properties["reply_to"].startswith("amq.rabbitmq.reply-to."), request.properties
                Producer(server).publish({"answer": request.payload}, routing_key=request.properties["reply_to"],
                                         correlation_id=request.properties["correlation_id"])
                request.ack()
            while len(answers) < 100:
                asking.drain_events(timeout=expected.WITHIN_S)
        assert answers == {f"c-{number}": {"answer": number} for number in range(100)}, answers
        requests.consumer.cancel()
        queue.delete()


def large():
    with connection() as opened:
        channel = opened.channel()
        queue = declared(channel)
        publish(channel, queue, runner.LARGE)
        assert bytes(get(queue).body) == runner.LARGE


def cancel():
    with connection() as consuming, connection() as deleting:
        queue = declared(deleting.channel(), exclusive=False)
        deliveries = Deliveries(consuming.channel(), queue, tag_prefix="worker-")
        queue.delete()
        try:
            deliveries.next()
            raise AssertionError("the consumer was not told")
        except amqp.exceptions.ConsumerCancelled as error:
            assert error.reply_text.startswith("worker-"), error  # the consumer's tag
        assert consuming.connected
        consuming.channel().close()


class Worker(ConsumerMixin):
    """As kombu's documentation has it: this comes back by itself, declares its queues again and consumes."""

    def __init__(self, opened, queue):
        self.connection = opened
        self.queue = queue
        self.come = waiting.Queue()
        self.hold = True

    def get_consumers(self, consumer, channel):
        return [consumer([self.queue], on_message=self.on_message, prefetch_count=1)]

    def on_connection_error(self, exc, interval):
        """The broker is not there yet."""

    def on_message(self, message):
        self.come.put((message.payload, message.delivery_info["redelivered"]))
        if not self.hold:
            message.ack()

    def next(self):
        return self.come.get(timeout=runner.RECOVERED_WITHIN_S)


def restart():
    queue = Queue(unique(), Exchange(unique(), "direct", durable=True), "key", durable=True)
    with connection() as opened:
        channel = opened.channel()
        declared_queue = queue.bind(channel)
        declared_queue.declare()
        for body in ("held", "before"):
            publish(channel, queue, body)
        worker = Worker(connection(), queue)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        assert worker.next() == ("held", False)
        worker.hold = False
        runner.restart_broker()
        assert worker.next() == ("held", True)
        assert worker.next() == ("before", True)
        producer = Producer(opened, queue.exchange)
        producer.publish("after", routing_key="key", retry=True, retry_policy=RETRIES)
        assert worker.next() == ("after", False)
        worker.should_stop = True
        thread.join()
        channel = opened.default_channel
        channel.queue_delete(queue.name)
        channel.exchange_delete(queue.exchange.name)


def errors():
    with connection() as owner, connection() as other:
        queue = declared(owner.channel(), message_ttl=1)
        nobody = unique()
        refused(other, expected.no_queue(nobody), lambda channel: channel.queue_declare(nobody, passive=True))
        refused(other, expected.locked(queue.name), lambda channel: declared(channel, queue.name, exclusive=False))
        refused(owner, expected.inequivalent(queue.name), lambda channel: declared(channel, queue.name, message_ttl=2))
        refused(owner, expected.invalid_expiration(), publish_invalid_expiration)
        assert count(queue) == 0
    not_opened(expected.wrong_password(), password="wrong")
    not_opened(expected.no_vhost(), virtual_host="nope")


def publish_invalid_expiration(channel):
    """kombu's producer takes numbers only; this is the layer below it."""
    channel.basic_publish_confirm(channel.prepare_message(b"", properties={"expiration": "abc"}), routing_key=unique())


def refused(opened, refusal, attempt):
    """The broker closes the channel, and the connection lives on."""
    channel = opened.channel()
    try:
        attempt(channel)
        raise AssertionError(f"not refused: {refusal}")
    except opened.channel_errors as error:
        expected.check_refusal(refusal, error.code, error.reply_text)
    assert opened.connected
    declared(channel)  # py-amqp opens it again by itself


def not_opened(refusal, **options):
    opened = connection(**options)
    try:
        opened.connect()
        raise AssertionError(f"not refused: {refusal}")
    except opened.connection_errors + opened.channel_errors as error:
        expected.check_refusal(refusal, error.code, error.reply_text)


runner.run(kombu.__version__, {
    "connect": connect, "tls": tls, "confirms": confirms, "prefetch": prefetch, "queue-ttl": queue_ttl,
    "message-ttl": message_ttl, "dead-letter": dead_letter, "priorities": priorities, "transactions": transactions,
    "rpc": rpc, "large": large, "cancel": cancel, "restart": restart, "errors": errors,
    "global-prefetch": global_prefetch})
