"""Users who lack something, things that are gone, odd names and large bodies: each gets its sentence."""

import pika
import pytest
from playwright.sync_api import expect

import places
from browsing import ask_now, segment
from clients import connect

# Pages with the tag that each needs; those for any tag, as far as they are lists.
TAGGED = [(places.example(pattern), tag) for pattern, tag in places.routes() if tag]
OPEN = [pattern for pattern, tag in places.routes() if not tag and ":" not in pattern]
# Pages of things that are not there, and the sentence of each.
GONE = [
    (f"queues/{segment('/', 'nope')}", "This queue does not exist (any more)."),
    (f"queues/{segment('nowhere', 'nope')}", "The virtual host nowhere does not exist (any more)."),
    (f"exchanges/{segment('/', 'nope')}", "This exchange does not exist (any more)."),
    ("connections/nope", "This connection does not exist (any more)."),
    ("channels/nope", "This channel does not exist (any more)."),
    ("admin/users/nope", "This user does not exist (any more)."),
    ("admin/vhosts/nope", "This vhost does not exist (any more)."),
    (f"admin/policies/policies/{segment('/', 'nope')}", "This policy does not exist (any more)."),
    (f"admin/policies/operator-policies/{segment('/', 'nope')}", "This policy does not exist (any more)."),
    ("nodes/nope", "This node does not exist."),
    ("redrives/nope", "This redrive does not exist."),
]
TWO_SPACES = "a b  c"
ODD = "\u202eabc\u200b\t" + "\u00fc\u4e2d\U0001f407" * 26 + "<b>%2F#?&\""
BODY_BYTES = 16 * 1024 * 1024


def user(broker, name, tags, vhost=None):
    """A user with tags, and with permissions in a vhost."""
    broker.api.do("PUT", f"/api/users/{name}", {"password": name, "tags": tags})
    if vhost:
        broker.api.do("PUT", f"/api/permissions/{segment(vhost)}/{name}", {"configure": ".*", "write": ".*", "read": ".*"})


def settled(page):
    """Waits until nothing on the page is being waited for, and nothing went wrong."""
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Loading")
    expect(page.locator("[data-test=error], [data-test=stale], [data-test=fault], [data-test=away]")).to_have_count(0)


@pytest.mark.parametrize("tags, vhost", [("management", "/"), ("management", None), ("policymaker", "/"), ("monitoring", None)])
def test_users_are_told_what_they_lack(site_of, busy_broker, name, tags, vhost):
    site = site_of(busy_broker)
    user(busy_broker, name, tags, vhost)
    busy_broker.api.do("PUT", "/api/queues/%2F/kept", {"durable": True})
    page = site.log_in(name)
    for at, tag in TAGGED:
        if tag == tags:
            continue
        site.go(page, f"#/{at}")
        expect(page.locator("[data-test=no-tag]")).to_have_text(f"You need the tag {tag} for this page.")
        # Nothing is offered that would be refused.
        expect(page.locator("main button, main form, main table, main select")).to_have_count(0)
    node = busy_broker.api.do("GET", "/api/overview")["node"]
    for at in [*OPEN, *(at.replace("NODE", segment(node)) for at, tag in TAGGED if tag == tags)]:
        site.go(page, f"#/{at}")
        page.wait_for_function("at => location.hash === at", arg=f"#/{at}")
        settled(page)
        for raw in ("Not monitor user", "Not administrator user", "not authorised", "does not exist"):
            expect(page.locator("main")).not_to_contain_text(raw)
    expect(page.locator("[data-test=no-vhosts]")).to_have_count(0 if vhost or tags == "monitoring" else 1)
    for kind in ("queues", "exchanges"):
        site.go(page, f"#/{kind}/{segment('private', 'secret')}")
        expect(page.locator("[data-test=gone]")).to_have_text("You have no access to virtual host private.")
        expect(page.locator("main button, main select")).to_have_count(0)


