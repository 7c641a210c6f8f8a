"""The story of the documents from the first click to the last: everything but the topology is done on the page."""

import pytest
from playwright.sync_api import expect

from browsing import segment
from clients import connect

TTL_MS = 5000  # the documents take a minute; the page, which asks every second, has to see each message before that


@pytest.fixture
def topology(broker):
    """The documents' dead-letter exchange `my-dlx` and two queues, none of them with arguments."""
    connection = connect(broker)
    channel = connection.channel()
    channel.exchange_declare("my-dlx", "direct", durable=True)
    for queue in ["sms", "dead"]:
        channel.queue_declare(queue, durable=True)
    channel.queue_bind("dead", "my-dlx", "sms")
    yield channel
    connection.close()


def test_a_message_expires_by_a_policy_and_is_sent_back(site, topology):
    page = site.log_in()
    page.select_option("[data-test=refresh]", label="every second")

    # A policy with a TTL and a dead-letter exchange.
    page.click("[data-test=nav-policies]")
    page.click("[data-test=add-policies]")
    page.fill("[data-test=policy-name]", "TTL")
    page.fill("[data-test=policy-pattern]", "^sms$")
    for key, value in [("message-ttl", str(TTL_MS)), ("dead-letter-exchange", "my-dlx")]:
        page.click(f"[data-test=key-{key}]")
        page.fill(f"[data-test=value-{key}]", value)
    expect(page.locator("[data-test=dry-run]")).to_contain_text("sms")
    page.click("[data-test=submit]")
    expect(page.locator("table[data-test=policies]")).to_contain_text("TTL")

    # Three messages wait, and are gone.
    page.click("[data-test=nav-queues]")
    page.click("tr:has-text('sms') a")
    page.click("[data-test=tab-publish]")
    for number in range(3):
        page.fill("[data-test=publish-payload]", f"Your code is {number}")
        page.click("[data-test=publish] [data-test=submit]")
        expect(page.locator("[data-test=ready]")).to_contain_text("1")
        expect(page.locator("[data-test=ready]")).to_contain_text("0")
    page.click("[data-test=tab-life]")
    expect(page.locator("[data-test=fate]")).to_contain_text("Messages wait at most 5 s (policy TTL)")
    expect(page.locator("[data-test=in-force]")).to_contain_text("my-dlx")

    # They tell why, where and when.
    page.click("[data-test=nav-dead-letter-queues]")
    page.click("tr:has-text('dead') [data-test=browse]")
    expect(page.locator("[data-test=message]")).to_have_count(3)
    page.locator("[data-test=open]").first.click()
    story = page.locator("[data-test=timeline]")
    for words in ["published to the default exchange with key sms", "expired in queue sms", "waits in queue dead"]:
        expect(story).to_contain_text(words)

    # Without the TTL they stay where they are sent back to.
    page.click("[data-test=nav-policies]")
    page.click("table[data-test=policies] a:has-text('TTL')")
    page.get_by_label("Remove message-ttl").click()
    page.click("[data-test=submit]")
    page.wait_for_selector("[data-test=page-policies]")
    page.click("[data-test=nav-dead-letter-queues]")
    page.click("tr:has-text('dead') [data-test=redrive]")
    expect(page.locator("[data-test=trial]")).to_contain_text("3 of 3 matching messages would go to:")
    page.click("dialog [data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")

    # There they are, as they were.
    site.go(page, f"#/queues/{segment('/', 'sms')}/messages")
    expect(page.locator("[data-test=message]")).to_have_count(3)
    for number in range(3):
        method, properties, body = topology.basic_get("sms", auto_ack=True)
        assert (method.exchange, method.routing_key, body) == ("", "sms", f"Your code is {number}".encode())
        assert not method.redelivered and "x-death" not in properties.headers
        assert properties.headers["x-redrive-count"] == 1
