"""How much memory the broker takes while something is done to it. Only a Leveret's process can be looked at."""

import threading

SAMPLE_S = 0.01
MIB = 1 << 20

# Bodies of one frame: those that come in several leave the buffers behind in which they were put together.
BALLAST = bytes(32 * 1024)
BALLAST_BYTES = 64 * MIB


def fill_what_logins_left(peer):
    """Fills with messages what checking passwords has left behind in the allocator, where it would hide growth. They
    go with the peer's connection."""
    queue = peer.connect().call(1, "queue.declare", exclusive=True).queue
    peer.call(1, "confirm.select")
    count = BALLAST_BYTES // len(BALLAST)
    for _ in range(count):
        peer.publish(1, "", queue, BALLAST)
    while peer.expect(1, "basic.ack").delivery_tag < count:
        pass


class Growth:
    """Within a `with` block: the highest resident size seen, less the size at its beginning.

    Against RabbitMQ nothing is measured and the growth is zero: the same test then checks the protocol only.
    """

    def __init__(self, broker):
        self.resident_bytes = broker.resident_bytes
        self.before = self.highest = 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self):
        self.before = self.highest = self.resident_bytes()
        self.thread.start()
        return self

    def _sample(self):
        while not self.done.wait(SAMPLE_S):
            self.highest = max(self.highest, self.resident_bytes())

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.highest = max(self.highest, self.resident_bytes())

    @property
    def bytes(self):
        return self.highest - self.before
