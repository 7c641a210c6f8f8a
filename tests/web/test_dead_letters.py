"""The life of messages on the page: they expire, tell their story, are looked at, and go back."""

import json
import re

import pika
import pytest
from playwright.sync_api import expect

from browsing import PHONE, segment
from clients import connect
from patience import Patience

MARKUP = "<img src=x onerror=alert(1)>"
LINES = "li[data-test=message]"
ORDER = {"order": 12345678901234567890, "lines": [], "note": MARKUP}


class Scene:
    """A channel on which queues are declared with few words."""

    def __init__(self, broker):
        self.api = broker.api
        self.connection = connect(broker, client_properties={"connection_name": "thumbs-slow"})
        self.channel = self.connection.channel()

    def queue(self, name, **arguments):
        arguments = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        self.channel.queue_declare(name, durable=True, arguments=arguments)

    def bound(self, name, exchange, key="#", kind="topic"):
        self.channel.exchange_declare(exchange, kind, durable=True)
        self.channel.queue_declare(name, durable=True)
        self.channel.queue_bind(name, exchange, key)

    def publish(self, queue, body="x", **properties):
        self.channel.basic_publish("", queue, body, pika.BasicProperties(**properties))

    def reject(self, queue, reason=None):
        method, _, _ = self.channel.basic_get(queue)
        if reason is not None:
            headers = {"x-delivery-tag": method.delivery_tag, "x-reason": reason}
            self.channel.basic_publish("amq.settle", "", b"", pika.BasicProperties(headers=headers))
        self.channel.basic_reject(method.delivery_tag, requeue=False)

    def reject_all_but(self, queue, body):
        """Returns the message with that body, and rejects the others."""
        while True:
            method, _, found = self.channel.basic_get(queue)
            if method is None:
                break
            if found.decode() != body:
                self.channel.basic_reject(method.delivery_tag, requeue=False)
        self.channel.basic_recover(requeue=True)

    def wait_for(self, queue, count):
        patience = Patience()
        while not patience.is_over():
            if self.channel.queue_declare(queue, passive=True).method.message_count == count:
                return
            self.connection.sleep(0.02)
        raise AssertionError(f"{queue} never had {count} messages")


@pytest.fixture
def scene(broker):
    scene = Scene(broker)
    yield scene
    scene.connection.close()


def messages_of(name):
    return f"#/queues/{segment('/', name)}/messages"


def opened(page, at=0):
    """The lines of a message's story, after it was opened."""
    page.locator("[data-test=open]").nth(at).click()
    return page.locator("[data-test=timeline] li")


def test_a_message_that_expired_tells_its_story_and_goes_back(site, scene):
    scene.bound("dead", "dlx")
    scene.queue("sms", dead_letter_exchange="dlx")
    policy = {"pattern": "^sms$", "definition": {"message-ttl": 300}, "apply-to": "queues", "priority": 0}
    scene.api.do("PUT", "/api/policies/%2F/short", policy)
    scene.publish("sms", json.dumps(ORDER), content_type="application/json", headers={"tenant": "acme"})
    scene.wait_for("dead", 1)
    scene.api.do("DELETE", "/api/policies/%2F/short")

    page = site.log_in(at=messages_of("dead"))
    story = opened(page)
    words = [re.sub(r"\s+", " ", line) for line in story.all_inner_texts()]
    assert [kind.split("-")[-1] for kind in story.evaluate_all("all => all.map((line) => line.dataset.test)")] == [
        "publish", "death", "sent", "wait"]
    assert "published to the default exchange with key sms" in words[0]
    assert "expired in queue sms" in words[1] and re.search(r"\d+:\d\d:\d\d", words[1])
    assert "sent to exchange dlx with key sms" in words[2]
    assert "waits in queue dead since then" in words[3]

    page.locator("[data-test=choose]").check()
    page.click("[data-test=redrive-chosen]")
    page.get_by_text("1 of 1 matching message would go to:").wait_for()
    assert "1 sms" in page.inner_text("[data-test=trial]")
    page.click("[data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")
    assert "1" in page.inner_text("[data-test=moved]")
    scene.wait_for("sms", 1)

    site.go(page, messages_of("sms"))
    story = opened(page)
    words = [re.sub(r"\s+", " ", line) for line in story.all_inner_texts()]
    assert "expired in queue sms" in words[1]
    assert "redriven from queue dead by user guest" in words[2]
    assert "waits in queue sms" in words[-1]
    # Whoever has looked has changed nothing.
    method, properties, body = scene.channel.basic_get("sms", auto_ack=True)
    assert not method.redelivered and json.loads(body) == ORDER and properties.headers["tenant"] == "acme"


