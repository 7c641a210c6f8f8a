"""The management API: the tags that requests need, and the form of refusals."""

import pytest

from brokers import quoted
from definitions import User

TAGS = ("management", "policymaker", "monitoring", "administrator")
WRONG_LOGIN = {"error": "not_authorized", "reason": "Not_Authorized"}
NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}


@pytest.fixture
def http(under):
    """The HTTP API of the shared broker."""
    return under.shared().api


@pytest.fixture
def tagged(defined, prefix):
    """`tagged(path, tag)`: what a user with this tag, or with none, is answered; he may enter the vhost `/`."""
    users = [User("none")] + [User(tag, tags=(tag,)) for tag in (*TAGS, "impersonator")]
    defined(users=users)
    return lambda path, tag: defined.client.broker.api.ask(path, user=prefix + tag)


def test_request_without_a_login_is_asked_for_one(http):
    answer = http.ask("/api/overview", user=None)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Basic realm="RabbitMQ Management"')


@pytest.mark.better
def test_refusals_are_json(http, by_broker):
    for status, answer in (
        (401, http.ask("/api/overview", user=None)),
        (405, http.ask("/api/overview", method="POST", body={})),
        (406, http.ask("/api/overview", accept="text/html")),
        (400, http.ask("/api/overview", user=None, authorization="Basic !!!")),
    ):
        assert answer.status == status
        kind = answer.headers.get("content-type")
        assert kind == by_broker(rabbitmq=None, leveret="application/json"), status
        if kind:
            assert set(answer.json) == {"error", "reason"}


@pytest.mark.parametrize("user, password", [("guest", "wrong"), ("nobody", "guest"), ("guest", "x:guest"), ("", "x")])
def test_wrong_login_gets_no_reason(http, user, password):
    answer = http.ask("/api/overview", user=user, password=password)
    assert (answer.status, answer.json) == (401, WRONG_LOGIN)
    assert "www-authenticate" not in answer.headers


def test_an_empty_password_and_a_token_are_wrong_logins(http):
    for authorization in ("Basic Z3Vlc3Q6", "Bearer abc"):
        answer = http.ask("/api/overview", user=None, authorization=authorization)
        assert (answer.status, answer.json) == (401, WRONG_LOGIN)


@pytest.mark.parametrize("authorization", ["Basic", "Basic ", "Basic Z3Vlc3Q=", "Digest x"])
def test_a_login_that_cannot_be_read_is_a_bad_request(http, authorization):
    assert http.ask("/api/whoami", user=None, authorization=authorization).status == 400


def test_the_scheme_is_written_as_one_likes(http):
    assert http.ask("/api/whoami", user=None, authorization="bAsIC Z3Vlc3Q6Z3Vlc3Q=").json["name"] == "guest"


@pytest.mark.parametrize("tag", ["none", "impersonator"])
def test_the_api_needs_a_tag(tagged, tag):
    for path in ("/api/whoami", "/api/overview", "/api/nodes", "/api/vhosts/nope"):
        answer = tagged(path, tag)
        assert (answer.status, answer.json) == (401, {"error": "not_authorised", "reason": "Not management user"})


@pytest.mark.parametrize("tag", TAGS)
def test_every_tag_of_the_api_opens_what_concerns_all(tagged, prefix, tag):
    told = tagged("/api/whoami", tag).json
    told.pop("permissions", None)
    assert told == {"name": prefix + tag, "tags": [tag], "is_internal_user": True}
    for path in ("overview", "cluster-name", "vhosts", "health/checks/alarms", "health/checks/local-alarms"):
        assert tagged("/api/" + path, tag).status == 200, path


