"""Many connections of one process, all alike: as fast as Python can, with one epoll.

What a connection has to say is built before and sent at once, also the whole handshake, so that the broker and not this
process is what is slow.
"""

import itertools
import os
import resource
import select
import socket
import time

import wire

READ_BYTES = 1 << 16
CHANNEL_MAX = 2047
FRAME_MAX = 131072
POLL_S = 0.05
HUNG_UP = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP

# A port can be used again at once for another source; one source has 28,000.
SOURCES_PER_PROCESS = 8

# How answers end that are counted: the ids of the method, its arguments, the end of the frame.
OPENED = b"\x00\x0a\x00\x29\x00\xce"
CLOSED = b"\x00\x0a\x00\x33\xce"
CHANNEL_OPENED = b"\x00\x14\x00\x0b\x00\x00\x00\x00\xce"
CHANNEL_CLOSED = b"\x00\x14\x00\x29\xce"
QUEUE_DELETED = b"\x00\x32\x00\x29\x00\x00\x00\x00\xce"

BLOCKED = b"\x00\x0a\x00\x3c"
UNBLOCKED = b"\x00\x0a\x00\x3d\xce"

IP_BIND_ADDRESS_NO_PORT = 24


def raise_descriptor_limit(count):
    """Lets this process and those it starts have so many file descriptors, if the system does; how many they have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((max(soft, count), max(hard, count)), (hard, hard)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            break
        except (OSError, ValueError):
            continue  # only root may have more than the hard limit
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def greeting(heartbeat_s=0, channels=(), **capabilities):
    """What a client says until its connection and these channels are open."""
    table = [(name.replace("__", "."), ("t", flag)) for name, flag in capabilities.items()]
    return b"".join((
        wire.PROTOCOL_HEADER,
        wire.method_frame(
            0, "connection.start-ok", client_properties=[("capabilities", ("F", table))], mechanism="PLAIN",
            response=b"\0guest\0guest", locale="en_US"),
        wire.method_frame(
            0, "connection.tune-ok", channel_max=CHANNEL_MAX, frame_max=FRAME_MAX, heartbeat=heartbeat_s),
        wire.method_frame(0, "connection.open", virtual_host="/"),
        *(wire.method_frame(channel, "channel.open") for channel in channels),
    ))


class Lost(Exception):
    """The broker closed a connection that should have lived."""


class Crowd:
    """Connections of this process, by file descriptor."""

    def __init__(self, address, number=0, rcvbuf=None):
        self.address, self.rcvbuf = address, rcvbuf
        first = 2 + number * SOURCES_PER_PROCESS
        self.sources = itertools.cycle([f"127.0.0.{first + index}" for index in range(SOURCES_PER_PROCESS)])
        self.epoll = select.epoll()
        self.sockets = {}
        self.tails = {}

    def add(self, opening=b"", events=select.EPOLLIN):
        """One more connection, which says this; its descriptor."""
        client = socket.socket()
        # The port is chosen when the destination is known, too: then one that goes elsewhere does not count.
        client.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.rcvbuf:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.rcvbuf)
        client.bind((next(self.sources), 0))
        client.connect(self.address)
        client.sendall(opening)
        client.setblocking(False)
        descriptor = client.fileno()
        self.sockets[descriptor] = client
        self.epoll.register(descriptor, events)
        return descriptor

    def remove(self, descriptor):
        self.epoll.unregister(descriptor)
        self.tails.pop(descriptor, None)
        self.sockets.pop(descriptor).close()

    def ready(self):
        """Descriptors with their events, after a short wait if there are none."""
        return self.epoll.poll(POLL_S)

    def read(self, descriptor):
        """What has come; None when the broker has hung up."""
        try:
            return self.sockets[descriptor].recv(READ_BYTES) or None
        except BlockingIOError:
            return b""
        except ConnectionResetError:
            return None

    def count(self, descriptor, data, answer):
        """How often this answer is in what was read, also when the reads have cut one in two."""
        data = self.tails.get(descriptor, b"") + data
        self.tails[descriptor] = data[1 - len(answer):]
        return data.count(answer)

    def open(self, count, opening, answer=OPENED, answers=1, at_once=32):
        """Opens so many connections, some at once; the seconds each took until it had all answers."""
        took_s, began, missing = [], {}, {}
        while len(took_s) < count:
            while len(began) < min(at_once, count - len(took_s)):
                now = time.monotonic()
                descriptor = self.add(opening)
                began[descriptor], missing[descriptor] = now, answers
            for descriptor, _ in self.ready():
                data = self.read(descriptor)
                if data is None:
                    raise Lost(f"connection {len(took_s)} was closed by the broker")
                if descriptor in began:
                    missing[descriptor] -= self.count(descriptor, data, answer)
                    if missing[descriptor] <= 0:
                        took_s.append(time.monotonic() - began.pop(descriptor))
        self.tails.clear()
        return took_s

    def live(self, is_over, heartbeat_s):
        """Sends heartbeats on each connection, two per interval, and reads; returns the number of lost connections."""
        before, waiting, sent = len(self.sockets), [], 0
        beat, began = wire.heartbeat(), time.monotonic()
        while not is_over():
            due = int((time.monotonic() - began) * 2 / heartbeat_s * before)
            while sent < due and self.sockets:
                waiting = waiting or list(self.sockets)
                self.send(waiting.pop(), beat)
                sent += 1
            for descriptor, _ in self.ready():
                if self.read(descriptor) is None:
                    self.remove(descriptor)
        return before - len(self.sockets)

    def send(self, descriptor, data):
        """Sends as much as the socket takes, and returns the number of bytes."""
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)  # it has been dropped, which the next read finds out

    def close(self):
        for descriptor in list(self.sockets):
            self.remove(descriptor)
        self.epoll.close()
