"""pika's BlockingConnection, through every scenario; ../../README.md says what each does."""

import contextlib
import logging
import re
import ssl
import time

import pika
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker, NackError, UnroutableError

import expected
import runner
from runner import unique

logging.getLogger("pika").setLevel(logging.CRITICAL)  # refusals are what some scenarios are about


def parameters(port=runner.PORT, **options):
    return pika.ConnectionParameters(runner.HOST, port, **options)


@contextlib.contextmanager
def open_channel(confirmed=True):
    """A channel on which every publish returns when it is confirmed, unless that is not wanted."""
    with pika.BlockingConnection(parameters()) as connection:
        channel = connection.channel()
        if confirmed:
            channel.confirm_delivery()
        yield channel


def declare(channel, name=None, exclusive=True, **arguments):
    """A queue of the scenario's own; arguments are written max_length for x-max-length."""
    named = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return channel.queue_declare(name or unique(), exclusive=exclusive, arguments=named).method.queue


def count(channel, queue):
    return channel.queue_declare(queue, passive=True).method.message_count


def publish(channel, queue, body=b"", **properties):
    channel.basic_publish("", queue, body, pika.BasicProperties(**properties))


def get(channel, queue):
    """The next message as its properties and its body; both None if there is none."""
    _, properties, body = channel.basic_get(queue, auto_ack=True)
    return properties, body


def wait_for(channel, queue):
    """The next message, when it comes."""
    runner.eventually(lambda: count(channel, queue), f"a message in {queue}")
    return get(channel, queue)


def round_trip(connection_parameters):
    connection = pika.BlockingConnection(connection_parameters)
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    assert queue.startswith("amq.gen-"), queue
    sent = pika.BasicProperties(
        content_type="text/plain", content_encoding="utf-8", headers=expected.HEADERS, delivery_mode=2, priority=3,
        correlation_id="c-1", reply_to="somewhere", message_id="m-1", timestamp=1_700_000_000, type="greeting",
        user_id="guest", app_id="interop")
    channel.basic_publish("", queue, b"hello", sent)
    method, properties, body = channel.basic_get(queue)
    assert (body, method.routing_key, method.redelivered) == (b"hello", queue, False)
    expected.check_headers(properties.headers)
    assert properties == sent, properties
    channel.basic_ack(method.delivery_tag)
    assert channel.basic_get(queue) == (None, None, None)
    channel.close()
    assert channel.is_closed and connection.is_open
    connection.close()
    assert connection.is_closed


def connect():
    round_trip(parameters())


def tls():
    context = ssl.create_default_context(cafile=runner.CA_FILE)
    round_trip(parameters(runner.TLS_PORT, ssl_options=pika.SSLOptions(context, runner.HOST)))


def confirms():
    with open_channel() as channel:
        queue = channel.queue_declare(unique(), durable=True).method.queue
        for number in range(1000):
            publish(channel, queue, b"%d" % number, delivery_mode=2)
        assert count(channel, queue) == 1000
        channel.queue_delete(queue)
        try:
            channel.basic_publish("", unique(), b"nobody", mandatory=True)
            raise AssertionError("the message did not come back")
        except UnroutableError as error:  # raised when the confirm has come, too
            (returned,) = error.messages
            assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE"), returned.method
            assert returned.body == b"nobody"
        short = declare(channel, max_length=1, overflow="reject-publish")
        publish(channel, short)
        try:
            publish(channel, short)
            raise AssertionError("the second message was not refused")
        except NackError:
            assert count(channel, short) == 1


