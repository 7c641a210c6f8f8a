"""An innocent client that works on its own connection while the tests attack the broker on others.

One thread publishes numbered messages to its own queue with confirms, consumes and acknowledges them. Every message
must come back confirmed, once, in order, unchanged and not redelivered; its one connection must live as long as the
test run, which also proves that the broker did not restart.
"""

import threading
import time

import wire

PACE_S = 0.004  # between two messages; about 200 messages a second
STALL_MAX_S = 8.0  # longest round trip that is still "served": the machine is shared and the tests hit it hard
PROGRESS_TIMEOUT_S = 15.0


class Bystander:
    def __init__(self, broker):
        self.peer = broker.peer().connect()
        self.queue = self.peer.call(1, "queue.declare", exclusive=True).queue
        self.peer.call(1, "confirm.select")
        self.peer.call(1, "basic.consume", queue=self.queue, consumer_tag="bystander")
        self.rounds = 0
        self.longest_round_s = 0.0
        self.failure = None
        self.stopping = threading.Event()
        self.progress = threading.Condition()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while not self.stopping.wait(PACE_S):
                began = time.monotonic()
                self._round(self.rounds + 1)
                with self.progress:
                    self.rounds += 1
                    self.longest_round_s = max(self.longest_round_s, time.monotonic() - began)
                    self.progress.notify_all()
        except BaseException as failure:  # noqa: BLE001 - handed to the test that asks next
            with self.progress:
                self.failure = failure
                self.progress.notify_all()

    def _round(self, number):
        body = b"message %d " % number + b"." * (number % 100)
        self.peer.publish(1, "", self.queue, body, {"delivery_mode": 1 + number % 2})
        delivered = confirmed = False
        while not (delivered and confirmed):
            channel, got = self.peer.read_method(PROGRESS_TIMEOUT_S)
            assert channel == 1
            if got.name == "basic.deliver":
                assert not delivered and not got.redelivered and got.delivery_tag == number, (number, got)
                _, content, _ = self.peer.read_content(1)
                assert content == body, (content, body)
                delivered = True
            else:
                assert got == wire.Method("basic.ack", {"delivery_tag": number, "multiple": False}), (number, got)
                confirmed = True
        self.peer.send_method(1, "basic.ack", delivery_tag=number)

    def assert_intact(self):
        """Two whole rounds are finished from now, nothing was ever lost, and no round took longer than allowed."""
        with self.progress:
            goal = self.rounds + 2
            self.progress.wait_for(lambda: self.failure or self.rounds >= goal, PROGRESS_TIMEOUT_S)
            assert self.failure is None, f"the bystander suffered: {self.failure!r}"
            assert self.rounds >= goal, "the bystander is not served any more"
            longest, self.longest_round_s = self.longest_round_s, 0.0
        assert longest <= STALL_MAX_S, f"the bystander waited {longest:.1f} s"

    def stop(self):
        self.stopping.set()
        self.thread.join(PROGRESS_TIMEOUT_S)
        self.peer.socket.close()
