"""Routing that wants to run for ever, grow without end or reach where it may not."""

import time

import pytest

import wire
from answers import UNHARMED, by_broker, channel_closed
from peer import Silent, client_properties

KEYS_MAX = 1024  # CC and BCC keys of one message; RabbitMQ has no limit
HEADERS_BINDING_ARGUMENTS_MAX = 256  # RabbitMQ has no limit
HASH_WEIGHT_MAX = 10_000
TOO_HEAVY = f"The binding key must not exceed {HASH_WEIGHT_MAX}"
DEAD_LETTER_TIMEOUT_S = 60.0
QUIET_S = 0.5  # what goes around without a pause comes by in less


def declare(peer, arguments=(), name=""):
    return peer.call(1, "queue.declare", queue=name, exclusive=True, arguments=list(arguments)).queue


def dead_letters_to(queue, ttl=None):
    arguments = [("x-dead-letter-exchange", ("S", b"")), ("x-dead-letter-routing-key", ("S", queue.encode()))]
    return arguments + ([("x-message-ttl", ("I", ttl))] if ttl is not None else [])


def count(peer, queue):
    return peer.call(1, "queue.declare", queue=queue, passive=True).message_count


def confirmed_publish(peer, exchange, key, body=b"x", properties=(), number=1):
    peer.publish(1, exchange, key, body, properties)
    assert peer.expect(1, "basic.ack", timeout=DEAD_LETTER_TIMEOUT_S).delivery_tag == number


@pytest.mark.hb(65)
@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_many_sender_selected_keys(peer, header):
    queue = declare(peer)
    keys = [("S", queue.encode())] * 3 + [("S", b"key %d" % index) for index in range(KEYS_MAX - 3)]
    peer.publish(1, "", "nowhere", b"x", {"headers": [(header, ("A", keys))]})
    assert peer.get(1, queue)[0].message_count == 0  # three times the same queue is one message


@pytest.mark.hb(65)
@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_too_many_sender_selected_keys(peer, header):
    keys = [("S", b"%d" % index) for index in range(10_000)]
    peer.publish(1, "", "nowhere", b"x", {"headers": [(header, ("A", keys))]})
    assert peer.outcome_or_unharmed() == by_broker(
        rabbitmq=UNHARMED,
        leveret=channel_closed(406, f"invalid message: more than 1024 keys in header '{header}'", "basic.publish"))


@pytest.mark.hb(65)
def test_members_of_sender_selected_keys_that_are_no_strings(peer):
    """They are passed over."""
    queue = declare(peer)
    keys = [("I", 1), ("V", None), ("A", [("S", queue.encode())]), ("S", queue.encode()), ("F", []), ("S", b"\xff\xfe")]
    peer.publish(1, "", "nowhere", b"x", {"headers": [("CC", ("A", keys))]})
    assert peer.get(1, queue)[1].properties["headers"] == [("CC", ("A", keys))]


def forged_death(index, times):
    return ("F", [
        ("count", ("l", times)), ("reason", ("S", b"rejected")), ("queue", ("S", b"forged %d" % index)),
        ("time", ("T", (1 << 64) - 1)), ("exchange", ("S", b"")), ("routing-keys", ("A", [("S", b"k")]))])


FORGED = {
    "1000-entries": ("A", [forged_death(index, 1) for index in range(1000)]),
    "huge-count": ("A", [forged_death(0, (1 << 63) - 1)]),
    "negative-count": ("A", [forged_death(0, -(1 << 63))]),
    "string": ("S", b"x" * 1000),
    "int": ("I", 7),
    "array-of-ints": ("A", [("I", 1), ("V", None)]),
    "empty-tables": ("A", [("F", [])] * 100),
    "wrong-types": ("A", [("F", [("count", ("S", b"x")), ("queue", ("I", 1)), ("reason", ("F", [])),
                                 ("time", ("S", b"now")), ("routing-keys", ("S", b"k"))])]),
}


@pytest.mark.hb(66)
@pytest.mark.parametrize("case", FORGED)
def test_forged_deaths_are_replaced_at_the_first_death(peer, case):
    dead = declare(peer)
    queue = declare(peer, dead_letters_to(dead))
    forged = [("x-death", FORGED[case]), ("x-first-death-queue", ("I", 1)), ("x-last-death-reason", ("V", None))]
    peer.publish(1, "", queue, b"x", {"headers": forged})
    got, header, _ = peer.get(1, queue, no_ack=False)
    assert dict(header.properties["headers"])["x-death"] == FORGED[case]  # passed on untouched until then
    peer.send_method(1, "basic.nack", delivery_tag=got.delivery_tag)
    headers = dict(peer.get(1, dead)[1].properties["headers"])
    (tag, death), = headers["x-death"][1]
    assert tag == "F" and [key for key, _ in death] == ["count", "reason", "queue", "time", "exchange", "routing-keys"]
    death = dict(death)
    assert (death["count"], death["queue"], death["reason"]) == (("l", 1), ("S", queue.encode()), ("S", b"rejected"))
    assert headers["x-first-death-queue"] == ("S", queue.encode())
    assert headers["x-last-death-reason"] == ("S", b"rejected")


