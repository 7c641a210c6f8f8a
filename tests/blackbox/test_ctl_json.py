"""What the tools print for programs: fields and types of the JSON, the stream, and the exit code, as of RabbitMQ's tools.

`recorded/rabbitmq_ctl_shapes.json` has what RabbitMQ's own tools print; `support/ctl_shapes.py` records it.
"""

import json
import shlex

import pytest

import ctl_shapes
from ctl_shapes import DIAGNOSTICS, QUEUES
from test_ctl import tools

pytestmark = [pytest.mark.tools, pytest.mark.better]

# What differs on purpose; see the deviations of the command line tools in COMPATIBILITY.md.
ON_PURPOSE = {
    (DIAGNOSTICS, "check_port_listener 1"): ["ports: list, not text"],
    (QUEUES, "rebalance all"): ["without value[].Number of quorum queues"],
}


def test_json_has_the_fields_of_rabbitmqs_tools(under, by_broker, pytestconfig, tmp_path):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("leveretctl with Leveret")
    # Its own: an alarm that another test raises is an answer, too.
    broker = under.start()
    try:
        compare(tools(broker, pytestconfig, tmp_path), broker.api.do("GET", "/api/overview")["node"])
    finally:
        broker.stop()


def compare(ctl, node):
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
