"""Lists for daily work: what fits, what is found, what is kept; on a wide window and on a phone."""

import re

import pytest
from playwright.sync_api import expect

from browsing import segment
from clients import connect

PHONE = {"width": 390, "height": 844}
LONG = "a-queue-with-a-name-" + "0123456789" * 22
QUEUES = 620
LOST = 300


def hook(name):
    return f"[data-test={name}]"


@pytest.fixture(scope="module")
def many(busy_broker):
    """Hundreds of queues, many of which lose their dead letters in the same way; policies, users, a client with a name."""
    api = busy_broker.api

    def queue(name, **arguments):
        return {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": arguments}

    lost = {"x-dead-letter-exchange": "not-declared", "x-message-ttl": 60_000}
    queues = [queue(f"tenant-{n:03}", **(lost if n < LOST else {})) for n in range(QUEUES)]
    pairs = [queue(f"pair-{n:03}", **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"tenant-{n:03}"}) for n in range(210)]
    policies = [{"vhost": "/", "name": f"policy-{n:03}", "pattern": f"^never-{n}$", "apply-to": "queues", "priority": 0, "definition": {"max-length": n}}
                for n in range(130)]
    bindings = [{"vhost": "/", "source": "amq.direct", "destination": f"tenant-{n:03}", "destination_type": "queue", "routing_key": f"key-{n}", "arguments": {}}
                for n in range(120)]
    api.do("POST", "/api/definitions", {"vhosts": [{"name": "/"}, {"name": "shop"}], "queues": [*queues, *pairs, queue(LONG)], "policies": policies, "bindings": bindings})
    connection = connect(busy_broker, client_properties={"connection_name": "publisher-orders"})
    channel = connection.channel()
    yield busy_broker
    channel.close()
    connection.close()


@pytest.fixture
def site(site_of, many):
    return site_of(many)


CUT = """() => [...document.querySelectorAll("main table th, main table td:not(:first-child)")]
    .filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.innerText)"""


def test_no_header_and_no_state_is_cut(site):
    page = site.log_in(at="#/queues")
    page.wait_for_selector("main tbody tr:not(.none)")
    for at in ["#/queues", "#/connections", "#/channels", "#/nodes", "#/exchanges", "#/admin/vhosts", "#/"]:
        site.go(page, at)
        page.wait_for_selector("main tbody tr:not(.none)")
        assert page.evaluate(CUT) == [], at
    # Every check of Health with its path.
    site.go(page, "#/health")
    page.wait_for_selector("main td:has-text('/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts')")
    assert page.evaluate(CUT.replace("td:not(:first-child)", "td, main td .whole")) == []
    site.go(page, "#/queues")
    state = page.locator(f"{hook('queues')} tbody tr").first.locator(hook("state"))
    expect(state).to_have_attribute("title", "running")


def test_a_name_that_is_cut_can_be_read(site):
    page = site.log_in(at="#/queues?name=a-queue-with")
    row = page.locator(f"{hook('queues')} tbody tr:not(.none)")
    cell = row.locator("td").first
    cell.hover()
    expect(cell).to_have_attribute("title", LONG)
    low = cell.bounding_box()["height"]
    row.locator("td").nth(3).click()
    expect(row).to_have_class(re.compile("is-open"))
    assert cell.bounding_box()["height"] > low + 10
    assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth + 1")
    row.locator("td").nth(3).click()
    expect(row).not_to_have_class(re.compile("is-open"))


def test_a_phone_shows_numbers_beside_the_name(site):
    page = site.log_in(at="#/queues", viewport=PHONE)
    heads = page.locator(f"{hook('queues')} th")
    page.wait_for_selector(f"{hook('queues')} tbody tr:not(.none)")
    assert [head.rstrip("\u2191") for head in heads.all_inner_texts()[:6]] == ["Name", "Ready", "Unacked", "Total", "In", "Out"]
    assert heads.nth(4).bounding_box()["x"] + heads.nth(4).bounding_box()["width"] <= PHONE["width"]
    # The name stays when the list is moved.
    page.locator(".table-box").first.evaluate("box => { box.scrollLeft = 400 }")
    name = page.locator(f"{hook('queues')} tbody td").first
    assert 0 <= name.bounding_box()["x"] < 30
    site.go(page, "#/queues?name=a-queue-with")
    row = page.locator(f"{hook('queues')} tbody tr", has_text="a-queue-with")
    expect(row).to_have_count(1)
    row.locator("td").nth(1).click()
    whole = row.locator(".whole")
    assert whole.evaluate("box => box.scrollHeight <= box.clientHeight + 1") and whole.inner_text() == LONG