def test_a_body_is_shown_as_what_it_is(site, scene):
    scene.queue("all")
    scene.publish("all", json.dumps(ORDER))
    scene.publish("all", "no {json}")
    scene.publish("all", b"\x00\xff\x01hex")
    page = site.log_in(at=messages_of("all"))
    body = page.locator("[data-test=payload]")
    opened(page, 0)
    assert '  "order": 12345678901234567890,\n' in body.inner_text()
    page.click("[data-test=as-text]")
    assert body.inner_text() == json.dumps(ORDER)
    page.click("[data-test=as-hex]")
    assert body.inner_text().startswith("000000  7b 22 6f 72")
    opened(page, 0)
    opened(page, 1)
    assert body.inner_text() == "no {json}"
    assert page.locator("[data-test=as-json]").count() == 0
    opened(page, 1)
    opened(page, 2)
    assert re.match(r"000000  00 ff 01 68 65 78\s+···hex", body.inner_text())


def test_messages_are_found_by_what_they_are(site, scene):
    scene.bound("dead", "dlx")
    scene.queue("a", dead_letter_exchange="dlx")
    scene.queue("b", dead_letter_exchange="dlx", max_length=1)
    for number in range(3):
        scene.publish("a", f"tea {number}", expiration="1", headers={"tenant": f"t{number}"})
    scene.wait_for("dead", 3)
    for number in range(2):
        scene.publish("b", f"cake {number}")
    scene.publish("a", "rejected")
    scene.wait_for("a", 1)
    scene.reject("a")
    scene.wait_for("dead", 5)
    page = site.log_in(at=messages_of("dead"))
    lines = page.locator(LINES)
    expect(page.locator(LINES)).to_have_count(5)

    def look_for(**values):
        for field, value in values.items():
            if field == "reason":
                page.select_option("[name=reason]", value)
            else:
                page.fill(f"[name={field}]", value)
        page.click("[data-test=apply]")

    teas = [f"tea {number}" for number in range(3)]
    for values, bodies in [({"reason": "rejected"}, ["rejected"]), ({"reason": "maxlen"}, ["cake 0"]), ({"reason": "expired"}, teas),
                           ({"header": "tenant=t1"}, ["tea 1"]), ({"header": "tenant", "text": "tea 2"}, ["tea 2"]),
                           ({"header": "", "reason": "", "text": "cake"}, ["cake 0"]), ({"text": "", "first_queue": "a"}, [*teas, "rejected"])]:
        look_for(**values)
        expect(lines).to_contain_text(bodies)
    look_for(first_queue="nobody")
    page.wait_for_selector("[data-test=none]:text('No match for the filter')")
    # What is looked for is in the address, for others.
    assert "first_queue=nobody" in page.url
    page.click("[data-test=clear]")
    expect(lines).to_have_count(5)


#: Changes a field, and once more right after its first text is in the address, before the next picture is drawn: what the
#: field has in the end.
TYPE_ON = """async ({ field: selector, part, button }) => {
  const next_task = () => new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(null);
  });
  const next_frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const field = document.querySelector(selector);
  const type = (text) => {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  type("te");
  await next_frame();
  document.querySelector(button)?.click();
  do await next_task(); while (!location.hash.includes(part));
  type("tea");
  await next_frame();
  await next_frame();
  return field.value;
}"""


@pytest.mark.parametrize("at, field, part, button", [
    (messages_of("a"), "[name=text]", "text=te", "[data-test=apply]"),
    ("#/queues", "[data-test=filter]", "name=te", None),
])
def test_filter_keeps_what_is_typed_while_it_is_applied(site, scene, at, field, part, button):
    scene.queue("a")
    page = site.log_in(at=at)
    page.wait_for_selector(field)
    assert page.evaluate(TYPE_ON, {"field": field, "part": part, "button": button or "none"}) == "tea"


