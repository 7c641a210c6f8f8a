"""aio-pika's robust connections, through every scenario; ../../README.md says what each does."""

import asyncio
import functools
import importlib.metadata
import logging
import ssl
from datetime import datetime, timezone

import aio_pika
from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.exceptions import (ChannelClosed, ChannelNotFoundEntity, ChannelPreconditionFailed, DeliveryError,
                                 InvalidFrameError, ProbableAuthenticationError, PublishError)
from aiormq.exceptions import ChannelLockedResource
from pamqp.commands import Basic

import expected
import runner
from runner import unique

for library in ("aiormq", "aio_pika"):
    logging.getLogger(library).setLevel(logging.CRITICAL)  # refusals are what some scenarios are about

CODES = {ChannelNotFoundEntity: 404, ChannelLockedResource: 405, ChannelPreconditionFailed: 406,
         ProbableAuthenticationError: 403}  # the class is all that aio-pika tells of these codes


async def connection(**options):
    return await aio_pika.connect_robust(host=runner.HOST, port=runner.PORT, **options)


async def declare(channel, name=None, exclusive=True, **arguments):
    """A queue of the scenario's own; arguments are written max_length for x-max-length."""
    named = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return await channel.declare_queue(name or unique(), exclusive=exclusive, arguments=named)


async def count(channel, queue):
    plain = await channel.get_underlay_channel()
    return (await plain.queue_declare(queue.name, passive=True)).message_count


async def publish(channel, queue, body=b"", **properties):
    await channel.default_exchange.publish(Message(body, **properties), queue.name)


async def get(queue):
    return await queue.get(no_ack=True, fail=False)


async def eventually(holds, what):
    """Wait until it holds."""
    deadline = asyncio.get_running_loop().time() + runner.GONE_WITHIN_S
    while not await holds():
        assert asyncio.get_running_loop().time() < deadline, f"not within {runner.GONE_WITHIN_S:.0f} s: {what}"
        await asyncio.sleep(0.01)


async def has(channel, queue, wanted):
    return await count(channel, queue) == wanted


async def wait_for(channel, queue):
    """The next message, when it comes."""
    await eventually(functools.partial(has, channel, queue, 1), f"a message in {queue.name}")
    return await get(queue)


async def round_trip(opened):
    channel = await opened.channel()
    queue = await channel.declare_queue("", exclusive=True)
    assert queue.name.startswith("amq.gen-"), queue
    sent = {"content_type": "text/plain", "content_encoding": "utf-8", "delivery_mode": DeliveryMode.PERSISTENT,
            "priority": 3, "correlation_id": "c-1", "reply_to": "somewhere", "message_id": "m-1", "type": "greeting",
            "timestamp": datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc), "user_id": "guest", "app_id": "interop"}
    await publish(channel, queue, b"hello", headers=expected.HEADERS, **sent)
    message = await queue.get()
    assert (message.body, message.routing_key, message.redelivered) == (b"hello", queue.name, False), message
    assert {name: getattr(message, name) for name in sent} == sent, message
    expected.check_headers(message.headers)
    await message.ack()
    assert await queue.get(fail=False) is None
    await channel.close()
    assert channel.is_closed and not opened.is_closed
    await opened.close()
    assert opened.is_closed


async def connect():
    """Not robust: a robust connection names its queues itself, so that it can declare them again."""
    await round_trip(await aio_pika.connect(host=runner.HOST, port=runner.PORT))


async def tls():
    context = ssl.create_default_context(cafile=runner.CA_FILE)
    await round_trip(await aio_pika.connect(
        host=runner.HOST, port=runner.TLS_PORT, ssl=True, ssl_context=context))


