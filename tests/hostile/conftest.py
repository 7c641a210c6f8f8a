"""Options and fixtures of the hostile suite; see README.md."""

import itertools
import os
import sys
import time
from pathlib import Path

import pytest

import answers
import report
from brokers import Leveret, RabbitMQ
from bystander import Bystander
from http_client import Api, path
from memory import fill_what_logins_left
from tls import Certificate

sys.path.append(str(Path(__file__).resolve().parent.parent / "crash"))
import seeds  # noqa: E402 - needs the path

OVER_TLS = range(21, 61)  # cases of the battery that are played over TLS, too
QUIET_S = 5.0  # how long the bystander is left alone for the figures that a report compares with


def pytest_addoption(parser):
    parser.addoption("--broker", choices=("leveret", "rabbitmq"), default="leveret", help="which broker is under test")
    parser.addoption(
        "--leveret-bin", default=os.environ.get("LEVERET_BIN"), help="path of the leveret binary (or LEVERET_BIN)")
    parser.addoption("--amqp", default="127.0.0.1:5672", help="host:port of the RabbitMQ under test")
    seeds.add_options(parser)
    parser.addoption("--all-over-tls", action="store_true", help="all values over TLS, not one of each test")
    parser.addoption("--report", metavar="FILE", help="write what was measured into this file, as Markdown")


def pytest_configure(config):
    config.addinivalue_line("markers", "hb(*numbers): the case of the hostile battery (HB-n) that this test covers")
    config.addinivalue_line("markers", "ht(*numbers): the same of its part for HTTP (HT-n)")
    config.addinivalue_line("markers", "tcp_only(reason): not played over TLS, although its number is")
    config.addinivalue_line("markers", "leveret_only(reason): not run against RabbitMQ")
    config.addinivalue_line("markers", "slow: takes ten seconds or more; started first")
    answers.set_broker(config.getoption("--broker"))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(report.Report(config))


def pytest_generate_tests(metafunc):
    """HB-87: cases about frames and methods once more, within TLS. Seeds for those that draw."""
    seeds.parametrize(metafunc, "hostile")
    cases = {number for mark in metafunc.definition.iter_markers("hb") for number in mark.args}
    if metafunc.config.getoption("--broker") == "rabbitmq" or metafunc.definition.get_closest_marker("tcp_only"):
        return
    if cases.intersection(OVER_TLS):
        metafunc.parametrize("transport", ["tcp", pytest.param("tls", marks=pytest.mark.hb(87))], indirect=True)


def pytest_itemcollected(item):
    item.user_properties.append(("cases", report.cases_of(item)))


def keep_one_over_tls(config, items):
    """Plays one value of each test over TLS: the same reader of frames and methods is below TLS for all of them."""
    kept, others, seen = [], [], set()
    for item in items:
        spec = getattr(item, "callspec", None)
        test = (item.path, item.originalname)
        is_over_tls = spec and spec.params.get("transport") == "tls"
        (others if is_over_tls and test in seen else kept).append(item)
        if is_over_tls:
            seen.add(test)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def pytest_collection_modifyitems(config, items):
    seeds.keep_drawn(config, items)
    if not config.getoption("--all-over-tls") and not config.getoption("--drawn"):
        keep_one_over_tls(config, items)
    if config.getoption("--broker") == "rabbitmq":
        chosen = [item for item in items if not item.get_closest_marker("leveret_only")]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def leveret_bin(pytestconfig):
    binary = pytestconfig.getoption("--leveret-bin")
    if not binary:
        pytest.exit("give --leveret-bin PATH or LEVERET_BIN, or --broker=rabbitmq --amqp HOST:PORT", returncode=2)
    return os.path.abspath(binary)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def broker(request, pytestconfig):
    if pytestconfig.getoption("--broker") == "rabbitmq":
        host, port = pytestconfig.getoption("--amqp").rsplit(":", 1)
        broker = RabbitMQ((host, int(port)))
    else:
        broker = Leveret(request.getfixturevalue("leveret_bin"), certificate=request.getfixturevalue("certificate"))
    yield broker
    broker.stop()


