"""amqp-tools, the commands that are made with librabbitmq, through what they can do of the scenarios.

They cannot set or show most properties, so that `connect` and `large` are about bodies; of the `errors`, a queue's other
arguments and an invalid expiration are beyond them, and a queue that is durable and shall not be stands for those.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import runner  # noqa: E402

PLAIN = [f"--server={runner.HOST}", f"--port={runner.PORT}"]
TLS = [f"--url=amqps://{runner.HOST}:{runner.TLS_PORT}", f"--cacert={runner.CA_FILE}"]

EMPTY_STATUS = 2  # what amqp-get exits with when there is no message
TOOL_WITHIN_S = 60

NO_CONFIRMS = "amqp-publish asks for no confirms"
NO_ARGUMENTS = "amqp-declare-queue sets no arguments of queues"
WITHOUT = {
    "confirms": NO_CONFIRMS,
    "prefetch": "amqp-consume acknowledges each message by itself and sends none back",
    "queue-ttl": NO_ARGUMENTS,
    "message-ttl": "amqp-publish sets no expiration",
    "dead-letter": NO_ARGUMENTS,
    "priorities": NO_ARGUMENTS,
    "transactions": "the commands have no transactions",
    "rpc": "amqp-publish sets no correlation id and waits for no answer",
    "cancel": "amqp-consume does not ask to be told when its consumer is cancelled",
    "restart": f"{NO_CONFIRMS}, so that nothing is promised to outlive a crash",
}


def start(name, *arguments, connection=PLAIN):
    """A command that runs for a while."""
    return subprocess.Popen([f"amqp-{name}", *connection, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def finish(process, body=b""):
    """Its exit code, output and error output."""
    said, complaint = process.communicate(body, timeout=TOOL_WITHIN_S)
    return process.returncode, said, complaint.decode()


def run(name, *arguments, connection=PLAIN, body=b""):
    """Runs a command that succeeds, and returns its output."""
    status, said, complaint = finish(start(name, *arguments, connection=connection), body)
    assert status == 0, f"amqp-{name} exited with {status}: {complaint}"
    return said


def complaint_of(name, *arguments, connection=PLAIN):
    """Run a command that fails; its complaint."""
    status, _, complaint = finish(start(name, *arguments, connection=connection))
    assert status == 1, f"amqp-{name} exited with {status}: {complaint}"
    return complaint.rstrip("\n")


def there_and_back(connection, body):
    """A message goes to a queue that the broker names and comes back; then the queue is empty."""
    queue = run("declare-queue", "--queue=", connection=connection).decode().rstrip("\n")
    try:
        run("publish", f"--routing-key={queue}", "--persistent", "--content-type=text/plain", "--header=colour: green",
            connection=connection, body=body)
        assert run("get", f"--queue={queue}", connection=connection) == body, "another body came back"
        status, said, _ = finish(start("get", f"--queue={queue}", connection=connection))
        assert (status, said) == (EMPTY_STATUS, b""), (status, said)
    finally:
        run("delete-queue", f"--queue={queue}", connection=connection)


def refused_with(code, text, *command, on="server channel", connection=PLAIN):
    """The command fails with this error of the broker."""
    complaint = complaint_of(*command, connection=connection)
    expected = f"{on} error {code}, message: {text}"
    assert complaint.endswith(expected), f"{complaint!r}, not {expected!r}"


def errors():
    """Every command is a connection of its own; what is asked after an error shows that the queue is as it was."""
    queue = runner.unique()
    refused_with(404, f"NOT_FOUND - no queue '{queue}' in vhost '/'", "get", f"--queue={queue}")
    locked_queue(queue)

    run("declare-queue", f"--queue={queue}", "--durable")
    try:
        refused_with(406, f"PRECONDITION_FAILED - inequivalent arg 'durable' for queue '{queue}' in vhost '/': "
                     "received 'false' but current is 'true'", "declare-queue", f"--queue={queue}")
        get = "get", f"--queue={queue}"
        refused_with(403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see "
                     "the broker logfile.", *get, on="server connection", connection=[*PLAIN, "--password=wrong"])
        refused_with(530, "NOT_ALLOWED - vhost nope not found", *get, on="server connection",
                     connection=[*PLAIN, "--vhost=nope"])
    finally:
        run("delete-queue", f"--queue={queue}")


def locked_queue(queue):
    """No other connection gets messages of an exclusive queue, but any may publish to it."""
    get = "get", f"--queue={queue}"
    consumer = start("consume", f"--queue={queue}", "--exclusive", "--count=1", "cat")
    runner.eventually(lambda: "NOT_FOUND" not in complaint_of(*get), "amqp-consume has declared its queue")
    refused_with(405, f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '/'. It "
                 "could be originally declared on another connection or the exclusive property value does not match "
                 "that of the original declaration.", *get)
    run("publish", f"--routing-key={queue}", body=b"the last message")
    status, said, complaint = finish(consumer)
    assert (status, said) == (0, b"the last message"), (status, said, complaint)


def without(why):
    raise runner.Without(why)


def version():
    """The commands do not say it themselves."""
    package = subprocess.run(["dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "amqp-tools"],
                             capture_output=True, text=True, check=True)
    return package.stdout


runner.run(version(), {
    "connect": partial(there_and_back, PLAIN, b"hello"),
    "tls": partial(there_and_back, TLS, b"hello"),
    "large": partial(there_and_back, PLAIN, runner.LARGE),
    "errors": errors,
    **{name: partial(without, why) for name, why in WITHOUT.items()},
})
