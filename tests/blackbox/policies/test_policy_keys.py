"""Every key of a policy with good and bad values, as user and as operator policy, with RabbitMQ's words."""

import json
import re

import pytest
from brokers import quoted

NUMBERS, WORDS, OTHERS = [0, 1, 7, 10**15, 2**63 - 1], ["x", "", "5"], [True, False, None, [], [1, [2, "a"]]]
NOT_NUMBERS = [1.5, 1.0, 1e3, *WORDS, *OTHERS]
NOT_WORDS = [0, 1, -1, 1.5, *OTHERS]
POSITIVE, NATURAL, TEXT = "positive", "natural", "text"

# key: what it is, the end of the complaint, whether operators have it
KEYS = {
    "message-ttl": (NATURAL, "message TTL", True),
    "expires": (POSITIVE, "queue expiry", True),
    "max-length": (NATURAL, "maximum length", True),
    "max-length-bytes": (NATURAL, "maximum length in bytes", True),
    "overflow": (["drop-head", "reject-publish", "reject-publish-dlx"], "overflow value", True),
    "dead-letter-exchange": (TEXT, "dead letter exchange name", False),
    "dead-letter-routing-key": (TEXT, "dead letter routing key", False),
    "dead-letter-strategy": (["at-most-once", "at-least-once"], "dead letter strategy", False),
    "consumer-timeout": (NATURAL, "consumer timeout", False),
    "consumer-disconnected-timeout": (NATURAL, "consumer disconnected timeout", False),
    "delayed-retry-min": (POSITIVE, "delayed retry minimum delay. Must be a positive integer", True),
    "delayed-retry-max": (POSITIVE, "delayed retry maximum delay. Must be a positive integer", True),
    "target-group-size": (POSITIVE, "qq target count value", True),
    "max-in-memory-length": (NATURAL, "maximum memory in bytes", True),
    "max-in-memory-bytes": (NATURAL, "maximum memory in bytes", True),
    "queue-mode": (["default", "lazy"], "queue-mode value", False),
    "queue-leader-locator": (["client-local", "balanced", "random", "least-leaders"], "queue leader locator value",
                             False),
    "initial-cluster-size": (NATURAL, "cluster size", False),
    "alternate-exchange": (TEXT, "alternate exchange name", False),
}
# key: good values, bad values, the end of the complaint, whether operators have it
OTHER_KEYS = {
    "delivery-limit": ([-1, -7, *NUMBERS], NOT_NUMBERS, "delivery limit", True),
    "delayed-retry-type": (["disabled"], ["All", *NOT_WORDS, *WORDS],
                           "delayed retry type. Must be one of: all, failed, returned, disabled", True),
    "queue-version": ([1, 2], [0, 3, -1, *NOT_NUMBERS], "queue-version value", True),
    "max-age": (["7D", "1Y", "2M", "3h", "4m", "5s", "007D"], ["0s", "D", "7", "7d", "-1D", "7 D", *WORDS], "max age",
                False),
    "stream-max-segment-size-bytes": ([0, 1, 3 * 10**9], [-1, 3 * 10**9 + 1, *NOT_NUMBERS], "segment size", False),
    "stream-filter-size-bytes": ([16, 255], [15, 256, -1, *NOT_NUMBERS], "filter size. Valid range is 16-255", False),
}
NONE = ["foo", "max-priority", "single-active-consumer", "ha-mode", "ha-params", "x-message-ttl", "Message-Ttl",
        "federation-upstream-set", "queue-type", "default-queue-type", ""]


def values(kind):
    """Good and bad values of a kind."""
    if kind == NATURAL:
        return NUMBERS, [-1, *NOT_NUMBERS]
    if kind == POSITIVE:
        return NUMBERS[1:], [0, -1, *NOT_NUMBERS]
    if kind == TEXT:
        return WORDS, NOT_WORDS
    return kind, [kind[0].upper(), kind[0] + " ", *WORDS, *NOT_WORDS]


TABLE = [(key, *values(kind), end, operators) for key, (kind, end, operators) in KEYS.items()]
TABLE += [(key, *row) for key, row in OTHER_KEYS.items()]


def term(value):
    """As RabbitMQ prints it."""
    if isinstance(value, str):
        return f'<<"{value}">>' if value else "<<>>"
    if isinstance(value, list):
        return "[" + ",".join(map(term, value)) + "]"
    if isinstance(value, dict):
        return "#{" + ",".join(f"{term(k)} => {term(v)}" for k, v in sorted(value.items())) + "}"
    return "1.0e3" if value == 1e3 else json.dumps(value)


