"""Who may see the page, and from where."""

import pytest
from playwright.sync_api import expect


def test_a_wrong_password_is_told_and_a_right_one_is_forgotten_with_the_tab(site):
    page = site.new_page()
    page.goto(site.url)
    page.fill("[data-test=user]", "guest")
    page.fill("[data-test=password]", "wrong")
    page.click("[data-test=login-submit]")
    page.wait_for_selector("[data-test=login-error]")
    page.fill("[data-test=password]", "guest")
    page.click("[data-test=login-submit]")
    page.wait_for_selector("[data-test=user-menu]")
    # Loading it again keeps it, another window does not have it.
    page.reload()
    page.wait_for_selector("[data-test=user-menu]")
    other = page.context.new_page()
    other.goto(site.url)
    other.wait_for_selector("[data-test=login-submit]")
    page.click("[data-test=user-menu] summary")
    page.click("[data-test=logout]")
    page.wait_for_selector("[data-test=login-submit]")
    assert page.evaluate("sessionStorage.length + document.cookie.length") == 0


def test_requests_to_somebody_else_are_found(site):
    page = site.new_page()
    with page.expect_event("console"):
        page.evaluate("() => { new Image().src = 'http://elsewhere.example/x.png' }")
    assert site.complaints == ["asks somebody else: http://elsewhere.example/x.png"]
    site.complaints.clear()
    # The page itself is not even allowed to ask.
    page.goto(site.url)
    with page.expect_event("console"):
        page.evaluate("() => { new Image().src = 'http://127.0.0.1:1/x.png' }")
    assert "Content Security Policy" in site.complaints.pop()


def test_the_page_is_below_a_prefix_with_its_api(site_of, broker_below):
    site = site_of(broker_below, prefix="/rabbit")
    page = site.log_in(at="#/exchanges")
    expect(page.locator("main")).to_contain_text("amq.topic")
    # Without the slash as well.
    assert page.goto(site.url).url == site.url + "/"
    page.wait_for_selector("main canvas")


# Two answers may arrive before the page is painted: the second draws with what the first has changed.
PAINTED_LATE = """() => {
    window.requestAnimationFrame = (next) => setTimeout(next, 10_000);
    const ask = window.fetch;
    let tell;
    const told = new Promise((resolve) => { tell = resolve; });
    window.fetch = async (url, ...options) => {
        const answer = await ask(url, ...options);
        if (String(url).includes("api/whoami")) setTimeout(tell, 20);
        if (String(url).includes("api/overview")) await told;
        return answer;
    };
}"""


@pytest.mark.parametrize("is_painted_late", [False, True])
def test_login_ends_after_the_minutes_that_the_broker_names(site, is_painted_late):
    page = site.new_page()

    def with_timeout(route):
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"login_session_timeout": 5})

    page.route("**/api/whoami", with_timeout)
    page.goto(site.url)
    page.fill("[data-test=user]", "guest")
    page.fill("[data-test=password]", "guest")
    page.click("[data-test=login-submit]")
    page.wait_for_selector("[data-test=user-menu]")
    ends_in_ms = "JSON.parse(sessionStorage.getItem('leveret.login')).ends_at_ms - Date.now()"
    assert 0 < page.evaluate(ends_in_ms) <= 5 * 60_000
    page.evaluate("""() => {
        const login = JSON.parse(sessionStorage.getItem("leveret.login"));
        sessionStorage.setItem("leveret.login", JSON.stringify({ ...login, ends_at_ms: 1 }));
    }""")
    if is_painted_late:
        page.add_init_script(f"({PAINTED_LATE})()")
    page.reload()
    page.wait_for_selector("[data-test=login-submit]")
    expect(page.locator("[data-test=login]")).to_contain_text("Your login has ended")
