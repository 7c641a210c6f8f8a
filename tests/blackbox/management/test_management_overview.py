"""The management API: the overview, the node, the vhosts and the health checks."""


import pytest

from brokers import quoted
from definitions import User
from patience import becomes

UNUSED_PORT = 1


@pytest.fixture
def http(under):
    """The HTTP API of the shared broker."""
    return under.shared().api


@pytest.fixture
def mine(defined, prefix):
    """A vhost with a user, tag management, who may enter this one only: `mine.get(path)` asks as him."""

    class Mine:
        def __init__(self):
            self.vhost, self.user = prefix + "v", prefix + "bob"
            defined(vhosts=[self.vhost], users=[User("bob", vhost=self.vhost, tags=("management",))])
            self.api = defined.client.broker.api

        def channel(self):
            return defined.client.channel(user=self.user, vhost=self.vhost).confirm_select()

        def get(self, path):
            return self.api.ask(path, user=self.user).json

    return Mine()


def chosen(object, *names):
    return {name: object.get(name) for name in names}


@pytest.mark.better
def test_a_vhost_is_alive(http, by_broker):
    for _ in range(2):
        answer = http.ask("/api/aliveness-test/%2F")
        assert (answer.status, answer.json) == (200, {"status": "ok"})
    assert http.ask("/api/aliveness-test/nope").status == 404
    assert http.ask("/api/queues/%2F/aliveness-test", method="DELETE").status == by_broker(rabbitmq=404, leveret=204)


def test_the_overview_says_what_runs_here(http, under):
    overview = http.ask("/api/overview").json
    assert overview["product_name"] == "RabbitMQ"
    assert overview["product_version"] == overview["rabbitmq_version"]
    assert ("leveret_version" in overview) == (under.name == "leveret")
    assert overview["rabbitmq_version"] == overview["management_version"]
    assert overview["rabbitmq_version"].startswith("4.3.")
    assert overview["cluster_name"] == http.ask("/api/cluster-name").json["name"]
    assert overview["node"] in [node["name"] for node in http.ask("/api/nodes").json]
    types = {type["name"]: type["enabled"] for type in overview["exchange_types"]}
    assert types.items() >= dict.fromkeys(("direct", "fanout", "topic", "headers"), True).items()


@pytest.mark.better
@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_the_overview_says_when_a_message_is_safe(defined, by_broker, durability):
    """So that benchmarks cannot measure the other mode by mistake."""
    defined(settings=f"durability = {durability}")
    api = defined.client.broker.api
    expected = by_broker(rabbitmq=None, leveret=durability)
    assert api.ask("/api/overview").json.get("durability") == expected
    assert api.ask("/api/nodes").json[0].get("durability") == expected


@pytest.mark.alone
def test_listeners_have_their_ports(http, under):
    overview = http.ask("/api/overview").json
    listeners = {one["protocol"]: one for one in overview["listeners"]}
    assert listeners["amqp"]["port"] == under.shared().amqp[1]
    assert listeners["amqp"]["ip_address"] == "127.0.0.1"
    assert listeners["amqp"]["tls"] is False
    assert listeners["amqp"]["node"] == overview["node"]
    port = http.url.rsplit(":", 1)[1]
    assert listeners["http"]["port"] == int(port)
    assert port in [context["port"] for context in overview["contexts"]]


def test_totals_are_those_of_the_vhosts_that_one_may_enter(mine, defined):
    ch = mine.channel()
    q = ch.queue(durable=True)
    for body in "abc":
        ch.publish(q, body)
    ch.consume(q, prefetch=1).next()
    # Neither connections of other users nor other vhosts count.
    defined.client.channel()
    defined.client.channel(vhost=mine.vhost)
    objects = ("queues", "connections", "channels", "exchanges")
    expected = {"queues": 1, "connections": 1, "channels": 1, "exchanges": len(mine.get("/api/exchanges"))}
    becomes(lambda: chosen(mine.get("/api/overview")["object_totals"], *objects), expected)
    messages = {"messages": 3, "messages_ready": 2, "messages_unacknowledged": 1}
    becomes(lambda: chosen(mine.get("/api/overview")["queue_totals"], *messages), messages)
    counts = {"publish": 3, "confirm": 3, "return_unroutable": 0, "drop_unroutable": 0}
    becomes(lambda: chosen(mine.get("/api/overview")["message_stats"], *counts), counts)
    [vhost] = mine.get("/api/vhosts")
    assert vhost["name"] == mine.vhost
    becomes(lambda: chosen(mine.get("/api/vhosts")[0], *messages), messages)
    by_name = mine.api.ask("/api/vhosts/" + quoted(mine.vhost)).json
    assert chosen(by_name, *messages) == messages
    assert chosen(by_name["message_stats"], *counts) == counts


