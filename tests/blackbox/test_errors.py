"""The error catalogue: what is refused, with which code (which says whether the channel or the connection closes), in
which words. Errors of queue arguments, permissions, expiration and direct reply-to stand with their topics."""

import pytest
from pika import spec

from definitions import User
from replies import Closed, Refusal


@pytest.fixture
def q(ch):
    return ch.queue()


@pytest.fixture
def missing(client):
    """A name that nothing has."""
    return client.name("missing")


# --- things that are not there


def test_publishing_to_an_unknown_exchange(ch, missing):
    ch.refuses(lambda c: c.publish("k", "m", exchange=missing), 404, f"no exchange '{missing}' in vhost '/'")


@pytest.mark.parametrize("use", ["get", "consume", "purge", "bind"])
def test_using_an_unknown_queue(ch, missing, use):
    actions = {
        "get": lambda c: c.get(missing), "consume": lambda c: c.consume(missing), "purge": lambda c: c.purge(missing),
        "bind": lambda c: c.bind(missing, "amq.direct", "k"),
    }
    ch.refuses(actions[use], 404, f"no queue '{missing}' in vhost '/'")


def test_binding_to_an_unknown_exchange(ch, q, missing):
    ch.refuses(lambda c: c.bind(q, missing, "k"), 404, f"no exchange '{missing}' in vhost '/'")


def test_binding_an_unknown_queue_to_an_unknown_exchange_names_the_exchange(ch, client, missing):
    ch.refuses(lambda c: c.bind(client.name("other"), missing, "k"), 404, f"no exchange '{missing}' in vhost '/'")


def test_declaring_an_unknown_exchange_passively(ch, missing):
    declare = spec.Exchange.Declare(exchange=missing, passive=True)
    ch.refuses(lambda c: c.rpc(declare, spec.Exchange.DeclareOk), 404, f"no exchange '{missing}' in vhost '/'")


def test_binding_an_exchange_to_an_unknown_one(ch, missing):
    x = ch.exchange()
    ch.refuses(lambda c: c.bind_exchange(x, missing), 404, f"no exchange '{missing}' in vhost '/'")
    ch.refuses(lambda c: c.bind_exchange(missing, x), 404, f"no exchange '{missing}' in vhost '/'")


# --- things that need not be there


def test_deleting_what_is_not_there_succeeds(ch, missing):
    assert ch.delete(missing) == 0
    ch.delete_exchange(missing)


def test_unbinding_what_is_not_bound_succeeds(ch, client, q, missing):
    x = ch.exchange()
    ch.unbind(q, x, "never bound")
    ch.unbind(missing, x, "k")
    ch.unbind(q, missing, "k")
    ch.unbind_exchange(x, ch.exchange(), "never bound")


def test_cancelling_an_unknown_consumer_succeeds(ch):
    answer = ch.rpc(spec.Basic.Cancel(consumer_tag="unknown"), spec.Basic.CancelOk)
    assert answer.consumer_tag == "unknown"


# --- exchanges


@pytest.mark.parametrize("type", ["foo", "", "Direct", "x-no-such-type"])
def test_an_unknown_exchange_type(ch, type):
    scope, code, text = ch.connection.channel().answer_to(lambda c: c.exchange(type))
    # RabbitMQ says "invalid" when the word happens to be an atom of its virtual machine, else "unknown"
    texts = [f"PRECONDITION_FAILED - {word} exchange type '{type}'" for word in ("invalid", "unknown")]
    assert (scope, code) == ("channel", 406) and text in texts


def test_a_reserved_exchange_name(ch):
    declare = spec.Exchange.Declare(exchange="amq.foo", type="direct")
    refusal = "exchange name 'amq.foo' contains reserved prefix 'amq.*'"
    ch.refuses(lambda c: c.rpc(declare, spec.Exchange.DeclareOk), 403, refusal)


@pytest.mark.parametrize("difference, text", [
    ({"type": "fanout"}, "'type' for {}: received 'fanout' but current is 'direct'"),
    ({"durable": False}, "'durable' for {}: received 'false' but current is 'true'"),
    ({"auto_delete": True}, "'auto_delete' for {}: received 'true' but current is 'false'"),
    ({"internal": True}, "'internal' for {}: received 'true' but current is 'false'"),
    ({"alternate_exchange": "foo"},
     "'alternate-exchange' for {}: received the value 'foo' of type 'longstr' but current is none"),
])
def test_an_exchange_redeclared_differently(ch, difference, text):
    x = ch.exchange("direct")
    refusal = "inequivalent arg " + text.format(f"exchange '{x}' in vhost '/'")
    ch.refuses(lambda c: c.exchange(**({"type": "direct", "name": x} | difference)), 406, refusal)


