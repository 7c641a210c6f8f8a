"""The management API: `/api/auth`, `/api/login`, and the lines that changes leave in the log."""

import base64
import hashlib
import re
import time
import urllib.error
import urllib.request

import pytest

from brokers import quoted
from patience import PATIENCE_S, Patience
from replies import Closed

WRONG_LOGIN = {"error": "not_authorized", "reason": "Not_Authorized"}


def log_in(api, body, method="POST", **headers):
    request = urllib.request.Request(api.url + "/api/login", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return api._read(answer, answer.status)
    except urllib.error.HTTPError as error:
        return api._read(error, error.code)


def test_a_form_is_a_login(api):
    answer = log_in(api, b"username=guest&password=guest")
    token = {"type": "basic", "value": base64.b64encode(b"guest:guest").decode()}
    assert answer.status == 200
    assert answer.json == {"user": {"name": "guest", "tags": ["administrator"], "is_internal_user": True},
                           "token": token}


@pytest.mark.parametrize("form", [b"", b"username=guest", b"username=guest&password=wrong", b"{}", b"password=guest"])
def test_invalid_login_is_refused(api, form):
    answer = log_in(api, form)
    assert (answer.status, answer.json) == (401, WRONG_LOGIN)


def test_a_login_without_a_tag_is_refused(api, made):
    answer = log_in(api, f"username={made.user()}&password={made.user()}".encode())
    assert (answer.status, answer.json) == (401, {"error": "not_authorised", "reason": "Not management user"})


def test_logout_needs_no_login(api):
    assert log_in(api, None, method="DELETE").status == 204


@pytest.mark.better
def test_another_site_cannot_try_passwords(api, by_broker):
    answer = log_in(api, b"username=guest&password=guest", Origin="http://evil.example")
    assert answer.status == by_broker(rabbitmq=200, leveret=403)


def test_a_hash_is_made_for_who_asks(api, made):
    hashed = api.ask("/api/auth/hash_password/" + quoted("pä ss/word")).json["ok"]
    octets = base64.b64decode(hashed)
    assert octets[4:] == hashlib.sha256(octets[:4] + "pä ss/word".encode()).digest()
    assert api.ask("/api/auth/hash_password/" + quoted("pä ss/word")).json["ok"] != hashed
    name = made.user(tags="management", password_hash=hashed)
    assert api.ask("/api/whoami", user=name, password="pä ss/word").status == 200


def attempts(api):
    node = api.ask("/api/overview").json["node"]
    by_protocol = api.ask("/api/auth/attempts/" + quoted(node)).json
    keys = ("auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded")
    for one in by_protocol:
        assert one["auth_attempts"] == one["auth_attempts_failed"] + one["auth_attempts_succeeded"]
    return {one["protocol"]: [one[key] for key in keys] for one in by_protocol}


def test_attempts_are_counted(api, client, prefix):
    client.connect()
    before = attempts(api)
    for _ in range(2):
        api.ask("/api/whoami", user=prefix + "nobody")
    with pytest.raises(Closed):
        client.connect(user=prefix + "nobody")
    after = attempts(api)
    assert after["http"][1] >= before["http"][1] + 2
    assert after["http"][2] >= before["http"][2] + 1
    assert after["amqp091"][1] >= before["amqp091"][1] + (0 if client.broker.name == "rabbitmq" else 1)


def test_attempts_are_of_a_node(api):
    node = quoted(api.ask("/api/overview").json["node"])
    assert api.ask("/api/auth/attempts/nope").status == 404
    assert api.ask(f"/api/auth/attempts/{node}/source").json == []
    for path in (node + "/source", node):
        assert api.ask("/api/auth/attempts/" + path, method="DELETE").status == 204


# --- the log


@pytest.fixture
def logged(under):
    """`logged(pattern)`: the line of a new Leveret's log that matches."""
    if under.name != "leveret":
        pytest.skip("the log of RabbitMQ is somebody else's")
    broker = under.start()

    def logged(pattern):
        patience = Patience()
        while not (found := [line for line in broker.log if re.search(pattern, line)]):
            assert not patience.is_over(), "".join(broker.log)
            time.sleep(0.01)
        return found[0]

    logged.broker = broker
    yield logged
    broker.stop()


def test_every_change_has_a_line(logged):
    api = logged.broker.api
    api.do("PUT", "/api/users/anna", {"password": "s3cret", "tags": "management"})
    line = logged("/api/users/anna")
    for part in ('user="guest"', "peer=127.0.0.1", 'method="PUT"', "status=201"):
        assert part in line
    assert api.ask("/api/vhosts/a%0Ab", user="anna", password="s3cret", method="DELETE").status == 401
    line = logged('user="anna"')
    assert 'path="/api/vhosts/a%0Ab"' in line and "status=401" in line
    assert api.ask("/api/users/bob", method="PUT", body={"password_hash": "!"}).status == 400
    assert "status=400" in logged("/api/users/bob")
    assert not any("s3cret" in line for line in logged.broker.log)
    assert not any("/api/whoami" in line for line in logged.broker.log), "who only looks changes nothing"


def test_every_refused_login_has_a_line(logged):
    logged.broker.api.ask("/api/whoami", user="mallory", password="s3cret")
    line = logged('user="mallory"')
    assert "login refused" in line and "127.0.0.1" in line
    assert not any("s3cret" in line for line in logged.broker.log)
