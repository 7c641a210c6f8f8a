"""The page about scheduled messages: its list and filter, the picture of the next hour, and what it changes."""

import time

import pika
import pytest
from playwright.sync_api import expect

from browsing import PHONE
from clients import connect
from patience import becomes
from test_admin import hook, says

HOUR_MS = 3_600_000
ROWS = f"table{hook('scheduled-messages')} tbody tr:not(.none)"


@pytest.fixture
def channel(broker):
    connection = connect(broker)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    yield channel
    connection.close()


def schedule(channel, id, delay_ms, queue="q"):
    headers = {"x-opt-delivery-delay": delay_ms} | ({} if id is None else {"x-schedule-id": id})
    channel.basic_publish("", queue, b"body", pika.BasicProperties(headers=headers, message_id=str(id)))


def listed(broker, vhost="%2F"):
    return [message["id"] for message in broker.api.do("GET", f"/api/scheduled/{vhost}?limit=500")["messages"]]


def test_messages_are_listed_by_time_with_the_next_hour(site, channel):
    schedule(channel, "late", 5 * HOUR_MS)
    schedule(channel, "soon", 10 * 60_000)
    schedule(channel, None, 2 * HOUR_MS)
    page = site.log_in(at="#/")
    page.click(hook("nav-scheduled"))
    expect(page.locator(ROWS)).to_have_count(3)
    soon, unnamed, late = [row.inner_text() for row in page.locator(ROWS).all()]
    assert "soon" in soon and "9 min" in soon and "4 B" in soon
    assert "no. " in unnamed and "late" in late and "4 h" in late
    says(page, hook("next-hour"), "1 message in this hour, 2 later")
    bars = [float(bar.get_attribute("height")) for bar in page.locator(f"{hook('due')} .bar").all()]
    assert len(bars) == 60 and [at for at, height in enumerate(bars) if height > 0] in ([9], [10])
    expect(page.locator(f"{ROWS} a[href='#/queues/%2F/q']")).to_have_count(3)


def test_filter_is_in_the_address(site, broker, channel):
    channel.queue_declare("other")
    for id, queue, hours in [("a", "q", 1), ("b", "q", 30), ("a", "other", 2)]:
        schedule(channel, id, hours * HOUR_MS, queue)
    page = site.log_in(at="#/scheduled")
    expect(page.locator(ROWS)).to_have_count(3)
    page.fill(f"{hook('schedule-filter')} [name=target]", "queue/q")
    page.keyboard.press("Enter")
    expect(page.locator(ROWS)).to_have_count(2)
    assert "target=queue%2Fq" in page.url
    page.fill(f"{hook('schedule-filter')} [name=id]", "a")
    page.click(hook("apply"))
    expect(page.locator(ROWS)).to_have_count(1)
    page.click(hook("clear"))
    expect(page.locator(ROWS)).to_have_count(3)
    tomorrow = page.evaluate("import('./js/pages/scheduled/filters.js').then(({ localTime }) => localTime(Date.now() + 86_400_000))")
    page.fill(f"{hook('schedule-filter')} [name=after]", tomorrow)
    page.click(hook("apply"))
    expect(page.locator(ROWS)).to_have_count(1)
    says(page, hook("next-hour"), "The hour from")
    page.fill(f"{hook('schedule-filter')} [name=target]", "nonsense")
    page.click(hook("apply"))
    says(page, f"table{hook('scheduled-messages')}", "target must be queue/NAME or exchange/NAME")


def test_list_has_pages(site, broker, channel):
    for number in range(120):
        schedule(channel, f"s{number}", HOUR_MS + number * 1000)
    page = site.log_in(at="#/scheduled")
    expect(page.locator(ROWS)).to_have_count(50)
    page.click(hook("next"))
    says(page, hook("page"), "Page 2")
    expect(page.locator(ROWS).first).to_contain_text("s50")
    page.click(hook("next"))
    expect(page.locator(ROWS)).to_have_count(20)
    expect(page.locator(hook("next"))).to_be_disabled()
    page.click(hook("previous"))
    page.click(hook("previous"))
    expect(page.locator(ROWS).first).to_contain_text("s0")
    expect(page.locator(hook("previous"))).to_be_disabled()


