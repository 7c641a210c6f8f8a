"""The page with the history of dead letters: deaths of messages that are gone, found by id, header and queue."""

import pika
import pytest
from playwright.sync_api import expect

from browsing import segment
from clients import connect
from patience import PATIENCE_S
from test_admin import hook, says

ROWS = f"table{hook('deaths')} tbody tr:not(.none)"


@pytest.fixture
def channel(broker):
    connection = connect(broker)
    channel = connection.channel()
    channel.queue_declare("dead", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.queue_declare("orders", durable=True, arguments=arguments)
    channel.queue_declare("none", durable=True, arguments={"x-max-length": 0})
    yield channel
    connection.close()


def reject(channel, id, **headers):
    channel.basic_publish("", "orders", "m", pika.BasicProperties(message_id=id, headers=headers))
    for method, _, _ in channel.consume("orders", inactivity_timeout=PATIENCE_S):
        channel.basic_reject(method.delivery_tag, requeue=False)
        break
    channel.cancel()


def test_deaths_are_found_by_id_header_and_queue(site, channel):
    reject(channel, "order-1", customer="ann")
    reject(channel, "order-2", customer="bob")
    channel.basic_publish("", "none", "m", pika.BasicProperties(message_id="order-3"))
    channel.queue_purge("dead")
    page = site.log_in(at="#/")
    page.click(hook("nav-dead-letter-history"))
    expect(page.locator(ROWS)).to_have_count(3)
    dropped, second, _ = [row.inner_text() for row in page.locator(ROWS).all()]
    assert "order-3" in dropped and "no dead-letter exchange" in dropped
    assert "order-2" in second and "rejected" in second and "guest, consumer ctag" in second
    says(page, hook("history-about"), "All deaths since")
    page.fill(f"{hook('history-filter')} [name=message_id]", "order-1")
    page.keyboard.press("Enter")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(f"{ROWS} a[href='#/queues/%2F/dead']")).to_have_count(1)
    assert "message_id=order-1" in page.url
    page.click(hook("clear"))
    expect(page.locator(ROWS)).to_have_count(3)
    page.fill(f"{hook('history-filter')} [name=header]", "customer=bob")
    page.keyboard.press("Enter")
    expect(page.locator(ROWS)).to_have_count(1)
    page.click(hook("clear"))
    page.select_option(f"{hook('history-filter')} [name=reason]", "expired")
    page.click(hook("apply"))
    says(page, f"table{hook('deaths')}", "No match for the filter.")


def test_a_message_leads_to_its_deaths(site, channel):
    reject(channel, "order-7")
    reject(channel, "order-8")
    page = site.log_in(at=f"#/queues/{segment('/', 'dead')}/messages")
    page.locator(hook("open")).nth(1).click()
    page.click(hook("each-death"))
    expect(page.locator(ROWS)).to_have_count(1)
    says(page, ROWS, "order-8")
