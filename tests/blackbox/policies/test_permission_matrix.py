"""Every operation, with just the permissions it needs and without each of them: by configure, write and read over AMQP
and HTTP, and by tags over HTTP."""

import re
from dataclasses import dataclass
from typing import Callable

import pytest

from brokers import quoted

PERMISSIONS = ("configure", "write", "read")
KINDS = {"q": "queue", "q2": "queue", "x": "exchange", "x2": "exchange"}


def declares_queue(ch, name, **arguments):
    ch.queue("classic", name("q"), **arguments)


@dataclass(frozen=True)
class Operation:
    """What a client does; `needs`: permission and resource, in the order in which the broker asks for them."""

    act: Callable
    needs: list
    there: tuple = ("q", "x", "x2")


AMQP = {
    "declare a queue": Operation(declares_queue, [("configure", "q")], ()),
    "declare a queue again": Operation(declares_queue, [("configure", "q")]),
    "declare a queue with a dead-letter exchange": Operation(
        lambda ch, name: declares_queue(ch, name, dead_letter_exchange=name("x")),
        [("configure", "q"), ("read", "q"), ("write", "x")], ("x",)),
    "delete a queue": Operation(lambda ch, name: ch.delete(name("q")), [("configure", "q")]),
    "purge a queue": Operation(lambda ch, name: ch.purge(name("q")), [("read", "q")]),
    "bind a queue": Operation(lambda ch, name: ch.bind(name("q"), name("x"), "k"), [("write", "q"), ("read", "x")]),
    "unbind a queue": Operation(lambda ch, name: ch.unbind(name("q"), name("x"), "k"), [("write", "q"), ("read", "x")]),
    "declare an exchange": Operation(lambda ch, name: ch.exchange(name=name("x")), [("configure", "x")], ()),
    "declare an exchange with an alternate exchange": Operation(
        lambda ch, name: ch.exchange(name=name("x"), arguments={"alternate-exchange": name("x2")}),
        [("configure", "x"), ("read", "x"), ("write", "x2")], ("x2",)),
    "delete an exchange": Operation(lambda ch, name: ch.delete_exchange(name("x")), [("configure", "x")]),
    "bind an exchange": Operation(lambda ch, name: ch.bind_exchange(name("x2"), name("x"), "k"),
                                  [("write", "x2"), ("read", "x")]),
    "unbind an exchange": Operation(lambda ch, name: ch.unbind_exchange(name("x2"), name("x"), "k"),
                                    [("write", "x2"), ("read", "x")]),
    "publish": Operation(lambda ch, name: ch.confirm_select().publish("k", "m", exchange=name("x")), [("write", "x")]),
    "publish to the default exchange": Operation(
        lambda ch, name: ch.confirm_select().publish(name("q"), "m"), [("write", "amq.default")]),
    "get": Operation(lambda ch, name: ch.get(name("q")), [("read", "q")]),
    "consume": Operation(lambda ch, name: ch.consume(name("q")), [("read", "q")]),
    "open, set the prefetch and close a channel": Operation(lambda ch, name: (ch.qos(1), ch.close()), []),
}


@pytest.fixture
def place(made, client):
    """`place(permissions, there)`: the user's channel in a new vhost, in which these things are."""
    vhost, user = made.vhost(), made.user(tags="management")

    def place(there, **permissions):
        mine = client.channel(vhost=vhost)
        for wish in there:
            name = client.name(wish)
            mine.queue("classic", name) if KINDS[wish] == "queue" else mine.exchange(name=name)
        made.permit(user, vhost, **permissions)
        return client.channel(user=user, vhost=vhost)

    place.vhost, place.user = vhost, user
    return place


def resource(client, wish):
    return ("exchange", wish) if wish == "amq.default" else (KINDS[wish], client.name(wish))


def no_more_than(needs, client):
    """The permissions that allow just this."""
    needed = {permission: [] for permission in PERMISSIONS}
    for permission, wish in needs:
        needed[permission].append(re.escape(resource(client, wish)[1]))
    return {permission: f"^({'|'.join(names)})$" if names else "" for permission, names in needed.items()}


