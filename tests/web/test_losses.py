"""Refused publishes and lost messages on the page: tiles, columns, lines of charts, warnings."""

import re
import threading

import pytest
from playwright.sync_api import expect

from browsing import segment
from clients import connect
from conftest import running

EVERY_MS = 500  # between two samples of the broker, and between two publishes of the load
NOT_ZERO = r"^(?!0/s)[<\d][\d.,]*/s$"


class Load(threading.Thread):
    """Publishes and deaths without end: a full queue, a queue that loses dead letters, one without an exchange for
    them, and messages for no queue; a consumer that keeps what it has."""

    def __init__(self, broker):
        super().__init__(daemon=True)
        self.is_over = threading.Event()
        self.connection = connect(broker)
        self.channel = channel = self.connection.channel()
        lost = {"x-message-ttl": 50, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "nowhere"}
        channel.queue_declare("full", durable=True, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
        channel.queue_declare("lost", durable=True, arguments=lost)
        channel.queue_declare("meant", durable=True, arguments={"x-message-ttl": 50})
        channel.queue_declare("busy", durable=True)
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume("busy", lambda *_: None, consumer_tag="slow", arguments={"x-priority": 3})
        self.start()

    def run(self):
        while not self.is_over.is_set():
            for queue in ("full", "lost", "meant", "busy", "nowhere"):
                self.channel.basic_publish("", queue, "x")
            self.channel.basic_publish("", "nowhere", "x", mandatory=True)
            self.connection.sleep(0.1)
        self.connection.close()


@pytest.fixture(scope="module")
def loaded(request, tmp_path_factory):
    """A broker under that load, which samples often."""
    for broker in running(request, tmp_path_factory.mktemp("broker"), f"collect_statistics_interval = {EVERY_MS}\n"):
        load = Load(broker)
        yield broker
        load.is_over.set()
        load.join()


@pytest.fixture
def page(site_of, loaded):
    """The overview, asked for every second."""
    return site_of(loaded).log_in(refresh_ms=1000)


def test_a_full_queue_says_so_and_shows_what_it_refuses(page, loaded):
    page.goto(f"{page.url.split('#')[0]}#/queues/{segment('/', 'full')}")
    expect(page.locator("[data-test=full]")).to_contain_text("Full: refuses publishes")
    expect(page.locator("[data-test=in] .stat-value")).to_have_text(re.compile(NOT_ZERO))
    expect(page.locator("[data-test=refused] .stat-value")).to_have_text(re.compile(NOT_ZERO))
    expect(page.locator("[data-test=refused-total]")).to_have_text(re.compile(r"^[1-9].* in total"))
    expect(page.locator("[data-test=chart-flow]")).to_contain_text("Refused")
    expect(page.locator("[data-test=losing]")).to_have_count(0)
    amounts = page.locator("[data-test=amounts]")
    expect(amounts.locator("tbody tr").first).to_contain_text("2")
    expect(amounts).to_contain_text("Persistent")


def test_lost_dead_letters_are_told_from_deaths_without_a_dead_letter_exchange(page, loaded):
    root = page.url.split("#")[0]
    page.goto(f"{root}#/queues/{segment('/', 'lost')}")
    expect(page.locator("[data-test=losing]")).to_contain_text("Dead letters are lost")
    expect(page.locator("[data-test=lost] .stat-value")).to_have_text(re.compile(NOT_ZERO))
    expect(page.locator("[data-test=dropped-without-dlx-total]")).to_have_text("0 in total")
    page.goto(f"{root}#/queues/{segment('/', 'meant')}")
    expect(page.locator("[data-test=dropped-without-dlx-total]")).to_have_text(re.compile(r"^[1-9].* in total"))
    expect(page.locator("[data-test=lost] .stat-value")).to_have_text("0/s")
    expect(page.locator("[data-test=losing]")).to_have_count(0)


def test_consumers_at_their_limit_have_no_capacity(page, loaded):
    page.goto(f"{page.url.split('#')[0]}#/queues/{segment('/', 'busy', 'consumers')}")
    expect(page.locator("[data-test=capacity]")).to_contain_text("at their prefetch limit")
    consumers = page.locator("[data-test=queue-consumers]")
    for words in ("Exclusive", "Active", "Timeout", "Arguments", "x-priority"):
        expect(consumers).to_contain_text(words)


def test_the_list_of_queues_has_a_column_for_refusals_and_states_for_losses(page, loaded):
    page.goto(f"{page.url.split('#')[0]}#/queues")
    rows = page.locator("[data-test=queues] tbody tr")
    of = lambda name: rows.filter(has=page.locator(f"a[title='{name}']"))
    expect(of("full").locator("[data-test=queue-state]")).to_have_text("full")
    expect(of("lost").locator("[data-test=queue-state]")).to_have_text("losing")
    expect(of("meant").locator("[data-test=queue-state]")).to_have_text("running")
    expect(page.locator("[data-test=queues] th").filter(has_text="Refused")).to_be_visible()
    page.click("[data-test=columns] summary")
    hidden = page.locator("[data-test=columns] input:not(:checked)")
    while hidden.count():
        hidden.first.check()
    heads = page.locator("[data-test=queues] th")
    for title in ("Capacity", "Delayed", "Persistent", "Bytes unacked", "Get (empty)", "Deliver (manual ack)", "Lost"):
        expect(heads.filter(has_text=title).first).to_be_visible()
    expect(of("busy")).to_contain_text(" %")
    shown = dict(zip(heads.all_inner_texts(), of("lost").locator("td").all_inner_texts(), strict=True))
    assert shown["Lost"].endswith("/s") and shown["Lost"] != "0/s", shown
    assert shown["Dropped (no DLX)"] == "0/s", shown


def test_the_overview_tells_refused_returned_dropped_and_lost_apart(page, loaded):
    for name in ("refused", "lost"):
        expect(page.locator(f"[data-test={name}] .stat-value")).to_have_text(re.compile(NOT_ZERO))
    for line in ("Refused (queue full)", "Returned (mandatory)", "Dropped (unroutable)"):
        expect(page.locator("[data-test=chart-rates]")).to_contain_text(line)
    for line in ("Dead-lettered (moved)", "Dropped (no DLX)", "Lost (no target queue)"):
        expect(page.locator("[data-test=chart-deaths]")).to_contain_text(line)
    for line in ("Deliver (manual ack)", "Get (empty)"):
        expect(page.locator("[data-test=chart-deliveries]")).to_contain_text(line)


def test_a_channel_an_exchange_and_a_vhost_have_columns_for_refusals(page, loaded):
    root = page.url.split("#")[0]
    for at, table, titles in (
        ("channels", "channels", ("Prefetch", "Refused")),
        ("exchanges", "exchanges", ("Refused",)),
        ("admin/vhosts", "vhosts", ("From clients", "To clients")),
    ):
        page.goto(f"{root}#/{at}")
        for title in titles:
            expect(page.locator(f"[data-test={table}] th").filter(has_text=title).first).to_be_visible()
    page.goto(f"{root}#/channels")
    expect(page.locator("[data-test=channels] tbody tr").first).to_contain_text(re.compile(r"[1-9][\d.]*/s"))
