"""The management API: users, their passwords and tags."""

import base64
import concurrent.futures
import hashlib

import pytest

from brokers import quoted
from definitions import hash_of
from expectations import NOTHING
from replies import Closed

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}
SHA256 = "rabbit_password_hashing_sha256"


def path_of(name):
    return "/api/users/" + quoted(name)


def test_a_user_is_made_changed_and_removed(api, made, prefix):
    path = path_of(prefix + "u")
    assert api.ask(path).json == NOT_FOUND
    made.users.append(prefix + "u")
    assert api.ask(path, method="PUT", body={"password": "a", "tags": "management"}).status == 201
    answer = api.ask(path, method="PUT", body={"password": "b", "tags": ["policymaker"]})
    assert (answer.status, answer.text) == (204, b"")
    user = api.ask(path).json
    assert set(user) == {"name", "password_hash", "hashing_algorithm", "tags", "limits"}
    assert (user["name"], user["tags"], user["limits"]) == (prefix + "u", ["policymaker"], {})
    assert user in api.ask("/api/users").json
    assert (api.ask(path, method="DELETE").status, api.ask(path, method="DELETE").json) == (204, NOT_FOUND)


@pytest.mark.parametrize("tags, expected", [
    ("", []), ("a,,b , c", ["a", "b", "c"]), ([], []), (["management", "a b"], ["management", "a b"]), ([7, "a"], ["7", "a"]),
])
def test_tags_are_a_text_or_a_list(api, made, tags, expected):
    assert api.ask(path_of(made.user(tags=tags))).json["tags"] == expected


def whoami(api, name, password):
    answer = api.ask("/api/whoami", user=name, password=password)
    return answer.json["name"] if answer.status == 200 else answer.status


@pytest.mark.parametrize("first, second", [
    ({"password": "old"}, {"password": "new"}),
    ({"password": "old"}, {"password_hash": hash_of("new")}),
    ({"password_hash": hash_of("old"), "hashing_algorithm": SHA256}, {"password": "new"}),
])
def test_the_newest_password_is_the_one(api, made, first, second):
    name = made.user(tags="management", **first)
    assert (whoami(api, name, "old"), whoami(api, name, "new")) == (name, 401)
    made.user(tags="management", **second)
    assert (whoami(api, name, "old"), whoami(api, name, "new")) == (401, name)


def test_a_sha512_hash_is_a_password_too(api, made):
    digest = base64.b64encode(b"salt" + hashlib.sha512(b"salt" + "pässword".encode()).digest()).decode()
    algorithm = "rabbit_password_hashing_sha512"
    name = made.user(tags="management", password_hash=digest, hashing_algorithm=algorithm)
    assert whoami(api, name, "pässword") == name
    assert api.ask(path_of(name)).json["hashing_algorithm"] == algorithm


@pytest.mark.better
def test_the_length_of_a_hash_tells_its_algorithm(api, made, by_broker):
    for digest in (hashlib.sha256, hashlib.sha512):
        hashed = base64.b64encode(b"salt" + digest(b"salt" + b"secret").digest()).decode()
        name = made.user(tags="management", password_hash=hashed)
        is_right = digest == hashlib.sha256 or by_broker(rabbitmq=False, leveret=True)
        assert whoami(api, name, "secret") == (name if is_right else 401)


def test_shown_password_hash_can_be_set_again(api, made):
    name = made.user(tags="management", password="secret")
    shown = api.ask(path_of(name)).json
    made.user(tags="management", password_hash="")
    assert whoami(api, name, "secret") == 401
    kept = {key: shown[key] for key in ("password_hash", "hashing_algorithm", "tags")}
    assert api.ask(path_of(name), method="PUT", body=kept).status == 204
    assert whoami(api, name, "secret") == name


def test_algorithms_of_hashes_have_the_names_that_clients_know(api, made):
    name = made.user(tags="management", password="secret")
    shown = [api.ask(path_of(name)).json, *api.ask("/api/users").json]
    known = {f"rabbit_password_hashing_{kind}" for kind in ("md5", "sha256", "sha512")}
    assert {user["hashing_algorithm"] for user in shown} <= known


