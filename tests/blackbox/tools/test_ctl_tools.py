"""RabbitMQ's other tools, as links to leveretctl: rabbitmq-plugins, rabbitmq-queues, rabbitmq-streams, rabbitmq-upgrade."""

import json

import pika
import pytest

from brokers import Leveret
from ctl import Ctl
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

TOOLS = ("rabbitmq-plugins", "rabbitmq-queues", "rabbitmq-streams", "rabbitmq-upgrade")


@pytest.fixture
def offline(by_broker, pytestconfig, tmp_path):
    """The tools where no broker runs."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("Leveret's own texts")
    binary = pytestconfig.getoption("--leveretctl-bin")
    if binary is None:
        pytest.skip("no --leveretctl-bin")
    return Ctl(binary, tmp_path, {"LEVERET_DATA_DIR": str(tmp_path / "none")})


def test_scripts_that_enable_plugins_run_without_a_node(offline):
    enabled = offline.run("enable", "rabbitmq_management", "rabbitmq_delayed_message_exchange", tool="rabbitmq-plugins")
    assert (enabled.code, enabled.err) == (0, "")
    assert "The following plugins have been configured:\n  rabbitmq_auth_mechanism_ssl\n" in enabled.out
    refused = offline.run("enable", "--offline", "rabbitmq_shovel", tool="rabbitmq-plugins")
    assert refused.code == 69
    assert refused.err == "Error: there is no plugin rabbitmq_shovel, and no feature of Leveret in its place\n"
    assert offline.run("disable", "rabbitmq_management", tool="rabbitmq-plugins").code == 69
    assert offline.run("is_enabled", "rabbitmq_prometheus", tool="rabbitmq-plugins").code == 0
    assert offline.run("is_enabled", "rabbitmq_mqtt", tool="rabbitmq-plugins").code == 69
    names = offline.run("list", "-q", "-m", "-E", "management", tool="rabbitmq-plugins").out.splitlines()
    assert names == ["rabbitmq_management", "rabbitmq_management_agent"]
    told = json.loads(offline.run("list", "--formatter", "json", tool="rabbitmq-plugins").out)
    assert {plugin["running"] for plugin in told["plugins"]} == {True}


def test_each_tool_has_its_own_commands(offline):
    helps = {tool: offline.run("help", tool=tool).out for tool in TOOLS}
    assert "   enable " in helps["rabbitmq-plugins"] and "   drain " in helps["rabbitmq-upgrade"]
    assert "   check_if_node_is_quorum_critical " in helps["rabbitmq-queues"]
    assert not [tool for tool in TOOLS if "   list_users " in helps[tool]]
    assert offline.run("enable", "rabbitmq_management", tool="rabbitmqctl").code == 64
    for tool, command in (("rabbitmq-queues", "grow_to_count"), ("rabbitmq-streams", "add_replica")):
        ran = offline.run(command, "x", tool=tool)
        assert ran.code == 69 and ran.err.startswith(f"Error: '{command}' is not available: ")


def test_commands_find_an_api_below_a_prefix(offline, pytestconfig, tmp_path):
    prefix = "management.path_prefix = /rabbit\n"
    broker = Leveret(pytestconfig.getoption("--leveret-bin"), tmp_path, prefix)
    try:
        tools = Ctl(pytestconfig.getoption("--leveretctl-bin"), tmp_path, {"LEVERET_DATA_DIR": str(broker.data_dir)})
        assert "/" in tools.do("list_vhosts", "--quiet")
        with_url = {"LEVERET_HTTP_URL": broker.api.url + "/rabbit"}
        ran = tools.run("list_vhosts", "--quiet", "--username", "guest", "--password", "guest", environment=with_url)
        assert (ran.code, ran.err) == (0, "") and "/" in ran.out.splitlines()
    finally:
        broker.stop()


def test_links_are_installed_into_a_folder_that_is_not_there_yet(offline, pytestconfig, tmp_path):
    folder = tmp_path / "home" / "bin"
    Ctl(pytestconfig.getoption("--leveretctl-bin"), folder, {})
    assert {file.name for file in folder.iterdir()} >= {"rabbitmqctl", "rabbitmq-diagnostics"}


def test_drained_node_closes_clients_and_takes_none_until_it_is_revived(offline, pytestconfig, tmp_path):
    broker = Leveret(pytestconfig.getoption("--leveret-bin"), tmp_path)
    try:
        tools = Ctl(pytestconfig.getoption("--leveretctl-bin"), tmp_path, {"LEVERET_DATA_DIR": str(broker.data_dir)})
        upgrade = lambda *words: tools.do(*words, tool="rabbitmq-upgrade")
        parameters = pika.ConnectionParameters(*broker.amqp)
        connection = pika.BlockingConnection(parameters)
        connection.channel()
        assert "Will wait for a quorum + 1" in upgrade("await_online_quorum_plus_one")[0]
        upgrade("drain")
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            connection.process_data_events(10)
            connection.channel()
        assert closed.value.reply_code == 320 and "maintenance mode" in closed.value.reply_text
        with pytest.raises(pika.exceptions.AMQPError):
            pika.BlockingConnection(parameters)
        upgrade("revive")
        pika.BlockingConnection(parameters).close()
        assert upgrade("post_upgrade") == ["Executing post upgrade tasks..."]
    finally:
        broker.stop()


def test_definitions_of_any_length_are_imported_by_a_tool_of_the_machine(offline, run_cluster, pytestconfig, tmp_path):
    """RabbitMQ reads the file itself, and bounds only what comes over HTTP."""
    cluster = run_cluster()
    long = tmp_path / "long.json"
    for name, node in cluster.nodes.items():
        definitions = {"queues": [{"vhost": "/", "name": name, "durable": True, "auto_delete": False, "arguments": {}}]}
        long.write_text(json.dumps(definitions) + " " * 2 ** 24)
        ran = tools(node, pytestconfig, tmp_path).run("import_definitions", str(long))
        assert (ran.code, ran.err) == (0, ""), ran
    assert {queue["name"] for queue in node.api.do("GET", "/api/queues/%2F")} == set(cluster.nodes)
