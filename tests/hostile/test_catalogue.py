"""Every refusal a client can earn with a well-formed method, with code, text, and class and method id.

Each case gets a peer on channel 1, the name of an exclusive queue of its own that is the channel's last declared one,
and an unused name. It provokes the refusal and returns what must be answered.
"""

import pytest

import wire
from answers import channel_closed, connection_closed

MISSING = "hostile.never.declared"
DEFAULT_EXCHANGE = "operation not permitted on the default exchange"


def send(name, answer, **args):
    """A case of one method; `{queue}` in texts and arguments is the case's queue, `{name}` an unused name."""

    def provoke(peer, queue, unused):
        fill = {"queue": queue, "name": unused}
        filled = {key: text.format(**fill) if isinstance(text, str) else text for key, text in args.items()}
        peer.send_method(1, name, **filled)
        make, code, text = answer
        return make(code, text.format(**fill) if "'{" in text else text, name)

    return provoke


def channel(code, text):
    return channel_closed, code, text


def connection(code, text):
    return connection_closed, code, text


def publish(answer, exchange="", key="nowhere", properties=(), **flags):
    def provoke(peer, queue, unused):
        peer.publish(1, exchange, key, b"x", properties, **flags)
        make, code, text = answer
        return make(code, text, "basic.publish")

    return provoke


def after(*steps, then):
    """First the given calls, each (method, arguments), then the refused one."""

    def provoke(peer, queue, unused):
        for name, args in steps:
            filled = {key: text.format(queue=queue, name=unused) if isinstance(text, str) else text
                      for key, text in args.items()}
            peer.call(1, name, **filled)
        return then(peer, queue, unused)

    return provoke


def if_empty(peer, queue, unused):
    peer.publish(1, "", queue, b"x")
    peer.send_method(1, "queue.delete", queue=queue, if_empty=True)
    return channel_closed(406, f"queue '{queue}' in vhost '/' not empty", "queue.delete")


def settle_twice(name):
    def provoke(peer, queue, unused):
        peer.publish(1, "", queue, b"x")
        peer.get(1, queue, no_ack=False)
        peer.send(wire.method_frame(1, name, delivery_tag=1) * 2)
        return channel_closed(406, "unknown delivery tag 1", name)

    return provoke


NO_EXCHANGE = channel(404, f"no exchange '{MISSING}' in vhost '/'")
NO_QUEUE = channel(404, f"no queue '{MISSING}' in vhost '/'")
NO_PREVIOUS_QUEUE = channel(404, "no previously declared queue")
HAS_CONSUMER = ("basic.consume", {"queue": "{queue}", "consumer_tag": "t"})


def mismatch(argument, received, current):
    return channel(
        406,
        f"inequivalent arg '{argument}' for exchange 'amq.direct' in vhost '/': received {received} but current is "
        f"{current}")


