"""Direct reply-to: requests whose replies come back on the requester's channel without a queue."""

import pytest

REPLY_TO = "amq.rabbitmq.reply-to"


@pytest.fixture
def server(client):
    """Another connection's channel, which answers requests."""
    return client.channel().confirm_select()


@pytest.fixture
def replies(ch):
    """The requester's reply consumer, on the requester's channel."""
    return ch.consume(REPLY_TO, auto_ack=True)


@pytest.fixture
def request_queue(ch):
    return ch.queue(name="requests")


@pytest.fixture
def address(ch, replies, request_queue, server):
    """The reply address that a server sees."""
    ch.publish(request_queue, "request", reply_to=REPLY_TO)
    return server.take(request_queue).properties.reply_to


def test_the_reply_address_is_unique_to_the_channel_and_begins_with_reply_to(ch, address, server, request_queue):
    assert address.startswith(REPLY_TO + ".")
    ch.publish(request_queue, "again", reply_to=REPLY_TO)
    assert server.take(request_queue).properties.reply_to == address
    other = ch.connection.channel()
    other.consume(REPLY_TO, auto_ack=True)
    other.publish(request_queue, "from another channel", reply_to=REPLY_TO)
    assert server.take(request_queue).properties.reply_to != address


def test_a_reply_to_that_is_an_ordinary_queue_is_left_alone(ch, replies, request_queue, server):
    ch.publish(request_queue, "request", reply_to="some-queue")
    assert server.take(request_queue).properties.reply_to == "some-queue"


def test_a_reply_arrives_at_the_requester(replies, address, server):
    assert server.publish(address, "reply", mandatory=True, correlation_id="1", headers={"a": 1}) == "a"
    reply = replies.next()
    assert (reply.body, reply.exchange, reply.routing_key) == ("reply", "", address)
    assert (reply.properties.correlation_id, reply.headers, reply.redelivered) == ("1", {"a": 1}, False)
    assert reply.consumer_tag == replies.tag
    assert server.returned == []


def test_replies_come_in_the_order_they_were_sent(replies, address, server):
    server.publish(address, *"abcdefghij")
    assert replies.next_bodies(10) == list("abcdefghij")


def test_the_ttl_of_a_reply_does_not_matter(replies, address, server):
    server.publish(address, "reply", expiration="0")
    assert replies.next().properties.expiration == "0"


def test_a_reply_can_be_sent_by_cc(client, replies, address, server):
    server.publish(client.name("nobody"), "reply", headers={"CC": [address]})
    assert replies.next().body == "reply"


def test_replies_are_not_limited_by_prefetch(ch, request_queue, server):
    replies = ch.consume(REPLY_TO, auto_ack=True, prefetch=1)
    ch.publish(request_queue, "request", reply_to=REPLY_TO)
    server.publish(server.take(request_queue).properties.reply_to, *"abc")
    assert replies.next_bodies(3) == ["a", "b", "c"]


def test_a_server_can_ask_whether_the_requester_is_still_there(ch, address, server, replies):
    declared = server.passive(address)
    assert (declared.queue, declared.message_count, declared.consumer_count) == (address, 0, 1)
    replies.cancel()
    server.refuses(lambda c: c.passive(address), 404, f"no queue '{address}' in vhost '/'")


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_a_reply_to_a_requester_that_is_gone_is_confirmed_and_lost(ch, replies, address, server, way):
    replies.cancel() if way == "cancel" else ch.close()
    assert server.publish(address, "too late") == "a"


def test_after_a_cancel_the_channel_may_consume_replies_again(ch, replies, request_queue, server):
    replies.cancel()
    again = ch.consume(REPLY_TO, auto_ack=True)
    ch.publish(request_queue, "request", reply_to=REPLY_TO)
    server.publish(server.take(request_queue).properties.reply_to, "reply")
    assert again.next().body == "reply"


def test_a_request_after_the_cancel_of_the_reply_consumer_is_refused(ch, request_queue):
    def request(channel):
        channel.consume(REPLY_TO, auto_ack=True).cancel()
        channel.publish(request_queue, "request", reply_to=REPLY_TO)

    ch.refuses(request, 406, "fast reply consumer does not exist")


@pytest.mark.parametrize("use", ["get", "purge", "bind"])
def test_the_pseudo_queue_is_no_queue(ch, use):
    actions = {
        "get": lambda c: c.get(REPLY_TO), "purge": lambda c: c.purge(REPLY_TO),
        "bind": lambda c: c.bind(REPLY_TO, "amq.direct", "k"),
    }
    ch.refuses(actions[use], 404, f"no queue '{REPLY_TO}' in vhost '/'")


def test_deleting_the_pseudo_queue_succeeds(ch):
    assert ch.delete(REPLY_TO) == 0


def test_the_reply_address_is_for_its_channel_only(server, address):
    refusal = f"only creator channel may consume from queue '{address}' in vhost '/'"
    server.refuses(lambda c: c.consume(address, auto_ack=True), 406, refusal)


def test_a_reply_address_cannot_be_bound(server, address):
    refusal = "cannot bind or unbind to a volatile (direct reply-to) queue"
    server.refuses(lambda c: c.bind(address, "amq.direct", "k"), 403, refusal)


def test_a_reply_address_cannot_be_polled(server, address):
    refusal = f"basic.get not supported by volatile queue '{address}' in vhost '/'"
    server.refuses(lambda c: c.get(address), 540, refusal)


def test_a_mandatory_message_to_the_bare_pseudo_queue_comes_back(server):
    server.publish(REPLY_TO, "m", mandatory=True)
    assert server.returned[-1].reply == (312, "NO_ROUTE")


def test_a_requester_that_reads_loses_no_replies(replies, address, server):
    """4 MB of them, of which it acknowledges nothing and to which it says nothing."""
    bodies = [f"{n:04}".ljust(2000, ".") for n in range(2000)]
    server.publish(address, *bodies)
    assert replies.next_bodies(2000) == bodies
