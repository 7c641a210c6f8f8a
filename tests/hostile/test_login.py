"""PLAIN and AMQPLAIN, accepted and refused.

A refused client that announced `authentication_failure_close` gets connection.close 403; any other is dropped after a
delay. RabbitMQ treats malformed answers and unknown mechanisms as protocol errors and drops those peers in both cases.
"""

import pytest

import wire
from answers import DROPPED, by_broker, connection_closed
from brokers import Leveret
from peer import Silent, client_properties

CLOSE_OK_TIMEOUT_S = 31.0  # how long a broker may wait, by the stopwatch, for close-ok before it hangs up

ANNOUNCED = client_properties(authentication_failure_close=True)
DECLINED = client_properties(authentication_failure_close=False)


def refused(mechanism):
    text = f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile."
    return connection_closed(403, text)


def amqplain(*entries):
    """AMQPLAIN's response: a field table without its length."""
    return b"".join(wire.entry(key, tag, content) for key, tag, content in entries)


LOGIN = ("LOGIN", "S", b"guest")
PASSWORD = ("PASSWORD", "S", b"guest")


def log_in(broker, properties, mechanism, response):
    """How the broker ends a login that it refuses. Being let in is an outcome too, and never the expected one."""
    with broker.peer() as peer:
        peer.start()
        peer.start_ok(properties, mechanism=mechanism, response=response)
        try:
            return peer.outcome()
        except Silent:
            return "the broker let the client in"


def accepts(broker, mechanism, response, properties=ANNOUNCED):
    with broker.peer() as peer:
        peer.start()
        peer.start_ok(properties, mechanism=mechanism, response=response)
        return peer.read_method()[1].name == "connection.tune"


@pytest.mark.parametrize(
    "mechanism, response",
    [
        ("PLAIN", b"\0guest\0guest"),
        ("AMQPLAIN", amqplain(LOGIN, PASSWORD)),
        ("AMQPLAIN", amqplain(PASSWORD, LOGIN)),
        ("AMQPLAIN", amqplain(("other", "I", 7), LOGIN, PASSWORD)),
    ])
def test_accepted(broker, mechanism, response):
    assert accepts(broker, mechanism, response)


@pytest.mark.hb(9)
def test_amqplain_first_of_duplicate_keys_counts(broker):
    assert accepts(broker, "AMQPLAIN", amqplain(LOGIN, ("LOGIN", "S", b"nobody"), PASSWORD))
    response = amqplain(("LOGIN", "S", b"nobody"), LOGIN, PASSWORD)
    assert log_in(broker, ANNOUNCED, "AMQPLAIN", response) == refused("AMQPLAIN")


WRONG = {
    "wrong-password": ("PLAIN", b"\0guest\0wrong"),
    "unknown-user": ("PLAIN", b"\0nobody\0guest"),
    "empty-password": ("PLAIN", b"\0guest\0"),
    "empty-user": ("PLAIN", b"\0\0guest"),
    "empty-both": ("PLAIN", b"\0\0"),
    "long-password": ("PLAIN", b"\0guest\0" + b"x" * 8000),
    "password-with-case": ("PLAIN", b"\0guest\0Guest"),
    "password-prefix": ("PLAIN", b"\0guest\0gues"),
    "password-and-more": ("PLAIN", b"\0guest\0guest "),
    "user-with-newline": ("PLAIN", b"\0guest\n\0guest"),
    "not-utf-8": ("PLAIN", b"\0\xff\xfe\0\xff"),
    "amqplain-wrong": ("AMQPLAIN", amqplain(LOGIN, ("PASSWORD", "S", b"wrong"))),
    "amqplain-empty": ("AMQPLAIN", amqplain(LOGIN, ("PASSWORD", "S", b""))),
}