@pytest.mark.parametrize("body", [{"tags": "management"}, {"tags": "management", "password_hash": ""}])
def test_login_without_a_password_is_refused(api, made, body):
    name = made.user(password="secret", tags="management")
    assert api.ask(path_of(name), method="PUT", body=body).status == 204
    assert api.ask(path_of(name)).json["password_hash"] == ""
    assert [whoami(api, name, password) for password in ("secret", " ")] == [401, 401]


@pytest.mark.parametrize("body, reason", [
    ({"password": "x"}, "tags_not_present"),
    ({"password": "x", "administrator": "yes"}, ["not_boolean", "yes"]),
    ({"password": "x", "administrator": None}, ["not_boolean", None]),
    ({"password_hash": "!!", "tags": ""}, ["not_base64", "!!"]),
    ({"password_hash": 5, "tags": ""}, ["not_base64", 5]),
    ({"password": "x", "tags": ",".join(f"t{n}" for n in range(33))}, "A user can have at most 32 tags (received 33)"),
    ({}, "tags_not_present"),
    (None, "tags_not_present"),
    ([], "not_json"),
    (5, "not_json"),
    ("{}", "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"),
    ({"password": "a", "password_hash": hash_of("a"), "tags": ""}, "both_password_and_password_hash_are_provided"),
])
def test_invalid_user_is_refused_and_changes_nothing(api, made, body, reason):
    path = path_of(made.user(tags="management"))
    before = api.ask(path).json
    answer = api.ask(path, method="PUT", body=body)
    assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason})
    assert api.ask(path).json == before


@pytest.mark.parametrize("flag, expected", [
    (True, ["administrator"]), ("true", ["administrator"]), (False, []), ("false", []),
])
def test_administrator_stands_for_its_tag(api, made, flag, expected):
    path = path_of(made.user())
    assert api.ask(path, method="PUT", body={"password": "x", "administrator": flag}).status == 204
    assert api.ask(path).json["tags"] == expected
    api.do("PUT", path, {"password": "x", "administrator": flag, "tags": "monitoring"})
    assert api.ask(path).json["tags"] == ["monitoring"]


def test_user_can_have_32_tags(api, made):
    tags = [f"t{n}" for n in range(32)]
    assert sorted(api.ask(path_of(made.user(tags=tags))).json["tags"]) == sorted(tags)


@pytest.mark.parametrize("tags", ["protected", "a, protected", ["protected"]])
def test_protected_users_are_not_changed_over_http(api, made, tags):
    protected, other = made.user("p", tags=tags), made.user("o")
    path = path_of(protected)
    before = api.ask(path).json
    refused = {"error": "bad_request", "reason": "Protected users cannot be modified via the HTTP API"}
    try:
        answers = [api.ask(path, method="DELETE"), api.ask(path, method="PUT", body={"password": "x", "tags": ""})]
        assert [(answer.status, answer.json) for answer in answers] == [(400, refused)] * 2
        body = {"users": [protected, other]}
        assert api.ask("/api/users/bulk-delete", method="POST", body=body).status == 204
        assert (api.ask(path).json, api.ask(path_of(other)).status) == (before, 404)
        all = {"configure": "", "write": "", "read": ""}
        assert api.ask(f"/api/permissions/%2F/{quoted(protected)}", method="PUT", body=all).status == 201
    finally:
        api.do("POST", "/api/definitions", {"users": [{"name": protected, "password": "x", "tags": ""}]})
    assert api.ask(path, method="DELETE").status == 204


def test_permissions_may_come_with_a_new_user(api, made):
    patterns = lambda letter: {"configure": letter, "write": "b", "read": "c"}
    name = made.user(permissions={"/": patterns("a")})
    mine = lambda: api.ask(path_of(name) + "/permissions").json
    assert mine() == [{"user": name, "vhost": "/", **patterns("a")}]
    made.user(permissions={"/": patterns("z"), "nowhere": patterns("z")})
    assert mine() == [{"user": name, "vhost": "/", **patterns("a")}]


