"""What a door accepts can be read again: by the API at once, and by the next start after a kill.

Odd values are drawn for every endpoint that changes what a node keeps, and for AMQP. Each is refused with a reason, or
stands in the definitions of the next start as it stood in those before.
"""

import base64
import http.client
import json
from decimal import Decimal
from urllib.parse import quote

import pika
import pika.exceptions
import pytest

from test_changes import ask

ROUNDS = 40
DEPTHS = (1, 40, 98, 99, 100, 126, 200)
LENGTHS = (1, 127, 128, 254, 255, 256, 257, 1000, 1001, 4095, 4096, 40_000)
TEXTS = (
    "", "a", " ", "%", "%2F", "a/b", "a b", "\u00e9", "\u4e16\u754c", "\U0001f407", "\u202e", "\n", "a\nb", "a\r\n b", "\t", "\x00", "\x01",
    "\x7f", "\ufeff", "\"", "\\", "'", "null", "true", "{}", "[]", "=", "&", "#", "*", "amq.x", "a" * 255, "\u00e9" * 128)
INTEGERS = (
    0, 1, -1, 127, 128, 255, 256, 32767, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**63 - 1, -2**63,
    2**63, 2**64 - 1, 2**64, -2**63 - 1, 10**30)
# Refused, or longer than any machine takes for the test.
EXPIRIES = tuple(n for n in INTEGERS if n < 1 or n >= 2**31 - 1)
DOUBLES = (0.0, -0.0, 0.1, 1e-7, 1.3669739298646666e+231, 5e-324, 1.7976931348623157e308, 1e22, 123456789.125)


def text(rng):
    return rng.choice((rng.choice(TEXTS), rng.choice("a\u00e9\U0001f407") * rng.choice(LENGTHS)))


def nested(rng):
    value = value_of(rng, 0)
    for _ in range(rng.choice(DEPTHS)):
        value = rng.choice(([value], {"k": value}))
    return value


def value_of(rng, depth=2):
    """A JSON value."""
    kinds = [
        lambda: rng.choice(INTEGERS), lambda: rng.choice(DOUBLES), lambda: rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300),
        lambda: text(rng), lambda: rng.choice((True, False, None))]
    if depth:
        kinds += [
            lambda: [value_of(rng, depth - 1) for _ in range(rng.randint(0, 3))],
            lambda: {text(rng): value_of(rng, depth - 1) for _ in range(rng.randint(0, 3))},
            lambda: nested(rng)]
    return rng.choice(kinds)()


def name(rng):
    """A name as it stands in a path."""
    return quote(text(rng) or "x", safe="")


def requests(rng):
    """One request for each kind of object, of method, path and body."""
    pattern = {"configure": text(rng), "write": ".*", "read": ".*"}
    policy = {"pattern": rng.choice(("", text(rng))), "priority": rng.choice(INTEGERS), "definition": rng.choice((
        {"max-length": rng.choice(INTEGERS)}, {"message-ttl": rng.choice(INTEGERS)}, {"expires": rng.choice(EXPIRIES)},
        {"dead-letter-exchange": text(rng), "dead-letter-routing-key": text(rng)}, {"delivery-limit": rng.choice(INTEGERS)}))}
    arguments = rng.choice((
        {"x-expires": rng.choice(EXPIRIES)},
        {rng.choice((text(rng), "x-message-ttl", "x-max-length", "x-delivery-limit")): value_of(rng)}))
    binding = {"routing_key": text(rng), "arguments": arguments}
    return [
        ("PUT", f"/api/users/{name(rng)}", {"password": text(rng), "tags": rng.choice((text(rng), [text(rng), text(rng)]))}),
        ("PUT", f"/api/users/{name(rng)}", {"password_hash": rng.choice(("", text(rng))), "tags": ""}),
        ("PUT", f"/api/vhosts/{name(rng)}", {
            "description": rng.choice((text(rng), value_of(rng))), "tags": rng.choice((text(rng), value_of(rng)))}),
        ("PUT", "/api/vhosts/%2F", {"description": text(rng), "tags": [text(rng)]}),
        ("PUT", "/api/permissions/%2F/guest", {**pattern, "configure": ".*"}),
        ("PUT", f"/api/permissions/other/{rng.choice(('guest', name(rng)))}", pattern),
        ("PUT", "/api/topic-permissions/other/guest", {"exchange": text(rng), "write": text(rng), "read": text(rng)}),
        ("PUT", f"/api/vhost-limits/other/{rng.choice(('max-connections', 'max-queues', name(rng)))}", {"value": value_of(rng, 0)}),
        ("PUT", f"/api/user-limits/guest/{rng.choice(('max-connections', 'max-channels', name(rng)))}", {
            "value": rng.choice((-1, 2**31, 2**53 + 1, 2**63 - 1, 2**64, 0.5, None))}),
        ("PUT", f"/api/policies/%2F/{name(rng)}", policy),
        ("PUT", f"/api/operator-policies/%2F/{name(rng)}", policy),
        ("PUT", f"/api/parameters/{rng.choice(('vhost-limits', 'operator_policy', 'policy', name(rng)))}/other/{name(rng)}", {
            "value": value_of(rng)}),
        ("PUT", f"/api/global-parameters/{name(rng)}", {"value": value_of(rng)}),
        ("PUT", "/api/cluster-name", {"name": value_of(rng, 0)}),
        ("PUT", f"/api/queues/%2F/{name(rng)}", {"durable": True, "arguments": arguments}),
        ("PUT", f"/api/exchanges/%2F/{name(rng)}", {
            "type": rng.choice(("direct", "topic", "fanout", "headers")), "durable": True, "arguments": arguments}),
        ("POST", "/api/bindings/%2F/e/amq.headers/q/q", {**binding, "arguments": {"x-match": "any", **arguments}}),
        ("POST", f"/api/bindings/%2F/e/{rng.choice(('amq.topic', 'amq.direct'))}/q/q", binding),
        ("POST", "/api/definitions", {rng.choice(("global_parameters", "parameters", "permissions", "topic_permissions")): [
            {"name": text(rng), "vhost": "other", "component": text(rng), "value": value_of(rng), "user": "guest",
             "configure": text(rng), "write": "", "read": "", "exchange": text(rng)}]}),
        ("POST", "/api/definitions", {"users": [
            {"name": text(rng), "tags": rng.choice((text(rng), [text(rng)])), "password_hash": rng.choice((
                "", text(rng), base64.b64encode(bytes(36)).decode())), "limits": {"max-channels": rng.choice(INTEGERS)}}]}),
        ("POST", "/api/definitions", {"vhosts": [
            {"name": text(rng), "description": value_of(rng, 0), "tags": [text(rng)], "metadata": value_of(rng), "limits": value_of(rng),
             "default_queue_type": rng.choice(("classic", "quorum", None, value_of(rng, 0)))}]}),
        ("POST", "/api/definitions", {"queues": [
            {"name": text(rng), "vhost": "/", "durable": True, "auto_delete": False, "arguments": arguments}]}),
    ]


