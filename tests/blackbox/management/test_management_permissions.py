"""The management API: permissions and topic permissions, and that they count on connections that are open."""

import pytest

from brokers import quoted

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}
NO_PLACE = {"error": "bad_request", "reason": "vhost_or_user_not_found"}


@pytest.fixture
def place(made):
    """A vhost and a user."""
    return made.vhost(), made.user()


def test_permissions_are_set_changed_and_cleared(api, place):
    vhost, user = place
    path = "/api/permissions/" + quoted(vhost, user)
    assert api.ask(path).json == NOT_FOUND
    assert api.ask(path, method="PUT", body={"configure": ".*", "write": "", "read": "a"}).status == 201
    assert api.ask(path, method="PUT", body={"configure": "x", "write": "", "read": "a"}).status == 204
    expected = {"user": user, "vhost": vhost, "configure": "x", "write": "", "read": "a"}
    assert api.ask(path).json == expected
    for where in ("permissions", "vhosts/" + quoted(vhost) + "/permissions", "users/" + quoted(user) + "/permissions"):
        assert expected in api.ask("/api/" + where).json, where
    assert api.ask(path + "?columns=user").json == {"user": user}
    assert (api.ask(path, method="DELETE").status, api.ask(path, method="DELETE").json) == (204, NOT_FOUND)
    assert api.ask(path).json == NOT_FOUND


def test_creator_of_a_vhost_has_all_permissions_in_it(api, made):
    vhost = made.vhost()
    everything = {"user": "guest", "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"}
    assert api.ask("/api/permissions/" + quoted(vhost, "guest")).json == everything


def test_topic_permissions_are_set_changed_and_cleared(api, place):
    vhost, user = place
    path = "/api/topic-permissions/" + quoted(vhost, user)
    sent = {"exchange": "amq.topic", "write": "^a", "read": "{username}"}
    assert api.ask(path).json == NOT_FOUND
    assert api.ask(path, method="PUT", body=sent).status == 201
    assert api.ask(path, method="PUT", body=sent | {"write": "^b"}).status == 204
    assert api.ask(path, method="PUT", body=sent | {"exchange": ""}).status == 204
    expected = [{"user": user, "vhost": vhost} | sent | changed for changed in ({"exchange": ""}, {"write": "^b"})]
    assert api.ask(path).json == expected
    assert [p for p in api.ask("/api/topic-permissions").json if p["vhost"] == vhost] == expected
    for where in ("vhosts/" + quoted(vhost), "users/" + quoted(user)):
        assert api.ask(f"/api/{where}/topic-permissions").json == expected, where
    assert api.ask(path + "/none", method="DELETE").status == 204
    assert api.ask(path + "/amq.topic").json == expected
    assert api.ask(path + "/amq.topic", method="DELETE").status == 204
    assert api.ask(path).json == expected[:1]
    assert (api.ask(path, method="DELETE").status, api.ask(path, method="DELETE").json) == (204, NOT_FOUND)


GOOD = {
    "permissions": {"configure": ".*", "write": ".*", "read": ".*"},
    "topic-permissions": {"exchange": "amq.topic", "write": ".*", "read": ".*"},
}


@pytest.mark.parametrize("family", GOOD)
def test_absent_users_and_vhosts_are_refused(api, place, prefix, family):
    vhost, user = place
    nope = prefix + "nope"
    for names in ((nope, user), (vhost, nope), (nope, nope)):
        path = f"/api/{family}/" + quoted(*names)
        for body in (GOOD[family], {}):
            answer = api.ask(path, method="PUT", body=body)
            assert (answer.status, answer.json) == (400, NO_PLACE)
        assert (api.ask(path).json, api.ask(path, method="DELETE").json) == (NOT_FOUND, NOT_FOUND)
    for owner in ("vhosts", "users"):
        assert api.ask(f"/api/{owner}/{nope}/{family}").json == NOT_FOUND
    assert api.ask(f"/api/{family}/" + quoted(vhost)).json == NOT_FOUND


@pytest.mark.parametrize("family", GOOD)
def test_missing_fields_are_named(api, place, family):
    path = f"/api/{family}/" + quoted(*place)
    keys = list(GOOD[family])
    for body, missing in (({}, keys), (None, keys), ({keys[0]: "amq.topic"}, keys[1:])):
        answer = api.ask(path, method="PUT", body=body)
        reason = ",".join(f"{{key_missing,{key}}}" for key in missing)
        assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": f"[{reason}]"})
    assert api.ask(path).status == 404


