"""Metrics: that they are in Prometheus' format, RabbitMQ's families, and what the documents say of them."""

import re

import pytest

from compare_metrics import ENDPOINTS, recorded, shape, verdicts
from documented_metrics import ROOT, documented
from metrics import Metrics
from metrics_decisions import MISSING, OTHER_LABELS, plain
from redrives import Redrives

IDENTITY = {"rabbitmq_build_info", "rabbitmq_identity_info"}


@pytest.fixture
def busy(ch, under):
    """A broker with an object of every kind, so that every label occurs."""
    q, qq = ch.queue(message_ttl=60_000), ch.queue("quorum")
    lost = ch.queue(max_length=0, expires=600_000)
    full = ch.queue(max_length=0, overflow="reject-publish")
    x = ch.exchange("fanout")
    ch.bind(q, x)
    dying = ch.queue(dead_letter_exchange=x)
    ch.kill(dying)  # to q alone, the next to one of two
    ch.bind(full, x)
    ch.kill(dying)
    ch.reaches(q, 2)
    ch.unbind(full, x)
    ch.publish(ch.queue(), "m", timestamp=1_700_000_000)
    for queue in (q, qq, lost):
        ch.publish(queue, "m")
    if under.name == "leveret":
        ch.publish(dying, "m")
        assert Redrives(under.shared().api).moved(dying, to={"queue": q}) == 1
        ch.publish(qq, "m")
        headers = {"x-delivery-tag": ch.get_unacked(qq).tag, "x-op": "dead-letter", "x-reason": "503"}
        ch.publish("", "", exchange="amq.settle", headers=headers)
        ch.publish(qq, "later", headers={"x-opt-delivery-delay": 3_600_000})
        delayed = ch.exchange("x-delayed-message", arguments={"x-delayed-type": "direct"})
        ch.publish("k", "later", exchange=delayed, headers={"x-delay": 3_600_000})
    ch.publish("nowhere", "m")
    ch.get(qq)
    ch.consume(q, prefetch=1).next()
    return ch


@pytest.fixture
def fetch(under, metrics_url):
    """`fetch("/metrics")`: what that tells now."""
    under.shared()
    return lambda path: Metrics.fetch(metrics_url + path)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_endpoint_is_in_prometheus_format(busy, fetch, under, endpoint):
    metrics = fetch(ENDPOINTS[endpoint])
    assert IDENTITY <= metrics.families.keys()
    assert metrics.value("rabbitmq_identity_info", rabbitmq_endpoint=endpoint) == 1
    if under.name == "leveret":
        assert metrics.faults() == []


def test_names_of_queues_are_data(ch, fetch):
    name = ch.queue(name='a "quoted\\" {name="x"} #\tü')
    ch.publish(name, "m")
    for path in ("/metrics/per-object", "/metrics/detailed?family=queue_coarse_metrics"):
        metrics = fetch(path)
        family = next(family for family in metrics.families if family.endswith("queue_messages_ready"))
        assert metrics.value(family, queue=name) is not None


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_record_of_rabbitmq_s_families_is_true(busy, under, metrics_url, endpoint):
    """Of RabbitMQ itself; of Leveret: every family is there, or a decision says why it is missing or different."""
    if under.name == "leveret":
        undecided = {name: one for name, one in verdicts(metrics_url, endpoint).items() if "nobody knows why" in one}
        assert undecided == {}
        return
    here = shape(metrics_url, endpoint)
    for name, (type, labels) in recorded(endpoint).items():
        if name.startswith(("erlang_", "rabbitmq_raft_", "rabbitmq_detailed_raft_")):
            continue  # they depend on the running processes, and are not in Leveret
        assert name in here and here[name][0] == type, name
        assert None in (labels, here[name][1]) or here[name][1] == labels, name


def test_decisions_are_about_families_that_there_are(busy, under, metrics_url):
    found = {name: one for endpoint in ENDPOINTS for name, one in verdicts(metrics_url, endpoint).items()}
    if under.name == "rabbitmq":
        return
    missing = {plain(name) for name, one in found.items() if one.startswith("missing")}
    stale = [pattern for pattern in MISSING if not any(is_like(pattern, name) for name in missing)]
    different = {plain(name) for endpoint in ENDPOINTS for name, one in verdicts(metrics_url, endpoint).items()
                 if one.startswith("different")}
    assert (stale, OTHER_LABELS.keys() - different) == ([], set())


def is_like(pattern, name):
    return name.startswith(pattern[:-1]) if pattern[-1] == "*" else name == pattern


def test_a_query_chooses_families_vhosts_and_queues(ch, fetch, prefix):
    q, other = ch.queue(name="one"), ch.queue(name="two")
    pattern = "%5E" + prefix + "on"
    metrics = fetch("/metrics/detailed?family=queue_coarse_metrics&vhost=%2F&queue=" + pattern)
    told = {sample.labels["queue"] for sample in metrics.families["rabbitmq_detailed_queue_messages"].samples}
    assert told == {q} != {other}
    assert "rabbitmq_detailed_queue_consumers" not in metrics.families
    elsewhere = fetch("/metrics/detailed?family=queue_coarse_metrics&vhost=nowhere")
    assert elsewhere.families["rabbitmq_detailed_queue_messages"].samples == []
    assert fetch("/metrics/detailed?family=nonsense").families.keys() >= IDENTITY


def test_a_pattern_that_is_none_is_refused(under, metrics_url):
    under.shared()
    with pytest.raises(Exception, match="400"):
        Metrics.fetch(metrics_url + "/metrics/detailed?family=queue_coarse_metrics&queue=(")


@pytest.mark.alone
def test_the_document_names_every_family(busy, under, fetch):
    """docs/reference/metrics.md, with types and labels; and no family that is missing in a scrape."""
    if under.name == "rabbitmq":
        return
    told = {}
    for path in ("/metrics", "/metrics/per-object", "/metrics/memory-breakdown", ENDPOINTS["detailed"]):
        for name, family in fetch(path).families.items():
            if not name.startswith("rabbitmq_detailed_"):
                labels = set(family.labels or ()) - {"le"} | told.get(name, ("", set()))[1]
                told[name] = (family.type, labels)
    assert documented() == told


def test_the_document_tells_of_every_difference():
    """docs/reference/metrics.md has every decision."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", page.split("\n## Differences from RabbitMQ\n")[1])
    assert [pattern for pattern in (*MISSING, *OTHER_LABELS) if f"`{pattern}`" not in text] == []
