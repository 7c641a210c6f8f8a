"""What users of little right try: names at the edge of their patterns, vhosts of others, other users' names."""

import random
import re

import pytest

from answers import UNHARMED, channel_closed, connection_closed
from peer import SocketDropped, client_properties
from test_fuzz import random_method, swallow

pytestmark = pytest.mark.leveret_only("users are made over HTTP")

BATCHES = 800
CROWD = 100


def refused(operation, what, user, method):
    return channel_closed(403, f"{operation} access to {what} in vhost '/' refused for user '{user}'", method)


@pytest.mark.hb(98)
@pytest.mark.parametrize("pattern, allowed, forbidden", [
    ("^{a}$", ["{a}", "{a}\n", "\n{a}", "{a}\r\n"], ["{a}b", "x{a}", "{a}\n\nb", "{a}\0", "{a}$", "^{a}"]),
    ("^{a}", ["{a}", "{a}b", "{a}\n", "{a}\nb"], ["x{a}", "b\n{a}"]),
    ("{a}$", ["{a}", "x{a}", "b\n{a}", "{a}\n"], ["{a}b", "{a}\nb"]),
    ("", [], ["{a}", "{a}\n"]),
], ids=["whole", "begin", "end", "empty"])
def test_names_at_the_edge_of_a_pattern(broker, made, names, pattern, allowed, forbidden):
    """Line ends leave the names of queues before anybody looks at them, and `$` is the end of what is left."""
    name = names.any()
    user = made.user(configure=pattern.format(a=name.replace(".", "\\.")))
    for attempt, is_allowed in [(one, True) for one in allowed] + [(one, False) for one in forbidden]:
        queue = attempt.format(a=name)
        stored = queue.replace("\r", "").replace("\n", "")
        with broker.peer() as peer:
            peer.connect(user=user, channels=[1, 2])
            for channel, method in ((1, "queue.declare"), (2, "queue.delete")):
                peer.send_method(channel, method, queue=queue)
                expected = UNHARMED if is_allowed else refused("configure", f"queue '{stored}'", user, method)
                assert peer.outcome_or_unharmed(channel) == expected, (method, queue)


@pytest.mark.hb(98)
@pytest.mark.parametrize("key, is_allowed", [
    ("news", True), ("news\n", False), ("newsb", False), ("\nnews", False), ("new", False)])
def test_routing_keys_at_the_edge_of_a_pattern(broker, api, made, key, is_allowed):
    """A routing key keeps its line ends, and `$` stands before none of them; PCRE's would."""
    user = made.user()
    patterns = {"exchange": "amq.topic", "write": "^news$", "read": "^news$"}
    api.do("PUT", f"/api/topic-permissions/%2F/{user}", patterns)
    assert_may_publish(broker, user, key, is_allowed)


def assert_may_publish(broker, user, key, is_allowed):
    """To `amq.topic`; or is refused."""
    with broker.peer() as peer:
        peer.connect(user=user)
        peer.publish(1, "amq.topic", key, b"x")
        expected = refused("write", f"topic '{key}' in exchange 'amq.topic'", user, "basic.publish")
        assert peer.outcome_or_unharmed() == (UNHARMED if is_allowed else expected)


@pytest.mark.hb(98)
def test_users_whose_names_are_patterns_have_no_more_rights(broker, api, made, names):
    """`{username}` in a topic permission is the name, letter by letter."""
    user = made.user(made.name() + ".*|x")
    patterns = {"exchange": "amq.topic", "write": "^{username}$", "read": "^{username}$"}
    api.do("PUT", "/api/topic-permissions/%2F/" + user.replace("|", "%7C"), patterns)
    for key, is_allowed in ((user, True), ("x", False), (user.replace(".*|x", ".y"), False)):
        assert_may_publish(broker, user, key, is_allowed)


@pytest.mark.hb(15)
def test_vhosts_of_others_are_closed(broker, made):
    """The text is RabbitMQ's, which tells a vhost that is not for this user from one that is not there."""
    user, vhost = made.user(), made.vhost()
    text = f"access to vhost '{vhost}' refused for user '{user}'"
    with broker.peer() as peer:
        peer.log_in(user=user)
        peer.send_method(0, "connection.tune-ok", channel_max=2047, frame_max=131072)
        peer.send_method(0, "connection.open", virtual_host=vhost)
        assert peer.outcome() == connection_closed(530, text, "connection.open")


