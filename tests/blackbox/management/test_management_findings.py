"""Findings: one answer to "is anything wrong?" over HTTP, as a health check and as a command.

RabbitMQ has no such endpoints and commands: only Leveret is tested.
"""

import json
import re

import pytest

from brokers import quoted
from client import Client
from test_alarms import DISK, EVERYTHING, put
from test_ctl import tools
from test_management_rates import FAST

USERS = [
    {"name": "looks", "password": "looks", "tags": "management"},
    {"name": "watches", "password": "watches", "tags": "monitoring"},
]


@pytest.fixture(scope="module")
def broker(under):
    if under.name == "rabbitmq":
        pytest.skip("RabbitMQ has no such paths")
    # Without syncs no slow disk of the test machine is a finding.
    broker = under.start(FAST + "\ndurability = os")
    for user in USERS:
        broker.api.do("PUT", f"/api/users/{user['name']}", user)
    yield broker
    broker.stop()


@pytest.fixture
def ctl(broker, pytestconfig, tmp_path):
    return tools(broker, pytestconfig, tmp_path)


@pytest.fixture
def ch(broker, prefix):
    client = Client(broker, prefix)
    yield client.channel()
    client.clean_up()


@pytest.fixture
def vhost(broker, prefix):
    """A vhost of this test."""
    name = f"{prefix}vhost"
    broker.api.do("PUT", f"/api/vhosts/{quoted(name)}")
    yield name
    broker.api.do("DELETE", f"/api/vhosts/{quoted(name)}")


def findings(broker, path="", **login):
    answer = broker.api.ask(f"/api/health/findings{path}", **login)
    assert answer.status == 200, answer.text
    return answer.json


def found(broker, kind, **login):
    """The findings of a kind."""
    return [one for one in findings(broker, **login)["findings"] if one["kind"] == kind]


def named(finding):
    return {one["name"] for one in finding["resources"]}


def loses(ch):
    """Two queues without a place for their dead letters, and an action that makes both lose one."""
    queues = [ch.queue(name=name, dead_letter_exchange="nobody-declared-it") for name in ("emails", "payments")]

    def lose():
        for queue in queues:
            ch.kill(queue)

    return queues, lose


def until(ch, work, look):
    """What `look()` finds, while `work()` is repeated."""
    def probe():
        work()
        return look()

    return ch.poll(probe, what="a finding")


@pytest.mark.tools
def test_losing_queues_are_one_finding_with_a_rate(broker, ch, ctl):
    queues, lose = loses(ch)
    # Before the first death there is only a threat.
    [threat] = found(broker, "dead_letters_without_route")
    assert (threat["severity"], threat["count"], named(threat)) == ("warning", 2, set(queues))

    def both():
        return [one for one in found(broker, "dead_letters_lost") if one["count"] == 2]

    [lost] = until(ch, lose, both)
    assert (lost["severity"], named(lost)) == ("error", set(queues))
    assert lost["rate"] > 0 and lost["text"].startswith("2 queues lose dead letters (")
    assert lost["page"].startswith("#/dead-letters") and lost["command"] == "leveretctl dlq check"
    assert {one["vhost"] for one in lost["resources"]} == {"/"}

    def doctor():
        ran = ctl.run("doctor", "-q")
        return ran if ran.code == 2 and "2 queues lose dead letters" in ran.out else None

    ran = until(ch, lose, doctor)
    assert all(f"- {queue} in vhost /: " in ran.out for queue in queues), ran.out
    page = f"{broker.api.url}/docs/guides/find-lost-messages.html"
    assert f"See: leveretctl dlq check, {page}\n" in ran.out
    assert broker.api.ask(page.removeprefix(broker.api.url)).status == 200
    assert f"See: {page}\n" in ctl.run("dlq", "check").out

    def check():
        ran = ctl.run("dlq", "check", "--formatter", "json")
        kinds = [one["kind"] for one in json.loads(ran.out)["findings"]]
        return (ran.code, kinds) if "dead_letters_lost" in kinds else None

    code, kinds = until(ch, lose, check)
    assert code == 2 and kinds[:2] == ["dead_letters_lost", "exchange_missing"]


