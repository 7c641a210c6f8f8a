"""The management API: connections, channels and consumers: their fields, the users who see them, and how they are closed."""

import time

import pika
import pytest

from brokers import quoted
from definitions import User
from patience import Patience, becomes


CONNECTION = {
    "name": str, "node": str, "type": str, "protocol": str, "host": str, "port": int, "peer_host": str, "peer_port": int,
    "user": str, "user_who_performed_action": str, "auth_mechanism": str, "vhost": str, "client_properties": dict,
    "channel_max": int, "frame_max": int, "timeout": int, "connected_at": int, "state": str, "channels": int,
    "recv_oct": int, "recv_cnt": int, "send_oct": int, "send_cnt": int, "send_pend": int, "ssl": bool,
    "recv_oct_details": dict, "send_oct_details": dict,
}

CHANNEL = {
    "name": str, "number": int, "node": str, "vhost": str, "user": str, "user_who_performed_action": str,
    "connection_details": dict, "state": str, "confirm": bool, "transactional": bool, "prefetch_count": int,
    "consumer_count": int, "messages_unacknowledged": int, "messages_unconfirmed": int, "messages_uncommitted": int,
    "acks_uncommitted": int, "message_stats": dict,
}

CONSUMER = {
    "consumer_tag": str, "queue": dict, "channel_details": dict, "ack_required": bool, "active": bool,
    "activity_status": str, "exclusive": bool, "prefetch_count": int, "consumer_timeout": int, "arguments": dict,
}


def types_of(object, names):
    """The types of the fields of these names, as far as there are any."""
    return {name: type(object[name]) for name in names if name in object}


def name_of(connection):
    """The name of a connection: both ends of its socket."""
    sock = connection.pika._transport._sock
    (here, port), (there, peer_port) = sock.getsockname(), sock.getpeername()
    return f"{here}:{port} -> {there}:{peer_port}"


def whole(api, path, user="guest"):
    """The answer of a path, once all of its fields are there."""
    patience = Patience()
    while True:
        answer = api.ask(path, user=user)
        if answer.status == 200 and "recv_oct_details" in answer.json or patience.is_over():
            return answer.json
        time.sleep(0.1)


@pytest.fixture
def crowd(defined, prefix):
    """A vhost with two users of the tag management and their connections, and one of every other tag."""

    class Crowd:
        def __init__(self):
            tags = {"own": "management", "other": "management", "watch": "monitoring", "rule": "policymaker",
                    "admin": "administrator"}
            self.vhost = prefix + "v"
            users = [User(name, vhost=self.vhost, tags=(tag,)) for name, tag in tags.items()
                     if name in ("own", "other")]
            users += [User(name, vhost="/", tags=(tag,)) for name, tag in tags.items() if name not in ("own", "other")]
            defined(vhosts=[self.vhost], users=users)
            self.client = defined.client
            self.api = defined.client.broker.api
            self.own, self.other = self.connect("own"), self.connect("other")

        def user(self, name):
            return name if name == "guest" else prefix + name

        def connect(self, name):
            channel = self.client.connect(user=self.user(name), vhost=self.vhost).channel()
            queue = channel.queue(durable=True)
            channel.consume(queue)
            return channel.connection

        def ask(self, path, as_user="guest", **more):
            return self.api.ask("/api/" + path, user=self.user(as_user), **more)

        def users_in(self, path, as_user):
            """Whose clients of this vhost a list shows."""
            answer = self.ask(path, as_user)
            if answer.status != 200:
                return answer.status
            here = [one for one in answer.json if one.get("vhost", one.get("queue", {}).get("vhost")) == self.vhost]
            users = [one.get("user") or one["channel_details"]["user"] for one in here]
            return sorted(user.removeprefix(prefix) for user in users)

    return Crowd()


