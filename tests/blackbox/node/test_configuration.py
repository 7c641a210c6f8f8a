"""The configuration: files, environment and command line, what is in force, what is wrong, where the log goes.

How RabbitMQ reads its own is not tested: only Leveret is started here.
"""

import http.client
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

import pika
import pytest

from patience import PATIENCE_S, eventually


@pytest.fixture
def run(under, tmp_path):
    """`run(*arguments, conf=..., **environment)`: what a Leveret says that ends by itself."""
    if under.name == "rabbitmq":
        pytest.skip("Leveret's own command line")

    def run(*arguments, conf=None, **environment):
        if conf is not None:
            (tmp_path / "a.conf").write_text(conf)
            arguments = ("--config", "a.conf", *arguments)
        command = [under.config.getoption("--leveret-bin"), *arguments]
        clean = {name: value for name, value in os.environ.items() if "RABBITMQ" not in name and "LEVERET" not in name}
        return subprocess.run(command, cwd=tmp_path, env=clean | environment, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)

    return run


@pytest.fixture
def start(under):
    """`start(settings)`: a Leveret of its own."""
    if under.name == "rabbitmq":
        pytest.skip("the settings of a running RabbitMQ are not the suite's to change")
    brokers = []

    def start(settings=""):
        brokers.append(under.start(settings))
        return brokers[-1]

    yield start
    for broker in brokers:
        broker.stop()


def shown(result):
    """What --print-config shows: the value and the source of each key."""
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.rsplit(" # ", 1) for line in result.stdout.splitlines()]
    return {line.split(" = ", 1)[0]: (line.split(" = ", 1)[1].strip(), source) for line, source in lines}


def connect(broker, user="guest", password=None):
    credentials = pika.PlainCredentials(user, password or user)
    return pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp, "/", credentials))


def test_the_command_line_wins_over_the_environment_over_files_over_defaults(run):
    result = run(
        "--print-config", "--data-dir", "elsewhere",
        conf="heartbeat = 30\nlisteners.tcp.1 = 1\nlisteners.tcp.2 = 2\ndefault_user = bob\nheartbeat = 31\n",
        RABBITMQ_NODE_PORT="5700", RABBITMQ_DEFAULT_USER="eve", LEVERET_DEFAULT_USER="alice",
        RABBITMQ_DEFAULT_PASS="hunter2",
    )
    keys = shown(result)
    assert keys["heartbeat"] == ("31", "a.conf, line 5")
    assert keys["default_user"] == ("alice", "environment LEVERET_DEFAULT_USER")
    assert keys["default_pass"] == ("********", "environment RABBITMQ_DEFAULT_PASS")
    assert keys["data_dir"] == ("elsewhere", "command line --data-dir")
    assert keys["frame_max"] == ("131072", "default")
    listeners = {name: value for name, value in keys.items() if name.startswith("listeners.tcp")}
    assert listeners == {"listeners.tcp.default": ("5700", "environment RABBITMQ_NODE_PORT")}
    assert "hunter2" not in result.stdout


def test_printed_configuration_has_the_same_settings(run, tmp_path):
    first = run("--print-config", conf="cluster_name = 'a # b'\ndisk_free_limit.relative = 1.5\nlog.console = off")
    assert first.returncode == 0
    printed = "".join(line for line in first.stdout.splitlines(keepends=True) if "****" not in line)
    again = shown(run("--print-config", conf=printed))
    expected = {name: value for name, (value, _) in shown(first).items() if value != "********"}
    assert {name: value for name, (value, _) in again.items() if value != "********"} == expected
    assert again["cluster_name"][0] == "'a # b'"


