"""The help of leveretctl: examples that work, columns that lists show, and hints for what is no command or column."""

import re
import shlex

import pika
import pytest

from test_ctl import tools

pytestmark = pytest.mark.tools

LISTS = ["list_queues", "list_connections", "list_channels", "list_consumers", "list_exchanges", "list_bindings",
         "list_vhosts", "list_feature_flags", "list_users", "list_permissions", "list_user_permissions guest",
         "list_topic_permissions", "list_policies", "list_operator_policies", "list_vhost_limits --global",
         "list_user_limits --global", "list_parameters", "list_global_parameters", "list_node_auth_attempt_stats",
         "dlq ls", "dlq delays", "dlq history", "dlq show orders.dead", "schedule ls"]


@pytest.fixture(scope="module")
def ctl(under, pytestconfig, tmp_path_factory):
    """The tools, and a broker with the queues of the examples and something in every list."""
    if under.name == "rabbitmq":
        pytest.skip("Leveret's own texts")
    folder = tmp_path_factory.mktemp("help")
    broker = under.start()
    ctl = tools(broker, pytestconfig, folder)
    ctl.do("set_topic_permissions", "guest", "amq.topic", ".*", ".*")
    ctl.do("set_vhost_limits", '{"max-queues":1000}')
    ctl.do("set_user_limits", "guest", '{"max-channels":1000}')
    ctl.do("set_policy", "all", "^orders$", '{"max-length":1000}')
    ctl.do("set_operator_policy", "all", "^orders$", '{"max-length":1000}')
    connection = pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp))
    channel = connection.channel()
    channel.queue_declare("orders.dead", durable=True)
    channel.queue_declare("reminders", durable=True)
    channel.queue_declare("drafts", durable=True)
    channel.queue_declare("orders", durable=True, arguments={
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dead", "x-message-ttl": 86_400_000})
    channel.basic_consume("reminders", lambda *_: None)
    channel.basic_publish("", "orders", "rejected", pika.BasicProperties(message_id="order-7"))
    method, _, _ = channel.basic_get("orders")
    channel.basic_reject(method.delivery_tag, requeue=False)
    for name in "order-7", "order-8":
        headers = {"x-opt-delivery-delay": 3_600_000, "x-schedule-id": name}
        channel.basic_publish("", "reminders", "later", pika.BasicProperties(headers=headers))
    channel.queue_declare("orders", passive=True)
    yield ctl
    connection.close()
    broker.stop()


def test_every_example_works(ctl):
    text = ctl.run("examples", tool="leveretctl").out
    lines = re.findall(r"^   (leveretctl .*)$", text, re.M)
    assert len(lines) > 30
    for line in lines:
        ran = ctl.shell(line)
        # A check of what is wrong fails when something is: 1 is a warning, 2 an error.
        assert ran.code == 0 or ran.code in (1, 2) and ("doctor" in line or "dlq check" in line), f"{line}: {ran}"


@pytest.mark.parametrize("line", LISTS)
def test_help_names_the_columns_that_a_list_shows(ctl, line):
    command = shlex.split(line)
    header, *rows = ctl.run(*command, "-q").out.splitlines()
    assert rows or line == "list_node_auth_attempt_stats", f"{line} lists nothing"
    text = ctl.run("help", *command[:2 if command[0] in ("dlq", "schedule") else 1]).out
    columns = text.split("\nColumns")[1].split("\n\n")[1]
    has_stars = "with a star" in text
    shown = re.findall(r"^\* (\S+)" if has_stars else r"^  (\S+)", columns, re.M)
    assert sorted(shown) == sorted(header.split("\t")), line


def test_wrong_column_is_answered_by_those_that_there_are(ctl):
    ours, theirs = (ctl.run("list_queues", "nam", tool=tool) for tool in ("leveretctl", "rabbitmqctl"))
    first = "Error (argument validation): Info key(s) nam are not supported"
    assert ours.err.splitlines()[:2] == [first, "The columns are:"] and " dropped_without_dlx " in ours.err
    assert theirs.err.splitlines()[:2] == [first, "Arguments given:"] and (ours.code, theirs.code) == (64, 64)


@pytest.mark.parametrize(("wrong", "meant"), [("redrive", "dlq redrive"), ("find_lost", "dlq check"), ("queues", "list_queues")])
def test_wrong_command_is_understood_by_its_meaning(ctl, wrong, meant):
    for tool in ("leveretctl", "rabbitmqctl"):
        assert f"Did you mean '{meant}'?" in ctl.run(wrong, tool=tool).err
    assert "Did you mean" not in ctl.run("xyzzy", tool="leveretctl").err
