"""A flood of small messages across kills: thousands in flight, counted by number, read back in one go.

The frames of all publishes have the same length, and so have those of all deliveries: millions of messages are checked
within minutes.
"""

import pathlib
import struct
import sys
import threading

from ledger import Fault
from workload import JOIN_TIMEOUT_S

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "hostile"))

import wire  # noqa: E402 - needs the path
from peer import Peer, Silent, SocketDropped  # noqa: E402

QUEUE = "crash.flood"
TAG = "flood"
PERSISTENT = {"delivery_mode": 2}
BLOCK = 200
IN_FLIGHT_MAX = 4000
# A frame with the method, the delivery tag, and `multiple`.
ACK = struct.Struct(">BHIHHQBB")
GONE = (OSError, SocketDropped, Silent)
READ_TIMEOUT_S = 120.0
CHECKS_MAX = 5

_PUBLISH = wire.publish(1, "", QUEUE, bytes(8), PERSISTENT)
_BEFORE, _AFTER = _PUBLISH[:-9], _PUBLISH[-1:]
_DELIVERY = (
    wire.method_frame(1, "basic.deliver", consumer_tag=TAG, delivery_tag=0, redelivered=False, exchange="",
                      routing_key=QUEUE)
    + wire.header_frame(1, 8, PERSISTENT) + wire.body_frame(1, bytes(8)))


class Flood:
    """The numbers of one queue, which are published in order: which are confirmed, and how many there are."""

    def __init__(self):
        self.first = 1  # of those that have not been checked
        self.last = 0
        self.confirmed = set()


class FloodWorkload:
    """One publisher with thousands of messages in flight, until the broker is gone or it is stopped."""

    def __init__(self, broker, flood):
        connection = broker.connect()
        connection.channel().queue_declare(QUEUE, durable=True)
        connection.close()
        self.failure = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(broker, flood), daemon=True)
        self.thread.start()

    def _run(self, broker, flood):
        try:
            publish(broker, flood, self.stop)
        except GONE:
            pass
        except BaseException as failure:  # noqa: BLE001 - raised when the workload ends
            self.failure = failure

    def end(self):
        self.stop.set()
        self.thread.join(JOIN_TIMEOUT_S)
        if self.failure:
            raise self.failure


def publish(broker, flood, stop):
    peer = Peer(broker.leading_address()).connect()
    peer.call(1, "confirm.select")
    offset = flood.last  # of the numbers before the delivery tags
    tags_to, waiting = 0, 0
    while not (stop.is_set() and waiting == 0):
        if waiting <= IN_FLIGHT_MAX - BLOCK and not stop.is_set():
            numbers = range(flood.last + 1, flood.last + BLOCK + 1)
            flood.last += BLOCK
            waiting += BLOCK
            peer.socket.sendall(b"".join(_BEFORE + number.to_bytes(8) + _AFTER for number in numbers))
            peer.socket.settimeout(0)
        else:
            peer.socket.settimeout(READ_TIMEOUT_S)
        try:
            data = peer.socket.recv(1 << 18)
        except (BlockingIOError, TimeoutError):
            if peer.socket.gettimeout():
                raise Fault(f"{waiting} publishes wait {READ_TIMEOUT_S} s for their confirms") from None
            peer.socket.settimeout(READ_TIMEOUT_S)
            continue
        if not data:
            return
        peer.socket.settimeout(READ_TIMEOUT_S)
        peer.buffer += data
        while len(peer.buffer) >= ACK.size:
            kind, channel, length, class_id, method, tag, multiple, end = ACK.unpack_from(peer.buffer)
            if (kind, channel, length, class_id, method, end) != (1, 1, 13, 60, 80, 0xCE):
                # The end of the connection, or a message that is refused.
                return
            del peer.buffer[:ACK.size]
            if multiple:
                new = set(range(tags_to + 1 + offset, tag + 1 + offset)) - flood.confirmed
                tags_to = tag
            else:
                new = {tag + offset}
            flood.confirmed |= new
            waiting -= len(new)


def check_flood(broker, flood):
    """Takes all messages of the queue; the number of confirmed ones."""
    found = set()
    for attempt in range(CHECKS_MAX):
        try:
            # Another node may take the lead: what was not acknowledged comes again, and has longer headers.
            take_all(broker, found, fresh if attempt == 0 else any_of)
            break
        except GONE:
            continue
    else:
        raise Fault(f"{QUEUE} cannot be read")
    if found and not flood.first <= min(found) <= max(found) <= flood.last:
        raise Fault(f"nobody published message {min(found)} or {max(found)} of {QUEUE}, or it is back after a check")
    if lost := flood.confirmed.difference(found):
        raise Fault(f"{len(lost)} confirmed messages of {QUEUE} are lost, message {min(lost)} among them")
    confirmed = len(flood.confirmed)
    flood.first, flood.confirmed = flood.last + 1, set()
    return confirmed


def fresh(peer, count):
    """The numbers of deliveries that all have the same length."""
    octets = peer.read_bytes(count * len(_DELIVERY), READ_TIMEOUT_S)
    return (number for number, _ in struct.iter_unpack(f">{len(_DELIVERY) - 9}xQB", octets))


def any_of(peer, count):
    """The numbers of deliveries of any length."""
    for _ in range(count):
        peer.expect(1, "basic.deliver", READ_TIMEOUT_S)
        _, body, _ = peer.read_content(1)
        yield int.from_bytes(body)


def take_all(broker, found, read):
    """Takes the messages of the queue, and acknowledges them in blocks."""
    connection = broker.connect()
    count = connection.channel().queue_declare(QUEUE, durable=True, passive=True).method.message_count
    connection.close()
    peer = Peer(broker.leading_address()).connect()
    if count:
        peer.call(1, "basic.consume", queue=QUEUE, consumer_tag=TAG)
    taken, last = 0, 0
    while taken < count:
        block = min(count - taken, IN_FLIGHT_MAX)
        for number in read(peer, block):
            if number <= last:
                raise Fault(f"messages of {QUEUE} are out of order, or there twice")
            last = number
            found.add(number)
        taken += block
        peer.send_method(1, "basic.ack", delivery_tag=taken, multiple=True)
    # Answered behind all acknowledgements.
    peer.call(1, "basic.cancel", consumer_tag=TAG)
    peer.socket.close()
