"""The contract of the archived delayed-message plugin, row by row, as its programs rely on it.

Where the two differ on purpose, Leveret's behaviour is tested: a longer delay is accepted, `mandatory` is judged by the
bindings at the publish, and the alternate exchange gets what no binding takes when the time has come. Restarts and the
order of delivery times are in `test_delivery_time`.

Most messages wait for an hour and are then delivered at once by `amq.schedule`, so that no test depends on a pause.
"""

import pytest

from field_table import Wire

pytestmark = pytest.mark.better

HOUR_MS = 3_600_000
TEN_YEARS_MS = 315_360_000_000


@pytest.fixture(autouse=True)
def leveret_only(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("the plugin does not start on RabbitMQ 4.3")


def delayed_exchange(ch, type="direct", **more):
    return ch.exchange("x-delayed-message", arguments={"x-delayed-type": type} | more)


def later(ch, exchange, key, body="m", **properties):
    """A message that waits in the exchange under the name of its body."""
    headers = {"x-delay": HOUR_MS, "x-schedule-id": body} | properties.pop("headers", {})
    return ch.publish(key, body, exchange=exchange, headers=headers, **properties)


def deliver_now(ch, exchange, body):
    """An operation on the schedule with this name, which comes back if no message waits."""
    ch.publish("", "", exchange="amq.schedule", mandatory=True, headers={
        "x-schedule-op": "deliver-now", "x-schedule-target": f"exchange/{exchange}", "x-schedule-id": body})


def release(ch, exchange, body="m"):
    """The time of a message has come."""
    returned = len(ch.returned)
    deliver_now(ch, exchange, body)
    assert len(ch.returned) == returned, "no message waits"


def delayed(api, exchange):
    return api.do("GET", f"/api/exchanges/%2F/{exchange}")["messages_delayed"]


# --- declaration


@pytest.mark.parametrize("type, key, arguments", [
    ("direct", "k", {}), ("fanout", "", {}), ("topic", "*.#", {}), ("headers", "", {"a": 1}),
    ("x-consistent-hash", "1", {}), ("x-modulus-hash", "", {}),
])
def test_every_type_of_exchange_routes(ch, type, key, arguments):
    x = delayed_exchange(ch, type)
    q = ch.queue()
    ch.bind(q, x, key, **arguments)
    later(ch, x, "k", headers={"a": 1})
    assert ch.count(q) == 0
    release(ch, x)
    assert ch.take(q).body == "m"


def test_a_redeclaration_compares_no_type(ch, api):
    """A trap of the plugin: the first routing type stays."""
    x = delayed_exchange(ch, "direct")
    ch.exchange("x-delayed-message", x, arguments={"x-delayed-type": "fanout"})
    assert api.do("GET", f"/api/exchanges/%2F/{x}")["arguments"] == {"x-delayed-type": "direct"}
    ch.refuses(lambda c: c.exchange("direct", x), 406,
               f"inequivalent arg 'type' for exchange '{x}' in vhost '/': received 'direct' but current is "
               "'x-delayed-message'")


def test_bindings_are_checked_by_the_type(ch):
    x = delayed_exchange(ch, "headers")
    ch.refuses(lambda c: c.bind(c.queue(), x, "", **{"x-match": "some"}), 406,
               "Invalid x-match field value <<\"some\">>; expected all, any, all-with-x, or any-with-x")


# --- the header


@pytest.mark.parametrize("wire", ["b", "B", "s", "u", "I", "i", "l", "L"])
def test_every_integer_is_a_delay(ch, wire):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    ch.publish("k", "m", exchange=x, headers={"x-delay": Wire(wire, 100)})
    headers = ch.take(q).properties.headers
    assert (headers["x-delay"], headers.type_of("x-delay")) == (-100, "l")


@pytest.mark.parametrize("value, delay_ms", [("100", 100), (Wire("d", 100.9), 100), (Wire("f", 50.0), 50)])
def test_texts_and_fractions_are_delays(ch, value, delay_ms):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    ch.publish("k", "m", exchange=x, headers={"x-delay": value})
    headers = ch.take(q).properties.headers
    assert (headers["x-delay"], headers.type_of("x-delay")) == (-delay_ms, "l")


@pytest.mark.parametrize("value", [True, None, [100], {"ms": 100}, Wire("T", 100)])
def test_other_types_are_no_delay(ch, api, value):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    ch.publish("k", "m", exchange=x, headers={"x-delay": value})
    assert ch.count(q) == 1 and delayed(api, x) == 0


@pytest.mark.parametrize("headers", [{}, {"x-delay": 0}, {"x-delay": -5}, {"x-delay": "-5"}])
def test_no_delay_leaves_the_header_alone(ch, headers):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    ch.publish("k", "m", exchange=x, headers=headers)
    assert ch.count(q) == 1
    assert ch.get(q).properties.headers == headers


def test_a_delay_of_ten_years_is_accepted(ch, api):
    """The plugin routes what is longer than 49 days at once."""
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    for delay_ms in (1 << 32, TEN_YEARS_MS):
        assert ch.publish("k", "m", exchange=x, headers={"x-delay": delay_ms}) == "a"
    assert delayed(api, x) == 2 and ch.count(q) == 0
    ch.refuses(lambda c: c.publish("k", "m", exchange=x, headers={"x-delay": TEN_YEARS_MS + 1}), 406,
               f"invalid x-delay '{TEN_YEARS_MS + 1}': further away than {TEN_YEARS_MS} ms")
    assert delayed(api, x) == 2


def test_a_released_message_is_not_delayed_again(ch):
    """Its header is negative: it goes through the exchange at once when it is dead-lettered or published again."""
    x = delayed_exchange(ch)
    q = ch.queue(dead_letter_exchange=x, dead_letter_routing_key="dead")
    ch.bind(q, x, "k")
    dead, = ch.bound(x, "dead")
    later(ch, x, "k")
    release(ch, x)
    ch.nack(ch.poll(lambda: ch.get(q, ack=False)))
    message = ch.take(dead)
    assert message.properties.headers["x-delay"] == -HOUR_MS
    assert message.properties.headers["x-death"][0]["reason"] == "rejected"


# --- routing


def test_bindings_count_at_the_end_of_the_delay(ch):
    x = delayed_exchange(ch)
    old, = ch.bound(x, "k")
    later(ch, x, "k")
    ch.unbind(old, x, "k")
    new, = ch.bound(x, "k")
    release(ch, x)
    assert ch.take(new).body == "m" and ch.count(old) == 0


def test_equal_times_keep_the_order_of_arrival(ch):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    for number in range(20):
        later(ch, x, "k", str(number), headers={"x-schedule-id": "one"} | {"x-schedule-mode": "add"})
    release(ch, x, "one")
    assert [ch.take(q).body for _ in range(20)] == [str(number) for number in range(20)]


def test_mandatory_is_judged_by_the_bindings_at_the_publish(ch):
    """The plugin returns every delayed message."""
    x = delayed_exchange(ch)
    ch.bound(x, "k")
    assert later(ch, x, "k", "routed", mandatory=True) == "a" and ch.returned == []
    assert later(ch, x, "elsewhere", "unroutable", mandatory=True) == "a"
    assert [(message.body, message.reply[0]) for message in ch.returned] == [("unroutable", 312)]


def test_an_alternate_exchange_gets_what_no_binding_takes_then(ch):
    """The plugin sends a copy to it at once."""
    other = ch.exchange("fanout")
    rest, = ch.bound(other, "")
    x = delayed_exchange(ch, **{"alternate-exchange": other})
    q, = ch.bound(x, "k")
    later(ch, x, "k", "taken")
    later(ch, x, "elsewhere", "left")
    assert ch.count(rest) == 0
    release(ch, x, "taken")
    release(ch, x, "left")
    assert ch.take(q).body == "taken"
    assert ch.take(rest).body == "left" and ch.count(rest) == 0


def test_unroutable_messages_are_dropped_once(ch, api):
    x = delayed_exchange(ch)
    later(ch, x, "k")
    release(ch, x)
    ch.poll(lambda: delayed(api, x) == 0)
    q, = ch.bound(x, "k")
    assert ch.stays(q, 0)


def test_copies_go_where_cc_and_bcc_say_in_the_end(ch):
    x = delayed_exchange(ch)
    later(ch, x, "a", headers={"CC": ["b"], "BCC": ["c"]})
    queues = ch.bound(x, "a", "b", "c")
    release(ch, x)
    found = [ch.take(q) for q in queues]
    assert [message.body for message in found] == ["m"] * 3
    assert all("BCC" not in message.properties.headers and message.properties.headers["CC"] == ["b"] for message in found)


def test_a_delay_for_each_path(ch, api):
    """Messages reach a delayed exchange through bindings and as dead letters, too, and wait in each one."""
    source = ch.exchange("fanout")
    first, second = delayed_exchange(ch, "fanout"), delayed_exchange(ch, "fanout")
    for x in (first, second):
        ch.bind_exchange(x, source)
    q, = ch.bound(first, "")
    last, = ch.bound(second, "")
    later(ch, source, "")
    assert (delayed(api, first), delayed(api, second)) == (1, 1)
    release(ch, first)
    assert ch.take(q).body == "m" and ch.count(last) == 0
    release(ch, second)
    assert ch.take(last).body == "m"


def test_a_dead_letter_exchange_delays(ch, api):
    x = delayed_exchange(ch, "fanout")
    target, = ch.bound(x, "")
    q = ch.queue(dead_letter_exchange=x)
    ch.publish(q, "m", headers={"x-delay": HOUR_MS, "x-schedule-id": "m"})
    ch.nack(ch.get_unacked(q))
    ch.sync()
    ch.poll(lambda: delayed(api, x) == 1)
    assert ch.count(target) == 0
    release(ch, x)
    assert ch.take(target).properties.headers["x-death"][0]["queue"] == q


def test_the_ttl_begins_in_the_queue(ch, dlq):
    x = delayed_exchange(ch)
    q = ch.queue(dead_letter_exchange="", dead_letter_routing_key=dlq)
    ch.bind(q, x, "k")
    ch.publish("k", "m", exchange=x, expiration="100", headers={"x-delay": 300})
    death = ch.take(dlq).properties.headers["x-death"][0]
    assert (death["reason"], death["queue"]) == ("expired", q)


# --- the exchange


def test_a_deleted_exchange_takes_its_messages_along(ch):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    later(ch, x, "k")
    ch.delete_exchange(x)
    x = ch.exchange("x-delayed-message", x, arguments={"x-delayed-type": "direct"})
    ch.bind(q, x, "k")
    deliver_now(ch, x, "m")
    assert [message.reply[0] for message in ch.returned] == [312] and ch.count(q) == 0


def test_if_unused_asks_for_bindings_alone(ch):
    x = delayed_exchange(ch)
    later(ch, x, "k")
    ch.delete_exchange(x, if_unused=True)


def test_waiting_messages_are_counted_and_routed_ones_at_the_end(ch, api):
    x = delayed_exchange(ch)
    q, = ch.bound(x, "k")
    for number in range(3):
        later(ch, x, "k", str(number))
    assert delayed(api, x) == 3
    release(ch, x, "1")
    assert ch.take(q).body == "1"
    assert delayed(api, x) == 2
