"""A process that has few file descriptors, and clients that take all they get: the log still gets its files."""

import base64
import json
import resource
import socket
import urllib.request

from ledger import Ledger, check
from workload import Workload

DESCRIPTORS = 64
CROWD = 200


def refused_connections(broker):
    """The finding about connections that were refused."""
    login = base64.b64encode(b"guest:guest").decode()
    request = urllib.request.Request(
        f"http://{broker.http_address}/api/health/findings", headers={"authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        findings = json.load(answer)["findings"]
    [finding] = [one for one in findings if one["kind"] == "connections_refused"]
    return finding


def test_clients_do_not_take_the_descriptors_of_the_log(broker, rng):
    ledger = Ledger()
    broker.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
    workload = Workload(broker, ledger, rng)
    broker.wait_until(lambda: len(ledger.messages) > 100, 120)
    crowd = [socket.create_connection(broker.address, timeout=60) for _ in range(CROWD)]
    try:
        assert broker.wait_until(lambda: "others need the place" in broker.said(), 120)
        finding = refused_connections(broker)
        assert finding["severity"] == "error" and "no file descriptor is left" in finding["text"]
        fifth = broker.data / "vhosts/1/0000000000000005.log"
        assert broker.wait_until(fifth.exists, 120), broker.said()[-1000:]
        assert "next log file" not in broker.said()
        assert broker.errors() == []
    finally:
        for client in crowd:
            client.close()
    workload.end()
    check(broker, ledger)
    assert broker.stop() == 0