class Watch:
    """The bystander of a broker, replaced after a test that made it suffer."""

    def __init__(self, broker):
        self.broker = broker
        self.bystander = Bystander(broker)
        self.resident_before = broker.resident_bytes()

    def check(self):
        """Same process, the bystander lost nothing, and a new client is served. What was measured meanwhile."""
        try:
            self.broker.assert_alive()
            latencies_s = self.bystander.latencies_s()
            with self.broker.peer() as peer:
                queue = peer.connect().call(1, "queue.declare", exclusive=True).queue
                peer.publish(1, "", queue, b"still there?")
                assert peer.get(1, queue)[2] == b"still there?"
        except BaseException as failure:
            failure.add_note(self.broker.threads())
            self.bystander.stop()
            self.broker.revive()
            self.bystander = Bystander(self.broker)
            raise
        before, self.resident_before = self.resident_before, self.broker.resident_bytes()
        return {"latencies_s": latencies_s, "resident": [before, self.resident_before]}


@pytest.fixture(scope="session")
def watch(broker, pytestconfig):
    watch = Watch(broker)
    if pytestconfig.getoption("--report"):
        time.sleep(QUIET_S)
    watch.in_quiet = watch.check()
    yield watch
    watch.bystander.stop()


@pytest.fixture
def transport(request, broker):
    """What the peers of a test speak through: `tcp` or `tls`."""
    broker.transport = getattr(request, "param", "tcp")
    yield broker.transport
    broker.transport = "tcp"


@pytest.fixture(autouse=True)
def unharmed(request, watch, transport):
    """After every case."""
    yield
    report.record(request.node, watch.check(), watch.in_quiet)


@pytest.fixture
def fresh_broker(request, broker, transport):
    """For cases that measure memory: a Leveret process that has not grown yet, watched like the other."""
    if broker.kind == "rabbitmq":
        yield broker
        return
    fresh = Leveret(broker.binary, certificate=broker.certificate)
    fresh.transport = transport
    watch = Watch(fresh)
    try:
        with fresh.peer() as ballast:
            fill_what_logins_left(ballast)
            watch.check()
            yield fresh
            report.record(request.node, watch.check())
    finally:
        watch.bystander.stop()
        fresh.stop()


@pytest.fixture
def peer(broker, transport):
    """A client on an open connection with channel 1 open; tests that need another handshake make their own peer."""
    with broker.peer() as peer:
        yield peer.connect()


@pytest.fixture
def api(broker):
    return Api(broker)


class Made:
    """Users and vhosts, made over HTTP and removed after the test; the password of a user is his name."""

    def __init__(self, api, prefix):
        self.api = api
        self.prefix = prefix
        self.removed = []

    def _put(self, kind, name, body):
        self.removed.append(f"/api/{kind}/" + path(name))
        self.api.do("PUT", f"/api/{kind}/" + path(name), body)
        return name

    def name(self):
        return f"{self.prefix}.{next(_numbers)}"

    def vhost(self, name=None):
        return self._put("vhosts", name or self.name(), {})

    def user(self, name=None, tags="", vhosts=("/",), configure=".*", write=".*", read=".*"):
        """A user with these permissions in each of these vhosts."""
        name = name or self.name()
        self._put("users", name, {"password": name, "tags": tags})
        for vhost in vhosts:
            self.permit(name, vhost, configure, write, read)
        return name

    def permit(self, user, vhost="/", configure=".*", write=".*", read=".*"):
        permissions = {"configure": configure, "write": write, "read": read}
        self.api.do("PUT", "/api/permissions/" + path(vhost, user), permissions)

    def limit(self, kind, owner, name, value):
        """`kind` is `user` or `vhost`."""
        self.api.do("PUT", f"/api/{kind}-limits/" + path(owner, name), {"value": value})

    def remove_all(self):
        for target in reversed(self.removed):
            self.api.do("DELETE", target)


@pytest.fixture
def made(api, worker_id):
    made = Made(api, f"hostile.{os.getpid()}.{worker_id}")
    yield made
    made.remove_all()


_numbers = itertools.count()


class Names:
    """Unique names, deleted after the test."""

    def __init__(self, broker, worker):
        self.broker = broker
        self.prefix = f"hostile.{os.getpid()}.{worker}"
        self.queues = []
        self.exchanges = []

    def any(self):
        return f"{self.prefix}.{next(_numbers)}"

    def queue(self):
        self.queues.append(self.any())
        return self.queues[-1]

    def exchange(self):
        self.exchanges.append(self.any())
        return self.exchanges[-1]

    def delete_all(self):
        if not self.queues and not self.exchanges:
            return
        with self.broker.peer() as peer:
            peer.connect()
            for queue in self.queues:
                peer.call(1, "queue.delete", queue=queue)
            for exchange in self.exchanges:
                peer.call(1, "exchange.delete", exchange=exchange)


@pytest.fixture
def names(broker, worker_id):
    names = Names(broker, worker_id)
    yield names
    names.delete_all()
