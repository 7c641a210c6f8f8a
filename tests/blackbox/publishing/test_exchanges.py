"""Exchanges: how each type routes, alternate exchanges, exchange-to-exchange bindings, CC and BCC."""

import pytest

from field_table import Wire


def reached(ch, queues):
    """The indices of the queues that have something, each emptied; every queue has one copy at most."""
    found = [ch.drain(q) for q in queues]
    assert all(len(bodies) <= 1 for bodies in found), found
    return [n for n, bodies in enumerate(found) if bodies]

# --- the predeclared ones


@pytest.mark.parametrize("name, type", [
    ("amq.direct", "direct"), ("amq.fanout", "fanout"), ("amq.topic", "topic"), ("amq.headers", "headers"),
    ("amq.match", "headers"),
])
def test_the_predeclared_exchanges_are_there(ch, name, type):
    ch.exchange(type, name)


def test_the_default_exchange_routes_to_the_queue_named_by_the_key(ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "m")
    message = ch.get(q)
    assert (message.exchange, message.routing_key) == ("", q)


# --- direct, fanout, topic


def test_a_direct_exchange_routes_by_the_exact_key(ch):
    x = ch.exchange("direct")
    queues = ch.bound(x, "a", "b", "a", "A", "a.b", "#", "*")
    ch.publish("a", "m", exchange=x)
    assert reached(ch, queues) == [0, 2]


def test_several_bindings_of_one_queue_give_one_copy(ch):
    x, q = ch.exchange("fanout"), ch.queue()
    for key in ("a", "b", "a"):
        ch.bind(q, x, key)
    ch.publish("a", "m", exchange=x)
    assert ch.drain(q) == ["m"]


@pytest.mark.parametrize("pattern, key, matches", [
    ("a.b.c", "a.b.c", True), ("a.b.c", "a.b", False), ("a.*.c", "a.b.c", True), ("a.*.c", "a.c", False),
    ("a.*.c", "a.b.b.c", False), ("*", "a", True), ("*", "a.b", False), ("*", "", False), ("#", "", True),
    ("#", "a.b.c", True), ("a.#", "a", True), ("a.#", "a.b.c", True), ("a.#", "b.a", False), ("#.c", "c", True),
    ("#.c", "a.b.c", True), ("#.c", "a.b", False), ("a.#.c", "a.c", True), ("a.#.c", "a.b.b.c", True),
    ("a.#.c", "a.b", False), ("#.b.#", "a.b.c", True), ("#.b.#", "b", True), ("#.b.#", "a.c", False),
    ("*.#", "", False), ("*.#", "a", True), ("*.*", "a", False), ("*.*", ".", True), ("", "", True), ("", "a", False),
    ("a..b", "a..b", True), ("a.*.b", "a..b", True), ("a*", "a*", True), ("a*", "ab", False), ("#.#", "a", True),
    ("A", "a", False), ("*.*.#", "a", False), ("*.*.#", "a.b.c.d", True), ("#.*", "", False), ("*", ".", False),
    ("#.*", "a.b", True),
    ("a.#.b.#.c", "a.b.c", True), ("a.#.b.#.c", "a.x.b.y.z.c", True), ("a.#.b.#.c", "a.x.c", False),
])
def test_a_topic_exchange_matches_words(ch, pattern, key, matches):
    x = ch.exchange("topic")
    (q,) = ch.bound(x, pattern)
    ch.publish(key, "m", exchange=x)
    assert ch.drain(q) == (["m"] if matches else [])


def test_a_topic_exchange_finds_every_matching_queue_once(ch):
    x = ch.exchange("topic")
    queues = ch.bound(x, "a.b", "a.*", "*.b", "#", "a.#", "#.b", "b.#", "a.b.*")
    ch.bind(queues[0], x, "#")
    ch.publish("a.b", "m", exchange=x)
    assert reached(ch, queues) == [0, 1, 2, 3, 4, 5]


def test_an_unbound_topic_pattern_no_longer_matches_and_others_still_do(ch):
    x = ch.exchange("topic")
    queues = ch.bound(x, "a.#", "a.*", "#")
    ch.unbind(queues[0], x, "a.#")
    ch.publish("a.b", "m", exchange=x)
    assert reached(ch, queues) == [1, 2]


# --- headers


