"""A picture of every page, light and dark, wide and on a phone, for people to look at.

Each page must show what it is about and be no wider than its window; the pictures go where `--screenshots` says.
"""

import time

import pytest

from browsing import PHONE, WIDE, segment
from scene import Scene

SETTLED_S = 12  # so long until there are rates and a few samples of everything
DRAWN_S = 1.2

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
def test_every_page_can_be_seen(shop, site_of, pytestconfig, look, viewport, scheme):
    site = site_of(shop)
    folder = pytestconfig.getoption("--screenshots")
    page = site.log_in(viewport=viewport, scheme=scheme)
    for name, at, sign in PAGES:
        site.go(page, at)
        page.wait_for_selector(f"main {sign}")
        page.wait_for_timeout(DRAWN_S * 1000)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name} is {wide} pixels wider than its window"
        if folder:
            page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)
