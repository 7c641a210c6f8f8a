"""Data directories of earlier builds: the content that a build writes, and what any build reads from it.

    python earlier.py BINARY NAME

makes `earlier/NAME.tar.gz` and `earlier/NAME.json` with the build BINARY, once, before the format changes. The broker
is killed, so that the log is not closed. The build itself reads a copy of the directory and says what is expected.

    python earlier.py downgrade OLDER NEWER

starts two builds in turn on one directory: what NEWER has written without new features, OLDER reads; what it has
written with new features, OLDER refuses, and changes nothing.
"""

import json
import shutil
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path

import pika

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "crash")]

from broker_process import Broker  # noqa: E402 - needs the path

FOLDER = Path(__file__).with_name("earlier")
YEARS_MS = 9 * 365 * 24 * 3600 * 1000
QUEUES = ["plain", "dead", "brief", "returned", "ranked", "purged"]
DELAYED = "delayed"


def ask(broker, method, path, body=None):
    """The answer of the management API; None if the build does not have the endpoint."""
    request = urllib.request.Request(f"http://{broker.http_address}/api{path}", method=method)
    request.add_header("authorization", "Basic " + b64encode(b"guest:guest").decode())
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data, timeout=60) as answer:
            text = answer.read()
            return json.loads(text) if text else {}
    except urllib.error.HTTPError as error:
        assert error.code in (404, 405), error.read()
        return None


