"""The browser: pages that are watched for errors of any kind while they are used."""

from urllib.parse import quote

from playwright.sync_api import expect

FLAGS = [
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    # Its shared memory is files of /tmp: a test of a full disk fills /dev/shm.
    "--disable-dev-shm-usage",
    # Nobody but the broker is found, and the console tells who was looked for.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
NOBODY = "ERR_NAME_NOT_RESOLVED"
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
# For what never comes: a page that is waited for is there in a second, on a busy machine in many.
TIMEOUT_MS = 60_000
# Letters are loaded, and what was changed is painted.
DRAWN = """async () => {
  await document.fonts.ready;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


def ask_now(page):
    """Lets the page ask for everything at once, as after a change of tabs."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def segment(*names):
    """Names as the address of a page has them."""
    return "/".join(quote(name, safe="") for name in names)


def photograph(page, folder, name, looks=("light", "dark"), full_page=True):
    """Keeps pictures of the page when nothing on it is being waited for: one for each look."""
    expect(page.locator("main [aria-busy=true], main .chart-none")).to_have_count(0)
    for look in looks:
        if look != "phone":
            page.emulate_media(color_scheme=look)
        page.evaluate(DRAWN)
        page.screenshot(path=folder / f"{name}-{look}.png", full_page=full_page)


class Site:
    """What users see of one broker."""

    def __init__(self, chromium, broker, prefix=""):
        self.chromium, self.broker = chromium, broker
        self.url = broker.api.url + prefix
        self.contexts, self.complaints = [], []

    def new_page(self, viewport=WIDE, scheme="light", refresh_ms=None):
        """An empty page in a browser that knows nobody; `refresh_ms` is the choice of the user at the top."""
        context = self.chromium.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        if refresh_ms is not None:
            page.add_init_script(f"localStorage.setItem('leveret.refreshMs', '{refresh_ms}')")
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.on("console", self._on_console)
        return page

    def _on_console(self, message):
        # A refused request is shown to the user; the browser tells it as well.
        if message.type == "error" and NOBODY in message.text:
            self.complaints.append(f"asks somebody else: {message.location['url']}")
        elif message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(f"console: {message.text}")

    def log_in(self, user="guest", password=None, at="#/", **options):
        """A page of somebody who has logged in."""
        page = self.new_page(**options)
        page.goto(f"{self.url}/{at}")
        page.fill("[data-test=user]", user)
        page.fill("[data-test=password]", password or user)
        page.click("[data-test=login-submit]")
        page.wait_for_selector("[data-test=user-menu]")
        return page

    def go(self, page, at):
        """Leaves for another page by its address."""
        page.evaluate("at => { location.hash = at }", at)

    def close(self):
        """Ends all pages.

        Raises AssertionError when one of them had something to complain about.
        """
        for context in self.contexts:
            context.close()
        complaints, self.complaints = self.complaints, []
        assert not complaints, "\n".join(complaints)