@pytest.mark.alone
def test_a_connection_tells_what_it_is(client, api):
    connection = client.connect(tune={"heartbeat": 60})
    connection.channel()
    name = name_of(connection)
    becomes(lambda: api.ask("/api/connections/" + quoted(name)).status, 200)
    becomes(lambda: whole(api, "/api/connections/" + quoted(name))["channels"], 1)
    alone = whole(api, "/api/connections/" + quoted(name))
    assert types_of(alone, CONNECTION) == CONNECTION
    here, port = client.broker.amqp
    assert (alone["name"], alone["host"], alone["port"]) == (name, here, port)
    assert alone["peer_port"] == int(name.split(" -> ")[0].rsplit(":", 1)[1])
    assert (alone["protocol"], alone["auth_mechanism"], alone["user"]) == ("AMQP 0-9-1", "PLAIN", "guest")
    assert (alone["state"], alone["vhost"], alone["timeout"], alone["frame_max"]) == ("running", "/", 60, 131072)
    assert alone["client_properties"]["capabilities"]["consumer_cancel_notify"] is True
    assert abs(alone["connected_at"] / 1000 - time.time()) < 60
    assert alone["recv_oct"] > 100 and alone["recv_cnt"] > 1 and alone["send_oct"] > 100 and alone["send_cnt"] > 1
    [listed] = [one for one in api.ask("/api/connections").json if one["name"] == name]
    assert listed.keys() == alone.keys()
    assert [one["name"] for one in api.ask("/api/connections?page=1&name=" + quoted(name)).json["items"]] == [name]


