"""Limits of users, vhosts, connections and the node, as those meet them who want more than there is.

Raced means: from many sockets at the same time, so that a check and what it allows could come apart.
"""

import contextlib

import pytest

import wire
from answers import channel_closed, connection_closed
from brokers import Leveret

pytestmark = pytest.mark.leveret_only("limits are set over HTTP or in the configuration")

RACERS = 100
LIMIT = 7
CHANNELS = 2047
NODE_CHANNELS = 65_535
TUNE_OK = wire.method_frame(0, "connection.tune-ok", channel_max=CHANNELS, frame_max=131072)


@contextlib.contextmanager
def logged_in(broker, user, count=RACERS):
    """Peers that have only connection.open left to say."""
    peers = [broker.peer() for _ in range(count)]
    try:
        for peer in peers:
            peer.log_in(user=user)
            peer.send(TUNE_OK)
        yield peers
    finally:
        for peer in peers:
            peer.socket.close()


def race_to_open(peers, vhost):
    """All say connection.open at once: those who are in, and the refusals of the others."""
    for peer in peers:
        peer.send_method(0, "connection.open", virtual_host=vhost)
    inside, refusals = [], []
    for peer in peers:
        _, got = peer.read_method()
        if got.name == "connection.open-ok":
            inside.append(peer)
        else:
            refusals.append((got.reply_code, got.reply_text))
    return inside, refusals


@pytest.mark.hb(75)
@pytest.mark.parametrize("kind", ["user", "vhost"])
@pytest.mark.parametrize("limit", [0, 1, LIMIT])
def test_connections_are_never_more_than_their_limit(broker, made, kind, limit):
    """Twice: what has gone makes room for exactly as many."""
    user, vhost = made.user(), made.vhost()
    made.permit(user, vhost)
    made.limit(kind, user if kind == "user" else vhost, "max-connections", limit)
    text = {
        "user": f"connection refused for user '{user}': user connection limit ({limit}) is reached",
        "vhost": f"access to vhost '{vhost}' refused for user '{user}': connection limit ({limit}) is reached",
    }[kind]
    for _ in range(2):
        with logged_in(broker, user) as peers:
            inside, refusals = race_to_open(peers, vhost)
            assert len(inside) == limit
            assert set(refusals) == {(530, f"NOT_ALLOWED - {text}")}
            for peer in inside:
                peer.call(1, "channel.open")
                peer.call(0, "connection.close", reply_code=200)


@pytest.mark.hb(75)
def test_channels_of_a_user_are_never_more_than_their_limit(broker, made):
    """Over all his connections; the one that asks for too many is closed, and takes its channels with it."""
    user = made.user()
    made.limit("user", user, "max-channels", LIMIT)
    text = f"number of channels opened for user '{user}' has reached the maximum allowed user limit of {LIMIT}"
    peers = [broker.peer().connect(user=user, channels=()) for _ in range(RACERS)]
    try:
        for peer in peers:
            peer.send_method(1, "channel.open")
        opened = []
        for peer in peers:
            channel, got = peer.read_method()
            if got.name == "channel.open-ok":
                opened.append(peer)
            else:
                assert (got.reply_code, got.reply_text) == (530, f"NOT_ALLOWED - {text}")
        assert len(opened) == LIMIT
        opened[0].call(1, "channel.close", reply_code=200)
        opened[0].call(2, "channel.open")
        opened[0].send_method(3, "channel.open")
        assert opened[0].outcome() == connection_closed(530, text)
    finally:
        for peer in peers:
            peer.socket.close()


@pytest.mark.hb(74)
def test_queues_are_never_more_than_their_limit(broker, api, made):
    """Ten connections declare ten thousand queues in all; what is deleted makes room for exactly as many."""
    vhost = made.vhost()
    made.limit("vhost", vhost, "max-queues", LIMIT)
    peers = []
    try:
        for number in range(10):
            peers.append(broker.peer())
            peers[-1].connect(vhost=vhost, channels=range(1, 1001))
        for number, peer in enumerate(peers):
            peer.send(*(
                wire.method_frame(channel, "queue.declare", queue=f"{number}.{channel}") for channel in range(1, 1001)))
        declared, refused = [], 0
        for number, peer in enumerate(peers):
            for _ in range(1000):
                channel, got = peer.read_method()
                if got.name == "queue.declare-ok":
                    declared.append(got.queue)
                else:
                    refused += 1
                    reached = f"queue limit in vhost '{vhost}' ({LIMIT}) is reached"
                    text = f"cannot declare queue '{number}.{channel}': {reached}"
                    assert (got.reply_code, got.reply_text) == (406, f"PRECONDITION_FAILED - {text}")
        assert len(declared) == LIMIT and refused == 10_000 - LIMIT
        assert len(api.do("GET", f"/api/queues/{vhost}")) == LIMIT
        with broker.peer() as peer:
            peer.connect(vhost=vhost)
            peer.call(1, "queue.delete", queue=declared[0])
            peer.call(1, "queue.declare", queue="one")
            peer.call(1, "queue.declare", queue="one")  # it is there already, and no new one
            peer.send_method(1, "queue.declare", queue="more")
            text = f"cannot declare queue 'more': queue limit in vhost '{vhost}' ({LIMIT}) is reached"
            assert peer.outcome() == channel_closed(406, text, "queue.declare")
    finally:
        for peer in peers:
            peer.socket.close()


