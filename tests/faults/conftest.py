"""Options and fixtures of the fault runs; see README.md."""

import os
import random
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
# The clients, the ledger and the process of the crash loop, the raw sockets of the hostile suite, and the proxies of partitions.
sys.path[:0] = [str(TESTS / "crash"), str(TESTS / "hostile"), str(TESTS / "netsplit")]

import disk  # noqa: E402 - needs the path
import seeds  # noqa: E402
from cluster_processes import NAMES, Cluster  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--broker", choices=("leveret",), default="leveret", help="only Leveret's disk can be harmed")
    parser.addoption(
        "--leveret-bin", default=os.environ.get("LEVERET_BIN"), help="path of the leveret binary (or LEVERET_BIN)")
    seeds.add_options(parser)
    parser.addoption("--all-positions", action="store_true", help="damage every octet instead of a sample: hours")


def pytest_generate_tests(metafunc):
    seeds.parametrize(metafunc, "faults")


def pytest_collection_modifyitems(config, items):
    seeds.keep_drawn(config, items)


@pytest.fixture(scope="session")
def leveret_bin(pytestconfig):
    binary = pytestconfig.getoption("--leveret-bin")
    if not binary:
        pytest.exit("give --leveret-bin PATH or LEVERET_BIN", returncode=2)
    return os.path.abspath(binary)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return disk.compile_library("faults", tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory):
    return disk.compile_library("clock", tmp_path_factory.mktemp("clock"))


@pytest.fixture
def rng(seed, request):
    """Draws what belongs to the seed and the test: tests that differ in a parameter draw different things."""
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def broker(leveret_bin, library, tmp_path):
    broker = disk.FaultyBroker(leveret_bin, tmp_path, library)
    yield broker
    if broker.process and broker.process.poll() is None:
        broker.kill()


@pytest.fixture
def start_at(broker, clock_library):
    """Starts the broker with its clock so many seconds ahead."""
    def start(offset_s):
        broker.start({"LD_PRELOAD": str(clock_library), "CLOCK_OFFSET_S": str(int(offset_s))})
        return broker
    return start


@pytest.fixture
def make(leveret_bin, tmp_path):
    """Starts a cluster, of three nodes if nothing else is said, with more lines of configuration."""
    made = []

    def make(config="", names=NAMES, via=None):
        made.append(Cluster(leveret_bin, tmp_path, config, names=names, via=via))
        made[0].start()
        return made[0]
    yield make
    for cluster in made:
        cluster.stop()