def test_a_long_queue_is_looked_at_page_by_page(site, scene):
    scene.queue("long")
    for number in range(120):
        scene.publish("long", f"number {number}")
    scene.wait_for("long", 120)
    page = site.log_in(at=messages_of("long"))
    for first in ["number 0", "number 50", "number 100"]:
        page.wait_for_selector(f"li[data-test=message]:first-child:has-text('{first}')")
        if first != "number 100":
            page.click("[data-test=next]")
    expect(page.locator(LINES)).to_have_count(20)
    page.click("[data-test=previous]")
    page.wait_for_selector("li[data-test=message]:first-child:has-text('number 50')")


def test_all_dead_letters_go_back_by_their_filter(site, scene):
    scene.bound("dead", "dlx")
    scene.queue("a", dead_letter_exchange="dlx")
    scene.queue("elsewhere")
    for number in range(4):
        scene.publish("a", f"{number}", expiration="1", headers={"even": str(number % 2 == 0)})
    scene.wait_for("dead", 4)
    page = site.log_in(at="#/dead-letters/queues")
    page.click("tr:has-text('dead') [data-test=redrive]")
    page.check("[data-test=to-queue]")
    page.fill("[data-test=target-queue]", "elsewhere")
    page.fill("dialog [name=header]", "even=True")
    page.get_by_text("2 of 2 matching messages would go to:").wait_for()
    page.click("dialog [data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")
    scene.wait_for("elsewhere", 2)
    scene.wait_for("dead", 2)
    site.go(page, "#/redrives")
    row = page.wait_for_selector("tr:has-text('elsewhere')").inner_text()
    assert "dead" in row and "finished" in row


