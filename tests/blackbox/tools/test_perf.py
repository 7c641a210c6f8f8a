"""leveret-perf: what it counts is right, whichever broker it loads, and it leaves nothing behind."""

import contextlib
import json
import os
import re
import signal
import urllib.parse

import programs
import pytest
from certificates import Authority
from patience import PATIENCE_S
from perf import Perf

pytestmark = pytest.mark.tools

SECOND = ["--time", "0.8", "--warm-up", "0.2"]


@pytest.fixture
def perf(under, pytestconfig, prefix):
    """The program, about to load the shared broker."""
    binary = os.environ.get("LEVERET_PERF_BIN")
    if binary is None:
        leveret = pytestconfig.getoption("--leveret-bin")
        if leveret is None:
            pytest.skip("LEVERET_PERF_BIN says which leveret-perf is to load a RabbitMQ")
        binary = programs.tool("leveret-perf", leveret)
    host, port = under.shared().amqp
    return Perf(binary, f"amqp://guest:guest@{host}:{port}/%2f")


@pytest.fixture
def name(under, prefix):
    """How names begin; in the end nothing may have such a name any more."""
    yield prefix
    api = under.shared().api
    vhost = urllib.parse.quote("/", safe="")
    left = [thing["name"] for kind in ("queues", "exchanges") for thing in api.ask(f"/api/{kind}/{vhost}").json]
    assert [thing for thing in left if thing.startswith(prefix)] == []
    under.shared().check()


def only(outcomes):
    """The one outcome of a run."""
    [outcome] = outcomes
    return outcome


def test_throughput_counts_what_it_sends_and_takes(perf, name):
    outcome = only(perf.measure("throughput", "--name", name, *SECOND, "--size", 100, "--in-flight", 500))
    counts = outcome["counts"]
    assert counts["consumed"] > 100
    assert abs(counts["published"] - counts["consumed"]) <= 500 + 64 * 1024 / 100
    assert counts["consumed_bytes"] == 100 * counts["consumed"]
    assert outcome["rates"]["consumed"] == pytest.approx(counts["consumed"] / outcome["elapsed_s"], abs=1)
    latency = [outcome["latency_us"][key] for key in ("min", "p50", "p75", "p95", "p99", "p999", "max")]
    assert latency == sorted(latency) and latency[0] > 0
    assert outcome["confirm_latency_us"] is None and not outcome["interrupted"]


@pytest.mark.parametrize("words", [
    ["--size", 16, "--auto-ack"],
    ["--size", 0],
    ["--persistent", "--confirm", 100, "--ack-every", 10],
    ["--size", 300_000, "--in-flight", 20],
    ["-x", 3, "-y", 2, "--queues", 5],
    ["--exchange-type", "topic", "--queues", 3, "--bindings", 300, "--mandatory"],
    ["--rate", 500, "--consumer-rate", 1000],
    ["--persistent", "-A", "x-max-priority=5", "--priority-max", 5],
    ["--persistent", "-A", "x-queue-type=quorum", "--confirm", 50],
], ids=lambda words: " ".join(map(str, words)))
def test_loads_arrive(perf, name, words):
    outcome = only(perf.measure("throughput", "--name", name, *SECOND, *words))
    counts = outcome["counts"]
    assert counts["consumed"] > 0 and counts["returned"] == counts["refused"] == 0
    if "--confirm" in words:
        assert counts["confirmed"] > 0 and outcome["confirm_latency_us"]["p50"] > 0
    if "--rate" in words:
        # What a busy machine held up before the measured time comes in it; without a rate there are tens of thousands.
        assert outcome["rates"]["published"] <= 1500


def test_a_fanout_multiplies(perf, name):
    words = ["--exchange-type", "fanout", "--queues", 4, "--in-flight", 100, "--size", 1000]
    counts = only(perf.measure("throughput", "--name", name, *SECOND, *words))["counts"]
    assert abs(counts["consumed"] - 4 * counts["published"]) <= 4 * (100 + 66)


def test_rejected_messages_arrive_in_the_dead_letter_queue(perf, name):
    words = ["--reject", "--size", 20, "--in-flight", 100]
    outcome = only(perf.measure("throughput", "--name", name, *SECOND, *words))
    counts = outcome["counts"]
    assert counts["rejected"] == counts["consumed"] > 0
    assert 0 < counts["dead_lettered"] and abs(counts["dead_lettered"] - counts["rejected"]) <= 100 + 64 * 1024 / 20
    assert outcome["dead_letter_latency_us"]["p50"] >= outcome["latency_us"]["min"]


@pytest.mark.parametrize("ttl", ["200", "100..300"])
@pytest.mark.parametrize("words", [[], ["--persistent"]], ids=["transient", "persistent"])
def test_messages_expire_once_and_never_early(perf, name, ttl, words, under):
    if under.name == "rabbitmq" and ".." in ttl:
        words = [*words, "--rate", "5000"]
    outcome = only(perf.measure("expiry", "--name", name, "-n", 5000, "--ttl-ms", ttl, *words))
    counts = outcome["counts"]
    assert counts["published"] == counts["confirmed"] == counts["dead_lettered"] == 5000
    assert (counts["early"], counts["doubled"]) == (0, 0)
    assert outcome["lateness_us"]["min"] > 0


def test_a_backlog_is_filled_and_drained(perf, name):
    fill, drain = perf.measure("backlog", "--name", name, "-n", 20_000, "--size", 100, "--persistent")
    assert (fill["run"], drain["run"]) == ("fill", "drain")
    assert fill["counts"]["published"] == fill["counts"]["confirmed"] == drain["counts"]["consumed"] == 20_000
    assert drain["latency_us"] is None  # how long a message lay there says nothing of the broker


