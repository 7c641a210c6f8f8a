"""TLS on both ports: certificates of server and clients, logins by certificate, new certificates without a restart.

The certificates of a running RabbitMQ are not the suite's to change: only Leveret is tested.
"""

import base64
import contextlib
import json
import random
import signal
import socket
import ssl
import urllib.error
import urllib.request

import pika
import pytest
from certificates import Authority
from cryptography import x509
from patience import PATIENCE_S, eventually

VERSIONS = {"tlsv1.2": ssl.TLSVersion.TLSv1_2, "tlsv1.3": ssl.TLSVersion.TLSv1_3}


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def tls(under, authority):
    """`tls(settings, pair)`: a broker with TLS on both ports."""
    if under.name == "rabbitmq":
        pytest.skip("the certificates of a running RabbitMQ are not the suite's to change")
    with contextlib.ExitStack() as undo:

        def tls(settings="", pair=None, definitions=None):
            pair = pair or authority.sign("server")
            broker = under.start(f"""
                listeners.ssl.1 = 127.0.0.1:0
                management.ssl.ip = 127.0.0.1
                management.ssl.port = 0
                ssl_options.cacertfile = {authority.file}
                ssl_options.certfile = {pair.certificate}
                ssl_options.keyfile = {pair.key}
                {settings}""", definitions)
            undo.callback(broker.stop)
            return broker

        yield tls


def connect(broker, context, credentials=None):
    """A connection of pika's over TLS."""
    credentials = credentials or pika.PlainCredentials("guest", "guest")
    options = pika.SSLOptions(context, "localhost")
    port = broker.port("AMQPS")
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, "/", credentials, ssl_options=options))


def greeting(broker, context, protocol="AMQPS"):
    """The serial number of the certificate that a new client is shown, if it is let in."""
    plain = socket.create_connection(("127.0.0.1", broker.port(protocol)), timeout=PATIENCE_S)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as secure:
        certificate = x509.load_der_x509_certificate(secure.getpeercert(binary_form=True))
        if protocol == "AMQPS":
            secure.sendall(b"AMQP\x00\x00\x09\x01")
            assert secure.recv(1) == b"\x01"  # a frame: with TLS 1.3 a refused client gets the alert here
        return certificate.serial_number


def https(broker, context, path, user="guest"):
    url = f"https://localhost:{broker.port('HTTPS')}{path}"
    request = urllib.request.Request(url)
    login = base64.b64encode(f"{user}:{user}".encode()).decode()
    request.add_header("authorization", "Basic " + login)
    with urllib.request.urlopen(request, timeout=PATIENCE_S, context=context) as answer:
        return json.load(answer)


def logged(broker, *parts):
    eventually(lambda: any(all(part in line for part in parts) for line in broker.log), what=f"a log line with {parts}")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("key_type, form", [("ec", "pkcs8"), ("ec", "traditional"), ("rsa", "pkcs8"),
                                            ("rsa", "traditional")])
def test_messages_of_all_sizes_pass_both_ways(tls, authority, version, key_type, form):
    pair = authority.sign("server", key_type=key_type, form=form)
    connection = connect(tls(pair=pair), authority.context(version=VERSIONS[version]))
    channel = connection.channel()
    channel.queue_declare("q")
    channel.confirm_delivery()
    sizes = [0, 1, 100, 16_383, 16_384, 16_385, 70_000, 1_000_000, 5_000_000]
    bodies = [random.Random(size).randbytes(size) for size in sizes]
    for body in bodies:
        channel.basic_publish("", "q", body)
    assert [channel.basic_get("q", auto_ack=True)[2] for _ in bodies] == bodies
    for number in range(2000):
        channel.basic_publish("", "q", str(number))
    received = []
    for _, _, body in channel.consume("q", auto_ack=True):
        received.append(int(body))
        if len(received) == 2000:
            break
    assert received == list(range(2000))
    connection.close()


@pytest.mark.parametrize("password", ["secret", "wrong", None])
def test_a_private_key_may_be_encrypted(tls, authority, password):
    pair = authority.sign("server", password="secret")
    settings = "" if password is None else f"ssl_options.password = {password}"
    if password == "secret":
        connect(tls(settings, pair), authority.context()).close()
        return
    with pytest.raises(RuntimeError) as failed:
        tls(settings, pair)
    assert "server.key is encrypted, with another password or none that is given" in str(failed.value)
    assert "wrong" not in str(failed.value)


@pytest.mark.parametrize("offered, version, is_let_in", [
    ("tlsv1.3", "tlsv1.3", True),
    ("tlsv1.3", "tlsv1.2", False),
    ("tlsv1.2", "tlsv1.2", True),
    ("tlsv1.2", "tlsv1.3", False),
])
def test_only_the_versions_that_are_configured_are_spoken(tls, authority, offered, version, is_let_in):
    broker = tls(f"ssl_options.versions.1 = {offered}")
    context = authority.context(version=VERSIONS[version])
    if is_let_in:
        connect(broker, context).close()
    else:
        with pytest.raises(ssl.SSLError):
            greeting(broker, context)


