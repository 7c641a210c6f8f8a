"""rabbitmqadmin of both generations, unmodified: each of their verbs that applies, run in order against one broker.

A line of `v1.txt` and `v2.txt` is the arguments of one call; it must succeed, or fail if it begins with "! ". A line
that begins with "> " is a pattern that is found in what the call before it printed. `{vhost}` and its like are filled
in; an argument in quotes may have spaces, JSON needs no quotes.
"""

import pathlib
import re
import subprocess

import pika
import pytest

HERE = pathlib.Path(__file__).resolve().parent
CALL_WITHIN_S = 300
ARGUMENT = re.compile(r'"([^"{}]*)"(?= |$)|(\S+)')


def calls(path):
    """(number, line, patterns) of each call."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("> "):
            found[-1][2].append(line[2:])
        elif line and not line.startswith("#"):
            found.append((number, line, []))
    return found


def arguments(line, names):
    """What a shell would make of the line; what is filled in may have spaces."""
    words = [quoted if bare == "" else bare for quoted, bare in ARGUMENT.findall(line)]
    return [filled(word, names) for word in words]


def filled(text, names):
    for name, value in names.items():
        text = text.replace("{" + name + "}", value)
    return text


@pytest.fixture
def names(broker, tmp_path):
    """What stands for what in the lines; with it a connection lives that may be listed and closed."""
    host, port = broker.amqp
    # Silent while all lines run, for as long as that takes: no heartbeats.
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=0))
    overview = broker.api.do("GET", "/api/overview")
    listed = broker.wait_for(lambda: broker.api.do("GET", "/api/connections"))
    yield {
        "vhost": "administered", "folder": str(tmp_path), "node": overview["node"], "port": str(port),
        "connection": listed[-1]["name"],
    }
    try:
        connection.close()
    except pika.exceptions.AMQPError:
        pass  # a line has closed it


@pytest.mark.parametrize("generation", ["v1", "v2"])
def test_every_verb(broker, names, generation, rabbitmqadmin):
    command = rabbitmqadmin(generation)
    wrong = []
    for number, line, patterns in calls(HERE / f"{generation}.txt"):
        fails = line.startswith("! ")
        done = subprocess.run(command + arguments(line.removeprefix("! "), names), capture_output=True, text=True,
                              timeout=CALL_WITHIN_S, check=False)
        printed = done.stdout + done.stderr
        if (done.returncode != 0) != fails:
            wrong.append(f"{generation}.txt:{number}: {line}: exit code {done.returncode}: {printed[-400:]}")
        wrong += [
            f"{generation}.txt:{number}: {line}: no {pattern!r} in {printed[-400:]}"
            for pattern in patterns
            if not re.search(filled(pattern, names), printed)
        ]
    assert not wrong, "\n".join(wrong)