def test_a_client_is_found_by_its_own_name(site):
    page = site.log_in(at="#/connections")
    page.fill(hook("filter"), "PUBLISHER")
    rows = page.locator(f"{hook('connections')} tbody tr")
    expect(page.locator(hook("count"))).to_have_text(re.compile("1 of|^1 connection"))
    expect(rows.first.locator("td").first).to_have_text("publisher-orders")
    assert "Client-provided name" in page.locator(f"{hook('connections')} th").first.inner_text()
    site.go(page, "#/channels?name=publisher")
    expect(page.locator(f"{hook('channels')} tbody tr")).to_have_count(1)
    expect(page.locator(f"{hook('channels')} tbody tr")).to_contain_text("publisher-orders")
    # The whole name of a channel is in the list: the client's address, and the number.
    name = page.locator(f"{hook('channels')} tbody td").first
    expect(name).to_have_text(re.compile(r"^127\.0\.0\.1:\d+ \(1\)$"))
    assert name.evaluate("cell => cell.querySelector('.whole').scrollWidth <= cell.querySelector('.whole').clientWidth")


def test_page_and_size_are_chosen_and_kept(site):
    page = site.log_in(at="#/queues")
    page.fill(hook("page-number"), "7")
    # A refresh meanwhile leaves the number that is being typed.
    with page.expect_response("**/api/queues?**"):
        pass
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    expect(page.locator(hook("page-number"))).to_have_value("7")
    page.press(hook("page-number"), "Enter")
    page.wait_for_url(re.compile("page=7"))
    expect(page.locator(f"{hook('queues')} tbody")).to_contain_text("tenant-400")
    page.select_option(hook("page-size"), "250")
    page.wait_for_url(re.compile("size=250"))
    expect(page.locator(f"{hook('queues')} tbody tr")).to_have_count(250)
    page.fill(hook("page-number"), "99")
    page.press(hook("page-number"), "Enter")
    page.wait_for_url(re.compile("page=4"))
    page.click(f"{hook('queues')} th button:has-text('Total')")
    page.wait_for_url(re.compile("sort=total"))
    # In another visit, without an address that says so.
    site.go(page, "#/exchanges")
    page.wait_for_selector(hook("exchanges"))
    site.go(page, "#/queues")
    expect(page.locator(f"{hook('queues')} tbody tr")).to_have_count(250)
    expect(page.locator(f"{hook('queues')} th[aria-sort=descending]")).to_have_text(re.compile("Total"))
    # An address wins.
    site.go(page, "#/queues?size=25&sort=name")
    expect(page.locator(f"{hook('queues')} tbody tr")).to_have_count(25)
    expect(page.locator(f"{hook('queues')} th[aria-sort=ascending]")).to_have_text(re.compile("Name"))


def test_columns_are_chosen_in_groups_and_kept(site):
    page = site.log_in(at="#/queues")
    page.click(f"{hook('columns')} summary")
    assert page.locator(f"{hook('columns')} legend").all_inner_texts() == [
        "Overview", "Messages", "Message bytes", "Message rates", "Deaths per second"]
    page.check(hook("column-persistent"))
    page.uncheck(hook("column-type"))
    heads = page.locator(f"{hook('queues')} th")
    expect(heads.filter(has_text="Persistent")).to_have_count(1)
    page.reload()
    page.wait_for_selector(f"{hook('queues')} tbody tr:not(.none)")
    expect(heads.filter(has_text="Persistent")).to_have_count(1)
    expect(heads.filter(has_text="Type")).to_have_count(0)
    page.click(f"{hook('columns')} summary")
    page.click(hook("default-columns"))
    expect(heads.filter(has_text="Persistent")).to_have_count(0)
    expect(heads.filter(has_text="Type")).to_have_count(1)


def test_the_scrollbar_of_a_long_list_is_in_sight(site):
    page = site.log_in(at="#/queues")
    page.wait_for_selector(f"{hook('queues')} tbody tr:not(.none)")
    page.click(f"{hook('columns')} summary")
    for name in ["bytes", "memory", "get_empty", "deliver_auto", "capacity"]:
        page.check(hook(f"column-{name}"))
    page.click(f"{hook('columns')} summary")
    bar = page.locator(".scrollbar")
    expect(bar).to_be_visible()
    box = bar.bounding_box()
    assert box["y"] + box["height"] <= page.viewport_size["height"] + 1
    bar.evaluate("bar => { bar.scrollLeft = 150 }")
    expect(page.locator(".table-box")).to_have_js_property("scrollLeft", 150)


