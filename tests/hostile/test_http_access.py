"""Access over HTTP: requests without login, pages of other sites, users with few permissions."""

import base64
import json
import re
import socket
from pathlib import Path

import pytest

import wire
from http_client import basic

pytestmark = pytest.mark.leveret_only("RabbitMQ's HTTP address is not known here")

DOCS = Path(__file__).parents[2] / "docs"
METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE")
LOGOUT = ("DELETE", "/api/login")  # does nothing, for anybody
PROTECTED = {
    "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff", "x-frame-options": "DENY", "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
CROSS_SITE = [
    {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://localhost.evil.example"},
    {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "origin": "http://localhost"},
]


def documented_requests():
    """Every method on every path of the API that the documentation names, with something for each placeholder."""
    found = set()
    for document in DOCS.rglob("*.md"):
        found.update(re.findall(r"`(?:[A-Z]+ )?(/api/[^\s`?]*)", document.read_text()))
    # As public as the page, and as the greeting of AMQP.
    found -= {"/api/index.html", "/api/version"}
    paths = sorted(re.sub(r"[A-Z_]{2,}", "x", path).rstrip("/") for path in found)
    assert len(paths) > 60
    return [(method, path) for path in paths for method in METHODS if (method, path) != LOGOUT]


@pytest.mark.ht(1)
def test_without_a_login_there_is_nothing(api):
    """On no path and with no method."""
    for method, target in documented_requests():
        found = api.ask(method, target, user=None)
        assert found.status in (401, 405, 404), (method, target, found)
        if found.text:
            assert set(found.json) == {"error", "reason"}
        if found.status == 401 and target != "/api/login":
            assert "www-authenticate" in found.headers


@pytest.mark.ht(1, 43)
def test_a_user_without_a_tag_may_not_ask(api, made):
    """With any permissions."""
    user = made.user()
    for method, target in documented_requests():
        found = api.ask(method, target, user=user)
        assert found.status in (401, 405, 404), (method, target, found)


@pytest.mark.ht(43)
@pytest.mark.parametrize("tags", ["management", "policymaker", "monitoring"])
def test_definitions_are_for_administrators(api, made, tags):
    user = made.user(tags=tags)
    for method in ("GET", "POST"):
        for target in ("/api/definitions", "/api/definitions/%2F"):
            found = api.ask(method, target, user=user, body={} if method == "POST" else None)
            assert found.status == 401 and b"password_hash" not in found.text
    for target in ("/api/users", f"/api/users/{user}"):
        found = api.ask("GET", target, user=user)
        assert found.status == 401 and b"password_hash" not in found.text
    whole = api.ask("GET", "/api/definitions", user="guest")
    assert all("password_hash" in one for one in whole.json["users"])


@pytest.mark.ht(2, 4)
@pytest.mark.parametrize("headers", CROSS_SITE, ids=lambda headers: ", ".join(headers.values()))
def test_pages_of_other_sites_change_nothing(api, headers):
    for method, target in (
        ("PUT", "/api/vhosts/evil"), ("POST", "/api/definitions"), ("DELETE", "/api/vhosts/%2F"),
        ("POST", "/api/exchanges/%2F/amq.default/publish"), ("POST", "/api/login"),
    ):
        found = api.ask(method, target, raw=b"{}", headers=headers)
        assert (found.status, found.json["error"]) == (403, "forbidden"), (method, target)
        assert not [name for name in found.headers if name.startswith("access-control-")]
    assert api.ask("GET", "/api/vhosts/evil").status == 404
    assert api.ask("GET", "/api/vhosts/%2F").status == 200


@pytest.mark.ht(2)
@pytest.mark.parametrize("headers", [{}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}])
def test_pages_of_its_own_site_may(api, made, headers):
    vhost = made.name()
    host = "{}:{}".format(*api.broker.http_address)
    origin = {} if headers else {"origin": f"http://{host}"}
    assert api.ask("PUT", f"/api/vhosts/{vhost}", {}, headers={**headers, **origin}).status == 201
    assert api.ask("DELETE", f"/api/vhosts/{vhost}").status == 204


@pytest.mark.ht(3)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_the_type_of_a_body_is_no_key(api, made, kind):
    """RabbitMQ's tools send any; what keeps pages out is where they come from."""
    vhost = made.name()
    refused = api.ask("PUT", f"/api/vhosts/{vhost}", {}, headers={"content-type": kind, **CROSS_SITE[0]})
    assert refused.status == 403
    assert api.ask("PUT", f"/api/vhosts/{vhost}", {}, headers={"content-type": kind}).status == 201
    assert api.ask("DELETE", f"/api/vhosts/{vhost}").status == 204


@pytest.mark.ht(4)
@pytest.mark.parametrize("method", ["OPTIONS", "GET", "HEAD"])
def test_no_other_origin_is_let_in(api, method):
    for target in ("/api/whoami", "/api/definitions", "/metrics", "/"):
        found = api.ask(method, target, headers={
            "origin": "http://evil.example", "access-control-request-method": "PUT",
            "access-control-request-headers": "authorization"})
        assert not [name for name in found.headers if name.startswith("access-control-")]


@pytest.mark.ht(5)
@pytest.mark.parametrize("header", ["x-http-method-override", "x-http-method", "x-method-override"])
def test_a_method_is_what_the_request_line_says(api, header):
    assert api.ask("GET", "/api/vhosts/overridden?_method=PUT", headers={header: "PUT"}).status == 404
    assert api.ask("POST", "/api/vhosts/%2F?_method=DELETE", headers={header: "DELETE"}).status == 405
    assert api.ask("GET", "/api/vhosts/%2F").status == 200


@pytest.mark.ht(6)
@pytest.mark.parametrize("host", ["evil.example", "evil.example:15672", "localhost.evil.example", "127.0.0.1.evil"])
def test_a_name_that_was_pointed_here_lets_no_loopback_user_in(api, made, host):
    found = api.ask("GET", "/api/whoami", headers={"host": host})
    assert (found.status, found.reason) == (401, "User can only log in via localhost")
    user = made.user(tags="management")
    assert api.ask("GET", "/api/whoami", user=user, headers={"host": host}).status == 200


@pytest.mark.ht(7)
def test_answers_set_no_cookies(api):
    """The broker sets no cookie, and no cookie logs in."""
    form = b"username=guest&password=guest"
    given = api.ask("POST", "/api/login", raw=form, user=None)
    assert given.status == 200 and "set-cookie" not in given.headers
    for value in (basic("guest").split()[1], given.json["token"]["value"], "guest:guest"):
        for name in ("auth", "m", "session", "authorization"):
            found = api.ask("GET", "/api/whoami", user=None, headers={"cookie": f"{name}={value}"})
            assert found.status == 401 and "set-cookie" not in found.headers


@pytest.mark.ht(20)
def test_form_without_a_login_is_small(api):
    for octets, status in ((60_000, 401), (70_000, 413)):
        found = api.ask("POST", "/api/login", raw=b"username=guest&password=" + b"x" * octets, user=None)
        assert found.status == status


@pytest.mark.ht(8)
@pytest.mark.parametrize("method, target, user, status", [
    ("GET", "/api/whoami", "guest", 200), ("GET", "/metrics", None, 200), ("GET", "/api/nope", "guest", 404),
    ("GET", "/nope", None, 404), ("GET", "/api/whoami", None, 401), ("POST", "/api/whoami", "guest", 405),
    ("PUT", "/api/policies/%2F/p", "guest", 400), ("GET", "/" + "a" * 9000, "guest", 414),
    ("DELETE", "/api/queues/%2F/nope", "guest", 404), ("POST", "/api/login", None, 401),
])
def test_every_answer_is_for_who_asked_alone(api, method, target, user, status):
    found = api.ask(method, target, user=user)
    assert found.status == status
    assert {name: found.headers.get(name) for name in PROTECTED} == PROTECTED
    if found.text and target != "/metrics":
        assert found.headers["content-type"] == "application/json"


@pytest.mark.ht(8)
@pytest.mark.parametrize("target", ["/", "/js/main.js", "/css/tokens.css", "/favicon.ico"])
def test_the_page_is_protected_like_an_answer(api, target):
    """But a browser may keep it, and asks whether it is still the same."""
    found = api.ask("GET", target, user=None)
    assert found.status == 200
    protected = {**PROTECTED, "cache-control": "no-cache"}
    assert {name: found.headers.get(name) for name in protected} == protected
    again = api.ask("GET", target, user=None, headers={"if-none-match": found.headers["etag"]})
    assert (again.status, again.text) == (304, b"")
    assert {name: again.headers.get(name) for name in protected} == protected


@pytest.mark.ht(8)
@pytest.mark.parametrize("target", [
    "/js/../../Cargo.toml", "/js/%2e%2e/%2e%2e/Cargo.toml", "/js/..%2f..%2fCargo.toml", "/js//etc/passwd", "/js/", "/css",
    "/vendor/..%5c..%5cCargo.toml", "/js/main.js%00", "/web/index.html", "/README.md"])
def test_no_other_file_is_shown(api, target):
    found = api.ask("GET", target, user=None)
    assert found.status in (400, 404)
    assert set(found.json) == {"error", "reason"}


REFLECTED = ["<script>alert(1)</script>", "\"}],\"x\":[{\"", "\r\nset-cookie: a=b", "\0", "\u202e", "%s%n", "{{7*7}}"]


@pytest.mark.ht(9, 10)
@pytest.mark.parametrize("name", REFLECTED, ids=ascii)
def test_reflected_input_is_json(api, made, name):
    """As the name of a vhost that is made, as that of one that is not there, and in an error."""
    vhost = made.vhost(made.name() + name)
    shown = [one["name"] for one in api.do("GET", "/api/vhosts")]
    assert vhost in shown
    target = made.removed[-1]
    told = [
        api.ask("GET", target), api.ask("GET", target + "x"), api.ask("PUT", target + "/nope", {}),
        api.ask("PUT", target.replace("vhosts", "policies") + "/p", {"pattern": name, "definition": {name: 1}}),
    ]
    assert told[0].json["name"] == vhost
    for found in told:
        assert found.headers["content-type"] == "application/json"
        assert "set-cookie" not in found.headers and json.loads(found.text)


@pytest.mark.ht(10)
@pytest.mark.parametrize("file, status", [
    ("ok.json", 200), ("a%0d%0aset-cookie:%20a=b", 400), ("a%22b", 400), ("a%00b", 400), ("..%2f..%2fetc", 400),
])
def test_the_name_of_a_download_is_a_name(api, file, status):
    found = api.ask("GET", f"/api/definitions?download={file}")
    assert found.status == status and "set-cookie" not in found.headers
    assert found.headers.get("content-disposition") == ("attachment; filename=ok.json" if status == 200 else None)


@pytest.mark.ht(12)
def test_broker_fetches_no_addresses(api):
    """Addresses in any input are data: the broker does not connect to them."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        address = "{}:{}".format(*trap.getsockname())
        api.ask("POST", "/api/definitions", {
            "load_definitions": f"http://{address}/", "definitions.https.url": f"https://{address}/",
            "parameters": [
                {"component": "shovel", "vhost": "/", "name": "s", "value": {
                    "src-uri": f"amqp://{address}", "src-queue": "a", "dest-uri": f"amqp://{address}",
                    "dest-queue": "b"}},
                {"component": "federation-upstream", "vhost": "/", "name": "f",
                 "value": {"uri": f"amqp://{address}"}},
            ]})
        shovel = {"value": {"src-uri": f"amqp://{address}", "dest-uri": f"amqp://{address}"}}
        assert api.ask("PUT", "/api/parameters/shovel/%2F/s", shovel).status in (400, 404)
        api.ask("GET", f"/api/overview?url=http://{address}/", headers={"referer": f"http://{address}/"})
        trap.settimeout(1.0)
        with pytest.raises(TimeoutError):
            trap.accept()


@pytest.mark.ht(30)
@pytest.mark.parametrize(
    "reason", ["%s%n%x", "{}{0}{evil!r}", "~p~n~s", "a\tb", "x" * 20_000], ids=lambda text: text[:9])
def test_a_hostile_reason_is_passed_on_as_it_is(broker, api, made, reason):
    """`X-Reason` is the reason that the closed client gets, cut to a short string."""
    user = made.user()
    with broker.peer() as peer:
        peer.connect(user=user)
        closed = api.ask("DELETE", f"/api/connections/username/{user}", headers={"x-reason": reason})
        assert closed.status == 204
        told = peer.expect(0, "connection.close")
        assert told.reply_code == 320 and f"CONNECTION_FORCED - {reason}".startswith(told.reply_text.rstrip("."))
        peer.send_method(0, "connection.close-ok")
    broker.assert_alive()


@pytest.mark.ht(30)
@pytest.mark.parametrize("header, status", [
    ("authorization", 431), ("user-agent", 431), ("x-reason", 431), ("cookie", 431),
])
def test_hostile_headers_are_bounded(api, header, status):
    assert api.ask("GET", "/api/whoami", headers={header: "Basic " + "A" * 33_000}).status == status


@pytest.mark.ht(31)
def test_a_password_in_a_path_stays_there(broker, api, made):
    """The path is RabbitMQ's, and tools use it; the log does not tell it."""
    password = "secret-in-a-path-4711"
    target = f"/api/auth/hash_password/{password}"
    assert api.ask("GET", target, user=made.user(tags="monitoring")).status == 401
    assert len(base64.b64decode(api.do("GET", target)["ok"])) == 4 + 32
    api.ask("DELETE", target)
    assert password not in broker.log.read_text()


@pytest.mark.ht(41)
def test_wrong_logins_of_all_users_get_equal_answers(api):
    """An unknown user, a wrong password, an empty one: one text, whichever path."""
    told = {
        api.ask("GET", target, user=None, headers={"authorization": basic(user, password)}).text
        for target in ("/api/whoami", "/api/definitions")
        for user, password in (("guest", "wrong"), ("nobody-at-all", "guest"), ("guest", ""), ("", ""))
    }
    assert len(told) == 1 and b"Not_Authorized" in told.pop()


@pytest.mark.ht(41)
def test_request_without_login_costs_no_connection_of_others(broker, api):
    """Requests without a login are answered, at no cost for a busy client."""
    with broker.peer() as peer:
        peer.connect()
        for _ in range(200):
            assert api.ask("GET", "/api/overview", user=None).status == 401
            peer.send(wire.heartbeat())
        peer.assert_usable()
