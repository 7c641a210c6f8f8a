"""The broker goes away, and the page comes back by itself: restarts, proxies, connections, logins, versions."""

import contextlib
import json
import re

import pika
import pytest
from playwright.sync_api import expect

from browsing import ask_now, segment
from clients import connect
import places
from patience import eventually
from proxy import Proxy

AWAY = "[data-test=away]"
NEXT_TRY = re.compile(r"Next try in \d+ s\.|Trying now\.")


def furnished(broker):
    """A broker with something in it."""
    broker.api.do("PUT", "/api/queues/%2F/kept", {"durable": True})
    broker.api.do("PUT", "/api/exchanges/%2F/kept", {"type": "fanout"})
    broker.api.do("PUT", "/api/policies/%2F/kept", {"pattern": "^kept$", "definition": {"max-length": 5}})
    return broker


@pytest.fixture
def broker(broker):
    return furnished(broker)


@pytest.fixture
def all_pages(broker):
    """Every page of this broker: of a client that is connected now, of its channel, of a redrive, of a node."""
    connection = connect(broker)
    connection.channel()
    [client] = eventually(lambda: broker.api.do("GET", "/api/connections"))
    [channel] = eventually(lambda: broker.api.do("GET", "/api/channels"))
    redrive = broker.api.do("POST", "/api/queues/%2F/kept/redrive", {"to": {"queue": "kept"}})["id"]
    node = broker.api.do("GET", "/api/overview")["node"]
    yield list(places.pages(connection=client["name"], channel=channel["name"], redrive=redrive, node=node))
    with contextlib.suppress(pika.exceptions.AMQPError):
        connection.close()


@pytest.fixture(scope="module")
def lasting(busy_broker):
    """A broker that stays, for tests of what is between it and the page."""
    return furnished(busy_broker)


@pytest.fixture
def proxy(lasting):
    proxy = Proxy(lasting.api.url)
    yield proxy
    proxy.close()


@pytest.fixture
def proxied(site_of, lasting, proxy):
    """The pages of a broker behind a proxy."""
    site = site_of(lasting)
    site.url = proxy.url
    return site


def is_away(page, why=""):
    """Waits until the page says in one bar that the broker is away."""
    expect(page.locator(AWAY)).to_have_count(1)
    expect(page.locator(AWAY)).to_contain_text(f"The broker cannot be reached{why}.")
    expect(page.locator(AWAY)).to_contain_text(NEXT_TRY)
    expect(page.locator("[data-test=error], [data-test=stale], [data-test=fault]")).to_have_count(0)


def is_back(page, sign=None):
    """Waits until nothing on the page reminds of it."""
    expect(page.locator(AWAY)).to_have_count(0)
    if sign:
        expect(page.locator(f"[data-test={sign}]").first).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Loading")
    expect(page.locator("main .is-stale")).to_have_count(0)
    expect(page.locator("[data-test=error], [data-test=stale], [data-test=fault]")).to_have_count(0)


def try_now(page):
    """Presses the button, unless a try of the page itself has succeeded meanwhile."""
    page.evaluate("document.querySelector('[data-test=try-now]')?.click()")


def test_every_page_survives_a_crash_of_its_broker(site, broker, all_pages):
    page = site.log_in()
    for number, (at, sign) in enumerate(all_pages):
        site.go(page, f"#/{at}")
        is_back(page, sign)
        broker.kill()
        ask_now(page)
        is_away(page)
        broker.start_again()
        # The first comes back by itself, the others at once.
        if number > 0:
            try_now(page)
        is_back(page, sign)


def test_all_pages_can_be_opened_while_the_broker_is_away(site, broker, all_pages):
    page = site.log_in()
    broker.kill()
    ask_now(page)
    for at, _ in all_pages:
        site.go(page, f"#/{at}")
        page.wait_for_function("at => location.hash === at", arg=f"#/{at}")
        is_away(page)
        expect(page.locator("main h1")).to_be_visible()
        for text in ("Loading", "0 users", "Not up to date", "cannot be loaded"):
            expect(page.locator("main")).not_to_contain_text(text)
    # Opened while the broker was away, they fill when it is back; the last action's failure goes by itself, too.
    site.go(page, f"#/queues/{segment('/', 'kept')}/messages")
    expect(page.locator("main")).to_contain_text("Shown when the broker answers.")
    broker.start_again()
    try_now(page)
    is_back(page, "tab-of-messages")
    expect(page.locator("[data-test=none]")).to_contain_text("No ready messages.")