@pytest.mark.parametrize("now, text", [
    ({"alternate_exchange": "bar"}, "received 'bar' but current is 'foo'"),
    ({}, "received none but current is the value 'foo' of type 'longstr'"),
])
def test_an_exchange_redeclared_with_another_alternate_exchange(ch, now, text):
    x = ch.exchange("direct", alternate_exchange="foo")
    refusal = f"inequivalent arg 'alternate-exchange' for exchange '{x}' in vhost '/': {text}"
    ch.refuses(lambda c: c.exchange("direct", x, **now), 406, refusal)


def test_unknown_exchange_arguments_are_accepted_and_not_compared(ch):
    x = ch.exchange("direct", arguments={"whatever": 1})
    ch.exchange("direct", x)
    ch.exchange("direct", x, arguments={"whatever": 2})


def test_a_system_exchange_redeclared_as_it_is(ch):
    ch.exchange("topic", "amq.topic")
    difference = "received 'fanout' but current is 'direct'"
    refusal = f"inequivalent arg 'type' for exchange 'amq.direct' in vhost '/': {difference}"
    ch.refuses(lambda c: c.exchange("fanout", "amq.direct"), 406, refusal)


@pytest.mark.parametrize("use", ["declare", "passive", "delete", "bind", "unbind", "source", "destination"])
def test_the_default_exchange_is_left_alone(ch, q, use):
    declare = spec.Exchange.Declare(exchange="", type="direct", passive=use == "passive")
    actions = {
        "declare": lambda c: c.rpc(declare, spec.Exchange.DeclareOk), "delete": lambda c: c.delete_exchange(""),
        "passive": lambda c: c.rpc(declare, spec.Exchange.DeclareOk),
        "bind": lambda c: c.bind(q, "", "k"), "unbind": lambda c: c.unbind(q, "", q),
        "source": lambda c: c.bind_exchange("amq.direct", ""),
        "destination": lambda c: c.bind_exchange("", "amq.direct"),
    }
    ch.refuses(actions[use], 403, "operation not permitted on the default exchange")


