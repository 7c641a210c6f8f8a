"""leveretctl dlq: dead messages are listed, redriven with progress, and redrives ended."""

import json
import re
import threading

import pytest

from redrives import Redrives
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]


@pytest.fixture
def ctl(under, by_broker, pytestconfig, tmp_path):
    """leveretctl, and a broker that can redrive."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such thing")
    return tools(under.shared(), pytestconfig, tmp_path)


@pytest.fixture
def dlq(ch):
    """A queue in which messages of another are that died there."""
    dlq = ch.queue(name="dlq")
    work = ch.queue(name="work", dead_letter_exchange="", dead_letter_routing_key=dlq)
    for body, customer in [("a", "ann"), ("b", "bob"), ("c", "ann")]:
        ch.publish(work, body, headers={"customer": customer})
        ch.reject(ch.get_unacked(work))
    ch.sync()
    ch.work = work
    return dlq


def test_dead_messages_are_listed(ctl, ch, dlq):
    header, *rows = ctl.do("dlq", "show", "-q", dlq)
    assert header.split("\t") == ["id", "reason", "queue", "count", "time", "given_reason", "exchange", "routing_key",
                                  "redrives", "payload_bytes"]
    assert len(rows) == 3
    id, reason, queue, count, time, given, exchange, key, redrives, size = rows[0].split("\t")
    assert (reason, queue, count, given, exchange, key, redrives, size) == (
        "rejected", ch.work, "1", "", "", ch.work, "0", "1")
    assert re.fullmatch(r"\d+-1-0", id) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time)
    assert len(ctl.do("dlq", "show", "-q", dlq, "--limit", "2")) == 3
    assert len(json.loads(ctl.run("dlq", "show", dlq, "--formatter", "json").out)) == 3
    assert ctl.run("dlq", "show", dlq + "x").code == 65
    assert ch.count(dlq) == 3


def test_reasons_that_consumers_gave_are_a_column(ctl, ch, dlq):
    ch.publish(ch.work, "d")
    message = ch.get_unacked(ch.work)
    headers = {"x-delivery-tag": message.tag, "x-reason": "no stock of 7"}
    ch.publish("", "", exchange="amq.settle", headers=headers)
    ch.reject(message)
    ch.sync()
    rows = json.loads(ctl.run("dlq", "show", dlq, "--formatter", "json").out)
    assert [row["given_reason"] for row in rows] == ["", "", "", "no stock of 7"]


def test_dead_messages_are_listed_with_headers_and_bodies(ctl, ch, dlq):
    rows = json.loads(ctl.run("dlq", "show", dlq, "--headers", "--body", "--formatter", "json").out)
    assert [(row["payload"], row["payload_encoding"], json.loads(row["headers"])["customer"]) for row in rows] == [
        ("a", "string", "ann"), ("b", "string", "bob"), ("c", "string", "ann")]
    assert "payload" not in json.loads(ctl.run("dlq", "show", dlq, "--headers", "--formatter", "json").out)[0]
    [row] = ctl.do("dlq", "show", "-s", dlq, "--id", rows[1]["id"], "--body")
    assert row.startswith(rows[1]["id"] + "\t") and row.endswith("\tstring\tb")


def test_messages_are_redriven_by_id(ctl, ch, dlq):
    first, second, third = [row["id"] for row in json.loads(ctl.run("dlq", "show", dlq, "--formatter", "json").out)]
    ctl.do("dlq", "redrive", "-q", dlq, "--id", third, "--id", first)
    assert ch.drain(ch.work) == ["a", "c"]
    assert [row.split("\t")[0] for row in ctl.do("dlq", "show", "-s", dlq)] == [second]
    assert "is not the id of a message" in ctl.run("dlq", "redrive", dlq, "--id", "nonsense").err


def test_more_than_a_page(ctl, ch):
    q = ch.queue()
    ch.publish(q, *["m"] * 250)
    assert len(ctl.do("dlq", "show", "-q", q, "--limit", "240")) == 241
    assert len(ctl.do("dlq", "show", "-q", q, "--limit", "999")) == 251


def test_a_redrive_is_tried_and_done(ctl, ch, dlq):
    said = ctl.do("dlq", "redrive", "-q", dlq, "--header", "customer=ann", "--dry-run")
    assert said == ["2 of 3 messages match, 2 would move, 0 unroutable", f"2 to queue '{ch.work}'"]
    banner, said = ctl.do("dlq", "redrive", dlq, "--header", "customer=ann")
    assert banner == f"Redriving messages of queue '{dlq}' in vhost '/' ..."
    assert said == "2 of 3 messages moved, 1 skipped"
    assert ch.drain(ch.work) == ["a", "c"]
    told = json.loads(ctl.run("dlq", "redrive", dlq, "--formatter", "json").out)
    assert (told["state"], told["moved"]) == ("finished", 1)


def test_every_option_chooses(ctl, ch, dlq):
    def chosen(*options):
        return ctl.do("dlq", "redrive", "-q", dlq, "--dry-run", *options)[0].split(" of ")[0]

    assert chosen() == "3"
    assert (chosen("--filter-reason", "expired"), chosen("--filter-reason", "rejected")) == ("0", "3")
    assert (chosen("--first-queue", ch.work), chosen("--first-queue", dlq)) == ("3", "0")
    assert (chosen("--header", "customer"), chosen("--header=customer=bob")) == ("3", "1")
    assert chosen("--header", "customer=bob", "--header", "other") == "0"
    assert (chosen("--text", "b"), chosen("--older-than", "3600"), chosen("--max-redrives", "0")) == ("1", "0", "0")
    assert chosen("--limit", "2") == "2"
    assert (chosen("--without-header", "customer=ann"), chosen("--without-header", "customer"), chosen("--without-header", "other")) == ("1", "0", "3")
    assert chosen("--without-header", "customer=ann", "--without-header", "customer=bob") == "0"
    assert (chosen("--without-text", "b"), chosen("--without-text", "b", "--header", "customer=bob")) == ("2", "0")


def test_messages_are_chosen_by_places_in_their_json(ctl, ch, dlq):
    for customer in ("ann", "bob", "ann"):
        ch.publish(dlq, f'{{"customer": {{"name": "{customer}"}}, "lines": [{{"sku": "s-{customer}"}}]}}')

    def chosen(*options):
        return ctl.do("dlq", "redrive", "-q", dlq, "--to", f"queue:{dlq}x", "--dry-run", *options)[0].split(",")[0].split(" of ")[0]

    ch.queue(name=dlq + "x")
    assert [chosen("--json", place) for place in ("/customer/name=ann", "/customer/name=eve", "/customer", "/lines/0/sku=s-bob")] == ["2", "0", "3", "1"]
    assert chosen("--json", "/customer/name=ann", "--json", "/lines/0/sku=s-bob") == "0"
    assert "JSON pointer" in ctl.run("dlq", "redrive", "-q", dlq, "--dry-run", "--json", "customer=ann").err


def test_targets_of_a_redrive(ctl, ch, dlq):
    other, x = ch.queue(name="other"), ch.exchange()
    ch.bind(other, x, "k")
    assert ctl.do("dlq", "redrive", "-q", dlq, "--to", f"queue:{other}", "--limit", "1") == ["1 of 3 messages moved, 2 beyond the limit"]
    assert ctl.do("dlq", "redrive", "-q", dlq, "--to", f"exchange:{x}:k", "--limit", "1") == ["1 of 2 messages moved, 1 beyond the limit"]
    said = ctl.do("dlq", "redrive", "-q", dlq, "--to", f"exchange:{x}")
    assert said == ["0 of 1 messages moved, 1 unroutable"]
    assert ctl.do("dlq", "redrive", "-q", dlq, "--to", "first") == ["1 of 1 messages moved"]
    assert (ch.drain(other), ch.drain(ch.work)) == (["a", "b"], ["c"])


def test_kept_dead_letters_and_unacknowledged_messages(ctl, ch):
    other = ch.queue(name="other")
    q = ch.queue("quorum", name="q", dead_letter_strategy="at-least-once", overflow="reject-publish",
                 dead_letter_exchange="", dead_letter_routing_key="nowhere")
    ch.publish(q, *"abc")
    for message in ch.get_unacked(q, 2):
        ch.reject(message)
    ch.get_unacked(q)
    ch.sync()
    options = ["-q", q, "--to", f"queue:{other}"]
    assert ctl.do("dlq", "redrive", *options) == ["0 of 0 messages moved, 1 left unacknowledged"]
    said = ctl.do("dlq", "redrive", *options, "--kept", "--dry-run")
    assert said == ["2 of 2 messages match, 2 would move, 0 unroutable, 1 left unacknowledged", f"2 to queue '{other}'"]
    assert ctl.do("dlq", "redrive", *options, "--kept") == ["2 of 2 messages moved, 1 left unacknowledged"]
    assert ch.drain(other) == ["a", "b"]


def test_progress_and_an_end(ctl, ch, redrives_of):
    q, other = ch.queue(), ch.queue()
    ch.publish(q, *["m"] * 2000)  # more than a minute of it
    ran = []
    options = ["--to", f"queue:{other}", "--rate", "20"]
    waits = threading.Thread(target=lambda: ran.append(ctl.run("dlq", "redrive", q, *options)))
    waits.start()
    ch.poll(lambda: ch.count(other) >= 30)
    [job] = redrives_of(q)
    assert ctl.do("dlq", "cancel", job["id"]) == [f"Ending redrive {job['id']} ..."]
    waits.join()
    [ran] = ran
    assert ran.code == 69 and "Cancelled" in ran.err
    assert re.search(rf"^Running \({job['id']}\): \d+ of 2000 messages moved$", ran.out, re.M), ran.out
    assert ctl.run("dlq", "cancel", job["id"]).code == 65
    assert ctl.run("dlq", "cancel", "1").code == 65


@pytest.fixture
def redrives_of(api):
    """The jobs of a queue."""
    redrives = Redrives(api)
    return lambda queue: [job for job in redrives.api.do("GET", "/api/redrives") if job["queue"] == queue]


def test_redrive_without_waiting(ctl, ch, redrives_of):
    q, other = ch.queue(), ch.queue()
    ch.publish(q, *["m"] * 100)
    [said] = ctl.do("dlq", "redrive", "-q", q, "--to", f"queue:{other}", "--rate", "10", "--no-wait")
    [job] = redrives_of(q)
    assert said == f"Redrive {job['id']} runs"
    ctl.do("dlq", "cancel", "-q", job["id"])


def test_invalid_options_are_refused(ctl, dlq):
    for options, code in [
        (["--to", "elsewhere"], 65), (["--limit", "0"], 65), (["--rate", "-1"], 65), (["--older-than", "-1"], 65),
        (["--filter-reason", "bored"], 65), (["--to", "queue:no-such-queue"], 65), (["--unknown"], 64),
    ]:
        assert ctl.run("dlq", "redrive", dlq, *options).code == code, options
    assert ctl.run("dlq", "redrive", dlq + "x").code == 65
    assert ctl.run("dlq", "redrive").code == 64


def test_history_of_deaths_is_listed(ctl, ch, client):
    id = client.fresh_name("id")
    dead = ch.queue(name="dead")
    work = ch.queue(name="history", dead_letter_exchange="", dead_letter_routing_key=dead)
    for number in range(3):
        ch.publish(work, "m", message_id=id, headers={"number": number})
        ch.reject(ch.get_unacked(work))
    ch.publish(work, "m")
    ch.reject(ch.get_unacked(work))
    ch.purge(dead)
    header, *rows = ctl.do("dlq", "history", "-q", id)
    assert header.split("\t") == ["time", "message_id", "queue", "reason", "reason_given", "went_to", "user", "consumer_tag",
                                  "connection", "policy", "operator_policy"]
    assert len(rows) == 3
    time, message_id, queue, reason, given, went_to, user, tag, connection, *policies = rows[0].split("\t")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time) and " -> " in connection
    assert (message_id, queue, reason, given, went_to, user, tag, policies) == (
        id, work, "rejected", "", dead, "guest", "", ["", ""])
    assert len(ctl.do("dlq", "history", "-q", "--queue", work)) == 1 + 4
    assert len(ctl.do("dlq", "history", "-q", "--queue", work, "--header", "number=1")) == 1 + 1
    assert len(ctl.do("dlq", "history", "-q", "--queue", work, "--limit", "2")) == 1 + 2
    assert ctl.do("dlq", "history", "-q", "--queue", work, "--filter-reason", "expired") == []
    told = "\n".join(ctl.do("dlq", "history", id))
    assert "Listing deaths of messages in vhost '/'" in told and re.search(r"Deaths since \S+Z are kept, \d+ are forgotten", told)
    assert ctl.run("dlq", "history", "--filter-reason", "gone").code != 0
    assert ctl.run("dlq", "history", "-p", "none").code == 65
