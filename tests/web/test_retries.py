"""Retries on the page: a queue that a returned message holds, and messages that a queue keeps at the delivery limit."""

import pytest
from playwright.sync_api import expect

from browsing import segment
from clients import connect


@pytest.fixture
def channel(broker):
    connection = connect(broker)
    yield connection.channel()
    connection.close()


def fail(channel, queue):
    """Publishes a message and gives it back."""
    channel.basic_publish("", queue, "poor thing")
    method, _, _ = channel.basic_get(queue)
    channel.basic_reject(method.delivery_tag, requeue=True)
    channel.queue_declare(queue, passive=True)


def life(site, queue):
    page = site.log_in(at=f"#/queues/{segment('/', queue)}/life")
    page.wait_for_selector("[data-test=life]")
    return page


def test_the_page_says_until_when_a_queue_is_held(site, channel):
    channel.queue_declare("held", arguments={
        "x-single-active-consumer": True, "x-delayed-retry-type": "all", "x-delayed-retry-min": 600_000,
        "x-delayed-retry-order": "strict"})
    fail(channel, "held")
    expect(life(site, "held").locator("[data-test=held-until]")).to_contain_text("min")


def test_the_page_shows_kept_messages(site, channel):
    channel.queue_declare("keeps", arguments={"x-delivery-limit": 0, "x-delivery-limit-action": "keep"})
    fail(channel, "keeps")
    page = life(site, "keeps")
    expect(page.locator("[data-test=fate]")).to_contain_text("is kept here, unless a dead-letter exchange takes it")
    expect(page.locator("[data-test=held-until]")).to_have_count(0)
    page.click("a:has-text('1'):near(:text('Dead letters kept'))")
    expect(page.locator("[data-test=message]")).to_have_count(1)
