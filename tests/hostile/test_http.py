"""HTTP: requests that are too large, that two readers understand differently, and what an alarm is told as.

What well-behaved clients ask is tested in the black-box suite.
"""

import base64
import json
import re
import socket
import time
import urllib.request

import pytest

from brokers import Leveret

pytestmark = pytest.mark.leveret_only("RabbitMQ's HTTP address is not known here")

LOGIN = b"authorization: Basic " + base64.b64encode(b"guest:guest") + b"\r\n"
WHOAMI = b"GET /api/whoami HTTP/1.1\r\nhost: localhost\r\n" + LOGIN
ALARM_TIMEOUT_S = 5.0


def answer(broker, octets, wait_s=10.0):
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


def assert_serves(broker):
    assert answer(broker, WHOAMI + b"\r\n")[0] == 200
    broker.assert_alive()


@pytest.mark.parametrize("status, extra", [
    (400, b"content-length: 4\r\ncontent-length: 5\r\n\r\nabcde"),
    (400, b"content-length: -1\r\n\r\n"),
    (400, b"content-length: +4\r\n\r\nabcd"),
    (400, b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n"),
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
def test_requests_that_nobody_means_are_refused(broker, status, extra):
    found = answer(broker, WHOAMI + extra)
    assert found is None or found[0] == status
    assert_serves(broker)


def test_a_request_with_two_lengths_is_the_last_of_its_connection(broker):
    """Whoever stands between may have counted otherwise: what he took for a body is not read as a request."""
    hidden = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n"
    lengths = b"content-length: %d\r\ntransfer-encoding: chunked\r\n\r\n" % (5 + len(hidden))
    with socket.create_connection(broker.http_address, timeout=10) as client:
        client.sendall(WHOAMI + lengths + b"0\r\n\r\n" + hidden)
        received = b""
        try:
            while octets := client.recv(65536):
                received += octets
        except ConnectionResetError:
            pass
    assert received.count(b"HTTP/1.1 ") <= 1
    assert_serves(broker)


@pytest.mark.parametrize("path", [
    b"/" + b"a" * 9_000, b"/api/vhosts/" + b"%2F" * 3_000, b"/api/overview?" + b"a" * 9_000, b"/" + b"a" * 100_000,
], ids=len)
def test_a_path_has_an_end(broker, path):
    assert answer(broker, b"GET " + path + b" HTTP/1.1\r\nhost: localhost\r\n" + LOGIN + b"\r\n")[0] == 414
    assert_serves(broker)


@pytest.mark.parametrize("name", ["a%0d%0aset-cookie:%20a=b", "%00", "..%2f..%2fetc", "%ff%fe", "%3Cscript%3E", "{{7*7}}", "%zz"])
def test_names_in_paths_are_data(broker, name):
    path = b"GET /api/vhosts/" + name.encode() + b" HTTP/1.1\r\nhost: localhost\r\n"
    status, headers, body = answer(broker, path + LOGIN + b"\r\n")
    assert (status, json.loads(body)["reason"]) == (404, "Not Found")
    assert "set-cookie" not in headers
    assert_serves(broker)


@pytest.mark.parametrize("octets", [10_485_760, 10_485_761])
def test_a_body_in_chunks_has_the_same_limit(broker, octets):
    head = b"PUT /api/policies/%2F/p HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n" + LOGIN + b"\r\n"
    status, _, body = answer(broker, head + b"%x\r\n" % octets + b" " * octets + b"\r\n0\r\n\r\n")
    reason = "not_json" if octets == 10_485_760 else "Exceeded HTTP request body size limit"
    assert (status, json.loads(body)) == (400, {"error": "bad_request", "reason": reason})
    assert_serves(broker)


@pytest.mark.parametrize("body", [
    b"", b"x", b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"\0", b'{"pattern":"(((((", "definition":{"expires":1}}',
    b'{"pattern":"' + b"(" * 1024 + b'","definition":{"expires":1}}', b'{"pattern":"","definition":{"expires":1e999}}',
    b'{"pattern":"(a{999}){999}","definition":{"expires":1}}', b'{"pattern":"","definition":{"expires":1},"priority":1e999}',
], ids=lambda body: repr(body[:40]))
def test_bodies_that_are_no_policy_are_refused(broker, body):
    head = b"PUT /api/policies/%2F/p HTTP/1.1\r\nhost: localhost\r\ncontent-length: " + str(len(body)).encode()
    status, _, told = answer(broker, head + b"\r\n" + LOGIN + b"\r\n" + body)
    assert (status, json.loads(told)["error"]) == (400, "bad_request")
    assert_serves(broker)


def test_a_body_without_end_is_not_kept(broker):
    before = broker.resident_bytes()
    with socket.create_connection(broker.http_address, timeout=5) as client:
        client.sendall(WHOAMI + b"transfer-encoding: chunked\r\n\r\n")
        try:
            for _ in range(64):
                client.sendall(b"100000\r\n" + b"a" * 0x100000 + b"\r\n")
        except OSError:
            pass  # refused while it was sent
    assert broker.resident_bytes() - before < 16 * 1024 * 1024
    assert_serves(broker)


def test_guessing_passwords_is_slow_and_leaves_the_others_alone(broker):
    """Each guess costs a hash, and no more than two are computed at a time."""
    wrong = base64.b64encode(b"guest:wrong")
    guess = b"GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: Basic " + wrong + b"\r\n\r\n"
    crowd = [socket.create_connection(broker.http_address, timeout=10) for _ in range(32)]
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


def test_a_name_in_a_login_stays_on_its_line_of_the_log(broker):
    forged = base64.b64encode("evil\n2026-01-01  INFO all is well\x1b[31m%s:x".encode())
    request = b"GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: Basic " + forged + b"\r\n\r\n"
    assert answer(broker, request)[0] == 401
    log = broker.log.read_text()
    assert "\x1b" not in log
    [line] = [line for line in log.splitlines() if "all is well" in line]
    assert "login refused" in line and 'mechanism="HTTP Basic"' in line
    assert_serves(broker)


def get(broker, path):
    """Status and text, as guest."""
    host, port = broker.http_address
    request = urllib.request.Request(f"http://{host}:{port}{path}", headers={
        "authorization": "Basic " + base64.b64encode(b"guest:guest").decode()})
    try:
        with urllib.request.urlopen(request, timeout=10) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("config, resources", [
    ("vm_memory_high_watermark.absolute = 1MB\n", ["memory"]),
    ("disk_free_limit.absolute = 9000000GB\n", ["disk"]),
    ("vm_memory_high_watermark.absolute = 1MB\ndisk_free_limit.absolute = 9000000GB\n", ["memory", "disk"]),
], ids=["memory", "disk", "both"])
def test_an_alarm_fails_the_health_checks(leveret_bin, config, resources):
    broker = Leveret(leveret_bin, config=config)
    try:
        deadline = time.monotonic() + ALARM_TIMEOUT_S
        while "alarm on" not in broker.log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        node = json.loads(get(broker, "/api/overview")[1])["node"]
        for check, where in (("alarms", "in the cluster"), ("local-alarms", "on the node")):
            status, text = get(broker, "/api/health/checks/" + check)
            assert (status, json.loads(text)) == (503, {
                "status": "failed", "reason": "There are alarms in effect " + where,
                "alarms": [{"node": node, "resource": resource} for resource in resources],
            })
        [shown] = json.loads(get(broker, "/api/nodes")[1])
        assert [shown["mem_alarm"], shown["disk_free_alarm"]] == ["memory" in resources, "disk" in resources]
        broker.assert_alive()
    finally:
        broker.stop()


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_the_metrics_say_when_a_message_is_safe_and_ask_for_no_login(leveret_bin, durability):
    broker = Leveret(leveret_bin, config=f"durability = {durability}\n")
    try:
        host, port = broker.http_address
        with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=10) as found:
            metrics = found.read().decode()
        assert re.search(rf'^rabbitmq_build_info{{.*,durability="{durability}"}} 1$', metrics, re.M)
    finally:
        broker.stop()
