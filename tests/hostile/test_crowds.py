"""Crowds without a login: connections that say nothing, half a request or wrong passwords. Others get in beside them.

All clients have one address, so that only a completed login distinguishes a client from the crowd.
"""

import contextlib
import http.client
import json
import resource
import select
import socket
import threading

import pytest

import wire
from answers import UNHARMED
from brokers import STOP_TIMEOUT_S, Leveret
from http_client import LOGIN, Api, answer, basic
from peer import ANSWER_TIMEOUT_S, client_properties

IDLE = 160  # more than the places of the HTTP listener
ANSWER_MAX_S = 5.0  # by the stopwatch
GUESSERS = 300
GUESSING_ROUNDS = 3
HANDSHAKE_S = 10.0  # by the stopwatch
DESCRIPTORS = 256

BEGINNINGS = {
    "nothing": b"",
    "half a header": b"GET /api/overview HTTP/1.1\r\nhost: loc",
    "half a login form": b"POST /api/login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 60000\r\n\r\nusername=",
    "half a TLS record": b"\x16\x03\x01\x02\x00\x01",
}

pytestmark = pytest.mark.leveret_only("RabbitMQ's limits are those of its listeners")


@contextlib.contextmanager
def crowd(address, count, beginning=b""):
    """So many connections that have begun like this."""
    clients = []
    try:
        for _ in range(count):
            clients.append(socket.create_connection(address, timeout=ANSWER_TIMEOUT_S))
            if beginning:
                clients[-1].sendall(beginning)
        yield clients
    finally:
        for client in clients:
            client.close()


def token(broker):
    return json.loads((broker.directory / "data" / "ctl.json").read_text())["token"]


def assert_administrable(broker, api):
    """The API for a user, a health check, metrics, and the local administrator, each within seconds."""
    for target, headers in [
        ("/api/overview", {"authorization": basic("guest")}),
        ("/api/health/checks/alarms", {"authorization": basic("guest")}),
        ("/metrics", {}),
        ("/api/vhosts", {"authorization": "Bearer " + token(broker)}),
    ]:
        watch = broker.stopwatch()
        assert api.ask("GET", target, user=None, headers=headers).status == 200
        assert watch.elapsed_s() < ANSWER_MAX_S


@pytest.mark.ht(44)
@pytest.mark.parametrize("beginning", ["nothing", "half a header", "half a login form"])
def test_connections_without_a_login_lock_no_user_out_of_http(broker, api, beginning):
    with crowd(broker.http_address, IDLE, BEGINNINGS[beginning]):
        for _ in range(3):
            assert_administrable(broker, api)


@pytest.mark.ht(44)
def test_slow_readers_of_answers_lock_no_user_out_of_http(broker, api):
    """Answers that are never read: each is some hundred kilobytes, for which the buffers of a socket are too small."""
    ask = (b"GET /metrics/per-object HTTP/1.1\r\nhost: localhost\r\n" + LOGIN + b"\r\n") * 20
    with crowd(broker.http_address, IDLE, ask):
        assert_administrable(broker, api)


