"""The examples of README.md and docs/: they run, page by page, and print the text that stands below them.

A page is one session with a broker of its own. Python blocks share their names; a block of definitions in JSON is
imported; blocks of commands run when every command is curl, leveretctl or one of its other names. A block `text` that
follows an example is its output, where `...` stands for any characters. A block that opens with "```python skip" needs
what a test does not have.
"""

import contextlib
import io
import json
import os
import random
import re
import subprocess
import tomllib
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

pytestmark = pytest.mark.tools

ROOT = Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Times, of which a page shows the least.
SECONDS = re.compile(r"(\d+\.\d) s\b")
#: Variables and functions of the shell, which later blocks of the page use, too.
SHARED = re.compile(r"\w+=\S+$|\w+\(\) \{.*\}$")
TOOLS = ("leveretctl", "rabbitmqctl", "rabbitmq-diagnostics")
FAMILIES = {"users", "vhosts", "permissions", "policies", "parameters", "exchanges", "queues", "bindings"}


def examples(page):
    """The blocks that can run: line, language, source and the output that the page shows, or None."""
    text = page.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    for fence, following in zip(fences, [*fences[1:], None]):
        language, source = fence[1], fence[2]
        if language == "sh" and not is_runnable(source) or language == "json" and not is_definitions(source):
            continue
        if language in ("python", "sh", "json"):
            is_output = following and following[1] == "text" and not text[fence.end():following.start()].strip()
            yield text.count("\n", 0, fence.start()) + 1, language, source, following[2] if is_output else None


def is_runnable(source):
    """True if every command of a block is curl, a tool of Leveret's, or a function that pages define."""
    commands = re.sub(r"\\\n\s*|'[^']*'", " ", source)
    words = [line.split()[0] for line in commands.splitlines() if line.strip() and not SHARED.match(line)]
    return all(word in {"curl", "call", "api", *TOOLS} for word in words)


def is_definitions(source):
    """True if a block is a document of definitions."""
    with contextlib.suppress(ValueError):
        document = json.loads(source)
        return isinstance(document, dict) and FAMILIES.issuperset(document)
    return False


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = {str(page.relative_to(ROOT)): page for page in PAGES if any(examples(page))}


def orders():
    """Orders in which a reader may go through the pages: as docs/README.md lists them, back, and at random."""
    listed = re.findall(r"\]\(([\w/-]+\.md)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    listed = ["README.md", *(f"docs/{page}" for page in dict.fromkeys(listed) if f"docs/{page}" in PAGES)]
    return {"listed": listed, "reversed": listed[::-1], "shuffled": random.Random(1).sample(listed, len(listed))}


ORDERS = orders()
#: The page about security deletes the user of all examples, and has this line for readers who go on with them.
BRING_GUEST_BACK = "leveretctl add_user guest guest --tags administrator --all-permissions"


class Session:
    """A broker and everything that the examples of one page share."""

    def __init__(self, broker, tools):
        self.broker = broker
        self.names, self.shared = {}, []
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "LEVERET_DATA_DIR": str(broker.data_dir)}

    def run(self, line, language, source):
        """Run an example; its output."""
        source = source.replace("localhost:15672", self.broker.api.url.removeprefix("http://"))
        if language == "json":
            self.broker.api.do("POST", "/api/definitions", json.loads(source))
            return ""
        if language == "sh":
            command = ["bash", "-e", "-c", "\n".join([*self.shared, source])]
            self.shared += [line for line in source.splitlines() if SHARED.match(line)]
            done = subprocess.run(command, env=self.environment, cwd=self.broker.directory, capture_output=True, text=True,
                                  timeout=300, check=False)
            assert done.returncode == 0, f"line {line}: status {done.returncode}\n{done.stdout}{done.stderr}"
            return done.stdout
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + source, "example", "exec"), self.names)  # noqa: S102
        self.wait_for_channels()
        return printed.getvalue()

    def wait_for_channels(self):
        """Wait until the broker has done what the examples sent: publishes, acks and rejects have no answer.

        The next example may look at it through another connection.
        """
        for value in self.names.values():
            if isinstance(value, BlockingChannel) and value.is_open:
                value.exchange_declare("amq.direct", passive=True)

    def begin_page(self):
        """Forget what the examples of the page before have shared; their broker stays."""
        self.close()
        self.names, self.shared = {}, []

    def close(self):
        """Close the connections that the examples have left open."""
        for value in self.names.values():
            if isinstance(value, pika.BlockingConnection) and value.is_open:
                value.close()