@pytest.mark.hb(67)
def test_dead_letters_to_itself(peer):
    """Expired into the queue it came from: a cycle without a rejection is dropped."""
    queue = declare(peer, [("x-dead-letter-exchange", ("S", b"")), ("x-message-ttl", ("I", 0))])
    peer.call(1, "confirm.select")
    confirmed_publish(peer, "", queue)
    assert count(peer, queue) == 0


@pytest.mark.hb(67)
@pytest.mark.parametrize("size", [2, 100])
def test_ring_of_queues_with_ttl_zero(peer, names, size):
    """A message dies once in every queue and is dropped when it would enter the first again; then all is quiet."""
    ring = [names.any() for _ in range(size)]
    for index, queue in enumerate(ring):
        declare(peer, dead_letters_to(ring[(index + 1) % size], ttl=0), queue)
    peer.call(1, "confirm.select")
    # One message is caught behind the last queue and tells its way.
    peer.call(2, "channel.open")
    tag = peer.call(2, "basic.consume", queue=ring[-1], no_ack=True).consumer_tag
    peer.publish(2, "", ring[0], b"caught")
    peer.expect(2, "basic.deliver", timeout=DEAD_LETTER_TIMEOUT_S)
    headers = dict(peer.read_content(2)[0].properties["headers"])
    assert [dict(death)["queue"][1].decode() for _, death in headers["x-death"][1]] == ring[-2::-1]
    peer.call(2, "basic.cancel", consumer_tag=tag)
    # The next one is not. If it went around for ever, a consumer would sooner or later get it.
    confirmed_publish(peer, "", ring[0])
    deadline = time.monotonic() + DEAD_LETTER_TIMEOUT_S
    while any(count(peer, queue) for queue in ring):
        assert time.monotonic() < deadline
    peer.call(2, "basic.consume", queue=ring[0], no_ack=True)
    with pytest.raises(Silent):
        peer.read_frame_but_heartbeat(timeout=QUIET_S)


@pytest.mark.hb(96)
def test_headers_do_not_grow_in_a_retry_loop(peer, names):
    """100 times between two queues with rejections: x-death stays two entries."""
    one, two = names.any(), names.any()
    declare(peer, dead_letters_to(two), one)
    declare(peer, dead_letters_to(one), two)
    headers = [(f"h{index:03}", ("S", b"v" * 200)) for index in range(500)]
    peer.publish(1, "", one, b"x", {"headers": headers})
    sizes = []
    for index in range(100):
        got, header, _ = peer.get(1, (one, two)[index % 2], no_ack=False, timeout=DEAD_LETTER_TIMEOUT_S)
        sizes.append(len(wire.table(header.properties["headers"])))
        peer.send_method(1, "basic.nack", delivery_tag=got.delivery_tag)
    deaths = dict(header.properties["headers"])["x-death"][1]
    assert [dict(death)["count"] for _, death in deaths] == [("l", 50), ("l", 49)]
    assert sizes[-1] == sizes[3] <= sizes[0] + 2048


@pytest.mark.hb(68)
def test_alternate_exchange_cycle(peer, names):
    """Unroutable through a ring of alternate exchanges: returned, once."""
    ring = [names.exchange() for _ in range(5)]
    for index, exchange in enumerate(ring):
        peer.call(1, "exchange.declare", exchange=exchange, type="direct",
                  arguments=[("alternate-exchange", ("S", ring[(index + 1) % 5].encode()))])
    peer.publish(1, ring[0], "nowhere", b"x", mandatory=True)
    peer.expect(1, "basic.return")
    peer.read_content(1)
    peer.assert_usable()


@pytest.mark.hb(68)
@pytest.mark.parametrize("size", [1, 2, 50])
def test_exchange_to_exchange_cycle(peer, names, size):
    """Every exchange feeds the next and the last the first: each queue gets one copy."""
    ring = [names.exchange() for _ in range(size)]
    queues = [declare(peer) for _ in ring]
    for exchange in ring:
        peer.call(1, "exchange.declare", exchange=exchange, type="fanout")
    for index, exchange in enumerate(ring):
        peer.call(1, "exchange.bind", destination=ring[(index + 1) % size], source=exchange)
        peer.call(1, "queue.bind", queue=queues[index], exchange=exchange)
    peer.call(1, "confirm.select")
    confirmed_publish(peer, ring[0], "k")
    assert [count(peer, queue) for queue in queues] == [1] * size


