"""A vhost whose files cannot be read is down: nobody takes it for an empty one, and it can be deleted or repaired."""

import pika
import pika.exceptions
import pytest

from test_changes import ask

QUEUE = {"durable": True}
MANIFEST = "vhosts/1/manifest"


@pytest.fixture
def down(broker):
    """A broker with two vhosts, each with a queue; `/` is down. And the manifest that could be read."""
    broker.start_with()
    assert ask(broker, "PUT", "/api/vhosts/other")[0] == 201
    for vhost in ("%2F", "other"):
        assert ask(broker, "PUT", f"/api/queues/{vhost}/q", QUEUE)[0] == 201
    assert broker.stop() == 0
    path = broker.data / MANIFEST
    manifest = path.read_bytes()
    path.write_bytes(bytes(len(manifest)))
    broker.start_with()
    yield broker, manifest
    broker.assert_no_panic()


def is_refused(broker):
    with pytest.raises(pika.exceptions.AMQPConnectionError, match=r"\(541\).*vhost '/' is down"):
        broker.connect()
    return True


def states(broker):
    code, vhosts = ask(broker, "GET", "/api/vhosts")
    assert code == 200
    return {vhost["name"]: list(vhost["cluster_state"].values()) for vhost in vhosts}


def test_requests_about_a_vhost_that_is_down_are_refused(down):
    broker, _ = down
    assert is_refused(broker)
    assert states(broker) == {"/": ["stopped"], "other": ["running"]}
    code, answer = ask(broker, "GET", "/api/health/checks/virtual-hosts")
    assert (code, answer["virtual-hosts"]) == (503, ["/"])
    [finding] = [one for one in ask(broker, "GET", "/api/health/findings")[1]["findings"] if one["kind"] == "vhost_down"]
    assert [one["name"] for one in finding["resources"]] == ["/"]
    # There may be such a queue: nobody can know.
    for method, path, body in (
            ("GET", "/api/queues/%2F/q", None), ("GET", "/api/queues/%2F", None), ("PUT", "/api/queues/%2F/new", QUEUE),
            ("PUT", "/api/policies/%2F/p", {"pattern": "", "definition": {"max-length": 1}}),
            ("GET", "/api/definitions", None), ("GET", "/api/definitions/%2F", None)):
        code, answer = ask(broker, method, path, body)
        assert (code, "'/' is down" in answer["reason"]) == (503, True), (method, path, answer)
    assert ask(broker, "GET", "/api/queues/other/q")[0] == 200
    assert [queue["name"] for queue in ask(broker, "GET", "/api/definitions/other")[1]["queues"]] == ["q"]


def test_vhost_that_is_down_comes_back_with_its_files(down):
    broker, manifest = down
    assert broker.stop() == 0
    (broker.data / MANIFEST).write_bytes(manifest)
    broker.start_with()
    assert states(broker) == {"/": ["running"], "other": ["running"]}
    assert ask(broker, "GET", "/api/queues/%2F/q")[0] == 200


def test_vhost_that_is_down_can_be_deleted_and_made_anew(down):
    broker, _ = down
    assert ask(broker, "DELETE", "/api/vhosts/%2F")[0] == 204
    assert not (broker.data / MANIFEST).exists()
    assert ask(broker, "PUT", "/api/vhosts/%2F")[0] == 201
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    assert ask(broker, "PUT", "/api/permissions/%2F/guest", everything)[0] in (201, 204)
    broker.connect().close()
    assert ask(broker, "GET", "/api/queues/%2F/q")[0] == 404
