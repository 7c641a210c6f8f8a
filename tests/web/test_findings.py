"""Everything that is wrong, in sight: findings on Overview and Health, grouped warnings, alarms on every page."""

import re

import pytest
from playwright.sync_api import expect

from browsing import PHONE, WIDE, photograph, segment
from clients import connect
from conftest import running
from patience import Patience

FINDING = "[data-test=findings] [data-test=finding]"
HUGE = 2**62


@pytest.fixture(scope="module")
def wrong_broker(request, tmp_path_factory):
    """A broker with frequent samples."""
    yield from running(request, tmp_path_factory.mktemp("broker"), "collect_statistics_interval = 200\n")


@pytest.fixture(scope="module")
def channel(wrong_broker):
    """A channel, with two queues that lose their dead letters and seven that dead letters wait in."""
    connection = connect(wrong_broker)
    channel = connection.channel()
    for name in ("emails", "payments"):
        arguments = {"x-message-ttl": 1, "x-dead-letter-exchange": "nobody-declared-it"}
        channel.queue_declare(name, arguments=arguments)
    for number in range(7):
        channel.queue_declare(f"dead{number}")
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"dead{number}"}
        channel.queue_declare(f"source{number}", arguments=arguments)
    channel.queue_declare("orders")
    yield channel
    connection.close()


@pytest.fixture
def site(site_of, wrong_broker, channel):
    return site_of(wrong_broker)


def set_disk_limit(broker, limit):
    node = broker.api.do("GET", "/api/nodes")[0]["name"]
    broker.api.do("PUT", f"/api/nodes/{segment(node)}/disk-free-limit", {"absolute": limit})


@pytest.fixture
def alarm(wrong_broker):
    """The disk alarm is on."""
    set_disk_limit(wrong_broker, HUGE)
    yield
    set_disk_limit(wrong_broker, 0)


def lose_until(channel, locator):
    """Lets both queues lose messages until the page shows it."""
    patience = Patience()
    while not patience.is_over():
        for queue in ("emails", "payments"):
            channel.basic_publish("", queue, "x")
        if locator.count() > 0:
            return
        channel.connection.sleep(0.05)
    raise AssertionError("the page never showed it")


def test_overview_shows_losing_queues_with_links(site, channel):
    page = site.log_in(refresh_ms=1000)
    lost = page.locator(f"{FINDING}[data-kind=dead_letters_lost]")
    lose_until(channel, lost)
    assert re.search(r"2 queues lose dead letters \(.+/s\)\.", lost.inner_text())
    expect(lost).to_have_class(re.compile("danger"))
    expect(lost.get_by_role("link", name="payments")).to_be_visible()
    lost.get_by_role("link", name=re.compile("lose dead letters")).click()
    page.wait_for_selector("[data-test=dead-letters] [data-test=map-warnings]")


def test_health_lists_findings_with_commands(site, channel):
    page = site.log_in(at="#/health")
    card = page.locator("[data-test=all-findings]")
    # Losing now, or about to: it depends on the last two samples.
    expect(card.locator("[data-test=finding][data-kind^=dead_letters]")).to_contain_text("leveretctl dlq check")
    row = page.get_by_role("row").filter(has_text="/api/health/checks/findings")
    expect(row).to_contain_text("dead letters")


def test_map_groups_equal_warnings(site):
    page = site.log_in(at="#/dead-letters")
    group = page.locator("[data-test=warning-group]").filter(has_text="no consumer")
    expect(group).to_have_count(1)
    expect(group).to_contain_text("7 queues receive dead letters and have no consumer.")
    expect(group).to_contain_text("and 2 more")
    group.locator("summary").click()
    expect(group.locator("[data-test=warning]")).to_have_count(7)


def test_alarm_is_on_every_page(site, wrong_broker, channel, alarm):
    page = site.log_in(at="#/queues/%2F/orders")
    bar = page.locator("[data-test=alarm]")
    expect(bar).to_contain_text(re.compile(r"Publishers are blocked: disk alarm, 4 EiB limit, .+ free\."))
    expect(page.locator("[data-test=publishers-blocked]")).to_have_text("publishers blocked by disk alarm")
    expect(page.locator("[data-test=alarm-dot]").first).to_be_visible()
    for at in ("#/", "#/exchanges", "#/dead-letters", "#/nodes", "#/admin/users"):
        site.go(page, at)
        page.wait_for_selector("article.page")
        expect(bar).to_have_count(1)
    # A connection that publishes is blocked; others wait to be.
    channel.basic_publish("", "orders", "x")
    site.go(page, "#/connections")
    state = page.locator("[data-test=connection-state]")
    expect(state).to_have_text("blocked: disk alarm")
    expect(state).to_have_attribute("title", re.compile("disk alarm"))
    # Publishers to every queue are stopped.
    site.go(page, "#/queues")
    states = page.locator("[data-test=queue-state]")
    stopped = states.filter(has_text="blocked: disk alarm")
    expect(stopped).not_to_have_count(0)
    expect(states.filter(has_text="running")).to_have_count(0)
    expect(stopped.first).to_have_attribute("title", re.compile("disk alarm, 4 EiB limit"))
    site.go(page, "#/connections")
    page.locator("[data-test=connections] tbody a").first.click()
    expect(page.locator("[data-test=connection-reason]")).to_contain_text("disk alarm, 4 EiB limit")
    site.go(page, "#/")
    expect(page.locator(f"{FINDING}[data-kind=connections_blocked]")).to_be_visible()
    set_disk_limit(wrong_broker, 0)
    expect(bar).to_have_count(0)
    expect(page.locator("[data-test=alarm-dot]")).to_have_count(0)
    site.go(page, "#/queues")
    expect(states.filter(has_text="running")).not_to_have_count(0)
    expect(states.filter(has_text="blocked")).to_have_count(0)


def test_alarm_is_shown_to_users_without_the_tag_monitoring(site, wrong_broker, alarm):
    wrong_broker.api.do("PUT", "/api/users/clerk", {"password": "clerk", "tags": "management"})
    wrong_broker.api.do("PUT", "/api/permissions/%2F/clerk", {"configure": ".*", "write": ".*", "read": ".*"})
    page = site.log_in("clerk", at="#/health")
    expect(page.locator("[data-test=alarm]")).to_have_text("Publishers are blocked: disk alarm.")
    expect(page.locator("[data-test=all-findings]")).to_contain_text("need the tag monitoring")


@pytest.mark.parametrize("viewport, looks", [(WIDE, ["light", "dark"]), (PHONE, ["phone"])], ids=["wide", "phone"])
def test_pictures_of_findings(site, screenshots, alarm, viewport, looks):
    page = site.log_in(viewport=viewport)
    for name, at, there in (
        ("findings-overview", "#/", "[data-test=findings]"),
        ("findings-health", "#/health", "[data-test=all-findings]"),
        ("findings-map", "#/dead-letters", "[data-test=map-warnings]"),
        ("findings-queue", "#/queues/%2F/orders", "[data-test=publishers-blocked]"),
    ):
        site.go(page, at)
        page.wait_for_selector(there)
        photograph(page, screenshots, name, looks)
        # Nothing stands out of the page.
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