@pytest.mark.hb(8, 9)
@pytest.mark.parametrize("case", WRONG)
def test_refused_with_a_close(broker, case):
    """One text for every reason: nothing tells an unknown user from a wrong password."""
    mechanism, response = WRONG[case]
    assert log_in(broker, ANNOUNCED, mechanism, response) == refused(mechanism)


@pytest.mark.hb(8)
@pytest.mark.parametrize("case", ["wrong-password", "unknown-user", "empty-password", "amqplain-wrong"])
@pytest.mark.parametrize("properties", [(), DECLINED], ids=["unannounced", "declined"])
def test_refused_without_a_close(broker, case, properties):
    mechanism, response = WRONG[case]
    assert log_in(broker, properties, mechanism, response) == DROPPED


MALFORMED = {
    "no-nul": ("PLAIN", b"guest guest"),
    "empty": ("PLAIN", b""),
    "one-nul": ("PLAIN", b"\0guest"),
    "five-nuls": ("PLAIN", b"\0\0\0\0\0"),
    "third-nul": ("PLAIN", b"\0guest\0guest\0"),
    "authorization-id": ("PLAIN", b"guest\0guest\0guest"),
    "amqplain-no-login": ("AMQPLAIN", amqplain(PASSWORD)),
    "amqplain-no-password": ("AMQPLAIN", amqplain(LOGIN)),
    "amqplain-nothing": ("AMQPLAIN", b""),
    "amqplain-login-int": ("AMQPLAIN", amqplain(("LOGIN", "I", 3), PASSWORD)),
    "amqplain-login-table": ("AMQPLAIN", amqplain(("LOGIN", "F", []), PASSWORD)),
    "amqplain-cut": ("AMQPLAIN", amqplain(LOGIN, PASSWORD)[:-3]),
    "amqplain-with-length": ("AMQPLAIN", wire.long(amqplain(LOGIN, PASSWORD))),
    "amqplain-nested": ("AMQPLAIN", wire.nested_table(1000)),
}


@pytest.mark.hb(8, 9)
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_response(broker, case):
    mechanism, response = MALFORMED[case]
    assert log_in(broker, ANNOUNCED, mechanism, response) == by_broker(rabbitmq=DROPPED, leveret=refused(mechanism))


@pytest.mark.hb(8, 9)
@pytest.mark.parametrize("case", ["no-nul", "amqplain-no-login"])
def test_malformed_response_without_a_close(broker, case):
    mechanism, response = MALFORMED[case]
    assert log_in(broker, (), mechanism, response) == DROPPED


@pytest.mark.hb(8)
def test_a_password_larger_than_a_frame_before_tune(broker):
    response = b"\0guest\0" + b"x" * 65_536
    size = len(wire.method(
        "connection.start-ok", client_properties=ANNOUNCED, mechanism="PLAIN", response=response, locale="en_US"))
    text = f"type 1, all octets = <<>>: {{frame_too_large,{size},8184}}"
    assert log_in(broker, ANNOUNCED, "PLAIN", response) == by_broker(
        rabbitmq=DROPPED, leveret=connection_closed(501, text))


def unknown_mechanism(mechanism):
    return connection_closed(503, f"unknown authentication mechanism '{mechanism}'", "connection.start-ok")


@pytest.mark.hb(7)
@pytest.mark.parametrize("mechanism", ["NOPE", "", "plain", "EXTERNAL", "PLAIN ", "x" * 255], ids=lambda text: text[:9])
@pytest.mark.parametrize("properties", [ANNOUNCED, ()], ids=["announced", "unannounced"])
def test_unknown_mechanism(broker, mechanism, properties):
    assert log_in(broker, properties, mechanism, b"\0guest\0guest") == by_broker(
        rabbitmq=DROPPED, leveret=unknown_mechanism(mechanism))