@pytest.mark.hb(45)
@pytest.mark.tcp_only("about the user, not about frames")
def test_the_name_of_another_in_a_message(broker, made):
    text = "user_id property set to 'guest' but authenticated user was '{}'"
    for tags in ("", "administrator", "impersonator"):
        user = made.user(tags=tags)
        with broker.peer() as peer:
            peer.connect(user=user)
            peer.publish(1, "", "hostile.nowhere", b"x", {"user_id": user})
            peer.publish(1, "", "hostile.nowhere", b"x", {"user_id": "guest"})
            refusal = channel_closed(406, text.format(user), "basic.publish")
            assert peer.outcome_or_unharmed() == (UNHARMED if tags == "impersonator" else refusal)


@pytest.mark.hb(80)
def test_rights_that_are_taken_away_count_for_open_connections(broker, api, made, names):
    """With or without an update-secret, which proves nothing anew."""
    user, queue = made.user(), names.queue()
    with broker.peer() as peer:
        peer.connect(user=user).call(1, "queue.declare", queue=queue)
        made.permit(user, configure="", write="", read="")
        peer.call(0, "connection.update-secret", new_secret=user.encode(), reason="rotation")
        peer.send_method(1, "basic.get", queue=queue)
        assert peer.outcome() == refused("read", f"queue '{queue}'", user, "basic.get")


@pytest.mark.hb(80)
@pytest.mark.leveret_only("RabbitMQ goes on delivering")
@pytest.mark.parametrize("is_told", [True, False])
def test_a_consumer_ends_when_its_user_may_not_read_any_more(broker, made, names, is_told):
    user, taken, left = made.user(), names.queue(), names.queue()
    with broker.peer() as owner, broker.peer() as peer:
        owner.connect()
        properties = client_properties(consumer_cancel_notify=True) if is_told else ()
        peer.connect(user=user, properties=properties)
        for queue in (taken, left):
            peer.call(1, "queue.declare", queue=queue)
            peer.call(1, "basic.consume", queue=queue, consumer_tag=queue, no_ack=True)
        owner.publish(1, "", taken, b"before")
        peer.expect(1, "basic.deliver")
        assert peer.read_content(1)[1] == b"before"
        made.permit(user, read="^" + re.escape(left) + "$")
        if is_told:
            assert peer.expect(1, "basic.cancel").consumer_tag == taken
        owner.publish(1, "", taken, b"after")
        owner.publish(1, "", left, b"still")
        peer.expect(1, "basic.deliver")
        assert peer.read_content(1)[1] == b"still"
        assert owner.get(1, taken)[2] == b"after"


@pytest.mark.slow
@pytest.mark.hb(88)
def test_a_crowd_without_permissions_does_anything_at_all(broker, made, names, seed):
    """A hundred connections of a user who may do nothing: random methods on what others have."""
    dice = random.Random(seed)
    user = made.user(configure="", write="", read="")
    queue = names.queue()
    with broker.peer() as owner:
        owner.connect().call(1, "queue.declare", queue=queue)
        owner.publish(1, "", queue, b"untouched")
        owner.assert_usable()
        peers = {}
        try:
            for at in range(CROWD + BATCHES):
                # All of them connect first.
                number = at if at < CROWD else dice.randrange(CROWD)
                if number not in peers:
                    peers[number] = broker.peer()
                    peers[number].connect(
                        user=user, properties=client_properties(consumer_cancel_notify=True), channels=[1, 2])
                peer = peers[number]
                for _ in range(20):
                    peer.send(random_method(dice, dice.choice((1, 2)), [queue, "amq.topic", "amq.fanout"]))
                try:
                    is_over = swallow(peer)
                except SocketDropped:
                    is_over = True
                if is_over:
                    peers.pop(number).socket.close()
        finally:
            for peer in peers.values():
                peer.socket.close()
        got, _, body = owner.get(1, queue)
        assert body == b"untouched" and not got.redelivered and got.message_count == 0