CASES = {
    "publish-unknown-exchange": publish(NO_EXCHANGE, exchange=MISSING),
    "publish-unknown-exchange-mandatory": publish(NO_EXCHANGE, exchange=MISSING, mandatory=True),
    "publish-immediate": publish(connection(540, "immediate=true"), immediate=True),
    "publish-foreign-user-id": publish(
        channel(406, "user_id property set to 'bob' but authenticated user was 'guest'"),
        properties={"user_id": "bob"}),
    "publish-cc-string": publish(
        channel(406, 'invalid message: {unacceptable_type_in_header,"CC",longstr}'),
        properties={"headers": [("CC", ("S", b"x"))]}),
    "publish-bcc-int": publish(
        channel(406, 'invalid message: {unacceptable_type_in_header,"BCC",signedint}'),
        properties={"headers": [("BCC", ("I", 1))]}),
    "get-unknown": send("basic.get", NO_QUEUE, queue=MISSING),
    "consume-unknown": send("basic.consume", NO_QUEUE, queue=MISSING),
    "purge-unknown": send("queue.purge", NO_QUEUE, queue=MISSING),
    "bind-unknown": send("queue.bind", NO_QUEUE, queue=MISSING, exchange="amq.direct"),
    "bind-unknown-exchange": send("queue.bind", NO_EXCHANGE, queue="{queue}", exchange=MISSING),
    "passive-queue": send("queue.declare", NO_QUEUE, queue=MISSING, passive=True),
    "passive-nameless": send("queue.declare", channel(404, "no queue '' in vhost '/'"), passive=True),
    "passive-exchange": send("exchange.declare", NO_EXCHANGE, exchange=MISSING, type="direct", passive=True),
    "queue-reserved-name": send(
        "queue.declare", channel(403, "queue name 'amq.foo' contains reserved prefix 'amq.*'"), queue="amq.foo"),
    "exchange-reserved-name": send(
        "exchange.declare", channel(403, "exchange name 'amq.foo' contains reserved prefix 'amq.*'"),
        exchange="amq.foo", type="direct"),
    "exchange-type": send(
        "exchange.declare", channel(406, "unknown exchange type 'nope'"), exchange="{name}", type="nope"),
    "exchange-no-type": send("exchange.declare", channel(406, "invalid exchange type ''"), exchange="{name}"),
    "exchange-other-type": send(
        "exchange.declare", mismatch("type", "'fanout'", "'direct'"), exchange="amq.direct", type="fanout",
        durable=True),
    "exchange-other-durable": send(
        "exchange.declare", mismatch("durable", "'false'", "'true'"), exchange="amq.direct", type="direct"),
    "exchange-other-auto-delete": send(
        "exchange.declare", mismatch("auto_delete", "'true'", "'false'"), exchange="amq.direct", type="direct",
        durable=True, auto_delete=True),
    "exchange-other-internal": send(
        "exchange.declare", mismatch("internal", "'true'", "'false'"), exchange="amq.direct", type="direct",
        durable=True, internal=True),
    "exchange-other-alternate": send(
        "exchange.declare", mismatch("alternate-exchange", "the value 'y' of type 'longstr'", "none"),
        exchange="amq.direct", type="direct", durable=True, arguments=[("alternate-exchange", ("S", b"y"))]),
    "exchange-alternate-type": send(
        "exchange.declare",
        channel(406, "invalid type 'signedint' for arg 'alternate-exchange' in exchange '{name}' in vhost '/'"),
        exchange="{name}", type="direct", arguments=[("alternate-exchange", ("I", 1))]),
    "default-declare": send("exchange.declare", channel(403, DEFAULT_EXCHANGE), type="direct"),
    "default-delete": send("exchange.delete", channel(403, DEFAULT_EXCHANGE)),
    "default-bind": send("queue.bind", channel(403, DEFAULT_EXCHANGE), queue="{queue}"),
    "default-unbind": send("queue.unbind", channel(403, DEFAULT_EXCHANGE), queue="{queue}"),
    "default-bind-source": send("exchange.bind", channel(403, DEFAULT_EXCHANGE), destination="amq.direct"),
    "default-bind-destination": send("exchange.bind", channel(403, DEFAULT_EXCHANGE), source="amq.direct"),
    "default-unbind-source": send("exchange.unbind", channel(403, DEFAULT_EXCHANGE), destination="amq.direct"),
    "delete-system-exchange": send(
        "exchange.delete", channel(403, "deletion of system exchange 'amq.direct' in vhost '/' not allowed"),
        exchange="amq.direct"),
    "delete-missing-system-exchange": send(
        "exchange.delete", channel(403, "deletion of system exchange 'amq.nope' in vhost '/' not allowed"),
        exchange="amq.nope"),
    "exchange-in-use": after(
        ("exchange.declare", {"exchange": "{name}", "type": "fanout", "auto_delete": True}),
        ("queue.bind", {"queue": "{queue}", "exchange": "{name}"}),
        then=send("exchange.delete", channel(406, "exchange '{name}' in vhost '/' in use"), exchange="{name}",
                  if_unused=True)),
    "publish-internal": after(
        ("exchange.declare", {"exchange": "{name}", "type": "fanout", "auto_delete": True, "internal": True}),
        then=lambda peer, queue, unused: publish(
            channel(403, f"cannot publish to internal exchange '{unused}' in vhost '/'"), exchange=unused)(
                peer, queue, unused)),
    "queue-in-use": after(
        HAS_CONSUMER,
        then=send("queue.delete", channel(406, "queue '{queue}' in vhost '/' in use"), queue="{queue}",
                  if_unused=True)),
    "queue-not-empty": if_empty,
    "exclusive-consumer-second": after(
        HAS_CONSUMER,
        then=send("basic.consume", channel(403, "queue '{queue}' in vhost '/' in exclusive use"), queue="{queue}",
                  exclusive=True)),
    "exclusive-consumer-first": after(
        ("basic.consume", {"queue": "{queue}", "exclusive": True}),
        then=send("basic.consume", channel(403, "queue '{queue}' in vhost '/' in exclusive use"), queue="{queue}")),
    "consumer-tag-reuse": after(
        HAS_CONSUMER,
        then=send("basic.consume", connection(530, "attempt to reuse consumer tag 't'"), queue="{queue}",
                  consumer_tag="t")),
    "consume-stream-offset": send(
        "basic.consume",
        channel(406, "invalid arg 'x-stream-offset' for queue '{queue}' in vhost '/' of queue type "
                     "rabbit_classic_queue"),
        queue="{queue}", arguments=[("x-stream-offset", ("S", b"first"))]),
    "priority-string": send(
        "basic.consume", channel(406, "invalid arg 'x-priority' for queue '{queue}' in vhost '/': "
                                      '"expected integer, got longstr"'),
        queue="{queue}", arguments=[("x-priority", ("S", b"x"))]),
    "priority-double": send(
        "basic.consume", channel(406, "invalid arg 'x-priority' for queue '{queue}' in vhost '/': "
                                      '"expected integer, got double"'),
        queue="{queue}", arguments=[("x-priority", ("d", 1.0))]),
    "ack-twice": settle_twice("basic.ack"),
    "reject-twice": settle_twice("basic.reject"),
    "nack-twice": settle_twice("basic.nack"),
    "prefetch-size": send("basic.qos", connection(540, "prefetch_size!=0 (10)"), prefetch_size=10),
    "recover-false": send("basic.recover", connection(540, "requeue=false")),
    "recover-async-false": send("basic.recover-async", connection(540, "requeue=false")),
    "flow-false": send("channel.flow", connection(540, "active=false")),
    "confirm-after-tx": after(
        ("tx.select", {}), then=send("confirm.select", channel(406, "cannot switch from tx to confirm mode"))),
    "tx-after-confirm": after(
        ("confirm.select", {}), then=send("tx.select", channel(406, "cannot switch from confirm to tx mode"))),
    "commit-without-tx": send("tx.commit", channel(406, "channel is not transactional")),
    "rollback-without-tx": send("tx.rollback", channel(406, "channel is not transactional")),
}

