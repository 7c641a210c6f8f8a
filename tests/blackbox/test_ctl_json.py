"""What the tools print for programs: fields and types of the JSON, the stream, and the exit code, as of RabbitMQ's tools.

`recorded/rabbitmq_ctl_shapes.json` has what RabbitMQ's own tools print; `support/ctl_shapes.py` records it.
"""

import json
import shlex

import pytest

import ctl_shapes
from ctl_shapes import DIAGNOSTICS, QUEUES
from test_ctl import ctl, node  # noqa: F401

pytestmark = [pytest.mark.tools, pytest.mark.better, pytest.mark.alone]

# What differs on purpose; see the deviations of the command line tools in COMPATIBILITY.md.
ON_PURPOSE = {
    (DIAGNOSTICS, "check_port_listener 1"): ["ports: list, not text"],
    (QUEUES, "rebalance all"): ["without value[].Number of quorum queues"],
}


@pytest.fixture
def names(api):
    """What the commands make is not there before, nor after."""

    def clean():
        for kind in ("users", "vhosts"):
            api.request("DELETE", f"/api/{kind}/{ctl_shapes.NAME}")

    clean()
    yield
    clean()


@pytest.mark.usefixtures("names")
def test_json_has_the_fields_of_rabbitmqs_tools(ctl, node, by_broker):  # noqa: F811
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("leveretctl with Leveret")
    recorded = json.loads(ctl_shapes.RECORDED.read_text())
    assert [(one["tool"], one["line"]) for one in recorded] == ctl_shapes.COMMANDS
    found = {}
    for theirs in recorded:
        tool, line = theirs["tool"], theirs["line"]
        ran = ctl.run(*shlex.split(line), "--formatter", "json", tool=tool)
        ours = ctl_shapes.shape_of((ran.code, ran.out, ran.err), node)
        differences = ctl_shapes.differences(theirs, ours)
        if differences != ON_PURPOSE.get((tool, line), []):
            found.setdefault(f"{tool} {line}", []).extend(differences)
    assert found == {}