async def confirms():
    async with await connection() as opened:
        channel = await opened.channel(on_return_raises=True)
        queue = await channel.declare_queue(unique(), durable=True)
        await asyncio.gather(*(publish(channel, queue, b"%d" % number, delivery_mode=DeliveryMode.PERSISTENT)
                               for number in range(1000)))  # each returns when it is confirmed
        assert await count(channel, queue) == 1000
        await queue.delete(if_empty=False)
        try:
            await channel.default_exchange.publish(Message(b"nobody"), unique(), mandatory=True)
            raise AssertionError("the message did not come back")
        except PublishError as error:
            returned = error.message
            assert (returned.delivery.reply_code, returned.delivery.reply_text) == (312, "NO_ROUTE"), returned
            assert returned.body == b"nobody", returned
        short = await declare(channel, max_length=1, overflow="reject-publish")
        await publish(channel, short)
        try:
            await publish(channel, short)
            raise AssertionError("the second message was not refused")
        except DeliveryError as error:
            assert isinstance(error.frame, Basic.Nack), error
            assert await count(channel, short) == 1


async def prefetch():
    async with await connection() as opened:
        channel = await opened.channel()
        await channel.set_qos(prefetch_count=10)
        queue = await declare(channel)
        for number in range(100):
            await publish(channel, queue, b"%d" % number)
        come = asyncio.Queue()
        tag = await queue.consume(come.put)
        batch = []
        for number in range(100):
            message = await next_of(come)
            assert (message.body, message.redelivered) == (b"%d" % number, False), message
            batch.append(message)
            if len(batch) == 10:
                assert (await count(channel, queue), come.qsize()) == (90 - number // 10 * 10, 0)
                for one in batch[:3]:
                    await one.ack()
                await batch[-1].ack(multiple=True)
                batch = []
        await send_back(channel, queue, come)
        await queue.cancel(tag)
        assert await count(channel, queue) == 0


async def next_of(come, within_s=expected.WITHIN_S):
    return await asyncio.wait_for(come.get(), within_s)


async def send_back(channel, queue, come):
    await publish(channel, queue, b"back")
    await (await next_of(come)).nack(requeue=True)
    again = await next_of(come)
    assert (again.body, again.redelivered) == (b"back", True), again
    await again.reject(requeue=False)
    await publish(channel, queue, b"the next one")
    message = await next_of(come)
    assert (message.body, message.redelivered) == (b"the next one", False), message
    await message.ack()


async def queue_ttl():
    async with await connection() as opened:
        channel = await opened.channel()
        queue, leased = await declare(channel, message_ttl=1000), unique()
        underlay = await channel.get_underlay_channel()  # not robust, or it would be declared again
        await underlay.queue_declare(leased, arguments={"x-expires": 300})
        for _ in range(3):
            await publish(channel, queue)
        assert await count(channel, queue) == 3
        await eventually(functools.partial(has, channel, queue, 0), "the messages expire")
        await eventually(functools.partial(is_gone, opened, leased), "the queue expires")


async def is_gone(opened, name):
    """Asking renews the lease of a queue that is there: do not ask more often than it lasts."""
    await asyncio.sleep(0.4)
    try:
        await (await opened.channel()).get_queue(name)
    except ChannelNotFoundEntity as error:
        expected.check_refusal(expected.no_queue(name), CODES[type(error)], str(error))
        return True
    return False


async def message_ttl():
    async with await connection() as opened:
        channel = await opened.channel()
        queue = await declare(channel)
        await publish(channel, queue, b"short", expiration=1)
        await publish(channel, queue, b"long", expiration=60)
        assert await count(channel, queue) == 2
        await eventually(functools.partial(has, channel, queue, 1), "the first message expires")
        message = await get(queue)
        assert (message.body, message.expiration) == (b"long", 60), message
        await publish(channel, queue, expiration=0)
        assert await get(queue) is None


async def dead_letter():
    async with await connection() as opened:
        channel = await opened.channel()
        dead = await declare(channel)
        to_dead = {"dead_letter_exchange": "", "dead_letter_routing_key": dead.name}
        work, short = await declare(channel, **to_dead), await declare(channel, max_length=1, **to_dead)

        await publish(channel, work, b"expires", expiration=0.1)
        message = await wait_for(channel, dead)
        assert (message.body, message.expiration) == (b"expires", None), message
        expected.check_first_death(message.headers, "expired", work.name, "", work.name, original_expiration="100")

        await publish(channel, work, b"rejected")
        await (await work.get()).reject(requeue=False)
        message = await wait_for(channel, dead)
        assert message.body == b"rejected", message
        expected.check_first_death(message.headers, "rejected", work.name, "", work.name)

        await publish(channel, short, b"first")
        await publish(channel, short, b"second")
        message = await wait_for(channel, dead)
        assert message.body == b"first", message
        expected.check_first_death(message.headers, "maxlen", short.name, "", short.name)
        await retry_twice(channel)


async def retry_twice(channel):
    work, wait = unique(), unique()
    queue = await declare(channel, work, dead_letter_exchange="", dead_letter_routing_key=wait)
    await declare(channel, wait, dead_letter_exchange="", dead_letter_routing_key=work, message_ttl=100)
    await publish(channel, queue, b"again")
    deliveries = 0
    async with asyncio.timeout(expected.WITHIN_S), queue.iterator() as messages:
        async for message in messages:
            deliveries += 1
            if deliveries == 3:
                break
            await message.reject(requeue=False)
        assert message.body == b"again", message
        expected.check_retries(message.headers, work, wait, count=2)
        await message.ack()


async def priorities():
    async with await connection() as opened:
        channel = await opened.channel()
        queue = await declare(channel, max_priority=5)
        for priority in (1, 5, 3, None):
            await publish(channel, queue, priority=priority)
        order = [(await get(queue)).priority for _ in range(4)]
        assert order == [5, 3, 1, 0], order  # to aio-pika, no priority is 0


async def transactions():
    async with await connection() as opened:
        channel = await opened.channel(publisher_confirms=False)
        queue = await declare(channel, exclusive=False)
        transaction = channel.transaction()
        await transaction.select()
        for end, wanted in ((transaction.rollback, 0), (transaction.commit, 2)):
            await publish(channel, queue)
            await publish(channel, queue)
            await end()
            assert await count(channel, queue) == wanted
        async with channel.transaction():
            await (await queue.get()).ack()
        await (await queue.get()).ack()  # and never committed
    async with await connection() as opened:
        channel = await opened.channel()
        queue = await channel.get_queue(queue.name)
        assert (await get(queue)).redelivered
        assert await get(queue) is None
        await queue.delete()


async def rpc():
    async with await connection() as serving, await connection() as asking:
        server, client, answers = await serving.channel(), await asking.channel(), asyncio.Queue()
        queue = await declare(server, exclusive=False)

        async def serve(request):
            assert request.reply_to.startswith("amq.rabbitmq.reply-to."), request
            async with request.process():
                await server.default_exchange.publish(
                    Message(b"answer to " + request.body, correlation_id=request.correlation_id), request.reply_to)

        tag = await queue.consume(serve)
        reply_to = await client.get_queue("amq.rabbitmq.reply-to")
        await reply_to.consume(answers.put, no_ack=True)
        for number in range(100):
            await publish(client, queue, b"%d" % number, reply_to=reply_to.name, correlation_id=f"c-{number}")
        come = [await next_of(answers) for _ in range(100)]
        assert {answer.correlation_id: answer.body for answer in come} == {
            f"c-{number}": b"answer to %d" % number for number in range(100)}, come
        await queue.cancel(tag)
        await queue.delete()


async def large():
    async with await connection() as opened:
        channel = await opened.channel()
        queue = await declare(channel)
        await publish(channel, queue, runner.LARGE)
        assert (await get(queue)).body == runner.LARGE


async def cancel():
    """A robust consumer that is cancelled declares its queue again and goes on consuming."""
    async with await connection(reconnect_interval=0.1) as consuming, await connection() as deleting:
        channel, cancelled, come = await consuming.channel(), asyncio.Queue(), asyncio.Queue()
        queue = await declare(channel, exclusive=False)
        underlay = await channel.get_underlay_channel()
        underlay.on_consumer_cancel_callbacks.add(lambda frame: cancelled.put_nowait(frame.consumer_tag))
        tag = await queue.consume(come.put)
        other = await deleting.channel()
        await other.queue_delete(queue.name)
        assert await next_of(cancelled) == tag
        await eventually(functools.partial(is_consumed, deleting, queue), "the consumer is back")
        await publish(other, queue, b"again")
        message = await next_of(come)
        assert message.body == b"again", message
        await message.ack()
        await queue.cancel(tag)
        await queue.delete()


async def is_consumed(opened, queue):
    try:
        underlay = await (await opened.channel()).get_underlay_channel()
        return (await underlay.queue_declare(queue.name, passive=True)).consumer_count == 1
    except ChannelNotFoundEntity:
        return False


async def restart():
    async with await connection(reconnect_interval=0.1) as opened:
        channel = await opened.channel()
        await channel.set_qos(prefetch_count=1)
        exchange = await channel.declare_exchange(unique(), ExchangeType.DIRECT, durable=True)
        queue = await channel.declare_queue(unique(), durable=True)
        await queue.bind(exchange, "key")
        for body in (b"held", b"before"):
            await publish(channel, queue, body, delivery_mode=DeliveryMode.PERSISTENT)
        come = asyncio.Queue()
        tag = await queue.consume(come.put)
        assert (await next_of(come)).body == b"held"
        await asyncio.to_thread(runner.restart_broker)
        assert await take(come) == (b"held", True)
        assert await take(come) == (b"before", True)
        await exchange.publish(Message(b"after"), "key")
        assert await take(come) == (b"after", False)
        await queue.cancel(tag)
        await queue.delete()
        await exchange.delete()


async def take(come):
    """Acknowledge the next delivery: its body, and whether it was delivered before."""
    message = await next_of(come, runner.RECOVERED_WITHIN_S)
    await message.ack()
    return message.body, message.redelivered


async def errors():
    async with await connection() as owner, await connection() as other:
        channel = await owner.channel()
        queue, nobody = await declare(channel, message_ttl=1000), unique()
        await refused(other, expected.no_queue(nobody), lambda channel: channel.get_queue(nobody))
        await refused(other, expected.locked(queue.name), lambda channel: declare(channel, queue.name, exclusive=False))
        await refused(owner, expected.inequivalent(queue.name),
                      lambda channel: declare(channel, queue.name, message_ttl=2000))
        await refused(owner, expected.invalid_expiration(), publish_invalid_expiration)
        assert await count(channel, queue) == 0
    await not_opened()


async def publish_invalid_expiration(channel):
    """aio-pika's messages take numbers only; this is the layer below it."""
    underlay = await channel.get_underlay_channel()
    await underlay.basic_publish(b"", routing_key=unique(), properties=Basic.Properties(expiration="abc"))


async def refused(opened, refusal, attempt):
    """The broker closes the channel, and the connection lives on."""
    channel = await opened.channel()
    try:
        await attempt(channel)
        raise AssertionError(f"not refused: {refusal}")
    except ChannelClosed as error:
        expected.check_refusal(refusal, CODES[type(error)], str(error))
    assert opened.connected.is_set()
    await (await opened.channel()).close()


async def not_opened():
    try:
        await connection(password="wrong")
        raise AssertionError("a wrong password was let in")
    except ProbableAuthenticationError as error:
        expected.check_refusal(expected.wrong_password(), CODES[type(error)], str(error))
    try:
        await connection(virtualhost="nope")
        raise AssertionError("a vhost that does not exist was opened")
    except InvalidFrameError as error:  # all that the client tells: it was closed, without the code and the text
        assert "got <Connection.Close " in str(error), error


SCENARIOS = {
    "connect": connect, "tls": tls, "confirms": confirms, "prefetch": prefetch, "queue-ttl": queue_ttl,
    "message-ttl": message_ttl, "dead-letter": dead_letter, "priorities": priorities, "transactions": transactions,
    "rpc": rpc, "large": large, "cancel": cancel, "restart": restart, "errors": errors}

runner.run(importlib.metadata.version("aio-pika"),
           {name: lambda scenario=scenario: asyncio.run(scenario()) for name, scenario in SCENARIOS.items()})
