"""A Leveret process on a data directory that outlives it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pika

from ledger import Fault

sys.path.append(str(Path(__file__).resolve().parent.parent / "machine"))

import processor  # noqa: E402 - needs the path
from patience import Patience  # noqa: E402

# Seconds, on a machine that does nothing else.
START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 60.0
# The pause between two looks grows: many looks are requests, and what takes seconds need not be seen within milliseconds.
PAUSE_MIN_S, PAUSE_MAX_S, PAUSE_GROWTH = 0.005, 0.05, 1.25
START_LINE = re.compile(r"AMQP on (\S+):(\d+),.* HTTP on (\S+):(\d+)")


def cpu_s(pids):
    """Processor time of all these processes together, in seconds."""
    return sum(processor.time_s(pid) for pid in pids)


class Broker:
    """Started, killed and started again; `folder` has its configuration and its log.

    Clients find it at `host`; `prefix` is a command that runs it, and becomes it.
    """

    host, prefix = "127.0.0.1", ()

    def __init__(self, binary, folder, config="", data=None):
        self.binary, self.folder = binary, folder
        self.data = data or folder / "data"
        self.log = folder / "broker.log"
        self.config = folder / "rabbitmq.conf"
        self.config.write_text(config)
        self.address = self.http_address = self.process = None
        self.log_begins = 0

    def launch(self, environment=None, **options):
        """Begins a life without waiting for anything; `options` are those of Popen."""
        self.log_begins = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, self.binary, "--config", self.config, "--data-dir", self.data,
                 "--amqp", f"{self.host}:0", "--http", f"{self.host}:0"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(environment or {})}, **options)

    def start(self, environment=None, **options):
        """Begins a life; the seconds until clients are served."""
        began = time.monotonic()
        self.launch(environment, **options)
        if not self.wait_until(self.is_listening, START_TIMEOUT_S):
            raise Fault(f"the broker does not start: {self.said()[-1000:]}")
        return time.monotonic() - began

    def is_listening(self, after=""):
        """Whether it has said its addresses, after this text if any: it may have started anew in one life."""
        found = None
        for found in START_LINE.finditer(self.said().partition(after)[2] if after else self.said()):
            pass
        if found:
            self.address = (found[1], int(found[2]))
            self.http_address = f"{found[3]}:{found[4]}"
        return found

    def wait_until(self, holds, timeout_s):
        """Whether something came to hold while the process lived, and before the patience for it was over."""
        patience, pause_s = Patience(timeout_s), PAUSE_MIN_S
        while not holds():
            if self.process.poll() is not None or patience.is_over():
                return bool(holds())
            time.sleep(pause_s)
            pause_s = min(pause_s * PAUSE_GROWTH, PAUSE_MAX_S)
        return True

    def said(self):
        """What it has written into its log in this life."""
        with open(self.log, "rb") as log:
            log.seek(self.log_begins)
            return log.read().decode(errors="replace")

    def errors(self):
        """The lines of this life that say ERROR."""
        return [line for line in self.said().splitlines() if " ERROR " in line]

    def connect(self):
        host, port = self.address
        return pika.BlockingConnection(pika.ConnectionParameters(
            host, port, heartbeat=0, socket_timeout=ANSWER_TIMEOUT_S, stack_timeout=ANSWER_TIMEOUT_S,
            blocked_connection_timeout=ANSWER_TIMEOUT_S))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Ends it as an operator does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self):
        """Its exit code, once it has ended."""
        return self.process.wait(END_TIMEOUT_S)

    def check(self, data=None):
        """What `leveret check` says of the directory: exit code and text."""
        done = subprocess.run(
            [self.binary, "check", "--data-dir", data or self.data], capture_output=True, text=True, timeout=2 * END_TIMEOUT_S)
        return done.returncode, done.stdout + done.stderr
