"""A picture of every page, light and dark, wide and on a phone, for people to look at.

Each page must show what it is about and be no wider than its window; the pictures are kept, where `--screenshots` says.
"""

import time

import pytest

import places
from browsing import PHONE, photograph, segment
from conftest import running
from patience import Patience
from scene import Scene

# Headers of lists and names of lines that stand out of their place: titles cannot be read on a phone.
CUT = """() => [...document.querySelectorAll("main th, main .legend button > span:nth-child(2)")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText)"""
SAMPLED_MS = 250
SAMPLES = 5  # seconds with a sample

# Name of the picture, address, what is there when the page is.
PAGES = [
    ("connections", "#/connections", "tbody tr"),
    ("channels", "#/channels", "tbody tr"),
    ("exchanges", "#/exchanges", "tbody tr"),
    ("exchange", f"#/exchanges/{segment('/', 'shop')}", "h1"),
    ("queues", "#/queues", "tbody tr"),
    ("messages", f"#/queues/{segment('/', 'dead-sms')}/messages", "[data-test=messages]"),
    ("queue-settings", f"#/queues/{segment('/', 'sms')}/settings", "table"),
    ("scheduled", "#/scheduled", "tbody tr"),
    ("dead-letters", "#/dead-letters", "svg"),
    ("dead-letter-queues", "#/dead-letters/queues", "tbody tr"),
    ("dead-letter-history", "#/dead-letters/history", "[data-test=history-about]"),
    ("redrives", "#/redrives", "h1"),
    ("users", "#/admin/users", "tbody tr"),
    ("vhosts", "#/admin/vhosts", "tbody tr"),
    ("policies", "#/admin/policies", "tbody tr"),
    ("limits", "#/admin/limits", "h1"),
    ("definitions", "#/admin/definitions", "h1"),
    ("nodes", "#/nodes", "tbody tr"),
    # Charts come last: each line needs two samples, five seconds apart.
    ("overview", "#/", "canvas"),
    ("queue", f"#/queues/{segment('/', 'sms')}", "canvas"),
]


# Photographed with a redrive that ran, with the policy of the shop, or above.
ELSEWHERE = {"redrives-id", "admin-policies-kind-vhost-name", "queues-vhost-name-life"}


@pytest.fixture(scope="module")
def shop(request, tmp_path_factory):
    """The shop at work, with a broker that samples often, so that charts have lines soon."""
    for broker in running(request, tmp_path_factory.mktemp("broker"), f"collect_statistics_interval = {SAMPLED_MS}\n"):
        scene = Scene(broker)
        until_there_are_rates(broker)
        yield broker
        scene.stop()


def until_there_are_rates(broker):
    """Waits for the first messages that expired, and for samples before and after them."""
    patience = Patience()
    while True:
        queue = broker.api.do("GET", "/api/queues/%2F/sms?msg_rates_age=60&msg_rates_incr=1").get("message_stats", {})
        if len(queue.get("expired_details", {}).get("samples", [])) >= SAMPLES and queue["expired_details"]["rate"] > 0:
            return
        assert not patience.is_over(), queue
        time.sleep(0.1)


@pytest.fixture
def pictures(shop):
    """What is photographed: the pages above, and then all others, by the names of their routes."""
    names = {"queue": "sms", "exchange": "shop", "policy": "TTL", "node": shop.api.do("GET", "/api/overview")["node"]}
    names |= {kind: shop.api.do("GET", f"/api/{kind}s")[0]["name"] for kind in ("connection", "channel")}
    shown = {at for _, at, _ in PAGES}
    others = [(name, f"#/{at}", f"[data-test={sign}]") for name, at, sign in places.named_pages(**names)]
    return [*PAGES, *(one for one in others if one[1] not in shown and one[0] not in ELSEWHERE)]


def is_no_wider_than_its_window(page, name):
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{name} is {wide} pixels wider than its window"


def test_every_page_can_be_seen(shop, site_of, screenshots, pictures):
    site = site_of(shop)
    page = site.log_in()
    page.select_option("[data-test=range]", "minute")
    for name, at, sign in pictures:
        site.go(page, at)
        page.wait_for_selector(f"main {sign}")
        photograph(page, screenshots, name)
        is_no_wider_than_its_window(page, name)


def test_every_page_fits_a_phone(shop, site_of, screenshots, pictures):
    site = site_of(shop)
    page = site.log_in(viewport=PHONE)
    page.select_option("[data-test=range]", "minute")
    for name, at, sign in pictures:
        site.go(page, at)
        page.wait_for_selector(f"main {sign}")
        photograph(page, screenshots, name, looks=["phone"])
        is_no_wider_than_its_window(page, name)
        assert page.evaluate(CUT) == [], name


def test_the_way_of_a_dead_message_can_be_seen(shop, site_of, screenshots):
    site = site_of(shop)
    page = site.log_in(at=f"#/queues/{segment('/', 'dead-sms')}/messages?first_queue=sms")
    page.locator("[data-test=open]").first.click()
    page.wait_for_selector("[data-test=timeline]")
    photograph(page, screenshots, "message", full_page=False)
    page.locator("[data-test=choose]").first.check()
    page.click("[data-test=redrive-chosen]")
    page.wait_for_selector("[data-test=trial]:has-text('would go to')")
    photograph(page, screenshots, "redrive-dialog", full_page=False)
    page.click("dialog [data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")
    photograph(page, screenshots, "redrive", full_page=False)
    site.go(page, f"#/admin/policies/policies/{segment('/', 'TTL')}")
    page.wait_for_selector("[data-test=dry-run]")
    photograph(page, screenshots, "policy")