def test_files_come_from_the_environment_and_from_folders(run, tmp_path):
    (tmp_path / "main.conf").write_text("heartbeat = 1\ninclude more/included.conf\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "included.conf").write_text("channel_max = 11\n")
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "10-a.conf").write_text("heartbeat = 2\n")
    (tmp_path / "conf.d" / "20-b.conf").write_text("heartbeat = 3\ncluster_name = $(SEED)\n")
    (tmp_path / "conf.d" / "30-c.txt").write_text("heartbeat = 4\n")
    keys = shown(run("--print-config", RABBITMQ_CONFIG_FILE="main", RABBITMQ_CONFIG_FILES="conf.d", SEED="grown"))
    assert keys["heartbeat"] == ("3", "conf.d/20-b.conf, line 1")
    assert keys["channel_max"] == ("11", "more/included.conf, line 1")
    assert keys["cluster_name"] == ("grown", "conf.d/20-b.conf, line 2")
    keys = shown(run("--print-config", "--config", "conf.d", SEED="grown"))
    assert keys["heartbeat"] == ("3", "conf.d/20-b.conf, line 1") and keys["channel_max"][1] == "default"


def test_all_faults_are_reported_before_anything_starts(run, tmp_path):
    result = run("--data-dir", "data", conf="heartbeet = 1\nheartbeat = soon\n\nlisteners.tcp.1 = foo\nx\nproxy_protocol = true\n",
                 RABBITMQ_NODE_PORT="")
    assert result.returncode == 78
    assert result.stderr.splitlines() == [
        "leveret: a.conf, line 1: unknown key 'heartbeet', did you mean 'heartbeat'?",
        "leveret: a.conf, line 2: heartbeat must be a number from 0 to 65535, got 'soon'",
        "leveret: a.conf, line 4: listeners.tcp.1 must be a port or an address with a port, got 'foo'",
        "leveret: a.conf, line 5: expected 'key = value', got 'x'",
        "leveret: a.conf, line 6: proxy_protocol is not possible: the proxy protocol is not known",
    ]
    assert not (tmp_path / "data").exists()
    missing = run("--config", "missing.conf")
    assert missing.returncode == 78
    assert missing.stderr.startswith("leveret: cannot read configuration file missing.conf: No such file")
    terms = run(conf="%% advanced.config\n[{rabbit, [{tcp_listeners, [5672]}]}].\n")
    assert terms.stderr == ("leveret: a.conf, line 2: Erlang terms, as in advanced.config, are not read; write every "
                            "setting as 'key = value'\n")
    part = run(conf="vm_memory_high_watermark = 0.4\n")
    assert part.stderr.endswith("did you mean 'vm_memory_high_watermark.relative'?\n")


def test_a_key_without_effect_is_a_warning(start):
    broker = start("queue_master_locator = min-masters")
    assert any("WARN" in line and "queue_master_locator has no effect: nodes have no such settings" in line for line in broker.log)


def test_so_many_connections_and_no_more(start):
    broker = start("connection_max = 1")
    first = connect(broker)
    with pytest.raises(pika.exceptions.AMQPConnectionError) as refused:
        connect(broker)
    assert "NOT_ALLOWED - connection refused: node connection limit (1) is reached" in repr(refused.value)
    first.close()

    def is_let_in():
        try:
            connect(broker).close()
        except pika.exceptions.AMQPConnectionError:
            return False
        return True

    eventually(is_let_in, what="a place for another connection")


def test_further_users_are_made_with_the_default_vhost(start):
    broker = start("""
        default_users.bob.password = secret
        default_users.bob.tags = monitoring, policymaker
        default_users.bob.write = ^bob
        default_users.eve.password = secret
        default_users.eve.vhost_pattern = ^elsewhere$
        default_users.mallory.tags = administrator""")
    whoami = broker.api.ask("/api/whoami", user="bob", password="secret")
    assert whoami.json["tags"] == ["monitoring", "policymaker"]
    channel = connect(broker, "bob", "secret").channel()
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        channel.exchange_declare("x", "fanout")
        channel.basic_publish("x", "", b"")
        channel.queue_declare("any")
    assert refused.value.reply_code == 403
    for nobody in ("eve", "mallory"):
        assert broker.api.ask("/api/whoami", user=nobody, password="secret").status == 401
        assert broker.api.ask("/api/whoami", user=nobody, password=" ").status == 401


