"""Limits of users in a cluster: the clients of all vhosts count, whichever nodes lead these."""

import pika
import pytest

from patience import eventually
from test_cluster_metadata import A, C, comes_to_lead

pytestmark = [pytest.mark.better]

VHOSTS = ("va", "vb", "vc")


@pytest.fixture
def cluster(run_cluster):
    """Three nodes that lead a vhost each, and a user who may enter all of them."""
    cluster = run_cluster()
    api = cluster.nodes[A].api
    api.do("PUT", "/api/users/anna", {"password": "anna", "tags": ""})
    for (name, node), vhost in zip(cluster.nodes.items(), VHOSTS):
        api.do("PUT", f"/api/vhosts/{vhost}", {})
        api.do("PUT", f"/api/permissions/{vhost}/anna", {"configure": "", "write": "", "read": ""})
        eventually(lambda name=name, node=node, vhost=vhost: comes_to_lead(name, node, vhost))
    for name in cluster.nodes:
        eventually(lambda name=name: all(may_enter(cluster, vhost, name) for vhost in VHOSTS))
    return cluster


def may_enter(cluster, vhost, node):
    """Whether node and leader know the user by now."""
    try:
        connect(cluster, vhost, node).close()
    except pika.exceptions.AMQPError:
        return False
    return True


def connect(cluster, vhost, node=A):
    host, port = cluster.nodes[node].amqp
    return pika.BlockingConnection(pika.ConnectionParameters(
        host, port, vhost, pika.PlainCredentials("anna", "anna"), heartbeat=0))


def refusal(cluster, vhost, node=A):
    """The text with which a connection is refused; None if it is not."""
    try:
        connect(cluster, vhost, node).close()
    except pika.exceptions.ProbableAccessDeniedError as told:
        return str(told)
    return None


def full(limit):
    text = f"NOT_ALLOWED - connection refused for user 'anna': user connection limit ({limit}) is reached"
    return f'ConnectionClosedByBroker: (530) "{text}"'


def test_connections_to_vhosts_of_all_leaders_count(cluster):
    cluster.nodes[A].api.do("PUT", "/api/user-limits/anna/max-connections", {"value": 3})
    held = [connect(cluster, vhost) for vhost in VHOSTS]
    for node in cluster.nodes:
        for vhost in VHOSTS:
            eventually(lambda node=node, vhost=vhost: refusal(cluster, vhost, node) == full(3))
    held.pop().close()
    eventually(lambda: refusal(cluster, "va") is None)
    held.append(connect(cluster, "va"))
    eventually(lambda: refusal(cluster, "vc") == full(3))
    # Those of a node that is lost are lost, too.
    held.append(eventually(lambda: unlimited(cluster, "vc")))
    cluster.nodes[A].api.do("PUT", "/api/user-limits/anna/max-connections", {"value": 4})
    eventually(lambda: refusal(cluster, "va") == full(4))
    cluster.nodes[C].kill()
    eventually(lambda: refusal(cluster, "va") is None)


def unlimited(cluster, vhost):
    """A connection that the limit does not prevent."""
    api = cluster.nodes[A].api
    api.do("DELETE", "/api/user-limits/anna/max-connections")
    return connect(cluster, vhost)


def test_connections_from_before_the_limit_count(cluster):
    held = [connect(cluster, vhost) for vhost in ("va", "vb")]
    assert refusal(cluster, "vc") is None
    cluster.nodes[A].api.do("PUT", "/api/user-limits/anna/max-connections", {"value": 2})
    eventually(lambda: refusal(cluster, "vc") == full(2))
    assert all(connection.is_open for connection in held)


def test_channels_in_vhosts_of_all_leaders_count(cluster):
    cluster.nodes[A].api.do("PUT", "/api/user-limits/anna/max-channels", {"value": 4})
    a, b = (connect(cluster, vhost) for vhost in ("va", "vb"))
    channels = [connection.channel() for connection in (a, a, b, b)]
    text = "NOT_ALLOWED - number of channels opened for user 'anna' has reached the maximum allowed user limit of 4"

    def one_more():
        with connect(cluster, "vc") as connection:
            try:
                connection.channel().close()
            except pika.exceptions.ConnectionClosedByBroker as told:
                return (told.reply_code, told.reply_text) == (530, text)
        return False

    eventually(one_more)
    channels[0].close()

    def has_room():
        with connect(cluster, "vc") as connection:
            try:
                return connection.channel().is_open
            except pika.exceptions.ConnectionClosedByBroker:
                return False

    eventually(has_room)
