"""Policies and operator policies over the management API: who may, what is answered, and that they act at once."""

import pytest
from brokers import quoted
from definitions import User

KINDS = ("policies", "operator-policies")
NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}
NO_ENTRY = {"error": "not_found", "reason": "Not Found"}
NO_VHOST = {"error": "not_found", "reason": "vhost_not_found"}
APPLY_TO = "should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'"


@pytest.fixture(params=KINDS)
def family(request):
    """Both kinds of policies."""
    return request.param


@pytest.fixture
def paths(under, prefix, family):
    """`paths(name)`: where a policy of the test is; all are removed afterwards."""
    made = []

    def path(name):
        made.append(f"/api/{family}/" + quoted("/", prefix + name))
        return made[-1]

    yield path
    for path in made:
        under.shared().api.request("DELETE", path)


@pytest.fixture
def http(under):
    """The HTTP API of the shared broker."""
    return under.shared().api


def body(pattern="^nothing$", definition=None, **more):
    return {"pattern": pattern, "definition": definition or {"expires": 60000}} | more


def test_a_policy_is_made_shown_replaced_and_removed(http, paths, prefix, family):
    path = paths("p")
    answer = http.ask(path, method="PUT", body=body(priority=1.5, **{"apply-to": "queues"}))
    assert (answer.status, answer.text) == (201, b"")
    shown = {"vhost": "/", "name": prefix + "p", "pattern": "^nothing$", "apply-to": "queues",
             "definition": {"expires": 60000}, "priority": 1.5}
    assert http.ask(path).json == shown
    for everything in (f"/api/{family}", f"/api/{family}/%2F"):
        assert [policy for policy in http.ask(everything).json if policy["name"] == prefix + "p"] == [shown]
    other = "policies" if family == "operator-policies" else "operator-policies"
    assert http.ask(path.replace(family, other)).json == NOT_FOUND
    assert http.ask(path, method="PUT", body=body(definition={"max-length": 5, "expires": 1})).status == 204
    replaced = {"apply-to": "all", "priority": 0, "definition": {"expires": 1, "max-length": 5}}
    assert http.ask(path).json == shown | replaced
    assert list(http.ask(path).json) == ["vhost", "name", "pattern", "apply-to", "definition", "priority"]
    answer = http.ask(path, method="DELETE")
    assert (answer.status, answer.text) == (204, b"")
    for method in ("GET", "DELETE"):
        answer = http.ask(path, method=method)
        assert (answer.status, answer.json) == (404, NOT_FOUND)


def test_lists_are_in_the_order_of_names(http, paths, prefix, family):
    for name in ("b", "a", "C"):
        http.do("PUT", paths(name), body())
    names = [policy["name"] for policy in http.ask(f"/api/{family}/%2F").json]
    assert [name for name in names if name.startswith(prefix)] == [prefix + name for name in ("C", "a", "b")]


@pytest.mark.parametrize("name", ["a/b", "a b?c#d", "ä€", "%2F", "n" * 300])
def test_names_are_percent_encoded(http, paths, prefix, name):
    path = paths(name)
    assert http.ask(path, method="PUT", body=body()).status == 201
    assert http.ask(path).json["name"] == prefix + name
    assert http.ask(path, method="DELETE").status == 204


def test_a_vhost_that_is_not_there(http, family):
    path = f"/api/{family}/no%2Fsuch"
    for answer in (http.ask(path), http.ask(path + "/p"), http.ask(path + "/p", method="DELETE")):
        assert (answer.status, answer.json) == (404, NOT_FOUND)
    answer = http.ask(path + "/p", method="PUT", body=body())
    assert (answer.status, answer.json) == (404, NO_VHOST)


@pytest.mark.parametrize("sent, reason", [
    ({}, "[{key_missing,pattern},{key_missing,definition}]"),
    ({"pattern": ""}, "[{key_missing,definition}]"),
    ({"definition": {}, "priority": "x"}, "[{key_missing,pattern}]"),
    ([], "not_json"),
    (5, "not_json"),
])
def test_missing_fields_are_named(http, paths, sent, reason):
    answer = http.ask(paths("p"), method="PUT", body=sent)
    assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason})


