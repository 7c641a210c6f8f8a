"""Holds Leveret beside a RabbitMQ: every endpoint of the HTTP API, every command of rabbitmqctl.

    compare.py --leveret BIN --leveretctl BIN --amqp HOST:PORT --http URL
               --rabbitmqctl COMMAND --rabbitmq-diagnostics COMMAND --rabbitmq-queues COMMAND [--write FILE]

Starts a Leveret, asks it and the RabbitMQ the same in turn, and writes a table: equal, different, or missing. Of JSON
the fields and their types are compared, of a command its exit code and what it prints. The RabbitMQ needs the user
guest and nothing else of value in it: what has the name `compared` is made and removed, and its application is
stopped and started.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "blackbox" / "support"))

import pika  # noqa: E402
import shapes  # noqa: E402
from brokers import Api, Leveret, RabbitMq, quoted  # noqa: E402

import commands  # noqa: E402
import endpoints  # noqa: E402
from differences import differences  # noqa: E402

# RabbitMQ tells of a connection and counts its messages only so often.
STATISTICS_WITHIN_S = 15.0
COMMAND_WITHIN_S = 90.0
NAMES = {"ctl": "rabbitmqctl", "diagnostics": "rabbitmq-diagnostics", "queues": "rabbitmq-queues"}
VERDICTS = ("equal", "different", "missing")


@dataclass
class Row:
    """What came of one request or command."""

    what: str
    verdict: str
    notes: str = ""


@dataclass
class Answered:
    """An answer over HTTP: its shape, or the reason of its refusal."""

    status: int
    shape: dict = field(default_factory=dict)
    reason: str = ""


class Side:
    """A broker with its command line tools."""

    def __init__(self, broker, tools, folder):
        """`tools` are the commands of `NAMES`; they run in `folder`."""
        self.broker, self.api, self.tools, self.folder = broker, broker.api, tools, folder
        self.node = self.api.do("GET", "/api/overview")["node"]
        self.names = {"node": quoted(self.node)}

    def ask(self, method, path, body):
        """The status and the decoded body; text where it is no JSON."""
        body = json.loads(json.dumps(body).replace("{node}", self.node))
        answer = self.api.ask("/api/" + path.format(**self.names), method=method, body=body)
        try:
            return answer.status, answer.json if answer.text else None
        except ValueError:
            return answer.status, "text"

    def answers(self, request):
        """What is compared of the answer to a line of `endpoints`."""
        method, _, path, body = request
        status, answer = self.ask(method, path, body)
        if status >= 400:
            return Answered(status, reason=self.masked(str(reason(answer))))
        return Answered(status, shape=shapes.shape(without_names(answer, self.node)))

    def run(self, tool, line):
        """Exit code and what was printed, without what is this broker's own."""
        words = shlex.split(line.replace("{node}", self.node))
        done = subprocess.run(self.tools[tool] + words, capture_output=True, text=True,
                              timeout=COMMAND_WITHIN_S, errors="replace", check=False, cwd=self.folder)
        return done.returncode, self.masked(done.stdout), self.masked(done.stderr)

    def masked(self, text):
        text = text.replace(self.node, "NODE").replace(self.node.partition("@")[2], "HOST")
        text = re.sub(r"<[^<>@ ]*(NODE|@)[^<> ]*>|<\d+\.\d+\.\d+>", "PID", text)
        text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)
        return re.sub(r"\b\d{4,5}\b", "NUMBER", text)

    def open_client(self):
        """A connection that holds a message and consumes, known to the API when this returns."""
        host, port = self.broker.amqp
        login = pika.PlainCredentials("guest", "guest")
        connection = pika.BlockingConnection(pika.ConnectionParameters(
            host, port, endpoints.V, login, client_properties={"connection_name": "compared"}))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("x", "key", b"held")
        channel.basic_get("q")
        channel.basic_consume("q", lambda *_: None, consumer_tag="compared")
        end = time.monotonic() + STATISTICS_WITHIN_S
        while time.monotonic() < end:
            connection.process_data_events(0.2)
            status, channels = self.ask("GET", "channels", None)
            if status != 200:
                break
            mine = [one for one in channels if one.get("vhost") == endpoints.V and "connection_details" in one]
            if mine and "message_stats" in mine[0] and mine[0].get("consumer_count"):
                self.names["connection"] = quoted(mine[0]["connection_details"]["name"])
                self.names["channel"] = quoted(mine[0]["name"])
                break
        self.names.setdefault("connection", "none")
        self.names.setdefault("channel", "none")
        return connection