@pytest.mark.parametrize("what", ["connections", "channels", "queues"])
def test_churn_counts_what_came_and_went(perf, name, what):
    outcome = only(perf.measure("churn", what, "--name", name, "--time", "0.5", "-x", 2))
    assert outcome["counts"]["churned"] > 0 and outcome["latency_us"]["p50"] > 0


def test_the_report_has_the_plots(perf, name, tmp_path):
    report = tmp_path / "report.html"
    ran = perf.run("throughput", "--name", name, "--time", "1.5", "--warm-up", "0", "--size", 20, "--html", report)
    assert ran.code == 0, ran
    page = report.read_text()
    assert page.count("<svg") == 2 and "Per second" in page and "Latency" in page
    for line in ran.out.splitlines():
        assert line in page
    assert re.search(r"\d\.\d s  published .*/s  consumed .*/s", ran.err), ran.err


def test_the_processor_time_of_a_broker_on_this_machine(perf, name, under):
    if under.name == "rabbitmq":
        pytest.skip("its process is not the suite's")
    process = under.shared().process.pid
    figures = only(perf.measure("throughput", "--name", name, *SECOND, "--broker-pid", process))["broker_process"]
    assert figures["cpu_s"] > 0 and figures["cpu_us_per_message"] > 0 and figures["resident_bytes"] > 1_000_000
    ran = perf.run("throughput", "--name", name, *SECOND, "--broker-pid", 2**31 - 1)
    assert ran.code == 1 and "cannot read /proc/2147483647/stat" in ran.err


@pytest.mark.parametrize("words", [
    ["throughput", "--time", "60", "--warm-up", "0"],
    ["backlog", "-n", "1000000000"],
    ["expiry", "-n", "1000000000", "--ttl-ms", "10"],
], ids=lambda words: words[0])
def test_an_interrupt_ends_a_run_with_what_was_measured(perf, name, words):
    process = perf.start(*words, "--name", name, "--json")
    process.stderr.readline()  # the first second is printed
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    outcome = only(json.loads(out))
    assert outcome["interrupted"] and outcome["counts"]["published"] > 0
    assert process.returncode == 0


def test_tls(perf, under, tmp_path):
    if under.name == "rabbitmq":
        pytest.skip("the certificates of a running RabbitMQ are not the suite's to change")
    authority = Authority(tmp_path)
    pair = authority.sign("server")
    with contextlib.ExitStack() as undo:
        broker = under.start(f"""
            listeners.ssl.1 = 127.0.0.1:0
            ssl_options.cacertfile = {authority.file}
            ssl_options.certfile = {pair.certificate}
            ssl_options.keyfile = {pair.key}""")
        undo.callback(broker.stop)
        uri = f"amqps://guest:guest@localhost:{broker.port('AMQPS')}/%2f"
        words = ["throughput", *SECOND, "--size", 50_000]
        assert only(perf.measure(*words, "--cacert", authority.file, uri=uri))["counts"]["consumed"] > 0
        other = Authority(tmp_path, "other")
        ran = perf.run(*words, "--cacert", other.file, uri=uri)
        assert ran.code == 1 and "TLS to localhost" in ran.err
        ran = perf.run(*words, uri=uri)
        assert (ran.code, ran.err) == (1, "error: amqps needs --cacert FILE\n")


@pytest.mark.parametrize("login, path, said", [
    ("guest:wrong", "%2f", "ACCESS_REFUSED"),
    ("guest:guest", "nowhere", "vhost nowhere not found"),
])
def test_refused_login_is_printed_in_the_brokers_words(perf, login, path, said):
    address = perf.uri.split("@")[1].split("/")[0]
    ran = perf.run("throughput", uri=f"amqp://{login}@{address}/{path}")
    assert ran.code == 1 and said in ran.err and "wrong" not in ran.err


def test_refusal_of_the_broker_is_printed(perf, name):
    ran = perf.run("throughput", "--name", name, "-A", "x-message-ttl=soon")
    assert ran.code == 1 and "406 PRECONDITION_FAILED - invalid arg 'x-message-ttl'" in ran.err


@pytest.mark.parametrize("uri, said", [
    ("http://guest:secret@localhost", "Invalid AMQP scheme"),
    ("amqp://guest:secret@localhost:99999", "port"),
    ("amqp://guest:secret@127.0.0.1:1", "cannot connect to 127.0.0.1:1"),
])
def test_wrong_uri_is_printed_without_its_password(perf, uri, said):
    ran = perf.run("throughput", uri=uri)
    assert ran.code == 1 and said in ran.err and "secret" not in ran.err


@pytest.mark.parametrize("words, said", [
    (["expiry", "--size", "19"], "--size must be 20 or more"),
    (["throughput", "--time", "0"], "more than 0 seconds"),
    (["throughput", "--auto-ack", "--reject"], "cannot be used with"),
    (["throughput", "--bindings", "3"], "--exchange-type"),
    (["throughput", "--html", "/nowhere/report.html"], "/nowhere/report.html"),
    (["churn", "nothing"], "connections, channels, queues"),
    ([], "Usage"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_invalid_options_are_refused_before_connecting(perf, words, said):
    ran = perf.run(*words, uri="amqp://127.0.0.1:1")
    assert ran.code != 0 and said in ran.err and "cannot connect" not in ran.err, ran