def all_but(permission, full_name):
    return {permission: f"^(?!{re.escape(full_name)}$)"}


@pytest.mark.parametrize("operation", AMQP.values(), ids=AMQP)
def test_required_permissions_of_an_operation_are_sufficient(place, client, operation):
    mine = place(operation.there, **no_more_than(operation.needs, client))
    operation.act(mine, client.name)
    assert mine.connection.channel(), "nothing was refused"


WITHOUT = [(name, need) for name, operation in AMQP.items() for need in operation.needs]


@pytest.mark.parametrize("name, need", WITHOUT, ids=[f"{name}, without {p} {r}" for name, (p, r) in WITHOUT])
def test_without_one_of_them_it_is_refused(place, client, name, need):
    (permission, wish), operation = need, AMQP[name]
    kind, full_name = resource(client, wish)
    mine = place(operation.there, **all_but(permission, full_name))
    text = f"{permission} access to {kind} '{full_name}' in vhost '{place.vhost}' refused for user '{place.user}'"
    mine.refuses(lambda ch: operation.act(ch, client.name), 403, text)


# --- the same over HTTP


@dataclass(frozen=True)
class Request:
    """What a client asks for; Q, X, X2 and VHOST stand for names. `needs` and `there` as for an operation. A refusal
    of a change does not say why."""

    method: str
    path: str
    body: dict
    needs: list
    there: tuple = ("q", "x", "x2")
    refused: int = 401
    says_why: bool = False


MESSAGE = {"properties": {}, "routing_key": "k", "payload": "m", "payload_encoding": "string"}
ONE = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
TO_QUEUE, TO_EXCHANGE = [("write", "q"), ("read", "x")], [("write", "x2"), ("read", "x")]

REQUESTS = {
    "declare a queue": Request("PUT", "queues/VHOST/Q", {}, [("configure", "q")], ()),
    "declare a queue with a dead-letter exchange": Request(
        "PUT", "queues/VHOST/Q", {"arguments": {"x-dead-letter-exchange": "X"}},
        [("configure", "q"), ("read", "q"), ("write", "x")], ("x",)),
    "delete a queue": Request("DELETE", "queues/VHOST/Q", None, [("configure", "q")]),
    "purge a queue": Request("DELETE", "queues/VHOST/Q/contents", None, [("read", "q")]),
    "get": Request("POST", "queues/VHOST/Q/get", ONE, [("read", "q")], says_why=True),
    "declare an exchange": Request("PUT", "exchanges/VHOST/X", {"type": "direct"}, [("configure", "x")], ()),
    "declare an exchange with an alternate exchange": Request(
        "PUT", "exchanges/VHOST/X", {"type": "direct", "arguments": {"alternate-exchange": "X2"}},
        [("configure", "x"), ("read", "x"), ("write", "x2")], ("x2",)),
    "delete an exchange": Request("DELETE", "exchanges/VHOST/X", None, [("configure", "x")]),
    "publish": Request("POST", "exchanges/VHOST/X/publish", MESSAGE, [("write", "x")], refused=400, says_why=True),
    "bind a queue": Request("POST", "bindings/VHOST/e/X/q/Q", {"routing_key": "k"}, TO_QUEUE),
    "unbind a queue": Request("DELETE", "bindings/VHOST/e/X/q/Q/~", None, TO_QUEUE),
    "bind an exchange": Request("POST", "bindings/VHOST/e/X/e/X2", {"routing_key": "k"}, TO_EXCHANGE),
    "unbind an exchange": Request("DELETE", "bindings/VHOST/e/X/e/X2/~", None, TO_EXCHANGE),
}


