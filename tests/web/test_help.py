"""Help on the page: the `?` beside terms, the legend of badges, and the documentation that the broker serves."""

from playwright.sync_api import expect

from browsing import PHONE, segment


def test_help_opens_by_keyboard_and_leads_to_the_documentation(site):
    page = site.log_in()
    page.get_by_label("Help: Ready", exact=True).focus()
    page.keyboard.press("Enter")
    dialog = page.locator("[data-test=help-dialog]")
    expect(dialog).to_contain_text("Messages that wait for a consumer")
    address = dialog.locator("[data-test=help-docs]").first.get_attribute("href")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    # A tile that is a link does not follow it when its help is asked for.
    page.get_by_label("Help: Messages", exact=True).click()
    expect(dialog).to_be_visible()
    assert page.url.endswith("#/")
    page.keyboard.press("Escape")

    links = [page.locator(f"[data-test={test}]").get_attribute("href") for test in ("footer-docs", "footer-api", "footer-version")]
    for link in [address, *links]:
        page.goto(f"{site.url}/{link}")
        expect(page.locator("main h1")).to_have_count(1)
        _, _, anchor = link.partition("#")
        if anchor:
            expect(page.locator(f"[id='{anchor}']")).to_have_count(1)


def test_legend_of_badges_can_be_read_on_a_phone(site):
    page = site.log_in(at="#/exchanges", viewport=PHONE)
    page.click("[data-test=list-help]")
    dialog = page.locator("[data-test=help-dialog]")
    for words in ["durable: survives a restart", "dead-letter routing key", "overflow behaviour", "length limit (messages)"]:
        expect(dialog).to_contain_text(words)


def test_tracing_is_shown_and_switched(site, broker):
    page = site.log_in(at=f"#/admin/vhosts/{segment('/')}")
    tracing = page.locator("[data-test=tracing]")
    expect(tracing).to_contain_text("off")
    page.click("[data-test=switch-tracing]")
    page.click("[data-test=confirm-yes]")
    expect(tracing).to_contain_text("Stop tracing")
    assert broker.api.ask("/api/vhosts/%2F").json["tracing"] is True
    site.go(page, "#/admin/vhosts")
    expect(page.locator("table[data-test=vhosts] tbody tr")).to_contain_text("guest")
    expect(page.locator("table[data-test=vhosts] tbody tr")).to_contain_text("on")
    site.go(page, f"#/admin/vhosts/{segment('/')}")
    page.click("[data-test=switch-tracing]")
    expect(tracing).to_contain_text("off")
    assert broker.api.ask("/api/vhosts/%2F").json["description"] == "Default virtual host"


def test_statistics_are_reset_and_web_contexts_are_shown(site, broker):
    for queue in ["a", "b"]:
        broker.api.do("PUT", f"/api/queues/%2F/{queue}", {"durable": True})
    broker.api.do("PUT", "/api/exchanges/%2F/x", {"type": "fanout"})
    page = site.log_in()
    for test in ["reset-all", "reset-node"]:
        if test == "reset-node":
            site.go(page, f"#/nodes/{segment(broker.api.ask('/api/overview').json['node'])}")
        with page.expect_request(lambda request: request.method == "DELETE" and "/api/reset" in request.url) as sent:
            page.click(f"[data-test={test}]")
            told = page.locator("[data-test=consequences]")
            expect(told).to_contain_text("The samples of 2 queues, 11 exchanges, 1 virtual host and of the node are discarded")
            expect(told).to_contain_text("Counters, messages and metrics for Prometheus stay as they are")
            page.click("[data-test=confirm-yes]")
        assert sent.value.response().status == 204
    expect(page.locator("table[data-test=web-contexts] tbody tr")).to_contain_text("Leveret management")
    expect(page.locator("[data-test=disk-operations]")).to_contain_text("Syncs")


def test_topic_permissions_propose_topic_exchanges(site, broker):
    broker.api.do("PUT", "/api/exchanges/%2F/prices", {"type": "topic", "durable": True})
    page = site.log_in(at=f"#/admin/vhosts/{segment('/')}")
    page.click("[data-test=topic-permissions] [data-test=add]")
    options = page.locator("#access-exchanges option")
    expect(options.and_(page.locator("[value=prices]"))).to_have_count(1)
    expect(options.and_(page.locator("[value='amq.fanout']"))).to_have_count(0)
