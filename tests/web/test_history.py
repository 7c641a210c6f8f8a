"""Charts without invented samples, and clocks that follow the broker."""

import re
import time

import pytest
from playwright.sync_api import expect

from browsing import ask_now, segment
from conftest import running
from patience import Patience

# A browser whose clock is a day ahead: the constructor, and what it says now.
WRONG_CLOCK = """
  const RealDate = Date;
  const ahead = 86_400_000;
  window.Date = class extends RealDate {
    constructor(...given) { given.length === 0 ? super(RealDate.now() + ahead) : super(...given); }
    static now() { return RealDate.now() + ahead; }
  };
"""


@pytest.fixture(scope="module")
def sampled(request, tmp_path_factory):
    """A broker that takes five samples in a second."""
    yield from running(request, tmp_path_factory.mktemp("broker"), "collect_statistics_interval = 200\n")


@pytest.fixture
def site(site_of, sampled):
    return site_of(sampled)


def declare(broker, name, **arguments):
    body = {"durable": True, "arguments": {key.replace("_", "-"): value for key, value in arguments.items()}}
    broker.api.do("PUT", f"/api/queues/%2F/{name}", body)


def publish(broker, queue, count=1):
    for number in range(count):
        body = {"properties": {"delivery_mode": 2}, "routing_key": queue, "payload": str(number), "payload_encoding": "string"}
        broker.api.do("POST", "/api/exchanges/%2F/amq.default/publish", body)


def queue_page(site, name, script=None, tab="life", has_clock=False, **options):
    """The page of a queue; with `has_clock`, the test moves the clock of the browser."""
    page = site.new_page(**options)
    if script:
        page.add_init_script(script)
    if has_clock:
        page.clock.install()
    page.goto(f"{site.url}/#/queues/{segment('/', name)}/{tab}")
    page.fill("[data-test=user]", "guest")
    page.fill("[data-test=password]", "guest")
    page.click("[data-test=login-submit]")
    return page


def seconds(text):
    """Seconds in "3 min 20 s" and the like."""
    parts = re.findall(r"(\d+) (h|min|s)\b", text)
    assert parts, text
    return sum(int(value) * {"h": 3600, "min": 60, "s": 1}[unit] for value, unit in parts)


def until_heard(page, expected):
    """Waits until the page takes the broker for answering, or not."""
    patience = Patience()
    while page.evaluate("async () => (await import('/js/away.js')).away.get() === null") is not expected:
        assert not patience.is_over()
        page.wait_for_timeout(50)


def test_chart_has_no_line_where_no_sample_is_on_an_axis_of_its_whole_range(site, sampled, name):
    declare(sampled, name)
    publish(sampled, name, 5)
    page = queue_page(site, name)
    depth = page.locator("[data-test=chart-depth] .chart-box")
    depth.locator("canvas").wait_for()
    lines = page.evaluate("""async (hour) => {
      const { rates, levels, withGaps } = await import("/js/chart.js");
      const minute = (n, sample) => ({ timestamp: hour + n * 60_000, sample });
      const samples = [minute(90, 700), minute(41, 410), minute(40, 400), minute(39, 390)];
      return { rates: withGaps(rates({ samples }), 60_000), levels: withGaps(levels({ samples }), 60_000), short: rates({ samples: [minute(1, 5)] }) };
    }""", 3_600_000)
    assert [value for _, value in lines["levels"]] == [390, 400, 410, None, 700], "no line over the gap"
    assert lines["levels"][3][0] == 3_600_000 + 41 * 60_000 + 1
    assert [value and round(value * 60, 3) for _, value in lines["rates"]] == [10, 10, None, round(290 / 49, 3)]
    assert lines["short"] == [], "one sample is no rate"
    ends = page.evaluate("""async () => {
      const { axisOf } = await import("/js/chart.js");
      return [axisOf({ data: [[1000, 1005, 1010]], age: 600 }), axisOf({ data: [[]], age: 60 })];
    }""")
    assert ends[0] == [410, 1010], "also where no samples are"
    assert abs(ends[1][1] - time.time()) < 60 and round(ends[1][1] - ends[1][0]) == 60
    answer = sampled.api.do("GET", f"/api/queues/%2F/{name}?lengths_age=600&lengths_incr=5")
    assert len(answer["messages_details"]["samples"]) < 100


def test_each_chart_can_have_its_own_range(site, sampled, name):
    declare(sampled, name)
    page = queue_page(site, name)
    own = page.locator("[data-test=range-of-chart-flow]")
    with page.expect_request(lambda request: f"/{name}?" in request.url and "msg_rates_age=3600" in request.url):
        own.select_option("hour")
    assert page.locator("[data-test=chart-flow] .chart-box[aria-label*='last hour']").count() == 1
    assert page.locator("[data-test=chart-depth] .chart-box[aria-label*='last ten minutes']").count() == 1
    page.reload()
    page.locator("[data-test=chart-flow] .chart-box[aria-label*='last hour']").wait_for()
    page.locator("[data-test=range]").select_option("minute")
    for chart in ("chart-flow", "chart-depth"):
        page.locator(f"[data-test={chart}] .chart-box[aria-label*='last minute']").wait_for()