def test_dead_letters_are_counted_and_redriven_by_reason(site, scene):
    scene.bound("dead", "dlx")
    scene.queue("a", dead_letter_exchange="dlx")
    for reason in [MARKUP, "503", MARKUP, None, "x" * 300, "two\nlines"]:
        scene.publish("a", f"because of {reason}")
        scene.reject("a", reason)
    scene.wait_for("dead", 6)
    page = site.log_in(at="#/dead-letters/queues")
    page.click("tr:has-text('dead') [data-test=reasons]")
    deaths = page.locator("table[data-test=death-reasons] tbody tr")
    expect(deaths).to_have_count(1)
    expect(deaths.locator("td")).to_have_text(["rejected", "6", re.compile("Browse")])
    rows = page.locator("table[data-test=reasons] tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(0).locator("td")).to_have_text([MARKUP, "2", re.compile("Browse")])
    expect(rows.nth(1).locator("td")).to_have_text(["503", "1", re.compile("Browse")])
    # No filter of one line selects these: a redrive would take others, too.
    for number in (2, 3):
        expect(rows.nth(number).locator("[data-test=redrive-reason]")).to_be_disabled()
    assert "1 message without a reason given" in page.inner_text("[data-test=reasons-rest]")
    rows.nth(0).locator("[data-test=browse-reason]").click()
    expect(page.locator(LINES)).to_have_count(2)
    page.click("[data-test=reasons]")
    rows.nth(1).locator("[data-test=redrive-reason]").click()
    page.get_by_text("1 of 1 matching message would go to:").wait_for()
    page.click("[data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")
    scene.wait_for("a", 1)


def test_dead_letters_are_counted_and_redriven_by_the_reason_of_their_death(site, scene):
    scene.bound("dead", "dlx")
    scene.queue("short", dead_letter_exchange="dlx", message_ttl=1)
    scene.queue("a", dead_letter_exchange="dlx")
    scene.publish("short", "expires")
    scene.publish("dead", "lives")
    for body in ("one", "two"):
        scene.publish("a", body)
        scene.reject("a", None)
    scene.wait_for("dead", 4)
    page = site.log_in(at="#/dead-letters/queues")
    page.click("tr:has-text('dead') [data-test=reasons]")
    deaths = page.locator("table[data-test=death-reasons] tbody tr")
    expect(deaths).to_have_count(2)
    expect(deaths.nth(0).locator("td")).to_have_text(["rejected", "2", re.compile("Browse")])
    expect(deaths.nth(1).locator("td")).to_have_text(["expired", "1", re.compile("Browse")])
    assert "1 message has not died" in page.inner_text("[data-test=alive]")
    assert "No consumer gave a reason" in page.inner_text("[data-test=reasons-rest]")
    expect(page.locator("table[data-test=reasons]")).to_have_count(0)
    deaths.nth(1).locator("[data-test=browse-reason]").click()
    expect(page.locator(LINES)).to_have_count(1)
    expect(page.locator(LINES)).to_contain_text("expired in short")
    page.click("[data-test=reasons]")
    deaths.nth(0).locator("[data-test=redrive-reason]").click()
    page.get_by_text("2 of 2 matching messages would go to:").wait_for()
    page.click("[data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")
    scene.wait_for("a", 2)


def test_all_but_some_messages_are_listed_and_redriven(site, scene):
    scene.bound("dead", "dlx")
    scene.queue("a", dead_letter_exchange="dlx")
    for body in ("good", "poison", "also good"):
        scene.publish("a", body)
        scene.reject("a", "503" if body == "also good" else None)
    scene.wait_for("dead", 3)
    page = site.log_in(at=messages_of("dead"))
    page.fill("[data-test=without-text]", "poison")
    page.click("[data-test=apply]")
    expect(page.locator(LINES)).to_have_count(2)
    page.fill("[data-test=without-header]", "x-reason=503")
    page.click("[data-test=apply]")
    expect(page.locator(LINES)).to_have_count(1)
    page.click("[data-test=redrive-all]")
    page.get_by_text("1 of 1 matching message would go to:").wait_for()
    page.fill("dialog [data-test=without-header]", "")
    page.get_by_text("2 of 2 matching messages would go to:").wait_for()
    page.click("dialog [data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")
    scene.wait_for("a", 2)
    scene.wait_for("dead", 1)


def test_kept_dead_letters_are_redriven(site, scene):
    scene.queue("elsewhere")
    scene.queue("keeps", queue_type="quorum", dead_letter_strategy="at-least-once", overflow="reject-publish",
                dead_letter_exchange="", dead_letter_routing_key="nowhere")
    for body in ["waits", "first", "second", "third"]:
        scene.publish("keeps", body)
    scene.reject_all_but("keeps", "waits")
    page = site.log_in(at=messages_of("keeps") + "?state=dead")
    lines = page.locator(LINES)
    expect(lines).to_contain_text(["first", "second", "third"])
    # One of them by itself, then the others by the choice in the dialog, which begins with the messages that wait.
    lines.nth(1).locator("[data-test=choose]").check()
    page.click("[data-test=redrive-chosen]")
    redrive_to_elsewhere(page, "1 of 1 matching message would go to:")
    scene.wait_for("elsewhere", 1)
    site.go(page, messages_of("keeps"))
    expect(lines).to_have_count(1)
    page.click("[data-test=redrive-all]")
    page.check("dialog [data-test=kept]")
    redrive_to_elsewhere(page, "2 of 2 matching messages would go to:")
    scene.wait_for("elsewhere", 3)
    scene.wait_for("keeps", 1)
    assert "Dead letters that the queue keeps" in page.inner_text("[data-test=redrive]")


def redrive_to_elsewhere(page, expected):
    """Chooses the target in the dialog, and waits for the end of the redrive."""
    page.check("[data-test=to-queue]")
    page.fill("[data-test=target-queue]", "elsewhere")
    page.get_by_text(expected).wait_for()
    page.click("dialog [data-test=submit]")
    page.wait_for_selector("[data-test=redrive] [data-test=state]:text('finished')")


def test_a_redrive_is_seen_running_and_cancelled(site, scene):
    scene.bound("dead", "dlx")
    scene.queue("a", dead_letter_exchange="dlx")
    for _ in range(50):
        scene.publish("a", expiration="1")
    scene.wait_for("dead", 50)
    scene.queue("slow")
    page = site.log_in(at=messages_of("dead"))
    page.click("[data-test=redrive-all]")
    page.check("[data-test=to-queue]")
    page.fill("[data-test=target-queue]", "slow")
    page.fill("dialog [name=rate]", "2")
    page.click("dialog [data-test=submit]")
    page.wait_for_selector("[data-test=state]:text('running')")
    page.click("[data-test=cancel]")
    page.wait_for_selector("[data-test=state]:text('cancelled')")
    moved = scene.channel.queue_declare("slow", passive=True).method.message_count
    assert moved < 50
    scene.wait_for("dead", 50 - moved)


def test_redrive_warns_of_messages_that_cannot_move(site, scene):
    scene.bound("dead", "dlx")
    scene.queue("gone", dead_letter_exchange="dlx")
    scene.publish("gone", expiration="1")
    scene.wait_for("dead", 1)
    scene.channel.queue_delete("gone")
    page = site.log_in(at=messages_of("dead"))
    page.click("[data-test=redrive-all]")
    page.get_by_text("1 would reach no queue").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    scene.wait_for("dead", 1)


def test_the_life_of_a_queue_is_told_in_one_view(site, scene):
    scene.bound("dead", "dlx", "gone", kind="direct")
    scene.queue("sms", dead_letter_exchange="dlx", dead_letter_routing_key="gone", max_length=1000)
    policy = {"pattern": "^sms$", "definition": {"message-ttl": 60_000}, "apply-to": "queues", "priority": 0}
    scene.api.do("PUT", "/api/policies/%2F/a-minute", policy)
    for number in range(20):
        scene.publish("sms", expiration=str(30_000 + 1000 * number))
    scene.wait_for("sms", 20)
    page = site.log_in(at=f"#/queues/{segment('/', 'sms')}")
    fate = re.sub(r"\s+", " ", page.inner_text("[data-test=fate]"))
    assert "at most 1 min (policy a-minute), then they expire" in fate
    assert "holds at most 1,000 messages (argument); beyond that, the oldest messages are removed" in fate
    expect(page.locator("[data-test=fate]")).to_contain_text(re.compile("go to exchange dlx .* which routes to queue dead"))
    page.wait_for_selector("[data-test=expiry] rect.bar")
    expect(page.locator("[data-test=next-deadline]")).to_contain_text(re.compile(r"^\s*[12]?\d s"))
    assert "Message TTL" in page.inner_text("[data-test=in-force]")


def test_consumers_are_shown_with_what_they_hold(site, scene):
    scene.queue("work")
    for _ in range(5):
        scene.publish("work")
    other = scene.connection.channel()
    other.basic_qos(prefetch_count=3)
    other.basic_consume("work", lambda *_: None, consumer_tag="slow-worker")
    scene.connection.sleep(0.2)
    page = site.log_in(at=f"#/queues/{segment('/', 'work')}")
    cells = page.locator("[data-test=holders] tr:has-text('slow-worker') td")
    expect(cells.nth(1)).to_have_text("thumbs-slow")
    expect(cells.nth(3)).to_have_text("3")
    consumers = site.log_in(at=f"#/queues/{segment('/', 'work', 'consumers')}")
    expect(consumers.locator("[data-test=queue-consumers]")).to_contain_text("thumbs-slow")
    site.go(page, f"{messages_of('work')}?state=unacknowledged")
    expect(page.locator(LINES)).to_have_count(3)
    assert "slow-worker" in opened(page).last.inner_text()


def test_messages_without_read_permission_are_refused_with_a_reason(site, scene):
    scene.queue("secret")
    for _ in range(2):
        scene.publish("secret")
    scene.channel.basic_get("secret")
    scene.api.do("PUT", "/api/users/eve", {"password": "eve", "tags": "management"})
    scene.api.do("PUT", "/api/permissions/%2F/eve", {"configure": "", "write": "", "read": "^public"})
    page = site.log_in("eve", at=f"#/queues/{segment('/', 'secret')}")
    page.wait_for_selector("[data-test=holders-error]")
    site.go(page, messages_of("secret"))
    assert "secret" in page.wait_for_selector("[data-test=browse-error]").inner_text()
    assert page.locator(LINES).count() == 0


def test_messages_are_listed_by_a_place_in_their_json(site, scene):
    scene.queue("bills")
    for number in (7, 8, 7):
        scene.publish("bills", json.dumps({"customer": {"id": number}}))
    scene.wait_for("bills", 3)
    page = site.log_in(at=messages_of("bills"))
    page.fill("[data-test=json]", "/customer/id=7")
    page.click("[data-test=apply]")
    expect(page.locator(LINES)).to_have_count(2)
    page.fill("[data-test=json]", "id=7")
    page.click("[data-test=apply]")
    expect(page.locator("[data-test=browse-error]")).to_contain_text("JSON pointer")


@pytest.fixture
def tangle(scene):
    """Dead letters that come back, that are lost in two ways, and some that are not."""
    scene.bound("dead", "dlx", "#")
    scene.queue("sms", dead_letter_exchange="dlx")
    scene.queue("loop.a", message_ttl=600_000, dead_letter_exchange="", dead_letter_routing_key="loop.b")
    scene.queue("loop.b", message_ttl=600_000, dead_letter_exchange="", dead_letter_routing_key="loop.a")
    scene.queue("lonely", dead_letter_exchange="nobody-declared-it")
    scene.channel.exchange_declare("empty", "direct")
    scene.queue("astray", dead_letter_exchange="empty", dead_letter_routing_key="k")


def test_the_map_shows_ways_and_what_is_wrong_with_them(site, tangle):
    page = site.log_in(at="#/dead-letters")
    page.wait_for_selector("[data-test=map] [data-test=node-queue]")
    warnings = page.inner_text("[data-test=map-warnings]")
    for part in ["nobody-declared-it", "loop.a", "astray"]:
        assert part in warnings, warnings
    nodes = page.locator("[data-test=node-queue]")
    expect(nodes).to_have_count(6)
    words = {node.locator(".name").text_content(): node.text_content() for node in nodes.all()}
    assert "exchange missing" in words["lonely"] and "not routed to any" in words["astray"]
    assert "loop" in words["loop.a"] and "loop" in words["loop.b"] and "loop" not in words["sms"]
    page.check("[data-test=only-faults]")
    expect(nodes).to_have_count(4)
    page.uncheck("[data-test=only-faults]")
    page.fill("[data-test=filter]", "loop")
    expect(nodes).to_have_count(2)
    # By keyboard: a node is a link.
    page.get_by_role("link", name="Queue loop.b,").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-test=queue] h1:text('loop.b')")
    page.wait_for_selector("[data-test=fate]")


