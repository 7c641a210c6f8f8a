"""The commands by which a RabbitMQ moves its waiting messages: a shell runs them, and each shovel finds its queue."""

import json
from urllib.parse import unquote

import pika
import pytest
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

#: Keys of a shovel that RabbitMQ 4.3 validates, with the values that it allows.
RULES = {
    "src-protocol": lambda value: value == "amqp091",
    "src-uri": lambda value: value.startswith("amqp:///"),
    "src-queue": lambda value: isinstance(value, str),
    "src-delete-after": lambda value: value == "queue-length",
    "dest-protocol": lambda value: value == "amqp091",
    "dest-uri": lambda value: value.startswith("amqp://"),
    "dest-queue": lambda value: isinstance(value, str),
    "dest-predeclared": lambda value: value is True,
    "ack-mode": lambda value: value in ("on-confirm", "on-publish", "no-ack"),
}
#: Stands for RabbitMQ's tool: prints its words as JSON.
STUB = "#!/usr/bin/env python3\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"


@pytest.fixture
def ctl(under, by_broker, pytestconfig, tmp_path):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such command")
    return tools(under.shared(), pytestconfig, tmp_path)


@pytest.fixture
def vhost(under, prefix):
    name = f"{prefix}shop a/ü"
    api = under.shared().api
    api.do("PUT", "/api/vhosts/" + name.replace("/", "%2F").replace(" ", "%20").replace("ü", "%C3%BC"))
    yield name
    api.request("DELETE", "/api/vhosts/" + name.replace("/", "%2F").replace(" ", "%20").replace("ü", "%C3%BC"))


def script(ctl, tmp_path, document, *options):
    file = tmp_path / "broker.json"
    file.write_text(json.dumps(document))
    return "\n".join(ctl.do("shovel_commands", str(file), *options))


def run(ctl, tmp_path, text):
    """The words of each command that a shell runs."""
    folder = tmp_path / "stub"
    folder.mkdir(exist_ok=True)
    (folder / "rabbitmqctl").write_text(STUB)
    (folder / "rabbitmqctl").chmod(0o755)
    (tmp_path / "move.sh").write_text(text)
    ran = ctl.shell(f"PATH={folder}:$PATH sh {tmp_path / 'move.sh'}")
    assert (ran.code, ran.err) == (0, ""), ran
    return [json.loads(line) for line in ran.out.splitlines()]


def test_commands_move_each_queue_to_its_own_name(ctl, under, vhost, tmp_path):
    names = ["orders", "it's \"quoted\" $(id) `x`", "größe/1 %"]
    queues = [{"vhost": vhost, "name": name, "durable": True, "auto_delete": False, "arguments": {"x-queue-type": kind}}
              for name, kind in zip(names, ("quorum", "classic", "classic"))]
    under.shared().api.do("POST", "/api/definitions", {"queues": queues})
    host, port = under.shared().amqp
    text = script(ctl, tmp_path, {"queues": queues}, "--destination-uri", f"amqp://guest:guest@{host}:{port}")
    commands = run(ctl, tmp_path, text)
    assert len(commands) == len(names)
    for name, words in zip(names, commands):
        assert words[:4] == ["set_parameter", "-p", vhost, "shovel"] and words[4] == f"to-leveret-{name}"
        shovel = json.loads(words[5])
        assert set(shovel) == set(RULES) and all(rule(shovel[key]) for key, rule in RULES.items()), shovel
        assert shovel["src-queue"] == shovel["dest-queue"] == name
        assert unquote(shovel["src-uri"].removeprefix("amqp:///")) == vhost
        connection = pika.BlockingConnection(pika.URLParameters(shovel["dest-uri"]))
        connection.channel().queue_declare(name, passive=True)
        connection.close()


def test_queues_without_a_command_are_named(ctl, vhost, tmp_path):
    text = script(ctl, tmp_path, {"queues": [
        {"vhost": "/", "name": "events", "type": "stream", "arguments": {"x-queue-type": "stream"}},
        {"vhost": "/", "name": "two\nlines", "type": "classic"},
        {"vhost": "/", "name": "sms", "type": "classic"},
        {"vhost": vhost, "name": "other", "type": "classic"},
    ]}, "-p", "/")
    assert '# not moved: "events" in vhost "/": Leveret has no queues of its type' in text
    assert '# not moved: "two\\nlines" in vhost "/": its name has control characters' in text
    assert "TTL begins anew" in text and "other" not in text
    [words] = run(ctl, tmp_path, text)
    shovel = json.loads(words[5])
    assert (words[4], shovel["dest-uri"]) == ("to-leveret-sms", "amqp://USER:PASSWORD@HOST:5672/%2F")


def test_wrong_files_and_addresses_are_refused(ctl, tmp_path):
    file = tmp_path / "broker.json"
    file.write_text("{")
    assert ctl.run("shovel_commands", str(file)).code == 65
    assert ctl.run("shovel_commands", str(tmp_path / "none.json")).code == 65
    for uri in ("leveret:5672", "http://leveret", "amqp://leveret/vhost"):
        ran = ctl.run("shovel_commands", str(file), "--destination-uri", uri)
        assert ran.code == 65 and "an address of AMQP with a login, without a vhost" in ran.err