@pytest.mark.better
def test_a_filter_finds_the_client_provided_name(client, api, prefix, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ's filter compares addresses only")
    given = f"billing-{prefix}of a shop"
    connection = pika.BlockingConnection(pika.ConnectionParameters(*client.broker.amqp, client_properties={"connection_name": given}))
    channel = connection.channel()
    [name] = [one["name"] for one in api.ask("/api/connections").json if one.get("user_provided_name") == given]
    channel.queue_declare(given, exclusive=True)
    channel.basic_consume(given, lambda *_: None, consumer_tag="any")
    found = lambda path: api.ask(f"/api/{path}?page=1&name={given[:20].upper()}&sort=name").json["items"]
    becomes(lambda: [one["name"] for one in found("connections")], [name])
    becomes(lambda: [one["name"] for one in found("channels")], [f"{name} (1)"])
    assert found("channels")[0]["connection_details"]["user_provided_name"] == given
    becomes(lambda: [one["consumer_tag"] for one in found("consumers")], ["any"])
    connection.close()


def test_a_connection_that_has_gone_is_not_there(client, api):
    connection = client.connect()
    path = "/api/connections/" + quoted(name_of(connection))
    becomes(lambda: api.ask(path).status, 200)
    connection.close()
    becomes(lambda: api.ask(path).status, 404)
    assert api.ask(path).json == {"error": "Object Not Found", "reason": "Not Found"}


def test_a_channel_tells_what_its_client_does(client, api):
    ch = client.channel()
    q = ch.queue()
    ch.qos(5)
    ch.confirm_select()
    for body in "abcdefgh":
        ch.publish(q, body)
    consumer = ch.consume(q)
    ch.ack(consumer.next())
    consumer.next_bodies(4)
    ch.publish("nowhere", "lost")
    ch.publish("nowhere", "back", mandatory=True)
    connection = name_of(ch.connection)
    name = f"{connection} ({ch.number})"
    counts = {"publish": 10, "confirm": 10, "deliver": 6, "deliver_get": 6, "ack": 1, "return_unroutable": 1,
              "drop_unroutable": 1, "get": 0, "get_no_ack": 0, "deliver_no_ack": 0, "redeliver": 0, "get_empty": 0}

    def told():
        answer = api.ask("/api/channels/" + quoted(name))
        stats = answer.json.get("message_stats", {}) if answer.status == 200 else {}
        return {name: stats.get(name) for name in counts}

    becomes(told, counts)
    alone = api.ask("/api/channels/" + quoted(name)).json
    assert types_of(alone, CHANNEL) == CHANNEL
    assert (alone["name"], alone["number"], alone["user"], alone["vhost"]) == (name, ch.number, "guest", "/")
    assert alone["connection_details"]["name"] == connection
    assert alone["connection_details"].keys() == {"name", "peer_host", "peer_port"}
    assert (alone["confirm"], alone["transactional"], alone["state"]) == (True, False, "running")
    assert (alone["prefetch_count"], alone["consumer_count"], alone["messages_unacknowledged"]) == (5, 1, 5)
    assert all("rate" in alone["message_stats"][name + "_details"] for name in counts)
    [consumer] = alone["consumer_details"]
    assert consumer["queue"] == {"name": q, "vhost": "/"}
    [of_connection] = api.ask(f"/api/connections/{quoted(connection)}/channels").json
    assert of_connection["name"] == name


def test_gets_and_deliveries_of_a_channel_are_counted_apart(client, api):
    ch = client.channel()
    q = ch.queue()
    for body in "abc":
        ch.publish(q, body)
    ch.sync()
    ch.get_unacked(q)
    ch.get(q)
    ch.get(q)
    ch.get(q)
    name = f"{name_of(ch.connection)} ({ch.number})"
    counts = {"get": 1, "get_no_ack": 2, "get_empty": 1, "deliver_get": 3}

    def told():
        answer = api.ask("/api/channels/" + quoted(name))
        stats = answer.json.get("message_stats", {}) if answer.status == 200 else {}
        return {name: stats.get(name) for name in counts}

    becomes(told, counts)


def test_uncommitted_work_is_counted(client, api):
    ch = client.channel()
    q = ch.queue()
    ch.publish(q, "a")
    ch.sync()
    ch.tx_select()
    message = ch.get_unacked(q)
    ch.publish(q, "b")
    ch.ack(message)
    name = f"{name_of(ch.connection)} ({ch.number})"
    expected = {"transactional": True, "messages_uncommitted": 1, "acks_uncommitted": 1}

    def told():
        answer = api.ask("/api/channels/" + quoted(name))
        return {field: answer.json.get(field) for field in expected} if answer.status == 200 else None

    becomes(told, expected)


def test_a_consumer_tells_who_it_is(client, api):
    ch = client.channel()
    q = ch.queue()
    ch.consume(q, tag="me", prefetch=7, arguments={"x-priority": 3})

    def listed():
        return [one for one in api.ask("/api/consumers/%2F").json if one["queue"]["name"] == q]

    becomes(lambda: len(listed()), 1)
    [consumer] = listed()
    assert types_of(consumer, CONSUMER) == CONSUMER
    assert (consumer["consumer_tag"], consumer["ack_required"], consumer["prefetch_count"]) == ("me", True, 7)
    assert (consumer["active"], consumer["activity_status"], consumer["exclusive"]) == (True, "up", False)
    assert consumer["arguments"] == {"x-priority": 3}
    on = consumer["channel_details"]
    connection = name_of(ch.connection)
    assert (on["connection_name"], on["name"], on["number"]) == (connection, f"{connection} ({ch.number})", ch.number)
    assert (on["user"], f"{on['peer_host']}:{on['peer_port']}") == ("guest", connection.split(" -> ")[0])
    becomes(lambda: len(api.ask("/api/queues/" + quoted("/", q)).json["consumer_details"]), 1)
    queue = api.ask("/api/queues/" + quoted("/", q)).json
    assert queue["consumer_details"][0]["channel_details"]["connection_name"] == connection


def test_single_active_consumer_is_distinguished_from_waiting_ones(client, api):
    ch = client.channel()
    q = ch.queue(arguments={"x-single-active-consumer": True})
    ch.consume(q, tag="first")
    ch.consume(q, tag="second")

    def told():
        here = [one for one in api.ask("/api/consumers/%2F").json if one["queue"]["name"] == q]
        return {one["consumer_tag"]: (one["active"], one["activity_status"]) for one in here}

    becomes(told, {"first": (True, "single_active"), "second": (False, "waiting")})


def test_an_exclusive_queue_tells_whose_it_is(client, api):
    ch = client.channel()
    q = ch.queue(exclusive=True)
    owner = {"name": name_of(ch.connection)}

    def told():
        details = api.ask("/api/queues/" + quoted("/", q)).json.get("owner_pid_details") or {}
        return {name: details.get(name) for name in owner}

    becomes(told, owner)


LISTS = ["connections", "channels", "consumers"]

# Whose clients a user sees: in the lists of all, of the vhost, of consumers of the vhost.
SEEN = {
    "guest": (["other", "own"], ["other", "own"], ["other", "own"]),
    "admin": (["other", "own"], ["other", "own"], ["other", "own"]),
    "watch": (["other", "own"], 404, ["other", "own"]),
    "own": (["own"], ["own"], ["own"]),
    "rule": ([], 404, 404),
}


def test_lists_of_clients_depend_on_the_tags(crowd):
    v = quoted(crowd.vhost)
    becomes(lambda: crowd.users_in("consumers", "guest"), ["other", "own"])
    becomes(lambda: crowd.users_in("channels", "guest"), ["other", "own"])
    for user, (of_all, of_vhost, consumers) in SEEN.items():
        for path in LISTS:
            assert crowd.users_in(path, user) == of_all, (user, path)
        for path in ("connections", "channels"):
            assert crowd.users_in(f"vhosts/{v}/{path}", user) == of_vhost, (user, path)
        assert crowd.users_in("consumers/" + v, user) == consumers, user


def test_one_looks_at_ones_own_clients_only(crowd):
    connection = quoted(name_of(crowd.own))
    paths = [f"connections/{connection}", f"connections/{connection}/channels", f"channels/{connection}%20(1)",
             "connections/username/" + quoted(crowd.user("own"))]
    becomes(lambda: crowd.ask(paths[2]).status, 200)
    refused = {"error": "not_authorised", "reason": "User not authorised to access object"}
    for user, status in {"guest": 200, "admin": 200, "watch": 200, "own": 200, "other": 401, "rule": 401}.items():
        for path in paths:
            answer = crowd.ask(path, user)
            assert answer.status == status, (user, path)
            assert status == 200 or answer.json == refused


@pytest.mark.parametrize("reason", [None, "go away"])
def test_closed_client_gets_the_reason(crowd, reason):
    connection = name_of(crowd.own)
    becomes(lambda: crowd.ask("connections/" + quoted(connection)).status, 200)
    headers = {"X-Reason": reason} if reason else {}
    answer = crowd.ask("connections/" + quoted(connection), "own", method="DELETE", **headers)
    assert (answer.status, answer.text) == (204, b"")
    assert crowd.client.run_until(lambda: crowd.own.closed)
    text = f"CONNECTION_FORCED - {reason or 'Closed via management plugin'}"
    assert (crowd.own.closed.code, crowd.own.closed.text) == (320, text)
    becomes(lambda: crowd.ask("connections/" + quoted(connection)).status, 404)
    assert crowd.other.closed is None


def test_all_clients_of_a_user_are_closed(crowd):
    another = crowd.connect("own")
    path = "connections/username/" + quoted(crowd.user("own"))
    becomes(lambda: len(crowd.ask(path).json), 2)
    assert crowd.ask(path, "guest", method="DELETE").status == 204
    assert crowd.client.run_until(lambda: crowd.own.closed and another.closed)
    assert crowd.other.closed is None
    becomes(lambda: crowd.ask(path).json, [])


def test_to_close_what_is_not_ones_own_takes_an_administrator(crowd):
    paths = ["connections/" + quoted(name_of(crowd.own)), "connections/username/" + quoted(crowd.user("own"))]
    becomes(lambda: crowd.ask(paths[0]).status, 200)
    for user in ("other", "watch", "rule"):
        for path in paths:
            assert crowd.ask(path, user, method="DELETE").status == 401, (user, path)
    assert crowd.own.closed is None
    assert crowd.ask(paths[0], "admin", method="DELETE").status == 204


def test_absent_clients_are_404(api):
    for path in ("connections/nope", "channels/nope", "channels/nope%20(1)", "vhosts/nope/connections",
                 "vhosts/nope/channels", "consumers/nope"):
        answer = api.ask("/api/" + path)
        assert (answer.status, answer.json) == (404, {"error": "Object Not Found", "reason": "Not Found"}), path
    assert api.ask("/api/connections/nope", method="DELETE").status == 404
    answer = api.ask("/api/connections/username/nope")
    assert (answer.status, answer.json) == (200, [])
    assert api.ask("/api/connections/username/nope", method="DELETE").status == 204


@pytest.mark.better
def test_channels_of_a_connection_that_is_not_there(api, by_broker):
    status = api.ask("/api/connections/nope/channels").status
    assert status == by_broker(rabbitmq=500, leveret=404)


@pytest.mark.better
def test_a_client_that_is_not_read_says_so(defined, by_broker):
    """The settings are for Leveret alone: its memory alarm is on from the start."""
    defined(settings="vm_memory_high_watermark.absolute = 1")
    api = defined.client.broker.api
    quiet, publisher = defined.client.connect(), defined.client.connect()
    publisher.channel().publish("nowhere", "a")

    def states():
        return [whole(api, "/api/connections/" + quoted(name_of(one))).get("state") for one in (quiet, publisher)]

    becomes(states, by_broker(rabbitmq=["running", "running"], leveret=["blocking", "blocked"]))
    publisher.drop()  # a goodbye would not be read