def refused(complaint):
    return 400, {"error": "bad_request", "reason": f"Validation failed\n\n{complaint}\n"}


@pytest.fixture(params=["policies", "operator-policies"])
def put(request, under, prefix):
    """`put(definition)`: what is answered to a policy with it. The policy matches nothing."""
    http, path = under.shared().api, f"/api/{request.param}/" + quoted("/", prefix + "p")

    def put(definition, **more):
        answer = http.ask(path, method="PUT", body={"pattern": "^nothing-at-all$", "definition": definition} | more)
        # RabbitMQ breaks long terms into lines.
        text = re.sub(r"\\n +", "", answer.text.decode())
        return answer.status, json.loads(text) if text else None

    put.by_operator = request.param == "operator-policies"
    put.shown = lambda: http.ask(path).json["definition"]
    yield put
    http.request("DELETE", path)


@pytest.mark.parametrize("key, good, bad, end, operators", TABLE, ids=[row[0] for row in TABLE])
def test_a_key_and_its_values(put, key, good, bad, end, operators):
    if put.by_operator and not operators:
        for value in (*good, *bad):
            expected = refused(f'[{{{term(key)},{term(value)}}}] are not recognised policy settings')
            assert put({key: value}) == expected, value
        return
    for value in good:
        assert put({key: value})[0] in (201, 204), value
        assert put.shown() == {key: value}
    for value in bad:
        assert put({key: value}) == refused(f"{term(value)} is not a valid {end}"), value
        assert put.shown() == {key: good[-1]}


@pytest.mark.parametrize("key", NONE)
def test_unknown_keys_are_refused(put, key):
    for value in (1, "x", None, {"b": 1, "a": [True, {}], "A": 1.5}):
        assert put({key: value}) == refused(f"[{{{term(key)},{term(value)}}}] are not recognised policy settings")


@pytest.mark.parametrize("definition, complaint", [
    ({}, "no policy provided"),
    ({"queue-master-locator": "min-masters"}, "use of deprecated queue-master-locator argument is not permitted"),
    ({"queue-master-locator": 5, "expires": 0, "foo": 1},
     "use of deprecated queue-master-locator argument is not permitted"),
    ({"foo": 1, "expires": 0}, "0 is not a valid queue expiry"),
    ({"z": 1, "foo": "bar"}, '[{<<"foo">>,<<"bar">>},{<<"z">>,1}] are not recognised policy settings'),
    ({"delayed-retry-type": "all"}, "delayed-retry-min is required when delayed-retry-type is all"),
    ({"delayed-retry-type": "failed", "delayed-retry-max": 5},
     "delayed-retry-min is required when delayed-retry-type is failed"),
    ({"delayed-retry-min": 10, "delayed-retry-max": 5},
     "delayed-retry-max (5) must not be smaller than delayed-retry-min (10)"),
    ({"delayed-retry-type": "all", "delayed-retry-min": 5}, None),
    ({"delayed-retry-type": "disabled", "delayed-retry-max": 5}, None),
    ({"delayed-retry-min": 5, "delayed-retry-max": 5}, None),
])
def test_keys_together(put, definition, complaint):
    if complaint is None:
        assert put(definition)[0] in (201, 204)
    else:
        assert put(definition) == refused(complaint)


@pytest.mark.better
def test_an_age_that_is_no_text(put, by_broker):
    """RabbitMQ crashes on it."""
    if put.by_operator:
        return
    for value in (7, 1.5, True, None):
        expected = by_broker(rabbitmq=(500, None), leveret=refused(f"{term(value)} is not a valid max age"))
        assert put({"max-age": value}) == expected


@pytest.mark.better
def test_numbers_of_more_than_64_bits(put, by_broker):
    """In RabbitMQ integers have no end."""
    expected = by_broker(rabbitmq=204, leveret=400)
    assert put({"max-length": 1})[0] == 201
    assert put({"max-length": 2**63})[0] == expected


@pytest.mark.parametrize("apply_to", ["all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges"])
def test_apply_to(put, apply_to):
    assert put({"max-length-bytes": 5}, **{"apply-to": apply_to})[0] == 201


@pytest.mark.parametrize("apply_to", ["", "queue", "Queues", "classic", None])
def test_apply_to_something_else(put, apply_to):
    named = apply_to if isinstance(apply_to, str) else json.dumps(apply_to)
    options = "'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'"
    expected = refused(f"apply-to '{named}' unrecognised; should be one of: {options}")
    assert put({"expires": 5}, **{"apply-to": apply_to}) == expected
