"""One test's connections to a broker. They share one loop: while a test waits, deliveries to
all of them are read."""

import socket
import time

import pika
from pika import spec
from pika.adapters.select_connection import IOLoop

from channel import Channel
from patience import LOOK_S, PATIENCE_S, Patience
from replies import Closed


class _Wiretap(pika.SelectConnection):
    """pika's connection, which also shows every method and content frame to the channel it is for."""

    def __init__(self, *args, **kwargs):
        self.taps = {}
        super().__init__(*args, **kwargs)

    def _process_frame(self, frame_value):
        tap = self.taps.get(getattr(frame_value, "channel_number", None))
        if tap is not None and not tap(frame_value):
            return
        super()._process_frame(frame_value)


class Client:
    """One test's connections, the names it may use, and the list of what it has to remove."""

    def __init__(self, broker, prefix):
        self.broker, self.prefix = broker, prefix
        self.loop = IOLoop()
        self.loop.activate_poller()
        self.connections = []
        self.queues, self.exchanges = [], []
        self._names = set()

    def name(self, wish):
        """`wish` behind the test's prefix."""
        return self.prefix + wish

    def fresh_name(self, wish):
        """A name that this test has not used yet: `wish`, or `wish` and a number."""
        name, n = self.name(wish), 1
        while name in self._names:
            n += 1
            name = self.name(f"{wish}{n}")
        self._names.add(name)
        return name

    def connect(self, **options):
        """A new connection; see `Connection`."""
        connection = Connection(self, **options)
        self.connections.append(connection)
        return connection

    def channel(self, **options):
        """A channel on a new connection."""
        return self.connect(**options).channel()

    def run_until(self, done, within=PATIENCE_S):
        """Drive all connections until `done()` or the patience is over; whether it is done."""
        patience = Patience(within)
        while not done():
            if patience.is_over():
                return False
            self._run(min(within, LOOK_S))
        return True

    def run_for(self, seconds, done):
        """Drive all connections for so long by the clock, or until `done()`."""
        end = time.monotonic() + seconds
        while not done() and (left := end - time.monotonic()) > 0:
            self._run(left)

    def _run(self, seconds):
        """Let the loop wait once, for so long at most."""
        timer = self.loop.call_later(seconds, lambda: None)
        self.loop.poll()
        self.loop.process_timeouts()
        self.loop.remove_timeout(timer)

    def close(self):
        """Close every connection."""
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def clean_up(self):
        """Close every connection, remove the queues and exchanges that were declared, free the loop."""
        self.close()
        if self.queues or self.exchanges:
            channel = self.channel()
            for queue in self.queues:
                channel.send(spec.Queue.Delete(queue=queue, nowait=True))
            for exchange in self.exchanges:
                channel.send(spec.Exchange.Delete(exchange=exchange, nowait=True))
            channel.sync()
            self.close()
        self.loop.deactivate_poller()
        self.loop.close()


class Connection:
    """A connection to the broker. `capabilities`: the client capabilities to announce instead of pika's."""

    def __init__(self, client, user="guest", password=None, vhost="/", capabilities=None, frame_max=131072, tune=None):
        self.client = client
        self.closed = None
        host, port = client.broker.amqp
        credentials = pika.PlainCredentials(user, password or user)
        parameters = pika.ConnectionParameters(
            # Silent for as long as a test looks elsewhere, and that may take long: no heartbeats.
            host, port, vhost, credentials, frame_max=frame_max, **({"heartbeat": 0} | (tune or {}))
        )
        if capabilities is not None:
            parameters.client_properties = {"capabilities": capabilities}
        self._opened, self._said = False, None
        self.pika = _Wiretap(
            parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_close,
            on_close_callback=self._on_close,
            custom_ioloop=client.loop,
        )
        self.pika.taps[0] = self._on_frame
        if not client.run_until(lambda: self._opened or self.closed):
            raise TimeoutError("the broker did not open the connection")
        if self.closed:
            raise self.closed

    def _on_open(self, _connection):
        self._opened = True

    def _on_frame(self, frame):
        if isinstance(frame, pika.frame.Method) and isinstance(frame.method, spec.Connection.Close):
            self._said = frame.method  # pika wraps it in guesses while the connection opens
        return True

    def _on_close(self, _connection, reason):
        self.closed = Closed.by("connection", self._said or reason)

    def channel(self, number=None):
        """A new channel."""
        return Channel(self, number)

    def close(self):
        """Close the connection, unless it is closed already."""
        if self.closed is None:
            self.pika.close()
            self.client.run_until(lambda: self.closed)

    def drop(self):
        """Lose the connection: no connection.close, the socket just goes."""
        self.pika._transport._sock.shutdown(socket.SHUT_RDWR)  # pika has no word for a crash
        self.client.run_until(lambda: self.closed)
