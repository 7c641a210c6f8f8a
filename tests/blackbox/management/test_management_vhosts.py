"""The management API: vhosts come, change and go."""

import re

import pytest

from brokers import quoted
from replies import Closed

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}
PLAIN = {"description": "", "tags": [], "default_queue_type": "classic"}


def path_of(name):
    return "/api/vhosts/" + quoted(name)


def metadata(api, name):
    return api.ask(path_of(name)).json["metadata"]


def test_a_vhost_is_made_and_removed(api, made, prefix):
    name = prefix + "v"
    made.vhosts.append(name)
    assert api.ask(path_of(name)).json == NOT_FOUND
    answer = api.ask(path_of(name), method="PUT")
    assert (answer.status, answer.text) == (201, b"")
    vhost = api.ask(path_of(name)).json
    assert (vhost["name"], vhost["metadata"]) == (name, PLAIN)
    assert {key: vhost[key] for key in PLAIN} == PLAIN
    assert (vhost["tracing"], vhost["protected_from_deletion"]) == (False, False)
    assert list(vhost["cluster_state"].values()) == ["running"]
    assert name in [vhost["name"] for vhost in api.ask("/api/vhosts").json]
    assert api.ask(path_of(name), method="PUT").status == 204
    assert (api.ask(path_of(name), method="DELETE").status, api.ask(path_of(name), method="DELETE").json) == \
        (204, NOT_FOUND)


def test_the_vhost_of_the_beginning_is_described(api):
    assert api.ask(path_of("/") + "?columns=name,description").json == \
        {"name": "/", "description": "Default virtual host"}


def test_fields_missing_in_a_body_get_their_defaults(api, made):
    name = made.vhost(description="d", tags="a, b", default_queue_type="quorum")
    assert metadata(api, name) == {"description": "d", "tags": ["a", "b"], "default_queue_type": "quorum"}
    made.vhost(description="e")
    assert metadata(api, name) == PLAIN | {"description": "e"}
    made.vhost(tags=["x", "y z"])
    assert metadata(api, name) == PLAIN | {"tags": ["x", "y z"]}
    for default in (None, "undefined"):
        made.vhost(default_queue_type=default)
        assert metadata(api, name) == PLAIN


@pytest.mark.better
def test_a_body_without_metadata_leaves_them(api, made, by_broker):
    """RabbitMQ forgets description and tags when a vhost is declared again without them."""
    name = made.vhost(description="d")
    for body in ({}, {"tracing": True}, {"tracing": "false"}):
        made.vhost(**body)
        assert metadata(api, name)["description"] == by_broker(rabbitmq="", leveret="d")


def test_tracing_is_shown_and_stays(api, made):
    name = made.vhost(tracing=True)
    made.vhost(description="d")
    assert api.ask(path_of(name)).json["tracing"] is True
    made.vhost(tracing="false")
    assert api.ask(path_of(name)).json["tracing"] is False


@pytest.mark.parametrize("body, reason", [
    ({"default_queue_type": "nope"}, "nope is not a valid queue type"),
    ({"default_queue_type": 7}, "7 is not a valid default_queue_type value"),
    ({"default_queue_type": ""}, "default_queue_type must not be an empty string"),
    ({"tracing": 7}, ["not_boolean", 7]),
    ([], "not_json"),
    (7, "not_json"),
])
def test_invalid_vhost_is_refused_and_changes_nothing(api, made, prefix, body, reason):
    known, unknown = made.vhost(description="d"), prefix + "unknown"
    for name in (known, unknown):
        answer = api.ask(path_of(name), method="PUT", body=body)
        assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason})
    assert metadata(api, known)["description"] == "d"
    assert api.ask(path_of(unknown)).status == 404


@pytest.mark.better
@pytest.mark.parametrize("body, rabbitmq", [
    ({"tags": 7}, 500), ({"tags": [None]}, 204), ({"description": 7}, 204), ({"tracing": 7}, 400),
])
def test_fields_of_the_wrong_type_are_refused(api, made, by_broker, body, rabbitmq):
    name = made.vhost()
    assert api.ask(path_of(name), method="PUT", body=body).status == by_broker(rabbitmq=rabbitmq, leveret=400)


@pytest.mark.parametrize("name", ["a/b", "../../x", "..", "a b", "<i>", "ü", "."])
def test_names_are_data_and_no_paths(api, made, client, name):
    name = made.vhost(name)
    assert api.ask(path_of(name)).json["name"] == name
    assert client.channel(vhost=name).queue("classic", exclusive=True)
    assert api.ask(path_of(name), method="DELETE").status == 204


@pytest.mark.better
def test_a_name_that_amqp_cannot_say_is_refused(api, made, prefix, by_broker):
    name = (prefix + "x" * 255)[:256]
    made.vhosts.append(name)
    assert api.ask(path_of(name), method="PUT").status == by_broker(rabbitmq=201, leveret=400)
    assert api.ask(path_of(made.vhost((prefix + "y" * 255)[len(prefix):255]))).status == 200


def test_a_protected_vhost_stays(api, made):
    name = made.vhost()
    assert api.ask(path_of(name) + "/deletion/protection", method="POST").status == 204
    answer = api.ask(path_of(name), method="DELETE")
    reason = f"Refusing to delete virtual host '{name}' because it is protected from deletion"
    assert (answer.status, answer.json) == (412, {"error": "precondition_failed", "reason": reason})
    made.vhost(description="d")
    vhost = api.ask(path_of(name)).json
    assert vhost["protected_from_deletion"] is True
    assert vhost["metadata"] == PLAIN | {"description": "d", "protected_from_deletion": True}
    assert api.ask(path_of(name) + "/deletion/protection", method="DELETE").status == 204
    assert api.ask(path_of(name)).json["protected_from_deletion"] is False
    assert api.ask(path_of(name), method="DELETE").status == 204