def compare_answers(request, ours, theirs):
    """The row of one request."""
    what = f"{request[0]} {request[1]}"
    if ours.status in (404, 405) and theirs.status not in (404, 405):
        return Row(what, "missing", f"RabbitMQ answers {theirs.status}")
    notes = []
    if ours.status != theirs.status:
        notes.append(f"status {ours.status}, not {theirs.status}")
    elif ours.reason != theirs.reason:
        notes.append(f"{ours.status}: `{one_line(ours.reason)}`, not `{one_line(theirs.reason)}`")
    elif ours.status < 400:
        missing, more, other = differences(theirs.shape, ours.shape)
        missing = [path for path in missing if not shapes.is_foreign(path)]
        notes += [f"{word}: {listed(paths)}" for word, paths in
                  [("without", missing), ("more", more), ("type of", other)] if paths]
    return Row(what, "different" if notes else "equal", "; ".join(notes))


def without_names(answer, node):
    """The answer without the name of the node among the names of fields."""
    if isinstance(answer, dict):
        return {key.replace(node, "NODE"): without_names(value, node) for key, value in answer.items()}
    return [without_names(one, node) for one in answer] if isinstance(answer, list) else answer


def reason(answer):
    return answer.get("reason") if isinstance(answer, dict) else answer


def one_line(text):
    return " ".join(text.split())


def listed(paths):
    return ", ".join(f"`{path}`" for path in paths)


def compare_command(tool, line, how, leveret, rabbitmq):
    (our_code, our_out, our_error), theirs = leveret.run(tool, line), rabbitmq.run(tool, line)
    what = f"{NAMES[tool]} {line}"
    if our_code == 64 and theirs[0] != 64:
        return Row(what, "missing", "no such command or option")
    notes = [] if our_code == theirs[0] else [f"exit code {our_code}, not {theirs[0]}"]
    if how == commands.TEXT:
        for stream, our_text, their_text in [("stdout", our_out, theirs[1]), ("stderr", our_error, theirs[2])]:
            if lines(our_text) != lines(their_text):
                notes.append(f"{stream}: {first_difference(lines(our_text), lines(their_text))}")
    return Row(what, "different" if notes else "equal", "; ".join(notes))


def lines(text):
    """What was printed, in an order that does not depend on who lists what first; JSON by its meaning."""
    try:
        return [json.dumps(json.loads(text), sort_keys=True)]
    except ValueError:
        return sorted(line.rstrip() for line in text.splitlines() if line.strip())


def first_difference(ours, theirs):
    only_ours = [line for line in ours if line not in theirs]
    only_theirs = [line for line in theirs if line not in ours]
    return f"`{(only_ours or ['nothing'])[0][:160]}`, not `{(only_theirs or ['nothing'])[0][:160]}`"


def asked(side):
    """Answers to everything over HTTP, in order."""
    answers = [side.answers(request) for request in endpoints.MADE]
    client = side.open_client()
    answers += [side.answers(request) for request in endpoints.LOOKED_AT + endpoints.REMOVED]
    close([client])
    return answers


def compare_all(ours, theirs):
    """The rows of everything over HTTP."""
    requests = endpoints.MADE + endpoints.LOOKED_AT + endpoints.REMOVED
    return [compare_answers(*one) for one in zip(requests, ours, theirs, strict=True)]


def run_on_both(leveret, rabbitmq):
    """Everything on the command line, in order."""
    rows, clients = [], []
    for line, how in commands.COMMANDS:
        if line.startswith("list_queues") and not clients:
            clients = [declare_and_consume(side) for side in (leveret, rabbitmq)]
        rows.append(compare_command("ctl", line, how, leveret, rabbitmq))
    close(clients)
    rows += [compare_command("diagnostics", line, how, leveret, rabbitmq) for line, how in commands.DIAGNOSTICS]
    for side in (leveret, rabbitmq):
        declare_quorum_queue(side)
    rows += [compare_command("queues", line, how, leveret, rabbitmq) for line, how in commands.QUEUES]
    for side in (leveret, rabbitmq):
        side.ask("DELETE", f"vhosts/{endpoints.V}", None)
    return rows


def declare_quorum_queue(side):
    """A vhost with a queue of each type, and a message in the quorum queue."""
    vhost = endpoints.V
    side.ask("PUT", f"vhosts/{vhost}", {})
    side.ask("PUT", f"permissions/{vhost}/guest", endpoints.GRANT)
    for name, kind in (("quorum", "quorum"), ("classic", "classic")):
        side.ask("PUT", f"queues/{vhost}/{name}", {"durable": True, "arguments": {"x-queue-type": kind}})
    message = {"properties": {"delivery_mode": 2, "headers": {"a": 1}}, "routing_key": "quorum", "payload": "text",
               "payload_encoding": "string"}
    side.ask("POST", f"exchanges/{vhost}/amq.default/publish", message)