@pytest.fixture
def session(under, pytestconfig, tmp_path, monkeypatch):
    """A session with a new broker, at the default addresses of pika and of the tools."""
    if under.name != "leveret":
        pytest.skip("the examples are Leveret's")
    for tool in TOOLS:
        (tmp_path / tool).symlink_to(Path(pytestconfig.getoption("--leveretctl-bin")).resolve())
    broker = under.start()
    monkeypatch.setattr(pika.connection.Parameters, "DEFAULT_PORT", broker.amqp[1])
    session = Session(broker, tmp_path)
    yield session
    session.close()
    broker.stop()


def run_page(session, page):
    """Run the examples of a page in a new session of Python and shell, and compare what they print with the page."""
    session.begin_page()
    for line, language, source, shown in examples(PAGES[page]):
        printed = session.run(line, language, source)
        if shown is not None:
            pattern = re.escape(SECONDS.sub("S s", shown).strip()).replace(re.escape("..."), ".*")
            wrong = f"{page}:{line} printed\n{printed}instead of\n{shown}"
            assert re.fullmatch(pattern, SECONDS.sub("S s", printed).strip(), re.DOTALL), wrong
            # A busy machine takes longer; the broker is never early.
            took, least = map(SECONDS.findall, (printed, shown))
            assert all(float(seconds) >= float(expected) for seconds, expected in zip(took, least)), wrong


@pytest.mark.parametrize("page", PAGES)
def test_page_prints_what_it_shows(session, page):
    run_page(session, page)


@pytest.mark.parametrize("order", ORDERS)
def test_pages_share_a_broker_in_any_order(session, order):
    for page in ORDERS[order]:
        run_page(session, page)
        if page == "docs/start/secure.md":
            session.run(0, "sh", BRING_GUEST_BACK)


def test_readme_example_outlives_a_restart(session, monkeypatch):
    run_page(session, "README.md")
    session.close()
    session.broker.stop_and_start_again()
    monkeypatch.setattr(pika.connection.Parameters, "DEFAULT_PORT", session.broker.amqp[1])
    connection = pika.BlockingConnection()
    channel = connection.channel()
    for n in range(5):
        channel.basic_publish("", "sms.ttl", str(n), pika.BasicProperties(expiration="100", delivery_mode=2))
    while channel.queue_declare("sms.ttl", passive=True).method.message_count > 0:
        connection.sleep(0.05)
    assert channel.queue_declare("sms.unsent", passive=True).method.message_count == 95
    connection.close()


def test_programs_of_frameworks_are_run_or_said_not_to_be():
    clients = (ROOT / "tests" / "interop" / "clients").glob("*/clients.toml")
    commands = [client["command"] for file in clients for client in tomllib.loads(file.read_text(encoding="utf-8"))["client"]]
    run = {word for command in commands for word in command if word.endswith(".md")}
    pages = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "frameworks").glob("*.md")}
    not_run = {name for name, text in pages.items() if re.search(r"\bnot\s+run here|\bwas\s+not\s+run\b", text)}
    assert run <= set(pages)
    assert set(pages) - run - not_run == {"index.md"}


def test_limits_page_and_source_have_the_same_constants():
    page = (ROOT / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = {name for cell in cells for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", cell)}
    named = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", page))
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "crates").rglob("src/**/*.rs"))
    files = [path for path in (ROOT / "crates").rglob("src/limits.rs") if path.parts[-3] != "perf"]
    limits = {name for path in files for name in re.findall(r"pub(?:\(crate\))? const (\w+)", path.read_text(encoding="utf-8"))}
    # Exit codes are not limits.
    defined = set(re.findall(r"\b(?:const|static) (\w+)", sources))
    assert sorted(listed - defined) == []
    assert sorted(limits - named - {"EXIT_CONFIG", "EXIT_DISK"}) == []