@pytest.fixture
def request_of(place, client, api):
    """`request_of(request, permissions)`: what the user is answered who has these."""

    def request_of(request, **permissions):
        mine = place(request.there, **permissions)
        names = {wish.upper(): client.name(wish) for wish in KINDS} | {"VHOST": place.vhost}
        parts, body = request.path.split("/"), request.body
        if body and "arguments" in body:
            body = body | {"arguments": {key: names[value] for key, value in body["arguments"].items()}}
        if parts[-1] == "~":
            owner = client.channel(vhost=place.vhost)
            bind = owner.bind if parts[-3] == "q" else owner.bind_exchange
            bind(names[parts[-2]], names["X"], "")
        mine.close()
        path = "/api/" + quoted(*(names.get(part, part) for part in parts))
        return api.ask(path, user=place.user, method=request.method, body=body)

    return request_of


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_required_permissions_of_a_request_are_sufficient(request_of, client, request_):
    answer = request_of(request_, **no_more_than(request_.needs, client))
    assert answer.status in (200, 201, 204), answer.text


REQUESTS_WITHOUT = [(name, need) for name, request in REQUESTS.items() for need in request.needs]


@pytest.mark.parametrize("name, need", REQUESTS_WITHOUT,
                         ids=[f"{name}, without {p} {r}" for name, (p, r) in REQUESTS_WITHOUT])
def test_without_one_of_them_the_request_is_refused(request_of, place, client, name, need):
    (permission, wish), wanted = need, REQUESTS[name]
    kind, full_name = resource(client, wish)
    answer = request_of(wanted, **all_but(permission, full_name))
    assert answer.status == wanted.refused, answer.text
    text = f"{permission} access to {kind} '{full_name}' in vhost '{place.vhost}' refused for user '{place.user}'"
    assert answer.json["reason"].endswith(text if wanted.says_why else "Access refused.")


# --- what tags open over HTTP


TAGS = ("none", "management", "policymaker", "monitoring", "administrator")
NO_TAG, NOT_ADMINISTRATOR = "Not management user", "Not administrator user"
NOT_MONITOR, NOT_HIS = "Not monitor user", "User not authorised to access object"
ADMINISTRATORS = (NOT_ADMINISTRATOR,) * 3 + (200,)

