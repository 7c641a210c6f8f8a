"""Requests over HTTP that would take all the memory, many at once: HTTP has a budget, and no alarm blocks publishers."""

import http.client
import json
import socket
import threading
import time

import pytest

from brokers import Leveret
from bystander import Bystander
from http_client import LOGIN, Api, basic
from memory import MIB, Growth

pytestmark = pytest.mark.leveret_only("needs a broker process with a small watermark")

WATERMARK_MIB = 600  # an eighth of it is HTTP's
# Beside what HTTP counts: what its connections and the allocator keep, and names and samples of the queues.
ANSWERS_GROWTH_MAX = 96 * MIB
METRICS_GROWTH_MAX = 96 * MIB
UPLOADS_GROWTH_MAX = 128 * MIB
LIST_GROWTH_MAX = 24 * MIB
BROWSE_GROWTH_MAX = 64 * MIB
QUEUES = 5000
LISTS = 20
UNREAD = 40
UNREAD_S = 3.0  # how long answers are left unread
TIMEOUT_S = 180.0  # for an answer behind forty others, on a machine that does other things
DEATHS = 40
CC_KEYS = 1000


@pytest.fixture
def small(leveret_bin):
    """A broker with little memory, and a client of another vhost that must not wait."""
    config = (f"vm_memory_high_watermark.absolute = {WATERMARK_MIB}MiB\n"
              "prometheus.tcp.ip = 127.0.0.1\nprometheus.tcp.port = 0\n")
    broker = Leveret(leveret_bin, config=config)
    bystander = Bystander(broker)
    try:
        Api(broker).do("PUT", "/api/vhosts/v", {})
        yield broker
        bystander.latencies_s()
        broker.assert_alive()
        assert "alarm on" not in broker.log.read_text()
    finally:
        bystander.stop()
        broker.stop()


def declare(broker, count=QUEUES):
    queues = [{"name": f"queue.{number:05}.of.some.service", "durable": True, "auto_delete": False, "arguments": {}}
              for number in range(count)]
    Api(broker).do("POST", "/api/definitions/v", {"queues": queues})


def fetch(address, target):
    """Status and body of an answer that comes in pieces, or whole."""
    connection = http.client.HTTPConnection(*address, timeout=TIMEOUT_S)
    try:
        connection.request("GET", target, headers={"authorization": basic("guest")})
        found = connection.getresponse()
        return found.status, found.read()
    finally:
        connection.close()