def test_clients_show_certificates_when_they_must(tls, authority, tmp_path):
    broker = tls("ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true")
    connect(broker, authority.context(authority.sign("client"))).close()
    stranger = Authority(tmp_path, "stranger").sign("stranger-client")
    for context in (
        authority.context(),
        authority.context(stranger),
        authority.context(authority.sign("late", expired=True)),
    ):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            greeting(broker, context)
    logged(broker, "TLS handshake failed", "peer sent no certificates")
    logged(broker, "TLS handshake failed", "UnknownIssuer")
    logged(broker, "TLS handshake failed", "certificate expired")
    assert greeting(broker, authority.context(authority.sign("again"))), "others are still let in"


def test_a_certificate_that_clients_need_not_have_must_be_good_all_the_same(tls, authority, tmp_path):
    broker = tls("ssl_options.verify = verify_peer")
    assert greeting(broker, authority.context())
    assert greeting(broker, authority.context(authority.sign("client")))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        greeting(broker, authority.context(Authority(tmp_path, "stranger").sign("stranger-client")))


@pytest.mark.parametrize("settings, user", [
    ("", "CN=bob,O=Example\\, Inc."),
    ("ssl_cert_login_from = common_name", "bob"),
    ("ssl_cert_login_from = subject_alternative_name", "localhost"),
    ("ssl_cert_login_from = subject_alternative_name\nssl_cert_login_san_index = 1", "bob.example"),
    ("ssl_cert_login_from = subject_alternative_name\nssl_cert_login_san_type = email", "bob@example"),
    ("ssl_cert_login_from = subject_alternative_name\nssl_cert_login_san_type = uri", "urn:bob"),
    ("ssl_cert_login_from = subject_alternative_name\nssl_cert_login_san_type = ip", "127.0.0.1"),
])
def test_a_user_logs_in_by_his_certificate(tls, authority, settings, user):
    names = [x509.DNSName("bob.example"), x509.RFC822Name("bob@example"), x509.UniformResourceIdentifier("urn:bob")]
    permissions = {"user": user, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
    definitions = {
        "users": [{"name": user, "password_hash": "", "tags": []}],
        "vhosts": [{"name": "/"}],
        "permissions": [permissions],
    }
    broker = tls(f"""
        auth_mechanisms.1 = PLAIN
        auth_mechanisms.2 = EXTERNAL
        ssl_options.verify = verify_peer
        {settings}""", definitions=definitions)
    external = pika.credentials.ExternalCredentials()
    connection = connect(broker, authority.context(authority.sign("bob", names=names)), external)
    connection.channel().queue_declare("q", exclusive=True)
    logged(broker, "connected", json.dumps(user))
    connection.close()


def test_external_login_needs_a_certificate_of_a_user(tls, authority):
    broker = tls("""
        auth_mechanisms.1 = PLAIN
        auth_mechanisms.2 = EXTERNAL
        ssl_options.verify = verify_peer
        ssl_cert_login_from = common_name""")
    external = pika.credentials.ExternalCredentials()
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connect(broker, authority.context(authority.sign("nobody")), external)
    logged(broker, "login refused", "EXTERNAL")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connect(broker, authority.context(), external)
    connect(broker, authority.context()).close()


def test_client_on_the_wrong_port_is_logged(tls, authority):
    broker = tls()
    with socket.create_connection(("127.0.0.1", broker.port("AMQPS")), timeout=PATIENCE_S) as plain:
        plain.sendall(b"AMQP\x00\x00\x09\x01")
        eventually(lambda: len(plain.recv(1000)) == 0, what="the end of the connection")
    logged(broker, "TLS handshake failed", "AMQPS", "the client does not speak TLS")
    with socket.create_connection(("127.0.0.1", broker.port("HTTPS")), timeout=PATIENCE_S) as plain:
        plain.sendall(b"GET /api/overview HTTP/1.1\r\nhost: localhost\r\n\r\n")
        eventually(lambda: len(plain.recv(1000)) == 0, what="the end of the connection")
    logged(broker, "TLS handshake failed", "HTTPS", "the client does not speak TLS")
    with socket.create_connection(broker.amqp, timeout=PATIENCE_S) as plain, pytest.raises(ssl.SSLError):
        authority.context().wrap_socket(plain, server_hostname="localhost")
    logged(broker, "the client speaks TLS on a port without it")


@pytest.mark.parametrize("garbage", [
    b"\x00" * 100,
    b"\x17\x03\x03\xff\xff" + b"x" * 70_000,
    b"\x17\x03\x03\x00\x20" + bytes(32),
    b"\x15\x03\x03\x00\x02\x02\x00",
    b"\x16\x03\x03\x00\x04\x18\x00\x00\x01",
    b"AMQP\x00\x00\x09\x01",
])
def test_invalid_tls_record_ends_only_its_connection(tls, authority, garbage):
    broker = tls()
    with socket.create_connection(("127.0.0.1", broker.port("AMQPS")), timeout=PATIENCE_S) as plain:
        below = plain.dup()
        with authority.context().wrap_socket(plain, server_hostname="localhost") as secure:
            secure.sendall(b"AMQP\x00\x00\x09\x01")
            assert secure.recv(1) == b"\x01"
            with below, contextlib.suppress(ConnectionError):
                below.sendall(garbage)
                below.settimeout(PATIENCE_S)
                eventually(lambda: below.recv(65536) == b"", what="the end of the connection")
    logged(broker, "connection lost")
    connect(broker, authority.context()).close()


@pytest.mark.parametrize("protocol", ["AMQPS", "HTTPS"])
def test_a_client_that_does_not_shake_hands_is_not_waited_for(tls, protocol):
    broker = tls("ssl_handshake_timeout = 300")
    with socket.create_connection(("127.0.0.1", broker.port(protocol)), timeout=PATIENCE_S) as silent:
        silent.sendall(b"\x16\x03")
        assert silent.recv(1) == b""


@pytest.mark.parametrize("by_signal", [True, False])
def test_a_new_certificate_is_used_and_a_bad_one_is_not(tls, authority, by_signal):
    first = authority.sign("server")
    broker = tls(pair=first)
    open_before = connect(broker, authority.context())
    channel = open_before.channel()
    channel.queue_declare("q", exclusive=True)

    def changed():
        if by_signal:
            broker.process.send_signal(signal.SIGHUP)

    assert greeting(broker, authority.context()) == first.serial
    second = authority.sign("server")
    assert second.certificate == first.certificate
    changed()
    for protocol in ("AMQPS", "HTTPS"):
        eventually(lambda: greeting(broker, authority.context(), protocol) == second.serial, what="the new certificate")

    second.certificate.write_text("no certificate")
    changed()
    for protocol in ("AMQPS", "HTTPS"):
        logged(broker, "ERROR", f"{protocol} keeps its certificate", "server.pem has no certificate in PEM format")
    assert greeting(broker, authority.context()) == second.serial

    second.certificate.unlink()
    changed()
    logged(broker, "ERROR", "AMQPS keeps its certificate: cannot read", "No such file")
    third = authority.sign("server")
    changed()
    eventually(lambda: greeting(broker, authority.context()) == third.serial, what="the third certificate")
    channel.basic_publish("", "q", b"still here")
    assert channel.basic_get("q", auto_ack=True)[2] == b"still here"
    open_before.close()


def test_https_is_the_management_api(tls, authority):
    broker = tls()
    assert https(broker, authority.context(), "/api/whoami")["name"] == "guest"
    listeners = https(broker, authority.context(), "/api/overview")["listeners"]
    shown = {(listener["protocol"], listener["tls"]) for listener in listeners}
    assert shown == {("amqp", False), ("amqp/ssl", True), ("http", False), ("https", True)}
    for protocol in ("amqp/ssl", "https"):
        path = f"/api/health/checks/protocol-listener/{protocol.replace('/', '%2F')}"
        assert https(broker, authority.context(), path)["status"] == "ok"
    port = broker.port("AMQPS")
    assert https(broker, authority.context(), f"/api/health/checks/port-listener/{port}")["port"] == port


def test_https_clients_show_certificates_when_they_must(tls, authority):
    broker = tls("management.ssl.verify = verify_peer\nmanagement.ssl.fail_if_no_peer_cert = true")
    assert https(broker, authority.context(authority.sign("client")), "/api/whoami")["name"] == "guest"
    with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
        https(broker, authority.context(), "/api/whoami")


def test_a_blocked_publisher_over_tls_lives_on(tls, authority):
    broker = tls()
    node = broker.api.do("GET", "/api/overview")["node"]
    path = f"/api/nodes/{node}/vm-memory-high-watermark"
    connection = connect(broker, authority.context())
    said = []
    connection.add_on_connection_blocked_callback(lambda _, frame: said.append(frame.method.reason))
    connection.add_on_connection_unblocked_callback(lambda _, frame: said.append(None))
    channel = connection.channel()
    channel.queue_declare("q", exclusive=True)
    assert broker.api.ask(path, method="PUT", body={"absolute": 1}).status == 204
    channel.basic_publish("", "q", b"held back")
    eventually(lambda: connection.process_data_events(0.05) or said, what="connection.blocked")
    assert broker.api.ask(path, method="PUT", body={"relative": 1}).status == 204
    eventually(lambda: connection.process_data_events(0.05) or len(said) == 2, what="connection.unblocked")
    assert said == ["low on memory", None]
    eventually(lambda: channel.basic_get("q", auto_ack=True)[2] == b"held back", what="the message")
    connection.close()


def test_certificates_that_expire_soon_are_reported(tls):
    broker = tls()
    check = "/api/health/checks/certificate-expiration/"
    assert broker.api.do("GET", check + "0/days") == {"status": "ok"}
    status, answer = broker.api.request("GET", check + "100/years")
    assert (status, answer["reason"]) == (503, "Certificates expiring")
    assert sorted(one["protocol"] for one in answer["expired"]) == ["amqp/ssl", "https"]
