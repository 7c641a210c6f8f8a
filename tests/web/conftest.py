"""A broker, a browser, and a page that has nothing to complain about."""

import os
import pathlib
import shutil
import sys
import zlib

import pytest
from playwright.sync_api import expect, sync_playwright

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "blackbox" / "support"))

from brokers import Leveret  # noqa: E402
from ports import free_port, give_back  # noqa: E402

from browsing import FLAGS, TIMEOUT_MS, Site  # noqa: E402

# An expectation waits as long as everything else: on a busy machine, a page needs more than one refresh.
expect.set_options(timeout=TIMEOUT_MS)


def found_browser():
    """The browser without windows, which needs half the processor time; or the whole one."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def pytest_addoption(parser):
    parser.addoption("--broker", choices=["leveret"], default="leveret", help="what is tested")
    parser.addoption("--leveret-bin", default=os.environ.get("LEVERET_BIN"), help="path of the binary (or LEVERET_BIN)")
    parser.addoption("--chromium", default=found_browser(), help="path of the browser")
    parser.addoption("--screenshots", type=pathlib.Path, help="folder for pictures; xtask's beside the binary otherwise")


@pytest.fixture(scope="session")
def chromium(request):
    """The browser, one for all tests of a process."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=request.config.getoption("--chromium"), args=FLAGS, chromium_sandbox=False)
        yield browser
        browser.close()


@pytest.fixture
def screenshots(request):
    """The folder for pictures."""
    options = request.config.option
    folder = options.screenshots or pathlib.Path(options.leveret_bin).parent.parent / "xtask" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def broker(request, tmp_path):
    yield from running(request, tmp_path)


@pytest.fixture
def broker_below(request, tmp_path):
    """A broker whose page and API are below `/rabbit`."""
    yield from running(request, tmp_path, "management.path_prefix = /rabbit\n")


@pytest.fixture(scope="module")
def busy_broker(request, tmp_path_factory):
    """The same for all tests of a file."""
    yield from running(request, tmp_path_factory.mktemp("broker"))


def running(request, directory, config=""):
    """A broker whose page and API are at the same address after a restart."""
    port = free_port()
    broker = Leveret(request.config.getoption("--leveret-bin"), directory, config, http=f"127.0.0.1:{port}")
    yield broker
    broker.check()
    broker.stop()
    give_back([port])


@pytest.fixture
def site_of(chromium):
    """Opens pages of a broker; each must have had nothing to complain about in the end."""
    sites = []

    def of(broker, **options):
        sites.append(Site(chromium, broker, **options))
        return sites[-1]

    yield of
    for site in sites:
        site.close()


@pytest.fixture
def site(site_of, broker):
    """The same for the test's own broker."""
    return site_of(broker)


@pytest.fixture
def name(request):
    """A name that only this test uses, the same in every run."""
    return f"q{zlib.crc32(request.node.nodeid.encode()):08x}"
