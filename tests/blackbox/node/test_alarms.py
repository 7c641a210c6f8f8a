"""Alarms: publishers are blocked and get the reason, every monitor can see it; their limits change while the broker runs.

RabbitMQ's own limits are not the suite's to change, and it has no such endpoints: only Leveret is tested.
"""

import pytest
from brokers import quoted
from client import Client

MEMORY, DISK = "vm-memory-high-watermark", "disk-free-limit"
EVERYTHING = 2**62

#: Per resource: the endpoint, a body that sets the alarm, one that clears it, and what shows it.
RESOURCES = {
    "memory": (MEMORY, {"absolute": 1}, {"relative": 1}, "mem_alarm", "rabbitmq_alarms_memory_used_watermark"),
    "disk": (DISK, {"absolute": EVERYTHING}, {"absolute": 0}, "disk_free_alarm",
             "rabbitmq_alarms_free_disk_space_watermark"),
}


@pytest.fixture
def broker(under):
    if under.name == "rabbitmq":
        pytest.skip("the limits of a running RabbitMQ are not the suite's to change")
    broker = under.start()
    yield broker
    broker.stop()


@pytest.fixture
def own(broker, prefix):
    client = Client(broker, prefix)
    yield client
    client.clean_up()


def node_of(broker):
    return broker.api.do("GET", "/api/nodes")[0]


def put(broker, limit, body, **login):
    return broker.api.ask(f"/api/nodes/{quoted(node_of(broker)['name'])}/{limit}", method="PUT", body=body, **login)


class Told:
    """The `blocked` and `unblocked` of a connection."""

    def __init__(self, connection):
        self.said = []
        connection.pika.add_on_connection_blocked_callback(lambda _, frame: self.said.append(frame.method.reason))
        connection.pika.add_on_connection_unblocked_callback(lambda _, frame: self.said.append(None))


@pytest.mark.parametrize("resource", RESOURCES)
def test_an_alarm_blocks_publishers_and_shows_everywhere(broker, own, resource):
    limit, on, off, field, metric = RESOURCES[resource]
    publisher, consumer = own.connect(), own.connect()
    told, untroubled = Told(publisher), Told(consumer)
    ch = publisher.channel()
    queue = ch.queue()
    tag = consumer.channel().consume(queue)

    answer = put(broker, limit, on)
    assert (answer.status, answer.text) == (204, b"")
    assert node_of(broker)[field] is True
    for check in ("alarms", "local-alarms"):
        failed = broker.api.ask(f"/api/health/checks/{check}")
        assert (failed.status, failed.json["status"]) == (503, "failed")
        assert failed.json["alarms"] == [{"node": node_of(broker)["name"], "resource": resource}]
    assert f"{metric} 1" in broker.api.ask("/metrics", user=None).text.decode().splitlines()

    ch.publish(queue, "before")
    assert own.run_until(lambda: told.said)
    assert told.said == [f"low on {resource}"]
    ch.publish(queue, "held back")
    consumer.client.run_until(lambda: "held back" in tag.bodies, 0.3)
    assert "held back" not in tag.bodies

    assert put(broker, limit, off).status == 204
    assert node_of(broker)[field] is False
    assert broker.api.ask("/api/health/checks/alarms").json == {"status": "ok"}
    assert f"{metric} 0" in broker.api.ask("/metrics", user=None).text.decode().splitlines()
    assert tag.next_bodies(2) == ["before", "held back"]
    assert told.said == [f"low on {resource}", None]
    assert untroubled.said == [], "who does not publish is not blocked"
    on_line = [line for line in broker.log if "alarm on: publishers are blocked" in line]
    assert len(on_line) == 1 and f"low on {resource}" in on_line[0]
    # The line comes through a pipe of its own.
    assert own.run_until(lambda: any("alarm off" in line for line in broker.log))
    assert sum("alarm off" in line for line in broker.log) == 1


def test_limits_of_both_kinds_are_shown_in_bytes(broker):
    assert put(broker, MEMORY, {"absolute": 2**40}).status == 204
    assert put(broker, DISK, {"absolute": 12345}).status == 204
    shown = node_of(broker)
    assert (shown["mem_limit"], shown["disk_free_limit"]) == (2**40, 12345)
    assert put(broker, MEMORY, {"relative": 1}).status == 204
    total = node_of(broker)["mem_limit"]
    assert put(broker, MEMORY, {"relative": 0.5}).status == 204
    assert put(broker, DISK, {"mem_relative": 0.25}).status == 204
    shown = node_of(broker)
    assert abs(shown["mem_limit"] - total / 2) <= 1
    assert abs(shown["disk_free_limit"] - total / 4) <= 1


@pytest.mark.parametrize("limit, body", [
    (MEMORY, {"relative": 1.5}),
    (MEMORY, {"relative": "0.4"}),
    (MEMORY, {"absolute": -1}),
    (MEMORY, {"mem_relative": 1}),
    (MEMORY, {"relative": 0.4, "absolute": 1}),
    (MEMORY, {}),
    (DISK, {"absolute": "1GB"}),
    (DISK, {"mem_relative": -1}),
    (DISK, {"relative": 1}),
    (DISK, []),
])
def test_a_bad_limit_changes_nothing(broker, limit, body):
    before = node_of(broker)
    answer = put(broker, limit, body)
    assert (answer.status, answer.json["error"]) == (400, "bad_request")
    after = node_of(broker)
    assert [after[name] for name in ("mem_limit", "disk_free_limit")] == [
        before[name] for name in ("mem_limit", "disk_free_limit")
    ]


def test_limits_are_set_by_administrators_on_this_node_only(under, prefix):
    if under.name == "rabbitmq":
        pytest.skip("the limits of a running RabbitMQ are not the suite's to change")
    broker = under.start("default_users.mon.password = mon\ndefault_users.mon.tags = monitoring")
    try:
        assert put(broker, MEMORY, {"relative": 1}, user="mon").status == 401
        elsewhere = broker.api.ask(f"/api/nodes/other/{MEMORY}", method="PUT", body={"relative": 1})
        assert elsewhere.status == 404
        assert broker.api.ask(f"/api/nodes/{quoted(node_of(broker)['name'])}/{MEMORY}").status == 405
    finally:
        broker.stop()


def test_limits_are_those_of_the_configuration_again_after_a_restart(broker):
    before = node_of(broker)["disk_free_limit"]
    assert put(broker, DISK, {"absolute": 1}).status == 204
    broker.kill_and_start_again()
    assert node_of(broker)["disk_free_limit"] == before
