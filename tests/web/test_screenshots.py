"""A picture of every page, light and dark, wide and on a phone, for people to look at.

Each page must show what it is about and be no wider than its window; the pictures are kept, where `--screenshots` says.
"""

import time

import pytest

from browsing import PHONE, WIDE, segment
from scene import Scene

SETTLED_S = 12  # so long until there are rates and a few samples of everything
DRAWN_S = 1.0

# Name of the picture, address, what is there when the page is.
PAGES = [
    ("overview", "#/", "canvas"),
    ("connections", "#/connections", "tbody tr"),
    ("channels", "#/channels", "tbody tr"),
    ("exchanges", "#/exchanges", "tbody tr"),
    ("exchange", f"#/exchanges/{segment('/', 'shop')}", "h1"),
    ("queues", "#/queues", "tbody tr"),
    ("queue", f"#/queues/{segment('/', 'sms')}", "canvas"),
    ("messages", f"#/queues/{segment('/', 'dead-sms')}/messages", "[data-test=messages]"),
    ("queue-settings", f"#/queues/{segment('/', 'sms')}/settings", "table"),
    ("dead-letters", "#/dead-letters", "svg"),
    ("dead-letter-queues", "#/dead-letters/queues", "tbody tr"),
    ("redrives", "#/redrives", "h1"),
    ("users", "#/admin/users", "tbody tr"),
    ("vhosts", "#/admin/vhosts", "tbody tr"),
    ("policies", "#/admin/policies", "tbody tr"),
    ("limits", "#/admin/limits", "h1"),
    ("definitions", "#/admin/definitions", "h1"),
    ("nodes", "#/nodes", "tbody tr"),
]


@pytest.fixture(scope="module")
def shop(busy_broker):
    scene = Scene(busy_broker)
    time.sleep(SETTLED_S)
    yield busy_broker
    scene.stop()


@pytest.mark.parametrize("look, viewport, scheme", [
    ("light", WIDE, "light"), ("dark", WIDE, "dark"), ("phone", PHONE, "light"),
])
def test_every_page_can_be_seen(shop, site_of, screenshots, look, viewport, scheme):
    site = site_of(shop)
    page = site.log_in(viewport=viewport, scheme=scheme)
    for name, at, sign in PAGES:
        site.go(page, at)
        page.wait_for_selector(f"main {sign}")
        photograph(page, screenshots, f"{name}-{look}")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name} is {wide} pixels wider than its window"


@pytest.mark.parametrize("look, scheme", [("light", "light"), ("dark", "dark")])
def test_the_way_of_a_dead_message_can_be_seen(shop, site_of, screenshots, look, scheme):
    site = site_of(shop)
    page = site.log_in(scheme=scheme, at=f"#/queues/{segment('/', 'dead-sms')}/messages?first_queue=sms")
    page.locator("[data-test=open]").first.click()
    page.wait_for_selector("[data-test=timeline]")
    photograph(page, screenshots, f"message-{look}", full_page=False)
    page.locator("[data-test=choose]").first.check()
    page.click("[data-test=redrive-chosen]")
    page.wait_for_selector("[data-test=trial]:has-text('would go to')")
    photograph(page, screenshots, f"redrive-dialog-{look}", full_page=False)
    page.click("dialog [data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")
    photograph(page, screenshots, f"redrive-{look}", full_page=False)
    site.go(page, f"#/admin/policies/policies/{segment('/', 'TTL')}")
    page.wait_for_selector("[data-test=dry-run]")
    photograph(page, screenshots, f"policy-{look}")


def photograph(page, folder, name, full_page=True):
    """Keeps a picture of the page."""
    page.wait_for_timeout(DRAWN_S * 1000)
    page.screenshot(path=folder / f"{name}.png", full_page=full_page)
