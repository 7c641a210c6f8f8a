"""The messages for a service manager (systemd's `Type=notify` and its watchdog), and the exit codes that it acts on."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import pytest

from patience import PATIENCE_S, Patience
from ports import free_port


HEADER = b"AMQP\x00\x00\x09\x01"


class Service:
    """A broker as a service manager starts it; `messages` are the lines that it has sent, in order."""

    def __init__(self, binary, directory, *arguments, **environment):
        self.directory = directory
        self.messages = []
        self._changed = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = str(directory / "notify")
        self._socket.bind(path)
        threading.Thread(target=self._receive, daemon=True).start()
        clean = {name: value for name, value in os.environ.items() if "RABBITMQ" not in name and "LEVERET" not in name}
        # A stopped broker gives up its port for AMQP, and takes it again.
        amqp = f"127.0.0.1:{free_port()}"
        command = [binary, "--data-dir", "data", "--amqp", amqp, "--http", "127.0.0.1:0", *arguments]
        self.log = (directory / "log").open("w+")
        self.process = subprocess.Popen(command, cwd=directory, env=clean | {"NOTIFY_SOCKET": path} | environment,
                                        stderr=self.log, stdout=subprocess.DEVNULL)

    def _receive(self):
        while True:
            text = self._socket.recv(65536).decode()
            with self._changed:
                # The lines of one message belong together.
                self.messages.append(text.splitlines())
                self._changed.notify_all()

    def received(self, line, after=0):
        """Waits for a message with this line or beginning of a line; returns the number of messages up to it."""
        def found():
            at = [i for i, message in enumerate(self.messages) if i >= after and
                  any(one.startswith(line) for one in message)]
            return at[0] + 1 if at else None

        with self._changed:
            assert self._changed.wait_for(found, PATIENCE_S), f"no {line} in {self.messages}: {self.text()}"
            return found()

    def has(self, line):
        with self._changed:
            return any(one.startswith(line) for message in self.messages for one in message)

    def status(self, of):
        """The text of the status in the message with this number."""
        return next(line[len("STATUS="):] for line in self.messages[of - 1] if line.startswith("STATUS="))

    def text(self):
        self.log.flush()
        return (self.directory / "log").read_text()

    def stop(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)


@pytest.fixture
def service(under, tmp_path):
    """`service(*arguments, **environment)`: a broker of its own with a service manager."""
    if under.name == "rabbitmq":
        pytest.skip("the messages of Leveret")
    services = []

    def service(*arguments, **environment):
        services.append(Service(under.config.getoption("--leveret-bin"), tmp_path, *arguments, **environment))
        return services[-1]

    yield service
    for one in services:
        one.stop()


def address(status, what):
    """The address of a listener in a status: `serving AMQP on 127.0.0.1:1, HTTP on 127.0.0.1:2`."""
    host, port = status.split(f"{what} on ")[1].split(",")[0].rsplit(":", 1)
    return host, int(port)


def answers_amqp(at):
    with socket.create_connection(at, timeout=PATIENCE_S) as client:
        client.sendall(HEADER)
        return client.recv(1) == b"\x01"


def test_ready_is_sent_when_the_start_is_complete_and_amqp_answers(service, tmp_path):
    # The broker reads its definitions after its vhosts, and this file does not end before the test writes it.
    os.mkfifo(tmp_path / "definitions.json")
    (tmp_path / "a.conf").write_text("load_definitions = definitions.json\n")
    broker = service("--config", "a.conf", WATCHDOG_USEC="300000")
    definitions = (tmp_path / "definitions.json").open("w")
    broker.received("STATUS=starting")
    # A signal to reload during the start does not end it early.
    broker.process.send_signal(signal.SIGHUP)
    # The runtime of the broker works.
    broker.received("WATCHDOG=1", after=broker.received("WATCHDOG=1"))
    assert not broker.has("READY=1") and not broker.has("RELOADING=1")
    # The broker opens the file twice; to open it here waits until the second time has come.
    with definitions, (tmp_path / "definitions.json").open("w") as read_by_now:
        read_by_now.write("{}")
    at = broker.received("READY=1")
    status = broker.status(at)
    assert status.startswith("serving AMQP on ")
    assert answers_amqp(address(status, "AMQP"))


def test_start_that_fails_is_never_ready(service, tmp_path):
    (tmp_path / "definitions.json").write_text("{")
    (tmp_path / "a.conf").write_text("load_definitions = definitions.json\n")
    broker = service("--config", "a.conf")
    assert broker.process.wait(PATIENCE_S) == 78
    assert not broker.has("READY=1")


def test_watchdog_is_answered_again_and_again_until_the_stop(service):
    broker = service(WATCHDOG_USEC="300000")
    at = broker.received("READY=1")
    for _ in range(5):
        at = broker.received("WATCHDOG=1", after=at)
    broker.process.send_signal(signal.SIGTERM)
    stopping = broker.received("STOPPING=1")
    assert broker.process.wait(PATIENCE_S) == 0
    # One report may have been on its way.
    assert sum("WATCHDOG=1" in message for message in broker.messages[stopping:]) <= 1


def test_watchdog_of_another_process_is_not_answered(service):
    broker = service(WATCHDOG_USEC="10000", WATCHDOG_PID="1")
    at = broker.received("READY=1")
    assert answers_amqp(address(broker.status(at), "AMQP"))
    broker.process.send_signal(signal.SIGTERM)
    broker.received("STOPPING=1")
    assert not broker.has("WATCHDOG=1")


def test_reload_is_reported_from_its_begin_to_its_end(service):
    broker = service()
    at = broker.received("READY=1")
    before_us = time.monotonic_ns() // 1000
    broker.process.send_signal(signal.SIGHUP)
    begin = broker.received("RELOADING=1", after=at)
    # systemd compares the time with that of its request.
    message = broker.messages[begin - 1]
    stamp = next(line for line in message if line.startswith("MONOTONIC_USEC="))
    assert before_us <= int(stamp.split("=")[1]) <= time.monotonic_ns() // 1000
    broker.received("READY=1", after=begin)


def test_steps_of_the_start_extend_its_time(service):
    first = service()
    first.received("READY=1")
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(PATIENCE_S) == 0
    os.unlink(first.directory / "notify")
    second = service()
    step = second.received("STATUS=restoring vhost '/'")
    assert "EXTEND_TIMEOUT_USEC=300000000" in second.messages[step - 1]
    second.received("READY=1", after=step)


def test_alarm_is_the_status(service, tmp_path):
    (tmp_path / "a.conf").write_text("vm_memory_high_watermark.absolute = 1\n")
    broker = service("--config", "a.conf")
    # Also an alarm that is on before the start is complete.
    broker.received("READY=1")
    broker.received("STATUS=publishers are blocked: low on memory")


def test_stopped_node_is_watched_and_starts_again(service):
    broker = service(WATCHDOG_USEC="300000")
    at = broker.received("READY=1")
    act(broker, "stop_app")
    at = broker.received("STATUS=stopped; ", after=at)
    at = broker.received("WATCHDOG=1", after=at)
    act(broker, "start_app")
    at = broker.received("STATUS=serving AMQP on ", after=at)
    assert answers_amqp(address(broker.status(at), "AMQP"))
    assert not broker.has("STOPPING=1")
    act(broker, "stop")
    broker.received("STOPPING=1", after=at)
    assert broker.process.wait(PATIENCE_S) == 0


def act(broker, action):
    """Asks the local node for a step of its lifecycle, with the token in its data directory."""
    patience = Patience()
    while True:
        try:
            local = json.loads((broker.directory / "data" / "ctl.json").read_text())
            request = urllib.request.Request(f"{local['http']}/api/nodes/{local['node']}/actions", method="POST",
                                             data=json.dumps({"action": action}).encode())
            request.add_header("authorization", f"Bearer {local['token']}")
            request.add_header("content-type", "application/json")
            urllib.request.urlopen(request, timeout=PATIENCE_S).close()
            return
        except (OSError, ValueError):
            assert not patience.is_over(), f"{action} was not possible"
            time.sleep(0.05)


@pytest.mark.parametrize(("settings", "code"), [
    ("hartbeat = 1\n", 78),
    ("load_definitions = missing.json\n", 78),
    ("log.file = /proc/leveret.log\n", 78),
    ("listeners.ssl.default = 0\nssl_options.certfile = no.pem\nssl_options.keyfile = no.pem\n", 78),
])
def test_exit_code_says_that_the_configuration_must_change(service, tmp_path, settings, code):
    (tmp_path / "a.conf").write_text(settings)
    assert service("--config", "a.conf").process.wait(PATIENCE_S) == code


def test_exit_code_of_a_port_that_is_taken_allows_another_attempt(service, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "a.conf").write_text(f"prometheus.tcp.port = {taken.getsockname()[1]}\n"
                                         "prometheus.tcp.ip = 127.0.0.1\n")
        broker = service("--config", "a.conf")
        assert broker.process.wait(PATIENCE_S) == 1
    assert "in use" in broker.text()


def test_exit_code_of_a_directory_that_cannot_be_used_allows_another_attempt(service, tmp_path):
    (tmp_path / "data").write_text("a file")
    assert service().process.wait(PATIENCE_S) == 1
