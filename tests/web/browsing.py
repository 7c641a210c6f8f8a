"""The browser: pages that are watched for errors of any kind while they are used."""

from urllib.parse import quote

FLAGS = [
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
TIMEOUT_MS = 15_000


def segment(*names):
    """Names as the address of a page has them."""
    return "/".join(quote(name, safe="") for name in names)


class Site:
    """What users see of one broker."""

    def __init__(self, chromium, broker, prefix=""):
        self.chromium, self.broker = chromium, broker
        self.url = broker.api.url + prefix
        self.contexts, self.complaints = [], []

    def new_page(self, viewport=WIDE, scheme="light"):
        """An empty page in a browser that knows nobody."""
        context = self.chromium.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.on("console", self._on_console)
        page.on("request", self._on_request)
        return page

    def _on_console(self, message):
        # A refused request is shown to the user; the browser tells it as well.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(f"console: {message.text}")

    def _on_request(self, request):
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.complaints.append(f"asks somebody else: {request.url}")

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
