"""Runtime parameters of vhosts and global parameters over HTTP."""

import pytest
from brokers import quoted
from definitions import User

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}


@pytest.fixture
def http(under):
    return under.shared().api


@pytest.fixture
def path(http, prefix):
    """`path(name)`: where a global parameter of the test is; removed afterwards."""
    made = []

    def path(name="p"):
        made.append("/api/global-parameters/" + quoted(prefix + name))
        return made[-1]

    yield path
    for one in made:
        http.request("DELETE", one)


@pytest.fixture
def operator(http, prefix):
    """Where an operator policy of the test is as a parameter; removed afterwards."""
    yield "/api/parameters/operator_policy/" + quoted("/", prefix + "p")
    http.request("DELETE", "/api/operator-policies/" + quoted("/", prefix + "p"))


def bad(reason):
    return 400, {"error": "bad_request", "reason": reason}


def invalid(*complaints):
    return bad("\n".join(["Validation failed\n", *complaints, ""]))


def said(answer):
    return answer.status, answer.json if answer.text else None


# --- global parameters


@pytest.mark.parametrize("value", [1, 2.5, "x", "", True, [], {"a": [1, 2.5, "ä", {"b": False}]}])
def test_a_global_parameter_is_set_shown_replaced_and_removed(http, path, prefix, value):
    at = path()
    shown = {"name": prefix + "p", "value": value}
    assert said(http.ask(at, method="PUT", body={"value": "old"})) == (201, None)
    assert said(http.ask(at, method="PUT", body={"value": value, "name": "other"})) == (204, None)
    assert said(http.ask(at)) == (200, shown)
    assert [one for one in http.ask("/api/global-parameters").json if one["name"] == prefix + "p"] == [shown]
    assert said(http.ask(at, method="DELETE")) == (204, None)
    for method in ("GET", "DELETE"):
        assert said(http.ask(at, method=method)) == (404, NOT_FOUND)


@pytest.mark.parametrize("sent, reason", [({}, "[{key_missing,value}]"), ([], "not_json"), (5, "not_json")])
def test_a_global_parameter_has_a_value(http, path, sent, reason):
    assert said(http.ask(path(), method="PUT", body=sent)) == bad(reason)
    assert http.ask(path()).status == 404


KIB = 1024


