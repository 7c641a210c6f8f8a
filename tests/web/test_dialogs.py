"""All dialogs of the page: where the focus begins, that it stays in them and returns, and what asks first."""

import collections
import json
import pathlib
import re

import pika
import pytest
from playwright.sync_api import expect

from browsing import segment
from clients import connect
from patience import becomes
from test_admin import get, hook, says

CODE = pathlib.Path(__file__).parents[2] / "crates" / "management" / "web" / "js"
CALL = re.compile(r"\b(?:openDialog|confirm)\((?:\(|\{)")

# Where the focus begins: Cancel, the first field, or what else there is.
CANCEL, FIRST, BUTTON = "cancel", "first", "button"

Case = collections.namedtuple("Case", "module at opener focus before", defaults=[None])


def fill(**fields):
    """Fills fields before a form is sent that asks."""
    def before(page):
        for name, value in fields.items():
            field = page.locator(hook(name.replace("_", "-")))
            kind = field.evaluate("element => element.type")
            if kind == "checkbox":
                field.check()
            elif kind == "select-one":
                field.select_option(value)
            else:
                field.fill(value)
    return before


def choose_file(page):
    file = {"name": "shop.json", "mimeType": "application/json", "buffer": json.dumps({"queues": [{"vhost": "/", "name": "of-file"}]}).encode()}
    page.set_input_files(hook("import-file"), file)
    page.wait_for_selector(hook("import-contents"))


def short_policy(page):
    """A policy under which messages leave."""
    fill(policy_name="short", policy_pattern="^q$")(page)
    page.click(hook("key-max-length"))
    page.fill(hook("value-max-length"), "1")
    page.wait_for_selector(f"{hook('dry-run-fates')} li")


Q, X, V = f"queues/{segment('/', 'q')}", f"exchanges/{segment('/', 'x')}", "admin/vhosts/v"
CASES = {
    "purge a queue": Case("pages/queue/index.js", Q, hook("purge"), CANCEL),
    "alert rules of a queue": Case("parts/alert-rule.js", Q, hook("alert-rules"), FIRST),
    "delete a queue": Case("pages/queue/index.js", Q, hook("delete"), CANCEL),
    "get and remove": Case("pages/queue/publish.js", f"{Q}/publish", f"{hook('get-form')} {hook('submit')}", CANCEL, fill(get_mode="ack_requeue_false")),
    "unbind": Case("parts/bindings.js", f"{Q}/bindings", hook("unbind"), CANCEL),
    "redrive": Case("parts/redrive-dialog.js", f"{Q}/messages", hook("redrive-all"), FIRST),
    "messages by reason": Case("parts/given-reasons.js", f"{Q}/messages", hook("reasons"), CANCEL),
    "add a queue": Case("pages/queues.js", "queues", hook("add"), FIRST),
    "cancel a scheduled message": Case("pages/scheduled/actions.js", "scheduled", hook("cancel"), CANCEL),
    "deliver a scheduled message": Case("pages/scheduled/actions.js", "scheduled", hook("deliver"), BUTTON),
    "reschedule a message": Case("pages/scheduled/actions.js", "scheduled", hook("reschedule"), FIRST),
    "cancel all scheduled messages": Case("pages/scheduled/list.js", "scheduled", hook("cancel-all"), CANCEL),
    "add an exchange": Case("pages/exchanges.js", "exchanges", hook("add"), FIRST),
    "delete an exchange": Case("pages/exchange.js", X, hook("delete"), CANCEL),
    "close a connection": Case("pages/connection.js", "CONNECTION", hook("close"), CANCEL),
    "add a user": Case("pages/admin/users.js", "admin/users", hook("add-user"), FIRST),
    "delete a user": Case("pages/admin/user.js", "admin/users/ann", hook("delete"), CANCEL),
    "remove a password": Case("pages/admin/user.js", "admin/users/ann", f"{hook('password-form')} {hook('submit')}", CANCEL, fill(no_password=True)),
    "add a vhost": Case("pages/admin/vhosts.js", "admin/vhosts", hook("add-vhost"), FIRST),
    "delete a vhost": Case("pages/admin/vhost.js", V, hook("delete"), FIRST),
    "set permissions": Case("parts/access.js", "admin/users/ann", f"{hook('permissions')} {hook('add')}", FIRST),
    "change topic permissions": Case("parts/access.js", "admin/users/ann", f"{hook('topic-permissions')} {hook('edit')}", FIRST),
    "remove permissions": Case("parts/access.js", V, f"{hook('permissions')} {hook('remove')}", CANCEL),
    "delete a policy": Case("pages/admin/policies.js", "admin/policies", f"{hook('policies')} {hook('delete')}", CANCEL),
    "save a policy": Case("pages/admin/policy.js", "admin/policies/new", hook("submit"), CANCEL, short_policy),
    "add a parameter": Case("pages/admin/parameters.js", "admin/parameters", f"{hook('global-parameters')} {hook('add')}", FIRST),
    "delete a parameter": Case("pages/admin/parameters.js", "admin/parameters", f"{hook('global-parameters')} {hook('remove')}", CANCEL),
    "import": Case("parts/import-preview.js", "admin/definitions", f"{hook('import-form')} {hook('submit')}", CANCEL, choose_file),
    "import into a vhost": Case("parts/import-preview.js", V, f"{hook('import-form')} {hook('submit')}", CANCEL, choose_file),
    "reset the login counters": Case("pages/admin/logins.js", "admin/logins", hook("reset"), CANCEL),
    "reset the statistics": Case("parts/reset-statistics.js", "", hook("reset-all"), CANCEL),
    "start tracing": Case("parts/tracing.js", V, hook("switch-tracing"), BUTTON),
    "help": Case("parts/help.js", "queues", hook("list-help"), BUTTON),
    "keyboard": Case("keys.js", "", None, BUTTON),
}
FOCUS = """() => {
  const dialog = document.querySelector("dialog[open]"), now = document.activeElement;
  if (!dialog?.contains(now)) return "outside: " + now.outerHTML.slice(0, 80);
  if (now.hasAttribute("data-cancel")) return "cancel";
  const visible = [...dialog.querySelectorAll("input, select, textarea")].filter((field) => field.checkVisibility());
  const isChoice = now.type === "radio" && now.checked;
  return now === visible[0] || isChoice || now.autofocus ? "first" : "button";
}"""


