"""Wall clocks that are wrong: before 1970, behind the year 9999, and set back or forth while the broker was down."""

import base64
import json
import ssl
import time
import urllib.request

import pika
import pytest

from stopwatch import Stopwatch
from tls import Certificate

DAY_S = 86_400
TTL_S = 2.0
LOOK_S = 1.0  # between two looks of the broker at its clocks
HOUR_S = 3600
LATE_MAX_S = 120.0  # on a busy machine; an hour or a day is what would be wrong
SINCE_1970_S = int(time.time())
OFFSETS_S = {
    "1900": -SINCE_1970_S - 70 * 365 * DAY_S, "1970": -SINCE_1970_S + 60,
    "2200": 174 * 365 * DAY_S, "10100": 8100 * 365 * DAY_S,
}


def ask(url, context=None):
    login = base64.b64encode(b"guest:guest").decode()
    request = urllib.request.Request(url, headers={"authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return answer.headers["date"], answer.read()


def dead_letter_after_a_ttl(channel):
    channel.queue_declare("dead")
    arguments = {"x-message-ttl": 50, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("short", arguments=arguments)
    channel.basic_publish("", "short", "m")
    deadline = time.monotonic() + LATE_MAX_S
    while time.monotonic() < deadline:
        _, properties, body = channel.basic_get("dead", auto_ack=True)
        if body is not None:
            return properties.headers["x-death"][0]["time"]
        time.sleep(0.05)
    raise AssertionError("no dead letter")


@pytest.mark.parametrize("year", OFFSETS_S)
def test_any_clock_serves_everybody(broker, start_at, tmp_path, year):
    """The API, metrics, TLS with certificates of clients, queues with TTL, and a restart."""
    certificate = Certificate(tmp_path)
    broker.config.write_text(f"""
        management.ssl.ip = 127.0.0.1
        management.ssl.port = 0
        ssl_options.certfile = {certificate.file}
        ssl_options.keyfile = {certificate.key_file}
        management.ssl.cacertfile = {certificate.file}
        management.ssl.verify = verify_peer
        management.tcp.ip = 127.0.0.1
    """)
    for _ in range(2):
        start_at(OFFSETS_S[year])
        for target in ("/api/overview", "/api/nodes", "/metrics", "/api/definitions", "/"):
            date, body = ask(f"http://{broker.http_address}{target}")
            assert date.endswith(" GMT") and len(date) == 29 and body
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        https = broker.said().split("HTTPS on ")[1].split(",")[0].split()[0]
        # A certificate that is not valid now is refused, as is any other that is none of this authority.
        context.load_cert_chain(certificate.file, certificate.key_file)
        try:
            ask(f"https://{https}/api/overview", context)
        except OSError:
            pass
        connection = broker.connect()
        channel = connection.channel()
        channel.queue_declare("kept", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "kept", "m", pika.BasicProperties(delivery_mode=2))
        if year != "10100":  # the client knows no such year
            died = dead_letter_after_a_ttl(channel)
            assert year != "2200" or died.year == 2200
        connection.close()
        assert json.loads(ask(f"http://{broker.http_address}/api/whoami")[1])["name"] == "guest"
        assert broker.stop() == 0
    assert "panicked" not in broker.log.read_text()


@pytest.mark.parametrize("step_s", [-DAY_S, -3600], ids=["a day", "an hour"])
def test_a_clock_that_was_set_back_keeps_nothing_beyond_its_ttl(broker, start_at, step_s):
    """By the TTL of the queue and of the message."""
    start_at(0)
    connection = broker.connect()
    channel = connection.channel()
    channel.queue_declare("dead", durable=True)
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("queue", durable=True, arguments=dead | {"x-message-ttl": int(TTL_S * 1000)})
    channel.queue_declare("message", durable=True, arguments=dead)
    channel.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=2)
    channel.basic_publish("", "queue", "by the queue", persistent)
    expiring = pika.BasicProperties(delivery_mode=2, expiration=str(int(TTL_S * 1000)))
    channel.basic_publish("", "message", "by the message", expiring)
    connection.close()
    assert broker.stop() == 0
    start_at(step_s)
    began = time.monotonic()
    connection = broker.connect()
    channel = connection.channel()
    bodies = set()
    while len(bodies) < 2:
        assert time.monotonic() - began < TTL_S + LATE_MAX_S, bodies
        _, _, body = channel.basic_get("dead", auto_ack=True)
        bodies |= {body} - {None}
        time.sleep(0.05)
    connection.close()
    assert broker.stop() == 0


def test_a_clock_that_is_set_is_a_finding(broker, clock_library, tmp_path):
    step = tmp_path / "step"
    broker.start({"LD_PRELOAD": str(clock_library), "CLOCK_STEP_FILE": str(step)})

    def said(kind):
        findings = json.loads(ask(f"http://{broker.http_address}/api/health/findings")[1])["findings"]
        return [one["text"] for one in findings if one["kind"] == kind]

    def steps():
        metrics = ask(f"http://{broker.http_address}/metrics")[1].decode()
        return int(metrics.split("\nrabbitmq_clock_steps_total ")[1].split()[0])

    # The broker compares the clocks at intervals: a step counts from the second look on.
    assert broker.wait_until(lambda: "started" in broker.said(), LATE_MAX_S)
    assert (said("clock_step"), steps()) == ([], 0)
    watch = Stopwatch(broker.process.pid)
    while watch.elapsed_s() < 2 * LOOK_S:
        time.sleep(0.1)
    step.touch()
    assert broker.wait_until(lambda: said("clock_step"), LATE_MAX_S)
    [text] = said("clock_step")
    assert text.startswith("The clock of the system was set forward by 1 h, ")
    step.unlink()
    assert broker.wait_until(lambda: "set back by 1 h" in said("clock_step")[0], LATE_MAX_S)
    assert steps() == 2
    assert broker.stop() == 0


@pytest.mark.parametrize("step", ["forward", "back"])
def test_delays_do_not_follow_a_clock_that_is_set(broker, clock_library, tmp_path, step):
    """By an hour, while messages wait for their delivery times and for their next delivery: none is early, none lost."""
    file = tmp_path / "step"
    if step == "back":
        file.touch()
    broker.start({"LD_PRELOAD": str(clock_library), "CLOCK_STEP_FILE": str(file)})
    connection = broker.connect()
    channel = connection.channel()
    channel.exchange_declare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    channel.queue_declare("held", durable=True)
    channel.queue_bind("held", "later")
    for kind in ("classic", "quorum"):
        retries = {"x-delayed-retry-type": "all", "x-delayed-retry-min": 3000, "x-delayed-retry-max": 3000}
        channel.queue_declare(f"retried.{kind}", durable=True, arguments={"x-queue-type": kind, **retries})
        channel.queue_declare(f"scheduled.{kind}", durable=True, arguments={"x-queue-type": kind})
    channel.confirm_delivery()
    not_before, came = {}, []

    def publish(exchange, key, body, wait_s, headers, now_s=None):
        not_before[body] = (now_s or time.monotonic()) + wait_s
        properties = pika.BasicProperties(delivery_mode=2, headers=headers)
        channel.basic_publish(exchange, key, body, properties)

    offset_s = HOUR_S if step == "back" else 0
    for wait_s in (2, 3, 4):
        publish("later", "", f"held {wait_s}", wait_s, {"x-delay": wait_s * 1000})
        for kind in ("classic", "quorum"):
            queue = f"scheduled.{kind}"
            publish("", queue, f"{queue} by delay {wait_s}", wait_s, {"x-opt-delivery-delay": wait_s * 1000})
            now_s = time.monotonic()
            at_ms = int((time.time() + offset_s + wait_s) * 1000)
            headers = {"x-opt-delivery-time": at_ms}
            publish("", queue, f"{queue} by time {wait_s}", wait_s - 0.002, headers, now_s)
    for kind in ("classic", "quorum"):
        publish("", f"retried.{kind}", f"retried.{kind}", 0, {})
        method, _, body = channel.basic_get(f"retried.{kind}")
        not_before[body.decode()] = time.monotonic() + 3
        channel.basic_reject(method.delivery_tag)

    def delivered(_channel, _method, _properties, body):
        came.append((body.decode(), time.monotonic()))

    for queue in ("held", "retried.classic", "retried.quorum", "scheduled.classic", "scheduled.quorum"):
        channel.basic_consume(queue, delivered, auto_ack=True)
    if step == "forward":
        file.touch()
    else:
        file.unlink()
    deadline = time.monotonic() + 4 + LATE_MAX_S
    while len(came) < len(not_before):
        assert time.monotonic() < deadline, not_before.keys() - dict(came)
        connection.process_data_events(0.05)
    early = [body for body, at in came if at < not_before[body]]
    assert not early
    assert sorted(body for body, _ in came) == sorted(not_before)
    connection.close()
    assert broker.stop() == 0
