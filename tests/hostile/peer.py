"""A peer on a raw socket: it says what the test tells it to say and reports exactly what came back.

It keeps no state about channels or methods of its own, answers nothing by itself (no close-ok, no heartbeat) and never
hides a frame, except that `skip heartbeats` is what every reader below does unless it is asked for them.
"""

import os
import re
import socket
import ssl
import struct
import time

import wire
from answers import CODE_NAMES, DROPPED, UNHARMED, Closed
from stopwatch import Stopwatch

ANSWER_TIMEOUT_S = 60.0  # for answers that come at once, on a machine that does much else
# By the stopwatch: RabbitMQ drops refused peers after about 3 s.
DROP_TIMEOUT_S = 10.0
LOOK_S = 0.5  # between two looks at the stopwatch

# Asking the kernel about one socket: linux/netlink.h and linux/sock_diag.h.
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1

# RabbitMQ prints long terms over several lines, indented to the column where they began.
ERLANG_LINE_BREAK = re.compile(r"\n {2,}")

CAPABILITIES = (
    "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify", "connection.blocked",
    "consumer_priorities", "authentication_failure_close", "per_consumer_qos", "direct_reply_to",
)


def client_properties(**capabilities):
    """Client properties that announce the given capabilities, e.g. `consumer_cancel_notify=True`."""
    table = [(name.replace("__", "."), ("t", flag)) for name, flag in capabilities.items()]
    return [("product", ("S", b"hostile")), ("capabilities", ("F", table))]


class SocketDropped(Exception):
    """The broker closed the socket (end of file or reset) while something was still to be read."""


class Silent(Exception):
    """Nothing arrived in time."""


