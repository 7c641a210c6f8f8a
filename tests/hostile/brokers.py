"""The broker under test: a Leveret of our own per test worker, or a RabbitMQ that runs already."""

import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from peer import Peer, TlsPeer
from stopwatch import Stopwatch, cpu_s

START_TIMEOUT_S = 120.0  # a second or less, on a machine that does nothing else
STOP_TIMEOUT_S = 60.0
START_LINE = re.compile(r"\bAMQP on \S+,.* HTTP on .*")
TLS_CONFIG = """
listeners.ssl.1 = 127.0.0.1:0
management.ssl.ip = 127.0.0.1
management.ssl.port = 0
ssl_options.certfile = {certificate}
ssl_options.keyfile = {key}
"""


class RabbitMQ:
    """A running RabbitMQ, known only by its address."""

    kind = "rabbitmq"

    transport = "tcp"

    pid = None

    def __init__(self, address):
        self.address = address

    def stopwatch(self):
        return Stopwatch()

    def cpu_s(self):
        """Not ours to look at, as the memory."""
        return 0.0

    def peer(self, **options):
        return Peer(self.address, **options)

    def assert_alive(self):
        """Its process is not ours to look at; the bystander's unbroken connection proves that it did not restart."""

    def resident_bytes(self):
        """Not ours to look at, either."""
        return 0

    def threads(self):
        return ""

    def revive(self):
        pass

    def stop(self):
        pass


class Leveret:
    """A Leveret process that this worker started and will end, with an empty data directory."""

    kind = "leveret"

    def __init__(self, binary, preexec=None, config="", certificate=None, parent=None):
        """Its files are in a new folder below `parent`, or below the system's folder for temporary files."""
        self.binary = binary
        self.parent = parent
        self.preexec = preexec
        self.config = config
        self.certificate = certificate
        self.transport = "tcp"
        if certificate:
            self.config += TLS_CONFIG.format(certificate=certificate.file, key=certificate.key_file)
        self._start()

    def _start(self):
        self.directory = Path(tempfile.mkdtemp(prefix="leveret-hostile-", dir=self.parent))
        (self.directory / "rabbitmq.conf").write_text(self.config)
        self.lives = 0
        self._launch()

    def _launch(self):
        """Begins a life on the data directory as it is, with a log of its own."""
        self.lives += 1
        self.log = self.directory / f"stderr.{self.lives}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.binary, "--config", str(self.directory / "rabbitmq.conf"),
                 "--data-dir", str(self.directory / "data"), "--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, preexec_fn=self.preexec)
        try:
            self.addresses = self._wait_for_start_line()
        except BaseException:
            self.stop()
            raise

    def _wait_for_start_line(self):
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            found = START_LINE.search(self.log.read_text(errors="replace"))
            if found:
                listeners = re.findall(r"(\w+) on (\S+):(\d+)", found[0])
                return {protocol: (host, int(port)) for protocol, host, port in listeners}
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"leveret did not start: {self.log.read_text(errors='replace')[-2000:]}")

    @property
    def pid(self):
        return self.process.pid

    @property
    def address(self):
        return self.addresses["AMQP"]

    @property
    def http_address(self):
        return self.addresses["HTTP"]

    def peer(self, **options):
        if self.transport == "tls":
            peer = TlsPeer(self.addresses["AMQPS"], self.certificate.context(), **options)
        else:
            peer = Peer(self.address, **options)
        peer.pid = self.pid
        return peer

    def stopwatch(self):
        """One that runs from now on."""
        return Stopwatch(self.pid)

    def cpu_s(self):
        """Processor time of the process: what its work takes, whatever else the machine does."""
        return cpu_s(self.pid)

    def assert_alive(self):
        """The same process still runs and no task of it has panicked."""
        log = self.log.read_text(errors="replace")
        assert self.process.poll() is None, f"leveret ended with {self.process.returncode}: {log[-4000:]}"
        assert "panicked at" not in log, log[-4000:]

    def descriptors(self):
        """How many file descriptors the process has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def resident_bytes(self):
        """VmRSS of the process."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS: the process is gone")

    def threads(self):
        """What each thread of the process waits for, for the report of a failure."""
        try:
            tasks = sorted(Path(f"/proc/{self.process.pid}/task").iterdir())
            return "\n".join(
                " ".join((task / name).read_text().strip() for name in ("comm", "wchan", "syscall")) for task in tasks)
        except OSError as gone:
            return str(gone)

    def revive(self):
        """A new process, so that one defect fails one test and not all that follow."""
        self.stop()
        self._start()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def start_again(self):
        """After its end, with what it has left on disk."""
        self._launch()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        if self.process.poll() is None:
            self.terminate()
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
