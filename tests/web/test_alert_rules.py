"""The alert rules for one queue: valid YAML, whatever its name is, and selectors that match the metrics of the broker."""

import json
import re

import pytest
import yaml
from playwright.sync_api import expect

from browsing import segment
from metrics import Metrics

NAMES = ["orders", "it's \"quoted\"", "back\\slash\\n", "two  spaces ", "a tab\there", "{{ $value }}", "\u043e\u0447\u0435\u0440\u0435\u0434\u044c-\u8a02", "# - : {}", "\x7f\x85\u2028\ufeff"]
DETAILED = "/metrics/detailed?family=queue_coarse_metrics&family=queue_time_metrics&family=queue_death_metrics"
SELECTOR = re.compile(r'(rabbitmq_\w+)\{vhost=("(?:[^"\\]|\\.)*"),queue=("(?:[^"\\]|\\.)*")[,}]')


@pytest.fixture
def page(site, broker):
    broker.api.do("PUT", "/api/vhosts/a%22b%5C")
    return site.log_in()


def rules_of(site, page, vhost, name):
    """The rules that the page of a queue proposes, as Prometheus reads them."""
    site.go(page, f"#/queues/{segment(vhost, name)}")
    expect(page.locator("main h1")).to_be_visible()
    page.click("[data-test=alert-rules]")
    text = page.locator("[data-test=rule-text]").input_value()
    page.locator("dialog [data-cancel]").click()
    [group] = yaml.safe_load(text)["groups"]
    return group


def test_rules_are_yaml_with_the_names_of_series(site, broker, page):
    queues = [(vhost, name) for vhost in ("/", 'a"b\\') for name in NAMES]
    for vhost, name in queues:
        broker.api.do("PUT", f"/api/queues/{segment(vhost, name)}", {"durable": True})
    metrics = Metrics.fetch(broker.api.url + DETAILED)
    groups = set()
    for vhost, name in queues:
        group = rules_of(site, page, vhost, name)
        groups.add(group["name"])
        assert [one["alert"] for one in group["rules"]] == [
            "LeveretQueueMessagesWait", "LeveretQueueOldestMessageWaits", "LeveretQueueLosesDeadLetters"]
        for one in group["rules"]:
            metric, *strings = SELECTOR.search(one["expr"]).groups()
            # The escapes of a string in JSON are among those of PromQL.
            assert [json.loads(string) for string in strings] == [vhost, name], one["expr"]
            assert one["labels"]["severity"] in ("warning", "critical")
            # A name in an annotation would be read as a template.
            assert all("$labels.queue" in one["annotations"]["summary"] for one in group["rules"])
            assert metric in metrics.families, metric
        seen = {(sample.labels["vhost"], sample.labels["queue"]) for sample in metrics.families["rabbitmq_detailed_queue_messages_ready"].samples}
        assert (vhost, name) in seen
    # Two groups of one name are an error of Prometheus.
    assert len(groups) == len(queues)


def test_rules_follow_the_fields_and_are_copied(site, broker, page):
    broker.api.do("PUT", "/api/queues/%2F/q", {"durable": True})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    site.go(page, f"#/queues/{segment('/', 'q')}")
    page.click("[data-test=alert-rules]")
    page.fill("[data-test=rule-messages]", "7")
    page.fill("[data-test=rule-seconds]", "60")
    page.fill("[data-test=rule-minutes]", "2")
    text = page.locator("[data-test=rule-text]")
    expect(text).to_have_value(re.compile(r'queue="q"\} > 7\'\n        for: 2m'))
    expect(text).to_have_value(re.compile(r'queue="q"\} > 60\''))
    page.click("[data-test=copy-rules]")
    expect(page.locator(".note")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == text.input_value()