@pytest.fixture(scope="module")
def shop(busy_broker):
    """Something of every kind, so that every dialog can be opened."""
    api, connection = busy_broker.api, connect(busy_broker)
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    channel.queue_declare("dying", durable=True, arguments={"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "q"})
    channel.exchange_declare("x", durable=True)
    channel.queue_bind("q", "x", "q")
    for _ in range(3):
        channel.basic_publish("", "dying", b"m", pika.BasicProperties(expiration="0"))
    later = {"x-opt-delivery-delay": 86_400_000, "x-schedule-id": "later"}
    channel.basic_publish("", "q", b"m", pika.BasicProperties(headers=later))
    api.do("PUT", "/api/vhosts/v")
    api.do("PUT", "/api/users/ann", {"password": "ann", "tags": "management"})
    for vhost in ("%2F", "v"):
        api.do("PUT", f"/api/permissions/{vhost}/ann", {"configure": "", "write": "", "read": ".*"})
    api.do("PUT", "/api/topic-permissions/%2F/ann", {"exchange": "amq.topic", "write": "a", "read": "b"})
    api.do("PUT", "/api/policies/%2F/TTL", {"pattern": "^q$", "definition": {"message-ttl": 60_000_000}})
    api.do("PUT", "/api/global-parameters/owner", {"value": "sms"})
    becomes(lambda: get(busy_broker, "queues/%2F/q")["messages_ready"], 3)
    yield channel
    connection.close()


def test_every_dialog_has_a_case():
    found = collections.Counter()
    for file in CODE.rglob("*.js"):
        name = file.relative_to(CODE).as_posix()
        if calls := len(CALL.findall(file.read_text())) - (name == "dialog.js"):
            found[name] = calls
    found.pop("dialog.js", None)
    # Those of a cluster are in test_cluster.py.
    for module in ("parts/leads.js", "parts/membership.js", "parts/placement.js"):
        found.pop(module, None)
    cases = collections.Counter(case.module for case in CASES.values())
    missing = {name: calls for name, calls in found.items() if cases[name] < calls}
    assert not missing, f"dialogs without a case in CASES, by module: {missing}"


def opened(page, case):
    """Opens the dialog of a case by the keyboard; gives the button that did, if one did."""
    if case.before:
        case.before(page)
    if case.opener is None:
        page.keyboard.press("?")
        button = None
    else:
        # The page may be drawn anew until its data are there: the key goes to the button that has the focus then.
        opener = page.locator(case.opener).first
        expect(opener).to_be_enabled()
        opener.focus()
        expect(opener).to_be_focused()
        button = opener.element_handle()
        page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    return button


def test_focus_of_all_dialogs(site_of, busy_broker, shop):
    page = site_of(busy_broker).log_in()
    changes = []
    page.on("request", lambda request: request.method in ("PUT", "DELETE", "POST") and not re.search("dry.run|redrive", request.url)
            and changes.append(f"{request.method} {request.url}"))
    connection = get(busy_broker, "connections")[0]["name"]
    faults = []
    for title, case in CASES.items():
        page.evaluate("at => { location.hash = at }", "#/health")
        page.wait_for_selector("main h1:text('Health')")
        page.evaluate("at => { location.hash = at }", f"#/{case.at.replace('CONNECTION', 'connections/' + segment(connection))}")
        page.wait_for_selector("main h1:not(:text('Health'))")
        button = opened(page, case)
        if (focus := page.evaluate(FOCUS)) != case.focus:
            faults.append(f"{title}: the focus begins at {focus}, not {case.focus}")
        # Round the ends: from the button that closes it, which is the first, to the last, and back.
        for key in ["Shift+Tab", "Tab"]:
            page.evaluate("isFirst => isFirst && document.querySelector('dialog[open] header button').focus()", key == "Shift+Tab")
            page.keyboard.press(key)
            if page.evaluate(FOCUS).startswith("outside"):
                faults.append(f"{title}: {key} leaves it")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        back = page.evaluate("button => button ? document.activeElement === button : document.activeElement.tagName === 'H1'", button)
        if not back:
            faults.append(f"{title}: the focus does not return, but goes to " + page.evaluate("document.activeElement.outerHTML.slice(0, 120)"))
        if case.focus == CANCEL:
            # Enter twice, as by a hasty user: Cancel, and perhaps the dialog again.
            page.keyboard.press("Enter")
            page.wait_for_selector("dialog[open]")
            page.keyboard.press("Enter")
            page.wait_for_selector("dialog", state="detached")
    assert not faults, "\n".join(faults)
    assert changes == []


def test_enter_submits_where_that_is_safe(site_of, busy_broker, shop, name):
    page = site_of(busy_broker).log_in(at="#/admin/vhosts")
    page.click(hook("add-vhost"))
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.wait_for_selector(hook("page-vhost"))
    assert get(busy_broker, f"vhosts/{name}")["name"] == name
    # Where a name is typed, Enter does what is asked for, and nothing before.
    page.click(hook("delete"))
    says(page, hook("consequences"), "0 queues with 0 messages", "1 permission is removed")
    page.keyboard.type(name[:-1])
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.type(name[-1])
    page.keyboard.press("Enter")
    page.wait_for_selector(hook("page-vhosts"))
    # The reason of a close is no place to send it from.
    connection = get(busy_broker, "connections")[0]["name"]
    page.evaluate("at => { location.hash = at }", f"#/connections/{segment(connection)}")
    page.click(hook("close"))
    says(page, hook("consequences"), "1 channel is closed")
    page.fill("dialog [name=reason]", "go")
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1 and shop.is_open
    page.keyboard.press("Escape")


def test_dialogs_end_with_their_page_and_login(site_of, busy_broker, shop):
    page = site_of(busy_broker).log_in(at="#/queues")
    page.click(hook("add"))
    page.wait_for_selector("dialog[open]")
    page.evaluate("location.hash = '#/exchanges'")
    page.wait_for_selector("dialog", state="detached")
    page.click(hook("add"))
    page.wait_for_selector("dialog[open]")
    page.evaluate("import('./js/session.js').then(({ leave }) => leave())")
    page.wait_for_selector(hook("login-submit"))
    assert page.locator("dialog").count() == 0


def test_focus_goes_to_the_title_when_the_button_is_gone(site_of, busy_broker, shop, name):
    busy_broker.api.do("PUT", f"/api/global-parameters/{name}", {"value": 1})
    page = site_of(busy_broker).log_in(at="#/admin/parameters")
    page.click(f"tr:has-text('{name}') {hook('remove')}")
    page.click(hook("confirm-yes"))
    page.wait_for_selector(f"tr:has-text('{name}')", state="detached")
    page.wait_for_function("document.activeElement.tagName === 'BODY' || document.activeElement.tagName === 'H1'")


def test_deletions_say_what_goes_with_them(site_of, busy_broker, shop, name):
    for what in (name, f"{name}.x"):
        shop.queue_declare(what, durable=True)
        shop.queue_bind(what, "amq.direct", what)
    shop.exchange_declare(name, durable=True)
    shop.queue_bind(f"{name}.x", name, "k")
    shop.queue_unbind(f"{name}.x", "amq.direct", f"{name}.x")
    shop.queue_declare(f"{name}.dies", durable=True, arguments={"x-dead-letter-exchange": name})
    shop.basic_publish("", name, b"1")
    shop.basic_publish("", name, b"2")
    shop.basic_get(name)
    becomes(lambda: get(busy_broker, f"queues/%2F/{name}").get("messages_unacknowledged"), 1)
    page = site_of(busy_broker).log_in(at=f"#/queues/{segment('/', name)}")
    page.wait_for_selector(f"{hook('unacked')}:has-text('1')")
    page.click(hook("purge"))
    says(page, hook("confirm"), "1 ready message is lost", "1 unacknowledged message of 2 stays")
    page.click(hook("confirm-yes"))
    becomes(lambda: get(busy_broker, f"queues/%2F/{name}")["messages"], 1)
    page.click(hook("delete"))
    says(page, hook("consequences"), "1 message is lost", "1 binding is removed")
    page.keyboard.press("Escape")
    page.evaluate("at => { location.hash = at }", f"#/exchanges/{segment('/', name)}")
    page.wait_for_selector(hook("exchange"))
    page.click(hook("delete"))
    says(page, hook("consequences"), "1 binding is removed", f"by name: {name}.x", "1 queue would lose dead letters", f"{name}.dies")
    page.click(hook("confirm-yes"))
    page.wait_for_selector(hook("exchanges"))
    assert busy_broker.api.ask(f"/api/exchanges/%2F/{name}").status == 404
    shop.basic_recover(requeue=True)


def test_many_messages_need_the_name(site_of, busy_broker, shop, name):
    shop.queue_declare(name)
    for _ in range(10_000):
        shop.basic_publish("", name, b"")
    becomes(lambda: get(busy_broker, f"queues/%2F/{name}").get("messages_ready"), 10_000)
    page = site_of(busy_broker).log_in(at=f"#/queues/{segment('/', name)}")
    page.click(hook("purge"))
    says(page, hook("confirm"), "10,000 ready messages are lost")
    expect(page.locator(hook("confirm-yes"))).to_be_disabled()
    page.keyboard.press("Escape")
    page.click(hook("delete"))
    expect(page.locator(f"dialog {hook('submit')}")).to_be_disabled()
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.wait_for_selector(hook("queues"))
    assert busy_broker.api.ask(f"/api/queues/%2F/{name}").status == 404


def test_import_shows_its_changes_first(site_of, busy_broker, shop, name, tmp_path):
    shop.queue_declare(name, durable=True)
    document = {
        "users": [{"name": "guest", "password": "guest", "tags": ["administrator", "shop"]}],
        "policies": [{"vhost": "/", "name": name, "pattern": f"^{name}$", "definition": {"max-length": 5}}],
        "queues": [{"vhost": "/", "name": name, "arguments": {"x-max-length": 5}}, {"vhost": "/", "name": f"{name}.new"}],
    }
    busy_broker.api.do("PUT", f"/api/policies/%2F/{name}", {"pattern": f"^{name}$", "definition": {"max-length": 4}})
    file = tmp_path / "shop.json"
    file.write_text(json.dumps(document))
    page = site_of(busy_broker).log_in(at="#/admin/definitions")
    page.set_input_files(hook("import-file"), file)
    page.click(f"{hook('import-form')} {hook('submit')}")
    says(page, hook("import-summary"), "1 new, 2 replaced", "1 existing queue or exchange has other properties and stays as it is")
    says(page, hook("import-own-user"), "guest")
    says(page, f"{hook('import-policies')} {hook('changed')}", "1")
    says(page, hook("import-items-changed"), "definition.max-length: 4 → 5", "tags")
    says(page, hook("import-items-kept"), "arguments.x-max-length: none, in the file 5")
    page.click("dialog >> text=Cancel")
    assert busy_broker.api.ask(f"/api/queues/%2F/{name}.new").status == 404
    page.click(f"{hook('import-form')} {hook('submit')}")
    page.click(f"{hook('import-question')} {hook('submit')}")
    page.wait_for_selector("dialog", state="detached")
    assert get(busy_broker, f"policies/%2F/{name}")["definition"] == {"max-length": 5}
    document["queues"].pop(0)
    file.write_text(json.dumps(document))
    page.set_input_files(hook("import-file"), file)
    page.click(f"{hook('import-form')} {hook('submit')}")
    says(page, hook("import-summary"), "This changes nothing")
    page.keyboard.press("Escape")
    busy_broker.api.do("PUT", "/api/users/guest", {"password": "guest", "tags": "administrator"})
    busy_broker.api.do("DELETE", f"/api/policies/%2F/{name}")


def die(channel, queue, dead, count):
    """Messages that have died in `queue` and are in `dead`."""
    channel.queue_declare(dead, durable=True)
    channel.queue_declare(queue, durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    for _ in range(count):
        channel.basic_publish("", queue, b"m", pika.BasicProperties(expiration="0"))


def test_redrive_of_many_proposes_a_rate(site_of, busy_broker, shop, name):
    die(shop, name, f"{name}.dead", 1001)
    becomes(lambda: get(busy_broker, f"queues/%2F/{name}.dead").get("messages_ready"), 1001)
    page = site_of(busy_broker).log_in(at=f"#/queues/{segment('/', f'{name}.dead')}/messages")
    page.click(hook("redrive-all"))
    says(page, hook("rate-proposed"), "More than 1,000 messages", "500 messages per second", "3 s")
    expect(page.locator("dialog [name=rate]")).to_have_value("500")
    page.click(hook("rate-none"))
    expect(page.locator("dialog [name=rate]")).to_have_value("")
    assert page.locator(hook("rate-proposed")).count() == 0
    page.fill("dialog [name=limit]", "5")
    says(page, hook("trial"), "5 of 5 matching messages", "996 more messages are beyond the limit")
    page.check(hook("to-queue"))
    page.fill(hook("target-queue"), "q")
    page.click(f"dialog {hook('submit')}:has-text('Redrive 5 messages')")
    page.wait_for_selector(f"{hook('redrive')} {hook('state')}:text('finished')")
    says(page, hook("not-examined"), "996", "Beyond the limit")


def test_messages_without_deaths_are_moved(site_of, busy_broker, shop, name):
    die(shop, f"{name}.dies", name, 0)
    shop.basic_publish("", name, b"never died")
    page = site_of(busy_broker).log_in(at=f"#/queues/{segment('/', name)}/messages", refresh_ms=1000)
    expect(page.locator(hook("redrive-all"))).to_have_text("Move all…")
    page.click(hook("redrive-all"))
    says(page, "dialog h2", f"Move from {name}")
    assert page.is_checked(hook("to-queue"))
    page.check(hook("to-origin"))
    says(page, hook("no-origin"), "1 has no origin")
    assert page.locator(hook("unroutable")).count() == 0
    page.keyboard.press("Escape")
    shop.basic_publish("", f"{name}.dies", b"m", pika.BasicProperties(expiration="0"))
    becomes(lambda: get(busy_broker, f"queues/%2F/{name}").get("messages_ready"), 2)
    page.click(hook("refresh"))
    expect(page.locator(hook("redrive-all"))).to_have_text("Redrive all…")