def begin(address, request):
    """A request whose answer nobody reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(TIMEOUT_S)
    client.connect(address)
    client.sendall(request)
    return client


def unread(address, target, count=UNREAD):
    request = f"GET {target} HTTP/1.1\r\nhost: localhost\r\n".encode() + LOGIN + b"\r\n"
    return [begin(address, request) for _ in range(count)]


@pytest.mark.ht(26)
@pytest.mark.parametrize("query", ["", "?page=1&page_size=10&sort=messages", "?columns=name", "?sort=name&sort_reverse=true"])
def test_a_long_list_is_nowhere_as_a_whole(small, query):
    declare(small)
    with Growth(small) as growth:
        status, text = fetch(small.http_address, "/api/queues/v" + query)
    assert status == 200
    found = json.loads(text)
    assert len(found["items"]) == 10 if "page" in query else len(found) == QUEUES
    assert growth.bytes <= LIST_GROWTH_MAX


@pytest.mark.ht(26)
def test_many_long_lists_at_once_are_sent_while_they_are_made(small):
    declare(small)
    found = []
    clients = [threading.Thread(target=lambda: found.append(fetch(small.http_address, "/api/queues/v")))
               for _ in range(LISTS)]
    with Growth(small) as growth:
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert {(status, len(json.loads(text))) for status, text in found} == {(200, QUEUES)} and len(found) == LISTS
    assert growth.bytes <= ANSWERS_GROWTH_MAX


@pytest.mark.ht(26)
@pytest.mark.parametrize("target", ["/api/queues/v", "/api/bindings/v", "/api/definitions/v"])
def test_answers_that_nobody_reads_give_way(small, target):
    declare(small)
    with Growth(small) as growth:
        clients = unread(small.http_address, target)
        time.sleep(UNREAD_S)
        assert fetch(small.http_address, "/api/overview")[0] == 200
        assert fetch(small.http_address, target)[0] == 200
    for client in clients:
        client.close()
    assert growth.bytes <= ANSWERS_GROWTH_MAX


@pytest.mark.ht(40)
@pytest.mark.parametrize("target", ["/metrics/per-object", "/metrics/detailed?family=queue_metrics"])
def test_metrics_that_nobody_reads_give_way_to_a_scraper(small, target):
    """Without a login, on the listener of scrapers."""
    declare(small)
    address = small.addresses["Prometheus"]
    with Growth(small) as growth:
        clients = unread(address, target)
        time.sleep(UNREAD_S)
        status, text = fetch(address, target)
        assert status == 200 and text.count(b"rabbitmq") > QUEUES
    for client in clients:
        client.close()
    assert growth.bytes <= METRICS_GROWTH_MAX


@pytest.mark.ht(20)
@pytest.mark.parametrize("framing", ["announced", "chunked"])
def test_uploads_that_do_not_end_give_way(small, framing):
    head = b"POST /api/definitions HTTP/1.1\r\nhost: localhost\r\n" + LOGIN
    part = b" " * (10 * MIB - 1000)
    if framing == "announced":
        head += b"content-length: %d\r\n\r\n" % (10 * MIB)
    else:
        head += b"transfer-encoding: chunked\r\n\r\n%x\r\n" % (10 * MIB)
    clients, refused = [], 0
    with Growth(small) as growth:
        for _ in range(UNREAD):
            try:
                clients.append(begin(small.http_address, head + part))
            except (ConnectionError, TimeoutError):
                refused += 1
        assert Api(small).ask("PUT", "/api/queues/v/another", {"durable": True}).status == 201
    for client in clients:
        client.close()
    assert growth.bytes <= UPLOADS_GROWTH_MAX


@pytest.mark.ht(27)
def test_a_browse_counts_the_keys_of_all_deaths(small):
    """Messages that died often, each time with a thousand keys."""
    api = Api(small)
    api.do("PUT", f"/api/queues/v/q{DEATHS}", {"durable": True})
    for number in reversed(range(DEATHS)):
        dead = {"x-message-ttl": 0, "x-dead-letter-exchange": f"f{number + 1}"}
        api.do("PUT", f"/api/queues/v/q{number}", {"durable": True, "arguments": dead})
        api.do("PUT", f"/api/exchanges/v/f{number + 1}", {"type": "fanout"})
        api.do("POST", f"/api/bindings/v/e/f{number + 1}/q/q{number + 1}", {})
    keys = [("S", b"a key that is as long as keys are, number %04d" % key) for key in range(CC_KEYS)]
    with small.peer() as peer:
        peer.connect(vhost="v")
        for _ in range(40):
            peer.publish(1, "", "q0", b"x", {"headers": [("CC", ("A", keys))]})
        peer.assert_usable()
    deadline = time.monotonic() + TIMEOUT_S
    while api.do("GET", f"/api/queues/v/q{DEATHS}")["messages"] < 40:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with Growth(small) as growth:
        status, text = fetch(small.http_address, f"/api/queues/v/q{DEATHS}/messages?count=40")
    found = json.loads(text)
    assert status == 200 and 0 < len(found["messages"]) <= 40
    [first, *_] = found["messages"][0]["deaths"]
    assert first["routing_keys_total"] == CC_KEYS + 1 and len(first["routing_keys"]) < CC_KEYS
    assert growth.bytes <= BROWSE_GROWTH_MAX