@pytest.mark.better
def test_users_are_told_their_own_permissions(tagged, by_broker):
    told = tagged("/api/whoami", "management").json.get("permissions", [])
    own = {"vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
    assert told == by_broker(rabbitmq=[], leveret=[own])


@pytest.mark.parametrize("tag", TAGS)
def test_nodes_are_for_monitors_and_single_vhosts_for_administrators(tagged, tag):
    expected = {"monitoring": (True, False), "administrator": (True, True)}.get(tag, (False, False))
    for path, opens, reason in (
        ("/api/nodes", expected[0], "Not monitor user"),
        ("/api/vhosts/%2F", expected[1], "Not administrator user"),
    ):
        answer = tagged(path, tag)
        assert answer.status == (200 if opens else 401), path
        if not opens:
            assert answer.json == {"error": "not_authorised", "reason": reason}


@pytest.mark.parametrize("path", ["/api/nope", "/api/health/checks", "/api/health/checks/nope", "/nope", "/api/auth"])
def test_missing_path_is_answered_without_a_login(http, path):
    for user in ("guest", None):
        answer = http.ask(path, user=user)
        assert (answer.status, answer.json) == (404, NOT_FOUND)


@pytest.mark.parametrize("path", ["/api/vhosts/nope", "/api/nodes/nope", "/api/vhosts/%FF"])
def test_missing_object_is_answered_after_the_login(http, path):
    answer = http.ask(path)
    assert (answer.status, answer.json) == (404, NOT_FOUND)
    assert http.ask(path, user=None).status == 401


def test_missing_method_is_answered_without_a_login(http):
    for user in ("guest", None):
        answer = http.ask("/api/overview", user=user, method="DELETE")
        assert answer.status == 405
        assert {"GET", "HEAD"} <= set(answer.headers["allow"].replace(" ", "").split(","))
    assert http.ask("/api/overview", user=None, method="OPTIONS").status == 200


def test_head_is_get_without_a_body(http):
    answer = http.ask("/api/whoami", method="HEAD")
    assert (answer.status, answer.text) == (200, b"")
    assert int(answer.headers["content-length"]) == len(http.ask("/api/whoami").text)


@pytest.mark.parametrize("accept, status", [
    ("application/json", 200), ("*/*", 200), ("application/*", 200), ("text/html, */*;q=0.1", 200), ("text/html", 406),
])
def test_json_is_what_there_is(http, accept, status):
    assert http.ask("/api/whoami", accept=accept).status == status


def test_a_slash_at_the_end_means_nothing(http):
    assert http.ask("/api/whoami/").json == http.ask("/api/whoami").json
    assert http.ask("/api/vhosts/" + quoted("/") + "/").json["name"] == "/"


def test_methods_are_not_overridden(http):
    assert http.ask("/api/whoami?_method=DELETE", x_http_method_override="DELETE").status == 200


@pytest.mark.better
def test_answers_are_nothing_for_other_sites_and_not_kept(http, by_broker):
    answer = http.ask("/api/whoami", origin="http://evil.example")
    assert "access-control-allow-origin" not in answer.headers
    names = ("cache-control", "x-content-type-options", "x-frame-options", "referrer-policy")
    assert [answer.headers.get(name) for name in names] == by_broker(
        rabbitmq=["no-cache", None, None, None], leveret=["no-store", "nosniff", "DENY", "no-referrer"])
    assert "'self'" in answer.headers["content-security-policy"]


@pytest.mark.better
def test_a_loopback_user_must_ask_this_machine_by_its_name(http, by_broker):
    """A foreign page may have its own name point to 127.0.0.1, and knows the password of guest."""
    assert http.ask("/api/whoami", host="localhost").status == 200
    answer = http.ask("/api/whoami", host="evil.example")
    assert answer.status == by_broker(rabbitmq=200, leveret=401)
    if answer.status == 401:
        assert answer.json == {"error": "not_authorised", "reason": "User can only log in via localhost"}


def test_other_users_may_come_by_any_name(tagged, defined, prefix):
    api = defined.client.broker.api
    assert api.ask("/api/whoami", user=prefix + "management", host="broker.example").status == 200
