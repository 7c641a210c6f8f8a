"""What is in force and why (`explain`), and what a policy would do (`dry-run`): RabbitMQ has neither."""

import pytest
from brokers import quoted
from definitions import User
from live_policies import live_policy

pytestmark = pytest.mark.better

# Longer than a busy machine takes from the publish of the last message to the effect of the policy.
TTL_MS = 3000


@pytest.fixture
def http(under, by_broker):
    """The HTTP API of a broker that has these."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such paths")
    return under.shared().api


def explain(http, name, what="queues"):
    answer = http.ask(f"/api/{what}/" + quoted("/", name) + "/explain")
    assert answer.status == 200
    return answer.json


def keys(explained):
    return {key["key"]: key for key in explained["keys"]}


def test_queue_without_arguments_and_policies(http, ch, by_broker, kind):
    explained = explain(http, q := ch.queue(kind))
    told = explained.pop("keys")
    assert explained == {"queue": q, "vhost": "/", "type": kind, "policy": None, "operator_policy": None}
    assert all(key["source"] == "default" and key["lost"] == [] and key["source_name"] is None for key in told)
    values = {key["key"]: key["value"] for key in told if key["value"] is not None}
    assert values == {
        "overflow": "drop-head", "expiry-order": "deadline", "dead-letter-strategy": "at-most-once",
        "delayed-retry-type": "disabled", "delivery-limit-count": "delivery",
            "delivery-limit-action": "drop", "delayed-retry-order": "due",
    } | ({"delivery-limit": 20, "consumer-timeout": 1800000} if kind == "quorum" else {})


def test_argument_policy_and_operator_policy(http, ch, client, prefix, by_broker):
    q = ch.queue(message_ttl=60000, max_length=10, overflow="reject-publish", dead_letter_exchange="mine")
    definition = {"message-ttl": 50000, "max-length": 20, "overflow": "drop-head", "dead-letter-exchange": "theirs"}
    with live_policy(http, client, definition, on=""), \
            live_policy(http, client, {"message-ttl": 40000, "max-length-bytes": 5}, on="", operator=True):
        told = keys(explain(http, q))
        name = prefix + "live"

        def given(source, value, why):
            return {"source": source, "source_name": None if source == "argument" else name, "value": value,
                    "why": why}

        assert told["message-ttl"] == {
            "key": "message-ttl", "value": 40000, "source": "operator_policy", "source_name": name, "lost": [
                given("policy", 50000, "the lower value applies, which is that of the operator policy"),
                given("argument", 60000, "the lower value applies, which is that of the operator policy"),
            ]}
        assert told["max-length"]["source"] == "argument" and told["max-length"]["value"] == 10
        assert told["max-length"]["lost"] == [
            given("policy", 20, "the lower value applies, which is that of the argument")]
        assert (told["max-length-bytes"]["value"], told["max-length-bytes"]["source"]) == (5, "operator_policy")
        assert told["overflow"]["lost"] == [given("policy", "drop-head", "for this key the argument comes first")]
        assert (told["dead-letter-exchange"]["value"], told["dead-letter-exchange"]["source"]) == ("mine", "argument")
    assert keys(explain(http, q))["message-ttl"]["value"] == 60000


def test_an_exchange(http, ch, client, prefix, by_broker):
    x, other = ch.exchange("topic", alternate_exchange="mine"), ch.exchange("fanout", name="other")
    with live_policy(http, client, {"alternate-exchange": "theirs"}, on="", apply_to="exchanges"):
        explained = explain(http, x, "exchanges")
        assert (explained["exchange"], explained["type"], explained["policy"]) == (x, "topic", prefix + "live")
        lost = {"source": "policy", "source_name": prefix + "live", "value": "theirs",
                "why": "for this key the argument comes first"}
        assert explained["keys"] == [{"key": "alternate-exchange", "value": "mine", "source": "argument",
                                      "source_name": None, "lost": [lost]}]
        assert keys(explain(http, other, "exchanges"))["alternate-exchange"]["value"] == "theirs"


def test_explain_needs_an_existing_queue_and_access(http, defined, prefix, by_broker):
    for path in ("queues/%2F/nope", "exchanges/%2F/nope", "queues/nope/nope"):
        assert http.ask(f"/api/{path}/explain").status == 404
    defined(users=[User("bob", configure=None, tags=("monitoring",))])
    api = defined.client.broker.api
    assert api.ask("/api/exchanges/%2F/amq.topic/explain", user=prefix + "bob").status == 404
    assert api.ask("/api/exchanges/%2F/amq.topic/explain", user=None).status == 401
    dry_run = "/api/policies/%2F/p/dry-run"
    assert api.ask(dry_run, user=prefix + "bob", method="POST", body={}).status == 401
    assert api.ask(dry_run.replace("policies", "operator-policies"), user=prefix + "bob", method="POST").status == 401


# --- dry run


def would(http, prefix, definition, on="q", family="policies", **more):
    body = definition if "delete" in definition else {"pattern": f"^{prefix}{on}", "definition": definition} | more
    answer = http.ask(f"/api/{family}/" + quoted("/", prefix + "live") + "/dry-run", method="POST", body=body)
    assert answer.status == 200, answer.text
    return answer.json


@pytest.mark.parametrize("definition", [
    {"message-ttl": TTL_MS}, {"max-length": 3}, {"max-length-bytes": 5}, {"message-ttl": TTL_MS, "max-length": 1},
    {"message-ttl": TTL_MS, "dead-letter-exchange": "", "dead-letter-routing-key": "DLQ"},
    {"max-length": 4, "dead-letter-exchange": "", "dead-letter-routing-key": "DLQ"},
    {"max-length": 4, "dead-letter-exchange": "nowhere"}, {"max-length": 4, "overflow": "reject-publish"},
    {"expires": 3600000}, {"message-ttl": 3600000},
], ids=str)
def test_dry_run_predicts_the_effect_of_the_policy(http, ch, client, dlq, prefix, kind, definition, by_broker):
    q = ch.queue(kind)
    definition = {key: dlq if value == "DLQ" else value for key, value in definition.items()}
    ch.publish(q, *"abcdef")
    if definition.get("message-ttl") == TTL_MS:
        ch.pause(TTL_MS / 1000 + 0.05)
    ch.publish(q, *"ghij")
    told = would(http, prefix, definition)
    assert ch.count(q) == 10  # nothing has happened
    assert http.ask("/api/policies/" + quoted("/", prefix + "live")).status == 404
    before = http.ask("/api/queues/" + quoted("/", q)).json["message_stats"]
    with live_policy(http, client, definition):
        left = ch.count(q)
        after = http.ask("/api/queues/" + quoted("/", q)).json["message_stats"]
    grown = {name: after[name] - before[name] for name in ("expired", "dead_lettered", "dropped")}
    assert told["exact"] and told["queues_matched"] == told["queues_changed"] == 1
    assert {"expired": told["messages_expired"], "dead_lettered": told["messages_dead_lettered"],
            "dropped": told["messages_dropped"]} == grown
    [queue] = told["queues"]
    assert (queue["name"], queue["type"], queue["messages"]) == (q, kind, 10)
    assert queue["expired"] + queue["evicted"] == 10 - left
    assert queue["after"] == definition | queue["after"]
    assert all(queue["before"][key] != value for key, value in queue["after"].items())
    assert queue["deleted_in_ms"] == definition.get("expires")
    assert ch.count(dlq) == grown["dead_lettered"]


def test_of_a_policy_that_is_removed(http, ch, client, prefix, by_broker):
    q = ch.queue()
    path = "/api/policies/" + quoted("/", prefix + "live") + "/dry-run"
    assert http.ask(path, method="POST", body={"delete": True}).status == 404
    with live_policy(http, client, {"message-ttl": 60000}):
        told = would(http, prefix, {"delete": True})
        assert (told["queues_matched"], told["queues_changed"], told["messages_expired"]) == (1, 1, 0)
        assert told["queues"][0]["before"] == {"message-ttl": 60000}
        assert told["queues"][0]["after"] == {"message-ttl": None}
        assert told["queues"][0]["name"] == q


def test_a_policy_of_less_priority_would_match_nothing(http, ch, client, prefix, by_broker):
    ch.queue()
    with live_policy(http, client, {"message-ttl": 60000}, priority=5):
        path = "/api/policies/" + quoted("/", prefix + "other") + "/dry-run"
        body = {"pattern": "^" + prefix, "definition": {"max-length": 0}}
        told = http.ask(path, method="POST", body=body).json
        assert (told["queues_matched"], told["queues_changed"], told["queues"]) == (0, 0, [])
        assert told["queues_matched_by_pattern"] == 1
        assert told["outranked_by"] == [{"name": prefix + "live", "priority": 5, "queues": 1}]


def test_policy_that_is_replaced_by_one_of_less_priority(http, ch, client, prefix, by_broker):
    ch.queue(name="q-one")
    ch.queue(name="other")
    with live_policy(http, client, {"max-length": 9}, on="q-", name="second", priority=3), \
            live_policy(http, client, {"message-ttl": 60000}, on="", priority=5):
        told = would(http, prefix, {"max-length": 8}, on="", priority=1)
        assert (told["queues_matched_by_pattern"], told["queues_matched"], told["queues_excluded"]) == (2, 1, 0)
        assert told["outranked_by"] == [{"name": prefix + "second", "priority": 3, "queues": 1}]
        told = would(http, prefix, {"delete": True})
        assert (told["queues_matched_by_pattern"], told["queues_matched"], told["outranked_by"]) == (2, 2, [])


def test_queues_that_a_policy_leaves_out(http, ch, prefix, by_broker):
    ch.queue("quorum")
    told = would(http, prefix, {"max-length": 8}, **{"apply-to": "classic_queues"})
    counts = [told[name] for name in ("queues_matched_by_pattern", "queues_excluded", "queues_matched")]
    assert (counts, told["outranked_by"]) == ([1, 1, 0], [])


def test_of_an_operator_policy_and_of_exchanges(http, ch, prefix, by_broker):
    ch.queue()
    ch.exchange("fanout", name="x")
    told = would(http, prefix, {"max-length": 7}, family="operator-policies")
    assert told["queues"][0]["after"] == {"max-length": 7}
    told = would(http, prefix, {"alternate-exchange": "a"}, on="x")
    assert told["exchanges_changed"] == 1
    assert told["exchanges"] == [{"name": prefix + "x", "before": {"alternate-exchange": None},
                                  "after": {"alternate-exchange": "a"}}]


@pytest.mark.parametrize("sent, reason", [
    ({}, "[{key_missing,pattern},{key_missing,definition}]"),
    ({"pattern": "", "definition": {"expires": 0}}, "Validation failed\n\n0 is not a valid queue expiry\n"),
    ({"delete": "yes"}, "'delete' must be true or false"), ([], "not_json"),
])
def test_dry_run_refuses_what_setting_the_policy_refuses(http, prefix, sent, reason, by_broker):
    for family in ("policies", "operator-policies"):
        answer = http.ask(f"/api/{family}/%2F/{prefix}p/dry-run", method="POST", body=sent)
        assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason})
        answer = http.ask(f"/api/{family}/nope/{prefix}p/dry-run", method="POST", body=sent)
        assert (answer.status, answer.json) == (404, {"error": "not_found", "reason": "vhost_not_found"})
