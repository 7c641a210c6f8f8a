"""Names of 255 octets in several scripts: every button is inside the window and can be clicked, also on a phone."""

import pika
import pytest
from playwright.sync_api import expect

import places
from browsing import WIDE, segment
from clients import connect

PHONE = {"width": 390, "height": 844}
OCTETS_MAX = 255
HOUR_MS = 3_600_000


def long(text):
    """The text again and again, as long as a name may be."""
    octets = (text * OCTETS_MAX).encode()[:OCTETS_MAX]
    return octets.decode(errors="ignore")


LATIN, CYRILLIC, CJK, ARABIC = NAMES = [
    long("orders-of-tenant-0123456789"), long("\u043e\u0447\u0435\u0440\u0435\u0434\u044c-"), long("\u8a02\u55ae\u4f47\u5217"), long("\u0637\u0627\u0628\u0648\u0631-")]

# Every button with its row; a header moves with its column. What is beside it in a box is not scrolled to.
HIDDEN = """() => {
  const words = (one) => `${one.closest("[data-test]")?.dataset.test}: ${one.innerText.slice(0, 30)} at ${Math.round(one.getBoundingClientRect().left)}`;
  const isThere = (one) => {
    one.scrollIntoView({ block: "center", inline: "nearest" });
    for (let box = one.parentElement; box; box = box.parentElement) box.scrollLeft = 0;
    const { left, right, top, bottom } = one.getBoundingClientRect();
    if (left < 0 || right > document.documentElement.clientWidth) return false;
    return [left + 3, (left + right) / 2, right - 3].every((x) => one.contains(document.elementFromPoint(x, (top + bottom) / 2)));
  };
  const within = document.querySelector("dialog[open]") ?? document;
  return [...within.querySelectorAll("button, .button, summary, input, select, textarea, .tabs a")]
    .filter((one) => one.checkVisibility() && !one.closest("th"))
    .filter((one) => !isThere(one)).map(words);
}"""
# Headers whose text and arrow stand on two lines: buttons of one line are equally high.
TALL = """() => [...document.querySelectorAll("main th:not(:first-child) button")]
    .filter((one) => one.getBoundingClientRect().height > 30).map((one) => one.innerText)"""


@pytest.fixture(scope="module")
def named(busy_broker):
    """Queues, exchanges, policies, users, a vhost, a client, schedules and a redrive with long names."""
    api = busy_broker.api
    queue = lambda name, **arguments: {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": arguments}
    queues = [queue(name, **{"x-dead-letter-exchange": LATIN, "x-max-length": 1}) for name in NAMES]
    queues += [queue(long(f"dead-{n}-{name[:20]}")) for n, name in enumerate(NAMES)]
    api.do("PUT", f"/api/vhosts/{segment(LATIN)}", {"description": LATIN})
    api.do("PUT", f"/api/vhost-limits/{segment(LATIN)}/max-queues", {"value": 100})
    api.do("PUT", f"/api/global-parameters/{segment(LATIN)}", {"name": LATIN, "value": LATIN})
    exchanges = [{"name": name, "vhost": "/", "type": "fanout", "durable": True, "auto_delete": False, "internal": False, "arguments": {}} for name in NAMES]
    bindings = [{"vhost": "/", "source": LATIN, "destination": one["name"], "destination_type": "queue", "routing_key": one["name"], "arguments": {}}
                for one in queues[len(NAMES):]]
    policies = [{"vhost": "/", "name": name, "pattern": f"^{name}$", "apply-to": "queues", "priority": 0, "definition": {"max-length-bytes": 10_000}} for name in NAMES]
    api.do("POST", "/api/definitions", {"queues": queues, "exchanges": exchanges, "bindings": bindings, "policies": policies})
    for name in NAMES:
        api.do("PUT", f"/api/users/{segment(name)}", {"password": "p", "tags": "management"})
        api.do("PUT", f"/api/permissions/%2F/{segment(name)}", {"configure": ".*", "write": ".*", "read": ".*"})
    connection = connect(busy_broker, client_properties={"connection_name": CJK})
    channel = connection.channel()
    channel.confirm_delivery()
    for name in NAMES:
        for _ in range(3):
            channel.basic_publish("", name, name.encode(), pika.BasicProperties(headers={name[:100]: name, "x-reason": name[:60]}))
        later = {"x-opt-delivery-delay": HOUR_MS, "x-schedule-id": name}
        channel.basic_publish("", name, b"later", pika.BasicProperties(headers=later))
    channel.basic_consume(LATIN, lambda *_: None, consumer_tag=LATIN)
    api.do("POST", f"/api/queues/%2F/{segment(queues[-1]['name'])}/redrive", {"limit": 1})
    yield busy_broker, queues[len(NAMES)]["name"]
    channel.close()
    connection.close()


def visited(broker):
    """Every page with the sign that it is there; queues that have messages and those that are sources."""
    names = {"queue": LATIN, "exchange": LATIN, "policy": LATIN, "user": LATIN, "vhost": "/", "node": broker.api.do("GET", "/api/overview")["node"]}
    names |= {kind: broker.api.do("GET", f"/api/{kind}s")[0]["name"] for kind in ("connection", "channel")}
    names["redrive"] = broker.api.do("GET", "/api/redrives")[0]["id"]
    yield from places.named_pages(**names)
    yield "map-as-a-table", "dead-letters?view=table", "dead-letters"
    yield "vhost-with-long-name", f"admin/vhosts/{segment(LATIN)}", "page-vhost"


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["1280", "390"])
def test_every_button_is_in_the_window(named, site_of, screenshots, viewport):
    broker, _ = named
    page = site_of(broker).log_in(viewport=viewport)
    hidden = []
    for name, at, sign in visited(broker):
        page.evaluate("at => { location.hash = at }", f"#/{at}")
        page.wait_for_selector(f"main [data-test={sign}]")
        expect(page.locator("main [aria-busy=true]")).to_have_count(0)
        hidden += [f"{name}: {one}" for one in page.evaluate(HIDDEN) + page.evaluate(TALL)]
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=screenshots / f"long-{name}-{viewport['width']}.png")
    assert not hidden, "\n".join(hidden)


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["1280", "390"])
def test_every_button_of_a_dialog_is_in_the_window(named, site_of, screenshots, viewport):
    broker, queue = named
    page = site_of(broker).log_in(at="#/dead-letters/queues", viewport=viewport)
    row = page.locator("[data-test=dead-letter-queues] tr", has_text=queue[:30])
    for button, dialog, sign in [("reasons", "reasons-dialog", "[data-test=redrive-reason]"), ("redrive", "redrive-dialog", "[data-test=trial]:has-text('would go')")]:
        row.locator(f"[data-test={button}]").click()
        page.wait_for_selector(f"[data-test={dialog}] {sign}")
        assert page.evaluate(HIDDEN) == [], dialog
        page.screenshot(path=screenshots / f"long-{dialog}-{viewport['width']}.png")
        page.locator(f"[data-test={dialog}] [data-cancel]").click()
