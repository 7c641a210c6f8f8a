"""Limits of vhosts and users: over HTTP, and as clients meet them."""

import pytest

from brokers import quoted
from replies import Closed

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}
LIMITS = {"vhost": ("max-connections", "max-queues"), "user": ("max-channels", "max-connections")}


@pytest.fixture(params=LIMITS)
def kind(request):
    return request.param


@pytest.fixture
def owner(made, kind):
    """A vhost or a user."""
    return made.vhost() if kind == "vhost" else made.user()


def test_limits_are_set_shown_and_cleared(api, kind, owner):
    path = f"/api/{kind}-limits/" + quoted(owner)
    assert api.ask(path).json == []
    first, second = LIMITS[kind]
    for name, value in ((first, 5), (first, 6), (second, -1)):
        answer = api.ask(f"{path}/{name}", method="PUT", body={"value": value})
        assert (answer.status, answer.text) == (204, b"")
    expected = {kind: owner, "value": {first: 6, second: -1}}
    assert api.ask(path).json == [expected]
    assert expected in api.ask(f"/api/{kind}-limits").json
    if kind == "user":
        assert api.ask("/api/users/" + quoted(owner)).json["limits"] == expected["value"]
    for name in (second, second, "nope"):
        assert api.ask(f"{path}/{name}", method="DELETE").status == 204
    assert api.ask(path).json == [{kind: owner, "value": {first: 6}}]
    assert api.ask(f"{path}/{first}", method="DELETE").status == 204
    assert api.ask(path).json == []


@pytest.mark.parametrize("value, shown", [
    ("5", '<<"5">>'), (1.5, "1.5"), (5.0, "5.0"), (None, "null"), (True, "true"),
])
def test_a_limit_is_an_integer(api, kind, owner, value, shown):
    name = LIMITS[kind][1]
    answer = api.ask(f"/api/{kind}-limits/{quoted(owner, name)}", method="PUT", body={"value": value})
    reason = f"{name} should be a number, actually was {shown}"
    reason = f"Validation failed\n\n{reason}\n" if kind == "vhost" else reason
    assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason})
    assert api.ask(f"/api/{kind}-limits/" + quoted(owner)).json == []


def test_unknown_limit_is_refused(api, kind, owner):
    answer = api.ask(f"/api/{kind}-limits/{quoted(owner, 'nope')}", method="PUT", body={"value": 1})
    reason = {"vhost": 'Validation failed\n\nUnrecognised terms [{<<"nope">>,1}] in limits\n',
              "user": 'Unrecognised terms [{<<"nope">>,1}] in user-limits'}[kind]
    assert (answer.status, answer.json["reason"]) == (400, reason)


@pytest.mark.parametrize("body, reason", [
    ({}, "[{key_missing,value}]"), ([], "not_json"), (5, "not_json"),
])
def test_a_body_without_a_value_is_refused(api, kind, owner, body, reason):
    answer = api.ask(f"/api/{kind}-limits/{quoted(owner, LIMITS[kind][0])}", method="PUT", body=body)
    assert (answer.status, answer.json["reason"]) == (400, reason)


@pytest.mark.better
def test_limits_of_an_absent_user_or_vhost(api, prefix, kind, by_broker):
    nope = prefix + "nope"
    path = f"/api/{kind}-limits/" + quoted(nope)
    no_vhost = {"error": "not_found", "reason": "vhost_not_found"}
    no_user = by_broker(rabbitmq=["no_such_user", nope], leveret=f"no_such_user: {nope}")
    put = {"vhost": (404, no_vhost), "user": (400, {"error": "bad_request", "reason": no_user})}[kind]
    answer = api.ask(f"{path}/max-connections", method="PUT", body={"value": 1})
    assert (answer.status, answer.json) == put
    answer = api.ask(f"{path}/max-connections", method="DELETE")
    unknown = by_broker(rabbitmq=no_vhost, leveret=no_vhost if kind == "vhost" else NOT_FOUND)
    assert (answer.status, answer.json) == (404, unknown)
    assert api.ask(path).json == NOT_FOUND


# --- as clients meet them


@pytest.fixture
def place(made):
    """A vhost, and a user who may do everything there."""
    vhost, user = made.vhost(), made.user()
    made.permit(user, vhost)
    return vhost, user


def refused(client, vhost, user):
    with pytest.raises(Closed) as refused:
        client.connect(user=user, vhost=vhost)
    return refused.value.said


