"""The properties and arguments that each queue type takes, and the refusals of the others."""

import pytest

from expectations import bad_argument, inequivalent
from field_table import Wire
from replies import Refusal

MODULE = {"classic": "rabbit_classic_queue", "quorum": "rabbit_quorum_queue", "stream": "rabbit_stream_queue"}
STREAM = pytest.param("stream", marks=pytest.mark.stream)

# --- properties per type


@pytest.mark.parametrize("queue_type", ["quorum", STREAM])
@pytest.mark.parametrize("properties, refused", [
    ({"durable": False}, "non-durable"), ({"exclusive": True}, "exclusive-owner"),
    ({"auto_delete": True}, "auto-delete"),
    ({"auto_delete": True, "exclusive": True, "durable": False}, "auto-delete"),
    ({"exclusive": True, "durable": False}, "exclusive-owner"),
])
def test_quorum_queues_and_streams_are_durable_shared_and_permanent(ch, client, queue_type, properties, refused):
    name = client.name("q")
    refusal = f"invalid property '{refused}' for queue '{name}' in vhost '/'"
    ch.refuses(lambda c: c.queue(queue_type, name, **properties), 406, refusal)


@pytest.mark.parametrize("properties", [
    {"durable": False}, {"exclusive": True}, {"auto_delete": True}, {"exclusive": True, "auto_delete": True},
])
def test_classic_queues_have_all_properties(ch, properties):
    q = ch.queue(name="named", **properties)
    ch.publish(q, "m")
    assert ch.get(q).body == "m"


# --- arguments per type

KNOWN_ELSEWHERE = {
    "classic": {
        "x-quorum-initial-group-size": 1, "x-max-in-memory-length": 5,
        "x-max-in-memory-bytes": 5,
        "x-max-age": "1D", "x-stream-max-segment-size-bytes": 1000, "x-initial-cluster-size": 1,
        "x-stream-filter-size-bytes": 16, "x-consumer-timeout": 60000,
    },
    "quorum": {
        "x-max-priority": 5, "x-queue-mode": "lazy", "x-queue-version": 2, "x-max-age": "1D",
        "x-stream-max-segment-size-bytes": 1000, "x-initial-cluster-size": 1, "x-stream-filter-size-bytes": 16,
    },
    "stream": {
        "x-message-ttl": 1000, "x-expires": 1000, "x-max-length": 5, "x-overflow": "drop-head", "x-max-priority": 5,
        "x-single-active-consumer": True, "x-dead-letter-exchange": "x", "x-delivery-limit": 5, "x-queue-mode": "lazy",
    },
}
ELSEWHERE = [
    pytest.param(queue_type, argument, value, marks=[pytest.mark.stream] if queue_type == "stream" else [])
    for queue_type, arguments in KNOWN_ELSEWHERE.items()
    for argument, value in arguments.items()
]


@pytest.mark.parametrize("queue_type, argument, value", ELSEWHERE)
def test_an_argument_that_only_another_type_has_is_refused(ch, client, queue_type, argument, value):
    name = client.name("q")
    refusal = f"invalid arg '{argument}' for queue '{name}' in vhost '/' of queue type {MODULE[queue_type]}"
    ch.refuses(lambda c: c.queue(queue_type, name, arguments={argument: value}), 406, refusal)


@pytest.mark.better
@pytest.mark.parametrize("argument, value", [("x-delivery-limit", 5), ("x-delayed-retry-type", "all")])
def test_classic_queues_have_the_retry_arguments_of_quorum_queues(ch, client, by_broker, argument, value):
    name = client.name("q")
    if by_broker(rabbitmq=False, leveret=True):
        ch.queue("classic", name, arguments={argument: value})
        return
    refusal = f"invalid arg '{argument}' for queue '{name}' in vhost '/' of queue type {MODULE['classic']}"
    ch.refuses(lambda c: c.queue("classic", name, arguments={argument: value}), 406, refusal)


@pytest.mark.parametrize("queue_type, arguments", [
    ("classic", {"queue_version": 2}), ("classic", {"queue_mode": "lazy"}), ("classic", {"queue_mode": 5}),
    ("classic", {"max_priority": 0}), ("classic", {"max_priority": 255}), ("classic", {"max_priority": Wire("b", 10)}),
    ("classic", {"single_active_consumer": True}), ("classic", {"queue_leader_locator": "client-local"}),
    ("classic", {"name_prefix": "x"}),
    ("quorum", {"delivery_limit": -1}), ("quorum", {"delivery_limit": "nonsense"}),
    ("quorum", {"delayed_retry_type": "nonsense"}), ("quorum", {"delayed_retry_min": "nonsense"}),
    ("quorum", {"max_in_memory_length": 5}), ("quorum", {"quorum_initial_group_size": 1}),
    ("quorum", {"consumer_timeout": 0}), ("quorum", {"consumer_disconnected_timeout": 1000}),
    ("quorum", {"queue_leader_locator": "balanced"}), ("quorum", {"single_active_consumer": False}),
    pytest.param("stream", {"max_age": "1Y"}, marks=pytest.mark.stream),
    pytest.param("stream", {"max_length_bytes": 10**9, "initial_cluster_size": 1}, marks=pytest.mark.stream),
])
def test_arguments_are_accepted(ch, queue_type, arguments):
    ch.queue(queue_type, **arguments)


