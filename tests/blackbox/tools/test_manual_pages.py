"""The manual pages that the programs print."""

import subprocess

import pytest

from patience import PATIENCE_S
from programs import tool

pytestmark = pytest.mark.tools


@pytest.mark.parametrize("program", ["leveret man", "leveret man check", "leveret-perf man", "leveret-perf man churn",
                                     "leveretctl man"])
def test_manual_page_is_one_for_man(under, program):
    if under.name == "rabbitmq":
        pytest.skip("the manual pages of Leveret")
    name, *words = program.split()
    broker = under.config.getoption("--leveret-bin")
    binary = broker if name == "leveret" else tool(name, broker)
    page = subprocess.run([binary, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    assert page.splitlines()[0].startswith((".ie", ".TH"))
    assert {".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"} <= set(page.splitlines())