@pytest.mark.ht(44)
def test_the_oldest_of_the_crowd_goes_and_a_connection_in_use_stays(broker):
    user = http.client.HTTPConnection(*broker.http_address, timeout=ANSWER_TIMEOUT_S)
    with contextlib.closing(user), crowd(broker.http_address, IDLE // 2) as clients:
        for _ in range(IDLE):
            user.request("GET", "/api/whoami", headers={"authorization": basic("guest")})
            assert user.getresponse().read()
            clients.append(socket.create_connection(broker.http_address, timeout=ANSWER_TIMEOUT_S))
        first, last = clients[0], clients[-1]
        assert first.recv(1) == b""
        last.settimeout(0.2)
        with pytest.raises(TimeoutError):
            last.recv(1)


@pytest.mark.hb(103)
@pytest.mark.parametrize("listener, beginning", [("AMQPS", "half a TLS record"), ("AMQPS", "nothing"), ("HTTPS", "nothing")])
def test_handshakes_that_stop_lock_no_user_out_of_tls(broker, listener, beginning):
    context = broker.certificate.context()
    with crowd(broker.addresses[listener], IDLE, BEGINNINGS[beginning]):
        watch = broker.stopwatch()
        with socket.create_connection(broker.addresses[listener], timeout=ANSWER_TIMEOUT_S) as plain:
            with context.wrap_socket(plain, server_hostname="localhost"):
                assert watch.elapsed_s() < ANSWER_MAX_S


@pytest.mark.hb(103)
def test_connections_without_login_take_no_descriptor_from_clients_and_http(leveret_bin):
    """More connections without a login than the process may have files."""
    broker = Leveret(leveret_bin, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
    try:
        with crowd(broker.address, 2 * DESCRIPTORS):
            for _ in range(3):
                with broker.peer() as peer:
                    peer.connect().assert_usable()
                assert_administrable(broker, Api(broker))
        broker.assert_alive()
    finally:
        broker.stop()


class Guessers:
    """Clients that log in with a new wrong password each, again and again."""

    def __init__(self, broker, count, protocol, user):
        self.broker, self.protocol, self.user = broker, protocol, user
        self.address = broker.address if protocol == "AMQP" else broker.http_address
        self.guesses = 0
        self.over = threading.Event()
        self.clients = {}
        self.poll = select.epoll()
        for _ in range(count):
            self._guess()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _guess(self):
        self.guesses += 1
        with contextlib.suppress(OSError):
            client = socket.create_connection(self.address, timeout=ANSWER_TIMEOUT_S)
            password = f"wrong {self.guesses}"
            if self.protocol == "AMQP":
                response = b"\0" + self.user.encode() + b"\0" + password.encode()
                properties = client_properties(authentication_failure_close=True)
                client.sendall(wire.PROTOCOL_HEADER + wire.method_frame(
                    0, "connection.start-ok", client_properties=properties, mechanism="PLAIN", response=response,
                    locale="en_US"))
            else:
                login = basic(self.user, password).encode()
                client.sendall(b"GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: " + login + b"\r\n\r\n")
            client.setblocking(False)
            self.clients[client.fileno()] = client
            self.poll.register(client, select.EPOLLIN)

    def _run(self):
        while not self.over.is_set():
            for number, _ in self.poll.poll(0.05):
                try:
                    said = self.clients[number].recv(65536)
                except BlockingIOError:
                    continue
                except OSError:
                    said = b""
                is_refused = b"ACCESS_REFUSED" in said or b" 401 " in said or b" 503 " in said
                if is_refused or not said:
                    self.clients.pop(number).close()
                    self._guess()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for client in self.clients.values():
            client.close()
        self.poll.close()


def assert_logs_in_over_amqp(broker, user):
    watch = broker.stopwatch()
    with broker.peer() as peer:
        peer.log_in(user=user)
    assert watch.elapsed_s() < HANDSHAKE_S


def assert_logs_in_over_http(api, user):
    assert_answers_in_a_crowd(api, "GET", "/api/whoami", user=user)


def assert_answers_in_a_crowd(api, *request, **options):
    """A crowd may close a connection whose client has not logged in; then the client asks again."""
    watch = api.broker.stopwatch()
    found = None
    while found is None and watch.elapsed_s() < HANDSHAKE_S:
        with contextlib.suppress(ConnectionError):
            told = api.ask(*request, **options)
            gave_way = told.status == 503 and "gives way" in told.reason
            found = None if gave_way else told
    assert found is not None and found.status < 300, found
    assert watch.elapsed_s() < HANDSHAKE_S


@pytest.fixture
def guessed_at(leveret_bin):
    """A broker of its own, with the users anna and bob beside guest."""
    broker = Leveret(leveret_bin)
    api = Api(broker)
    for user in ("anna", "bob"):
        api.do("PUT", f"/api/users/{user}", {"password": user, "tags": "management"})
    yield broker, api
    broker.stop()


@pytest.mark.slow
@pytest.mark.hb(104)
@pytest.mark.parametrize("protocol", ["AMQP", "HTTP"])
@pytest.mark.parametrize("target", ["guest", "nobody-at-all"])
def test_wrong_passwords_keep_no_right_one_out(guessed_at, protocol, target):
    """Of the user that is guessed at and was there before, of those who have not logged in since the start, and of
    one with a new password."""
    broker, api = guessed_at
    broker.terminate()
    broker.process.wait(STOP_TIMEOUT_S)
    broker.start_again()
    assert_logs_in_over_http(api, "guest")
    with Guessers(broker, GUESSERS, protocol, target) as guessers:
        # These wait for a hash.
        assert_logs_in_over_http(api, "anna")
        assert_logs_in_over_amqp(broker, "bob")
        for _ in range(GUESSING_ROUNDS):
            # These do not.
            watch = broker.stopwatch()
            for user in ("guest", "anna", "bob"):
                assert_logs_in_over_amqp(broker, user)
                assert_logs_in_over_http(api, user)
            assert watch.elapsed_s() < ANSWER_MAX_S
        # A new password is hashed before guesses are.
        assert_answers_in_a_crowd(api, "PUT", "/api/users/anna", {"password": "anna", "tags": "management"})
        assert_logs_in_over_amqp(broker, "anna")
    assert guessers.guesses >= GUESSERS
    broker.assert_alive()


@pytest.mark.hb(104)
def test_a_crowd_with_an_old_password_costs_one_hash(broker):
    """A service with many clients whose password was changed: all are refused at once."""
    watch = broker.stopwatch()
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(broker.peer()) for _ in range(100)]
        for peer in peers:
            peer.start()
            peer.start_ok(client_properties(authentication_failure_close=True), response=b"\0guest\0of last year")
        assert all(peer.outcome() != UNHARMED for peer in peers)
    assert watch.elapsed_s() < ANSWER_MAX_S
    assert answer(broker, b"GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: "
                  + basic("guest", "of last year").encode() + b"\r\n\r\n")[0] == 401
