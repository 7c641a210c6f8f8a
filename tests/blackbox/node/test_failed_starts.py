"""Starts that fail, one mistake at a time: a sentence that names its place, and the exit code that service managers
expect.

Every key with a wrong value is in the table of `crates/server/src/config/tests.rs`.
"""

import hashlib
import json
import os
import re
import socket
import subprocess

import pytest

WITHIN_S = 300

# Exit codes: another start may help; the command line is wrong; the configuration is wrong.
FAILED, USAGE, CONFIG = 1, 2, 78

OLD_DEFINITIONS = {
    "rabbit_version": "3.8.9", "rabbitmq_version": "3.8.9", "users": [], "vhosts": [{"name": "/"}], "permissions": [],
    "parameters": [], "global_parameters": [{"name": "cluster_name", "value": "rabbit@old"}],
    "policies": [{"vhost": "/", "name": "ha", "pattern": ".*", "apply-to": "queues", "definition": {"ha-mode": "all"}}],
    "queues": [], "exchanges": [], "bindings": []}


def sealed(**root):
    """A file of the data directory with these members and its checksum."""
    text = json.dumps(root, separators=(",", ":"))
    return json.dumps({**root, "sha256": hashlib.sha256(text.encode()).hexdigest()}).encode()


LATER_NODE = sealed(format=2, next_vhost_id=2, vhosts=[], users=[], colour=1)
LATER_CLUSTER = sealed(format=1, node="a@h", cluster="0" * 16, disk="1" * 16, founded=False, disks={}, colour=1)
WHOLE = "is whole, but another version of Leveret has written it: unknown field `colour`, expected .*; start that version"

#: Name, options, lines of a.conf (None for no file), other files, variables, exit code, pattern of the sentence.
CASES = [
    ("unknown option", ["--configuration", "x"], None, {}, {}, USAGE, r"unexpected argument '--configuration'"),
    ("option without a value", ["--config"], None, {}, {}, USAGE, r"a value is required for '--config <FILE>'"),
    ("unknown command", ["serve"], None, {}, {}, USAGE, r"unrecognized subcommand 'serve'"),
    ("wrong --amqp", ["--amqp", "localhost"], None, {}, {}, USAGE, r"invalid value 'localhost' for '--amqp <ADDR:PORT>'"),
    ("wrong --http", ["--http", "127.0.0.1:x"], None, {}, {}, USAGE, r"invalid value '127.0.0.1:x' for '--http"),
    ("missing file", ["--config", "b.conf"], None, {}, {}, CONFIG, r"leveret: cannot read configuration file b\.conf: No such"),
    ("folder of files in a missing folder", ["--config", "etc/conf.d"], None, {}, {}, CONFIG,
     r"leveret: cannot read configuration file etc/conf\.d: No such"),
    ("file of bytes", [], None, {"a.conf": b"heartbeat = \xff\n"}, {}, CONFIG, r"cannot read configuration file a\.conf: .*UTF-8"),
    ("unknown key", [], "\nheartbeet = 1\n", {}, {}, CONFIG, r"a\.conf, line 2: unknown key 'heartbeet', did you mean 'heartbeat'\?"),
    ("wrong value", [], "heartbeat = soon\n", {}, {}, CONFIG, r"a\.conf, line 1: heartbeat must be a number .*, got 'soon'"),
    ("key of a plugin", [], "mqtt.listeners.tcp.default = 1883\n", {}, {}, CONFIG,
     r"a\.conf, line 1: mqtt\.listeners\.tcp\.default is not possible: there is no MQTT"),
    ("other users", [], "auth_backends.1 = ldap\n", {}, {}, CONFIG, r"a\.conf, line 1: auth_backends\.1 must be .*, got 'ldap'"),
    ("wrong variable", [], None, {}, {"RABBITMQ_NODE_PORT": "x"}, CONFIG,
     r"environment RABBITMQ_NODE_PORT: listeners\.tcp\.default must be a port"),
    ("wrong defaults", [], None, {}, {"LEVERET_DEFAULTS": "image"}, CONFIG,
     r"environment LEVERET_DEFAULTS: the only value is 'container', got 'image'"),
    ("circle of files", [], "include a.conf\n", {}, {}, CONFIG, r"a\.conf, line 1: files include each other in a circle"),
    ("terms of Erlang", ["--config", "advanced.config"], None, {"advanced.config": b"%%\n[{rabbit, []}].\n"}, {}, CONFIG,
     r"advanced\.config, line 2: Erlang terms, as in advanced\.config, are not read"),
    ("log file in a file", [], "log.file = file/a.log\n", {"file": b""}, {}, CONFIG, r"cannot open the log file file/a\.log: "),
    ("missing certificate", [], "listeners.ssl.1 = 127.0.0.1:0\nssl_options.certfile = c.pem\nssl_options.keyfile = k.pem\n", {}, {},
     CONFIG, r"a\.conf, line 2: ssl_options\.certfile .*c\.pem"),
    ("certificate of text", [], "listeners.ssl.1 = 127.0.0.1:0\nssl_options.certfile = c.pem\nssl_options.keyfile = c.pem\n",
     {"c.pem": b"text\n"}, {}, CONFIG, r"TLS: .*c\.pem"),
    ("missing definitions", [], "load_definitions = d.json\n", {}, {}, CONFIG, r"a\.conf, line 1: load_definitions .*d\.json"),
    ("definitions cut off", [], "load_definitions = d.json\n", {"d.json": b'{\n"queues": ['}, {}, CONFIG, r"definitions d\.json: .* line 2"),
    ("definitions of RabbitMQ 3.8", [], "load_definitions = d.json\n", {"d.json": json.dumps(OLD_DEFINITIONS, indent=1).encode()}, {},
     CONFIG, r"definitions d\.json, line 19: policies, item 1: .*ha-mode.* not recognised"),
    ("definition without a name", [], "load_definitions = d.json\n", {"d.json": b'{"vhosts": [{"name": "/"}],\n "queues": [\n {"vhost": "/"}]}'},
     {}, CONFIG, r"definitions d\.json, line 3: queues, item 1: 'name' is missing"),
    ("definitions without a list", [], "load_definitions = d.json\n", {"d.json": b'{\n "users": {}}'}, {}, CONFIG,
     r"definitions d\.json, line 2: users: must be a list"),
    ("file as data directory", [], None, {"data": b""}, {}, FAILED, r"cannot make data directory .*/data: "),
    ("file above the data directory", ["--data-dir", "file/data"], None, {"file": b""}, {}, FAILED,
     r"cannot make data directory .*/file/data: "),
    ("foreign node.json", [], None, {"data/node.json": b"{}"}, {}, FAILED, r"data/node\.json"),
    ("node.json of a later version", [], None, {"data/node.json": LATER_NODE}, {}, FAILED, rf"data/node\.json {WHOLE}"),
    ("cluster.json of a later version", [], None, {"data/cluster.json": LATER_CLUSTER}, {}, FAILED, rf"data/cluster\.json {WHOLE}"),
    ("address of another machine", ["--amqp", "192.0.2.1:5672"], None, {}, {}, FAILED, r"cannot listen for AMQP on 192\.0\.2\.1:5672: "),
]