def test_tries_become_rarer_up_to_a_bound(site, broker):
    page = site.new_page()
    page.clock.install()
    page.goto(site.url)
    page.fill("[data-test=user]", "guest")
    page.fill("[data-test=password]", "guest")
    page.click("[data-test=login-submit]")
    page.wait_for_selector("[data-test=user-menu]")
    broker.kill()
    ask_now(page)
    pauses = []
    for _ in range(8):
        expect(page.locator(AWAY)).to_contain_text(re.compile(r"Next try in \d+ s"))
        left = int(re.search(r"in (\d+) s", page.inner_text(AWAY))[1])
        pauses.append(left)
        with page.expect_request("**/api/whoami"):
            page.clock.fast_forward(left * 1000)
    assert pauses == sorted(pauses) and pauses[0] <= 2 and pauses[-1] == pauses[-2] == 10, pauses
    broker.start_again()


def test_a_stopped_node_says_so_and_comes_back(site, broker):
    page = site.log_in(at="#/queues")
    act(broker, "stop_app")
    ask_now(page)
    expect(page.locator("[data-test=stopped]")).to_contain_text("This node is stopped and serves no clients.")
    expect(page.locator(AWAY)).to_contain_text(NEXT_TRY)
    site.go(page, "#/exchanges")
    expect(page.locator(AWAY)).to_have_count(1)
    act(broker, "start_app")
    is_back(page, "exchanges")
    expect(page.locator("main")).to_contain_text("amq.topic")


def test_a_proxy_that_finds_no_broker_is_waited_for(proxied, proxy):
    page = proxied.log_in(at="#/queues")
    expect(page.locator("main")).to_contain_text("kept")
    for status, words in [(502, "502 Bad Gateway"), (503, "503 Service Unavailable"), (504, "504 Gateway Timeout")]:
        proxy.status = status
        ask_now(page)
        is_away(page, f": a proxy answered {words}")
        # What was there stays, paler.
        expect(page.locator("main .is-stale")).to_contain_text("kept")
        proxy.status = None
        # The first comes back by itself, the others at once.
        if status != 502:
            ask_now(page)
        is_back(page, "queues")


def test_an_answer_that_is_cut_off_is_none(proxied, proxy):
    page = proxied.log_in(at="#/queues")
    for fault in ["cut", "short"]:
        proxy.fault = fault
        ask_now(page)
        is_away(page, ": the answer was cut off")
        proxy.fault = None
        if fault != "cut":
            ask_now(page)
        is_back(page, "queues")
        expect(page.locator("main")).to_contain_text("kept")


def test_an_answer_that_never_comes_is_not_waited_for(proxied, proxy):
    page = proxied.new_page()
    page.clock.install()
    page.goto(f"{proxied.url}/#/queues")
    page.fill("[data-test=user]", "guest")
    page.fill("[data-test=password]", "guest")
    page.click("[data-test=login-submit]")
    expect(page.locator("main")).to_contain_text("kept")
    proxy.fault = "silent"
    with page.expect_request("**/api/exchanges**"):
        proxied.go(page, "#/exchanges")
    page.clock.fast_forward(16_000)
    is_away(page, ": no answer for 15 s")
    expect(page.locator("main")).not_to_contain_text("Loading")
    proxy.fault = None
    page.click("[data-test=try-now]")
    is_back(page, "exchanges")
    expect(page.locator("main")).to_contain_text("amq.topic")


def test_kept_connections_that_died_are_not_noticed(proxied, proxy):
    page = proxied.log_in(at="#/queues")
    expect(page.locator("main")).to_contain_text("kept")
    page.evaluate("""() => {
        window.seen = 0;
        new MutationObserver(() => { window.seen += document.querySelectorAll("[data-test=away]").length })
            .observe(document.body, { childList: true, subtree: true });
    }""")
    proxy.fault = "drop"
    for at, sign in [("exchanges", "exchanges"), ("connections", "connections"), ("queues", "queues")]:
        proxied.go(page, f"#/{at}")
        is_back(page, sign)
        ask_now(page)
    assert proxy.dropped > 0 and page.evaluate("window.seen") == 0


def test_a_page_that_loads_while_the_broker_goes_away_starts_later(proxied, proxy):
    page = proxied.new_page()
    page.route("**/js/pages/queues.js", lambda route: route.abort())
    page.goto(f"{proxied.url}/#/queues")
    expect(page.locator(AWAY)).to_contain_text(re.compile(r"Next try in \d+ s\."))
    page.unroute("**/js/pages/queues.js")
    page.wait_for_selector("[data-test=login]")


def test_an_action_that_fails_for_want_of_the_broker_leaves_nothing_to_close(site, broker):
    page = site.log_in(at=f"#/queues/{segment('/', 'kept')}")
    page.clock.install()
    page.click("[data-test=purge]")
    broker.kill()
    page.click("[data-test=confirm-yes]")
    expect(page.locator("[data-test=error]")).to_contain_text("Whether the change was made is not known.")
    broker.start_again()
    expect(page.locator(AWAY)).to_have_count(0)
    page.clock.fast_forward(11_000)
    is_back(page, "queue")