def test_one_message_is_changed(site, broker, channel):
    for id in ("cancelled", "moved", "early"):
        schedule(channel, id, HOUR_MS)
    page = site.log_in(at="#/scheduled")
    row = lambda id: page.locator(f"{ROWS}:has-text('{id}')")
    row("cancelled").locator(hook("cancel")).click()
    says(page, hook("confirm"), "cancelled in queue q", "removed and not delivered")
    page.click(hook("confirm-yes"))
    expect(row("cancelled")).to_have_count(0)
    row("early").locator(hook("deliver")).click()
    says(page, hook("confirm"), "is ready in the queue at once")
    page.click(hook("confirm-yes"))
    expect(row("early")).to_have_count(0)
    becomes(lambda: channel.basic_get("q", auto_ack=True)[2], b"body")
    row("moved").locator(hook("reschedule")).click()
    page.fill("dialog [name=delay]", "soon")
    page.click(f"dialog {hook('submit')}")
    says(page, hook("form-error"), "A delay is a number with ms, s, m, h or d")
    page.fill("dialog [name=delay]", "3h")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    expect(row("moved")).to_contain_text("2 h 59 min")
    row("moved").locator(hook("reschedule")).click()
    page.fill("dialog [name=time]", "2035-05-05T05:05:05")
    page.click(f"dialog {hook('submit')}")
    expect(row("moved")).to_contain_text("2035")
    [message] = broker.api.do("GET", "/api/scheduled/%2F/queue/q/moved")
    assert time.gmtime(message["delivery_time"] / 1000).tm_year == 2035


def test_all_that_match_are_counted_and_cancelled(site, broker, channel):
    channel.queue_declare("other")
    broker.api.do("PUT", "/api/vhosts/v")
    for number in range(60):
        schedule(channel, f"s{number}", HOUR_MS)
    schedule(channel, "kept", HOUR_MS, "other")
    page = site.log_in(at="#/scheduled?target=queue%2Fq")
    page.click(hook("cancel-all"))
    says(page, hook("cancel-count"), "60 messages in all virtual hosts are removed and not delivered")
    page.click(f"dialog {hook('submit')}:has-text('Remove 60 messages')")
    page.wait_for_selector("dialog", state="detached")
    says(page, hook("notes"), "60 messages cancelled.")
    expect(page.locator(ROWS)).to_have_count(0)
    assert listed(broker) == ["kept"]
    page.click(hook("clear"))
    expect(page.locator(ROWS)).to_have_count(1)
    page.select_option(hook("vhost"), "/")
    expect(page.locator(hook("cancel-all"))).to_have_text("Cancel all…")
    page.click(hook("cancel-all"))
    says(page, hook("cancel-count"), "1 message in virtual host / is removed")
    page.click(f"dialog {hook('submit')}")
    expect(page.locator(ROWS)).to_have_count(0)
    assert listed(broker) == []


def test_many_messages_need_a_word(site, broker, channel):
    page = site.log_in(at="#/scheduled")
    schedule(channel, "a", HOUR_MS)
    expect(page.locator(ROWS)).to_have_count(1)
    page.route("**/api/scheduled-counts*", lambda route: route.fulfill(json={
        "from": 0, "bucket_ms": 60_000, "counts": [0], "later": 100_000, "messages": 100_000, "complete": False}))
    page.click(hook("cancel-all"))
    says(page, hook("cancel-count"), "More than 100,000 messages")
    expect(page.locator(f"dialog {hook('submit')}")).to_be_disabled()
    page.fill(hook("typed"), "cancel")
    page.click(f"dialog {hook('submit')}")
    expect(page.locator(ROWS)).to_have_count(0)


def test_users_see_what_they_may_change(site, broker, channel):
    channel.queue_declare("mine")
    schedule(channel, "theirs", HOUR_MS)
    schedule(channel, "mine", HOUR_MS, "mine")
    broker.api.do("PUT", "/api/users/ann", {"password": "ann", "tags": "management"})
    broker.api.do("PUT", "/api/permissions/%2F/ann", {"configure": "", "write": "^mine$", "read": ".*"})
    page = site.log_in("ann", at="#/scheduled")
    expect(page.locator(ROWS)).to_have_count(2)
    expect(page.locator(f"{ROWS}:has-text('theirs') {hook('cannot-change')}")).to_have_count(1)
    expect(page.locator(f"{ROWS}:has-text('mine') {hook('cancel')}")).to_have_count(1)
    page.click(hook("cancel-all"))
    page.click(f"dialog {hook('submit')}")
    says(page, hook("notes"), "1 message cancelled. 1 message stayed for lack of permission.")
    assert listed(broker) == ["theirs"]
    broker.api.do("PUT", "/api/permissions/%2F/ann", {"configure": "", "write": "^$", "read": ".*"})
    page = site.log_in("ann", at="#/scheduled")
    expect(page.locator(hook("cannot-cancel-all"))).to_be_visible()
    assert page.locator(hook("cancel-all")).count() == 0


def test_page_is_no_wider_than_a_phone(site, channel):
    for number in range(3):
        schedule(channel, "an-id-of-a-schedule-that-is-quite-long-" + "x" * 60 + str(number), HOUR_MS)
    page = site.log_in(at="#/scheduled", viewport=PHONE)
    expect(page.locator(ROWS)).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