@pytest.fixture
def run(under, tmp_path):
    """`run(options, conf, files, variables)`: exit code and output of a broker that does not start."""
    if under.name == "rabbitmq":
        pytest.skip("Leveret's own command line")

    def run(options, conf, files, variables):
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(content)
        if conf is not None:
            (tmp_path / "a.conf").write_text(conf)
        defaults = ["--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        # An option that a case gives, or a variable of the same address, is the one that counts.
        given = [*options, *(["--config", "a.conf"] if (tmp_path / "a.conf").exists() else [])]
        for option, value in zip(defaults[::2], defaults[1::2]):
            if option not in given and not variables:
                given += [option, value]
        command = [under.config.getoption("--leveret-bin"), *given]
        clean = {name: value for name, value in os.environ.items() if "RABBITMQ" not in name and "LEVERET" not in name}
        ran = subprocess.run(command, cwd=tmp_path, env=clean | variables, capture_output=True, text=True, timeout=WITHIN_S,
                             check=False)
        return ran.returncode, ran.stdout + ran.stderr

    return run


@pytest.mark.parametrize("options, conf, files, variables, code, sentence", [case[1:] for case in CASES],
                         ids=[case[0].replace(" ", "-") for case in CASES])
def test_start_fails_with_a_sentence_and_a_code(run, options, conf, files, variables, code, sentence):
    got, said = run(options, conf, files, variables)
    assert re.search(sentence, said), said
    assert got == code, said
    assert "panicked" not in said


@pytest.mark.parametrize("option, protocol", [("--amqp", "AMQP"), ("--http", "HTTP")])
def test_taken_port_is_named(run, option, protocol):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        got, said = run([option, f"127.0.0.1:{port}"], None, {}, {})
    assert f"cannot listen for {protocol} on 127.0.0.1:{port}: Address already in use" in said
    assert got == FAILED


def test_directory_of_another_user_is_named(run, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere: the test of the container image has another user")
    (tmp_path / "theirs").mkdir(mode=0o555)
    got, said = run(["--data-dir", "theirs/data"], None, {}, {})
    assert re.search(r"cannot make data directory .*/theirs/data: Permission denied", said)
    assert got == FAILED


def test_key_without_effect_is_a_warning_with_its_place(run):
    # The start fails for another reason, so that it ends.
    got, said = run(["--amqp", "192.0.2.1:5672"], "\nqueue_index_embed_msgs_below = 4kb\n", {}, {})
    assert re.search(r"WARN a\.conf, line 2: queue_index_embed_msgs_below has no effect: ", said), said
    assert got == FAILED
