"""Leveret beside RabbitMQ's kept answers: each difference has a reason. See tests/compare."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "compare"))

import compare  # noqa: E402
import pages  # noqa: E402
import verdicts  # noqa: E402

pytestmark = [pytest.mark.better, pytest.mark.tools]


def test_answers_differ_from_rabbitmqs_on_purpose_only(by_broker, pytestconfig):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("Leveret beside RabbitMQ's answers")
    ctl = pytestconfig.getoption("--leveretctl-bin")
    if ctl is None:
        pytest.skip("no --leveretctl-bin")
    on_purpose = verdicts.OnPurpose()
    parts = compare.compared(compare.recorded(), compare.ask_leveret(pytestconfig.getoption("--leveret-bin"), ctl), on_purpose)
    found = [(row.asked, row.notes) for rows in parts.values() for row in rows if row.verdict in ("different", "missing")]
    assert found == []
    assert on_purpose.unused() == []


def test_reasons_are_those_on_the_page(by_broker):
    by_broker(rabbitmq=None, leveret=None)
    text = (ROOT / pages.TABLE).read_text()
    assert pages.with_reasons(text, verdicts.OnPurpose()) == text, "`cargo xtask compare` writes the list"


def test_difference_without_a_reason_is_found(by_broker):
    by_broker(rabbitmq=None, leveret=None)
    on_purpose = verdicts.OnPurpose('[[difference]]\nasked = "GET a"\nnote = "more: .*"\nreason = "why"')
    theirs = {"GET a": {"what": "GET a", "status": 200, "shape": {"": "object", "b": "text"}},
              "GET c": {"what": "GET c", "status": 200, "shape": {"": "object"}}}
    ours = {"GET a": {"status": 200, "shape": {"": "object", "b": "text", "d": "text"}},
            "GET c": {"status": 404, "reason": "Not Found"}}
    [first, second] = verdicts.rows(theirs, ours, on_purpose)
    assert (first.verdict, first.notes) == ("on purpose", {"more: d": "why"}) and on_purpose.unused() == []
    assert second.verdict == "missing"
    assert verdicts.rows({"GET a": theirs["GET c"]}, ours, verdicts.OnPurpose("difference = []"))[0].verdict == "different"