def test_the_map_is_a_table_as_well(site, tangle):
    page = site.log_in(at="#/dead-letters", viewport=PHONE)
    page.click("[data-test=view-table]")
    rows = page.locator("[data-test=edges] tbody tr")
    expect(rows).to_have_count(5)
    cells = {row.locator("td").first.inner_text(): row.inner_text() for row in rows.all()}
    assert "no queue" in cells["lonely"] and "dead" in cells["sms"] and "loop.a" in cells["loop.b"]


@pytest.fixture
def delays(scene):
    """A delayed exchange, retries, messages before their delivery time, and a ladder of queues with TTLs."""
    scene.channel.exchange_declare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    scene.queue("jobs", delayed_retry_type="all", delayed_retry_schedule="1s,5s,30s")
    scene.channel.queue_bind("jobs", "later", "")
    scene.channel.basic_publish("later", "", "m", pika.BasicProperties(headers={"x-delay": 3_600_000}))
    growing = {"type": "all", "min": 1000, "max": 60000, "multiplier": 2, "jitter": 0.2}
    arguments = {f"x-delayed-retry-{name}": value for name, value in growing.items()}
    scene.api.do("PUT", "/api/queues/%2F/growing", {"durable": True, "arguments": arguments})
    for number in range(3):
        scene.queue(f"alike-{number}", delayed_retry_type="all", delayed_retry_min=2000, delayed_retry_max=2000)
    scene.queue("reminders")
    for _ in range(2):
        scene.publish("reminders", headers={"x-opt-delivery-delay": 3_600_000})
    scene.queue("ladder.1", message_ttl=60_000, dead_letter_exchange="", dead_letter_routing_key="jobs")
    scene.queue("ladder.2", message_ttl=5000, dead_letter_exchange="", dead_letter_routing_key="ladder.1")
    scene.wait_for("reminders", 0)