@pytest.mark.tools
def test_map_warnings_are_grouped(broker, ch, ctl):
    lonely = [ch.queue(name=f"dead{n}") for n in range(7)]
    for n, queue in enumerate(lonely):
        ch.queue(name=f"source{n}", dead_letter_exchange="", dead_letter_routing_key=queue)
    map = broker.api.ask("/api/dead-letter-map").json
    [group] = [one for one in map["warning_groups"] if one["kind"] == "no_consumer"]
    assert (group["severity"], group["count"], group["total_warnings"]) == ("info", 7, 7)
    assert group["text"] == "7 queues receive dead letters and have no consumer."
    assert [one["name"] for one in group["queues"]] == sorted(lonely)[:5]
    ran = ctl.run("dlq", "check", "-q")
    assert ran.code == 0
    assert "INFO     7 queues receive dead letters and have no consumer." in ran.out
    assert "and 2 more" in ran.out and ran.out.rstrip().endswith("All dead letters have a place to go.")


@pytest.mark.tools
def test_doctor_has_the_warnings_of_the_dead_letter_check(broker, ch, ctl):
    dead = ch.queue(name="dead.unread")
    source = ch.queue(name="source.unread", dead_letter_exchange="", dead_letter_routing_key=dead)
    ch.publish(source, "m", expiration="1")
    ch.reaches(dead, 1)
    waiting = "1 message waits in 1 queue that receives dead letters and has no consumer."
    ran = ctl.run("doctor", "-q")
    assert (ran.code, f"WARNING  {waiting}\n         - {dead} in vhost /: 1 message\n" in ran.out) == (1, True), ran.out
    assert "has no consumer" in ctl.run("dlq", "check", "-q").out
    [found_one] = found(broker, "dead_letters_without_consumer")
    assert named(found_one) == {dead}


@pytest.mark.tools
def test_documents_begin_at_one_short_address(broker):
    assert b"Documentation" in broker.api.ask("/docs").text


@pytest.mark.tools
def test_dead_letter_check_of_one_vhost(ctl, vhost, ch):
    ch.queue(dead_letter_exchange="nobody-declared-it")
    ran = ctl.run("dlq", "check", "-q", "-p", vhost)
    assert (ran.code, ran.out) == (0, "All dead letters have a place to go.\n")
    assert ctl.run("dlq", "check", "-q", "-p", "/").code == 2
    assert ctl.run("dlq", "check", "-q", "-p", vhost + "x").code == 65
    assert ctl.run("doctor", "-q", "-p", vhost).out == "Nothing is wrong.\n"


def test_full_and_growing_queues_and_stuck_consumers_are_found(broker, ch):
    refuses = ch.queue(name="refuses", max_length=1, overflow="reject-publish")
    grows, stuck = ch.queue(name="grows"), ch.queue(name="stuck")
    ch.consume(stuck, prefetch=1)
    ch.publish(stuck, "a", "b")

    def work():
        ch.publish(refuses, "x")
        ch.publish(grows, "x")

    expected = {"queue_refuses": {refuses}, "queue_grows": {grows}, "consumers_at_limit": {stuck}}

    def look():
        # In the first sample after their first message all three grow.
        all = {kind: found(broker, kind) for kind in expected}
        return all if {kind: named(*ones) for kind, ones in all.items() if len(ones) == 1} == expected else None

    all = until(ch, work, look)
    assert {one["severity"] for ones in all.values() for one in ones} == {"warning"}
    assert all["queue_grows"][0]["rate"] > 0 and all["queue_refuses"][0]["rate"] > 0


def application(ch, name):
    """A channel of an application that names itself."""
    return ch.connection.client.channel(tune={"client_properties": {"connection_name": name}})


def test_publishes_that_reach_no_queue_are_found_with_exchange_key_and_client(broker, ch):
    shop, exchange = application(ch, "shop"), ch.exchange("topic", name="orders")
    [finding] = until(ch, lambda: shop.publish("order.new", "x", exchange=exchange), lambda: found(broker, "publishes_unroutable"))
    assert finding["rate"] > 0 and finding["text"].startswith("Publishes to 1 exchange reach no queue")
    [resource] = finding["resources"]
    assert (resource["type"], resource["vhost"], resource["name"]) == ("exchange", "/", exchange)
    assert resource["detail"].endswith("/s, the last one with key 'order.new' from 'shop'")
    ch.poll(lambda: not found(broker, "publishes_unroutable"), what="no finding after the last publish")


