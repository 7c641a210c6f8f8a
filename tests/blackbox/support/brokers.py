"""The broker under test: a Leveret process that the suite starts, or a RabbitMQ that runs already (the oracle)."""

import base64
import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "machine"))

import definitions as defs  # noqa: E402
from patience import PATIENCE_S, Patience  # noqa: E402

STOP_WITHIN_S = PATIENCE_S


@dataclass(frozen=True)
class Answer:
    """An answer of the HTTP API; the names of headers are in lower case."""

    status: int
    headers: dict
    text: bytes

    @property
    def json(self):
        return json.loads(self.text)


class Api:
    """RabbitMQ's HTTP API, as far as tests need it."""

    def __init__(self, url):
        self.url = url

    def ask(self, path, user="guest", password=None, method="GET", body=None, raw=None, **headers):
        """The answer, with any status. The password is the user's name; None for the user sends no login.

        `body` is sent as JSON, `raw` as it is.
        """
        request = urllib.request.Request(self.url + path, method=method)
        if user is not None:
            login = base64.b64encode(f"{user}:{password or user}".encode()).decode()
            request.add_header("authorization", "Basic " + login)
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            request.add_header("content-type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, data, timeout=PATIENCE_S) as answer:
                return self._read(answer, answer.status)
        except urllib.error.HTTPError as error:
            return self._read(error, error.code)

    @staticmethod
    def _read(answer, status):
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(status, headers, answer.read())

    def request(self, method, path, body=None):
        """The status and the decoded answer."""
        answer = self.ask(path, method=method, body=body)
        try:
            return answer.status, answer.json if answer.text else None
        except ValueError:
            return answer.status, answer.text

    def do(self, method, path, body=None):
        """The decoded answer; anything but success is an error."""
        status, answer = self.request(method, path, body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer


def quoted(*parts):
    return "/".join(urllib.parse.quote(part, safe="") for part in parts)


class RabbitMq:
    """A RabbitMQ that runs already."""

    name = "rabbitmq"

    def __init__(self, amqp, http):
        host, port = amqp.rsplit(":", 1)
        self.amqp = (host, int(port))
        self.api = Api(http.rstrip("/"))

    def check(self):
        """Nothing to see from outside."""

    def stop(self):
        """It goes on."""

    def define(self, definitions):
        """Import the definitions; a function that removes them again."""
        self.api.do("POST", "/api/definitions", definitions)
        for vhost in definitions["vhosts"]:
            grant = {"configure": ".*", "write": ".*", "read": ".*"}
            self.api.do("PUT", "/api/permissions/" + quoted(vhost["name"], "guest"), grant)

        def remove():
            paths = ["policies/" + quoted(p["vhost"], p["name"]) for p in definitions["policies"]]
            paths += ["operator-policies/" + quoted(p["vhost"], p["name"]) for p in definitions["parameters"]]
            paths += ["queues/" + quoted(q["vhost"], q["name"]) for q in definitions["queues"]]
            paths += ["exchanges/" + quoted(x["vhost"], x["name"]) for x in definitions["exchanges"]]
            paths += ["users/" + quoted(user["name"]) for user in definitions["users"]]
            paths += ["vhosts/" + quoted(vhost["name"]) for vhost in definitions["vhosts"]]
            for path in paths:
                self.api.request("DELETE", "/api/" + path)

        return remove


class Leveret:
    """A Leveret process with a data directory of its own."""

    name = "leveret"

    def __init__(self, binary, directory, config="", definitions=None, amqp="127.0.0.1:0", http="127.0.0.1:0"):
        if definitions is not None:
            path = directory / "definitions.json"
            path.write_text(json.dumps(defs.with_guest(definitions)))
            config += f"\nload_definitions = {path}\n"
        self.data_dir = directory / "data"
        self.command = [binary, "--data-dir", str(self.data_dir), "--amqp", amqp, "--http", http]
        if config:
            (directory / "leveret.conf").write_text(config)
            self.command += ["--config", str(directory / "leveret.conf")]
        self.directory = directory
        self.log = []
        self._reported = False
        self._start()

    def _start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                        errors="replace")
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        patience = Patience()
        while (amqp := self.port("AMQP")) is None:
            if not self.alive or patience.is_over():
                self.process.kill()
                self._reader.join(STOP_WITHIN_S)
                raise RuntimeError(f"{' '.join(self.command)} did not start; it said:\n{''.join(self.log)}")
            time.sleep(0.002)
        self.amqp = ("127.0.0.1", amqp)
        http = self.port("HTTP")  # in the same line, if there is an API
        self.api = Api(f"http://127.0.0.1:{http}") if http else None

    def port(self, protocol):
        """The port that the start line names for this protocol, or None."""
        found = re.search(rf"{protocol} on 127\.0\.0\.1:(\d+)", "".join(self.log))
        return int(found[1]) if found else None

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    @property
    def alive(self):
        return self.process.poll() is None

    def check(self):
        """Fail (once) when the process died or panicked."""
        panicked = any("panicked at" in line for line in self.log)
        if not self._reported and (panicked or not self.alive):
            self._reported = True
            state = "panicked" if panicked else f"died with status {self.process.returncode}"
            raise AssertionError(f"the broker {state}; the end of its log:\n{''.join(self.log[-60:])}")

    def stop(self):
        """Stop the process; it must end when it is asked to, and without an error."""
        self.check()
        if not self.alive:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the broker did not stop within {STOP_WITHIN_S} s of SIGTERM") from None
        self._reader.join(STOP_WITHIN_S)
        assert status in (0, -signal.SIGTERM), f"the broker ended with status {status}:\n{''.join(self.log[-60:])}"
        self.check_log()

    def stop_and_start_again(self):
        """Stop the process, and start another one in its data directory."""
        self.stop()
        self.log = []
        self._start()

    def kill(self):
        """End the process without a warning."""
        self.process.kill()
        self.process.wait(STOP_WITHIN_S)
        self._reader.join(STOP_WITHIN_S)
        self.check_log()

    def start_again(self):
        """Start another process in the data directory of one that has ended."""
        self.log = []
        self._start()

    def kill_and_start_again(self):
        """End the process without a warning, and start another one in its data directory."""
        self.kill()
        self.start_again()

    def check_log(self):
        """Fail when there is a panic in the log."""
        assert not any("panicked at" in line for line in self.log), "".join(self.log[-60:])