@pytest.mark.parametrize("binding, headers, matches", [
    ({"x-match": "all", "a": 1, "b": "x"}, {"a": 1, "b": "x"}, True),
    ({"x-match": "all", "a": 1, "b": "x"}, {"a": 1, "b": "x", "c": True}, True),
    ({"x-match": "all", "a": 1, "b": "x"}, {"a": 1}, False),
    ({"x-match": "all", "a": 1, "b": "x"}, {"a": 1, "b": "y"}, False),
    ({"x-match": "all"}, {}, True), ({"x-match": "all"}, None, True), ({}, {"a": 1}, True),
    ({"a": 1, "b": 2}, {"a": 1}, False), ({"a": 1, "b": 2}, {"a": 1, "b": 2}, True),
    ({"x-match": "any", "a": 1, "b": "x"}, {"b": "x"}, True),
    ({"x-match": "any", "a": 1, "b": "x"}, {"a": 2, "b": "y"}, False), ({"x-match": "any"}, {"a": 1}, False),
    ({"x-match": "any", "a": 1}, None, False),
    ({"x-match": "all", "a": None}, {"a": "anything"}, True), ({"x-match": "all", "a": None}, {"b": 1}, False),
    ({"x-match": "any", "a": None}, {"a": 5}, True),
    ({"x-match": "all", "x-a": 1}, {}, True), ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
    ({"x-match": "all", "x-a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True), ({"x-match": "all-with-x", "x-a": 1}, {}, False),
    ({"x-match": "all-with-x", "x-a": 1, "b": 2}, {"b": 2}, False),
    ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 1}, True),
    ({"x-match": "any-with-x", "x-a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "any-with-x", "x-a": 1}, {"x-a": 2}, False),
    ({"x-match": "all", "a": "1"}, {"a": 1}, False), ({"x-match": "all", "A": 1}, {"a": 1}, False),
    ({"x-match": "all", "a": True}, {"a": True}, True), ({"x-match": "all", "a": True}, {"a": 1}, False),
    ({"x-match": "all", "a": Wire("b", 1)}, {"a": Wire("l", 1)}, True),
    ({"x-match": "all", "a": [1, "x"]}, {"a": [1, "x"]}, True),
    ({"x-match": "all", "a": {"k": 1}}, {"a": {"k": 1}}, True),
])
def test_a_headers_exchange_matches_headers(ch, binding, headers, matches):
    x, q = ch.exchange("headers"), ch.queue()
    ch.bind(q, x, "ignored", **binding)
    ch.publish("whatever", "m", exchange=x, headers=headers)
    assert ch.drain(q) == (["m"] if matches else [])


def test_headers_bindings_of_one_queue_are_alternatives(ch):
    x, q = ch.exchange("headers"), ch.queue()
    ch.bind(q, x, **{"x-match": "all", "a": 1})
    ch.bind(q, x, **{"x-match": "all", "b": 1})
    for headers in ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}):
        ch.publish("", "m", exchange=x, headers=headers)
    assert ch.drain(q) == ["m", "m", "m"]
    ch.unbind(q, x, **{"x-match": "all", "a": 1})
    ch.publish("", "m", exchange=x, headers={"a": 1})
    assert ch.drain(q) == []


# --- exchange to exchange


def test_exchanges_can_be_bound_to_exchanges(ch):
    source, destination = ch.exchange("topic", name="source"), ch.exchange("direct", name="destination")
    (q,) = ch.bound(destination, "a.b")
    ch.bind_exchange(destination, source, "a.*")
    ch.publish("a.b", "yes", exchange=source)
    ch.publish("a.c", "no", exchange=source)
    message = ch.get(q)
    assert (message.body, message.exchange, message.routing_key) == ("yes", source, "a.b")
    assert ch.get(q) is None
    ch.unbind_exchange(destination, source, "a.*")
    ch.publish("a.b", "no longer", exchange=source)
    assert ch.get(q) is None


def test_a_message_that_reaches_an_exchange_by_two_ways_is_delivered_once(ch):
    source, end, q = ch.exchange("fanout", name="source"), ch.exchange("fanout", name="end"), ch.queue()
    ch.bind(q, end)
    for name in ("left", "right"):
        middle = ch.exchange("fanout", name=name)
        ch.bind_exchange(middle, source)
        ch.bind_exchange(end, middle)
    ch.publish("", "m", exchange=source)
    assert ch.drain(q) == ["m"]


# --- lifetime


def test_an_auto_delete_exchange_that_is_bound_to_another_goes_when_its_own_bindings_go(ch):
    x, source, q = ch.exchange("fanout", auto_delete=True), ch.exchange("fanout", name="source"), ch.queue()
    ch.bind_exchange(x, source)
    ch.bind(q, x)
    ch.unbind(q, x)
    ch.refuses(lambda c: c.publish("", "m", exchange=x), 404, f"no exchange '{x}' in vhost '/'")


# --- CC and BCC


def test_cc_and_bcc_add_routing_keys(ch):
    x = ch.exchange("direct")
    queues = ch.bound(x, "key", "cc1", "cc2", "bcc1", "other")
    ch.publish("key", "m", exchange=x, headers={"CC": ["cc1", "cc2"], "BCC": ["bcc1"]})
    for q in queues[:4]:
        message = ch.get(q)
        assert (message.exchange, message.routing_key) == (x, "key")
        assert message.headers == {"CC": ["cc1", "cc2"]}
    assert ch.get(queues[4]) is None


def test_lower_case_cc_is_just_a_header(ch):
    one, two = ch.queue(), ch.queue()
    ch.publish(one, "m", headers={"cc": [two]})
    assert ch.get(two) is None

# --- federation


def test_x_federation_upstream_keeps_back_what_its_cluster_has_had(ch, under):
    if under.name == "rabbitmq":
        pytest.skip("RabbitMQ has the type only with its plugin")
    q = ch.queue()
    of = {"x-max-hops": 2, "x-downstream-name": "here", "x-downstream-vhost": "/"}
    x = ch.exchange("x-federation-upstream", arguments=of)
    ch.bind(q, x)
    link = lambda cluster, vhost: {"cluster-name": cluster, "vhost": vhost}
    for body, links in [("none", None), ("other", [link("there", "/")]), ("vhost", [link("here", "v")]),
                        ("back", [link("here", "/")]), ("far", [link("a", "/"), link("b", "/")]), ("odd", "text")]:
        ch.publish("", body, exchange=x, headers={} if links is None else {"x-received-from": links})
    assert ch.drain(q) == ["none", "other", "vhost", "odd"]
