"""A broker, and the two programs that xtask has fetched."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "blackbox" / "support"))

from brokers import Leveret, RabbitMq  # noqa: E402
from patience import eventually  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--broker", choices=["leveret", "rabbitmq"], default="leveret", help="what is tested")
    parser.addoption("--leveret-bin", default=os.environ.get("LEVERET_BIN"), help="path of the binary (or LEVERET_BIN)")
    parser.addoption("--amqp", default="127.0.0.1:5672", help="RabbitMQ's AMQP address")
    parser.addoption("--http", default="http://127.0.0.1:15672", help="RabbitMQ's HTTP API")
    parser.addoption("--tools", type=pathlib.Path, help="where xtask has put rabbitmqadmin; beside the binary otherwise")


@pytest.fixture
def broker(request, tmp_path):
    options = request.config.option
    if options.broker == "leveret":
        broker = Leveret(options.leveret_bin, tmp_path)
    else:
        broker = RabbitMq(options.amqp, options.http)
    broker.wait_for = eventually  # RabbitMQ lists a connection only after seconds
    yield broker
    broker.check()
    broker.stop()


@pytest.fixture
def rabbitmqadmin(request, broker):
    """The command of a generation, with the broker's address and login."""
    host, port = broker.api.url.removeprefix("http://").rsplit(":", 1)
    options = request.config.option
    tools = options.tools or pathlib.Path(options.leveret_bin).parent.parent / "xtask"

    def command(generation):
        if generation == "v1":
            [script] = (tools / "debian" / "rabbitmq-server").rglob("cli/rabbitmqadmin")
            return [sys.executable, str(script), "-H", host, "-P", port, "-u", "guest", "-p", "guest"]
        program = tools / "interop" / "rust" / "target" / "debug" / "rabbitmqadmin"
        return [str(program), "--host", host, "--port", port, "--username", "guest", "--password", "guest",
                "--non-interactive"]

    return command