@pytest.mark.hb(74)
@pytest.mark.parametrize("target, body", [
    ("PUT queues/{vhost}/more", {"durable": True}),
    ("POST definitions/{vhost}", {"queues": [
        {"name": "more", "durable": True, "auto_delete": False, "arguments": {}}]}),
])
def test_queues_over_http_count_too(api, made, target, body):
    vhost = made.vhost()
    made.limit("vhost", vhost, "max-queues", 0)
    method, target = target.format(vhost=vhost).split()
    found = api.ask(method, f"/api/{target}", body)
    assert found.status == 400 and f"queue limit in vhost '{vhost}' (0) is reached" in found.reason
    assert api.do("GET", f"/api/queues/{vhost}") == []


@pytest.mark.hb(75)
def test_connections_of_the_node_are_never_more_than_their_limit(leveret_bin):
    broker = Leveret(leveret_bin, config=f"connection_max = {LIMIT}\n")
    try:
        text = f"NOT_ALLOWED - connection refused: node connection limit ({LIMIT}) is reached"
        for _ in range(2):
            peers = [broker.peer() for _ in range(RACERS)]
            for peer in peers:
                peer.send(wire.PROTOCOL_HEADER)
            inside, refused = 0, 0
            for peer in peers:
                peer.expect(0, "connection.start")
                peer.start_ok()
                _, got = peer.read_method()
                if got.name == "connection.tune":
                    peer.send(TUNE_OK)
                    peer.send_method(0, "connection.open", virtual_host="/")
                    _, got = peer.read_method()
                if got.name == "connection.open-ok":
                    inside += 1
                else:
                    refused += 1
                    assert (got.reply_code, got.reply_text) == (530, text)
            assert (inside, refused) == (LIMIT, RACERS - LIMIT)
            for peer in peers:
                peer.socket.close()
            wait_until_alone(broker)
        broker.assert_alive()
    finally:
        broker.stop()


def wait_until_alone(broker):
    """Until the last of a crowd has been noticed to be gone."""
    while True:
        with broker.peer() as peer:
            peer.log_in()
            peer.send(TUNE_OK)
            peer.send_method(0, "connection.open", virtual_host="/")
            if peer.read_method()[1].name == "connection.open-ok":
                peer.call(0, "connection.close", reply_code=200)
                if broker.descriptors() < 60:
                    return


@pytest.mark.hb(84)
def test_as_many_channels_as_a_node_of_rabbitmq_may_have(fresh_broker):
    """65,535 of them over 33 connections; each has its own limit, the node has none, which is RabbitMQ's default."""
    peers, opened = [], 0
    try:
        while opened < NODE_CHANNELS:
            count = min(CHANNELS, NODE_CHANNELS - opened)
            peers.append(fresh_broker.peer().connect(channels=()))
            peers[-1].send(*(wire.method_frame(channel, "channel.open") for channel in range(1, count + 1)))
            for _ in range(count):
                assert peers[-1].read_method()[1].name == "channel.open-ok"
            opened += count
        peers[0].send_method(CHANNELS + 1, "channel.open")
        assert peers[0].outcome() == connection_closed(
            530, f"number of channels opened ({CHANNELS}) has reached the negotiated channel_max ({CHANNELS})")
        peers[1].assert_usable(CHANNELS)
    finally:
        for peer in peers:
            peer.socket.close()


@pytest.mark.hb(84)
@pytest.mark.parametrize("channel_max", [1, 10])
def test_channel_max_of_the_configuration(leveret_bin, channel_max):
    broker = Leveret(leveret_bin, config=f"channel_max = {channel_max}\n")
    try:
        with broker.peer() as peer:
            assert peer.log_in().channel_max == channel_max
            peer.send_method(0, "connection.tune-ok", channel_max=channel_max + 1, frame_max=131072)
            above = f"is greater than the maximum allowed value ({channel_max})"
            assert peer.outcome() == connection_closed(
                530, f"negotiated channel_max = {channel_max + 1} {above}", "connection.tune-ok")
        with broker.peer() as peer:
            peer.connect(channel_max=channel_max, channels=range(1, channel_max + 1))
            peer.send_method(77, "channel.open")
            reached = f"has reached the negotiated channel_max ({channel_max})"
            assert peer.outcome() == connection_closed(530, f"number of channels opened ({channel_max}) {reached}")
    finally:
        broker.stop()


@pytest.mark.hb(50)
@pytest.mark.tcp_only("needs a broker process of its own")
def test_consumers_of_a_channel_are_limited_where_that_is_configured(leveret_bin):
    broker = Leveret(leveret_bin, config=f"consumer_max_per_channel = {LIMIT}\n")
    try:
        with broker.peer() as peer:
            peer.connect()
            queue = peer.call(1, "queue.declare", exclusive=True).queue
            for number in range(LIMIT):
                peer.call(1, "basic.consume", queue=queue, consumer_tag=f"t{number}")
            peer.call(1, "basic.cancel", consumer_tag="t0")
            peer.call(1, "basic.consume", queue=queue, consumer_tag="again")
            peer.send_method(1, "basic.consume", queue=queue, consumer_tag="more")
            assert peer.outcome().code == 530
    finally:
        broker.stop()