@pytest.mark.better
@pytest.mark.parametrize("permissions, rabbitmq", [
    ({"nowhere": {"configure": "", "write": "", "read": ""}}, 400),
    ({"/": {"configure": "(", "write": "", "read": ""}}, 400),
    ({"/": {"configure": ""}}, 500), ({"/": "x"}, 500), ([], 500), ("x", 500),
])
def test_new_user_with_wrong_permissions_is_not_made(api, made, prefix, by_broker, permissions, rabbitmq):
    made.users.append(prefix + "u")
    body = {"password": "x", "tags": "", "permissions": permissions}
    answer = api.ask(path_of(prefix + "u"), method="PUT", body=body)
    assert answer.status == by_broker(rabbitmq=rabbitmq, leveret=400)
    assert api.ask(path_of(prefix + "u")).status == by_broker(rabbitmq=200, leveret=404)


@pytest.mark.better
@pytest.mark.parametrize("body, rabbitmq", [
    ({"password": 7, "tags": ""}, 500),
    ({"password": None, "tags": ""}, 500),
    ({"password": "p", "tags": 7}, 500),
    ({"password_hash": 7, "tags": ""}, 400),
    ({"password_hash": "!!!", "tags": ""}, 400),
    ({"password_hash": "AAAA", "tags": ""}, 204),
    ({"password_hash": hash_of("a"), "hashing_algorithm": "rot13", "tags": ""}, 204),
    ({"password_hash": hash_of("a"), "hashing_algorithm": 7, "tags": ""}, 500),
])
def test_unusable_password_hash_is_refused(api, made, by_broker, body, rabbitmq):
    """RabbitMQ stumbles over some of it, and takes hashes that no password can have."""
    path = path_of(made.user())
    before = api.ask(path).json
    assert api.ask(path, method="PUT", body=body).status == by_broker(rabbitmq=rabbitmq, leveret=400)
    assert api.ask(path).json == before or by_broker(rabbitmq=True, leveret=False)


@pytest.mark.parametrize("name", ["a/b", "..", "%2e", "a b", "<i>", "ü", "x" * 300, "a\nb", '"'])
def test_names_are_data(api, made, name):
    name = made.user(name)
    assert api.ask(path_of(name)).json["name"] == name
    assert name in [user["name"] for user in api.ask("/api/users").json]
    assert api.ask(path_of(name), method="DELETE").status == 204


def test_limits_come_with_a_user_and_stay(api, made):
    name = made.user(limits={"max-connections": 3, "max-channels": 4})
    assert api.ask(path_of(name)).json["limits"] == {"max-channels": 4, "max-connections": 3}
    made.user()
    assert api.ask(path_of(name)).json["limits"] == {"max-channels": 4, "max-connections": 3}


def test_permissions_stay_when_a_user_changes_and_go_with_him(api, made):
    name, vhost = made.user(), made.vhost()
    made.permit(name, vhost)
    made.user(tags="management")
    granted = [{"user": name, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}]
    assert api.ask(path_of(name) + "/permissions").json == granted
    api.do("DELETE", path_of(name))
    made.user()
    assert api.ask(path_of(name) + "/permissions").json == []
    assert name not in [p["user"] for p in api.ask("/api/permissions").json]


def test_users_without_permissions_have_a_list_of_their_own(api, made):
    with_some, without = made.user("with"), made.user("without")
    made.permit(with_some, "/", configure=NOTHING)
    names = [user["name"] for user in api.ask("/api/users/without-permissions").json]
    assert without in names and with_some not in names and "guest" not in names


def test_lists_have_pages_and_columns(api, made, prefix):
    names = [made.user(name) for name in ("a", "b", "c")]
    page = api.ask(f"/api/users?page=2&page_size=2&name={prefix}&columns=name").json
    assert page["items"] == [{"name": names[2]}]
    assert (page["filtered_count"], page["page_count"], page["item_count"]) == (3, 2, 1)
    assert api.ask(path_of(names[0]) + "?columns=name,tags").json == {"name": names[0], "tags": []}


