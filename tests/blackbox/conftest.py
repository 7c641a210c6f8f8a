"""Options, and the fixtures that give each test a broker, a channel and names of its own."""

import collections
import contextlib
import logging
import os
import secrets
import shutil
import zlib

import pytest

pytest.register_assert_rewrite("client", "channel", "brokers")

import brokers  # noqa: E402
import client as client_module  # noqa: E402
import clusters  # noqa: E402
import definitions as defs  # noqa: E402
import field_table  # noqa: E402
import made as made_module  # noqa: E402
import moving_leaders  # noqa: E402
import programs  # noqa: E402

logging.getLogger("pika").setLevel(logging.CRITICAL)  # refusals are what is tested here
field_table.install()

REPETITIONS = collections.Counter()  # how often each test has run


def pytest_addoption(parser):
    group = parser.getgroup("broker")
    group.addoption("--broker", choices=["leveret", "rabbitmq"], default="leveret", help="what is tested")
    group.addoption("--leveret-bin", default=os.environ.get("LEVERET_BIN"), help="path of the binary (or LEVERET_BIN)")
    group.addoption("--nodes", type=int, default=1, help="nodes of the Leveret that tests share; tests use the last one")
    group.addoption("--move-leaders", type=float, metavar="SECONDS", help="let another of the nodes lead so often; tests that "
                    "a move has interrupted run again")
    group.addoption("--leveretctl-bin", default=os.environ.get("LEVERETCTL_BIN"),
                    help="path of leveretctl (or LEVERETCTL_BIN) [beside the binary, or in ../debug]")
    group.addoption("--amqp", default="127.0.0.1:5672", help="RabbitMQ's AMQP address")
    group.addoption("--http", default="http://127.0.0.1:15672", help="RabbitMQ's HTTP API")
    group.addoption("--metrics", default="http://127.0.0.1:15692", help="RabbitMQ's metrics")


def pytest_configure(config):
    binary = config.getoption("--leveret-bin")
    if config.getoption("--leveretctl-bin") is None and binary:
        config.option.leveretctl_bin = programs.tool("leveretctl", binary)
    if config.getoption("--broker") == "leveret" and not config.getoption("--leveret-bin"):
        raise pytest.UsageError("--leveret-bin PATH or LEVERET_BIN must say which binary to test")


def pytest_collection_modifyitems(config, items):
    """A test that expects different things of the two brokers must say so with the marker, and only such a test. One that
    runs leveretctl must say so, too: the tools are not built yet when the others run.

    Tests of streams wait for Leveret to have them.
    """
    for item in items:
        if config.getoption("--broker") == "leveret" and item.get_closest_marker("stream") is not None:
            item.add_marker(pytest.mark.skip(reason="Leveret has no streams yet"))
        if config.getoption("--nodes") > 1 and item.get_closest_marker("alone") is not None:
            item.add_marker(pytest.mark.skip(reason="about a node that is alone"))
        differs = "by_broker" in item.fixturenames
        if differs != (item.get_closest_marker("better") is not None):
            raise pytest.UsageError(f"{item.nodeid}: the fixture by_broker and the marker `better` belong together")
        runs_tools = "ctl" in item.fixturenames or "tools" in item.function.__code__.co_names
        if runs_tools and item.get_closest_marker("tools") is None:
            raise pytest.UsageError(f"{item.nodeid}: a test that runs leveretctl needs the marker `tools`")


def pytest_runtest_protocol(item, nextitem):
    if item.config.getoption("--move-leaders") is None:
        return None
    moving_leaders.run(item, nextitem, lambda: getattr(item.config, "moving_leaders", None))
    return True


def pytest_sessionfinish(session):
    moving = getattr(session.config, "moving_leaders", None)
    if moving is not None and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["moves"] = (moving.moves, moving.reruns)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):  # noqa: ARG001 - pytest wants both names
    moves, reruns = getattr(node, "workeroutput", {}).get("moves", (0, []))
    if moves:
        print(f"\n{moves} moves of the leader; {len(reruns)} tests ran again: {', '.join(sorted(reruns))}")