def test_wrong_clock_of_the_browser_does_not_matter(site, sampled, name):
    declare(sampled, name, x_message_ttl=3_000_000)
    publish(sampled, name, 2)
    page = queue_page(site, name, WRONG_CLOCK)
    oldest, deadline = page.locator("[data-test=oldest] .countdown"), page.locator("[data-test=next-deadline] .countdown")
    assert seconds(oldest.text_content()) < 300
    assert 2_600 < seconds(deadline.text_content()) <= 3_000
    site.go(page, f"#/queues/{segment('/', name)}/messages")
    line = page.locator("[data-test=message] .browsed-time").first
    assert 2_600 < seconds(line.text_content()) <= 3_000
    assert re.search(r"\d\d:\d\d:\d\d$", line.text_content().strip()), "of today: without a date"
    assert "," not in line.text_content()


def test_age_does_not_exceed_the_ttl(site, sampled, name):
    ttl_s = 25
    declare(sampled, name, x_message_ttl=ttl_s * 1000)
    page = queue_page(site, name, refresh_ms=30_000, has_clock=True)
    page.locator("[data-test=oldest]").wait_for()
    publish(sampled, name)
    page.reload()
    oldest = page.locator("[data-test=oldest] .countdown")
    oldest.wait_for()
    # No answer comes from here on: the page computes.
    page.route("**/api/**", lambda route: None)
    page.clock.fast_forward(ttl_s * 1000)
    expect(page.locator("[data-test=next-deadline]")).to_have_text(re.compile("^now"))
    for _ in range(3):
        assert seconds(oldest.text_content()) == ttl_s
        page.clock.run_for(1000)


def test_clocks_stand_still_while_the_broker_is_away(site, sampled, name):
    declare(sampled, name, x_message_ttl=3_000_000)
    publish(sampled, name)
    page = queue_page(site, name, refresh_ms=1000)
    oldest = page.locator("[data-test=oldest] .countdown")
    oldest.wait_for()
    page.locator("[data-test=chart-depth] .chart-none").wait_for(state="detached")
    page.route("**/api/**", lambda route: route.abort())
    until_heard(page, False)
    stopped = oldest.text_content()
    assert "now" not in page.locator("[data-test=chart-depth] .chart-moment").text_content()
    page.evaluate("() => new Promise((done) => setTimeout(done, 2200))")
    assert oldest.text_content() == stopped
    page.unroute("**/api/**")
    ask_now(page)
    until_heard(page, True)
    page.wait_for_function("(old) => document.querySelector('[data-test=oldest] .countdown')?.textContent !== old", arg=stopped)
    page.wait_for_function("() => document.querySelector('[data-test=chart-depth] .chart-moment').textContent === 'now'")
    # The answer of a proxy is none of the broker.
    page.route("**/api/**", lambda route: route.fulfill(status=502, body="Bad Gateway"))
    until_heard(page, False)


IS_WHOLE = """(test) => {
  const value = document.querySelector(`[data-test=${test}] .stat-value`);
  return value !== null && value.scrollWidth <= value.clientWidth + 1;
}"""


def test_durations_in_tiles_are_not_cut(site, sampled, name):
    declare(sampled, name, x_message_ttl=3_599_000)
    publish(sampled, name)
    page = queue_page(site, name)
    for test in ("oldest", "next-deadline", "ttl"):
        tile = page.locator(f"[data-test={test}] .stat-value")
        tile.locator(".countdown").wait_for()
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            # The page draws itself for the other width a moment after the window has it.
            page.wait_for_function(IS_WHOLE, arg=test)


def test_node_charts_have_lines_for_limits(site):
    page = site.log_in(at="#/nodes")
    page.locator("table a").first.click()
    for chart, label in (("chart-memory", "Alarm above"), ("chart-disk", "Alarm below"), ("chart-files", "Limit")):
        limit = page.locator(f"[data-test={chart}] .legend button.is-limit", has_text=label)
        limit.wait_for()
        assert re.search(r"\d", limit.locator("b").text_content()), label
        assert limit.get_attribute("aria-pressed") in ("true", "false")
    memory = page.locator("[data-test=chart-memory] .legend button.is-limit")
    before = memory.get_attribute("aria-pressed")
    memory.click()
    assert memory.get_attribute("aria-pressed") != before


def test_list_has_no_count_before_it_is_loaded_and_refreshes_as_chosen(site, sampled, name):
    declare(sampled, name)
    page = site.log_in()
    held = []
    page.route("**/api/queues?*", lambda route: held.append(route))
    site.go(page, "#/queues")
    page.locator("table[data-test=queues]").wait_for()
    assert "queue" not in page.locator("[data-test=count]").text_content()
    page.unroute("**/api/queues?*")  # lets the held requests go
    page.wait_for_function("() => /queue/.test(document.querySelector('[data-test=count]').textContent)")
    choices = page.locator("[data-test=refresh] option").evaluate_all("(all) => all.map((one) => Number(one.value))")
    assert choices == [1000, 5000, 10_000, 30_000, 0]