@pytest.mark.hb(7)
def test_anonymous(broker):
    """RabbitMQ has it on by default; in Leveret the user for anonymous logins must be configured."""
    if by_broker(rabbitmq=True, leveret=False):
        assert accepts(broker, "ANONYMOUS", b"")
    else:
        assert log_in(broker, ANNOUNCED, "ANONYMOUS", b"") == unknown_mechanism("ANONYMOUS")


def test_capability_of_the_wrong_type_is_no_capability(broker):
    """`authentication_failure_close` as an integer, and `capabilities` as a string."""
    for properties in (
        [("capabilities", ("F", [("authentication_failure_close", ("I", 1))]))],
        [("capabilities", ("S", b"authentication_failure_close"))],
    ):
        with broker.peer() as peer:
            peer.start()
            peer.start_ok(properties, response=b"\0guest\0wrong")
            assert peer.outcome() == DROPPED


def test_bytes_after_a_refusal_are_ignored(broker):
    """A pipelined handshake behind a wrong password does not get in."""
    with broker.peer() as peer:
        peer.start()
        peer.start_ok(ANNOUNCED, response=b"\0guest\0wrong")
        peer.start_ok(ANNOUNCED, response=b"\0guest\0guest")
        peer.send_method(0, "connection.tune-ok", channel_max=2047, frame_max=131072)
        peer.send_method(0, "connection.open", virtual_host="/")
        assert peer.outcome() == refused("PLAIN")
        assert peer.read_until_drop(CLOSE_OK_TIMEOUT_S) == b""


@pytest.fixture(scope="module")
def open_to_anonymous(leveret_bin):
    """The mechanisms of the configuration that the Java client is tested with, and a user for anonymous logins."""
    broker = Leveret(leveret_bin, config="""
        auth_mechanisms.1 = PLAIN
        auth_mechanisms.2 = ANONYMOUS
        auth_mechanisms.3 = AMQPLAIN
        auth_mechanisms.4 = EXTERNAL
        auth_mechanisms.5 = RABBIT-CR-DEMO
        anonymous_login_user = stranger
        anonymous_login_pass = anybody
        default_users.stranger.password = anybody
        default_users.stranger.read = ^$
    """)
    yield broker
    broker.stop()


@pytest.mark.hb(7)
@pytest.mark.leveret_only("started with a configuration")
def test_anonymous_login_is_the_configured_user(open_to_anonymous):
    with open_to_anonymous.peer() as peer:
        assert peer.start().mechanisms == b"AMQPLAIN ANONYMOUS PLAIN RABBIT-CR-DEMO"
        peer.start_ok(ANNOUNCED, mechanism="ANONYMOUS", response=b"\0guest\0guest")
        peer.expect(0, "connection.tune")
        peer.send_method(0, "connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
        peer.send_method(0, "connection.open", virtual_host="/")
        peer.expect(0, "connection.open-ok")
        peer.call(1, "channel.open")
        queue = peer.call(1, "queue.declare", exclusive=True).queue
        peer.send_method(1, "basic.get", queue=queue, no_ack=True)
        assert peer.read_method()[1].reply_code == 403


@pytest.mark.hb(7)
@pytest.mark.leveret_only("started with a configuration")
def test_a_challenge_is_answered_with_the_password(open_to_anonymous):
    def outcome(user, answer):
        with open_to_anonymous.peer() as peer:
            peer.start()
            peer.start_ok(ANNOUNCED, mechanism="RABBIT-CR-DEMO", response=user)
            assert peer.expect(0, "connection.secure").challenge == b"Please tell me your password"
            peer.send_method(0, "connection.secure-ok", response=answer)
            return peer.outcome() if answer != b"My password is guest" else peer.read_method()[1].name

    assert outcome(b"guest", b"My password is guest") == "connection.tune"
    for user, answer in [
        (b"guest", b"My password is Guest"), (b"guest", b"guest"), (b"guest", b""), (b"", b"My password is "),
        (b"\xff", b"My password is x"),
    ]:
        assert outcome(user, answer) == refused("RABBIT-CR-DEMO")