def test_a_changed_password_asks_for_a_login_and_shows_the_same_page(site_of, lasting, name):
    site = site_of(lasting)
    put_user(lasting, name, "first", "administrator")
    permit(lasting, name)
    page = site.log_in(name, "first", at="#/exchanges?name=kept")
    expect(page.locator("main")).to_contain_text("kept")
    page.click("[data-test=add]")
    put_user(lasting, name, "second", "administrator")
    ask_now(page)
    expect(page.locator("[data-test=login]")).to_contain_text("The broker does not accept this login any more: log in again.")
    expect(page.locator("dialog")).to_have_count(0)
    page.fill("[data-test=user]", name)
    page.fill("[data-test=password]", "second")
    page.click("[data-test=login-submit]")
    expect(page.locator("[data-test=exchanges] tbody tr").first).to_contain_text("kept")
    assert page.evaluate("location.hash") == "#/exchanges?name=kept"


def test_a_deleted_user_is_asked_for_a_login(site_of, lasting, name):
    site = site_of(lasting)
    put_user(lasting, name, name, "monitoring")
    page = site.log_in(name, at="#/nodes")
    lasting.api.do("DELETE", f"/api/users/{name}")
    ask_now(page)
    expect(page.locator("[data-test=login]")).to_contain_text("The broker does not accept this login any more: log in again.")
    assert page.evaluate("location.hash") == "#/nodes"


def test_changed_tags_and_permissions_are_followed(site_of, lasting, name):
    site = site_of(lasting)
    put_user(lasting, name, name, "monitoring")
    permit(lasting, name)
    page = site.log_in(name, at="#/nodes")
    expect(page.locator("[data-test=nodes] tbody a")).to_have_count(1)
    put_user(lasting, name, name, "management")
    ask_now(page)
    expect(page.locator("[data-test=no-tag]")).to_contain_text("You need the tag monitoring for this page.")
    expect(page.locator("[data-test=nav-nodes]")).to_have_count(0)
    site.go(page, f"#/queues/{segment('/', 'kept')}")
    expect(page.locator("[data-test=life]")).to_be_visible()
    lasting.api.do("DELETE", f"/api/permissions/%2F/{name}")
    ask_now(page)
    expect(page.locator("[data-test=gone]")).to_have_text("You have no access to virtual host /.")
    permit(lasting, name)
    ask_now(page)
    expect(page.locator("[data-test=life]")).to_be_visible()
    # Without any tag the page is over.
    put_user(lasting, name, name, "")
    ask_now(page)
    expect(page.locator("[data-test=login]")).to_contain_text("Your user lacks the tag management")


def test_a_new_version_replaces_the_page(proxied, proxy):
    page = proxied.log_in(at="#/queues")
    # What is being typed is not taken away.
    page.click("[data-test=add]")
    page.fill("[data-test=form-name]", "typed")
    proxy.tag = '"another"'
    ask_now(page)
    expect(page.locator("[data-test=outdated]")).to_contain_text("The broker was updated.")
    expect(page.locator("[data-test=form-name]")).to_have_value("typed")
    page.keyboard.press("Escape")
    with page.expect_event("load"):
        proxied.go(page, "#/exchanges")
    page.wait_for_selector("[data-test=user-menu]")
    expect(page.locator("[data-test=notes]")).to_contain_text("The broker was updated")
    is_back(page, "exchanges")
    expect(page.locator("[data-test=outdated]")).to_have_count(0)
    # Nothing is typed: it is replaced at once. Two versions in turn make no loop.
    other = proxied.log_in(at="#/queues")
    proxy.tag = '"third"'
    with other.expect_event("load"):
        ask_now(other)
    other.wait_for_selector("[data-test=user-menu]")
    proxy.tag = '"fourth"'
    ask_now(other)
    expect(other.locator("[data-test=outdated]")).to_be_visible()


def put_user(broker, name, password, tags):
    broker.api.do("PUT", f"/api/users/{name}", {"password": password, "tags": tags})


def permit(broker, name):
    broker.api.do("PUT", f"/api/permissions/%2F/{name}", {"configure": ".*", "write": ".*", "read": ".*"})


def act(broker, action):
    """Stops or starts the node, as leveretctl does."""
    found = json.loads((broker.data_dir / "ctl.json").read_text())
    token = f"Bearer {found['token']}"
    path = f"/api/nodes/{segment(found['node'])}/actions"
    answer = broker.api.ask(path, user=None, method="POST", body={"action": action}, authorization=token)
    assert answer.status == 204, answer.text