@pytest.mark.parametrize("tags, words", [("", "Your user lacks the tag management"), ("policymaker", None)])
def test_a_login_without_a_tag_is_refused_in_words(site_of, busy_broker, name, tags, words):
    site = site_of(busy_broker)
    user(busy_broker, name, tags)
    page = site.new_page()
    page.goto(site.url)
    page.fill("[data-test=user]", name)
    for password in ("wrong", name):
        page.fill("[data-test=password]", password)
        page.click("[data-test=login-submit]")
        if password == "wrong":
            expect(page.locator("[data-test=login-error]")).to_have_text("Wrong user name or password.")
    if words:
        expect(page.locator("[data-test=login-error]")).to_contain_text(words)
    else:
        expect(page.locator("[data-test=no-vhosts]")).to_contain_text("You have no access to any virtual host")


def test_pages_of_things_that_are_not_there_have_only_the_sentence(site_of, busy_broker):
    site = site_of(busy_broker)
    page = site.log_in()
    for at, sentence in GONE:
        site.go(page, f"#/{at}")
        expect(page.locator("[data-test=gone]")).to_contain_text(sentence)
        expect(page.locator("main button, main select, main form, main table, main canvas")).to_have_count(0)


def test_a_thing_that_goes_while_it_is_shown_is_said_to_be_gone(site_of, busy_broker, name):
    site = site_of(busy_broker)
    page = site.log_in()
    for kind, body in [("queues", {"durable": True}), ("exchanges", {"type": "fanout"})]:
        url = f"/api/{kind}/%2F/{name}"
        busy_broker.api.do("PUT", url, body)
        site.go(page, f"#/{kind}/{segment('/', name)}")
        expect(page.locator("[data-test=delete]")).to_be_visible()
        busy_broker.api.do("DELETE", url)
        ask_now(page)
        expect(page.locator("[data-test=gone]")).to_contain_text("does not exist")
        expect(page.locator("main button, main select")).to_have_count(0)
        # It is there again.
        busy_broker.api.do("PUT", url, body)
        ask_now(page)
        expect(page.locator("[data-test=delete]")).to_be_visible()
        busy_broker.api.do("DELETE", url)


