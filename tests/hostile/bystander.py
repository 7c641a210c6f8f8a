"""The bystander: a well-behaved client that works on its own connection while the tests attack the broker on others.

It publishes numbered messages to its own queue with confirms, consumes and acknowledges them. Every message must come
back confirmed, once, in order, unchanged and not redelivered; its one connection must live as long as the test run,
which also proves that the broker did not restart.

It is a process of its own, so that what it waits for is the broker and the machine, and not the Python of the attacker:
`Bystander` starts it, and asks it on a pipe how it has fared.
"""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from peer import Peer, Silent
from stopwatch import Stopwatch

PACE_S = 0.03  # between two messages; about 30 messages a second
# The longest round that is still "served", by the stopwatch. Some milliseconds are the rule, and 0.5 s the longest that
# was measured with one worker on two cores with a load of ten; the rest is for disks that others keep busy.
STALL_MAX_S = 4.0
PROGRESS_TIMEOUT_S = 60.0
# A wait is cut into pieces. A piece that takes longer than its timeout is a pause of the whole machine, and counts only
# as a piece: a virtual machine that stands still for 20 s is no broker that is silent for 20 s.
PIECE_S = 0.5
ROUNDS_MORE = 2  # finished after the question, before it is answered


class Bystander:
    """The bystander, as the tests see it."""

    def __init__(self, broker, pace_s=PACE_S):
        host, port = broker.address
        words = (host, port, pace_s, *([] if broker.pid is None else [broker.pid]))
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        self.latencies_s()

    def latencies_s(self):
        """How long each round took since the last question, by the clock; nothing was ever lost, and no round took too
        long, by the stopwatch."""
        self.process.stdin.write("how do you fare?\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["failure"] is None, f"the bystander suffered: {answer['failure']}"
        assert answer["worst_s"] <= STALL_MAX_S, f"the bystander waited {answer['worst_s']:.1f} s"
        return answer["latencies_s"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(PROGRESS_TIMEOUT_S)
        self.process.stdout.close()


class BystanderPeer(Peer):
    """A peer whose timeouts and latencies leave out the pauses of the machine."""

    paused_s = 0.0

    def _fill(self, deadline):
        del deadline  # those of `Peer` go by the clock alone
        for _ in range(round(PROGRESS_TIMEOUT_S / PIECE_S)):
            began = time.monotonic()
            try:
                return super()._fill(began + PIECE_S)
            except Silent:
                continue
            finally:
                self.paused_s += max(0.0, time.monotonic() - began - PIECE_S)
        raise Silent(f"{PROGRESS_TIMEOUT_S} s, without pauses of the machine of {self.paused_s:.1f} s")


class BystanderClient:
    """The bystander itself, in its own process."""

    def __init__(self, peer, pace_s=PACE_S, pid=None):
        self.pace_s = pace_s
        self.pid = pid
        self.peer = peer.connect()
        self.queue = self.peer.call(1, "queue.declare", exclusive=True).queue
        self.peer.call(1, "confirm.select")
        self.peer.call(1, "basic.consume", queue=self.queue, consumer_tag="bystander")
        self.rounds = 0
        self.latencies_s = []
        self.worst_s = 0.0
        self.failure = None
        self.progress = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        try:
            while True:
                time.sleep(self.pace_s)
                watch, paused_s = Stopwatch(self.pid), self.peer.paused_s
                began = time.monotonic()
                self._round(self.rounds + 1)
                paused_s = self.peer.paused_s - paused_s
                took_s = time.monotonic() - began - paused_s
                with self.progress:
                    self.rounds += 1
                    self.latencies_s.append(round(took_s, 6))
                    # Rounds as they are on a machine that does nothing else need no second look.
                    worse_s = took_s if took_s < PIECE_S else watch.elapsed_s() - paused_s
                    self.worst_s = max(self.worst_s, worse_s)
                    self.progress.notify_all()
        except BaseException as failure:  # noqa: BLE001 - raised in the test that asks next
            with self.progress:
                self.failure = repr(failure)
                self.progress.notify_all()

    def _round(self, number):
        body = b"message %d " % number + b"." * (number % 100)
        self.peer.publish(1, "", self.queue, body, {"delivery_mode": 1 + number % 2})
        delivered = confirmed = False
        while not (delivered and confirmed):
            channel, got = self.peer.read_method()
            assert channel == 1
            if got.name == "basic.deliver":
                assert not delivered and not got.redelivered and got.delivery_tag == number, (number, got)
                _, content, _ = self.peer.read_content(1)
                assert content == body, (content, body)
                delivered = True
            else:
                assert (got.name, got.args) == ("basic.ack", {"delivery_tag": number, "multiple": False}), (number, got)
                confirmed = True
        self.peer.send_method(1, "basic.ack", delivery_tag=number)

    def fares(self):
        """Waits for more rounds, and returns their latencies, the worst by the stopwatch, and the failure, if any."""
        with self.progress:
            goal = self.rounds + ROUNDS_MORE
            # No timeout: `_run` makes progress or fails.
            self.progress.wait_for(lambda: self.failure or self.rounds >= goal)
            latencies_s, self.latencies_s = self.latencies_s, []
            worst_s, self.worst_s = self.worst_s, 0.0
        return {"failure": self.failure, "latencies_s": latencies_s, "worst_s": worst_s}


def main(host, port, pace_s, pid=None):
    client = BystanderClient(BystanderPeer((host, int(port))), float(pace_s), pid and int(pid))
    for _ in sys.stdin:
        print(json.dumps(client.fares()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