for tag in (0, 1, 7, (1 << 64) - 1):
    for settle in ("basic.ack", "basic.nack", "basic.reject"):
        CASES[f"{settle}-unknown-{tag}"] = send(settle, channel(406, f"unknown delivery tag {tag}"), delivery_tag=tag)
for settle in ("basic.ack", "basic.nack"):
    CASES[f"{settle}-multiple-unknown"] = send(
        settle, channel(406, "unknown delivery tag 7"), delivery_tag=7, multiple=True)


@pytest.mark.hb(45, 48, 50, 51, 52, 53, 54, 55, 59, 91)
@pytest.mark.parametrize("case", CASES)
def test_refused(peer, case, names):
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    answer = CASES[case](peer, queue, names.exchange())
    assert peer.outcome() == answer


@pytest.mark.parametrize("name, arguments", [
    ("basic.get", {}), ("basic.consume", {}), ("queue.purge", {}), ("queue.delete", {}),
    ("queue.bind", {"exchange": "amq.direct"}), ("queue.unbind", {"exchange": "amq.direct"}),
])
def test_no_queue_declared_before(peer, name, arguments):
    """An empty name means the channel's last declared queue, and there is none."""
    peer.send_method(1, name, **arguments)
    assert peer.outcome() == channel_closed(404, "no previously declared queue", name)


@pytest.mark.parametrize("name, arguments, answer", [
    ("queue.delete", {"queue": MISSING}, "queue.delete-ok"),
    ("exchange.delete", {"exchange": MISSING}, "exchange.delete-ok"),
    ("queue.unbind", {"queue": MISSING, "exchange": "amq.direct"}, "queue.unbind-ok"),
    ("exchange.unbind", {"source": "amq.direct", "destination": MISSING}, "exchange.unbind-ok"),
    ("basic.cancel", {"consumer_tag": MISSING}, "basic.cancel-ok"),
    ("exchange.declare", {"exchange": "amq.direct", "type": "fanout", "passive": True}, "exchange.declare-ok"),
    ("basic.ack", {"multiple": True}, None),
    ("basic.nack", {"multiple": True}, None),
    ("basic.qos", {"prefetch_count": 65535}, "basic.qos-ok"),
    ("basic.recover", {"requeue": True}, "basic.recover-ok"),
    ("basic.recover-async", {"requeue": True}, None),
    ("confirm.select", {"nowait": True}, None),
])
def test_not_refused(peer, name, arguments, answer):
    """What looks like a mistake and is none."""
    peer.send_method(1, name, **arguments)
    if answer:
        peer.expect(1, answer)
    peer.assert_usable()