@pytest.mark.better
def test_global_parameters_have_a_bound(under, by_broker):
    """One of 256 KiB, all of 1 MiB; a policymaker sets them, and an import keeps to the bounds."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ takes any number of any size")
    broker = under.start()
    http = broker.api
    try:
        http.do("PUT", "/api/users/maker", {"password": "maker", "tags": "policymaker"})

        def put(name, kib):
            value = "x" * (kib * KIB - len(name) - 2)
            return http.ask("/api/global-parameters/" + name, user="maker", method="PUT", body={"value": value})

        assert said(put("a", 257)) == bad("a global parameter must not have more than 262144 bytes")
        assert [put(name, 256).status for name in "abc"] == [201, 201, 201]
        together = "all global parameters together must not have more than 1048576 bytes"
        assert said(put("d", 256)) == bad(together)
        assert http.ask("/api/global-parameters/d").status == 404
        assert put("a", 256).status == 204, "it replaces one of the same size"
        definitions = {"global_parameters": [
            {"name": "small", "value": 1}, {"name": "d", "value": "x" * (255 * KIB)}, {"name": "e", "value": "x" * 2048}]}
        refused = http.ask("/api/definitions", method="POST", body=definitions)
        assert refused.status == 400 and together in refused.json["reason"] and "item 3" in refused.json["reason"], refused.text
        assert http.ask("/api/global-parameters/small").status == 404, "all or none"
        assert http.ask("/api/global-parameters/b", user="maker", method="DELETE").status == 204
        assert put("d", 256).status == 201
        before = http.ask("/api/global-parameters").json
        broker.kill_and_start_again()
        assert broker.api.ask("/api/global-parameters").json == before
    finally:
        broker.stop()


@pytest.mark.better
def test_policies_and_labels_have_a_bound(http, prefix, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ takes any size")
    at = "/api/policies/" + quoted("/", prefix + "p")
    policy = {"pattern": "^nothing$", "definition": {"dead-letter-exchange": "x" * 8 * KIB}}
    too_long = "a policy must not have more than 8192 bytes of name, pattern and texts"
    assert said(http.ask(at, method="PUT", body=policy)) == invalid(too_long)
    labels = "tags and description must not have more than 16384 bytes"
    user, vhost = "/api/users/" + quoted(prefix + "u"), "/api/vhosts/" + quoted(prefix + "v")
    tags, of_user = ["t" * 15] * 1025, ["t" * 600] * 30
    assert said(http.ask(user, method="PUT", body={"password": "u", "tags": of_user})) == bad(labels)
    assert said(http.ask(vhost, method="PUT", body={"description": "d" * 1000, "tags": tags})) == bad(labels)
    for definitions in ({"users": [{"name": prefix + "u", "password": "u", "tags": of_user}]},
                        {"vhosts": [{"name": prefix + "v", "metadata": {"tags": tags}}]}):
        refused = http.ask("/api/definitions", method="POST", body=definitions)
        assert refused.status == 400 and labels in refused.json["reason"], refused.text
    assert http.ask(user).status == http.ask(vhost).status == http.ask(at).status == 404


def test_the_cluster_has_an_id_that_is_not_exported(http):
    value = http.ask("/api/global-parameters/internal_cluster_id").json["value"]
    assert value.startswith("rabbitmq-cluster-id-") and len(value) == len("rabbitmq-cluster-id-") + 22
    names = [one["name"] for one in http.ask("/api/definitions").json["global_parameters"]]
    assert "internal_cluster_id" not in names


@pytest.mark.better
def test_the_name_of_the_cluster_is_for_administrators(under, http, by_broker, prefix):
    """By whichever path it is changed."""
    user = prefix + "maker"
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ lets a policymaker change it")
    name = http.ask("/api/cluster-name").json
    http.do("PUT", "/api/users/" + quoted(user), {"password": user, "tags": "policymaker"})
    try:
        path = "/api/global-parameters/cluster_name"
        for method, body in [("PUT", {"value": "mine"}), ("DELETE", None)]:
            assert http.ask(path, user=user, method=method, body=body).status == 401
        assert http.ask("/api/global-parameters", user=user).status == 200
        assert http.ask("/api/cluster-name").json == name
    finally:
        http.do("DELETE", "/api/users/" + quoted(user))


@pytest.mark.alone
@pytest.mark.better
def test_the_name_of_the_cluster_is_a_global_parameter(under, http, prefix, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("it is shared, and others look at its name")
    before = http.ask("/api/cluster-name").json
    assert said(http.ask("/api/cluster-name", method="PUT", body={"name": prefix})) == (204, None)
    assert http.ask("/api/global-parameters/cluster_name").json == {"name": "cluster_name", "value": prefix}
    assert http.ask("/api/cluster-name").json == {"name": prefix}
    assert http.ask("/api/overview").json["cluster_name"] == prefix
    assert said(http.ask("/api/cluster-name", method="PUT", body={})) == bad("[{key_missing,name}]")
    assert http.ask("/api/cluster-name", method="PUT", body={"name": 5}).status == 400
    http.do("DELETE", "/api/global-parameters/cluster_name")
    assert http.ask("/api/cluster-name").json == before


@pytest.mark.better
def test_a_global_parameter_survives_a_kill(under, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("it runs on")
    broker = under.start()
    try:
        broker.api.do("PUT", "/api/global-parameters/p", {"value": {"a": [None]}})
        before = broker.api.ask("/api/global-parameters").json
        broker.kill_and_start_again()
        assert broker.api.ask("/api/global-parameters").json == before
    finally:
        broker.stop()


# --- parameters of vhosts


def test_operator_policies_are_parameters(http, operator, prefix):
    value = {"pattern": "^nothing$", "definition": {"expires": 60000}, "priority": 2, "apply-to": "queues"}
    shown = {"value": value, "vhost": "/", "component": "operator_policy", "name": prefix + "p"}
    assert said(http.ask(operator, method="PUT", body={"value": value})) == (201, None)
    assert said(http.ask(operator, method="PUT", body={"value": value})) == (204, None)
    assert said(http.ask(operator)) == (200, shown)
    for listed in ("", "/operator_policy", "/operator_policy/%2F"):
        everything = http.ask("/api/parameters" + listed).json
        assert [one for one in everything if one["name"] == prefix + "p"] == [shown], listed
    policy = http.ask("/api/operator-policies/" + quoted("/", prefix + "p")).json
    assert policy == value | {"name": prefix + "p", "vhost": "/"}
    assert said(http.ask(operator, method="DELETE")) == (204, None)
    for method in ("GET", "DELETE"):
        assert said(http.ask(operator, method=method)) == (404, NOT_FOUND)


@pytest.mark.parametrize("value, complaints", [
    (5, ["NAME not a list 5"]),
    ({}, ['Key "definition" not found in NAME', 'Key "pattern" not found in NAME', 'Key "priority" not found in NAME']),
    ({"pattern": "", "definition": {"expires": 0}},
     ["0 is not a valid queue expiry", 'Key "priority" not found in NAME']),
    ({"pattern": "", "definition": {"expires": 1}, "priority": 0, "extra": 1},
     ['Unrecognised terms [{<<"extra">>,1}] in NAME']),
    ({"pattern": "", "definition": {"expires": 1}, "priority": "a"},
     ['priority should be a number, actually was <<"a">>']),
])
def test_invalid_parameter_is_refused_with_its_reason(http, operator, prefix, value, complaints):
    expected = invalid(*(complaint.replace("NAME", prefix + "p") for complaint in complaints))
    assert said(http.ask(operator, method="PUT", body={"value": value})) == expected
    assert said(http.ask(operator)) == (404, NOT_FOUND)


def test_other_components_are_not_there(http):
    path = "/api/parameters/nope/%2F/p"
    assert said(http.ask(path, method="PUT", body={"value": {}})) == invalid("component nope not found")
    assert said(http.ask(path, method="PUT", body={})) == bad("[{key_missing,value}]")
    assert said(http.ask(path)) == said(http.ask(path, method="DELETE")) == (404, NOT_FOUND)
    for listed in ("/nope", "/nope/%2F", "/shovel"):
        assert said(http.ask("/api/parameters" + listed)) == (200, [])
    assert said(http.ask("/api/parameters/nope/no%2Fsuch")) == (404, NOT_FOUND)
    answer = http.ask("/api/parameters/nope/no%2Fsuch/p", method="PUT", body={"value": {}})
    assert said(answer) == (404, {"error": "not_found", "reason": "vhost_not_found"})


@pytest.mark.better
def test_policies_can_only_be_looked_at(http, prefix, by_broker):
    path = quoted("/", prefix + "p")
    value = {"pattern": "^nothing$", "apply-to": "all", "priority": 0, "definition": {"expires": 60000}}
    http.do("PUT", "/api/policies/" + path, value)
    try:
        shown = {"value": value, "vhost": "/", "component": "policy", "name": prefix + "p"}
        assert said(http.ask("/api/parameters/policy/" + path)) == (200, shown)
        assert shown in http.ask("/api/parameters/policy/%2F").json
        assert shown not in http.ask("/api/parameters").json
        said_no = bad("policies may not be set using this method")
        assert said(http.ask("/api/parameters/policy/" + path, method="PUT", body={"value": value})) == said_no
        answer = http.ask("/api/parameters/policy/" + path, method="DELETE")
        assert answer.status == by_broker(rabbitmq=500, leveret=400)
    finally:
        http.do("DELETE", "/api/policies/" + path)


@pytest.mark.better
def test_parameters_need_tags(defined, prefix, by_broker):
    """In RabbitMQ a policymaker may change operator policies here, and only here."""
    tags = ("management", "monitoring", "policymaker", "administrator")
    defined(users=[User(tag, tags=(tag,)) for tag in tags])
    api = defined.client.broker.api
    at, operator = "/api/global-parameters/" + prefix + "p", "/api/parameters/operator_policy/%2F/" + prefix + "p"
    value = {"pattern": "^nothing$", "priority": 0, "definition": {"expires": 60000}, "apply-to": "all"}
    for tag in tags:
        def status(path, method="GET", body=None, user=prefix + tag):
            return api.ask(path, user=user, method=method, body=body).status

        may = tag in ("policymaker", "administrator")
        assert (status("/api/parameters") == 200) == may
        assert (status("/api/global-parameters") == 200) == may
        assert (status(at, "PUT", {"value": 1}) == 201) == may
        assert (status(at, "DELETE") == 204) == may
        may = tag == "administrator" or by_broker(rabbitmq=tag == "policymaker", leveret=False)
        assert (status(operator, "PUT", {"value": value}) == 201) == may
        assert (status(operator, "DELETE") == 204) == may