def test_many_are_removed_at_once(api, made, prefix):
    a, b = made.user("a"), made.user("b")
    answer = api.ask("/api/users/bulk-delete", method="POST", body={"users": [a, prefix + "nobody", b]})
    assert (answer.status, answer.text) == (204, b"")
    assert [api.ask(path_of(name)).status for name in (a, b)] == [404, 404]
    for body in ({}, None):
        answer = api.ask("/api/users/bulk-delete", method="POST", body=body)
        assert (answer.status, answer.json["reason"]) == (400, "[{key_missing,users}]")


@pytest.mark.better
def test_bulk_delete_needs_a_list_of_users(api, made, by_broker):
    name = made.user()
    for users in (name, [name, 7], 7):
        answer = api.ask("/api/users/bulk-delete", method="POST", body={"users": users})
        assert answer.status == by_broker(rabbitmq=500, leveret=400)
    assert by_broker(rabbitmq=True, leveret=api.ask(path_of(name)).status == 200)


def test_removed_user_is_disconnected(api, made, client):
    name = made.user()
    made.permit(name, "/")
    connections = [client.connect(user=name) for _ in range(2)]
    others = client.connect()
    api.do("DELETE", path_of(name))
    assert client.run_until(lambda: all(c.closed for c in connections), 10)
    for connection in connections:
        assert connection.closed.said == ("connection", 320, f"CONNECTION_FORCED - user '{name}' is deleted")
    assert others.channel() and not others.closed
    with pytest.raises(Closed):
        client.connect(user=name)


def test_new_password_closes_no_connection(api, made, client):
    name = made.user()
    made.permit(name, "/")
    mine = client.connect(user=name)
    made.user(password="new", tags="management")
    assert mine.channel() and not mine.closed
    assert client.connect(user=name, password="new").channel()


def test_answered_changes_survive_a_kill(under):
    """Leveret's alone: a RabbitMQ that runs already is not killed."""
    if under.name != "leveret":
        pytest.skip("it belongs to somebody else")
    broker = under.start()
    try:
        api = broker.api
        api.do("PUT", "/api/vhosts/v", {"description": "d", "tags": "a,b", "default_queue_type": "quorum"})
        api.do("POST", "/api/vhosts/v/deletion/protection")
        for name in ("kept", "gone"):
            api.do("PUT", f"/api/users/{name}", {"password": name, "tags": "monitoring", "limits": {"max-channels": 2}})
            api.do("PUT", f"/api/permissions/v/{name}", {"configure": "a", "write": "b", "read": ""})
            topics = {"exchange": "amq.topic", "write": "w", "read": "r"}
            api.do("PUT", f"/api/topic-permissions/v/{name}", topics)
        api.do("PUT", "/api/vhost-limits/v/max-queues", {"value": 5})
        api.do("DELETE", "/api/users/gone")
        paths = ("users", "permissions", "topic-permissions", "vhost-limits", "user-limits", "vhosts/v")
        before = [api.ask("/api/" + path).json for path in paths]
        broker.kill_and_start_again()
        assert [broker.api.ask("/api/" + path).json for path in paths] == before
        assert broker.api.ask("/api/whoami", user="kept").json["tags"] == ["monitoring"]
    finally:
        broker.stop()


def test_two_changes_at_once_lose_nothing(api, made, prefix):
    names = [prefix + str(n) for n in range(24)]
    made.users += names
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made_now = pool.map(lambda name: api.ask(path_of(name), method="PUT", body={"tags": name}).status, names)
        assert list(made_now) == [201] * len(names)
        granted = pool.map(lambda name: made.permit(name, "/"), names)
        assert len(list(granted)) == len(names)
    assert set(names) <= {user["name"] for user in api.ask("/api/users").json}
    assert set(names) <= {p["user"] for p in api.ask("/api/permissions").json}