QUEUE_ARGUMENTS = [
    ("x-message-ttl", ("I", -1), "{value_negative,-1}"),
    ("x-message-ttl", ("l", 1 << 62), "{value_too_large,4611686018427387904}"),
    ("x-message-ttl", ("S", b"5"), '"expected integer, got longstr"'),
    ("x-message-ttl", ("d", 1.5), '"expected integer, got double"'),
    ("x-message-ttl", ("V", None), '"expected integer, got void"'),
    ("x-message-ttl", ("T", 5), '"expected integer, got timestamp"'),
    ("x-message-ttl", ("t", True), '"expected integer, got bool"'),
    ("x-message-ttl", ("F", []), '"expected integer, got table"'),
    ("x-message-ttl", ("A", []), '"expected integer, got array"'),
    ("x-message-ttl", ("x", b"5"), '"expected integer, got binary"'),
    ("x-message-ttl", ("f", 1.0), '"expected integer, got float"'),
    ("x-message-ttl", ("D", (0, 5)), '"expected integer, got decimal"'),
    ("x-expires", ("I", 0), "{value_zero,0}"),
    ("x-expires", ("I", -1), "{value_negative,-1}"),
    ("x-max-length", ("I", -1), "{value_negative,-1}"),
    ("x-max-length-bytes", ("S", b"1"), '"expected integer, got longstr"'),
    ("x-max-priority", ("I", 256), "{max_value_exceeded,256}"),
    ("x-max-priority", ("I", -1), "{value_negative,-1}"),
    ("x-overflow", ("S", b"foo"), "invalid_overflow"),
    ("x-overflow", ("I", 1), "{unacceptable_type,signedint}"),
    ("x-queue-type", ("S", b"foo"), "\"unsupported queue type 'foo'\""),
    ("x-queue-type", ("I", 1), "{unacceptable_type,signedint}"),
    ("x-queue-version", ("I", 1), "\"unsupported queue version '1'\""),
    ("x-queue-leader-locator", ("S", b"x"), "invalid_queue_locator_arg"),
    ("x-single-active-consumer", ("S", b"x"), "{unacceptable_type,longstr}"),
    ("x-dead-letter-routing-key", ("S", b"x"), "routing_key_but_no_dlx_defined"),
]


@pytest.mark.hb(56)
@pytest.mark.parametrize("key, value, reason", QUEUE_ARGUMENTS)
def test_bad_queue_arguments(peer, names, key, value, reason):
    queue = names.queue()
    peer.send_method(1, "queue.declare", queue=queue, exclusive=True, arguments=[(key, value)])
    assert peer.outcome() == channel_closed(
        406, f"invalid arg '{key}' for queue '{queue}' in vhost '/': {reason}", "queue.declare")


@pytest.mark.hb(56)
def test_bad_dead_letter_exchange(peer, names):
    """The one argument whose refusal has another shape."""
    queue = names.queue()
    peer.send_method(1, "queue.declare", queue=queue, exclusive=True, arguments=[("x-dead-letter-exchange", ("I", 1))])
    assert peer.outcome() == channel_closed(
        406, f"invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue '{queue}' in vhost '/'",
        "queue.declare")


EXPIRATIONS = {
    "-1": "{value_negative,-1}",
    "": "no_integer",
    "abc": "no_integer",
    " 5": "no_integer",
    "5 ": '{leftover_string," "}',
    "1e9": '{leftover_string,"e9"}',
    "5.0": '{leftover_string,".0"}',
    "0x10": '{leftover_string,"x10"}',
    "315360000001": "{value_too_large,315360000001}",
    "99999999999999999999": "{value_too_large,99999999999999999999}",
}


@pytest.mark.hb(44)
@pytest.mark.parametrize("expiration", EXPIRATIONS, ids=lambda text: repr(text))
def test_bad_expiration(peer, expiration):
    peer.publish(1, "", "nowhere", b"x", {"expiration": expiration})
    reason = EXPIRATIONS[expiration]
    assert peer.outcome() == channel_closed(406, f"invalid expiration '{expiration}': {reason}", "basic.publish")


@pytest.mark.hb(44)
def test_expiration_of_255_digits(peer):
    """The text is cut to a short string."""
    digits = "1" * 255
    peer.publish(1, "", "nowhere", b"x", {"expiration": digits})
    text = f"invalid expiration '{digits}': {{value_too_large,{digits}}}"
    assert peer.outcome() == channel_closed(406, text, "basic.publish")