class Peer:
    # The broker's process, if it is ours to look at.
    pid = None

    def __init__(self, address, rcvbuf=None):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if rcvbuf is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(ANSWER_TIMEOUT_S)
        self.socket.connect(address)
        self.buffer = bytearray()
        self.frame_max = 131072

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # ------------------------------------------------------------------------------------------------ sending

    def send(self, *pieces):
        """Sends bytes. A peer that has been dropped meanwhile is found out at the next read, not here."""
        try:
            self.socket.sendall(b"".join(pieces))
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            pass

    def send_method(self, channel, name, **args):
        self.send(wire.method_frame(channel, name, **args))

    def publish(self, channel, exchange, routing_key, body=b"", properties=(), **flags):
        self.send(wire.publish(channel, exchange, routing_key, body, properties, self.frame_max, **flags))

    def half_close(self):
        """Says that nothing more will come, unless the broker has hung up already."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def reset(self):
        """Ends the connection with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # ------------------------------------------------------------------------------------------------ reading

    def _fill(self, deadline):
        """Reads more bytes into the buffer, or raises SocketDropped or Silent."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise Silent()
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise Silent() from None
        except ConnectionResetError:
            raise SocketDropped() from None
        if not data:
            raise SocketDropped()
        self.buffer += data

    def read_bytes(self, count, timeout=ANSWER_TIMEOUT_S):
        """Exactly `count` bytes."""
        deadline = time.monotonic() + timeout
        while len(self.buffer) < count:
            self._fill(deadline)
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def _fill_by(self, watch, timeout):
        """As `_fill`, with a timeout by the stopwatch."""
        while True:
            now = time.monotonic()
            left = watch.began + timeout - now
            if left <= 0 and watch.elapsed_s() > timeout:
                raise Silent()
            try:
                return self._fill(now + (min(left, LOOK_S) if left > 0 else LOOK_S))
            except Silent:
                continue

    def arrives(self, timeout):
        """Whether anything more arrives within this time by the stopwatch."""
        watch = Stopwatch(self.pid)
        try:
            if not self.buffer:
                self._fill_by(watch, timeout)
            return True
        except Silent:
            return False

    def read_until_drop(self, timeout=DROP_TIMEOUT_S, watch=None):
        """Everything that arrives until the broker closes the socket; Silent if it does not, by the stopwatch."""
        watch = watch or Stopwatch(self.pid)
        try:
            while True:
                self._fill_by(watch, timeout)
        except SocketDropped:
            data = bytes(self.buffer)
            self.buffer.clear()
            return data

    def read_frame(self, timeout=ANSWER_TIMEOUT_S):
        """The next frame of any type."""
        deadline = time.monotonic() + timeout
        while len(self.buffer) < 7:
            self._fill(deadline)
        type_, channel, size = struct.unpack_from(">BHI", self.buffer)
        while len(self.buffer) < size + wire.FRAME_OVERHEAD:
            self._fill(deadline)
        payload = bytes(self.buffer[7:7 + size])
        if self.buffer[7 + size] != wire.FRAME_END:
            raise wire.Malformed(f"frame end {self.buffer[7 + size]:#x} after type {type_}")
        del self.buffer[:size + wire.FRAME_OVERHEAD]
        return wire.Frame(type_, channel, payload)

    def read_frame_but_heartbeat(self, timeout=ANSWER_TIMEOUT_S):
        deadline = time.monotonic() + timeout
        while True:
            frame = self.read_frame(max(0.0, deadline - time.monotonic()))
            if frame.type != wire.FRAME_HEARTBEAT:
                return frame

    def read_method(self, timeout=ANSWER_TIMEOUT_S):
        """The next method as (channel, Method); anything but a method frame is an error."""
        frame = self.read_frame_but_heartbeat(timeout)
        if frame.type != wire.FRAME_METHOD:
            raise wire.Malformed(f"expected a method frame, got {frame}")
        return frame.channel, wire.decode_method(frame.payload)

    def expect(self, channel, name, timeout=ANSWER_TIMEOUT_S):
        """The next method, which must be `name` on `channel`."""
        got_channel, got = self.read_method(timeout)
        assert (got_channel, got.name) == (channel, name), f"expected {name} on {channel}, got {got} on {got_channel}"
        return got

    def call(self, channel, name, **args):
        """Sends a method and returns its `-ok`."""
        self.send_method(channel, name, **args)
        return self.expect(channel, name + "-ok")

    def read_content(self, channel):
        """Header and whole body after a deliver, get-ok or return, as (Header, body, sizes of the body frames)."""
        frame = self.read_frame_but_heartbeat()
        assert (frame.type, frame.channel) == (wire.FRAME_HEADER, channel), frame
        header = wire.decode_header(frame.payload)
        body, sizes = bytearray(), []
        while len(body) < header.body_size:
            frame = self.read_frame_but_heartbeat()
            assert (frame.type, frame.channel) == (wire.FRAME_BODY, channel), frame
            body += frame.payload
            sizes.append(len(frame.payload))
        assert len(body) == header.body_size
        return header, bytes(body), sizes

    def get(self, channel, queue, no_ack=True, timeout=ANSWER_TIMEOUT_S):
        """basic.get until there is a message: (get-ok, Header, body)."""
        deadline = time.monotonic() + timeout
        while True:
            self.send_method(channel, "basic.get", queue=queue, no_ack=no_ack)
            got_channel, got = self.read_method()
            assert got_channel == channel
            if got.name == "basic.get-ok":
                header, body, _ = self.read_content(channel)
                return got, header, body
            assert got.name == "basic.get-empty", got
            assert time.monotonic() < deadline, f"{queue} stayed empty"

    def outcome(self, timeout=ANSWER_TIMEOUT_S):
        """How the broker ends this: Closed (connection or channel) or DROPPED. Frames before it are read past."""
        deadline = time.monotonic() + timeout
        try:
            while True:
                closed = self._as_closed(self.read_frame(max(0.0, deadline - time.monotonic())))
                if closed:
                    return closed
        except SocketDropped:
            return DROPPED

    def outcome_or_unharmed(self, channel=1, timeout=ANSWER_TIMEOUT_S):
        """Like `outcome`, but a round trip on `channel` is asked for behind the attack: UNHARMED when it is answered.

        Use it where an answer may rightly be "nothing happened". The round trip is basic.qos.
        """
        self.send_method(channel, "basic.qos", prefetch_count=0)
        deadline = time.monotonic() + timeout
        try:
            while True:
                frame = self.read_frame(max(0.0, deadline - time.monotonic()))
                closed = self._as_closed(frame)
                if closed:
                    return closed
                if frame.payload == wire.method("basic.qos-ok") and frame.channel == channel:
                    return UNHARMED
        except SocketDropped:
            return DROPPED

    @staticmethod
    def _as_closed(frame):
        if frame.type != wire.FRAME_METHOD:
            return None
        got = wire.decode_method(frame.payload)
        if got.name not in ("connection.close", "channel.close"):
            return None
        name = CODE_NAMES[got.reply_code]
        assert got.reply_text == name or got.reply_text.startswith(name + " - "), got
        text = ERLANG_LINE_BREAK.sub("", got.reply_text)
        return Closed(got.name.split(".")[0], got.reply_code, text, (got.class_id, got.method_id))

    def assert_usable(self, channel=1):
        """The connection still does what it is asked: a round trip on `channel`."""
        self.call(channel, "basic.qos", prefetch_count=0)

    def assert_dropped(self, timeout=DROP_TIMEOUT_S):
        """The broker closes the socket, after any other frames; the timeout is by the stopwatch."""
        self.read_until_drop(timeout)

    # ------------------------------------------------------------------------------------------------ handshake

    def start(self):
        """Protocol header out, connection.start in."""
        self.send(wire.PROTOCOL_HEADER)
        return self.expect(0, "connection.start")

    def start_ok(self, properties=(), mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US"):
        self.send_method(
            0, "connection.start-ok", client_properties=properties, mechanism=mechanism, response=response,
            locale=locale)

    def log_in(self, properties=(), user="guest"):
        """Up to and including connection.tune; the password is the user's name."""
        self.start()
        self.start_ok(properties, response=f"\0{user}\0{user}".encode())
        return self.expect(0, "connection.tune")

    def connect(
            self, vhost="/", properties=(), channel_max=2047, frame_max=131072, heartbeat=0, channels=(1,),
            user="guest"):
        """The whole handshake and channel.open for each of `channels`."""
        self.log_in(properties, user)
        self.frame_max = frame_max
        self.send_method(0, "connection.tune-ok", channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
        self.send_method(0, "connection.open", virtual_host=vhost)
        self.expect(0, "connection.open-ok")
        for channel in channels:
            self.call(channel, "channel.open")
        return self

    # ------------------------------------------------------------------------------------------------ the kernel's view

    def wait_until_read(self, timeout=ANSWER_TIMEOUT_S):
        """Waits until the broker has read every byte sent so far, by looking at its receive queue in the kernel.

        This is what makes "split at every byte" true: the next byte is sent when the broker has taken the last one.
        """
        ours, theirs = self.socket.getsockname(), self.socket.getpeername()
        deadline = time.monotonic() + timeout
        while unread_bytes(theirs, ours) != 0:
            if time.monotonic() > deadline:
                raise Silent()


class TlsPeer(Peer):
    """A peer that does all this within TLS."""

    def __init__(self, address, context, rcvbuf=None):
        super().__init__(address, rcvbuf)
        self.socket = context.wrap_socket(self.socket)

    def half_close(self):
        """Below TLS, whose own farewell would end both directions."""
        with socket.socket(fileno=os.dup(self.socket.fileno())) as below:
            try:
                below.shutdown(socket.SHUT_WR)
            except OSError:
                pass


def unread_bytes(local, remote):
    """What waits in the receive queue of the socket between these addresses, as the kernel tells it (sock_diag(7)).

    A socket that is gone has nothing unread.
    """
    ports = struct.pack(">HH", local[1], remote[1])
    addresses = b"".join(socket.inet_aton(address[0]).ljust(16, b"\0") for address in (local, remote))
    ask = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ports + addresses
    ask += struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    head = struct.pack("=IHHII", 16 + len(ask), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.send(head + ask)
        answer = kernel.recv(4096)
    if struct.unpack_from("=IH", answer)[1] != SOCK_DIAG_BY_FAMILY:
        return 0
    return struct.unpack_from("=I", answer, 72)[0]
