"""rabbitmqctl and rabbitmq-diagnostics: output, error output and exit code, word for word as RabbitMQ's tools.

The files in `transcripts/` were made with RabbitMQ's own tools. The lines are run with ours, against either broker.
"""

import json
import pathlib
import re
import socket

import pika
import pytest

import replies
from brokers import quoted
from ctl import Ctl, transcript
from definitions import User
from patience import PATIENCE_S, becomes

pytestmark = pytest.mark.tools

FOLDER = pathlib.Path(__file__).parent / "transcripts"
SEEDS = (FOLDER / "documents.txt").read_text().splitlines()

# As rows of text, JSON and CSV.
LEVERETS_OWN = re.compile(r'(,\{"name":|")?"?amq\.(schedule|settle)\b')

TRANSCRIPTS = sorted(path.stem for path in FOLDER.glob("*.txt") if path.stem != "documents")


@pytest.fixture(scope="session")
def ctl(under, pytestconfig, tmp_path_factory):
    """The tools, and the shared broker."""
    return tools(under.shared(), pytestconfig, tmp_path_factory.mktemp("ctl"))


def tools(broker, config, folder):
    """The tools, and a broker."""
    binary = config.getoption("--leveretctl-bin")
    if binary is None:
        pytest.skip("no --leveretctl-bin")
    if broker.name == "leveret":
        return Ctl(binary, folder, {"LEVERET_DATA_DIR": str(broker.data_dir)})
    login = {"LEVERET_USER": "guest", "LEVERET_PASSWORD": "guest"}
    return Ctl(binary, folder, {"LEVERET_HTTP_URL": broker.api.url} | login)


@pytest.fixture
def node(api):
    """The name of the node."""
    return api.do("GET", "/api/overview")["node"]


def normal(text, command):
    """Without what may differ: spaces at the ends of lines, the order of keys in JSON, and Leveret's own exchanges."""
    lines = [line.rstrip() for line in text.rstrip().splitlines() if not LEVERETS_OWN.match(line)]
    if "json" in command.words:
        try:
            return json.loads("\n".join(lines))
        except ValueError:
            pass
    return lines


@pytest.fixture
def nothing_left(api):
    """What transcripts make is not there before, nor after."""

    def clean():
        for path in ("users/ctl-anna", "vhosts/ctl-v", "vhosts/ctl-v2", "global-parameters/ctl-param"):
            api.request("DELETE", "/api/" + path)

    clean()
    yield
    clean()


@pytest.mark.parametrize("name", TRANSCRIPTS)
@pytest.mark.usefixtures("nothing_left")
def test_a_transcript(ctl, api, node, name):
    commands = transcript(FOLDER / f"{name}.txt")
    assert commands
    for command in commands:
        words = [word.replace("NODE", node) for word in command.words]
        ran = ctl.run("-n", node, *words, tool=command.tool)
        told = f"{command.tool} {command.words}"
        assert normal(ran.out.replace(node, "NODE"), command) == normal(command.expected.out, command), told
        assert normal(ran.err.replace(node, "NODE"), command) == normal(command.expected.err, command), told
        assert ran.code == command.expected.code, told


@pytest.mark.parametrize("line", SEEDS)
def test_a_line_of_the_documents(ctl, api, line):
    """Each as it is printed, through a shell; those for Windows lose their inner quotes there."""
    name = line.split()[2]
    try:
        ran = ctl.shell(line)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f'Setting policy "{name}" for pattern ".*" to ')
        policy = api.do("GET", f"/api/policies/%2F/{name}")
        definition = {"TTL": {"message-ttl": 60000}, "expiry": {"expires": 1800000}}[name]
        assert (policy["definition"], policy["apply-to"], policy["pattern"]) == (definition, "queues", ".*")
    finally:
        ctl.do("clear_policy", name)


