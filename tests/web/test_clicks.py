"""How many clicks the tasks take that people come for; docs/guides/web-page.md has them beside RabbitMQ's page."""

import time

import pytest
from playwright.sync_api import expect

from clients import connect


@pytest.fixture
def shop(broker):
    """A message that expired in `sms` under a policy, and waits in `dead`."""
    set_policy(broker, {"message-ttl": 100, "dead-letter-exchange": "dlx"})
    connection = connect(broker)
    channel = connection.channel()
    for queue in ["sms", "dead"]:
        channel.queue_declare(queue, durable=True)
    channel.exchange_declare("dlx")
    channel.queue_bind("dead", "dlx", "sms")
    channel.basic_publish("", "sms", b"Your code is 4711")
    while channel.queue_declare("dead", passive=True).method.message_count == 0:
        time.sleep(0.02)
    yield channel
    connection.close()


def set_policy(broker, definition):
    policy = {"pattern": "^sms$", "definition": definition, "apply-to": "queues", "priority": 1}
    broker.api.do("PUT", "/api/policies/%2F/TTL", policy)


class Hand:
    """Clicks and counts."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def click(self, selector):
        self.page.click(selector)
        self.clicks += 1


def test_clicks_to_the_reason_of_a_death(site, shop):
    hand = Hand(site.log_in())
    hand.click("[data-test=nav-dead-letter-queues]")
    hand.click("tr:has-text('dead') [data-test=browse]")
    expect(hand.page.locator("[data-test=message]")).to_contain_text("expired in sms")
    assert hand.clicks == 2
    hand.click("[data-test=open]")
    expect(hand.page.locator("[data-test=timeline]")).to_contain_text("expired in queue sms")
    assert hand.clicks == 3


def test_send_it_back(site, broker, shop):
    set_policy(broker, {"dead-letter-exchange": "dlx"})
    hand = Hand(site.log_in())
    hand.click("[data-test=nav-dead-letter-queues]")
    hand.click("tr:has-text('dead') [data-test=redrive]")
    hand.click("dialog [data-test=submit]")
    hand.page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")
    assert hand.clicks == 3
    assert shop.queue_declare("sms", passive=True).method.message_count == 1


def test_clicks_to_the_policy_of_a_queue(site, shop):
    hand = Hand(site.log_in())
    hand.click("[data-test=nav-queues]")
    hand.click("tr:has-text('sms') a")
    expect(hand.page.locator("[data-test=fate]")).to_contain_text("Messages wait at most 100 ms (policy TTL)")
    assert hand.clicks == 2
