"""Asks a broker everything: what is compared of its answers, as JSON that can be kept.

An answer over HTTP is its status, its media type, and the shape of its body or the reason of its refusal. Of an odd value, it is
also what the broker then shows. Of a command, it is the exit code and what was printed, or the shape of the JSON.
"""

import collections
import json
import re
import shlex
import subprocess
import time

import pika
import shapes
from brokers import quoted

import commands
import endpoints
import odd

# RabbitMQ tells of a connection and counts its messages only so often.
STATISTICS_WITHIN_S = 15.0
COMMAND_WITHIN_S = 90.0
NAMES = {"ctl": "rabbitmqctl", "diagnostics": "rabbitmq-diagnostics", "queues": "rabbitmq-queues",
         "plugins": "rabbitmq-plugins", "upgrade": "rabbitmq-upgrade"}

# Lists of a machine, as a field.
OF_ITS_OWN = ("variables",)


class Answers(dict):
    """What is compared, by what was asked."""

    def __init__(self):
        super().__init__()
        self.times = collections.Counter()

    def keep(self, asked, what, answer):
        """Keeps an answer; `what` names the row of the page. The same may be asked again."""
        self.times[asked] += 1
        times = self.times[asked]
        self[f"{asked} ({times})" if times > 1 else asked] = {"what": what} | answer


class Side:
    """A broker with its command line tools."""

    def __init__(self, broker, tools, folder):
        """`tools` are the commands of `NAMES`; they run in `folder`."""
        self.broker, self.api, self.tools, self.folder = broker, broker.api, tools, folder
        self.node = self.api.do("GET", "/api/overview")["node"]
        self.names = {"node": quoted(self.node)}

    def ask(self, method, path, body):
        """Status, media type and decoded body; text where it is no JSON."""
        body = json.loads(json.dumps(body).replace("{node}", self.node))
        for name, value in self.names.items():
            path = path.replace(f"{{{name}}}", value)
        answer = self.api.ask("/api/" + path, method=method, body=body)
        kind = answer.headers.get("content-type", "").partition(";")[0]
        try:
            return answer.status, kind, answer.json if answer.text else None
        except ValueError:
            return answer.status, kind, answer.text.decode(errors="replace")

    def answer(self, method, path, body):
        """What is compared of an answer."""
        status, kind, answer = self.ask(method, path, body)
        if status >= 500:
            # Its text is about the program.
            return {"status": status}
        if status >= 400:
            why = answer.get("reason") if isinstance(answer, dict) else answer
            return {"status": status, "kind": kind, "reason": self.masked(one_line(str(why)))}
        return {"status": status, "kind": kind, "shape": local(shapes.shape(without_names(answer, self.node)))}

    def run(self, tool, line):
        """Exit code and what was printed, without what is this broker's own."""
        words = shlex.split(line.replace("{node}", self.node))
        done = subprocess.run(self.tools[tool] + words, capture_output=True, text=True,
                              timeout=COMMAND_WITHIN_S, errors="replace", check=False, cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

    def printed(self, tool, line, how):
        """What is compared of a command."""
        code, out, error = self.run(tool, line)
        answer = {"exit": code}
        if how == commands.TEXT:
            out = elements(out) if line.endswith("--formatter erlang") else out
            answer |= {"stdout": lines(self.masked(out)), "stderr": lines(self.masked(error))}
        elif how == commands.SHAPE:
            text = out if out.strip() else error
            try:
                answer["shape"] = local(shapes.shape(without_names(json.loads(text), self.node)))
                answer["stream"] = "stdout" if out.strip() else "stderr"
            except ValueError:
                answer["stream"] = "no JSON"
        return answer

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
            host, port, endpoints.V, login, client_properties={"connection_name": "compared"}, heartbeat=0))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("x", "key", b"held")
        channel.basic_get("q")
        channel.basic_consume("q", lambda *_: None, consumer_tag="compared")
        end = time.monotonic() + STATISTICS_WITHIN_S
        while time.monotonic() < end:
            connection.process_data_events(0.2)
            status, _, channels = self.ask("GET", "channels", None)
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


def local(shape):
    """Without what Leveret cannot have."""
    return {path: kind for path, kind in shape.items() if not shapes.is_foreign(path)}


def without_names(answer, node):
    """The answer without the name of the node among the names of fields."""
    if isinstance(answer, dict):
        return {key.replace(node, "NODE"): {} if key in OF_ITS_OWN else without_names(value, node)
                for key, value in answer.items()}
    return [without_names(one, node) for one in answer] if isinstance(answer, list) else answer


def one_line(text):
    return " ".join(text.split())


def elements(text):
    """What was printed in Erlang's terms, an element of the list on a line: where a long term is broken into lines says nothing."""
    banner, begin, term = text.partition("[")
    return f"{banner}\n{begin}" + re.sub(r"\s*\n\s*", "", term).replace("],[", "],\n[")


def lines(text):
    """What was printed, in an order that does not depend on who lists what first; JSON by its meaning."""
    try:
        return [json.dumps(json.loads(text), sort_keys=True)]
    except ValueError:
        return sorted(line.rstrip() for line in text.splitlines() if line.strip())


def over_http(side):
    """Answers to everything over HTTP, in order."""
    answers = Answers()

    def ask(requests):
        for method, what, path, body in requests:
            said = "" if body is None else f" {json.dumps(body)}"
            answers.keep(f"{method} {path}{said}", f"{method} {what}", side.answer(method, path, body))

    ask(endpoints.EMPTY)
    ask(endpoints.MADE)
    client = side.open_client()
    ask(endpoints.LOOKED_AT + endpoints.REMOVED)
    close([client])
    return answers


def odd_values(side):
    """Answers to odd values, with what there is afterwards."""
    answers = Answers()
    for method, path, body in odd.PREPARED:
        side.ask(method, path, body)
    for question in odd.questions():
        answer = side.answer(question.method, question.path, question.body)
        answer.pop("shape", None)
        if question.shown and answer["status"] < 500:
            status, _, shown = side.ask("GET", question.shown, None)
            answer["shown"] = {"status": status}
            if isinstance(shown, dict) and question.field in shown and status == 200:
                answer["shown"]["value"] = shown[question.field]
        answers.keep(f"{question.method} {question.what}: {question.field} {question.value}",
                     f"{question.method} {question.what}: {question.field}", answer)
        for made in question.removed(side.ask("GET", question.shown, None)[2] if question.shown else None):
            side.ask("DELETE", made, None)
    for path in odd.REMOVED:
        side.ask("DELETE", path, None)
    return answers


def on_the_command_line(side):
    """What every command prints, in order."""
    answers, clients = Answers(), []

    def run(tool, asked):
        for line, how in asked:
            if line.startswith("list_queues") and not clients:
                clients.append(declare_and_consume(side))
            answers.keep(f"{NAMES[tool]} {line}", f"{NAMES[tool]} {line}", side.printed(tool, line, how))

    run("ctl", commands.COMMANDS)
    close(clients)
    run("diagnostics", commands.DIAGNOSTICS)
    declare_quorum_queue(side)
    run("queues", commands.QUEUES)
    for tool, line in commands.JSON:
        run(tool, [(f"{line} --formatter json", commands.SHAPE)])
    side.ask("DELETE", f"vhosts/{endpoints.V}", None)
    return answers


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


def everything(side):
    """All answers, by part of the page."""
    return {
        "HTTP API": over_http(side),
        "Odd values over HTTP": odd_values(side),
        "Commands": on_the_command_line(side),
    }
