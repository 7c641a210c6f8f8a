"""The management API: exchanges and bindings."""

import pytest

from brokers import quoted
from definitions import Policy, User

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}
PREDECLARED = {
    "": "direct", "amq.direct": "direct", "amq.fanout": "fanout", "amq.headers": "headers", "amq.match": "headers",
    "amq.rabbitmq.trace": "topic", "amq.topic": "topic",
}
# Exchanges of Leveret alone.
OPERATIONS = {"amq.schedule", "amq.settle"}


@pytest.fixture
def http(under):
    """The HTTP API of the shared broker."""
    return under.shared().api


@pytest.fixture
def shown(http):
    """`shown(path)`: the answer below /api; a path of several parts is quoted."""
    return lambda *path, query="": http.ask("/api/" + quoted(*path) + query).json


def chosen(object, *names):
    return {name: object.get(name) for name in names}


def binding(source, destination, routing_key, arguments=None, kind="queue"):
    return {
        "source": source, "vhost": "/", "destination": destination, "destination_type": kind, "routing_key": routing_key,
        "arguments": arguments or {},
    }


def without_keys(bindings):
    """The bindings without `properties_key`, in an order of their own."""
    bindings = [{name: value for name, value in one.items() if name != "properties_key"} for one in bindings]
    return sorted(bindings, key=str)


def test_an_exchange_is_as_it_was_declared(shown, ch):
    x = ch.exchange("topic", alternate_exchange="amq.fanout", arguments={"n": 2**40, "list": [1, "a"]})
    expected = {
        "name": x, "vhost": "/", "type": "topic", "durable": True, "auto_delete": False, "internal": False,
        "arguments": {"alternate-exchange": "amq.fanout", "n": 2**40, "list": [1, "a"]},
    }
    assert chosen(shown("exchanges", "/", x), *expected) == expected
    [listed] = [one for one in shown("exchanges", "/") if one["name"] == x]
    assert chosen(listed, *expected) == expected
    other = ch.exchange("headers", durable=False, auto_delete=True, internal=True)
    expected = {"type": "headers", "durable": False, "auto_delete": True, "internal": True, "arguments": {}}
    assert chosen(shown("exchanges", "/", other), *expected) == expected


def test_predeclared_exchanges_are_listed(defined, prefix):
    vhost = prefix + "v"
    defined(vhosts=[vhost])
    listed = defined.client.broker.api.ask("/api/exchanges/" + quoted(vhost)).json
    types = {one["name"]: one["type"] for one in listed}
    assert {name: kind for name, kind in types.items() if name not in OPERATIONS} == PREDECLARED
    assert {one["name"] for one in listed if one["internal"]} == {"amq.rabbitmq.trace"}
    of_default = defined.client.broker.api.ask("/api/exchanges/%2F").json
    assert {one["name"] for one in of_default if one["internal"]} == {"amq.rabbitmq.trace", "amq.rabbitmq.log"}
    everything = defined.client.broker.api.ask("/api/exchanges").json
    assert {(one["vhost"], one["name"]) for one in everything} >= {(v, n) for v in ("/", vhost) for n in PREDECLARED}


def test_the_default_exchange_has_another_name_in_paths(shown):
    assert chosen(shown("exchanges", "/", "amq.default"), "name", "type") == {"name": "", "type": "direct"}


def test_exchanges_come_in_pages(http, ch, prefix):
    for _ in range(3):
        ch.exchange()
    page = http.ask(f"/api/exchanges/%2F?page=2&page_size=2&name={prefix}&columns=type").json
    total = page.pop("total_count")
    assert total >= 10
    assert page == {
        "filtered_count": 3, "item_count": 1, "items": [{"type": "direct"}], "page": 2, "page_count": 2, "page_size": 2,
    }
    assert http.ask("/api/exchanges?page=0").status == 400