def test_every_list_has_a_filter_with_patterns(site):
    page = site.log_in(at="#/admin/policies")
    rows = page.locator("table[data-test=policies] tbody tr")
    expect(rows).to_have_count(100)
    policies = page.locator(hook("policies")).first
    policies.locator(hook("regex")).check()
    policies.locator(hook("filter")).fill("^policy-00[1-3]$")
    expect(rows).to_have_count(3)
    policies.locator(hook("regex")).uncheck()
    policies.locator(hook("filter")).fill("never-77")
    expect(rows).to_have_count(1)
    for at in ["users", "vhosts", "parameters", "limits", "features"]:
        site.go(page, f"#/admin/{at}")
        page.wait_for_selector(f"main {hook('filter')}")
        page.wait_for_selector(f"main {hook('regex')}")
    site.go(page, "#/redrives")
    page.wait_for_selector(f"main {hook('regex')}")
    site.go(page, f"#/exchanges/{segment('/', 'amq.direct')}")
    expect(page.locator("table[data-test=outgoing] tbody tr")).to_have_count(100)
    outgoing = page.locator("section", has=page.locator("table[data-test=outgoing]")).last
    outgoing.locator(hook("next")).click()
    expect(page.locator("table[data-test=outgoing] tbody tr")).to_have_count(20)


def test_equal_dead_letter_routes_are_one_group(site):
    page = site.log_in(at="#/dead-letters?view=picture&name=not-declared")
    # Queues that dead letters of pairs reach have lines of their own; the others are drawn once.
    group = page.locator(hook("node-group"))
    expect(group).to_have_count(1)
    expect(group).to_contain_text("90 queues")
    expect(group).to_contain_text("exchange missing")
    text = page.locator(hook("edge-count"))
    expect(text).to_contain_text("of 300 dead-letter routes")
    group.press("Enter")
    page.wait_for_url(re.compile("view=table"))
    expect(page.locator(hook("count"))).to_contain_text("300 of 510")


def test_the_table_of_the_map_has_pages(site):
    page = site.log_in(at="#/dead-letters")
    rows = page.locator("table[data-test=edges] tbody tr")
    expect(rows).to_have_count(100)
    expect(page.locator(hook("count"))).to_have_text("510 dead-letter routes")
    page.click("table[data-test=edges] th button:has-text('From queue')")
    page.fill(hook("page-number"), "6")
    page.press(hook("page-number"), "Enter")
    expect(rows).to_have_count(10)
    expect(rows.last).to_contain_text("tenant-299")
    page.click(hook("view-picture"))
    expect(page.locator(hook("edge-count"))).to_contain_text("of 510 dead-letter routes are drawn")


def test_the_table_of_the_map_is_complete_and_ordered_by_each_column(site):
    page = site.log_in(at="#/dead-letters?view=table&size=500&sort=from")
    rows = page.locator("table[data-test=edges] tbody tr")
    expect(rows).to_have_count(500)
    names = "rows => rows.map((row) => row.querySelector('td').innerText)"
    seen = rows.evaluate_all(names)
    page.click(hook("next"))
    expect(rows).to_have_count(10)
    seen += rows.evaluate_all(names)
    assert seen == sorted(seen) and len(set(seen)) == 510
    page.click(f"{hook('columns')} summary")
    for optional in ["strategy", "vhost"]:
        page.check(hook(f"column-{optional}"))
    assert page.locator(f"{hook('columns')} input:not(:checked)").count() == 0
    page.click(f"{hook('columns')} summary")
    page.select_option(hook("page-size"), "25")
    heads = page.locator("table[data-test=edges] th")
    assert heads.locator("button").count() == heads.count()
    # Those without a target come first, then the targets by name; and the other way round.
    to = heads.filter(has_text="To queues")
    at = heads.all_inner_texts().index("To queues")
    for order, first in [("ascending", "no queue"), ("descending", "tenant-209")]:
        to.locator("button").click()
        expect(to).to_have_attribute("aria-sort", order)
        expect(rows.first.locator("td").nth(at)).to_contain_text(first)


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, PHONE])
def test_tiles_wrap_evenly(site, viewport):
    page = site.log_in(viewport=viewport)
    page.wait_for_selector("main .stat")
    tops = page.locator("main .stats").first.locator(".stat").evaluate_all("tiles => tiles.map((tile) => Math.round(tile.getBoundingClientRect().top))")
    lengths = [tops.count(top) for top in dict.fromkeys(tops)]
    assert max(lengths) - min(lengths) <= 1, lengths


def test_the_filter_of_messages_is_folded_on_a_phone(site):
    page = site.log_in(at=f"#/queues/{segment('/', 'tenant-001')}/messages", viewport=PHONE)
    page.wait_for_selector(hook("filter-fold"))
    expect(page.locator(hook("apply"))).not_to_be_visible()
    page.click(f"{hook('filter-fold')} summary")
    expect(page.locator(hook("apply"))).to_be_visible()