def test_listeners_are_shown_to_monitors_only(mine):
    assert not {"node", "listeners", "contexts"} & mine.get("/api/overview").keys()


def test_messages_that_no_queue_takes_are_counted(mine):
    ch = mine.channel()
    ch.publish("nowhere", "lost")
    ch.publish("nowhere", "back", mandatory=True)
    counts = {"drop_unroutable": 1, "return_unroutable": 1}
    becomes(lambda: chosen(mine.get("/api/overview")["message_stats"], *counts), counts)


def test_a_vhost_has_what_every_vhost_has(mine, http):
    expected = {
        "name": mine.vhost, "description": "", "tags": [], "default_queue_type": "classic", "tracing": False,
        "protected_from_deletion": False,
    }
    vhost = mine.api.ask("/api/vhosts/" + quoted(mine.vhost)).json
    assert chosen(vhost, *expected) == expected
    assert set(vhost["cluster_state"].values()) == {"running"}


def test_administrators_see_every_vhost(mine):
    names = [vhost["name"] for vhost in mine.api.ask("/api/vhosts").json]
    assert {"/", mine.vhost} <= set(names) and names == sorted(names)


def test_the_node_tells_of_its_memory_and_its_disk(http):
    own = http.ask("/api/overview").json["node"]
    [node] = [one for one in http.ask("/api/nodes").json if one["name"] == own]
    types = {
        "name": str, "type": str, "running": bool, "being_drained": bool, "os_pid": str, "uptime": int, "processors": int,
        "mem_used": int, "mem_limit": int, "mem_alarm": bool, "disk_free": int, "disk_free_limit": int,
        "disk_free_alarm": bool, "fd_used": int, "fd_total": int, "rates_mode": str, "partitions": list,
        "enabled_plugins": list, "rabbitmq_version": str, "mem_calculation_strategy": str, "db_dir": str,
    }
    assert {name: type(node.get(name)) for name in types} == types
    assert node["running"] and node["type"] == "disc" and int(node["os_pid"]) > 1
    assert 0 < node["mem_used"] < node["mem_limit"] and 0 < node["fd_used"] < node["fd_total"]
    assert {"PLAIN", "AMQPLAIN"} <= {one["name"] for one in node["auth_mechanisms"] if one["enabled"]}
    alone = http.ask("/api/nodes/" + quoted(node["name"])).json
    assert alone.keys() == node.keys() and alone["os_pid"] == node["os_pid"]


@pytest.mark.better
def test_reads_writes_and_syncs_of_the_disk_are_counted(mine, by_broker):
    [before] = mine.api.ask("/api/nodes").json
    body = "x" * 10_000
    ch = mine.channel()
    ch.publish(ch.queue(durable=True), body, delivery_mode=2)
    [after] = mine.api.ask("/api/nodes").json
    grown = {name: after[name] - before[name] for name in ("io_write_count", "io_write_bytes", "io_sync_count")}
    # RabbitMQ counts them some time later.
    least = by_broker(rabbitmq=0, leveret=1)
    assert grown["io_write_count"] >= least and grown["io_write_bytes"] >= least * len(body)
    assert grown["io_sync_count"] >= least or after["durability"] == "os"
    assert after["io_read_count"] >= 0
    # Clients with types read whole numbers.
    assert [after[f"io_{what}_avg_time"] % 1 for what in ("read", "write", "sync")] == [0, 0, 0]
    if by_broker(rabbitmq=False, leveret=True):
        assert after["io_write_mean_us"] > 0


def test_health_checks_of_a_healthy_broker(http):
    for check in ("alarms", "local-alarms"):
        answer = http.ask("/api/health/checks/" + check)
        assert (answer.status, answer.json) == (200, {"status": "ok"}), check
    # For RabbitMQ a vhost that another test is making is down until it is made.
    becomes(lambda: http.ask("/api/health/checks/virtual-hosts").json, {"status": "ok"})


@pytest.mark.parametrize("check", [
    "below-node-connection-limit", "is-in-service", "ready-to-serve-clients", "metadata-store/initialized",
    "metadata-store/initialized/with-data", "certificate-expiration/1/months",
    "quorum-queues-without-elected-leaders/all-vhosts", "quorum-queues-without-elected-leaders/all-vhosts/pattern/.*",
    "quorum-queues-without-elected-leaders/vhost/%2F", "quorum-queues-without-elected-leaders/vhost/%2F/pattern/x",
])
def test_health_checks_that_hold_for_a_single_node(http, check):
    answer = http.ask("/api/health/checks/" + check)
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_old_names_are_answered(http):
    node = http.ask("/api/overview").json["node"]
    for path in ("/api/healthchecks/node", f"/api/healthchecks/node/{node}"):
        answer = http.ask(path)
        assert (answer.status, answer.json) == (200, {"status": "ok"})
    definitions = http.ask("/api/definitions").json
    assert http.ask("/api/all-configuration").json.keys() == definitions.keys()