# Method, path and body; then what is answered to each tag after "none". MINE and OTHERS are vhosts, one of which the
# user has permissions in; USER is another user, NOBODY does not exist.
HTTP = [
    ("GET", "whoami", None, (200, 200, 200, 200)),
    ("GET", "users", None, ADMINISTRATORS),
    ("GET", "users/USER", None, ADMINISTRATORS),
    ("GET", "users/NOBODY", None, (NOT_ADMINISTRATOR,) * 3 + (404,)),
    ("PUT", "users/USER", {"tags": ""}, ADMINISTRATORS),
    ("PUT", "users/USER", {}, (NOT_ADMINISTRATOR,) * 3 + (400,)),
    ("DELETE", "users/NOBODY", None, (NOT_ADMINISTRATOR,) * 3 + (404,)),
    ("POST", "users/bulk-delete", {"users": []}, ADMINISTRATORS),
    ("GET", "users/without-permissions", None, ADMINISTRATORS),
    ("GET", "users/USER/permissions", None, ADMINISTRATORS),
    ("GET", "users/USER/topic-permissions", None, ADMINISTRATORS),
    ("GET", "permissions", None, ADMINISTRATORS),
    ("GET", "permissions/MINE/USER", None, (NOT_ADMINISTRATOR,) * 3 + (404,)),
    ("PUT", "permissions/MINE/USER", {}, (NOT_ADMINISTRATOR,) * 3 + (400,)),
    ("DELETE", "permissions/MINE/USER", None, (NOT_ADMINISTRATOR,) * 3 + (404,)),
    ("GET", "vhosts/MINE/permissions", None, ADMINISTRATORS),
    ("GET", "topic-permissions", None, ADMINISTRATORS),
    ("GET", "topic-permissions/MINE/USER", None, (NOT_ADMINISTRATOR,) * 3 + (404,)),
    ("PUT", "topic-permissions/MINE/USER", {}, (NOT_ADMINISTRATOR,) * 3 + (400,)),
    ("DELETE", "topic-permissions/MINE/USER", None, (NOT_ADMINISTRATOR,) * 3 + (404,)),
    ("GET", "vhosts/MINE/topic-permissions", None, ADMINISTRATORS),
    ("GET", "vhosts", None, (200, 200, 200, 200)),
    ("GET", "vhosts/MINE", None, ADMINISTRATORS),
    ("GET", "vhosts/NOBODY", None, (NOT_ADMINISTRATOR,) * 3 + (404,)),
    ("PUT", "vhosts/MINE", {}, ADMINISTRATORS),
    ("DELETE", "vhosts/NOBODY", None, (NOT_ADMINISTRATOR,) * 3 + (404,)),
    ("POST", "vhosts/MINE/deletion/protection", None, ADMINISTRATORS),
    ("DELETE", "vhosts/MINE/deletion/protection", None, ADMINISTRATORS),
    ("POST", "vhosts/MINE/start/NOBODY", None, (NOT_ADMINISTRATOR,) * 3 + (400,)),
    ("GET", "vhost-limits", None, (200, 200, 200, 200)),
    ("GET", "vhost-limits/MINE", None, (200, 200, 200, 200)),
    ("GET", "vhost-limits/OTHERS", None, (404, 404, 200, 200)),
    ("GET", "vhost-limits/NOBODY", None, (404, 404, 404, 404)),
    ("PUT", "vhost-limits/MINE/max-queues", {"value": 5}, ADMINISTRATORS),
    ("DELETE", "vhost-limits/MINE/max-queues", None, ADMINISTRATORS),
    ("GET", "user-limits", None, ADMINISTRATORS),
    ("GET", "user-limits/USER", None, (NOT_HIS, NOT_HIS, 200, 200)),
    ("GET", "user-limits/SELF", None, (200, 200, 200, 200)),
    ("PUT", "user-limits/USER/max-channels", {"value": 5}, ADMINISTRATORS),
    ("DELETE", "user-limits/USER/max-channels", None, ADMINISTRATORS),
    ("GET", "auth/hash_password/x", None, ADMINISTRATORS),
    ("GET", "auth/attempts/NODE", None, (NOT_MONITOR, NOT_MONITOR, 200, 200)),
    ("DELETE", "auth/attempts/NODE", None, ADMINISTRATORS),
]


@pytest.fixture
def asked(api, made, prefix):
    """`asked(tag, method, path, body)`: what a user with this tag is answered: a status below 400, else 404, 400 or,
    for 401, the reason."""
    names = {"MINE": made.vhost("mine"), "OTHERS": made.vhost("others"), "USER": made.user("somebody"),
             "NOBODY": prefix + "nobody", "NODE": api.ask("/api/overview").json["node"]}

    def asked(tag, method, path, body):
        user = made.user(tag, tags="" if tag == "none" else tag)
        made.permit(user, names["MINE"], configure="^$")
        parts = [(names | {"SELF": user}).get(part, part) for part in path.split("/")]
        answer = api.ask("/api/" + quoted(*parts), user=user, method=method, body=body)
        if answer.status == 401:
            assert answer.json["error"] == "not_authorised"
            return answer.json["reason"]
        return 200 if answer.status in (200, 201, 204) else answer.status

    return asked


@pytest.mark.parametrize("method, path, body, expected", HTTP, ids=[f"{row[0]} {row[1]}" for row in HTTP])
def test_tags_and_their_requests(asked, method, path, body, expected):
    answers = {tag: asked(tag, method, path, body) for tag in TAGS}
    assert answers == dict(zip(TAGS, (NO_TAG, *expected)))


def test_queues_of_other_vhosts_are_for_administrators(asked):
    for tag, mine, others in (("management", 200, False), ("monitoring", 200, False), ("administrator", 200, True)):
        assert asked(tag, "GET", "queues/MINE", None) == mine
        assert (asked(tag, "GET", "queues/OTHERS", None) == 200) == others