def test_delays_are_lines_of_the_map_with_their_times(site, delays):
    page = site.log_in(at="#/dead-letters")
    lines = page.locator("[data-test=map] .link")
    # Two of the ladder, the delayed exchange, and four of queues to themselves.
    expect(lines).to_have_count(7)
    words = [" | ".join(line.locator("text").all_text_contents()) for line in lines.all()]
    for part in ["after 5 s", "after 1 min", "1s, 5s, 30s", "2 scheduled", "next "]:
        assert any(part in word for word in words), (part, words)
    titles = [text for line in lines.all() for text in line.locator("title").all_text_contents()]
    assert any("1 s to 1 min, \u00d7 2, \u00b1 20 %" in text for text in titles), titles
    expect(page.locator("[data-test=node-group]")).to_contain_text("3 queues")
    expect(page.locator("[data-test=node-exchange]")).to_contain_text("1 delayed")
    name = page.locator("[data-test=node-queue]", has_text="jobs").get_attribute("aria-label")
    assert "returned messages wait 1s, 5s, 30s" in name, name
    expect(page.locator("[data-test=edge-count]")).to_contain_text("7 delays")
    page.fill("[data-test=filter]", "reminders")
    expect(lines).to_have_count(1)
    expect(page.locator("[data-test=edge-count]")).to_contain_text("6 delays do not match the filter")
    page.fill("[data-test=filter]", "")
    expect(lines).to_have_count(7)
    page.check("[data-test=only-faults]")
    expect(page.locator("[data-test=edge-count]")).to_contain_text("delays are not shown")