def prefetch():
    with open_channel() as channel:
        queue = declare(channel)
        for number in range(100):
            publish(channel, queue, b"%d" % number)
        channel.basic_qos(prefetch_count=10)
        deliveries = channel.consume(queue, inactivity_timeout=expected.WITHIN_S)
        tags = []
        for number in range(100):
            method, _, body = next(deliveries)
            assert (body, method.redelivered) == (b"%d" % number, False), (body, method)
            tags.append(method.delivery_tag)
            if len(tags) == 10:
                assert (count(channel, queue), channel.get_waiting_message_count()) == (90 - number // 10 * 10, 0)
                acknowledge(channel, tags)
                tags = []
        channel.basic_ack(multiple=True)
        send_back(channel, queue, deliveries)
        channel.cancel()
        assert count(channel, queue) == 0


def acknowledge(channel, tags):
    """Some one by one, the others at once."""
    for tag in tags[:3]:
        channel.basic_ack(tag)
    channel.basic_ack(tags[-1], multiple=True)


def send_back(channel, queue, deliveries):
    publish(channel, queue, b"back")
    first, _, _ = next(deliveries)
    channel.basic_nack(first.delivery_tag, requeue=True)
    again, _, body = next(deliveries)
    assert (body, again.redelivered) == (b"back", True), (body, again)
    channel.basic_reject(again.delivery_tag, requeue=False)
    publish(channel, queue, b"the next one")
    method, _, body = next(deliveries)
    assert (body, method.redelivered) == (b"the next one", False), (body, method)
    channel.basic_ack(method.delivery_tag)


def queue_ttl():
    with open_channel() as channel:
        queue, leased = declare(channel, message_ttl=1000), unique()
        declare(channel, leased, exclusive=False, expires=300)
        for _ in range(3):
            publish(channel, queue)
        assert count(channel, queue) == 3
        runner.eventually(lambda: count(channel, queue) == 0, "the messages expire")
    runner.eventually(lambda: is_gone(leased), "the queue expires")


def is_gone(queue):
    """Asking renews the lease of a queue that is there: do not ask more often than it lasts."""
    time.sleep(0.4)
    with open_channel() as channel:
        try:
            count(channel, queue)
        except ChannelClosedByBroker as error:
            expected.check_refusal(expected.no_queue(queue), error.reply_code, error.reply_text)
            return True
    return False


def message_ttl():
    with open_channel() as channel:
        queue = declare(channel)
        publish(channel, queue, b"short", expiration="1000")
        publish(channel, queue, b"long", expiration="60000")
        assert count(channel, queue) == 2
        runner.eventually(lambda: count(channel, queue) == 1, "the first message expires")
        properties, body = get(channel, queue)
        assert (body, properties.expiration) == (b"long", "60000"), (body, properties)
        publish(channel, queue, expiration="0")
        assert get(channel, queue) == (None, None)


def dead_letter():
    with open_channel() as channel:
        dead = declare(channel)
        to_dead = {"dead_letter_exchange": "", "dead_letter_routing_key": dead}
        work, short = declare(channel, **to_dead), declare(channel, max_length=1, **to_dead)

        publish(channel, work, b"expires", expiration="100")
        properties, body = wait_for(channel, dead)
        assert (body, properties.expiration) == (b"expires", None), (body, properties)
        expected.check_first_death(properties.headers, "expired", work, "", work, original_expiration="100")

        publish(channel, work, b"rejected")
        method, _, _ = channel.basic_get(work)
        channel.basic_reject(method.delivery_tag, requeue=False)
        properties, body = wait_for(channel, dead)
        assert body == b"rejected", body
        expected.check_first_death(properties.headers, "rejected", work, "", work)

        publish(channel, short, b"first")
        publish(channel, short, b"second")
        properties, body = wait_for(channel, dead)
        assert body == b"first", body
        expected.check_first_death(properties.headers, "maxlen", short, "", short)
        retry_twice(channel)


def retry_twice(channel):
    work, wait = unique(), unique()
    declare(channel, work, dead_letter_exchange="", dead_letter_routing_key=wait)
    declare(channel, wait, dead_letter_exchange="", dead_letter_routing_key=work, message_ttl=100)
    publish(channel, work, b"again")
    deliveries = channel.consume(work, inactivity_timeout=expected.WITHIN_S)
    for _ in range(2):
        method, _, _ = next(deliveries)
        channel.basic_reject(method.delivery_tag, requeue=False)
    method, properties, body = next(deliveries)
    assert body == b"again", body
    expected.check_retries(properties.headers, work, wait, count=2)
    channel.basic_ack(method.delivery_tag)
    channel.cancel()


def priorities():
    with open_channel() as channel:
        queue = declare(channel, max_priority=5)
        for priority in (1, 5, 3, None):
            publish(channel, queue, priority=priority)
        order = [get(channel, queue)[0].priority for _ in range(4)]
        assert order == [5, 3, 1, None], order


def transactions():
    with open_channel(confirmed=False) as channel:
        queue = declare(channel, exclusive=False)
        channel.tx_select()
        for end, wanted in ((channel.tx_rollback, 0), (channel.tx_commit, 2)):
            publish(channel, queue)
            publish(channel, queue)
            end()
            assert count(channel, queue) == wanted
        method, _, _ = channel.basic_get(queue)
        channel.basic_ack(method.delivery_tag)
        channel.tx_commit()
        method, _, _ = channel.basic_get(queue)
        channel.basic_ack(method.delivery_tag)  # and never committed
    with open_channel() as channel:
        method, _, _ = channel.basic_get(queue, auto_ack=True)
        assert method.redelivered
        assert get(channel, queue) == (None, None)
        channel.queue_delete(queue)


def rpc():
    with open_channel() as server, open_channel() as client:
        queue, answers = declare(server, exclusive=False), {}
        client.basic_consume("amq.rabbitmq.reply-to", auto_ack=True,
                             on_message_callback=lambda _channel, _method, properties, body: answers.update(
                                 {properties.correlation_id: body}))
        for number in range(100):
            publish(client, queue, b"%d" % number, reply_to="amq.rabbitmq.reply-to", correlation_id=f"c-{number}")
        for method, properties, body in server.consume(queue, inactivity_timeout=expected.WITHIN_S):
            assert properties.reply_to.startswith("amq.rabbitmq.reply-to."), properties
            publish(server, properties.reply_to, b"answer to " + body, correlation_id=properties.correlation_id)
            server.basic_ack(method.delivery_tag)
            if method.delivery_tag == 100:
                break
        server.queue_delete(queue)
        runner.eventually(lambda: client.connection.process_data_events(0) or len(answers) == 100, "100 answers")
        assert answers == {f"c-{number}": b"answer to %d" % number for number in range(100)}


def large():
    with open_channel() as channel:
        queue = declare(channel)
        publish(channel, queue, runner.LARGE)
        assert get(channel, queue)[1] == runner.LARGE


def cancel():
    with open_channel() as consuming, open_channel() as deleting:
        queue, told = declare(deleting, exclusive=False), []
        consuming.add_on_cancel_callback(lambda method: told.append(method.method.consumer_tag))
        tag = consuming.basic_consume(queue, lambda *_: None)
        deleting.queue_delete(queue)
        consuming.start_consuming()  # returns when there is no consumer any more
        assert (told, consuming.consumer_tags) == ([tag], [])
        assert consuming.is_open


def restart():
    queue, exchange = unique(), unique()
    connection = pika.BlockingConnection(parameters())
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_qos(prefetch_count=1)
    channel.exchange_declare(exchange, "direct", durable=True)
    channel.queue_declare(queue, durable=True)
    channel.queue_bind(queue, exchange, "key")
    for body in (b"held", b"before"):
        publish(channel, queue, body, delivery_mode=2)
    deliveries = channel.consume(queue, inactivity_timeout=expected.WITHIN_S)
    assert next(deliveries)[2] == b"held"
    runner.restart_broker()
    try:
        next(deliveries)
        raise AssertionError("the client did not see that the connection was lost")
    except AMQPConnectionError:  # pika's blocking connection does not recover, the program makes another one
        connection = pika.BlockingConnection(parameters(connection_attempts=10, retry_delay=0.2))
    with connection:
        channel = connection.channel()
        deliveries = channel.consume(queue, inactivity_timeout=expected.WITHIN_S)
        assert take(channel, deliveries) == (b"held", True)
        assert take(channel, deliveries) == (b"before", True)
        channel.basic_publish(exchange, "key", b"after")
        assert take(channel, deliveries) == (b"after", False)
        channel.cancel()
        channel.queue_delete(queue)
        channel.exchange_delete(exchange)


def take(channel, deliveries):
    """Acknowledge the next delivery: its body, and whether it was delivered before."""
    method, _, body = next(deliveries)
    channel.basic_ack(method.delivery_tag)
    return body, method.redelivered


def errors():
    with open_channel() as owner:
        queue = declare(owner, message_ttl=1000)
        with pika.BlockingConnection(parameters()) as other:
            nobody = unique()
            refused(other, expected.no_queue(nobody), lambda channel: count(channel, nobody))
            refused(other, expected.locked(queue), lambda channel: declare(channel, queue, exclusive=False))
        connection = owner.connection
        refused(connection, expected.inequivalent(queue), lambda channel: declare(channel, queue, message_ttl=2000))
        refused(connection, expected.invalid_expiration(), lambda channel: publish_confirmed(channel, queue))
        assert count(owner, queue) == 0
    not_opened(expected.wrong_password(), credentials=pika.PlainCredentials("guest", "wrong"))
    not_opened(expected.no_vhost(), virtual_host="nope")


def publish_confirmed(channel, queue):
    channel.confirm_delivery()
    publish(channel, queue, expiration="abc")


def refused(connection, refusal, attempt):
    """The broker closes the channel, and the connection lives on."""
    channel = connection.channel()
    try:
        attempt(channel)
        raise AssertionError(f"not refused: {refusal}")
    except ChannelClosedByBroker as error:
        expected.check_refusal(refusal, error.reply_code, error.reply_text)
    assert channel.is_closed
    connection.channel().close()


def not_opened(refusal, **options):
    """pika tells code and text of a refused connection as `ConnectionClosedByBroker: (530) 'NOT_ALLOWED ...'`."""
    try:
        pika.BlockingConnection(parameters(**options))
        raise AssertionError(f"not refused: {refusal}")
    except AMQPConnectionError as error:
        code, text = re.search(r"\((\d+)\) ['\"](.*)['\"]", str(error)).groups()
        expected.check_refusal(refusal, int(code), text)


runner.run(pika.__version__, {
    "connect": connect, "tls": tls, "confirms": confirms, "prefetch": prefetch, "queue-ttl": queue_ttl,
    "message-ttl": message_ttl, "dead-letter": dead_letter, "priorities": priorities, "transactions": transactions,
    "rpc": rpc, "large": large, "cancel": cancel, "restart": restart, "errors": errors})