@pytest.mark.parametrize("wrong, complaints", [
    ({"definition": {"expires": 0}}, ["0 is not a valid queue expiry"]),
    ({"definition": {"expires": "5"}}, ['<<"5">> is not a valid queue expiry']),
    ({"definition": {"expires": None}}, ["null is not a valid queue expiry"]),
    ({"definition": {"max-length": -1}}, ["-1 is not a valid maximum length"]),
    ({"definition": {"overflow": "bogus"}}, ['<<"bogus">> is not a valid overflow value']),
    ({"definition": {"z": 1, "foo": "bar"}},
     ['[{<<"foo">>,<<"bar">>},{<<"z">>,1}] are not recognised policy settings']),
    ({"pattern": 5}, ["pattern should be a binary but was 5"]),
    ({"pattern": "a" * 1025}, ["pattern must not exceed 1024 bytes"]),
    ({"apply-to": "foo"}, [f"apply-to 'foo' unrecognised; {APPLY_TO}"]),
    ({"apply-to": None}, [f"apply-to 'null' unrecognised; {APPLY_TO}"]),
    ({"priority": "1"}, ['priority should be a number, actually was <<"1">>']),
    ({"priority": True, "pattern": None, "definition": {"expires": -7}}, [
        "-7 is not a valid queue expiry", "pattern should be a binary but was null",
        "priority should be a number, actually was true",
    ]),
])
def test_invalid_policy_is_refused_and_changes_nothing(http, paths, wrong, complaints):
    path = paths("p")
    http.do("PUT", path, body())
    before = http.ask(path).json
    answer = http.ask(path, method="PUT", body=body() | wrong)
    assert answer.status == 400
    assert answer.json == {"error": "bad_request", "reason": "\n".join(["Validation failed\n", *complaints, ""])}
    assert http.ask(path).json == before


def test_an_empty_definition_and_a_pattern_that_is_none(http, paths):
    for wrong, complaint in (({"definition": {}}, "no policy provided"),
                             ({"pattern": "[a"}, "pattern should be regular expression but is invalid: ")):
        answer = http.ask(paths("p"), method="PUT", body=body() | wrong)
        assert (answer.status, answer.json["error"]) == (400, "bad_request")
        assert answer.json["reason"].startswith("Validation failed\n\n" + complaint)


@pytest.mark.better
def test_a_definition_that_is_no_object(http, paths, by_broker):
    for wrong in ([], "x", 5, None):
        sent = {"pattern": "", "definition": wrong}
        assert http.ask(paths("p"), method="PUT", body=sent).status == by_broker(rabbitmq=500, leveret=400)


@pytest.mark.better
def test_a_dead_letter_routing_key_must_fit_into_a_delivery(http, prefix, by_broker):
    """RabbitMQ takes it, and closes the connection of the consumer of such a dead letter."""
    path = "/api/policies/" + quoted("/", prefix + "p")
    answer = http.ask(path, method="PUT", body=body(definition={"dead-letter-routing-key": "k" * 256}))
    assert answer.status == by_broker(rabbitmq=201, leveret=400)
    http.request("DELETE", path)


def test_operators_have_fewer_keys(http, paths, family):
    answer = http.ask(paths("p"), method="PUT", body=body(definition={"dead-letter-exchange": "x"}))
    assert answer.status == (400 if family == "operator-policies" else 201)
    if answer.status == 400:
        settings = '[{<<"dead-letter-exchange">>,<<"x">>}]'
        assert answer.json["reason"] == f"Validation failed\n\n{settings} are not recognised policy settings\n"


@pytest.mark.better
def test_the_type_of_a_body_is_not_asked_for(http, paths, family, by_broker):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8"):
        answer = http.ask(paths("p"), method="PUT", body=body(), content_type=kind)
        refused = family == "operator-policies" and "json" not in kind
        assert (answer.status < 300) == by_broker(rabbitmq=not refused, leveret=True), kind


def test_no_body_counts_as_an_empty_one(http):
    answer = http.ask("/api/policies/%2F/p", method="PUT")
    reason = "[{key_missing,pattern},{key_missing,definition}]"
    assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason})


@pytest.mark.parametrize("path, methods", [
    ("", {"GET", "HEAD"}), ("/%2F", {"GET", "HEAD"}), ("/%2F/p", {"GET", "HEAD", "PUT", "DELETE"}),
])
def test_methods(http, family, path, methods):
    answer = http.ask(f"/api/{family}{path}", method="POST", body={})
    assert answer.status == 405
    assert methods <= set(answer.headers["allow"].replace(" ", "").split(","))


# --- who may


@pytest.fixture
def tagged(defined, prefix):
    """`tagged(method, path, tag)`: what a user with this tag is answered; he may enter `/`, and not the vhost `other`."""
    users = [User(tag, tags=(tag,)) for tag in ("management", "policymaker", "monitoring")]
    users.append(User("administrator", configure=None, tags=("administrator",)))
    defined(users=users, vhosts=[prefix + "other"])
    api = defined.client.broker.api

    def tagged(method, path, tag):
        path = path.replace("other", prefix + "other").replace("NAME", prefix + "p")
        return api.ask(path, user=prefix + tag, method=method, body=body() if method == "PUT" else None)

    return tagged


@pytest.mark.parametrize("tag", ["management", "monitoring"])
def test_without_policymaker_a_policy_is_out_of_reach(tagged, tag):
    for vhost in ("%2F", "other", "nope"):
        for method in ("GET", "PUT", "DELETE"):
            answer = tagged(method, f"/api/policies/{vhost}/NAME", tag)
            expected = {"error": "not_authorised", "reason": "User not authorised to access object"}
            assert (answer.status, answer.json) == (401, expected), (vhost, method)


