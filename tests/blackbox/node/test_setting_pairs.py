"""Settings that touch the same doors, in pairs: each value of one with each value of every other, at least once.

Faults hide where two settings meet that no test had together: a prefix and the command line tools, TLS and IPv6.
"""

import base64
import contextlib
import itertools
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import urllib.request

import pika
import pytest
from certificates import Authority

from brokers import Leveret
from ctl import Ctl
from patience import PATIENCE_S, eventually

pytestmark = [pytest.mark.better, pytest.mark.tools]

SETTINGS = {
    "web": ("http", "https", "both"),
    "amqp": ("plain", "tls", "both", "two"),
    "prefix": ("", "/rabbit"),
    "address": ("127.0.0.1", "::1"),
    "told_by": ("options", "environment"),
    "folder": ("data", "a folder ü"),
    "way": ("direct", "relay"),
}


def pairs_of(row):
    return set(itertools.combinations(sorted(row.items()), 2))


def rows():
    """As few rows as a simple search finds in which each pair of values is."""
    names = sorted(SETTINGS)
    open_pairs = [((one, value), (other, with_value)) for one, other in itertools.combinations(names, 2)
                  for value in SETTINGS[one] for with_value in SETTINGS[other]]
    found = []
    while open_pairs:
        row = dict(open_pairs[0])
        for name in names:
            if name not in row:
                row[name] = max(SETTINGS[name], key=lambda value, name=name: len(
                    pairs_of(row | {name: value}) & set(open_pairs)))
        found.append(row)
        covered = pairs_of(row)
        open_pairs = [pair for pair in open_pairs if pair not in covered]
    return found


ROWS = rows()


class Configured(Leveret):
    """A Leveret with the settings of a row."""

    def __init__(self, binary, folder, row, authority):
        self.row, self.settings_folder = row, folder
        self.data_dir = folder / row["folder"]
        host = f"[{row['address']}]" if ":" in row["address"] else row["address"]
        lines = ["default_vhost = /"]
        if row["amqp"] in ("plain", "both", "two"):
            lines.append(f"listeners.tcp.1 = {host}:0")
        if row["amqp"] == "two":
            lines.append("listeners.tcp.2 = 127.0.0.1:0")
        if row["amqp"] == "tls":
            lines.append("listeners.tcp = none")
        if row["amqp"] in ("tls", "both"):
            lines.append(f"listeners.ssl.1 = {host}:0")
        for web, key in (("http", "tcp"), ("https", "ssl")):
            if row["web"] in (web, "both"):
                lines += [f"management.{key}.ip = {row['address']}", f"management.{key}.port = 0"]
        if row["prefix"]:
            lines.append(f"management.path_prefix = {row['prefix']}")
        pair = authority.sign("server")
        for kind in ("ssl_options", "management.ssl"):
            lines += [f"{kind}.cacertfile = {authority.file}", f"{kind}.certfile = {pair.certificate}",
                      f"{kind}.keyfile = {pair.key}"]
        config = folder / "leveret.conf"
        config.write_text("\n".join(lines) + "\n")
        self.environment = dict(os.environ)
        self.command = [binary]
        if row["told_by"] == "options":
            self.command += ["--data-dir", str(self.data_dir), "--config", str(config)]
        else:
            self.environment |= {"LEVERET_DATA_DIR": str(self.data_dir), "LEVERET_CONFIG_FILE": str(config)}
        self.log, self._reported = [], False
        self._start()

    def _start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                        errors="replace", env=self.environment)
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.await_line()

    def await_line(self):
        eventually(lambda: "started: " in "".join(self.log) or not self.alive, what=lambda: "".join(self.log))
        assert self.alive, "".join(self.log)

    def listeners(self, protocol):
        """(host, port) of the listeners of a protocol, in the order of the start line."""
        [line] = [line for line in self.log if " started: " in line]
        told = re.search(rf"\b{protocol} on ((?:\S+:\d+(?: and |, )?)+)", line)
        return [(host.strip("[]"), int(port)) for host, port in re.findall(r"(\[[^\]]+\]|[\d.]+):(\d+)", told[1])] if told else []