@pytest.mark.hb(70)
@pytest.mark.parametrize("key, hashes", [("#.#.#", 3), ("a.#.#.#", 3), ("#.a.#.b.#", 3), (".".join("#" * 100), 100)])
def test_too_many_wildcards(peer, key, hashes):
    declare(peer)
    peer.send_method(1, "queue.bind", exchange="amq.topic", routing_key=key)
    assert peer.outcome() == channel_closed(
        406, f"Topic binding key '{key}' uses {hashes} '#' wildcards, at most 2 are allowed", "queue.bind")


@pytest.mark.hb(70)
@pytest.mark.parametrize("key", ["#", "#.#", "*." * 100 + "*", "#.a.#", "a#.b##.#", "." * 255])
def test_wildcards_that_are_taken(peer, key):
    declare(peer)
    peer.call(1, "queue.bind", exchange="amq.topic", routing_key=key)


@pytest.mark.hb(71)
def test_topic_bomb(broker, peer, names):
    """Keys of 127 words against patterns that make a backtracking matcher try everything."""
    publishes, cpu_max_s = 100, 1.0
    exchange = names.exchange()
    peer.call(1, "exchange.declare", exchange=exchange, type="topic")
    queue = declare(peer)
    for index in range(30):
        peer.call(1, "queue.bind", queue=queue, exchange=exchange, routing_key="#." + "a.*." * index + "#.b")
    key = ".".join("a" * 127)
    peer.call(1, "confirm.select")
    before_s = broker.cpu_s()
    for _ in range(publishes):
        peer.publish(1, exchange, key, b"x")
    confirmed = 0
    while confirmed < publishes:
        confirmed = peer.expect(1, "basic.ack").delivery_tag
    assert broker.cpu_s() - before_s <= cpu_max_s
    assert count(peer, queue) == 0


@pytest.mark.hb(72)
@pytest.mark.parametrize("arguments", [HEADERS_BINDING_ARGUMENTS_MAX, HEADERS_BINDING_ARGUMENTS_MAX + 1, 5000])
def test_arguments_of_a_headers_binding(peer, arguments):
    queue = declare(peer)
    table = [(f"h{index}", ("I", index)) for index in range(arguments)]
    peer.send_method(1, "queue.bind", queue=queue, exchange="amq.headers", arguments=table)
    if arguments > HEADERS_BINDING_ARGUMENTS_MAX and by_broker(rabbitmq=False, leveret=True):
        text = f"headers binding has {arguments} arguments, at most {HEADERS_BINDING_ARGUMENTS_MAX} are allowed"
        assert peer.outcome() == channel_closed(406, text, "queue.bind")
        return
    peer.expect(1, "queue.bind-ok")
    peer.publish(1, "amq.headers", "", b"x", {"headers": table})
    assert peer.get(1, queue)[2] == b"x"


@pytest.mark.leveret_only("RabbitMQ's plug-in may not be enabled")
@pytest.mark.hb(73)
@pytest.mark.parametrize("weight, text", [
    ("2147483648", TOO_HEAVY), ("10001", TOO_HEAVY), ("99999999999999999999", TOO_HEAVY),
    ("0", "The binding key must be greater than 0"), ("-2147483648", "The binding key must be greater than 0"),
    ("1e9", 'The binding key must be an integer: <<"1e9">>'), ("0x7", 'The binding key must be an integer: <<"0x7">>'),
    ("", "The binding key must be an integer: <<>>"), ("1" * 255, TOO_HEAVY),
], ids=lambda text: text[:12])
def test_weights_of_a_consistent_hash_exchange(peer, names, weight, text):
    exchange = names.exchange()
    peer.call(1, "exchange.declare", exchange=exchange, type="x-consistent-hash")
    queue = declare(peer)
    peer.call(1, "queue.bind", queue=queue, exchange=exchange, routing_key=str(HASH_WEIGHT_MAX))
    peer.send_method(1, "queue.bind", queue=queue, exchange=exchange, routing_key=weight)
    assert peer.outcome() == channel_closed(406, text, "queue.bind")