def test_unroutable_publishes_of_others_have_neither_key_nor_client(broker, ch):
    broker.api.do("PUT", "/api/users/guard", {"password": "guard", "tags": "management"})
    broker.api.do("PUT", "/api/permissions/%2F/guard", {"configure": "", "write": "", "read": ""})
    [finding] = until(ch, lambda: ch.publish("secret", "x"), lambda: found(broker, "publishes_unroutable", user="guard"))
    assert [(one["name"], "secret" in one["detail"]) for one in finding["resources"]] == [("", False)]
    assert "secret" in found(broker, "publishes_unroutable")[0]["resources"][0]["detail"]
    broker.api.do("DELETE", "/api/users/guard")


def test_slow_consumer_is_found_with_its_client(broker, ch):
    queue = ch.queue(name="thumbs")
    slow, quick = application(ch, "thumbs-slow"), application(ch, "thumbs-quick")
    slow.consume(queue)
    kept = quick.consume(queue, prefetch=2)

    def work():
        ch.publish(queue, *["x"] * 20)
        quick.ack(kept.next())

    [finding] = until(ch, work, lambda: found(broker, "consumers_slow"))
    assert (finding["severity"], named(finding)) == ("warning", {queue})
    [resource] = finding["resources"]
    assert " unacknowledged, " in resource["detail"] and resource["detail"].endswith(" of them held by 'thumbs-slow'")


@pytest.mark.tools
def test_deaths_without_a_dead_letter_exchange_are_counted_with_the_setting(broker, ch, ctl, vhost):
    """A text message that waits for longer than its queue allows is gone: nobody is told unless somebody asks."""
    texts, plain = ch.queue(name="texts"), ch.queue(name="plain")
    broker.api.do("PUT", f"/api/policies/%2F/{quoted(texts)}", {"pattern": f"^{texts}$", "definition": {"message-ttl": 1, "max-length": 5}})
    ch.publish(plain, "m", expiration="1")
    ch.publish(texts, *["m"] * 9)
    ch.reaches(texts, 0)
    ch.reaches(plain, 0)
    ran = ctl.run("doctor", "-q")
    assert "2 queues without a dead-letter exchange have dropped 10 messages." in ran.out
    [line] = [line for line in ran.out.splitlines() if texts in line]
    expired, beyond = re.search(r"(\d+) expired \(message-ttl 1 of the policy [^)]*\)(?:, (\d+) maxlen \(max-length 5 of the policy [^)]*\))?$", line).groups()
    assert int(expired) + int(beyond or 0) == 9
    assert f"- {plain} in vhost /: 1 expired (by the expiration that the publisher set)\n" in ran.out
    told = ctl.run("dlq", "history", "-q", "--queue", texts, "--filter-reason", "expired").err
    history = broker.api.ask(f"/api/dead-letter-history/%2F?queue={quoted(texts)}").json
    assert (history["deaths"], history["dropped_without_dlx"]) == ([], 9)
    assert ctl.run("doctor", "-q", "-p", vhost).out == "Nothing is wrong.\n"
    shown = ctl.run("dlq", "history", "--queue", texts)
    assert "9 messages died without a dead-letter exchange since the start" in shown.out + shown.err, (shown, told)
    broker.api.do("DELETE", f"/api/policies/%2F/{quoted(texts)}")


def test_limit_of_a_vhost_is_found(broker, vhost):
    broker.api.do("PUT", f"/api/vhost-limits/{quoted(vhost)}/max-queues", {"value": 0})
    [finding] = found(broker, "vhost_limit_reached")
    assert finding["resources"] == [
        {"type": "vhost", "vhost": vhost, "name": vhost, "rate": None, "detail": "max-queues 0"}]


@pytest.mark.tools
def test_refusals_are_found(under, prefix, pytestconfig, tmp_path):
    """On a broker of its own: refusals are remembered for minutes."""
    if under.name == "rabbitmq":
        pytest.skip("RabbitMQ has no such paths")
    broker = under.start(FAST)
    try:
        refused_logins(broker, tools(broker, pytestconfig, tmp_path))
        refused_connections(broker, Client(broker, prefix))
    finally:
        broker.stop()


def refused_logins(broker, ctl):
    assert not found(broker, "logins_refused")
    for number in range(10):
        assert broker.api.ask("/api/whoami", user="looks", password=f"guess {number % 2}").status == 401
    [finding] = found(broker, "logins_refused")
    assert (finding["severity"], finding["count"], finding["text"]) == (
        "warning", 1, "10 logins were refused within the last minutes, from 1 source.")
    [source] = finding["resources"]
    assert (source["type"], source["name"], source["detail"]) == ("address", "127.0.0.1", "10 logins, user looks")
    ran = ctl.run("doctor", "-q")
    assert ran.code == 1 and "- 127.0.0.1: 10 logins, user looks" in ran.out, ran.out


