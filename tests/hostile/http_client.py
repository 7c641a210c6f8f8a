"""HTTP for the tests: requests as bytes, and the management API as a client sees it."""

import base64
import http.client
import json
import re
import socket
from dataclasses import dataclass
from urllib.parse import quote

ANSWER_TIMEOUT_S = 60.0  # for answers that come at once, on a machine that does much else


def basic(user, password=None):
    """The value of an `Authorization` header; a user's password is his name unless another is given."""
    return "Basic " + base64.b64encode(f"{user}:{user if password is None else password}".encode()).decode()


LOGIN = b"authorization: " + basic("guest").encode() + b"\r\n"
WHOAMI = b"GET /api/whoami HTTP/1.1\r\nhost: localhost\r\n" + LOGIN


def path(*names):
    """Names, as they stand in a path."""
    return "/".join(quote(name, safe="") for name in names)


def answer(broker, octets, wait_s=ANSWER_TIMEOUT_S):
    """Status, headers and body of the first answer; none if the connection is closed without one."""
    with socket.create_connection(broker.http_address, timeout=wait_s) as client:
        client.sendall(octets)
        received = b""
        while b"\r\n\r\n" not in received:
            try:
                octets = client.recv(65536)
            except ConnectionResetError:
                return None
            if not octets:
                return None
            received += octets
        head, body = received.split(b"\r\n\r\n", 1)
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        while len(body) < length:
            body += client.recv(65536)
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:]), body


def answers(broker, octets, silence_s=0.5):
    """Everything that comes until the broker closes the connection, or has been silent for a while."""
    received = b""
    with socket.create_connection(broker.http_address, timeout=ANSWER_TIMEOUT_S) as client:
        client.sendall(octets)
        try:
            while octets := client.recv(65536):
                received += octets
                client.settimeout(silence_s)
        except (ConnectionResetError, TimeoutError):
            pass
    return received


def assert_serves(broker):
    assert answer(broker, WHOAMI + b"\r\n")[0] == 200
    broker.assert_alive()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict
    text: bytes

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def reason(self):
        return self.json["reason"]


class Api:
    """Requests as guest by default; `user=None` sends no login."""

    def __init__(self, broker):
        self.broker = broker

    def ask(self, method, target, body=None, user="guest", raw=None, headers=()):
        headers = dict(headers)
        if user is not None:
            headers.setdefault("authorization", basic(user))
        data = raw if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(*self.broker.http_address, timeout=ANSWER_TIMEOUT_S)
        try:
            connection.request(method, target, data, headers)
            found = connection.getresponse()
            told = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, told, found.read())
        finally:
            connection.close()

    def do(self, method, target, body=None):
        """What comes of it; anything but success is an error."""
        found = self.ask(method, target, body)
        assert found.status < 300, (method, target, found)
        return found.json if found.text else None