def declare(channel):
    channel.exchange_declare("dlx", "topic", durable=True)
    channel.exchange_declare("routed", "headers", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    letters = {"x-dead-letter-exchange": "dlx"}
    channel.queue_declare("plain", durable=True)
    channel.queue_declare("dead", durable=True)
    channel.queue_bind("dead", "dlx", "#")
    channel.queue_bind("dead", "routed", arguments={"x-match": "any", "kind": "a"})
    channel.queue_declare("brief", durable=True, arguments={**letters, "x-message-ttl": YEARS_MS})
    channel.queue_declare("returned", durable=True, arguments={**letters, "x-queue-type": "quorum"})
    channel.queue_declare("ranked", durable=True, arguments={**letters, "x-max-priority": 5})
    channel.queue_declare("purged", durable=True)
    channel.queue_declare("removed", durable=True)


def publish(channel, queue, body, exchange="", **properties):
    channel.basic_publish(exchange, queue, body.encode(), pika.BasicProperties(delivery_mode=2, **properties))


def fill(channel):
    """Messages that wait, died, came back, were settled and were purged."""
    for number in range(40):
        publish(channel, "plain", f"plain {number}", message_id=str(number), headers={"n": number})
        publish(channel, "ranked", f"ranked {number}", priority=number % 7)
        publish(channel, "purged", f"purged {number}")
    publish(channel, "plain", "x" * 300_000)
    publish(channel, "plain", "to three", headers={"CC": ["ranked", "brief"]})
    publish(channel, "", "by headers", exchange="routed", headers={"kind": "a"})
    for number in range(10):
        publish(channel, "brief", f"brief {number}", expiration="1" if number < 3 else str(YEARS_MS))
        publish(channel, "returned", f"returned {number}")
        publish(channel, "removed", f"removed {number}")
    for number in range(8):
        got, *_ = channel.basic_get("returned")
        channel.basic_nack(got.delivery_tag, requeue=number % 2 == 0)
        got, *_ = channel.basic_get("plain")
        channel.basic_ack(got.delivery_tag) if number % 2 else channel.basic_reject(got.delivery_tag)
    channel.queue_purge("purged")
    publish(channel, "purged", "after the purge")
    channel.queue_delete("removed")


def declare_over_http(broker):
    """What builds with a management API keep beside the log."""
    if ask(broker, "PUT", "/vhosts/second", {"description": "another", "tags": ["a"]}) is None:
        return
    ask(broker, "PUT", "/users/ann", {"password": "secret", "tags": "monitoring"})
    ask(broker, "PUT", "/permissions/second/ann", {"configure": "", "write": "", "read": ".*"})
    ask(broker, "PUT", "/vhost-limits/second/max-queues", {"value": 7})
    ask(broker, "PUT", "/policies/%2F/lengths", {
        "pattern": "^plain$", "definition": {"max-length": 1000, "overflow": "reject-publish"}, "priority": 2})
    ask(broker, "PUT", "/operator-policies/%2F/bounds", {"pattern": ".*", "definition": {"expires": YEARS_MS}})
    ask(broker, "PUT", "/global-parameters/note", {"value": {"a": [1, 2]}})


def delay(channel):
    """What builds since version 2 of the log's format keep."""
    channel.exchange_declare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"})
    channel.queue_declare(DELAYED, durable=True, arguments={
        "x-delayed-retry-type": "all", "x-delayed-retry-schedule": "3000d"})
    channel.queue_bind(DELAYED, "later", "key")
    for number in range(5):
        publish(channel, "key", f"later {number}", exchange="later", headers={"x-delay": YEARS_MS})
        publish(channel, DELAYED, f"waits {number}", headers={
            "x-opt-delivery-delay": YEARS_MS, "x-schedule-id": f"wait-{number}"})
    publish(channel, DELAYED, "comes back")
    publish(channel, DELAYED, "came back")


def retry(broker, channel):
    """Messages that came back with a reason, one of which waits for its next delivery, and a policy with newer keys."""
    comes, *_ = channel.basic_get(DELAYED)
    came, *_ = channel.basic_get(DELAYED)
    for got, delay in [(comes, {}), (came, {"x-opt-delivery-delay": 0})]:
        channel.basic_publish("amq.settle", "", b"", pika.BasicProperties(headers={
            "x-delivery-tag": got.delivery_tag, "x-op": "requeue", "x-reason": "busy", **delay}))
    ask(broker, "PUT", "/policies/%2F/retries", {
        "pattern": "^returned$", "definition": {"delayed-retry-schedule": "1s,5s", "delivery-limit-action": "keep"}})


def header_value(value):
    """A header as JSON."""
    if isinstance(value, dict):
        return {key: header_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [header_value(inner) for inner in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def drained(channel, queue):
    """The messages of a queue in their order, which leaves them."""
    found = []
    while True:
        got, properties, body = channel.basic_get(queue, auto_ack=True)
        if got is None:
            return found
        found.append({
            "body": body.decode() if len(body) < 1000 else len(body), "exchange": got.exchange,
            "routing_key": got.routing_key, "headers": header_value(properties.headers or {}),
            "priority": properties.priority, "message_id": properties.message_id})


def declared(broker):
    """The definitions, without what a build adds by itself; None without a management API."""
    definitions = ask(broker, "GET", "/definitions")
    if definitions is None:
        return None
    for user in definitions["users"]:
        user.pop("password_hash")
    by_text = {}
    for part in ["users", "permissions", "policies", "queues", "exchanges", "bindings", "vhosts", "global_parameters"]:
        items = [item for item in definitions.get(part, []) if item.get("name") != "internal_cluster_id"]
        by_text[part] = sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    return by_text


def content(broker):
    """All that the broker has, which leaves its queues empty."""
    connection = broker.connect()
    channel = connection.channel()
    found = {"declared": declared(broker)}
    scheduled = ask(broker, "GET", "/scheduled")
    if scheduled and scheduled["messages"]:
        found["scheduled"] = [
            [message["target_name"], message["id"], message["delivery_time"]] for message in scheduled["messages"]]
        found["waiting"] = ask(broker, "GET", f"/queues/%2F/{DELAYED}")["messages_delayed"]
        found["delayed"] = drained(channel, DELAYED)
    found["messages"] = {queue: drained(channel, queue) for queue in QUEUES}
    connection.close()
    return found


def make(binary, name):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        broker = Broker(binary, scratch)
        broker.start()
        channel = broker.connect().channel()
        channel.confirm_delivery()
        declare(channel)
        fill(channel)
        declare_over_http(broker)
        if "log2" in name:
            delay(channel)
            retry(broker, channel)
        broker.kill()
        (broker.data / "reserve").unlink(missing_ok=True)
        with tarfile.open(FOLDER / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(broker.data, "data")
        broker.start()
        (FOLDER / f"{name}.json").write_text(json.dumps(content(broker), indent=1, sort_keys=True) + "\n")
        broker.kill()


def unpack(name, broker):
    """Puts a directory in the place of the broker's."""
    with tarfile.open(FOLDER / f"{name}.tar.gz") as archive:
        archive.extractall(broker.folder, filter="data")
    return json.loads((FOLDER / f"{name}.json").read_text())


def downgrade(older, newer):
    """Both builds in turn on one directory."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        old, new = Broker(older, scratch), Broker(newer, scratch)
        old.start()
        declare(old.connect().channel())
        assert old.stop() == 0
        new.start()
        channel = new.connect().channel()
        channel.confirm_delivery()
        fill(channel)
        declare_over_http(new)
        expected = declared(new)
        new.kill()
        copy = Broker(newer, scratch, data=scratch / "copy")
        shutil.copytree(new.data, copy.data)
        copy.start()
        messages = content(copy)["messages"]
        copy.kill()
        old.start()
        assert not old.errors(), old.errors()
        assert declared(old) == expected, (declared(old), expected)
        assert content(old)["messages"] == messages
        assert old.stop() == 0
        print("the older build reads all that the newer one wrote without new features")
        new.start()
        delay(new.connect().channel())
        assert new.stop() == 0
        before = {path: path.read_bytes() for path in new.data.rglob("*") if path.is_file() and path.name != "reserve"}
        old.launch()
        code = old.end()
        print(f"the older build ends with code {code}: {old.errors()}")
        assert code != 0 and "format version 2, but this Leveret knows version 1" in old.said(), old.said()
        assert all(path.read_bytes() == bytes_before for path, bytes_before in before.items())
        new.start()
        found = content(new)
        assert len(found["scheduled"]) == 10 and not new.errors()
        new.kill()


if __name__ == "__main__":
    if sys.argv[1] == "downgrade":
        downgrade(*sys.argv[2:])
    else:
        make(*sys.argv[1:])