def short(rng):
    """A text that the client can send as a name, and finds in the answer: the broker takes line ends away."""
    return text(rng)[:60].replace("\n", "").replace("\r", "")


def by_amqp(broker, rng):
    """A queue, an exchange and a binding with odd names and arguments."""
    with broker.connect() as connection:
        table = {short(rng): rng.choice((
            text(rng)[:5000], rng.choice([n for n in INTEGERS if -2**63 <= n < 2**63]), Decimal("1.25"), None, True,
            [1, "a", {"b": [2]}]))}
        for declare in (
                lambda channel: channel.queue_declare(short(rng), durable=True, arguments=table),
                lambda channel: channel.exchange_declare(short(rng), "topic", durable=True, arguments=table),
                lambda channel: channel.queue_bind("q", "amq.headers", short(rng), arguments=table)):
            channel = connection.channel()
            try:
                declare(channel)
            except pika.exceptions.ChannelClosedByBroker:
                pass


def definitions(broker):
    """All definitions, of which lists are sets: in an order of their own."""
    code, found = ask(broker, "GET", "/api/definitions")
    assert code == 200
    for family, items in found.items():
        if isinstance(items, list):
            items.sort(key=lambda item: json.dumps(item, sort_keys=True))
    return found


@pytest.mark.parametrize("part", range(2))
def test_accepted_values_stand_in_the_definitions_of_the_next_start(broker, rng, part):
    broker.start_with()
    assert ask(broker, "PUT", "/api/vhosts/other")[0] == 201
    assert ask(broker, "PUT", "/api/queues/%2F/q", {"durable": True})[0] == 201
    accepted = refused = 0
    for _ in range(ROUNDS):
        for method, path, body in requests(rng):
            try:
                code, answer = ask(broker, method, path, body)
            except (http.client.HTTPException, UnicodeEncodeError) as error:
                raise AssertionError((method, path, body)) from error
            assert code in (200, 201, 204, 400, 401, 404, 405, 413, 414), (method, path[:300], str(body)[:500], code, answer)
            accepted += code < 300
            refused += code >= 400
            assert code in (200, 201, 204, 414) or answer["reason"], (method, path[:200], code, answer)
        by_amqp(broker, rng)
    assert accepted > 5 * ROUNDS and refused > 5 * ROUNDS, (accepted, refused)
    before = definitions(broker)
    broker.kill()
    assert "panicked" not in broker.said() and not broker.errors(), broker.errors()
    broker.start_with()
    after = definitions(broker)
    for family in before:
        assert after[family] == before[family], family
    # What was exported is accepted by an empty node.
    code, answer = ask(broker, "POST", "/api/definitions", before)
    assert code in (200, 204), answer
    again = definitions(broker)
    for family in before:
        assert [one for one in again[family] if one not in before[family]] == [], family
        assert [one for one in before[family] if one not in again[family]] == [], family
    broker.assert_no_panic()
