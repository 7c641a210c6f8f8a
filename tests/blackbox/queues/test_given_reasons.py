"""Dead letters by the reason that their consumers gave in `amq.settle`: counted over HTTP, by leveretctl and in metrics, and redriven."""

import json
from urllib.parse import urlencode

import pytest

from brokers import quoted
from definitions import User
from expectations import NOTHING, dead_letters_to
from metrics import Metrics
from redrives import Redrives
from test_ctl import tools

pytestmark = pytest.mark.better

FAMILY = "rabbitmq_queue_messages_died_by_given_reason_total"
#: Reasons of seven messages, and how they are counted.
REASONS = ["503", "503", 503, "no such address", None, b"\xff\n", "x" * 300]
BINARY = "Not UTF-8, base64 is: /wo="
COUNTED = [("503", 3, False), (BINARY, 1, False), ("no such address", 1, False), ("x" * 256, 1, True)]


@pytest.fixture(autouse=True)
def leveret_only(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no exchange amq.settle")


@pytest.fixture
def dlq(ch):
    """A queue of dead letters, each with the reason that its consumer gave."""
    dlq = ch.queue(name="dlq")
    ch.work = ch.queue(name="work", **dead_letters_to(dlq))
    for number, reason in enumerate(REASONS):
        die(ch, ch.work, reason, body=str(number))
    return dlq


def die(ch, queue, reason, body="m"):
    """A message that its consumer dead-letters with a reason, or rejects without one."""
    ch.publish(queue, body)
    message = ch.get_unacked(queue)
    if reason is None:
        ch.reject(message)
    else:
        headers = {"x-delivery-tag": message.tag, "x-op": "dead-letter", "x-reason": reason}
        ch.publish("", "", exchange="amq.settle", headers=headers)
    ch.sync()


@pytest.fixture
def reasons(under):
    """`reasons(queue, count=..)`: the answer of the API."""
    api = under.shared().api

    def ask(queue, user="guest", status=200, **query):
        answer = api.ask("/api/queues/" + quoted("/", queue) + "/given-reasons?" + urlencode(query), user=user)
        assert answer.status == status, answer.text
        return answer.json

    return ask


def counted(answer):
    return [(one["given_reason"], one["messages"], one["cut"]) for one in answer["given_reasons"]]


# --- counted


def test_dead_letters_are_counted_by_reason(reasons, ch, dlq):
    answer = reasons(dlq)
    assert counted(answer) == COUNTED
    assert (answer["without_reason"], answer["other_reasons"], answer["complete"]) == (1, 0, True)
    assert (answer["death_reasons"], answer["without_death"]) == ([{"reason": "rejected", "messages": len(REASONS)}], 0)
    assert (answer["scanned"], answer["messages_total"]) == (len(REASONS), len(REASONS))
    first = reasons(dlq, count=1)
    assert (counted(first), first["other_reasons"], first["without_reason"]) == (COUNTED[:1], 3, 1)
    assert reasons(ch.work)["given_reasons"] == []
    assert ch.count(dlq) == len(REASONS)


def test_messages_are_counted_by_the_reason_of_their_last_death(reasons, ch):
    dlq = ch.queue(name="dlq")
    short = ch.queue(name="short", message_ttl=0, **dead_letters_to(dlq))
    full = ch.queue(name="full", max_length=0, **dead_letters_to(dlq))
    for q in (short, short, full, dlq):
        ch.publish(q, "m")
    die(ch, ch.queue(name="work", **dead_letters_to(short)), None)
    ch.poll(lambda: ch.count(dlq) == 5, what="the deaths")
    answer = reasons(dlq)
    assert answer["death_reasons"] == [{"reason": "expired", "messages": 3}, {"reason": "maxlen", "messages": 1}]
    assert (answer["without_death"], answer["given_reasons"]) == (1, [])


def test_kept_dead_letters_are_counted_apart(reasons, ch):
    q = ch.queue("quorum", dead_letter_strategy="at-least-once", overflow="reject-publish",
                 dead_letter_exchange="", dead_letter_routing_key="nowhere")
    die(ch, q, "503")
    ch.publish(q, "waits", headers={"x-reason": "by the publisher"})
    ch.sync()
    assert counted(reasons(q)) == [("by the publisher", 1, False)]
    assert counted(reasons(q, kept="true")) == [("503", 1, False)]
    # A message has a death in its headers when another queue takes it.
    assert (reasons(q, kept="true")["death_reasons"], reasons(q, kept="true")["without_death"]) == ([], 1)


def test_long_queues_are_counted_page_by_page(reasons, ch):
    q = ch.queue()
    for reason in ("a", "b"):
        ch.publish(q, *["m"] * 3000, headers={"x-reason": reason})
    ch.sync()
    assert counted(reasons(q)) == [("a", 3000, False), ("b", 3000, False)]


def test_reasons_need_the_permission_to_read(defined, prefix):
    ch = defined(users=[User("bob", read=NOTHING, tags=["management"]),
                        User("ann", configure=NOTHING, write=NOTHING, tags=["management"])])
    q, api = ch.queue(), defined.client.broker.api

    def status(user, queue=q):
        return api.ask("/api/queues/" + quoted("/", queue) + "/given-reasons", user=prefix + user).status

    assert (status("ann"), status("bob"), status("ann", q + "x")) == (200, 401, 404)


def test_invalid_queries_are_refused(reasons, dlq):
    reasons(dlq + "x", status=404)
    for query in [{"count": 0}, {"count": 101}, {"kept": 1}]:
        assert reasons(dlq, status=400, **query)["error"] == "bad_request"


def test_deaths_are_counted_by_reason_in_metrics(ch, under, metrics_url):
    under.shared()

    def told():
        metrics = Metrics.fetch(metrics_url + "/metrics")
        assert metrics.faults() == []
        samples = {sample.labels["given_reason"]: sample for sample in metrics.families[FAMILY].samples}
        assert {sample.labels["vhost"] for sample in samples.values()} <= {"/"}
        return {reason: int(sample.value) for reason, sample in samples.items()}

    before = told()
    q = ch.queue("quorum", delivery_limit=0)
    for reason in ['a "b"\\', b"c\n\xff", "d" * 100, {"e": 1}, "", None]:
        die(ch, q, reason)
    # Returned too often: the reason of the last failure.
    ch.publish(q, "m")
    message = ch.get_unacked(q)
    ch.publish("", "", exchange="amq.settle", headers={"x-delivery-tag": message.tag, "x-reason": "f"})
    ch.reject(message, requeue=True)
    ch.sync()
    after = told()
    if len(before) < 20:
        new = {reason: count - before.get(reason, 0) for reason, count in after.items()}
        assert {reason: count for reason, count in new.items() if count} == {
            'a "b"\\': 1, "c\\n\N{REPLACEMENT CHARACTER}": 1, "d" * 64 + "...": 1, "other": 1, "f": 1}
    for number in range(50):
        die(ch, q, f"number {number}")
    assert len(told()) == 33 and sum(told().values()) == sum(before.values()) + 55


# --- leveretctl


@pytest.mark.tools
def test_leveretctl_counts_by_reason(ch, dlq, under, pytestconfig, tmp_path):
    ctl = tools(under.shared(), pytestconfig, tmp_path)
    header, *rows = ctl.do("dlq", "show", "-q", dlq, "--by-reason", "--limit", "3")
    assert header.split("\t") == ["kind", "messages", "reason"]
    assert [row.split("\t") for row in rows] == [
        ["death", "7", "rejected"], ["given", "3", "503"], ["given", "1", BINARY], ["given", "1", "no such address"],
        ["given_other", "1", ""], ["none_given", "1", ""]]
    rows = json.loads(ctl.run("dlq", "show", dlq, "--by-reason", "--formatter", "json").out)
    assert [row["kind"] for row in rows] == ["death", "given", "given", "given", "given_cut", "none_given"]
    assert ctl.do("dlq", "show", "-q", dlq, "--by-reason", "--kept") == []
    assert ctl.run("dlq", "show", dlq + "x", "--by-reason").code == 65
    for options in (["--kept"], ["--by-reason", "--headers"], ["--by-reason", "--id", "1-1-0"]):
        assert ctl.run("dlq", "show", dlq, *options).code == 65


@pytest.mark.tools
def test_leveretctl_redrives_by_reason(ch, dlq, under, pytestconfig, tmp_path):
    ctl = tools(under.shared(), pytestconfig, tmp_path)
    said = ctl.do("dlq", "redrive", "-q", dlq, "--header", "x-reason=503")
    assert said == ["3 of 7 messages moved, 4 skipped"]
    assert ch.drain(ch.work) == ["0", "1", "2"]


# --- redriven


def test_dead_letters_are_redriven_by_reason(reasons, under, ch, dlq):
    redrives = Redrives(under.shared().api)
    chosen = {"filter": {"headers": {"x-reason": "503"}}}
    assert redrives.dry_run(dlq, **chosen)["would_move"] == 3
    job = redrives.run(dlq, **chosen)
    assert (job["moved"], job["skipped"]) == (3, 4)
    # Every reason that is counted whole selects the messages that it counts.
    for reason, messages, is_cut in COUNTED[1:]:
        filter = {"headers": {"x-reason": reason}}
        assert redrives.dry_run(dlq, filter=filter)["would_move"] == (0 if is_cut else messages), reason
    assert redrives.moved(dlq, filter={"headers": {"x-reason": BINARY}}) == 1
    assert ch.drain(ch.work) == ["0", "1", "2", "5"]
    assert counted(reasons(dlq)) == COUNTED[2:]


def test_kept_dead_letters_are_redriven_by_reason(under, ch):
    redrives = Redrives(under.shared().api)
    target = ch.queue(name="target")
    q = ch.queue("quorum", dead_letter_strategy="at-least-once", overflow="reject-publish",
                 dead_letter_exchange="", dead_letter_routing_key="nowhere")
    for body, reason in [("a", "503"), ("b", "404"), ("c", "503")]:
        die(ch, q, reason, body=body)
    job = redrives.run(q, to={"queue": target}, kept=True, filter={"headers": {"x-reason": "503"}})
    assert (job["moved"], job["skipped"]) == (2, 1)
    assert ch.drain(target) == ["a", "c"]