def test_a_policy_is_in_force_when_its_command_ends(ctl, ch, prefix):
    q = ch.queue(name="q")
    ch.publish(q, "Hello, world!")
    ctl.do("set_policy", prefix + "short", f"^{prefix}", '{"max-length": 1}', "--apply-to", "queues")
    try:
        ch.publish(q, "Hello again!")
        ch.reaches(q, 1)

        def row():
            rows = ctl.do("list_queues", "-s", "name", "policy", "effective_policy_definition", "messages", "type")
            return [row for row in rows if row.startswith(q)]

        becomes(row, [f"{q}\t{prefix}short\t#{{max-length => 1}}\t1\tclassic"])
    finally:
        ctl.do("clear_policy", prefix + "short")


def test_queues_exchanges_and_bindings(ctl, ch, prefix):
    q = ch.queue(name='a "q"\twith tab', arguments={"x-max-length": 5, "x-dead-letter-exchange": ""})
    x = ch.exchange("topic", name="x", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    ch.bind(q, x, "a.#", arguments={"n": 5, "t": True, "l": [1, "a"], "d": {"x": 1}})
    shown = q.replace("\t", "\\u0009")
    [row] = [row for row in ctl.do("list_queues", "-s", "name", "arguments") if row.startswith(shown)]
    arguments = row.removeprefix(shown + "\t")
    assert '{"x-max-length",5}' in arguments and '{"x-dead-letter-exchange",[]}' in arguments
    rows = ctl.do("list_exchanges", "-q", "name", "type", "durable", "arguments")
    assert f'{x}\ttopic\ttrue\t[{{"alternate-exchange","amq.fanout"}}]' in rows
    [row] = [row for row in ctl.do("list_bindings", "--silent") if row.startswith(x)]
    assert row.startswith(f"{x}\texchange\t{shown}\tqueue\ta.#\t[")
    for one in ('{"n",5}', '{"t",true}', '{"l",[1,"a"]}', '{"d",[{"x",1}]}'):
        assert one in row

    def listed():
        rows = json.loads("\n".join(ctl.do("list_queues", "--formatter", "json", "name", "messages", "durable")))
        return [row for row in rows if row["name"] == q]

    becomes(listed, [{"name": q, "messages": 0, "durable": True}])
    assert f'"{q.replace(chr(34), chr(34) * 2)}","0"' in ctl.run("list_queues", "--formatter", "csv").out


@pytest.mark.better
def test_refused_and_lost_messages_have_columns(ctl, ch, by_broker):
    full = ch.queue(name="full", max_length=1, overflow="reject-publish")
    lost = ch.queue(name="lost", message_ttl=1, dead_letter_exchange="", dead_letter_routing_key="nowhere")
    assert ch.publish(full, *"abc") == "aNN"
    ch.publish(lost, "a")
    ch.reaches(lost, 0)
    rows = ctl.do("list_queues", "-s", "name", "refuses_publishes", "refused", "dead_letters_lost", "dropped_without_dlx")
    assert full + by_broker(rabbitmq="\t\t\t\t", leveret="\ttrue\t2\t0\t0") in rows
    assert lost + by_broker(rabbitmq="\t\t\t\t", leveret="\tfalse\t0\t1\t0") in rows
    [row] = [row for row in ctl.do("list_queues", "-s", "name", "refused_rate") if row.startswith(full)]
    assert row.split("\t")[1] == "" if by_broker(rabbitmq=True, leveret=False) else float(row.split("\t")[1]) >= 0


def test_purging_and_deleting(ctl, api, ch):
    q = ch.queue(name="q")

    def filled(count):
        for _ in range(count):
            ch.publish(q, "Hello")
        becomes(lambda: f"{q}\t{count}" in ctl.do("list_queues", "name", "messages_ready"), True)

    filled(3)
    ran = ctl.run("delete_queue", q, "--if-empty")
    problem = f"queue '{q}' in vhost '/' not empty"
    told = f'Error:\n{{:amqp_error, :precondition_failed, ~c"{problem}", :none}}\n'
    assert (ran.out, ran.err, ran.code) == (f"Deleting queue '{q}' on vhost '/' if queue is empty ...\n", told, 69)
    assert ctl.do("purge_queue", q) == [f"Purging queue '{q}' in vhost '/' ..."]
    ch.reaches(q, 0)
    becomes(lambda: f"{q}\t0" in ctl.do("list_queues", "name", "messages_ready"), True)
    filled(2)
    said = [f"Deleting queue '{q}' on vhost '/' ...", "Queue was successfully deleted with 2 ready messages"]
    assert ctl.do("delete_queue", q) == said
    ran = ctl.run("delete_queue", q)
    assert (ran.err, ran.code) == ("Error:\nNo such queue was found\n", 64)


def test_connections_channels_and_consumers(ctl, api, client, prefix):
    ch = client.channel()
    q = ch.queue(name="q")
    ch.consume(q, prefetch=7)
    columns = ("pid", "peer_port", "client_properties", "protocol", "user", "vhost", "ssl")

    def connections():
        rows = [row.split("\t") for row in ctl.do("list_connections", "-s", *columns)]
        return [row for row in rows if "Pika Python Client Library" in row[2]]

    becomes(lambda: bool(connections()), True)
    for pid, port, properties, *others in connections():
        assert re.fullmatch(r"<[^<>]+\.\d+\.\d+\.\d+>", pid) and int(port) > 0
        assert properties.startswith("[{") and '{"product","Pika Python Client Library"}' in properties
        assert '{"capabilities",[{' in properties and '{"basic.nack",true}' in properties
        assert others == ["{0,9,1}", "guest", "/", "false"]

    def consumers():
        columns = ("queue_name", "channel_pid", "ack_required", "prefetch_count")
        rows = [row.split("\t") for row in ctl.do("list_consumers", "-s", *columns)]
        return [row for row in rows if row[0] == q]

    becomes(lambda: len(consumers()), 1)
    [[_, channel, *others]] = consumers()
    assert others == ["true", "7"]
    rows = [row.split("\t") for row in ctl.do("list_channels", "-s", "pid", "connection", "consumer_count", "user")]
    [connection] = [row[1] for row in rows if row[0] == channel]
    assert connection in [row[0] for row in connections()]

    assert ctl.do("close_connection", connection, "enough") == [f"Closing connection {connection}, reason: enough..."]
    with pytest.raises(replies.Closed, match="320 CONNECTION_FORCED - enough"):
        ch.sync()


def test_definitions_go_to_a_file_and_back(ctl, api, prefix, tmp_path):
    file = tmp_path / "definitions.json"
    ctl.do("set_policy", prefix + "p", f"^{prefix}", '{"max-length": 3}')
    try:
        file.touch(0o644)
        assert ctl.do("export_definitions", str(file)) == [f'Exporting definitions in JSON to a file at "{file}" ...']
        assert file.stat().st_mode & 0o777 == 0o600, "hashes of passwords are readable for others"
        ctl.do("clear_policy", prefix + "p")
        policies = json.loads(file.read_text())["policies"]
        [policy] = [policy for policy in policies if policy["name"] == prefix + "p"]
        assert policy["definition"] == {"max-length": 3}
        ctl.do("import_definitions", stdin=json.dumps({"policies": [policy]}))
        assert api.do("GET", f"/api/policies/%2F/{prefix}p")["definition"] == {"max-length": 3}
    finally:
        ctl.run("clear_policy", prefix + "p")
    ran = ctl.run("import_definitions", stdin='{"users": [')
    assert ran.code == 65 and ran.err.startswith("Error:\nFailed to deserialise input (format: JSON) (error: ")


def test_explain_and_dry_run_of_a_policy(ctl, api, ch, under, prefix):
    if under.name != "leveret":
        pytest.skip("RabbitMQ cannot say")
    q = ch.queue(name="q", arguments={"x-max-length": 5})
    for _ in range(4):
        ch.publish(q, "Hello")
    ctl.do("set_policy", prefix + "p", f"^{prefix}", '{"max-length": 9}')
    try:
        header, *rows = ctl.do("explain_queue", "-q", q)
        assert header.split("\t") == ["key", "value", "source", "source_name", "lost"]
        [row] = [row.split("\t") for row in rows if row.startswith("max-length\t")]
        assert row[1:3] == ["5", "argument"] and f"policy {prefix}p: 9" in row[4]
        answer = json.loads(ctl.do("dry_run_policy", prefix + "p", f"^{prefix}", '{"max-length": 1}', "--formatter",
                                   "json")[0])
        assert (answer["queues_matched"], answer["messages_dropped"]) == (1, 3)
        ctl.do("set_policy", prefix + "high", f"^{prefix}", '{"max-length": 7}', "--priority", "5")
        said = ctl.do("dry_run_policy", prefix + "p", f"^{prefix}", '{"max-length": 1}')
        assert "queues_matched_by_pattern: 1" in said and "queues_matched: 0" in said
        assert (f"Policy '{prefix}high' of priority 5 takes precedence in 1 queue that the pattern matches "
                "(see --priority)") in said
        assert ch.stays(q, 4, 0.1)
    finally:
        ctl.do("clear_policy", prefix + "p")
        ctl.run("clear_policy", prefix + "high")
    assert ctl.run("explain_queue", prefix + "none").code == 65


def test_dead_letter_queues_are_listed(ctl, ch, under, prefix):
    if under.name != "leveret":
        pytest.skip("RabbitMQ cannot say")
    dead = ch.queue(name="dead")
    a, b = (ch.queue(name=name, dead_letter_exchange="", dead_letter_routing_key=dead) for name in "ab")
    ch.kill(a)
    ch.reaches(dead, 1)
    banner, *_ = ctl.do("dlq", "ls")
    assert banner == "Listing dead-letter queues for vhost / ..."
    header, *rows = ctl.do("dlq", "ls", "-q", "-p", "/")
    assert header.split("\t") == ["name", "messages", "consumers", "sources"]
    assert f"{dead}\t1\t0\t{a}, {b}" in rows
    [row] = [row for row in json.loads("\n".join(ctl.do("dlq", "ls", "--formatter", "json"))) if row["name"] == dead]
    assert (row["messages"], row["sources"]) == (1, f"{a}, {b}")
    ran = ctl.run("dlq", "ls", "-p", prefix + "none")
    assert ran.code == 65 and "does not exist" in ran.err
    assert "dlq ls" in ctl.run("dlq").err and "dlq ls [--vhost <vhost>]" in ctl.run("help", "dlq", "ls").out
    assert ctl.run("dlq", "ls", "more").code == 64


def test_absent_node_is_reported(ctl):
    ran = ctl.run("list_queues", environment={"LEVERET_HTTP_URL": "http://127.0.0.1:9"})
    assert (ran.out, ran.code) == ("", 69)
    start = "Error: unable to perform an operation on node 'rabbit@localhost'. http://127.0.0.1:9: "
    assert ran.err.startswith(start) and ran.err.count("\n") == 1


def test_another_node(ctl, node):
    ran = ctl.run("-n", "nosuch@localhost", "list_queues")
    assert (ran.out, ran.code) == ("", 69)
    assert ran.err.startswith("Error: unable to perform an operation on node 'nosuch@localhost'. ")
    assert node in ran.err
    for name in ("rabbit", "rabbit@localhost", node):
        assert ctl.run("list_queues", "-n", name).code == 0


def test_a_wrong_password(ctl, api):
    ran = ctl.run("list_queues", "--username", "guest", "--password", "wrong", "--http-url", api.url)
    assert (ran.out, ran.code) == ("", 69)
    assert ran.err == f"Error: the node at {api.url} refuses the login of 'guest': Not_Authorized\n"


FORGED = "forged \x1b]0;title\x07\x1b[2J\r\n\tall is well \x9b1m\x7f\u202e"


@pytest.mark.parametrize("formatter", ["table", "pretty_table", "csv", "json", "erlang"])
def test_a_terminal_obeys_no_name(ctl, api, ch, formatter):
    """Of queues, users, vhosts, policies, parameters, connections and consumers, in lists and in errors."""
    def obeyed(text):
        drawn = re.sub(r"\x1b\(0[a-z]+\x1b\(B|\x1b\[[01]m", "", text) if formatter == "pretty_table" else text
        return [c for c in drawn if c != "\n" and c != "\t" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")]

    ctl.do("add_vhost", FORGED)
    try:
        for words in [
            ("add_user", FORGED, "secret"), ("set_permissions", "-p", FORGED, FORGED, "\x9b1m", ".*", ".*"),
            ("set_permissions", "-p", FORGED, "guest", ".*", ".*", ".*"),
            ("set_policy", "-p", FORGED, FORGED, "\x1b\x9b1m", '{"message-ttl":5}'),
            ("set_vhost_limits", "-p", FORGED, '{"max-queues":5}'), ("set_global_parameter", FORGED, '"\\u009b"'),
        ]:
            ran = ctl.run(*words)
            assert (ran.code, obeyed(ran.out + ran.err)) == (0, []), ran
        consumed = ch.queue(exclusive=True)
        ch.consume(consumed, tag=FORGED)
        api.do("PUT", "/api/queues/" + "/".join(map(quoted, [FORGED, FORGED])), {"arguments": {FORGED: FORGED}})
        for words in [
            ("list_vhosts",), ("list_users",), ("list_permissions", "-p", FORGED), ("list_policies", "-p", FORGED),
            ("list_queues", "-p", FORGED, "name", "arguments"), ("list_bindings", "-p", FORGED),
            ("list_vhost_limits", "-p", FORGED), ("list_global_parameters",), ("list_consumers",),
            ("export_definitions", "-"), ("list_user_permissions", FORGED), ("status",), ("environment",),
            # These fail.
            ("list_queues", "-p", FORGED + FORGED), ("delete_user", FORGED + FORGED), (FORGED,),
            ("list_queues", FORGED), ("list_queues", "--" + FORGED), ("set_parameter", FORGED, FORGED, FORGED),
        ]:
            ran = ctl.run(*words, "--formatter", formatter)
            assert obeyed(ran.out + ran.err) == [], (words, ran)
            # In csv a line end stands within quotes.
            lines = [] if formatter == "csv" else (ran.out + ran.err).split("\n")
            assert [line for line in lines if line.startswith("\tall")] == [], (words, ran)
    finally:
        ctl.run("delete_vhost", FORGED)
        ctl.run("delete_user", FORGED)
        ctl.run("clear_global_parameter", FORGED)


def test_no_secret_is_repeated(ctl, api):
    """Every fault of the command line."""
    secret, url = "geheim", "http://guest:geheim@" + api.url.split("://")[1]
    for words in [
        ("list_queues", "--password", secret, "--bogus"), ("list_queues", f"--password={secret}", "bogus"),
        ("list_queues", "--pasword", secret), ("list_queues", f"--pasword={secret}"),
        ("add_user", "a", secret, "b", "c"), ("change_password", "guest", secret, "more"), ("hash_password", secret, "x"),
        ("encode", secret, "phrase", "--bogus"), ("set_parameter", "shovel", "s", f'"amqp://u:{secret}@h"'),
        ("set_global_parameter", "x", secret, "more"), ("authenticate_user", "guest", secret),
        ("list_queues", "--http-url", url, "--bogus"), ("add_user", "guest", secret), ("add_user", "--bogus", "a", secret),
        ("list_queues", "--http-url", f"http://guest:{secret}@127.0.0.1:1"),
    ]:
        ran = ctl.run(*words)
        assert ran.code != 0 and secret not in ran.out + ran.err, (words, ran)


@pytest.fixture
def own(under, pytestconfig, tmp_path):
    """A Leveret of its own, which may be stopped, and its tools."""
    if under.name != "leveret":
        pytest.skip("the shared RabbitMQ is not stopped")
    broker = under.start()
    tools_of_it = tools(broker, pytestconfig, tmp_path)
    yield broker, tools_of_it
    broker.process.kill()
    broker.process.wait()
    broker.check_log()


def token_of(broker):
    return json.loads((broker.data_dir / "ctl.json").read_text())["token"]


def test_the_token_is_for_the_owner_of_the_data_directory(own):
    broker, _ = own
    assert (broker.data_dir / "ctl.json").stat().st_mode & 0o777 == 0o600
    bearer = f"Bearer {token_of(broker)}"
    answer = broker.api.ask("/api/whoami", user=None, authorization=bearer)
    assert (answer.status, answer.json["name"], answer.json["tags"]) == (200, "leveretctl", ["administrator"])
    # A page whose name is made to point to this machine has no token, and would not get in with one.
    assert broker.api.ask("/api/whoami", user=None, authorization=bearer, host="evil.example").status == 401
    for wrong in ("Bearer", "Bearer ", bearer[:-1], bearer + "0", bearer.upper()):
        assert broker.api.ask("/api/whoami", user=None, authorization=wrong).status in (400, 401), wrong


def test_node_actions_need_an_administrator(under, defined, prefix):
    if under.name != "leveret":
        pytest.skip("RabbitMQ's API cannot do this")
    tags = ("management", "policymaker", "monitoring", "administrator")
    defined(users=[User(tag, tags=(tag,)) for tag in tags])
    api = defined.client.broker.api
    path = f"/api/nodes/{api.do('GET', '/api/overview')['node']}/actions"
    started = {"action": "start_app"}
    statuses = {tag: api.ask(path, user=prefix + tag, method="POST", body=started).status for tag in tags}
    assert statuses == {"management": 401, "policymaker": 401, "monitoring": 401, "administrator": 204}
    for body, status in (({"action": "reset"}, 409), ({"action": "explode"}, 400), ({}, 400), ([], 400)):
        answer = api.ask(path, method="POST", body=body)
        assert (answer.status, set(answer.json)) == (status, {"error", "reason"}), body
    assert api.ask("/api/nodes/other/actions", method="POST", body=started).status == 404
    assert api.ask(path, method="POST", body=started, origin="http://evil.example").status == 403


def test_token_of_the_data_directory_always_lets_in(own):
    broker, ctl = own
    ctl.do("delete_user", "guest")
    assert broker.api.ask("/api/whoami").status == 401
    assert ctl.do("list_users", "-s") == [""]  # as RabbitMQ's tools show an empty list
    ctl.do("add_user", "anna", "secret")
    ctl.do("set_user_tags", "anna", "administrator")
    assert broker.api.ask("/api/whoami", user="anna", password="secret").json["tags"] == ["administrator"]


def test_stop_app_reset_and_start_app(own):
    broker, ctl = own
    connection = pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp))
    channel = connection.channel()
    channel.queue_declare("kept", durable=True)
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("", "kept", "Hello", pika.BasicProperties(delivery_mode=2))
    ran = ctl.run("reset")
    remedy = "Error: this command requires the 'rabbit' app to be stopped on the target node. Stop it with"
    assert ran.code == 64 and ran.err.startswith(remedy)
    before = token_of(broker)

    assert ctl.do("stop_app")[0].startswith("Stopping rabbit application on node ")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(5)
    text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
    assert (closed.value.reply_code, closed.value.reply_text) == (320, text)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp))
    assert token_of(broker) != before
    ran = ctl.run("list_queues")
    assert (ran.code, ran.out) == (64, "")
    assert ran.err.startswith("Error: this command requires the 'rabbit' app to be running on the target node. Start")
    assert ctl.run("check_running", tool="rabbitmq-diagnostics").code == 69
    assert broker.api.ask("/api/overview").status == 503
    name = json.loads((broker.data_dir / "ctl.json").read_text())["node"]
    assert broker.api.ask(f"/api/nodes/{name}/actions", method="POST", body={"action": "reset"}).status == 401

    ctl.do("start_app")
    ctl.do("await_startup")
    assert "kept\t3" in ctl.do("list_queues")

    ctl.do("stop_app")
    ctl.do("reset")
    ctl.do("start_app")
    assert "kept\t3" not in ctl.do("list_queues")
    # The default user and vhost are there as on the first day.
    pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp)).close()

    ctl.do("stop")
    assert broker.process.wait(PATIENCE_S) == 0
    assert not (broker.data_dir / "ctl.json").exists()


