"""Every operation, with just the permissions it needs and without each of them: over AMQP by configure, write and
read, over HTTP by tags."""

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
    vhost, user = made.vhost(), made.user()

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


@pytest.mark.parametrize("operation", AMQP.values(), ids=AMQP)
def test_what_an_operation_needs_is_enough(place, client, operation):
    needed = {permission: [] for permission in PERMISSIONS}
    for permission, wish in operation.needs:
        needed[permission].append(re.escape(resource(client, wish)[1]))
    patterns = {permission: f"^({'|'.join(names)})$" if names else "" for permission, names in needed.items()}
    mine = place(operation.there, **patterns)
    operation.act(mine, client.name)
    assert mine.connection.channel(), "nothing was refused"


WITHOUT = [(name, need) for name, operation in AMQP.items() for need in operation.needs]


@pytest.mark.parametrize("name, need", WITHOUT, ids=[f"{name}, without {p} {r}" for name, (p, r) in WITHOUT])
def test_without_one_of_them_it_is_refused(place, client, name, need):
    (permission, wish), operation = need, AMQP[name]
    kind, full_name = resource(client, wish)
    mine = place(operation.there, **{permission: f"^(?!{re.escape(full_name)}$)"})
    text = f"{permission} access to {kind} '{full_name}' in vhost '{place.vhost}' refused for user '{place.user}'"
    mine.refuses(lambda ch: operation.act(ch, client.name), 403, text)


# --- over HTTP


TAGS = ("none", "management", "policymaker", "monitoring", "administrator")
NO_TAG, NOT_ADMINISTRATOR = "Not management user", "Not administrator user"
NOT_MONITOR, NOT_HIS = "Not monitor user", "User not authorised to access object"
ADMINISTRATORS = (NOT_ADMINISTRATOR,) * 3 + (200,)

# Method, path and body; then what is answered to each tag after "none". MINE and OTHERS are vhosts, one of which the
# user has permissions in; USER is somebody else, NOBODY is nobody.
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
def test_what_each_tag_opens(asked, method, path, body, expected):
    answers = {tag: asked(tag, method, path, body) for tag in TAGS}
    assert answers == dict(zip(TAGS, (NO_TAG, *expected)))


def test_queues_of_other_vhosts_are_for_administrators(asked):
    for tag, mine, others in (("management", 200, False), ("monitoring", 200, False), ("administrator", 200, True)):
        assert asked(tag, "GET", "queues/MINE", None) == mine
        assert (asked(tag, "GET", "queues/OTHERS", None) == 200) == others
