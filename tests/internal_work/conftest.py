"""Options and fixtures of the suite about work that the broker makes by itself; see README.md."""

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
# The process of the crash loop, the raw sockets and the bystander of the hostile suite.
sys.path[:0] = [str(TESTS / "crash"), str(TESTS / "hostile")]

from small_disk import small_disk  # noqa: E402 - needs the path
from work_broker import WorkBroker  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--broker", choices=("leveret",), default="leveret", help="RabbitMQ's alarms stop publishers only")
    parser.addoption(
        "--leveret-bin", default=os.environ.get("LEVERET_BIN"), help="path of the leveret binary (or LEVERET_BIN)")
    parser.addoption("--messages", type=int, default=10_000, help="returned and scheduled messages in test_retries")


@pytest.fixture(scope="session")
def leveret_bin(pytestconfig):
    binary = pytestconfig.getoption("--leveret-bin")
    if not binary:
        pytest.exit("give --leveret-bin PATH or LEVERET_BIN", returncode=2)
    return os.path.abspath(binary)


@pytest.fixture
def disk():
    with small_disk() as disk:
        yield disk


@pytest.fixture
def broker(leveret_bin, disk, tmp_path):
    broker = WorkBroker(leveret_bin, tmp_path, disk)
    broker.start()
    yield broker
    if broker.process.poll() is None:
        broker.kill()