def test_a_stopped_node_ends_when_it_is_asked_to(own):
    broker, ctl = own
    ctl.do("stop_app")
    broker.process.terminate()
    assert broker.process.wait(PATIENCE_S) == 0
    assert ctl.run("ping").code == 69


def test_shutdown_waits_for_the_end(own):
    broker, ctl = own
    out = ctl.do("shutdown")
    assert out[-1].endswith(f"running at PID {broker.process.pid} successfully shut down")
    # The main thread is gone; on a busy machine the others take a moment more.
    assert broker.process.wait(PATIENCE_S) == 0


def test_await_startup_gives_up(own):
    broker, ctl = own
    broker.process.kill()
    broker.process.wait()
    ran = ctl.run("await_startup", "--timeout", "1")
    text = "Error: operation await_startup on node rabbit@localhost timed out. Timeout value used: 1000"
    first, why = ran.err.splitlines()
    assert (ran.out, first, ran.code) == ("", text, 75)
    # The node could not remove its file, so the address is known.
    assert why.startswith(f"{broker.api.url}: ") and "refused" in why


def test_data_directory_of_an_option_beats_the_environment(own, tmp_path):
    broker, ctl = own
    elsewhere = {"LEVERET_HTTP_URL": "http://127.0.0.1:9", "LEVERET_USER": "anna"}
    assert ctl.run("ping", environment=elsewhere).code == 69
    assert ctl.run("list_users", "--data-dir", broker.data_dir, environment=elsewhere).code == 0

    missing = ctl.run("await_startup", "--data-dir", "nosuch", environment=elsewhere)
    assert (missing.err, missing.code) == ("Error: there is no data directory 'nosuch' (see --data-dir)\n", 78)
    ran = ctl.run("list_queues", "--data-dir", tmp_path, environment=elsewhere)
    assert (ran.code, ran.err) == (69, "Error: unable to perform an operation on node 'rabbit@localhost'. no node runs "
                                       f"there: it has written no {tmp_path}/ctl.json\n")
    ran = ctl.run("await_startup", "-t", "1", "--data-dir", tmp_path, environment=elsewhere)
    assert (ran.code, ran.err.splitlines()[1]) == (75, f"no node runs there: it has written no {tmp_path}/ctl.json")