def test_names_are_shown_as_they_are(site_of, busy_broker):
    api = busy_broker.api
    api.do("PUT", f"/api/vhosts/{segment(TWO_SPACES)}")
    for odd in (TWO_SPACES, ODD):
        assert len(odd.encode()) <= 255
        api.do("PUT", f"/api/queues/%2F/{segment(odd)}", {"durable": True})
        api.do("PUT", f"/api/exchanges/%2F/{segment(odd)}", {"type": "fanout"})
        api.do("PUT", f"/api/policies/%2F/{segment(odd)}", {"pattern": "^nothing$", "definition": {"max-length": 1}})
    api.do("POST", f"/api/bindings/%2F/e/{segment(TWO_SPACES)}/q/{segment(TWO_SPACES)}", {})
    api.do("PUT", f"/api/users/{segment(TWO_SPACES)}", {"password": "p", "tags": "management"})
    site = site_of(busy_broker)
    page = site.log_in()
    # innerText is what can be seen: with two spaces only where they are kept.
    shown = "selector => [...document.querySelectorAll(selector)].map((one) => one.innerText)"
    for at, selector in [
        ("queues?name=a b", "tbody a"), ("exchanges?name=a b", "tbody a"), ("admin/policies", "tbody a"),
        ("admin/users", "tbody a"), ("admin/vhosts", "tbody a"), (f"queues/{segment('/', TWO_SPACES)}", "h1"),
        (f"queues/{segment('/', TWO_SPACES)}/bindings", "tbody a"), (f"exchanges/{segment('/', TWO_SPACES)}", "tbody a"),
        (f"queues/{segment(TWO_SPACES, 'nope')}", "p.crumbs span"),
    ]:
        site.go(page, f"#/{at}")
        page.locator(selector, has_text=TWO_SPACES).first.wait_for()
        assert TWO_SPACES in page.evaluate(shown, selector), at
    # A row that was clicked on is shown whole, and with its spaces.
    site.go(page, "#/queues?name=a b")
    row = page.locator("tbody tr", has_text=TWO_SPACES)
    row.locator("td").nth(2).click()
    expect(row).to_have_class("is-open")
    assert TWO_SPACES in row.evaluate("row => row.innerText")
    vhosts = page.locator("[data-test=vhost] option").evaluate_all("all => all.map((one) => one.label)")
    assert TWO_SPACES in vhosts
    # What cannot be seen has a sign, no name breaks its row, and none is wider than the page.
    visible = ODD.replace("\u202e", "\u27e8U+202E\u27e9").replace("\u200b", "\u27e8U+200B\u27e9").replace("\t", "\u2409")
    for at, selector in [("queues", "tbody a"), (f"queues/{segment('/', ODD)}", "h1"), (f"exchanges/{segment('/', ODD)}", "h1")]:
        site.go(page, f"#/{at}")
        expect(page.locator(selector, has_text=visible).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, at
    for odd in (TWO_SPACES, ODD):
        api.do("DELETE", f"/api/queues/%2F/{segment(odd)}")
        api.do("DELETE", f"/api/policies/%2F/{segment(odd)}")


def test_a_large_body_is_shown_in_part(site_of, busy_broker, name):
    connection = connect(busy_broker)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True)
    for body in (b"x" * BODY_BYTES, bytes(range(256)) * (BODY_BYTES // 256)):
        channel.basic_publish("", name, body)
    connection.close()
    page = site_of(busy_broker).log_in(at=f"#/queues/{segment('/', name)}/messages")
    for number, form in enumerate(["text", "hex"]):
        page.locator("[data-test=open]").nth(number).click()
        one = page.locator("[data-test=message]").nth(number)
        expect(one).to_contain_text("of 16 MiB.")
        expect(one.locator(f"[data-test=as-{form}]")).to_have_attribute("aria-pressed", "true")
        page.locator("[data-test=open]").nth(number).click()
    busy_broker.api.do("DELETE", f"/api/queues/%2F/{name}")


def test_a_crash_leaves_deliveries_in_doubt(site_of, broker, name):
    connection = connect(broker)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True)
    for body in (b"a", b"b"):
        channel.basic_publish("", name, body, pika.BasicProperties(delivery_mode=2))
    broker.kill_and_start_again()
    connection = connect(broker)
    channel = connection.channel()
    method, _, _ = channel.basic_get(name)
    channel.basic_reject(method.delivery_tag, requeue=True)
    connection.close()
    messages = broker.api.do("GET", f"/api/queues/%2F/{name}/messages")["messages"]
    assert [(one["redelivered"], one["redelivered_uncertain"]) for one in messages] == [(True, False), (True, True)]
    page = site_of(broker).log_in(at=f"#/queues/{segment('/', name)}/messages")
    for number, words in enumerate(["yes", "perhaps (broker crashed)"]):
        page.locator("[data-test=open]").nth(number).click()
        expect(page.locator("[data-test=delivered-before]").nth(number)).to_contain_text(words)


def test_actions_without_a_permission_are_not_offered(site_of, busy_broker, name):
    api = busy_broker.api
    api.do("PUT", "/api/queues/%2F/kept", {"durable": True})
    api.do("PUT", "/api/exchanges/%2F/kept", {"type": "fanout"})
    api.do("PUT", f"/api/users/{name}", {"password": name, "tags": "management"})
    site = site_of(busy_broker)
    page = site.log_in(name)

    def is_refused(at, sign, words, button):
        site.go(page, f"#/{at}")
        expect(page.locator(f"[data-test={sign}]")).to_contain_text(words)
        expect(page.locator(button)).to_have_count(0)

    # Without a vhost.
    for kind, what in [("queues", "a queue"), ("exchanges", "an exchange")]:
        is_refused(kind, "cannot-add", f"Adding {what} needs the permission to configure in any virtual host.", "[data-test=add]")
    # With one, but without the permissions; the broker would refuse each.
    api.do("PUT", f"/api/permissions/%2F/{name}", {"configure": "", "write": "^orders", "read": "^orders"})
    # The tag administrator does not replace a permission.
    for tags in ["administrator", "management"]:
        api.do("PUT", f"/api/users/{name}", {"password": name, "tags": tags})
        assert api.ask("/api/queues/%2F/more", user=name, method="PUT", body={}).status in (401, 403)
    ask_now(page)
    for kind in ["queues", "exchanges"]:
        is_refused(kind, "cannot-add", "needs the permission to configure", "[data-test=add]")
    queue = f"queues/{segment('/', 'kept')}"
    is_refused(queue, "cannot-purge", "A purge needs the permission to read kept in virtual host /.", "[data-test=purge]")
    is_refused(queue, "cannot-delete", "Deletion needs the permission to configure kept", "[data-test=delete]")
    is_refused(f"{queue}/publish", "cannot-publish", "Publishing needs the permission to write amq.default", "[data-test=publish-form]")
    is_refused(f"{queue}/publish", "cannot-get", "Getting messages needs the permission to read kept", "[data-test=get-form]")
    is_refused(f"{queue}/bindings", "cannot-bind", "Adding a binding needs the permission to write kept", "[data-test=bind-form]")
    exchange = f"exchanges/{segment('/', 'kept')}"
    is_refused(exchange, "cannot-delete", "Deletion needs the permission to configure kept", "[data-test=delete]")
    is_refused(exchange, "cannot-publish", "Publishing needs the permission to write kept", "[data-test=publish-form]")
    is_refused(exchange, "cannot-bind", "Adding a binding needs the permission to read or write kept", "[data-test=bind-form]")
    api.do("PUT", "/api/queues/%2F/kept.dead", {"durable": True})
    api.do("PUT", "/api/queues/%2F/kept.source", {"arguments": {"x-dead-letter-exchange": "kept", "x-message-ttl": 1}})
    api.do("POST", "/api/bindings/%2F/e/kept/q/kept.dead", {"routing_key": "all"})
    is_refused(exchange, "cannot-unbind", "no permission", "[data-test=unbind]")
    api.do("POST", "/api/exchanges/%2F/amq.default/publish", {"routing_key": "kept.source", "payload": "x", "payload_encoding": "string", "properties": {}})
    is_refused("dead-letters/queues", "cannot-redrive", "no permission", "[data-test=redrive]")
    # Half of the permissions: only the directions that they allow.
    api.do("PUT", f"/api/permissions/%2F/{name}", {"configure": "", "write": "^kept$", "read": "^orders"})
    ask_now(page)
    is_refused(exchange, "cannot-unbind", "no permission", "[data-test=unbind]")
    expect(page.locator("[data-test=bind-direction] option")).to_have_text(["from an exchange"])
    expect(page.locator("[data-test=bind-form]")).to_contain_text("From exchange")
    # They are offered as soon as there are permissions, in the vhosts that have them.
    api.do("PUT", f"/api/vhosts/{name}")
    api.do("PUT", f"/api/permissions/{name}/{name}", {"configure": "", "write": ".*", "read": ".*"})
    api.do("PUT", f"/api/permissions/%2F/{name}", {"configure": "^k", "write": ".*", "read": ".*"})
    ask_now(page)
    site.go(page, f"#/{exchange}")
    expect(page.locator("[data-test=unbind]")).to_have_count(1)
    expect(page.locator("[data-test=bind-direction] option")).to_have_count(3)
    expect(page.locator("[data-test=delete], [data-test=publish-form]")).to_have_count(2)
    site.go(page, "#/queues")
    page.click("[data-test=add]")
    expect(page.locator("[data-test=form-vhost] option")).to_have_text(["/"])
    api.do("DELETE", f"/api/vhosts/{name}")


def test_a_policymaker_without_a_vhost_is_offered_no_policy(site_of, busy_broker, name):
    user(busy_broker, name, "policymaker")
    page = site_of(busy_broker).log_in(name, at="#/admin/policies")
    expect(page.locator("[data-test=no-vhosts]")).to_be_visible()
    expect(page.locator("[data-test=add-policies]")).to_have_count(0)
