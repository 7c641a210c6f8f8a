"""Which cases of the hostile battery this suite covers: every number is either marked on a test or left out below."""

import re
from pathlib import Path

BATTERY = range(1, 103)

LEFT_OUT = {
    73: "consistent-hash exchange: a plug-in's exchange type, tested with the exchanges",
    74: "limits per user need the HTTP API to be set",
    75: "connection and channel limits per user and vhost need the HTTP API to be set",
    82: "policies need the HTTP API",
    84: "channel_max_per_node is configuration",
    87: "TLS",
    89: "PROXY protocol",
    93: "TLS",
    98: "permissions need the HTTP API to be set",
    100: "killing the broker belongs to the crash tests",
}


def marked_cases():
    numbers = set()
    for module in Path(__file__).parent.glob("test_*.py"):
        for marks in re.findall(r"pytest\.mark\.hb\(([\d, ]+)\)", module.read_text()):
            numbers.update(int(number) for number in marks.split(","))
    return numbers


def test_every_case_is_covered_or_left_out():
    marked = marked_cases()
    assert marked | set(LEFT_OUT) == set(BATTERY)
    assert not marked & set(LEFT_OUT)