def test_absent_vhost_cannot_be_protected(api, prefix):
    path = path_of(prefix + "nope") + "/deletion/protection"
    reason = f"Cannot enable deletion protection of virtual host '{prefix}nope' because it does not exist"
    answer = api.ask(path, method="POST")
    assert (answer.status, answer.json) == (404, {"error": "not_found", "reason": reason})
    assert api.ask(path, method="DELETE").json == NOT_FOUND


def test_a_vhost_is_started_where_it_runs_already(api, made, prefix):
    name, node = made.vhost(), api.ask("/api/overview").json["node"]
    assert api.ask(path_of(name) + "/start/" + quoted(node), method="POST").status == 204
    answer = api.ask(path_of(name) + "/start/nope@x", method="POST")
    assert (answer.status, answer.json["reason"]) == (400, "Unknown node: nope@x")
    answer = api.ask(path_of(prefix + "nope") + "/start/" + quoted(node), method="POST")
    reason = f'Request to node {node} failed with {{no_such_vhost,<<"{prefix}nope">>}}'
    assert (answer.status, re.sub(r"\n\s+", "", answer.json["reason"])) == (400, reason)


def test_a_removed_vhost_takes_everything_with_it(api, made, client):
    user, name = made.user(), made.vhost()
    made.permit(user, name)
    made.limit("vhost", name, max_queues=5)
    api.do("PUT", "/api/topic-permissions/" + quoted(name, user),
           {"exchange": "amq.topic", "write": "", "read": ""})
    mine, others = client.channel(user=user, vhost=name), client.connect(user="guest")
    q = mine.queue("classic")
    mine.confirm_select().publish(q, "m")
    consumer = mine.consume(q)
    assert consumer.next().body == "m"
    api.do("DELETE", path_of(name))
    assert client.run_until(lambda: mine.connection.closed, 10)
    assert mine.connection.closed.said == ("connection", 320, f"CONNECTION_FORCED - vhost '{name}' is deleted")
    assert others.channel()
    with pytest.raises(Closed) as refused:
        client.connect(user=user, vhost=name)
    assert refused.value.said == ("connection", 530, f"NOT_ALLOWED - vhost {name} not found")
    for path in ("permissions", "topic-permissions"):
        assert api.ask(f"/api/users/{quoted(user)}/{path}").json == []
    assert name not in [limits["vhost"] for limits in api.ask("/api/vhost-limits").json]
    made.vhost()
    with pytest.raises(Closed):
        client.connect(user=user, vhost=name)
    again = client.channel(vhost=name)
    assert again.queue("classic", q) == q and again.count(q) == 0
    assert api.ask("/api/vhost-limits/" + quoted(name)).json == []


def test_the_default_queue_type_is_that_of_queues_that_last(made, client):
    name = made.vhost(default_queue_type="quorum")
    ch = client.channel(vhost=name)
    types = []
    for wish, flags in (("q", {}), ("ad", {"auto_delete": True}), ("x", {"durable": False, "exclusive": True})):
        q = ch.queue(name=wish, **flags)
        types.append((wish, client.broker.api.ask("/api/queues/" + quoted(name, q)).json["type"]))
    assert types == [("q", "quorum"), ("ad", "classic"), ("x", "classic")]
    text = f"inequivalent arg 'x-queue-type' for queue '{client.name('q')}' in vhost '{name}': " \
        "received 'classic' but current is 'quorum'"
    ch.refuses(lambda c: c.queue("classic", client.name("q")), 406, text)


def test_a_removed_vhost_does_not_come_back(under):
    """Leveret's alone: a RabbitMQ that runs already is not killed. Its files are removed,
    also those left by a kill, at the next start."""
    if under.name != "leveret":
        pytest.skip("it belongs to somebody else")
    broker = under.start()
    try:
        api, vhosts = broker.api, broker.directory / "data" / "vhosts"
        before = {entry.name for entry in vhosts.iterdir()}
        api.do("PUT", "/api/vhosts/v")
        [made] = {entry.name for entry in vhosts.iterdir()} - before
        api.do("DELETE", "/api/vhosts/v")
        assert not (vhosts / made).exists()
        api.do("PUT", "/api/vhosts/w")
        [second] = {entry.name for entry in vhosts.iterdir()} - before
        assert second != made, "an id is used once"
        (vhosts / made / "pages").mkdir(parents=True)
        (vhosts / made / "rest").write_text("half removed")
        broker.kill_and_start_again()
        assert not (vhosts / made).exists()
        assert [vhost["name"] for vhost in broker.api.ask("/api/vhosts").json] == ["/", "w"]
        for name in ("w", "%2F"):
            broker.api.do("DELETE", "/api/vhosts/" + name)
        broker.kill_and_start_again()
        assert broker.api.ask("/api/vhosts").json == [], "not even the one of the beginning comes back"
    finally:
        broker.stop()


def test_vhosts_come_and_go_while_others_work(api, made, client, prefix):
    """Messages wait, on disk and in memory, when their vhost goes; what else happens is not touched by that."""
    ch = client.channel().confirm_select()
    q = ch.queue("quorum")
    for round in range(5):
        name = made.vhost(f"r{round}")
        mine = client.channel(vhost=name).confirm_select()
        mine.publish(mine.queue("quorum"), *["m" * 1000] * 50)
        ch.publish(q, f"m{round}")
        api.do("DELETE", path_of(name))
        assert client.run_until(lambda: mine.connection.closed, 10)
    assert ch.drain(q) == [f"m{round}" for round in range(5)]