def refused_connections(broker, client):
    vhost = "full"
    broker.api.do("PUT", f"/api/vhosts/{vhost}")
    broker.api.do("PUT", f"/api/vhost-limits/{vhost}/max-connections", {"value": 0})
    for _ in range(2):
        with pytest.raises(Exception, match="connection limit"):
            client.connect(vhost=vhost)
    [finding] = found(broker, "connections_refused")
    assert (finding["severity"], finding["text"]) == (
        "warning", "2 connections were refused within the last minutes: a limit is reached.")
    assert finding["resources"] == [
        {"type": "vhost", "vhost": vhost, "name": vhost, "rate": None, "detail": "limit of the vhost, 2 connections"}]


def test_disk_that_is_nearly_full_is_found(broker):
    """The limit moves close to the free space, as the free space would to the limit."""
    free = broker.api.ask("/api/nodes").json[0]["disk_free"]
    assert put(broker, DISK, {"absolute": free * 95 // 100}).status == 204
    try:
        [finding] = found(broker, "disk_short")
        assert finding["text"].startswith("Disk space is short: ")
    finally:
        assert put(broker, DISK, {"absolute": 0}).status == 204
    assert not found(broker, "disk_short")


def test_users_see_findings_of_their_vhosts_only(broker, ch):
    ch.queue(dead_letter_exchange="nobody-declared-it")
    assert findings(broker)["includes_node"] is True
    assert found(broker, "dead_letters_without_route")
    for user, includes_node in (("looks", False), ("watches", True)):
        told = findings(broker, user=user)
        assert told["includes_node"] is includes_node
        assert not [one for one in told["findings"] if one["kind"].startswith("dead_letters")]
        assert broker.api.ask("/api/health/findings/%2F", user=user).status == 404
    assert [one["kind"] for one in findings(broker, "/%2F")["findings"]] == ["dead_letters_without_route"]
    assert broker.api.ask("/api/health/findings/nowhere").status == 404


def test_check_fails_from_a_severity_on(broker, ch):
    check = "/api/health/checks/findings"
    ch.queue(dead_letter_exchange="nobody-declared-it")
    failed = broker.api.ask(check)
    assert (failed.status, failed.json["status"]) == (503, "failed")
    assert "dead letters would be lost" in failed.json["reason"]
    assert broker.api.ask(f"{check}/warning").status == 503
    assert broker.api.ask(f"{check}/error").json == {"status": "ok"}
    assert broker.api.ask(f"{check}/terrible").status == 400


@pytest.mark.tools
def test_alarm_has_its_numbers(broker, ch, ctl):
    queue = ch.queue()
    assert broker.api.ask("/api/health/alarms").json == {"alarms": []}
    assert put(broker, DISK, {"absolute": EVERYTHING}).status == 204
    try:
        [alarm] = broker.api.ask("/api/health/alarms").json["alarms"]
        assert (alarm["resource"], alarm["limit_bytes"]) == ("disk", EVERYTHING)
        assert alarm["text"].startswith("Publishers are blocked: disk alarm, 4 EiB limit, ")
        [alarm] = broker.api.ask("/api/health/alarms", user="looks").json["alarms"]
        assert alarm == {"resource": "disk", "text": "Publishers are blocked: disk alarm."}
        ch.publish(queue, "held back", wait=False)
        [blocked] = ch.poll(lambda: found(broker, "connections_blocked"), what="a blocked connection")
        assert (blocked["severity"], blocked["count"]) == ("error", 1)
        assert found(broker, "connections_blocked", user="watches")[0:] == []
        ran = ctl.run("doctor", "-q")
        assert ran.code == 2 and "ERROR    Publishers are blocked: disk alarm" in ran.out
    finally:
        assert put(broker, DISK, {"absolute": 0}).status == 204
    assert not found(broker, "disk_alarm")


@pytest.mark.tools
def test_doctor_finds_nothing_wrong(broker, ctl):
    def healthy():
        ran = ctl.run("doctor")
        return ran if ran.code == 0 else None

    ran = healthy()
    assert ran and ran.out.splitlines()[-1] == "Nothing is wrong.", ctl.run("doctor").out
    assert ran.out.startswith("Diagnosing node ")
    told = json.loads(ctl.run("doctor", "--formatter", "json").out)
    assert (told["status"], told["errors"], told["warnings"]) == ("ok", 0, 0)