@pytest.mark.parametrize("tag", ["management", "monitoring", "policymaker"])
def test_without_administrator_an_operator_policy_is_out_of_reach(tagged, tag):
    for method in ("GET", "PUT", "DELETE"):
        answer = tagged(method, "/api/operator-policies/%2F/NAME", tag)
        assert (answer.status, answer.json) == (401, {"error": "not_authorised", "reason": "Not administrator user"})


def test_a_policymaker_may_where_he_may_enter(tagged, prefix):
    assert tagged("PUT", "/api/policies/%2F/NAME", "policymaker").status == 201
    assert tagged("GET", "/api/policies/%2F/NAME", "policymaker").json["name"] == prefix + "p"
    assert tagged("DELETE", "/api/policies/%2F/NAME", "policymaker").status == 204
    for method in ("GET", "PUT", "DELETE"):
        answer = tagged(method, "/api/policies/other/NAME", "policymaker")
        assert (answer.status, answer.json) == (404, NO_ENTRY), method
    assert tagged("PUT", "/api/policies/nope/NAME", "policymaker").json == NO_VHOST
    assert tagged("DELETE", "/api/policies/nope/NAME", "policymaker").json == NOT_FOUND


def test_an_administrator_may_everywhere(tagged, family):
    for vhost in ("%2F", "other"):
        assert tagged("PUT", f"/api/{family}/{vhost}/NAME", "administrator").status == 201
        assert tagged("DELETE", f"/api/{family}/{vhost}/NAME", "administrator").status == 204


@pytest.mark.parametrize("tag", ["management", "monitoring", "policymaker", "administrator"])
def test_lists_are_for_who_may_enter(tagged, family, prefix, tag):
    assert tagged("PUT", f"/api/{family}/%2F/NAME", "administrator").status == 201
    assert tagged("PUT", f"/api/{family}/other/NAME", "administrator").status == 201
    everywhere = tag == "administrator"
    try:
        listed = [p["vhost"] for p in tagged("GET", f"/api/{family}", tag).json if p["name"] == prefix + "p"]
        assert listed == (["/", prefix + "other"] if everywhere else ["/"])
        names = [policy["name"] for policy in tagged("GET", f"/api/{family}/%2F", tag).json]
        assert prefix + "p" in names
        answer = tagged("GET", f"/api/{family}/other", tag)
        assert answer.status == (200 if everywhere else 404)
        assert answer.json[0]["vhost"] == prefix + "other" if everywhere else answer.json == NO_ENTRY
    finally:
        tagged("DELETE", f"/api/{family}/%2F/NAME", "administrator")


def test_policies_need_a_login(http, family):
    for method in ("GET", "PUT", "DELETE"):
        assert http.ask(f"/api/{family}/%2F/p", user=None, method=method).status == 401
        assert http.ask(f"/api/{family}/%2F/p", password="wrong", method=method).status == 401


# --- what it does


@pytest.mark.better
def test_a_policy_acts_on_what_waits_when_the_answer_comes(http, paths, ch, client, kind, family, by_broker):
    """In RabbitMQ a moment later: the change spreads behind the answer."""
    q = ch.queue(kind)
    ch.publish(q, *"abcde")
    http.do("PUT", paths("p"), body("^" + q, {"max-length": 2}))
    if by_broker(rabbitmq=False, leveret=True):
        assert ch.count(q) == 2
    ch.reaches(q, 2)


def test_a_ttl_with_a_dead_letter_exchange_for_queues_that_are_there(http, prefix, ch, dlq, kind):
    """What the guides to TTL and dead-lettering set with rabbitmqctl, over HTTP."""
    q, path = ch.queue(kind), "/api/policies/" + quoted("/", prefix + "p")
    definition = {"message-ttl": 200, "dead-letter-exchange": "", "dead-letter-routing-key": dlq}
    http.do("PUT", path, body("^" + q, definition, **{"apply-to": "queues"}))
    try:
        ch.pause(0.3)
        ch.publish(q, "m")
        assert ch.take(dlq).deaths == [(q, "expired", 1)]
    finally:
        http.do("DELETE", path)


def test_answered_changes_survive_a_kill(under, family):
    """Leveret's alone: a RabbitMQ that runs already is not killed."""
    if under.name != "leveret":
        pytest.skip("it belongs to somebody else")
    broker = under.start()
    try:
        for name in ("kept", "cleared"):
            assert broker.api.ask(f"/api/{family}/%2F/{name}", method="PUT", body=body()).status == 201
        assert broker.api.ask(f"/api/{family}/%2F/cleared", method="DELETE").status == 204
        assert broker.api.ask(f"/api/{family}/%2F/kept", method="PUT", body=body("new")).status == 204
        broker.kill_and_start_again()
        after = broker.api.ask(f"/api/{family}").json
        assert [(policy["name"], policy["pattern"]) for policy in after] == [("kept", "new")]
    finally:
        broker.stop()
