"""Names with characters that mean something elsewhere: in headers, over AMQP and over HTTP, they are the names that were given."""

import pytest

from brokers import quoted
from test_names_in_paths import CHARACTERS

ODD = f"a{CHARACTERS}z"
# All but the one that ends a user's name in a login.
USER = ODD.replace(":", "")


def get_over_http(api, queue):
    """The one message of a queue, which is gone then."""
    [message] = api.do("POST", f"/api/queues/%2F/{quoted(queue)}/get", {"count": 2, "ackmode": "ack_requeue_false", "encoding": "auto"})
    return message


@pytest.mark.parametrize("read", ["amqp", "http"])
@pytest.mark.parametrize("declared", ["amqp", "http"])
def test_deaths_name_their_places(client, ch, api, prefix, declared, read):
    exchange, source = prefix + ODD + "x", prefix + ODD + "q"
    target = ch.queue(name=prefix + ODD + "dead")
    arguments = {"x-message-ttl": 1, "x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": ODD}
    if declared == "amqp":
        ch.exchange("direct", exchange)
        ch.queue(name=source, arguments=arguments)
        ch.bind(target, exchange, ODD)
        ch.bind(source, exchange, ODD + "in")
    else:
        api.do("PUT", f"/api/exchanges/%2F/{quoted(exchange)}", {"type": "direct"})
        api.do("PUT", f"/api/queues/%2F/{quoted(source)}", {"durable": True, "arguments": arguments})
        api.do("POST", f"/api/bindings/%2F/e/{quoted(exchange)}/q/{quoted(target)}", {"routing_key": ODD})
        api.do("POST", f"/api/bindings/%2F/e/{quoted(exchange)}/q/{quoted(source)}", {"routing_key": ODD + "in"})
        client.exchanges.append(exchange)
        client.queues.append(source)
    assert ch.publish(ODD + "in", "m", exchange=exchange) == "a"
    client.run_until(lambda: ch.count(target) == 1)
    if read == "amqp":
        message = ch.get(target)
        said, headers = (message.exchange, message.routing_key), message.headers
    else:
        message = get_over_http(api, target)
        said, headers = (message["exchange"], message["routing_key"]), message["properties"]["headers"]
    assert said == (exchange, ODD)
    [death] = headers["x-death"]
    assert (death["queue"], death["exchange"], death["routing-keys"]) == (source, exchange, [ODD + "in"])
    assert (headers["x-first-death-queue"], headers["x-first-death-exchange"]) == (source, exchange)


@pytest.mark.parametrize("published", ["amqp", "http"])
@pytest.mark.parametrize("bound", ["amqp", "http"])
def test_arguments_of_bindings_are_the_headers_of_messages(ch, api, bound, published):
    exchange, queue = ch.exchange("headers"), ch.queue()
    for character in CHARACTERS:
        arguments = {"x-match": "all", f"a{character}": f"{character}b"}
        if bound == "amqp":
            ch.bind(queue, exchange, f"key{character}", **arguments)
        else:
            api.do("POST", f"/api/bindings/%2F/e/{quoted(exchange)}/q/{quoted(queue)}",
                   {"routing_key": f"key{character}", "arguments": arguments})
    for character in CHARACTERS:
        for value, count in ((f"{character}b", 1), (f"{character}c", 0)):
            headers = {f"a{character}": value}
            if published == "amqp":
                ch.publish("", "m", exchange=exchange, headers=headers)
            else:
                body = {"properties": {"headers": headers}, "routing_key": "", "payload": "m", "payload_encoding": "string"}
                answer = api.do("POST", f"/api/exchanges/%2F/{quoted(exchange)}/publish", body)
                assert answer["routed"] is bool(count), (character, value)
            assert ch.purge(queue) == count, (character, value)


@pytest.mark.parametrize("published", ["amqp", "http"])
@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_further_keys_are_keys(ch, api, prefix, header, published):
    queues = [ch.queue(name=prefix + character) for character in CHARACTERS]
    if published == "amqp":
        assert ch.publish("nobody", "m", headers={header: queues}) == "a"
    else:
        body = {"properties": {"headers": {header: queues}}, "routing_key": "nobody", "payload": "m", "payload_encoding": "string"}
        assert api.do("POST", "/api/exchanges/%2F/amq.default/publish", body) == {"routed": True}
    assert [ch.count(queue) for queue in queues] == [1] * len(queues)
    assert get_over_http(api, queues[0])["properties"].get("headers", {}) == ({"CC": queues} if header == "CC" else {})


def test_users_log_in_by_their_names(api, prefix):
    name = prefix + USER
    at = f"/api/users/{quoted(name)}"
    try:
        assert api.ask(at, method="PUT", body={"password": ODD, "tags": "management"}).status == 201
        whoami = api.ask("/api/whoami", user=name, password=ODD)
        assert (whoami.status, whoami.json["name"]) == (200, name)
        assert api.ask("/api/whoami", user=name, password=ODD + "?").status == 401
    finally:
        api.ask(at, method="DELETE")
