"""A channel of pika's asynchronous connection, driven one step at a time, and its consumers.

pika's blocking connection hides what is tested here: it swallows the order of returns and confirms, waits for every
confirm, and gives messages back by itself when a consumer is cancelled.
"""

import time
from dataclasses import dataclass, field

import pika
from pika import spec

from patience import PATIENCE_S, Patience
from replies import CHANNEL_CODES, Closed, Message, Refusal


@dataclass
class Consumer:
    """A consumer and everything that it was given."""

    channel: "Channel"
    queue: str
    tag: str = ""
    messages: list = field(default_factory=list)
    taken: int = 0
    cancelled: bool = False

    @property
    def bodies(self):
        return [message.body for message in self.messages]

    def next(self, within=PATIENCE_S):
        """The next delivery that was not yet taken."""
        self.channel.wait(lambda: len(self.messages) > self.taken, within, f"a delivery from {self.queue}")
        self.taken += 1
        return self.messages[self.taken - 1]

    def next_bodies(self, count, within=PATIENCE_S):
        """The bodies of the next `count` deliveries."""
        return [self.next(within).body for _ in range(count)]

    def hears_nothing(self, seconds=0.3):
        """Whether no further delivery arrives for so long."""
        self.channel.pause(seconds)
        return len(self.messages) == self.taken

    def cancel(self):
        """basic.cancel; what it was given stays with the channel."""
        self.channel.rpc(spec.Basic.Cancel(consumer_tag=self.tag), spec.Basic.CancelOk)
        self.channel.consumers.pop(self.tag)