def test_delays_are_a_table_as_well(site, delays):
    page = site.log_in(at="#/dead-letters?view=table")
    rows = page.locator("table[data-test=delays] tbody tr")
    expect(rows).to_have_count(5)
    cells = {row.locator("td").first.inner_text(): row.inner_text() for row in rows.all()}
    assert "delivery time" in cells["reminders"] and "the same queue" in cells["reminders"]
    assert "delayed exchange" in cells["later"] and "jobs" in cells["later"]
    assert "1s, 5s, 30s" in cells["jobs"] and "2 s" in cells["alike-0 and 2 other queues"]
    edges = page.locator("table[data-test=edges] tbody tr")
    expect(edges.filter(has_text="ladder.2")).to_contain_text("after 5 s")


def test_markup_is_text_wherever_it_stands(site, scene):
    scene.channel.exchange_declare(MARKUP, "fanout")
    scene.queue("<b>dead</b>")
    scene.channel.queue_bind("<b>dead</b>", MARKUP)
    scene.queue(MARKUP, dead_letter_exchange=MARKUP)
    scene.publish(MARKUP, MARKUP, expiration="1", headers={"<i>name</i>": "<u>value</u>"})
    scene.wait_for("<b>dead</b>", 1)
    page = site.log_in(at=messages_of("<b>dead</b>"))
    story = opened(page)
    assert f"expired in queue {MARKUP}" in story.nth(1).inner_text()
    assert page.inner_text("[data-test=payload]") == MARKUP
    text = page.inner_text("[data-test=message]")
    assert "<i>name</i>" in text and "<u>value</u>" in text
    for at, sign in [("#/dead-letters", "[data-test=node-queue]"), ("#/dead-letters/queues", "tbody tr"),
                     (f"#/queues/{segment('/', MARKUP)}", "[data-test=fate]")]:
        site.go(page, at)
        page.wait_for_selector(sign)
        assert page.locator("main img, main b b, main u").count() == 0


def test_many_queues_with_equal_routes_are_one_object_of_the_picture(site, broker):
    lost = {"x-dead-letter-exchange": "dlx"}
    queue = lambda name, arguments: {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": arguments}
    broker.api.do("POST", "/api/definitions", {
        "queues": [queue("dead", {}), *(queue(f"tenant-{n:03}", lost) for n in range(250))],
        "exchanges": [{"name": "dlx", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False, "internal": False, "arguments": {}}],
        "bindings": [{"vhost": "/", "source": "dlx", "destination": "dead", "destination_type": "queue", "routing_key": "#", "arguments": {}}]})
    page = site.log_in(at="#/dead-letters")
    group = page.locator("[data-test=node-group]")
    expect(group).to_have_count(1)
    expect(group).to_contain_text("250 queues")
    expect(page.locator("[data-test=edge-count]")).to_have_text("250 dead-letter routes; equal routes of several queues are one line.")
