"""Changes of users and vhosts over HTTP while the disk fails: they are not made, or the broker ends."""

import base64
import http.client
import json

import pytest

EXIT_DISK = 74

BEFORE = [
    ("PUT", "/api/users/anna", {"password_hash": "", "tags": "management"}),
    ("PUT", "/api/permissions/%2F/anna", {"configure": "a", "write": "b", "read": "c"}),
    ("PUT", "/api/vhosts/shop", {"description": "orders"}),
]
CHANGES = [
    ("PUT", "/api/users/bob", {"password_hash": "", "tags": ""}),
    ("PUT", "/api/users/anna", {"password_hash": "", "tags": "administrator"}),
    ("DELETE", "/api/users/anna", None),
    ("PUT", "/api/permissions/%2F/anna", {"configure": "", "write": "", "read": ""}),
    ("DELETE", "/api/permissions/%2F/anna", None),
    ("PUT", "/api/user-limits/anna/max-channels", {"value": 1}),
    ("PUT", "/api/vhosts/new", {}),
    ("PUT", "/api/vhosts/shop", {"description": "nothing"}),
    ("POST", "/api/vhosts/shop/deletion/protection", None),
    ("PUT", "/api/vhost-limits/shop/max-queues", {"value": 1}),
    ("DELETE", "/api/vhosts/shop", None),
]


def ask(broker, method, path, body=None):
    """The status and the JSON of the answer."""
    connection = http.client.HTTPConnection(broker.http_address, timeout=60)
    login = {"authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
    connection.request(method, path, None if body is None else json.dumps(body), login)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


def state(broker):
    return [ask(broker, "GET", "/api/" + path)[1] for path in (
        "users", "permissions", "user-limits", "vhost-limits", "vhosts?columns=name,metadata")]


@pytest.mark.parametrize("call, action", [("write", "ENOSPC"), ("fsync", "EIO"), ("open", "EROFS")])
def test_unwritable_changes_are_refused(broker, call, action):
    broker.start_with()
    for change in BEFORE:
        assert ask(broker, *change)[0] in (201, 204)
    before = state(broker)
    broker.rules((call, 0, 1_000_000, action, "node.json.new"))
    for change in CHANGES:
        status, answer = ask(broker, *change)
        assert (status, answer["error"]) == (503, "unavailable"), change
    assert state(broker) == before
    broker.rules()
    broker.kill()
    broker.start()
    assert state(broker) == before
    for change in CHANGES:
        assert ask(broker, *change)[0] in (201, 204, 404, 412, 400), change
    assert state(broker) != before
    broker.assert_no_panic()
    assert broker.stop() == 0


@pytest.mark.parametrize("call, suffix", [("rename", "node.json"), ("fsync", "/data")])
def test_change_with_an_unknown_result_ends_the_broker(broker, call, suffix):
    """Else a vhost that is gone on the disk would go on taking messages."""
    broker.start_with()
    for change in BEFORE:
        assert ask(broker, *change)[0] in (201, 204)
    before = state(broker)
    broker.rules((call, 0, 1, "EIO", suffix))
    with pytest.raises((OSError, http.client.HTTPException)):
        ask(broker, "DELETE", "/api/vhosts/shop")
    assert broker.end() == EXIT_DISK
    (line,) = broker.errors()
    assert "cannot replace" in line and "node.json" in line, line
    broker.start_with()
    after = state(broker)
    assert after == before or "shop" not in [vhost["name"] for vhost in after[-1]]
    broker.assert_no_panic()
    assert broker.stop() == 0