@pytest.mark.parametrize("queue_type, argument, value, reason", [
    ("classic", "x-max-priority", 256, "{max_value_exceeded,256}"),
    ("classic", "x-max-priority", -1, "{value_negative,-1}"),
    ("classic", "x-max-priority", "5", '"expected integer, got longstr"'),
    ("classic", "x-queue-version", 1, "\"unsupported queue version '1'\""),
    ("classic", "x-single-active-consumer", "yes", "{unacceptable_type,longstr}"),
    ("classic", "x-queue-leader-locator", "nowhere", "invalid_queue_locator_arg"),
    ("classic", "x-overflow", "nonsense", "invalid_overflow"),
    ("quorum", "x-consumer-timeout", -1, "{value_negative,-1}"),
    ("quorum", "x-consumer-timeout", "5", '"expected integer, got longstr"'),
    ("quorum", "x-consumer-disconnected-timeout", -1, "{value_negative,-1}"),
    ("quorum", "x-quorum-initial-group-size", 0, "{value_zero,0}"),
    ("quorum", "x-single-active-consumer", 1, "{unacceptable_type,signedint}"),
    pytest.param("stream", "x-max-age", "1 day", "invalid_max_age", marks=pytest.mark.stream),
    pytest.param("stream", "x-max-age", 5, "{unacceptable_type,signedint}", marks=pytest.mark.stream),
])
def test_values_are_refused(ch, client, queue_type, argument, value, reason):
    name = client.name("q")
    refusal = bad_argument(argument, name, reason)
    ch.refuses(lambda c: c.queue(queue_type, name, arguments={argument: value}), 406, refusal)


@pytest.mark.parametrize("value, reason", [
    ("foo", "\"unsupported queue type 'foo'\""), ("Quorum", "\"unsupported queue type 'Quorum'\""),
    (5, "{unacceptable_type,signedint}"),
])
def test_an_unknown_queue_type_is_refused(ch, client, value, reason):
    name = client.name("q")
    ch.refuses(lambda c: c.queue(name=name, queue_type=value), 406, bad_argument("x-queue-type", name, reason))


@pytest.mark.better
@pytest.mark.parametrize("value", ["", "undefined"])
def test_an_empty_or_undefined_queue_type_makes_a_classic_queue(ch, by_broker, value):
    """RabbitMQ keeps the word and holds it to be another argument; for Leveret the two are one type."""
    q = ch.queue(queue_type=value, auto_delete=True)
    ch.queue(name=q, queue_type=value, auto_delete=True)
    refused = Refusal(406, inequivalent("x-queue-type", q, "classic", value)).said
    said = ch.connection.channel().answer_to(lambda c: c.queue("classic", q, auto_delete=True))
    assert said == by_broker(rabbitmq=refused, leveret=None)


@pytest.mark.better
def test_streams_are_refused_until_leveret_has_them(ch, client, by_broker):
    name = client.name("q")
    refused = Refusal(406, bad_argument("x-queue-type", name, "\"unsupported queue type 'stream'\"")).said
    said = ch.connection.channel().answer_to(lambda c: c.queue("stream", name))
    assert said == by_broker(rabbitmq=None, leveret=refused)


def test_the_queue_type_is_checked_before_other_arguments_and_those_in_a_fixed_order(ch, client):
    name = client.name("q")
    wrong = {"x-overflow": "no", "x-max-length": -1, "x-message-ttl": -1, "x-expires": 0}
    ch.refuses(lambda c: c.queue(name=name, arguments=wrong | {"x-queue-type": "foo"}), 406,
               bad_argument("x-queue-type", name, "\"unsupported queue type 'foo'\""))
    for argument, reason in [("x-expires", "{value_zero,0}"), ("x-message-ttl", "{value_negative,-1}"),
                             ("x-max-length", "{value_negative,-1}"), ("x-overflow", "invalid_overflow")]:
        ch.refuses(lambda c: c.queue(name=name, arguments=wrong), 406, bad_argument(argument, name, reason))
        del wrong[argument]