def test_an_exchange_names_its_policy(defined, prefix):
    ch = defined(policies=[Policy({"alternate-exchange": "amq.fanout"}, name="p", apply_to="exchanges")])
    x = ch.exchange()
    api = defined.client.broker.api
    assert api.ask("/api/exchanges/" + quoted("/", x)).json["policy"] == prefix + "p"
    assert "policy" not in api.ask("/api/exchanges/%2F/amq.direct").json


@pytest.fixture
def bound(ch):
    """A queue and two exchanges with bindings of all kinds, and what is expected of them."""

    class Bound:
        q, x, y = ch.queue(), ch.exchange("topic"), ch.exchange("headers")

    ch.bind(Bound.q, Bound.x, "a.#")
    ch.bind(Bound.q, Bound.x, "k", n=1)
    ch.bind(Bound.q, Bound.x, "k", n=2)
    ch.bind(Bound.q, Bound.y, "", **{"x-match": "all", "f": True})
    ch.bind_exchange(Bound.y, Bound.x, "to.exchange")
    Bound.implicit = binding("", Bound.q, Bound.q)
    Bound.from_x = [binding(Bound.x, Bound.q, "a.#")] + [binding(Bound.x, Bound.q, "k", {"n": n}) for n in (1, 2)]
    Bound.from_y = [binding(Bound.y, Bound.q, "", {"x-match": "all", "f": True})]
    Bound.between = [binding(Bound.x, Bound.y, "to.exchange", kind="exchange")]
    return Bound


def test_bindings_are_shown_from_both_ends(shown, bound):
    of_queue = shown("queues", "/", bound.q, "bindings")
    assert without_keys(of_queue) == without_keys([bound.implicit, *bound.from_x, *bound.from_y])
    from_x = shown("exchanges", "/", bound.x, "bindings", "source")
    assert without_keys(from_x) == without_keys(bound.from_x + bound.between)
    assert shown("exchanges", "/", bound.x, "bindings", "destination") == []
    assert without_keys(shown("exchanges", "/", bound.y, "bindings", "source")) == without_keys(bound.from_y)
    assert without_keys(shown("exchanges", "/", bound.y, "bindings", "destination")) == without_keys(bound.between)
    default = without_keys(shown("exchanges", "/", "amq.default", "bindings", "source"))
    assert bound.implicit in default and {one["source"] for one in default} == {""}


def test_bindings_are_listed_for_all_vhosts_and_for_one(http, bound):
    expected = [bound.implicit, *bound.from_x, *bound.from_y, *bound.between]
    names = {bound.q, bound.x, bound.y}
    for path in ("/api/bindings", "/api/bindings/%2F"):
        found = [one for one in http.ask(path).json if one["destination"] in names]
        assert without_keys(found) == without_keys(expected), path


