"""The error catalogue: what is refused, with which code (which says whether the channel or the connection closes), in
which words. Errors of queue arguments, permissions, expiration and direct reply-to stand with their topics, most others in the
scripts (`errors.txt`, `equivalence.txt`, `bindings.txt`)."""

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


def test_binding_an_unknown_queue_to_an_unknown_exchange_names_the_exchange(ch, client, missing):
    ch.refuses(lambda c: c.bind(client.name("other"), missing, "k"), 404, f"no exchange '{missing}' in vhost '/'")


# --- exchanges


@pytest.mark.parametrize("type", ["foo", "", "Direct", "x-no-such-type"])
def test_an_unknown_exchange_type(ch, type):
    scope, code, text = ch.connection.channel().answer_to(lambda c: c.exchange(type))
    # RabbitMQ says "invalid" when the word happens to be an atom of its virtual machine, else "unknown"
    texts = [f"PRECONDITION_FAILED - {word} exchange type '{type}'" for word in ("invalid", "unknown")]
    assert (scope, code) == ("channel", 406) and text in texts


@pytest.mark.parametrize("name", ["amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"])
def test_the_deletion_of_a_system_exchange(ch, name):
    refusal = f"deletion of system exchange '{name}' in vhost '/' not allowed"
    ch.refuses(lambda c: c.delete_exchange(name), 403, refusal)


@pytest.mark.parametrize("value, type", [(5, "signedint"), (True, "bool"), ({}, "table")])
def test_an_alternate_exchange_that_is_no_string(ch, client, value, type):
    x = client.name("x")
    refusal = f"invalid type '{type}' for arg 'alternate-exchange' in exchange '{x}' in vhost '/'"
    ch.refuses(lambda c: c.exchange("direct", x, alternate_exchange=value), 406, refusal)


@pytest.mark.parametrize("value, refusal", [
    ("foo", 'Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x'),
    (5, "Invalid x-match field type signedint (value 5); expected longstr"),
    (True, "Invalid x-match field type bool (value true); expected longstr"),
])
def test_a_headers_binding_with_an_unknown_x_match(ch, q, value, refusal):
    x = ch.exchange("headers")
    ch.refuses(lambda c: c.bind(q, x, **{"x-match": value, "a": 1}), 406, refusal)


# --- publishing


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


def test_recover_without_requeue(ch):
    ch.refuses(lambda c: c.rpc(spec.Basic.Recover(requeue=False), spec.Basic.RecoverOk), 540, "requeue=false")
    ch.refuses(lambda c: c.send(spec.Basic.RecoverAsync(requeue=False)), 540, "requeue=false")


# --- consuming


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