class Channel:
    """A channel. Declaring methods return names, the waiting ones fail the test when the time is over."""

    def __init__(self, connection, number=None):
        self.connection, self.client = connection, connection.client
        self.closed_reason = None
        self.heard = []  # methods received, in order
        self.returned, self.outcomes = [], []
        self.consumers, self.lost_deliveries = {}, []
        self.published, self.confirming = 0, False
        self._content = None
        self._answer = None
        opened = []
        self.pika = connection.pika.channel(number, on_open_callback=opened.append)
        self.number = self.pika.channel_number
        connection.pika.taps[self.number] = self._on_frame
        self.pika.add_on_close_callback(self._on_close)
        self.wait(lambda: opened, PATIENCE_S, "channel.open-ok")

    # --- what arrives

    def _on_close(self, _channel, reason):
        self.connection.pika.taps.pop(self.number, None)
        self.closed_reason = Closed.by("channel", reason)

    def _on_frame(self, frame):
        """Take what the tests look at; whether pika shall see the frame too."""
        if isinstance(frame, pika.frame.Method):
            method = frame.method
            self.heard.append(method)
            if isinstance(method, (spec.Basic.Deliver, spec.Basic.GetOk, spec.Basic.Return)):
                self._content = (method, None, [])
                return False
            if isinstance(method, (spec.Basic.Ack, spec.Basic.Nack)):
                self._on_confirm(method)
                return False
            if isinstance(method, spec.Basic.Cancel):
                self.consumers[method.consumer_tag].cancelled = True
                return False
            if self._answer and isinstance(method, self._answer[0]):
                self._answer = (self._answer[0], method)
                return False
            return True
        if isinstance(frame, pika.frame.Header):
            method, _, chunks = self._content
            self._content = (method, frame, chunks)
        elif isinstance(frame, pika.frame.Body):
            self._content[2].append(frame.fragment)
        method, header, chunks = self._content
        if sum(map(len, chunks)) == header.body_size:
            self._content = None
            self._on_content(method, header.properties, b"".join(chunks))
        return False

    def _on_content(self, method, properties, body):
        message = Message(
            body if b"\xff" in body[:1] else body.decode(errors="surrogateescape"),
            method.exchange,
            method.routing_key,
            properties,
            redelivered=getattr(method, "redelivered", False),
            tag=getattr(method, "delivery_tag", 0),
            consumer_tag=getattr(method, "consumer_tag", ""),
            message_count=getattr(method, "message_count", -1),
        )
        if isinstance(method, spec.Basic.Deliver):
            consumer = self.consumers.get(method.consumer_tag)
            (self.lost_deliveries if consumer is None else consumer.messages).append(message)
        elif isinstance(method, spec.Basic.Return):
            message.reply = (method.reply_code, method.reply_text)
            self.returned.append(message)
        else:
            self._answer = (self._answer[0], message)

    def _on_confirm(self, method):
        tags = [method.delivery_tag]
        if method.multiple:
            tags = range(1, (method.delivery_tag or self.published) + 1)
        for tag in tags:
            if self.outcomes[tag - 1] == "?":
                self.outcomes[tag - 1] = "a" if isinstance(method, spec.Basic.Ack) else "N"

    # --- waiting

    @property
    def closed(self):
        return self.connection.closed or self.closed_reason

    def wait(self, done, within, what):
        """Wait for `done()`. Raises `Closed` when the broker closes instead, fails when the time is over."""
        finished = self.client.run_until(lambda: self.closed or done(), within)
        if self.closed:
            raise self.closed
        assert finished, f"waited {within} s for {what}"

    def pause(self, seconds):
        """Let time go by while deliveries still arrive."""
        self.client.run_for(seconds, lambda: self.closed)
        if self.closed:
            raise self.closed

    def send(self, method, content=None):
        """Send a method that has no answer (content: properties and body)."""
        if self.closed:
            raise self.closed
        self.pika._send_method(method, content)

    def rpc(self, method, *answers):
        """Send a method and wait for one of its answers."""
        self._answer = (answers, None)
        self.send(method)
        self.wait(lambda: self._answer[1] is not None, PATIENCE_S, answers)
        answer, self._answer = self._answer[1], None
        return answer

    def sync(self):
        """Wait until the broker has dealt with everything sent so far. Raises `Closed` when it closes instead."""
        self.rpc(spec.Channel.Flow(active=True), spec.Channel.FlowOk)

    def close(self):
        """channel.close"""
        self.pika.close()
        self.client.run_until(lambda: self.closed)

    # --- refusals

    def refuses(self, action, code, explanation):
        """Do `action(channel)` on a channel of its own; it must be refused with this code and text.

        A refusal that closes the connection gets a connection of its own, too (guest's).
        """
        expected = Refusal(code, explanation)
        shared = expected.code in CHANNEL_CODES
        channel = self.connection.channel() if shared else self.client.channel()
        assert channel.answer_to(action) == expected.said

    def answer_to(self, action):
        """What the broker says when it refuses `action(channel)`, which ends this channel; None if it does not."""
        try:
            action(self)
            self.sync()
        except Closed as closed:
            return closed.said
        return None

    # --- declaring

    def queue(self, kind=None, name="q", durable=True, exclusive=False, auto_delete=False, arguments=None, **x):
        """Declare a queue and return its name.

        `kind` is the x-queue-type, None leaves it out. `name` is put behind the test's prefix; a name that has the
        prefix already is used as it is, "" asks the broker for one. Further keywords are x-arguments:
        `message_ttl=100` is `x-message-ttl`.
        """
        return self.declare(kind, name, durable, exclusive, auto_delete, arguments, **x).queue

    def declare(self, kind=None, name="q", durable=True, exclusive=False, auto_delete=False, arguments=None, **x):
        """As `queue`, and return the declare-ok."""
        arguments = x_arguments(kind, x) | (arguments or {})
        if name and not name.startswith(self.client.prefix):
            name = self.client.fresh_name(name)
        method = spec.Queue.Declare(
            queue=name, durable=durable, exclusive=exclusive, auto_delete=auto_delete, arguments=arguments
        )
        if name and not exclusive:
            self.client.queues.append(name)
        declared = self.rpc(method, spec.Queue.DeclareOk)
        if not name and not exclusive:
            self.client.queues.append(declared.queue)
        return declared

    def exchange(self, type="direct", name="x", durable=True, auto_delete=False, internal=False, arguments=None, **x):
        """Declare an exchange and return its name; keywords as for `queue`, but `alternate_exchange` has no `x-`."""
        arguments = dict(arguments or {})
        if "alternate_exchange" in x:
            arguments["alternate-exchange"] = x.pop("alternate_exchange")
        arguments |= x_arguments(None, x)
        if not name.startswith(("amq.", self.client.prefix)):
            name = self.client.fresh_name(name)
        if not name.startswith("amq."):
            self.client.exchanges.append(name)
        method = spec.Exchange.Declare(
            exchange=name, type=type, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments
        )
        self.rpc(method, spec.Exchange.DeclareOk)
        return name

    def bind(self, queue, exchange, routing_key="", **arguments):
        """queue.bind"""
        method = spec.Queue.Bind(queue=queue, exchange=exchange, routing_key=routing_key, arguments=arguments)
        self.rpc(method, spec.Queue.BindOk)

    def bind_exchange(self, destination, source, routing_key="", **arguments):
        """exchange.bind"""
        ends = {"destination": destination, "source": source}
        self.rpc(spec.Exchange.Bind(**ends, routing_key=routing_key, arguments=arguments), spec.Exchange.BindOk)

    def delete(self, queue, if_unused=False, if_empty=False):
        """queue.delete; the number of messages that went with it."""
        method = spec.Queue.Delete(queue=queue, if_unused=if_unused, if_empty=if_empty)
        return self.rpc(method, spec.Queue.DeleteOk).message_count

    def delete_exchange(self, exchange, if_unused=False):
        """exchange.delete"""
        self.rpc(spec.Exchange.Delete(exchange=exchange, if_unused=if_unused), spec.Exchange.DeleteOk)

    def purge(self, queue):
        """queue.purge; the number of messages that went."""
        return self.rpc(spec.Queue.Purge(queue=queue), spec.Queue.PurgeOk).message_count

    def bound(self, exchange, *keys):
        """A new queue for each key, bound by it."""
        queues = [self.queue() for _ in keys]
        for queue, key in zip(queues, keys):
            self.bind(queue, exchange, key)
        return queues

    def unbind(self, queue, exchange, routing_key="", **arguments):
        """queue.unbind"""
        method = spec.Queue.Unbind(queue=queue, exchange=exchange, routing_key=routing_key, arguments=arguments)
        self.rpc(method, spec.Queue.UnbindOk)

    def unbind_exchange(self, destination, source, routing_key="", **arguments):
        """exchange.unbind"""
        ends = {"destination": destination, "source": source}
        self.rpc(spec.Exchange.Unbind(**ends, routing_key=routing_key, arguments=arguments), spec.Exchange.UnbindOk)

    def passive(self, queue):
        """The declare-ok of a passive declaration."""
        return self.rpc(spec.Queue.Declare(queue=queue, passive=True), spec.Queue.DeclareOk)

    def count(self, queue):
        """Ready messages."""
        return self.passive(queue).message_count

    def exists(self, queue):
        """Whether there is such a queue; asks on a channel of its own."""
        channel = self.connection.channel()
        try:
            channel.passive(queue)
        except Closed as closed:
            assert closed.code == 404, closed
            return False
        channel.close()
        return True

    # --- publishing

    def publish(self, routing_key, *bodies, exchange="", mandatory=False, wait=True, **properties):
        """basic.publish of each body; keywords are basic properties. The default exchange is the default.

        In confirm mode, waits for the confirms and returns them, one letter per body: `a`cked or `N`acked.
        """
        already = len(self.outcomes)
        properties = pika.BasicProperties(**properties)
        for body in bodies:
            body = body.encode() if isinstance(body, str) else body
            self.published += 1
            self.outcomes.append("?")
            method = spec.Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
            self.send(method, (properties, body))
        self.flush()
        return self.confirmed()[already:] if self.confirming and wait else None

    def flush(self):
        """Hand everything to the operating system."""
        self.wait(lambda: self.connection.pika._get_write_buffer_size() == 0, PATIENCE_S, "the socket to take it")

    def confirm_select(self):
        """confirm.select; from here on `outcomes` has one letter per publish: `a`cked, `N`acked or `?`."""
        self.rpc(spec.Confirm.Select(), spec.Confirm.SelectOk)
        self.published, self.outcomes, self.confirming = 0, [], True
        return self

    def confirmed(self, within=PATIENCE_S):
        """Wait for every outstanding confirm; all outcomes so far as a string such as "aaN"."""
        self.wait(lambda: "?" not in self.outcomes, within, "confirms")
        return "".join(self.outcomes)

    # --- consuming

    def get(self, queue, ack=True):
        """basic.get: a `Message`, or None when the queue is empty."""
        got = self.rpc(spec.Basic.Get(queue=queue, no_ack=ack), spec.Basic.GetOk, spec.Basic.GetEmpty)
        return got if isinstance(got, Message) else None

    def get_unacked(self, queue, count=1):
        """`count` messages that must be there, not acknowledged; a list, or the message itself for one."""
        messages = [self.get(queue, ack=False) for _ in range(count)]
        assert None not in messages
        return messages if count > 1 else messages[0]

    def take(self, queue, within=PATIENCE_S):
        """basic.get until there is a message; it must come in time."""
        return self.poll(lambda: self.get(queue), within, f"a message in {queue}")

    def drain(self, queue):
        """The bodies of all messages that are ready now."""
        return [message.body for message in iter(lambda: self.get(queue), None)]

    def consume(self, queue, prefetch=0, auto_ack=False, exclusive=False, tag="", arguments=None, no_local=False):
        """basic.consume, after basic.qos when a prefetch is given; a `Consumer`."""
        if prefetch:
            self.qos(prefetch)
        tag = tag or f"c{len(self.consumers) + 1}"
        consumer = Consumer(self, queue, tag)
        self.consumers[tag] = consumer
        method = spec.Basic.Consume(
            queue=queue,
            consumer_tag=tag,
            no_ack=auto_ack,
            exclusive=exclusive,
            no_local=no_local,
            arguments=arguments or {},
        )
        try:
            self.rpc(method, spec.Basic.ConsumeOk)
        except Closed:
            del self.consumers[tag]
            raise
        return consumer

    def qos(self, prefetch, is_global=False):
        """basic.qos"""
        self.rpc(spec.Basic.Qos(prefetch_count=prefetch, global_qos=is_global), spec.Basic.QosOk)

    def ack(self, message, multiple=False):
        """basic.ack of a message or a delivery tag"""
        self.send(spec.Basic.Ack(delivery_tag=getattr(message, "tag", message), multiple=multiple))
        self.flush()

    def nack(self, message, requeue=False, multiple=False):
        """basic.nack of a message or a delivery tag"""
        tag = getattr(message, "tag", message)
        self.send(spec.Basic.Nack(delivery_tag=tag, multiple=multiple, requeue=requeue))
        self.flush()

    def reject(self, message, requeue=False):
        """basic.reject of a message or a delivery tag"""
        self.send(spec.Basic.Reject(delivery_tag=getattr(message, "tag", message), requeue=requeue))
        self.flush()

    def kill(self, queue, **publish):
        """Publish "m" to the queue, get it and nack it."""
        self.publish(queue, "m", **publish)
        self.nack(self.get_unacked(queue))

    def recover(self):
        """basic.recover with requeue"""
        self.rpc(spec.Basic.Recover(requeue=True), spec.Basic.RecoverOk)

    def tx_select(self):
        """tx.select"""
        self.rpc(spec.Tx.Select(), spec.Tx.SelectOk)
        return self

    def tx_commit(self):
        """tx.commit"""
        self.rpc(spec.Tx.Commit(), spec.Tx.CommitOk)

    def tx_rollback(self):
        """tx.rollback"""
        self.rpc(spec.Tx.Rollback(), spec.Tx.RollbackOk)

    # --- watching

    def poll(self, probe, within=PATIENCE_S, what="it", every=0.02):
        """Call `probe()` until it gives something true; that."""
        patience = Patience(within)
        while not (result := probe()):
            assert not patience.is_over(), f"waited {within} s for {what}"
            self.pause(every)
        return result

    def reaches(self, queue, count, within=PATIENCE_S):
        """Wait until the queue has just so many ready messages."""
        seen, patience = [], Patience(within)
        while not seen or seen[-1] != count:
            assert not patience.is_over(), f"{queue}: waited {within} s for {count} messages, saw {seen[-5:]}"
            if seen:
                self.pause(0.02)
            seen.append(self.count(queue))

    def stays(self, queue, count, seconds=0.3):
        """Whether the queue reaches this number of ready messages and has it all the time for so long."""
        self.reaches(queue, count)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.pause(0.03)
            if self.count(queue) != count:
                return False
        return True

    def keeps(self, queue, count, deadline, seconds=0.3):
        """Whether the queue has this number of ready messages for so long, as far as it is seen before a deadline of the
        monotonic clock. A look that comes later says nothing."""
        end = time.monotonic() + seconds
        while time.monotonic() < min(end, deadline):
            found = self.count(queue)
            if found != count and time.monotonic() < deadline:
                return False
            self.pause(0.03)
        return True

    def is_gone(self, queue):
        """Whether there is no such queue any more: a mandatory message to it comes back. (That renews no lease.)"""
        returned = len(self.returned)
        self.publish(queue, "anybody there?", mandatory=True)
        if not self.confirming:
            self.sync()
        return len(self.returned) > returned

    def vanishes(self, queue, within=PATIENCE_S):
        """Wait until there is no such queue any more."""
        self.poll(lambda: self.is_gone(queue), within, f"{queue} to vanish")


def x_arguments(kind, keywords):
    """`message_ttl=1` as `{"x-message-ttl": 1}`, and the queue type when there is one."""
    arguments = {"x-queue-type": kind} if kind else {}
    return arguments | {"x-" + key.replace("_", "-"): value for key, value in keywords.items()}