@pytest.mark.better
def test_bindings_have_pages_and_a_filter(shown, bound, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ's lists of bindings have no pages")
    of_queue = shown("queues", "/", bound.q, "bindings", query="?page=2&page_size=2&columns=source")
    assert of_queue["items"] == [{"source": bound.x}] * 2 and of_queue["filtered_count"] == 5
    # Not the queue that all of them have is compared, but the other end and the key.
    assert shown("queues", "/", bound.q, "bindings", query=f"?page=1&name={bound.q}")["filtered_count"] == 1
    assert shown("queues", "/", bound.q, "bindings", query=f"?page=1&name={bound.y}")["filtered_count"] == 1
    assert shown("exchanges", "/", bound.x, "bindings", "source", query=f"?page=1&name={bound.y}")["filtered_count"] == 1


def test_bindings_are_sorted_and_cut_to_columns(shown, bound):
    found = shown("queues", "/", bound.q, "bindings", query="?columns=source&sort=source&sort_reverse=true")
    assert found == [{"source": bound.y}] + 3 * [{"source": bound.x}] + [{"source": ""}]


@pytest.mark.parametrize("key, properties_key", [
    ("plain", "plain"), ("", "~"), ("a.#", "a.%23"), ("a.*", "a.%2A"), ("a b/c~d%é+_-", "a+b%2Fc%7Ed%25%C3%A9%2B_-"),
])
def test_the_key_of_a_binding_without_arguments_is_its_routing_key_for_paths(shown, ch, key, properties_key):
    q, x = ch.queue(), ch.exchange("topic")
    ch.bind(q, x, key)
    [found] = shown("exchanges", "/", x, "bindings", "source")
    assert found["properties_key"] == properties_key


def test_the_key_of_a_binding_with_arguments_tells_it_from_others(shown, bound):
    keys = {one["properties_key"] for one in shown("exchanges", "/", bound.x, "bindings", "source")}
    assert len(keys) == 4 and sum(key.startswith("k~") for key in keys) == 2
    [key] = [one["properties_key"] for one in shown("exchanges", "/", bound.y, "bindings", "source")]
    assert key.startswith("~") and len(key) > 1
    again = {one["properties_key"] for one in shown("queues", "/", bound.q, "bindings")}
    assert again >= keys - {"to.exchange"}


@pytest.mark.parametrize("path", ["exchanges/nope", "exchanges/%2F/nope", "exchanges/nope/nope", "bindings/nope"])
def test_absent_exchanges_are_404(http, path):
    answer = http.ask("/api/" + path)
    assert (answer.status, answer.json) == (404, NOT_FOUND)


@pytest.mark.better
@pytest.mark.parametrize("path", [
    "exchanges/%2F/nope/bindings/source", "exchanges/%2F/nope/bindings/destination", "queues/%2F/nope/bindings",
])
def test_absent_exchanges_have_no_bindings(http, path, by_broker):
    answer = http.ask("/api/" + path)
    implied = path.startswith("queues") and by_broker(rabbitmq=True, leveret=False)
    assert (answer.status, [binding["source"] for binding in answer.json]) == (200, [""] if implied else [])


@pytest.mark.parametrize("tag, sees", [("management", False), ("monitoring", False), ("administrator", True)])
def test_exchanges_and_bindings_are_for_those_who_have_permissions(defined, prefix, tag, sees):
    vhost = prefix + "v"
    ch = defined(vhosts=[vhost], users=[User("bob", vhost=vhost, tags=(tag,))])
    q, x = ch.queue(), ch.exchange()
    bob, api = prefix + "bob", defined.client.broker.api
    assert any(one["name"] == x for one in api.ask("/api/exchanges", user=bob).json) is sees
    assert any(one["destination"] == q for one in api.ask("/api/bindings", user=bob).json) is sees
    assert api.ask("/api/bindings/" + quoted(vhost), user=bob).json == []
    listed = {one["name"] for one in api.ask("/api/exchanges/" + quoted(vhost), user=bob).json}
    assert listed - OPERATIONS == PREDECLARED.keys()
    for path in (
        "/api/exchanges/%2F", "/api/exchanges/" + quoted("/", x), "/api/bindings/%2F",
        "/api/queues/" + quoted("/", q) + "/bindings", "/api/exchanges/" + quoted("/", x) + "/bindings/source",
    ):
        assert api.ask(path, user=bob).status == (200 if sees else 404), path


def test_an_exchange_and_a_queue_say_who_declared_them(api, made):
    vhost, anna = made.vhost(), made.user(tags="administrator")
    made.permit(anna, vhost)
    exchange, queue = "exchanges/" + quoted(vhost, "x"), "queues/" + quoted(vhost, "q")
    assert api.ask("/api/" + exchange, user=anna, method="PUT", body={"type": "fanout"}).status == 201
    assert api.ask("/api/" + queue, user=anna, method="PUT", body={"durable": True}).status == 201
    assert api.do("GET", "/api/" + exchange)["user_who_performed_action"] == anna
    declared = api.do("GET", f"/api/users/{quoted(anna)}/queues")
    assert [(one["vhost"], one["name"]) for one in declared] == [(vhost, "q")]
    assert api.do("GET", "/api/users/nobody/queues") == []