@pytest.mark.hb(44)
@pytest.mark.parametrize("expiration, read", [("007", "7"), ("+5000", "5000"), ("315360000000", "315360000000")])
def test_odd_expirations_are_taken(peer, expiration, read):
    queue = peer.call(1, "queue.declare", exclusive=True).queue
    peer.publish(1, "", queue, b"x", {"expiration": "60000"})  # holds the head: "007" would be gone at once
    peer.publish(1, "", queue, b"x", {"expiration": expiration})
    peer.assert_usable()
    if expiration == "007":
        return
    peer.get(1, queue)
    assert peer.get(1, queue)[1].properties["expiration"] == read


@pytest.mark.hb(58)
@pytest.mark.parametrize("name, arguments", [
    ("queue.declare", {"exclusive": True}), ("queue.declare", {}), ("queue.declare", {"passive": True}),
    ("basic.consume", {}), ("basic.get", {}), ("queue.purge", {}), ("queue.delete", {}),
    ("queue.bind", {"exchange": "amq.direct"}),
])
def test_exclusive_queue_of_another_connection(peer, broker, names, name, arguments):
    queue = names.any()
    with broker.peer() as owner:
        owner.connect().call(1, "queue.declare", queue=queue, exclusive=True)
        owner.publish(1, "", queue, b"mine")
        owner.assert_usable()
        peer.send_method(1, name, queue=queue, **arguments)
        text = (
            f"cannot obtain exclusive access to locked queue '{queue}' in vhost '/'. It could be originally declared "
            "on another connection or the exclusive property value does not match that of the original declaration.")
        assert peer.outcome() == channel_closed(405, text, name)
        assert owner.get(1, queue)[2] == b"mine"


@pytest.mark.hb(58)
def test_publishing_to_another_connection_s_exclusive_queue(peer, broker):
    with broker.peer() as owner:
        queue = owner.connect().call(1, "queue.declare", exclusive=True).queue
        peer.publish(1, "", queue, b"allowed")
        assert owner.get(1, queue)[2] == b"allowed"


@pytest.mark.hb(92)
def test_get_from_a_single_active_consumer_queue(peer, names):
    """Refused for quorum queues only."""
    sac = ("x-single-active-consumer", ("t", True))
    queue = peer.call(1, "queue.declare", exclusive=True, arguments=[sac]).queue
    peer.publish(1, "", queue, b"classic")
    assert peer.get(1, queue)[2] == b"classic"
    queue = names.queue()
    peer.call(1, "queue.declare", queue=queue, durable=True, arguments=[sac, ("x-queue-type", ("S", b"quorum"))])
    peer.send_method(1, "basic.get", queue=queue)
    assert peer.outcome() == channel_closed(
        405,
        f"cannot obtain access to locked queue '{queue}' in vhost '/'. basic.get operations are not supported by "
        '<<"quorum">> queues with single active consumer', "basic.get")


@pytest.mark.parametrize("flag", ["if_unused", "if_empty"])
def test_conditional_delete_of_a_quorum_queue(peer, names, flag):
    queue = names.queue()
    peer.call(1, "queue.declare", queue=queue, durable=True, arguments=[("x-queue-type", ("S", b"quorum"))])
    peer.send_method(1, "queue.delete", queue=queue, **{flag: True})
    assert peer.outcome() == connection_closed(
        540,
        f"cannot delete queue '{queue}' in vhost '/'. queue.delete operations with {flag.replace('_', '-')} flag set "
        "are not supported by quorum queues", "queue.delete")


def test_partial_tx_completion(peer):
    """One of the targets refuses: the commit closes the channel, what was taken stays."""
    full = [("x-max-length", ("I", 0)), ("x-overflow", ("S", b"reject-publish"))]
    refuses = peer.call(1, "queue.declare", exclusive=True, arguments=full).queue
    takes = peer.call(1, "queue.declare", exclusive=True).queue
    peer.call(1, "tx.select")
    peer.publish(1, "", refuses, b"x")
    peer.publish(1, "", takes, b"y")
    peer.send_method(1, "tx.commit")
    assert peer.outcome() == channel_closed(406, "partial tx completion", "tx.commit")
    peer.send_method(1, "channel.close-ok")
    peer.call(1, "channel.open")
    assert peer.get(1, takes)[2] == b"y"