def declare_and_consume(side):
    vhost = endpoints.V
    for path, body in [
        (f"permissions/{vhost}/guest", endpoints.GRANT),
        (f"exchanges/{vhost}/x", {"type": "topic", "durable": True}),
        (f"queues/{vhost}/q", {"durable": True, "arguments": {"x-max-length": 100}}),
    ]:
        side.ask("PUT", path, body)
    side.ask("POST", f"bindings/{vhost}/e/x/q/q", {"routing_key": "key"})
    return side.open_client()


def close(clients):
    for client in clients:
        try:
            client.close()
        except pika.exceptions.AMQPError:
            pass  # the broker was asked to close it


def table(title, rows):
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}
    summary = ", ".join(f"{number} {verdict}" for verdict, number in count.items())
    out = [f"## {title}", "", f"{len(rows)} asked: {summary}.", "", "| Asked | | Difference |", "| --- | --- | --- |"]
    seen = {}
    for row in rows:
        seen.setdefault(row.what, []).append(row)
    for what, same in seen.items():
        worst = max(same, key=lambda row: VERDICTS.index(row.verdict))
        notes = "; ".join(dict.fromkeys(row.notes for row in same if row.notes))
        out.append(f"| `{what.replace('|', chr(92) + '|')}` | {worst.verdict} | {notes.replace('|', chr(92) + '|')} |")
    return "\n".join(out) + "\n"


def document(http, ctl, version):
    left_out = "; ".join(f"`{path}` ({why})" for path, why in endpoints.LEFT_OUT)
    return "\n".join([
        "# Compared with RabbitMQ", "",
        f"`cargo xtask compare` writes this page. It sends the same requests to Leveret and to RabbitMQ {version}, and",
        "compares fields and types of JSON, reasons of refusals, and exit codes and output of commands, except names",
        "of nodes, addresses and process ids. \"without\" lists fields that only RabbitMQ has, except those of Erlang;",
        "\"more\" lists fields that only Leveret has. [COMPATIBILITY.md](../../COMPATIBILITY.md) gives the reasons.", "",
        table("HTTP API", http), f"Not asked for, because Leveret has no such part: {left_out}.", "",
        table("Commands", ctl), f"Not asked for: {commands.LEFT_OUT}.", "",
    ])


def our_tools(ctl, broker, folder):
    """leveretctl under RabbitMQ's names; the data directory says which node, and is the login."""
    tools = {}
    for tool, name in NAMES.items():
        (folder / name).symlink_to(ctl.resolve())
        tools[tool] = ["env", f"LEVERET_DATA_DIR={broker.data_dir}", str(folder / name)]
    return tools


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--leveretctl", required=True, help="leveretctl's binary")
    parser.add_argument("--amqp", required=True, help="RabbitMQ's AMQP address")
    parser.add_argument("--http", required=True, help="the URL of RabbitMQ's API")
    parser.add_argument("--rabbitmqctl", required=True, help="the command that runs RabbitMQ's rabbitmqctl")
    parser.add_argument("--rabbitmq-diagnostics", required=True, help="the same for rabbitmq-diagnostics")
    parser.add_argument("--rabbitmq-queues", required=True, help="the same for rabbitmq-queues")
    parser.add_argument("--write", type=pathlib.Path, help="where the table goes; printed otherwise")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        broker = Leveret(options.leveret, pathlib.Path(directory))
        try:
            folder = pathlib.Path(directory)
            leveret = Side(broker, our_tools(pathlib.Path(options.leveretctl), broker, folder), folder)
            theirs = {"ctl": options.rabbitmqctl, "diagnostics": options.rabbitmq_diagnostics,
                      "queues": options.rabbitmq_queues}
            theirs = {name: shlex.split(command) for name, command in theirs.items()}
            rabbitmq = Side(RabbitMq(options.amqp, options.http), theirs, folder)
            theirs = asked(rabbitmq)
            http = compare_all(asked(leveret), theirs)
            ctl = run_on_both(leveret, rabbitmq)
        finally:
            broker.stop()
    version = Api(options.http).do("GET", "/api/overview")["rabbitmq_version"]
    text = document(http, ctl, version)
    if options.write:
        options.write.write_text(text)
    else:
        print(text)
    missing = sum(row.verdict == "missing" for row in http + ctl)
    print(f"{len(http) + len(ctl)} asked, {missing} missing", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