def no_more_connections(kind, max, vhost, user):
    text = {
        "vhost": f"access to vhost '{vhost}' refused for user '{user}': connection limit ({max}) is reached",
        "user": f"connection refused for user '{user}': user connection limit ({max}) is reached",
    }[kind]
    return "connection", 530, f"NOT_ALLOWED - {text}"


def eventually_connects(client, vhost, user):
    """The broker hears of the end of a connection a moment after its client."""
    def connects():
        try:
            return client.connect(user=user, vhost=vhost)
        except Closed:
            return None

    connection = None
    for _ in range(200):
        connection = connects()
        if connection:
            break
        client.run_until(lambda: False, 0.05)
    return connection


def test_connections(made, client, place, kind):
    vhost, user = place
    owner = vhost if kind == "vhost" else user
    made.limit(kind, owner, max_connections=2)
    first, second = (client.connect(user=user, vhost=vhost) for _ in range(2))
    assert refused(client, vhost, user) == no_more_connections(kind, 2, vhost, user)
    second.close()
    assert eventually_connects(client, vhost, user)
    made.limit(kind, owner, max_connections=0)
    assert first.channel(), "those that are open stay"
    assert refused(client, vhost, user) == no_more_connections(kind, 0, vhost, user)
    for none in (-1, None):
        made.limit(kind, owner, max_connections=none)
        assert client.connect(user=user, vhost=vhost)


def test_a_lost_connection_makes_room(made, client, place, kind):
    vhost, user = place
    made.limit(kind, vhost if kind == "vhost" else user, max_connections=1)
    client.connect(user=user, vhost=vhost).drop()
    assert eventually_connects(client, vhost, user)


def test_the_vhost_is_asked_first_then_the_user_then_his_permissions(made, client, place):
    vhost, user = place
    made.forbid(user, vhost)
    made.limit("vhost", vhost, max_connections=0)
    made.limit("user", user, max_connections=0)
    assert refused(client, vhost, user) == no_more_connections("vhost", 0, vhost, user)
    made.limit("vhost", vhost, max_connections=None)
    assert refused(client, vhost, user) == no_more_connections("user", 0, vhost, user)
    made.limit("user", user, max_connections=None)
    text = f"NOT_ALLOWED - access to vhost '{vhost}' refused for user '{user}'"
    assert refused(client, vhost, user) == ("connection", 530, text)


@pytest.mark.alone
def test_a_limit_of_a_user_is_about_all_vhosts(made, client, place):
    vhost, user = place
    made.permit(user, "/")
    made.limit("user", user, max_connections=1)
    assert client.connect(user=user, vhost=vhost)
    assert refused(client, "/", user) == no_more_connections("user", 1, "/", user)


def test_channels(made, client, place):
    vhost, user = place
    made.limit("user", user, max_channels=2)
    a, b = (client.connect(user=user, vhost=vhost) for _ in range(2))
    a.channel(), b.channel().close(), b.channel()
    text = f"number of channels opened for user '{user}' has reached the maximum allowed user limit of 2"
    with pytest.raises(Closed) as refused:
        b.channel()
    assert refused.value.said == ("connection", 530, f"NOT_ALLOWED - {text}")
    assert not a.closed
    assert a.channel(), "what the other connection had is free"
    made.limit("user", user, max_channels=-1)
    assert [a.channel() for _ in range(5)]


def test_queues(made, client, place):
    vhost, user = place
    made.limit("vhost", vhost, max_queues=2)
    ch = client.channel(user=user, vhost=vhost)
    a, b = ch.queue("classic", "a"), ch.queue("quorum", "b")
    assert ch.queue("classic", a) == a, "what is there may be declared"
    full = "cannot declare queue '{}': queue limit in vhost '{}' ({}) is reached"
    for flags in ({}, {"exclusive": True, "durable": False}):
        c = ch.connection.channel()
        c.refuses(lambda c: c.queue("classic", client.name("c"), **flags), 406, full.format(client.name("c"), vhost, 2))
    ch.delete(a)
    assert ch.queue("classic", "c")
    made.limit("vhost", vhost, max_queues=0)
    ch.delete(b)
    ch.refuses(lambda c: c.queue("classic", b), 406, full.format(b, vhost, 0))
    made.limit("vhost", vhost, max_queues=None)
    assert client.channel(user=user, vhost=vhost).queue("classic", "d")
