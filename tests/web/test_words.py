"""Words for people who have read nothing: empty lists say what to do, ends of messages say where they lead, nothing is said twice."""

import time

import pika
import pytest
from playwright.sync_api import expect

from browsing import PHONE, WIDE, segment
from clients import connect

EMPTY = ["queues", "connections", "channels", "scheduled", "dead-letters/queues", "dead-letters/history", "redrives", "admin/policies", "admin/limits"]


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_empty_lists_say_what_to_do(site, viewport):
    page = site.log_in(viewport=viewport)
    addresses = set()
    for at in EMPTY:
        site.go(page, f"#/{at}")
        empty = page.locator("main [data-test=empty-list]").first
        expect(empty).to_be_visible()
        link = empty.locator("a").bounding_box()
        assert link["x"] >= 0 and link["x"] + link["width"] <= viewport["width"], at
        addresses.add(empty.locator("a").get_attribute("href"))
    site.go(page, "#/dead-letters")
    expect(page.locator("[data-test=none]")).to_contain_text("messages that die are dropped")
    site.go(page, "#/queues")
    expect(page.locator("[data-test=empty-list]")).to_contain_text("No queue yet.")
    assert "docs/start/first-messages.html" in addresses
    for address in sorted(addresses):
        page.goto(f"{site.url}/{address}")
        expect(page.locator("main h1")).to_have_count(1)
        _, _, anchor = address.partition("#")
        if anchor:
            expect(page.locator(f"[id='{anchor}']")).to_have_count(1)


@pytest.fixture
def dead(broker):
    """A dead letter in `dead`, which came from `work`, after a restart of the broker."""
    connection = connect(broker)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("dead", durable=True)
    channel.queue_declare("work", durable=True, arguments={
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-message-ttl": 1})

    channel.basic_publish("", "work", b"m", pika.BasicProperties(delivery_mode=2))
    while channel.queue_declare("dead", passive=True).method.message_count == 0:
        time.sleep(0.02)
    connection.close()
    broker.stop_and_start_again()


def test_deaths_at_the_sources_begin_anew_with_the_broker(site, dead):
    page = site.log_in(at="#/dead-letters/queues")
    row = page.locator("[data-test=dead-letter-queues] tbody tr")
    expect(row).to_contain_text("none since the start")
    expect(row.locator("[title^='Counted from zero']")).to_have_count(1)


def test_tiles_of_a_queue_are_there_once_and_say_where_messages_end(site, broker):
    broker.api.do("PUT", "/api/queues/%2F/q", {"durable": True})
    page = site.log_in(at=f"#/queues/{segment('/', 'q')}")
    page.wait_for_selector("[data-test=oldest]")
    labels = page.locator("main .stat-label").all_inner_texts()
    assert len(labels) == len(set(labels)), labels
    for label in ["Refused (queue full)", "Dead-lettered (moved)", "Dropped (no DLX)", "Lost (no target queue)"]:
        assert label in labels
        page.get_by_label(f"Help: {label}", exact=True).click()
        expect(page.locator("[data-test=help-dialog]")).to_be_visible()
        page.keyboard.press("Escape")