@pytest.mark.parametrize("family", GOOD)
def test_a_pattern_that_is_none_is_refused(api, place, family):
    path = f"/api/{family}/" + quoted(*place)
    for key in ("write", "read"):
        for pattern in ("[", "(", "*"):
            answer = api.ask(path, method="PUT", body=GOOD[family] | {key: pattern})
            assert (answer.status, answer.json["error"]) == (400, "bad_request")
            assert "invalid_regexp" in answer.json["reason"]
    assert api.ask(path).status == 404


@pytest.mark.better
@pytest.mark.parametrize("family", GOOD)
def test_a_pattern_is_a_text(api, place, by_broker, family):
    for value in (7, None, [], {}):
        body = GOOD[family] | {"read": value}
        status = api.ask(f"/api/{family}/" + quoted(*place), method="PUT", body=body).status
        assert (status == 400) == by_broker(rabbitmq=value == [] and status == 400, leveret=True)


def test_a_topic_permission_needs_its_exchange(api, place):
    path = "/api/topic-permissions/" + quoted(*place)
    answer = api.ask(path, method="PUT", body=GOOD["topic-permissions"] | {"exchange": "none"})
    reason = ["no_such_exchange", "none"]
    assert (answer.status, answer.json["reason"]) == (400, reason)


# --- connections that are open


@pytest.fixture
def open_channel(made, client, place):
    """`open_channel(permissions)`: a channel of the user in the vhost."""
    vhost, user = place

    def open_channel(**permissions):
        made.permit(user, vhost, **permissions)
        return client.channel(user=user, vhost=vhost)

    return open_channel


def refusal(permission, resource, name, place):
    vhost, user = place
    return f"{permission} access to {resource} '{name}' in vhost '{vhost}' refused for user '{user}'"


def test_a_lost_permission_counts_for_the_next_declaration(made, place, open_channel):
    mine = open_channel()
    assert mine.queue("classic", exclusive=True)
    made.permit(place[1], place[0], configure="^$")
    name = mine.client.name("other")
    mine.refuses(lambda c: c.queue("classic", name), 403, refusal("configure", "queue", name, place))


def test_a_new_permission_counts_for_the_next_declaration(made, place, open_channel):
    mine = open_channel(configure="^$")
    made.permit(place[1], place[0])
    assert mine.queue("classic", exclusive=True)


def test_without_any_permissions_nothing_is_allowed_on_an_open_connection(made, place, open_channel):
    mine = open_channel()
    made.forbid(place[1], place[0])
    name = mine.client.name("q")
    mine.refuses(lambda c: c.queue("classic", name), 403, refusal("configure", "queue", name, place))
    assert not mine.connection.closed
    again = mine.connection.channel()
    again.refuses(lambda c: c.publish("k", "m"), 403, refusal("write", "exchange", "amq.default", place))


@pytest.mark.better
def test_a_publisher_loses_his_permission_at_once(made, place, open_channel, by_broker):
    """RabbitMQ's channels remember for a while what was allowed."""
    mine = open_channel().confirm_select()
    assert mine.publish("nowhere", "before") == "a"
    made.permit(place[1], place[0], write="^$")
    if by_broker(rabbitmq=True, leveret=False):
        assert mine.publish("nowhere", "after") == "a"
    else:
        mine.refuses(lambda c: c.publish("nowhere", "after"), 403,
                     refusal("write", "exchange", "amq.default", place))


def test_topic_permissions_count_for_new_channels(api, place, open_channel):
    vhost, user = place
    mine = open_channel().confirm_select()
    assert mine.publish("a.b", "m", exchange="amq.topic") == "a"
    body = {"exchange": "amq.topic", "write": "^{username}-{vhost}", "read": ".*"}
    api.do("PUT", "/api/topic-permissions/" + quoted(vhost, user), body)
    again = mine.connection.channel().confirm_select()
    assert again.publish(f"{user}-{vhost}.x", "m", exchange="amq.topic") == "a"
    text = f"write access to topic 'a.b' in exchange 'amq.topic' in vhost '{vhost}' refused for user '{user}'"
    again.refuses(lambda c: c.publish("a.b", "m", exchange="amq.topic"), 403, text)
    api.do("DELETE", "/api/topic-permissions/" + quoted(vhost, user))
    last = mine.connection.channel().confirm_select()
    assert last.publish("a.b", "m", exchange="amq.topic") == "a"