@contextlib.contextmanager
def relay(target):
    """A proxy that passes bytes on, at another port of this machine."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(target, timeout=PATIENCE_S)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=pump, args=(source, sink), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


class Door:
    """The management API and the page at one listener."""

    def __init__(self, protocol, address, prefix, authority):
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        self.root = f"{protocol.lower()}://{host}:{address[1]}"
        self.url = self.root + prefix
        context = ssl.create_default_context(cafile=str(authority.file))
        context.check_hostname = False
        self.opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))

    def get(self, path, url=None):
        request = urllib.request.Request((self.url if url is None else url) + path)
        request.add_header("authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
        with self.opener.open(request, timeout=PATIENCE_S) as answer:
            return answer.url, answer.read()

    def check(self):
        assert json.loads(self.get("/api/whoami")[1])["name"] == "guest"
        assert self.get("/")[1].startswith(b"<!doctype html>")
        at, page = self.get("/api")
        assert at == self.url + "/api/index.html" and b"HTTP API" in page
        assert b"rabbitmq_build_info" in self.get("/metrics", self.root)[1]


def connect(address, context):
    options = pika.SSLOptions(context, "localhost") if context else None
    return pika.BlockingConnection(pika.ConnectionParameters(*address, ssl_options=options))


@pytest.mark.parametrize("row", ROWS, ids=["-".join(row.values()).replace("/", "") for row in ROWS])
def test_doors_work_with_each_pair_of_settings(row, by_broker, pytestconfig, tmp_path):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("the settings of a running RabbitMQ are not the suite's to change")
    authority = Authority(tmp_path)
    broker = Configured(pytestconfig.getoption("--leveret-bin"), tmp_path, row, authority)
    try:
        check(broker, row, authority, pytestconfig, tmp_path)
        broker.kill()
        broker.log = []
        broker._start()
        check(broker, row, authority, pytestconfig, tmp_path, is_again=True)
    finally:
        broker.stop()


def check(broker, row, authority, pytestconfig, tmp_path, is_again=False):
    with contextlib.ExitStack() as undo:
        def way(address):
            return undo.enter_context(relay(address)) if row["way"] == "relay" else address

        doors = [Door(protocol, way(address), row["prefix"], authority)
                 for protocol in ("HTTP", "HTTPS") for address in broker.listeners(protocol)]
        assert len(doors) == (2 if row["web"] == "both" else 1)
        for door in doors:
            door.check()
        context = ssl.create_default_context(cafile=str(authority.file))
        addresses = [(address, None) for address in broker.listeners("AMQP")]
        addresses += [(address, context) for address in broker.listeners("AMQPS")]
        assert len(addresses) == {"plain": 1, "tls": 1, "both": 2, "two": 2}[row["amqp"]]
        for number, (address, of_tls) in enumerate(addresses):
            connection = connect(way(address), of_tls)
            channel = connection.channel()
            queue = f"q{number}"
            channel.queue_declare(queue, durable=True)
            if is_again:
                assert channel.basic_get(queue, auto_ack=True)[2] == b"kept"
            channel.confirm_delivery()
            channel.basic_publish("", queue, b"kept", pika.BasicProperties(delivery_mode=2))
            connection.close()
        binary = pytestconfig.getoption("--leveretctl-bin")
        if binary is None:
            return
        # The tools of the machine find the node by its data directory.
        ctl = Ctl(binary, tmp_path, {"LEVERET_DATA_DIR": str(broker.data_dir)})
        assert ctl.do("list_vhosts", "--quiet") == ["name", "/"]
        exported = tmp_path / "definitions.json"
        ctl.do("export_definitions", str(exported))
        ctl.do("import_definitions", str(exported))
        assert "Ping succeeded" in "".join(ctl.run("ping", tool="rabbitmq-diagnostics").out)