def test_timeout_names_the_address(ctl):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        ran = ctl.run("list_users", "-t", "1", "--http-url", url, "--username", "guest", "--password", "guest")
    first, why = ran.err.splitlines()
    assert (first, ran.code) == ("Error: operation list_users on node rabbit@localhost timed out. Timeout value used: 1000", 75)
    assert why == f"{url} has not answered in time"


def test_hash_password(ctl):
    [hashed] = ctl.do("hash_password", "secret", "-q")
    assert len(hashed) == 48
    assert ctl.do("hash_password", "-q", stdin="secret\n")[-1] != hashed


def test_a_protected_vhost_stays(ctl, made):
    vhost = made.vhost()
    ctl.do("enable_vhost_deletion_protection", vhost)
    ran = ctl.run("delete_vhost", vhost)
    assert (ran.code, ran.err.splitlines()[0]) == (65, "Error:")
    ctl.do("update_vhost_metadata", vhost, "--protected-from-deletion", "false", "--description", "text")
    ctl.do("delete_vhost", vhost)
    assert ctl.run("delete_vhost", vhost).code == 65


def test_doors_are_closed_and_opened(own):
    broker, ctl = own
    old = pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp))

    def lets_in():
        try:
            socket.create_connection(broker.amqp).close()
        except ConnectionRefusedError:
            return False
        return True

    ctl.do("suspend_listeners")
    assert not lets_in()
    old.channel().queue_declare("q", exclusive=True)
    ctl.do("resume_listeners")
    pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp)).close()
    old.close()