def test_the_api_below_a_prefix_and_metrics_on_their_own(start):
    broker = start("management.path_prefix = /rabbit\nprometheus.tcp.ip = 127.0.0.1\nprometheus.tcp.port = 0")
    assert broker.api.ask("/rabbit/api/whoami").json["name"] == "guest"
    assert broker.api.ask("/rabbit", user=None).text.startswith(b"<!doctype html>")
    assert [broker.api.ask(path).status for path in ["/api/whoami", "/", "/rabbits/"]] == [404, 404, 404]
    for path, location in (
            ("/rabbit/api", "/rabbit/api/index.html"), ("/rabbit/api/", "/rabbit/api/index.html"),
            ("/rabbit/doc/stats.html", "/rabbit/api/index.html"), ("/rabbit/cli", "/rabbit/cli/index.html")):
        connection = http.client.HTTPConnection(broker.api.url.removeprefix("http://"), timeout=PATIENCE_S)
        connection.request("GET", path)
        moved = connection.getresponse()
        assert (moved.status, moved.headers["location"]) == (301, location)
        connection.close()
    with urllib.request.urlopen(broker.api.url + "/rabbit/api", timeout=PATIENCE_S) as answer:
        assert answer.url.endswith("/rabbit/api/index.html") and b"HTTP API" in answer.read()
    assert broker.api.ask("/metrics", user=None).status == 200
    url = f"http://127.0.0.1:{broker.port('Prometheus')}"
    with urllib.request.urlopen(url + "/metrics", timeout=PATIENCE_S) as answer:
        assert b"rabbitmq_identity_info" in answer.read()
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(url + "/api/overview", timeout=PATIENCE_S)
    assert missing.value.code == 404


def test_the_log_goes_to_a_file_that_is_changed_when_it_is_large_or_moved(start, tmp_path):
    file = tmp_path / "logs" / "leveret.log"
    broker = start(f"""
        log.dir = {tmp_path / "logs"}
        log.file = true
        log.file.formatter = json
        log.file.rotation.size = 4096
        log.file.rotation.count = 2
        log.console.level = info""")
    # The console, by which `start` knows that the broker is there, has the line before the file.
    eventually(lambda: "started" in file.read_text(), what="the line in the file")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert "started" in lines[-1]["fields"]["message"]
    for _ in range(40):
        connect(broker).close()
    eventually(lambda: (tmp_path / "logs" / "leveret.log.1").exists(), what="a second file")
    assert {path.name for path in file.parent.iterdir()} == {"leveret.log", "leveret.log.0", "leveret.log.1"}
    assert all(path.stat().st_size <= 4096 for path in file.parent.iterdir())
    moved = file.rename(tmp_path / "moved.log")
    broker.process.send_signal(signal.SIGHUP)
    eventually(file.exists, what="a new file")
    connect(broker).close()
    eventually(lambda: "disconnected" in file.read_text(), what="a line in the new file")
    assert moved.exists()


def test_levels_by_category(start):
    broker = start("log.connection.level = error\nlog.default.level = info")
    connect(broker).close()
    node = broker.api.do("GET", "/api/overview")["node"]
    body = {"absolute": 5}
    assert broker.api.ask(f"/api/nodes/{node}/disk-free-limit", method="PUT", body=body).status == 204
    eventually(lambda: any("disk free limit set" in line for line in broker.log), what="a line of another category")
    assert not any("connected" in line for line in broker.log)


def test_data_directory_is_logged_with_its_whole_path(run, tmp_path):
    (tmp_path / "data").write_text("")
    result = run("--data-dir", "data")
    assert result.returncode == 1
    assert str(tmp_path / "data") in result.stderr


