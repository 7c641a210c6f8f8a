"""Clients that publish, get, settle, purge, declare and delete, and write down in a ledger what they were promised."""

import random
import threading

import pika
import pika.adapters.utils.connection_workflow
import pika.exceptions

from ledger import BRIEF, DEAD, HOLD, MIXED, PURGED, TTL_MS, WORK, body_of, check_death, check_mark, number_of

GONE = (pika.exceptions.AMQPError, pika.adapters.utils.connection_workflow.AMQPConnectorException, OSError, EOFError)
CONFIRM_BATCH = 8
JOIN_TIMEOUT_S = 120.0


def declare(broker):
    """The queues that all of them use."""
    connection = broker.connect()
    channel = connection.channel()
    channel.exchange_declare("crash.dlx", "fanout", durable=True)
    channel.queue_declare(DEAD, durable=True)
    channel.queue_bind(DEAD, "crash.dlx")
    dlx = {"x-dead-letter-exchange": "crash.dlx"}
    channel.queue_declare(HOLD, durable=True)
    channel.queue_declare(WORK, durable=True, arguments=dlx)
    channel.queue_declare(BRIEF, durable=True, arguments={**dlx, "x-message-ttl": TTL_MS})
    channel.queue_declare(MIXED, durable=True, arguments=dlx)
    channel.queue_declare(PURGED, durable=True)
    connection.close()


class Workload:
    """Publishers, a worker, a client that purges and one that changes the topology, until the broker is gone or they
    are stopped."""

    def __init__(self, broker, ledger, rng):
        declare(broker)
        self.failure = None
        self.stop = threading.Event()
        clients = [publish, publish, work, watch_dead, purge, topology]
        self.threads = [
            threading.Thread(target=self._run, args=(client, broker, ledger, rng.random()), daemon=True)
            for client in clients]
        for thread in self.threads:
            thread.start()

    def _run(self, client, broker, ledger, seed):
        try:
            connection = broker.connect()
            client(connection.channel(), ledger, random.Random(seed), self.stop)
            connection.close()
        except GONE:
            pass
        except BaseException as failure:  # noqa: BLE001 - raised when the workload ends
            self.failure = failure

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(JOIN_TIMEOUT_S)
        if self.failure:
            raise self.failure


def publish(channel, ledger, rng, stop, period_s=0):
    """Publishes some messages at a time, and then waits for all confirms."""
    numbers, publisher = {}, object()

    def on_confirm(frame):
        method = frame.method
        tags = [t for t in numbers if t <= method.delivery_tag] if method.multiple else [method.delivery_tag]
        for tag in tags:
            number = numbers.pop(tag, None)
            if number is not None and isinstance(method, pika.spec.Basic.Ack):
                ledger.messages[number].confirmed = True

    channel._impl.confirm_delivery(on_confirm)
    channel.connection.process_data_events(0.01)
    tag = 0
    while not stop.is_set():
        for _ in range(rng.randint(1, CONFIRM_BATCH)):
            queue = rng.choice((HOLD, WORK, WORK, BRIEF, MIXED, MIXED))
            ttl_ms = {BRIEF: TTL_MS, MIXED: rng.randint(1, TTL_MS)}.get(queue, 0)
            number = ledger.new(queue, publisher, ttl_ms)
            tag += 1
            numbers[tag] = number
            expiration = str(ttl_ms) if queue == MIXED else None
            properties = pika.BasicProperties(delivery_mode=2, expiration=expiration)
            channel._impl.basic_publish("", queue, body_of(number, rng), properties)
        while numbers and not stop.is_set():
            channel.connection.process_data_events(0.005)
        stop.wait(period_s)


def work(channel, ledger, rng, stop, period_s=0.005):
    """Gets, then acks, rejects or keeps; a method with an answer now and then. Waits for a time while nothing is there."""
    pending = []
    while not stop.is_set():
        method, _, body = channel.basic_get(WORK)
        if method is None:
            channel.connection.process_data_events(period_s)
            continue
        message = ledger.messages[number_of(body)]
        check_mark(ledger, WORK, number_of(body), method.redelivered)
        message.seen.add(WORK)
        fate = rng.random()
        if fate < 0.6:
            message.attempt("ack")
            channel.basic_ack(method.delivery_tag)
            pending.append((message, "ack"))
        elif fate < 0.8:
            message.attempt("reject")
            channel.basic_reject(method.delivery_tag, requeue=False)
            pending.append((message, "reject"))
        elif fate < 0.9:
            channel.basic_reject(method.delivery_tag, requeue=True)
        if rng.random() < 0.2:
            channel.basic_qos(prefetch_count=0)
            for one, kind in pending:
                one.settled = kind
            pending.clear()


def watch_dead(channel, ledger, rng, stop):
    """Gets dead letters as soon as they are there and acknowledges none: they come back with the next life."""
    def seen(_, method, properties, body):
        number = number_of(body)
        check_mark(ledger, DEAD, number, method.redelivered)
        check_death(ledger, number, properties)
        if number in ledger.messages:
            ledger.messages[number].seen.add(DEAD)

    channel.basic_consume(DEAD, seen)
    while not stop.is_set():
        channel.connection.process_data_events(0.01)


def purge(channel, ledger, rng, stop):
    """Fills a queue of its own, and purges it now and then."""
    persistent = pika.BasicProperties(delivery_mode=2)
    channel.confirm_delivery()
    while not stop.is_set():
        for _ in range(rng.randint(1, 20)):
            number = ledger.new(PURGED)
            channel.basic_publish("", PURGED, body_of(number, rng), persistent)
            ledger.messages[number].confirmed = True
        if rng.random() < 0.3:
            with ledger.lock:
                purged = [message for message in ledger.messages.values() if message.queue == PURGED]
            for message in purged:
                message.settling = "purge"
            channel.queue_purge(PURGED)
            for message in purged:
                message.settled = "purge"


def topology(channel, ledger, rng, stop):
    """Declares and deletes queues of its own, and knows which must be there."""
    names = ledger.queues
    while not stop.is_set():
        name = f"crash.t{rng.randint(0, 20)}"
        if names.get(name) is True and rng.random() < 0.5:
            names[name] = None
            channel.queue_delete(name)
            names[name] = False
        else:
            if names.get(name) is not True:
                names[name] = None
            channel.queue_declare(name, durable=True)
            names[name] = True
        channel.connection.process_data_events(0.01)