def pytest_terminal_summary(terminalreporter):
    """Print the figures that tests have measured."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "figures":
                terminalreporter.write_line(f"{terminalreporter.config.getoption('--broker')}: {value}")


class BrokerUnderTest:
    """The broker that most tests of this run share; started when it is first needed, again when a test killed it."""

    def __init__(self, config, tmp_path_factory):
        self.name = config.getoption("--broker")
        self.config, self.directories = config, tmp_path_factory
        self._shared = self._cluster = None
        self._started = []

    def shared(self):
        """The shared broker."""
        if self._shared is None or (self.name == "leveret" and not self._shared.alive):
            self._shared = self.start() if self.config.getoption("--nodes") == 1 else self._start_cluster()
        return self._shared

    def leader(self):
        """The node that leads the default vhost, and tells what happens in it."""
        node = self.shared()
        return self._cluster.nodes[node.api.do("GET", "/api/vhosts/%2F")["leader"]] if self._cluster else node

    def _start_cluster(self):
        """A node of a new cluster."""
        letters = "abcde"[:self.config.getoption("--nodes")]
        binary = self.config.getoption("--leveret-bin")
        self._cluster = clusters.Cluster(binary, self.directories.mktemp("cluster"), letters)
        node = self._cluster.start_all()
        if self.config.getoption("--move-leaders") is not None:
            self.config.moving_leaders = moving_leaders.MovingLeaders(
                self._cluster, self.config.getoption("--move-leaders"))
        return node

    def start(self, settings="", definitions=None):
        """A new Leveret, or the RabbitMQ that is there."""
        if self.name == "leveret":
            directory = self.directories.mktemp("leveret")
            self._started.append(brokers.Leveret(
                self.config.getoption("--leveret-bin"), directory, settings, definitions))
            return self._started[-1]
        return brokers.RabbitMq(self.config.getoption("--amqp"), self.config.getoption("--http"))

    def remove_stopped(self):
        """Remove the directories of brokers that have ended: each has a reserve on the disk, and there are hundreds."""
        for broker in [broker for broker in self._started if not broker.alive]:
            self._started.remove(broker)
            shutil.rmtree(broker.directory)

    def stop(self):
        """Stop the shared broker."""
        if self._cluster is not None:
            self._cluster.stop()
        elif self._shared is not None:
            self._shared.stop()


@pytest.fixture(scope="session")
def under(pytestconfig, tmp_path_factory):
    """The broker under test: its name, the shared one, and new ones."""
    under = BrokerUnderTest(pytestconfig, tmp_path_factory)
    yield under
    under.stop()
    under.remove_stopped()


@pytest.fixture(autouse=True)
def disk_is_left_free(under):
    yield
    under.remove_stopped()


@pytest.fixture
def prefix(under, request):
    """What all names of a test begin with. The same in every run where the broker is new: the names decide what an exchange
    that hashes does. A test that runs again has other names."""
    if under.name == "rabbitmq":
        return f"bb-{secrets.token_hex(4)}-"
    REPETITIONS[request.node.nodeid] += 1
    return f"bb-{zlib.crc32(f'{request.node.nodeid} {REPETITIONS[request.node.nodeid]}'.encode()):08x}-"


@pytest.fixture
def client(under, prefix):
    """Connections to the shared broker."""
    broker = under.shared()
    client = client_module.Client(broker, prefix)
    yield client
    try:
        if broker.name == "rabbitmq" or broker.alive:
            client.clean_up()
    finally:
        broker.check()


@pytest.fixture
def ch(client):
    """A channel to the shared broker, in confirm mode: when a publish returns, every queue has the message."""
    return client.channel().confirm_select()


@pytest.fixture
def dlq(ch):
    """A plain queue that dead letters are sent to."""
    return ch.queue(name="dlq")


@pytest.fixture(params=["classic", "quorum"])
def kind(request):
    """Both queue types that messages can be taken from."""
    return request.param


@pytest.fixture
def by_broker(under):
    """What is expected where Leveret deliberately differs: `by_broker(rabbitmq=..., leveret=...)`."""
    return lambda **expectations: expectations[under.name]


@pytest.fixture
def make_cluster(by_broker, pytestconfig, tmp_path):
    """`make_cluster(letters="abc", **settings)`: a cluster, whose nodes end with the test."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ's clusters are of Erlang")
    with contextlib.ExitStack() as undo:

        def make(letters="abc", **settings):
            cluster = clusters.Cluster(pytestconfig.getoption("--leveret-bin"), tmp_path, letters, settings)
            undo.callback(cluster.stop)
            return cluster

        yield make


@pytest.fixture(scope="module")
def lasting_cluster(under, pytestconfig, tmp_path_factory):
    """Three nodes that the tests of a module share, as long as none of them harms it."""
    if under.name == "rabbitmq":
        pytest.skip("RabbitMQ's clusters are of Erlang")
    cluster = clusters.Cluster(pytestconfig.getoption("--leveret-bin"), tmp_path_factory.mktemp("lasting"))
    try:
        cluster.start_all()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def run_cluster(make_cluster):
    """The same, with all nodes running and serving clients."""
    def run(**settings):
        cluster = make_cluster(**settings)
        cluster.start_all()
        return cluster

    return run


@pytest.fixture
def defined(under, prefix):
    """`defined(policies=[...], users=[...], ...)`: a channel (as `ch`) to a broker that has these definitions.

    Leveret gets a process of its own that starts from them, RabbitMQ imports them and removes them afterwards.
    `settings` are lines of rabbitmq.conf, for Leveret only. `defined.client` makes further connections.
    """
    with contextlib.ExitStack() as undo:

        def defined(settings="", **definitions):
            document = defs.document(prefix, **definitions)
            if under.name == "leveret":
                broker = under.start(settings, document)
                undo.callback(broker.stop)
            else:
                broker = under.shared()
                undo.callback(broker.define(document))
            defined.client = client_module.Client(broker, prefix)
            undo.callback(defined.client.clean_up)
            return defined.client.channel().confirm_select()

        yield defined


@pytest.fixture
def bob(defined, prefix):
    """`bob(configure=..., write=..., read=...)`: guest's channel (as `ch`), and one of a user with these permissions.

    The user's name is "bob" behind the test's prefix.
    """

    def bob(configure=".*", write=".*", read=".*", **definitions):
        ch = defined(users=[defs.User("bob", configure, write, read)], **definitions)
        return ch, defined.client.channel(user=prefix + "bob")

    return bob


@pytest.fixture
def api(under):
    """The HTTP API of the shared broker."""
    return under.shared().api


@pytest.fixture
def made(api, prefix):
    """Users and vhosts that a test makes over HTTP; removed when it is over. See `made.Made`."""
    made = made_module.Made(api, prefix)
    yield made
    made.remove()


@pytest.fixture
def metrics_url(under, pytestconfig):
    """Where the shared broker tells its metrics."""
    if under.name == "rabbitmq":
        return pytestconfig.getoption("--metrics").rstrip("/")
    return under.leader().api.url