@pytest.mark.hb(69)
def test_direct_reply_to(broker):
    """Works between two connections; a forged address goes nowhere; the token cannot be guessed from others."""
    tokens = set()
    for _ in range(5):
        with broker.peer() as client, broker.peer() as server:
            client.connect()
            server.connect()
            queue = server.call(1, "queue.declare", exclusive=True).queue
            client.call(1, "basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
            client.publish(1, "", queue, b"question", {"reply_to": "amq.rabbitmq.reply-to"})
            token = server.get(1, queue)[1].properties["reply_to"]
            assert token.startswith("amq.rabbitmq.reply-to.") and len(token) > len("amq.rabbitmq.reply-to.") + 21
            tokens.add(token)
            forged = token[:-1] + ("A" if token[-1] != "A" else "B")
            for address in (forged, token + "x", "amq.rabbitmq.reply-to.", "amq.rabbitmq.reply-to.x.y"):
                server.publish(1, "", address, b"forged")
            server.publish(1, "", token, b"answer")
            client.expect(1, "basic.deliver")
            assert client.read_content(1)[1] == b"answer"
            client.assert_usable()
    assert len(tokens) == 5


@pytest.mark.hb(69)
@pytest.mark.parametrize("name, arguments, answer", [
    ("basic.consume", {}, channel_closed(406, "reply consumer cannot acknowledge", "basic.consume")),
    ("basic.get", {}, channel_closed(404, "no queue 'amq.rabbitmq.reply-to' in vhost '/'", "basic.get")),
    ("queue.bind", {"exchange": "amq.topic"},
     channel_closed(404, "no queue 'amq.rabbitmq.reply-to' in vhost '/'", "queue.bind")),
])
def test_strings_that_are_no_reply_address(peer, name, arguments, answer):
    peer.send_method(1, name, queue="amq.rabbitmq.reply-to", **arguments)
    assert peer.outcome() == answer


@pytest.mark.hb(69)
def test_second_reply_consumer(peer):
    peer.call(1, "basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    peer.send_method(1, "basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    assert peer.outcome() == channel_closed(406, "reply consumer already set", "basic.consume")


@pytest.mark.hb(69)
def test_reply_to_without_a_reply_consumer(peer):
    peer.publish(1, "", "nowhere", b"x", {"reply_to": "amq.rabbitmq.reply-to"})
    assert peer.outcome() == channel_closed(406, "fast reply consumer does not exist", "basic.publish")


@pytest.mark.hb(95)
@pytest.mark.parametrize(
    "priority", [("l", (1 << 63) - 1), ("l", -(1 << 63)), ("I", -1), ("b", -128), ("i", (1 << 32) - 1)])
def test_extreme_consumer_priorities(peer, priority):
    """The higher one is served as long as it has credit."""
    queue = declare(peer)
    peer.call(1, "basic.consume", queue=queue, consumer_tag="default", no_ack=True)
    peer.call(1, "basic.consume", queue=queue, consumer_tag="extreme", no_ack=True,
              arguments=[("x-priority", priority)])
    peer.publish(1, "", queue, b"x")
    expected = "extreme" if priority[1] > 0 else "default"
    assert peer.expect(1, "basic.deliver").consumer_tag == expected


@pytest.mark.hb(97)
def test_clocks_of_clients_mean_nothing(peer):
    """Neither a timestamp nor a delay header of another broker moves a message in time."""
    queue = declare(peer)
    for timestamp in (0, 1, (1 << 64) - 1):
        peer.publish(1, "", queue, b"x", {
            "timestamp": timestamp, "expiration": "60000",
            "headers": [("x-delay", ("I", 100_000)), ("timestamp_in_ms", ("l", -1))]})
        assert peer.get(1, queue)[1].properties["timestamp"] == timestamp


@pytest.mark.hb(59)
def test_purge_and_delete_while_messages_are_out(broker):
    with broker.peer() as peer:
        peer.connect(properties=client_properties(consumer_cancel_notify=True))
        queue = declare(peer)
        for _ in range(5):
            peer.publish(1, "", queue, b"x")
        tags = [peer.get(1, queue, no_ack=False)[0].delivery_tag for _ in range(2)]
        assert peer.call(1, "queue.purge", queue=queue).message_count == 3
        peer.send_method(1, "basic.nack", delivery_tag=tags[0], requeue=True)
        got, _, _ = peer.get(1, queue, no_ack=False)
        assert got.redelivered
        peer.call(1, "basic.consume", queue=queue, consumer_tag="c")
        peer.send_method(1, "queue.delete", queue=queue)
        answers = dict((got.name, got) for _, got in (peer.read_method(), peer.read_method()))
        assert answers["queue.delete-ok"].message_count == 0
        assert answers["basic.cancel"].args == {"consumer_tag": "c", "nowait": True}
        peer.send(*(wire.method_frame(1, "basic.ack", delivery_tag=tag) for tag in (tags[1], got.delivery_tag)))
        peer.assert_usable()