def test_a_log_file_that_cannot_be_written_stops_the_start(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("--data-dir", "data", conf="log.file = file/a.log")
    assert result.returncode == 78
    assert result.stderr.startswith("leveret: cannot open the log file file/a.log: ")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("quiet", ["log.console = false", "log.default.level = none", "log.console.level = none"])
def test_start_error_is_printed_even_without_a_log(run, quiet):
    result = run("--data-dir", "data", "--http", "127.0.0.1:0", "--amqp", "192.0.2.1:1", conf=quiet)
    assert result.returncode == 1
    assert result.stderr.startswith("leveret: cannot listen for AMQP on 192.0.2.1:1: ")


def test_a_node_has_the_name_it_is_given(start):
    broker = start("nodename = hare@example\ncluster_name = warren")
    overview = broker.api.do("GET", "/api/overview")
    assert (overview["node"], overview["cluster_name"]) == ("hare@example", "warren")


def test_clients_get_the_configured_identity(start):
    broker = start("""
        identity.product = Leveret
        identity.version = 7.8.9""")
    host, port = broker.amqp
    with pika.BlockingConnection(pika.ConnectionParameters(host, port)) as connection:
        told = connection._impl.server_properties
    overview = broker.api.ask("/api/overview").json
    assert (told["product"], told["version"]) == ("Leveret", "7.8.9")
    assert (overview["product_name"], overview["product_version"]) == ("Leveret", "7.8.9")
    assert (overview["rabbitmq_version"], overview["management_version"]) == ("7.8.9", "7.8.9")
    assert told["leveret_version"] == overview["leveret_version"]
    assert told["information"].startswith(f"Leveret {overview['leveret_version']}")
    exported = broker.api.ask("/api/definitions").json
    assert (exported["product_name"], exported["leveret_version"]) == ("Leveret", overview["leveret_version"])
    build = next(line for line in broker.api.ask("/metrics").text.decode().splitlines()
                 if line.startswith("rabbitmq_build_info{"))
    assert 'product_name="Leveret"' in build and 'rabbitmq_version="7.8.9"' in build
    assert f'leveret_version="{overview["leveret_version"]}"' in build


def test_body_of_a_request_has_the_configured_length(start):
    broker = start("management.http.max_body_size = 1000")
    sent = {bytes: broker.api.ask("/api/definitions", method="POST", raw=b"{}" + b" " * (bytes - 2))
            for bytes in (1000, 1001, 50_000_000)}
    assert {bytes: answer.status for bytes, answer in sent.items()} == {1000: 204, 1001: 400, 50_000_000: 400}
    # The answer arrives although it needs nothing of the body.
    refused = {"error": "bad_request", "reason": "Exceeded HTTP request body size limit"}
    assert sent[1001].json == sent[50_000_000].json == refused
    assert broker.api.ask("/api/definitions", password="wrong", method="POST", raw=b" " * 1000).status == 401
    assert broker.api.ask("/nowhere", method="POST", raw=b" " * 1000).status == 404


def test_settings_in_force_are_shown_to_administrators(start):
    broker = start("management.login_session_timeout = 90\nheartbeat = 17\ndefault_pass = guest")
    settings = broker.api.ask("/api/config/effective")
    lines = [line.partition("#")[0].split() for line in settings.text.decode().splitlines()]
    assert settings.headers["content-type"].startswith("text/plain")
    assert ["heartbeat", "=", "17"] in lines and not any("guest" in line for line in lines if "default_pass" in line)
    assert broker.api.do("GET", "/api/whoami")["login_session_timeout"] == 90
    assert broker.api.ask("/api/version", user=None).json == broker.api.do("GET", "/api/overview")["rabbitmq_version"]
    for tag, status in (("monitoring", 401), ("administrator", 200)):
        broker.api.do("PUT", f"/api/users/{tag}", {"password": tag, "tags": tag})
        assert broker.api.ask("/api/config/effective", user=tag).status == status
    [node] = broker.api.do("GET", "/api/nodes")
    parts = broker.api.do("GET", f"/api/nodes/{node['name']}/memory/relative")["memory"]
    memory = broker.api.do("GET", f"/api/nodes/{node['name']}/memory")["memory"]
    assert parts.pop("total") == 100 and set(parts) == set(memory) - {"strategy", "total"}
    assert all(0 <= part <= 100 for part in parts.values()) and sum(parts.values()) >= 100
