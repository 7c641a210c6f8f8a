"""docs/guides/three-nodes.md: the first section runs as written, with other ports, and prints what it shows."""

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

import ports

pytestmark = [pytest.mark.better, pytest.mark.tools]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "three-nodes.md"
FENCE = re.compile(r"^```(sh skip|text)\n(.*?)^```$", re.M | re.S)
# The first three digits of the ports for AMQP on the page; before them is 1 for HTTP, and 2 for links.
DIGITS = "567"


@pytest.fixture
def section(by_broker):
    """The blocks of the section, in pairs of language and content, with ports that are its own."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("the page is about Leveret")
    text = PAGE.read_text(encoding="utf-8")
    [section] = re.findall(r"^## Three nodes in five minutes.*?(?=^## )", text, re.M | re.S)
    numbers = {digits: [int(f"{kind}{digits}{node}") for kind in ("", "1", "2") for node in "234"]
               for digits in range(200, 320)}
    digits = next(digits for digits, wanted in numbers.items() if ports.owns_all(wanted))
    # Not the ports that end differently, and nothing but ports has these digits.
    yield FENCE.findall(re.sub(rf"{DIGITS}(?=[234$[])", str(digits), section))
    ports.give_back(numbers[digits])


def test_three_nodes_in_five_minutes(section, pytestconfig, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("leveret", "leveretctl"):
        (tools / tool).symlink_to(Path(pytestconfig.getoption(f"--{tool}-bin")).resolve())
    script, shown = "", {}
    for at, (language, content) in enumerate(section):
        if language == "text":
            shown[at - 1] = content
        else:
            script += f"echo '<{at}>'\n{content}\necho '</{at}>'\n"
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    ran = subprocess.Popen(["bash", "-e", "-c", script], cwd=tmp_path, env=environment, start_new_session=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = ran.communicate(timeout=600)
    finally:
        # The nodes, if the script did not come to its end.
        with suppress(ProcessLookupError):
            os.killpg(ran.pid, signal.SIGKILL)
    assert ran.returncode == 0, out + err
    printed = {int(at): text for at, text in re.findall(r"<(\d+)>\n(.*?)</\1>", out, re.S)}
    assert len(shown) == 2
    for at, text in shown.items():
        pattern = re.escape(text.strip()).replace(re.escape("..."), ".*")
        assert re.fullmatch(pattern, printed[at].strip(), re.S), f"printed\n{printed[at]}instead of\n{text}"
    [killed] = [text for text in printed.values() if "this node is down" in text]
    assert killed.count('"payload":"one"') == killed.count('"redelivered":true') == 2
    [replicas] = [text for text in printed.values() if '"lags"' in text]
    assert '"vhost":"/","state":"leader"' in replicas and replicas.count('"vhost":"/"') == 3