@pytest.mark.alone
def test_no_majority_depends_on_a_single_node(http):
    answer = http.ask("/api/health/checks/node-is-quorum-critical")
    assert (answer.status, answer.json) == (200, {"status": "ok", "reason": "single node cluster"})


def test_a_span_until_certificates_expire_has_a_number_and_a_unit(http):
    unit = "Time unit not recognised. Supported units: days, weeks, months, years."
    for path, reason in {"1/nope": unit, "x/days": "Invalid expiration value."}.items():
        answer = http.ask("/api/health/checks/certificate-expiration/" + path)
        assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": reason})


def test_feature_flags_are_on(http):
    flags = {flag["name"]: flag for flag in http.ask("/api/feature-flags").json}
    types = {"name": str, "desc": str, "doc_url": str, "state": str, "stability": str, "provided_by": str}
    # NServiceBus wants stream_queue.
    for name in ("stream_queue", "quorum_queue", "drop_unroutable_metric", "rabbitmq_4.3.0"):
        assert flags[name]["state"] == "enabled"
        assert {field: type(flags[name][field]) for field in types} == types
    assert http.ask("/api/feature-flags/quorum_queue/enable", method="PUT", body={}).status == 204
    answer = http.ask("/api/feature-flags/nope/enable", method="PUT", body={})
    assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": "unsupported"})


def test_deprecated_features_in_use_are_listed(http, client):
    features = {feature["name"]: feature for feature in http.ask("/api/deprecated-features").json}
    assert features["transient_nonexcl_queues"]["state"] == "permitted"
    assert features["classic_queue_mirroring"]["deprecation_phase"] == "removed"
    client.channel().queue(durable=False)

    def used():
        return "transient_nonexcl_queues" in [feature["name"] for feature in http.ask("/api/deprecated-features/used").json]

    becomes(used, True)


def test_the_memory_of_the_node_is_divided(http):
    name = http.ask("/api/overview").json["node"]
    memory = http.ask(f"/api/nodes/{quoted(name)}/memory").json["memory"]
    assert memory["strategy"] == "rss" and memory["total"].keys() == {"erlang", "rss", "allocated"}
    parts = [bytes for part, bytes in memory.items() if part not in ("strategy", "total")]
    assert len(parts) == 26 and all(isinstance(bytes, int) for bytes in parts)
    assert http.ask(f"/api/nodes/{quoted(name)}?memory=true").json["memory"].keys() == memory.keys()
    assert http.ask("/api/nodes/nope@nowhere/memory").status == 404
    assert isinstance(http.ask("/api/extensions").json, list)


def test_a_port_is_listened_on_or_not(http, under):
    port = under.shared().amqp[1]
    answer = http.ask(f"/api/health/checks/port-listener/{port}")
    assert (answer.status, answer.json) == (200, {"status": "ok", "port": port})
    answer = http.ask(f"/api/health/checks/port-listener/{UNUSED_PORT}")
    assert answer.status == 503
    assert port in answer.json.pop("ports")
    assert answer.json["missing"] == UNUSED_PORT
    assert (answer.json["status"], answer.json["reason"]) == ("failed", "No active listener")
    for nonsense in ("abc", "1.5", ""):
        answer = http.ask("/api/health/checks/port-listener/" + (nonsense or "%20"))
        assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": "Invalid port"})


@pytest.mark.parametrize("protocol", [
    "amqp", "AMQP", "amqp091", "amqp0.9.1", "amqp0-9-1", "amqp0_9_1", "http", "http1.1", "management", "management_ui"])
def test_a_protocol_is_spoken(http, protocol):
    answer = http.ask("/api/health/checks/protocol-listener/" + protocol)
    assert (answer.status, answer.json["status"]) == (200, "ok")
    assert {"amqp", "http"} <= set(answer.json["protocols"])


def test_a_protocol_is_not_spoken(http):
    answer = http.ask("/api/health/checks/protocol-listener/nope")
    assert (answer.status, answer.json["status"]) == (503, "failed")
    assert (answer.json["missing"], answer.json["reason"]) == (["nope"], "No active listener")
    assert {"amqp", "http"} <= set(answer.json["protocols"])