@pytest.mark.parametrize("name", ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"])
def test_the_deletion_of_a_system_exchange(ch, name):
    refusal = f"deletion of system exchange '{name}' in vhost '/' not allowed"
    ch.refuses(lambda c: c.delete_exchange(name), 403, refusal)


def test_the_deletion_of_an_exchange_in_use_if_unused(ch, q):
    x = ch.exchange()
    ch.bind(q, x, "k")
    ch.refuses(lambda c: c.delete_exchange(x, if_unused=True), 406, f"exchange '{x}' in vhost '/' in use")
    ch.unbind(q, x, "k")
    ch.delete_exchange(x, if_unused=True)


@pytest.mark.parametrize("value, type", [(5, "signedint"), (True, "bool"), ({}, "table")])
def test_an_alternate_exchange_that_is_no_string(ch, client, value, type):
    x = client.name("x")
    refusal = f"invalid type '{type}' for arg 'alternate-exchange' in exchange '{x}' in vhost '/'"
    ch.refuses(lambda c: c.exchange("direct", x, alternate_exchange=value), 406, refusal)


def test_publishing_to_an_internal_exchange(ch):
    x = ch.exchange(internal=True)
    refusal = f"cannot publish to internal exchange '{x}' in vhost '/'"
    ch.refuses(lambda c: c.publish("k", "m", exchange=x), 403, refusal)


@pytest.mark.parametrize("value, refusal", [
    ("foo", 'Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x'),
    (5, "Invalid x-match field type signedint (value 5); expected longstr"),
    (True, "Invalid x-match field type bool (value true); expected longstr"),
])
def test_a_headers_binding_with_an_unknown_x_match(ch, q, value, refusal):
    x = ch.exchange("headers")
    ch.refuses(lambda c: c.bind(q, x, **{"x-match": value, "a": 1}), 406, refusal)


# --- publishing


def test_a_user_id_that_is_not_the_users(ch, q):
    refusal = "user_id property set to 'bob' but authenticated user was 'guest'"
    ch.refuses(lambda c: c.publish(q, "m", user_id="bob"), 406, refusal)
    assert ch.publish(q, "m", user_id="guest") == "a"


def test_an_impersonator_may_set_any_user_id(defined):
    ch = defined(users=[User("actor", tags=("impersonator",))])
    client = defined.client
    actor, q = client.channel(user=client.name("actor")), ch.queue()
    actor.publish(q, "m", user_id="somebody else")
    assert ch.take(q).properties.user_id == "somebody else"


@pytest.mark.parametrize("header", ["CC", "BCC"])
@pytest.mark.parametrize("value, type", [("key", "longstr"), (5, "signedint"), ({}, "table"), (True, "bool")])
def test_a_cc_or_bcc_header_that_is_no_array(ch, q, header, value, type):
    refusal = f'invalid message: {{unacceptable_type_in_header,"{header}",{type}}}'
    ch.refuses(lambda c: c.publish(q, "m", headers={header: value}), 406, refusal)


def test_members_of_cc_that_are_no_strings_are_ignored(ch, q):
    other = ch.queue()
    assert ch.publish(q, "m", headers={"CC": [5, other, True]}) == "a"
    assert ch.take(other).body == "m"


def test_a_message_larger_than_16_mib(ch, q):
    ch.refuses(lambda c: c.publish(q, b"x" * (2**24 + 1)), 406,
               "message size 16777217 is larger than configured max size 16777216")


def test_immediate_publishing(ch, q):
    publish = spec.Basic.Publish(routing_key=q, immediate=True)
    ch.refuses(lambda c: c.send(publish, (spec.BasicProperties(), b"m")), 540, "immediate=true")


# --- acknowledging


@pytest.mark.parametrize("verb", ["ack", "nack", "reject"])
@pytest.mark.parametrize("tag", [0, 1, 77])
def test_an_unknown_delivery_tag(ch, verb, tag):
    ch.refuses(lambda c: getattr(c, verb)(tag), 406, f"unknown delivery tag {tag}")


@pytest.mark.parametrize("verb", ["ack", "nack"])
def test_an_unknown_delivery_tag_with_multiple(ch, verb):
    ch.refuses(lambda c: getattr(c, verb)(5, multiple=True), 406, "unknown delivery tag 5")


@pytest.mark.parametrize("verb", ["ack", "nack"])
def test_tag_zero_with_multiple_is_fine_even_when_nothing_is_outstanding(ch, verb):
    getattr(ch, verb)(0, multiple=True)
    ch.sync()


@pytest.mark.parametrize("first", ["ack", "nack", "reject"])
@pytest.mark.parametrize("second", ["ack", "nack", "reject"])
def test_a_delivery_tag_settled_twice(ch, kind, first, second):
    q = ch.queue(kind)
    ch.publish(q, "m")

    def settle_twice(channel):
        message = channel.get_unacked(q)
        getattr(channel, first)(message)
        getattr(channel, second)(message)

    ch.refuses(settle_twice, 406, "unknown delivery tag 1")


def test_a_delivery_tag_of_another_channel(ch, q):
    ch.publish(q, "m")
    message = ch.get_unacked(q)
    ch.refuses(lambda c: c.ack(message), 406, "unknown delivery tag 1")


def test_an_auto_acked_delivery_cannot_be_acked(ch, q):
    ch.publish(q, "m")
    ch.refuses(lambda c: c.ack(c.get(q)), 406, "unknown delivery tag 1")


def test_recover_without_requeue(ch):
    ch.refuses(lambda c: c.rpc(spec.Basic.Recover(requeue=False), spec.Basic.RecoverOk), 540, "requeue=false")
    ch.refuses(lambda c: c.send(spec.Basic.RecoverAsync(requeue=False)), 540, "requeue=false")


# --- consuming


def test_a_consumer_tag_used_twice_on_a_channel(ch, q):
    def consume_twice(channel):
        channel.consume(q, tag="t")
        channel.consume(q, tag="t")

    ch.refuses(consume_twice, 530, "attempt to reuse consumer tag 't'")


def test_a_consumer_tag_used_on_two_channels_is_fine(ch, q):
    ch.consume(q, tag="t")
    ch.connection.channel().consume(q, tag="t")


@pytest.mark.parametrize("value, type", [("a", "longstr"), (1.0, "double"), (True, "bool")])
def test_a_consumer_priority_that_is_no_integer(ch, kind, value, type):
    q = ch.queue(kind)
    refusal = f"invalid arg 'x-priority' for queue '{q}' in vhost '/': \"expected integer, got {type}\""
    ch.refuses(lambda c: c.consume(q, arguments={"x-priority": value}), 406, refusal)


def test_a_consumer_argument_of_another_queue_type(ch, kind):
    q = ch.queue(kind)
    refusal = f"invalid arg 'x-stream-offset' for queue '{q}' in vhost '/' of queue type rabbit_{kind}_queue"
    ch.refuses(lambda c: c.consume(q, arguments={"x-stream-offset": "first"}), 406, refusal)


def test_unknown_consumer_arguments_are_ignored(ch, kind):
    q = ch.queue(kind)
    consumer = ch.consume(q, arguments={"whatever": 1, "x-cancel-on-ha-failover": True})
    ch.publish(q, "m")
    assert consumer.next().body == "m"


def test_a_prefetch_size(ch):
    qos = spec.Basic.Qos(prefetch_size=10)
    ch.refuses(lambda c: c.rpc(qos, spec.Basic.QosOk), 540, "prefetch_size!=0 (10)")


def test_stopping_the_flow(ch):
    flow = spec.Channel.Flow(active=False)
    ch.refuses(lambda c: c.rpc(flow, spec.Channel.FlowOk), 540, "active=false")


# --- transactions and confirms


@pytest.mark.parametrize("first, second, refusal", [
    ("tx_select", "confirm_select", "cannot switch from tx to confirm mode"),
    ("confirm_select", "tx_select", "cannot switch from confirm to tx mode"),
])
def test_transactions_and_confirms_on_one_channel(ch, first, second, refusal):
    def both(channel):
        getattr(channel, first)()
        getattr(channel, second)()

    ch.refuses(both, 406, refusal)


@pytest.mark.parametrize("verb", ["tx_commit", "tx_rollback"])
def test_a_transaction_that_was_not_begun(ch, verb):
    ch.refuses(lambda c: getattr(c, verb)(), 406, "channel is not transactional")


# --- connections and channels


def refusal_of_connection(client, **options):
    try:
        client.connect(**options)
    except Closed as closed:
        return closed.said
    return None


def test_an_unknown_vhost(client):
    assert refusal_of_connection(client, vhost="nope") == Refusal(530, "vhost nope not found").said


def test_a_vhost_without_permission(defined):
    defined(users=[User("bob", configure=None)])
    name = defined.client.name("bob")
    refusal = Refusal(530, f"access to vhost '/' refused for user '{name}'")
    assert refusal_of_connection(defined.client, user=name) == refusal.said


LOGIN_REFUSED = "Login was refused using authentication mechanism PLAIN. For details see the broker logfile."


@pytest.mark.parametrize("options", [{"password": "wrong"}, {"user": "nobody"}])
def test_a_wrong_user_or_password(client, options):
    said = refusal_of_connection(client, **options)
    assert said == ("connection", 403, "ACCESS_REFUSED - " + LOGIN_REFUSED)


def test_more_channels_than_negotiated(client):
    connection = client.connect(tune={"channel_max": 2})
    for _ in range(2):
        connection.channel()
    with pytest.raises(Closed) as refused:
        connection.channel(3)
    refusal = "number of channels opened (2) has reached the negotiated channel_max (2)"
    assert refused.value.said == Refusal(530, refusal).said


def test_channel_numbers_may_be_higher_than_channel_max(client):
    assert client.connect().channel(3000).number == 3000


def test_a_channel_number_can_be_used_again(client):
    connection = client.connect()
    for _ in range(3):
        connection.channel(7).close()


def test_a_second_channel_open(ch):
    ch.refuses(lambda c: c.send(spec.Channel.Open()), 504, "second 'channel.open' seen")


def test_a_long_reply_text_is_cut_to_255_bytes(ch):
    name = "e" * 255
    said = ch.connection.channel().answer_to(lambda c: c.passive(name))
    assert said == ("channel", 404, f"NOT_FOUND - no queue '{name}"[:252] + "...")


@pytest.mark.better
def test_a_long_reply_text_with_wide_characters_is_cut_between_them(ch, client, by_broker):
    code, text = client.channel().answer_to(lambda c: c.passive("é" * 127))[1:]
    if by_broker(rabbitmq=True, leveret=False):
        assert (code, text) == (541, "INTERNAL_ERROR")
    else:
        assert code == 404 and text.startswith("NOT_FOUND - no queue 'éé")
        assert 250 <= len(text.encode()) <= 255 and text.endswith("...")


def test_a_refusal_on_one_channel_leaves_the_others_alone(ch, q, missing):
    other = ch.connection.channel()
    assert other.answer_to(lambda c: c.get(missing))[:2] == ("channel", 404)
    assert ch.publish(q, "m") == "a"
    assert ch.get(q).body == "m"
