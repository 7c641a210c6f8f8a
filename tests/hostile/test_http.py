"""HTTP requests that are ambiguous, too large, too slow or without end.

What well-behaved clients ask is tested in the black-box suite.
"""

import base64
import json
import socket
import time

import pytest

from http_client import ANSWER_TIMEOUT_S, LOGIN, WHOAMI, answer, answers, assert_serves, basic

pytestmark = pytest.mark.leveret_only("RabbitMQ's HTTP address is not known here")

PATIENCE_S = 30.0  # how long the broker waits for a client that makes no progress
PATIENCE_TOLERANCE_S = 3.0  # by the stopwatch
METRICS = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n"  # what must not be read as a request of its own


@pytest.mark.ht(20, 22, 24)
@pytest.mark.parametrize("status, extra", [
    (400, b"content-length: 4\r\ncontent-length: 5\r\n\r\nabcde"),
    (400, b"content-length: -1\r\n\r\n"),
    (400, b"content-length: +4\r\n\r\nabcd"),
    (400, b"content-length: 4, 4\r\n\r\nabcd"),
    (400, b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n"),
    (400, b"transfer-encoding: identity\r\n\r\n"),
    (400, b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    (400, b"transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    (400, b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    (400, b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    (400, b"transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    (400, b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n"),
    (400, b"x: a\r\n b\r\n\r\n"),
    (400, b"x: a\0b\r\n\r\n"),
    (400, b"x: a\rb\r\n\r\n"),
    (400, b"host: evil.example\r\n\r\n"),
    (400, LOGIN + b"\r\n"),
    (400, b"content-length: 10485761\r\n\r\n"),
    (431, b"x: " + b"y" * 33_000 + b"\r\n\r\n"),
    (431, b"x: " + b"y" * 1_000_000 + b"\r\n\r\n"),
    (431, b"".join(b"x%d: y\r\n" % n for n in range(200)) + b"\r\n"),
], ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else str(value))
def test_ambiguous_and_oversized_requests_are_refused(broker, status, extra):
    """With the status, or without a word; and what follows on the connection is not read."""
    said = answers(broker, WHOAMI + extra + METRICS)
    assert not said or said.startswith(b"HTTP/1.1 %d " % status)
    assert said.count(b"HTTP/1.1 ") <= 1
    assert_serves(broker)


@pytest.mark.ht(24)
def test_a_request_with_two_lengths_is_the_last_of_its_connection(broker):
    """A proxy may have counted otherwise: the bytes that it took for a body are not read as a request."""
    lengths = b"content-length: %d\r\ntransfer-encoding: chunked\r\n\r\n" % (5 + len(METRICS))
    assert answers(broker, WHOAMI + lengths + b"0\r\n\r\n" + METRICS).count(b"HTTP/1.1 ") <= 1
    assert_serves(broker)


@pytest.mark.ht(24)
@pytest.mark.parametrize("chunks", [
    b"FFFFFFFFFFFFFFFFF\r\n", b"-1\r\n", b"0x2\r\n{}\r\n0\r\n\r\n", b"2\n{}\n0\n\n",
    b"2;" + b"x" * 20_000 + b"\r\n{}\r\n0\r\n\r\n", b"2\r\n{}X\r\n0\r\n\r\n", b"\r\n",
], ids=lambda chunks: repr(chunks[:12]))
def test_chunks_that_can_be_read_in_two_ways_are_refused(broker, chunks):
    head = b"PUT /api/vhosts/smuggled HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n" + LOGIN
    said = answers(broker, head + b"\r\n" + chunks + METRICS)
    assert said.startswith(b"HTTP/1.1 400 ") and said.count(b"HTTP/1.1 ") == 1
    missing = b"GET /api/vhosts/smuggled HTTP/1.1\r\nhost: localhost\r\n" + LOGIN + b"\r\n"
    assert answer(broker, missing)[0] == 404
    assert_serves(broker)


@pytest.mark.ht(20, 24)
@pytest.mark.parametrize("length", [3, 1000])
def test_a_body_of_another_length_than_announced_changes_nothing(broker, length):
    """Shorter, the rest is no request; longer, it is waited for until the client goes."""
    head = b"PUT /api/vhosts/smuggled HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n" % length
    with socket.create_connection(broker.http_address, timeout=ANSWER_TIMEOUT_S) as client:
        client.sendall(head + LOGIN + b'\r\n{"tracing":false}')
        client.shutdown(socket.SHUT_WR)
        said = client.recv(65536)
    assert not said or said.startswith(b"HTTP/1.1 400 ")
    missing = b"GET /api/vhosts/smuggled HTTP/1.1\r\nhost: localhost\r\n" + LOGIN + b"\r\n"
    assert answer(broker, missing)[0] == 404


@pytest.mark.ht(11, 24)
@pytest.mark.parametrize("octets, status", [
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None),
    (b"GET /api/whoami\r\n\r\n", 400),
    (b"CONNECT evil.example:80 HTTP/1.1\r\nhost: evil.example:80\r\n\r\n", 404),
    (WHOAMI + b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
     b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", 200),
    (WHOAMI + b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n", 200),
], ids=["http-2", "http-0.9", "connect", "websocket", "h2c"])
def test_http_2_is_not_spoken(broker, octets, status):
    found = answer(broker, octets)
    assert found is None if status is None else found[0] == status
    assert_serves(broker)


@pytest.mark.slow
@pytest.mark.ht(23)
def test_clients_that_make_no_progress_are_not_waited_for(broker):
    """Headers and bodies in drips, a connection that says nothing, and one that says nothing more."""
    head = b"PUT /api/vhosts/slow HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n" + LOGIN + b"\r\n"
    begins = {"header": WHOAMI + b"x: ", "body": head, "nothing": b"", "kept alive": WHOAMI + b"\r\n"}
    began, watch = time.monotonic(), broker.stopwatch()
    clients = {name: socket.create_connection(broker.http_address, timeout=ANSWER_TIMEOUT_S) for name in begins}
    try:
        for name, client in clients.items():
            client.sendall(begins[name])
        assert clients["kept alive"].recv(65536).startswith(b"HTTP/1.1 200 ")
        ended = {}
        while len(ended) < len(clients):
            assert watch.elapsed_s() < PATIENCE_S + PATIENCE_TOLERANCE_S, set(clients) - set(ended)
            for name, client in clients.items():
                if name not in ended and is_closed(client, name in ("header", "body")):
                    ended[name] = time.monotonic() - began
    finally:
        for client in clients.values():
            client.close()
    assert min(ended.values()) > PATIENCE_S - PATIENCE_TOLERANCE_S
    assert_serves(broker)


def is_closed(client, drips):
    """Whether the broker has hung up within half a second, in which one more byte comes."""
    client.settimeout(0.5)
    try:
        if drips:
            client.send(b"a")
        return not client.recv(65536)
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.ht(22)
@pytest.mark.parametrize("path", [
    b"/" + b"a" * 9_000, b"/api/vhosts/" + b"%2F" * 3_000, b"/api/overview?" + b"a" * 9_000, b"/" + b"a" * 100_000,
], ids=len)
def test_a_path_has_an_end(broker, path):
    assert answer(broker, b"GET " + path + b" HTTP/1.1\r\nhost: localhost\r\n" + LOGIN + b"\r\n")[0] == 414
    assert_serves(broker)


@pytest.mark.ht(9, 10)
@pytest.mark.parametrize("name", ["a%0d%0aset-cookie:%20a=b", "%00", "..%2f..%2fetc", "%ff%fe", "%3Cscript%3E",
                                  "{{7*7}}", "%zz"])
def test_names_in_paths_are_data(broker, name):
    path = b"GET /api/vhosts/" + name.encode() + b" HTTP/1.1\r\nhost: localhost\r\n"
    status, headers, body = answer(broker, path + LOGIN + b"\r\n")
    assert (status, json.loads(body)["reason"]) == (404, "Not Found")
    assert "set-cookie" not in headers
    assert_serves(broker)


@pytest.mark.ht(20)
@pytest.mark.parametrize("octets", [10_485_760, 10_485_761])
def test_a_body_in_chunks_has_the_same_limit(broker, octets):
    head = b"PUT /api/policies/%2F/p HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n" + LOGIN + b"\r\n"
    status, _, body = answer(broker, head + b"%x\r\n" % octets + b" " * octets + b"\r\n0\r\n\r\n")
    reason = "not_json" if octets == 10_485_760 else "Exceeded HTTP request body size limit"
    assert (status, json.loads(body)) == (400, {"error": "bad_request", "reason": reason})
    assert_serves(broker)


@pytest.mark.ht(21)
@pytest.mark.parametrize("body", [
    b"", b"x", b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"\0", b'{"pattern":"(((((", "definition":{"expires":1}}',
    b'{"pattern":"' + b"(" * 1024 + b'","definition":{"expires":1}}', b'{"pattern":"","definition":{"expires":1e999}}',
    b'{"pattern":"(a{999}){999}","definition":{"expires":1}}',
    b'{"pattern":"","definition":{"expires":1},"priority":1e999}',
], ids=lambda body: repr(body[:40]))
def test_bodies_that_are_no_policy_are_refused(broker, body):
    head = b"PUT /api/policies/%2F/p HTTP/1.1\r\nhost: localhost\r\ncontent-length: " + str(len(body)).encode()
    status, _, told = answer(broker, head + b"\r\n" + LOGIN + b"\r\n" + body)
    assert (status, json.loads(told)["error"]) == (400, "bad_request")
    assert_serves(broker)


@pytest.mark.ht(20)
def test_a_body_without_end_is_not_kept(broker):
    before = broker.resident_bytes()
    with socket.create_connection(broker.http_address, timeout=ANSWER_TIMEOUT_S) as client:
        client.sendall(WHOAMI + b"transfer-encoding: chunked\r\n\r\n")
        try:
            for _ in range(64):
                client.sendall(b"100000\r\n" + b"a" * 0x100000 + b"\r\n")
        except OSError:
            pass  # refused while it was sent
    assert broker.resident_bytes() - before < 16 * 1024 * 1024
    assert_serves(broker)


@pytest.mark.ht(41)
def test_guessing_passwords_is_slow_and_leaves_the_others_alone(broker):
    """Each guess costs a hash, and no more than two are computed at a time."""
    wrong = basic("guest", "wrong").encode()
    guess = b"GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: " + wrong + b"\r\n\r\n"
    crowd = [socket.create_connection(broker.http_address, timeout=ANSWER_TIMEOUT_S) for _ in range(32)]
    try:
        for client in crowd:
            client.sendall(guess)
        with broker.peer() as peer:
            peer.connect().assert_usable()
        assert all(client.recv(65536).startswith(b"HTTP/1.1 401 ") for client in crowd)
    finally:
        for client in crowd:
            client.close()
    assert_serves(broker)


@pytest.mark.ht(30)
def test_a_name_in_a_login_stays_on_its_line_of_the_log(broker):
    forged = base64.b64encode("evil\n2026-01-01  INFO all is well\x1b[31m%s:x".encode())
    request = b"GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: Basic " + forged + b"\r\n\r\n"
    assert answer(broker, request)[0] == 401
    log = broker.log.read_text()
    assert "\x1b" not in log
    [line] = [line for line in log.splitlines() if "all is well" in line]
    assert "login refused" in line and 'mechanism="HTTP Basic"' in line
    assert_serves(broker)


