"""Leveret's answers over HTTP, held against those that `compare.py` has recorded of a RabbitMQ.

Every difference stands in `known_differences.txt`; `UPDATE=1` writes what is the case there: read the diff.
"""

import json
import os
import pathlib

import compare
from brokers import Leveret

KNOWN = pathlib.Path(__file__).resolve().parent / "known_differences.txt"


def test_answers_have_the_recorded_shapes(pytestconfig, tmp_path):
    broker = Leveret(pytestconfig.getoption("--leveret-bin"), tmp_path)
    try:
        ours = compare.asked(compare.Side(broker, {}, tmp_path))
    finally:
        broker.stop()
    theirs = [compare.Answered(**answer) for answer in json.loads(compare.RECORDED.read_text())]
    rows = compare.compare_all(ours, theirs)
    lines = dict.fromkeys(f"{row.what}: {row.verdict}: {row.notes}" for row in rows if row.verdict != "equal")
    differences = "".join(line + "\n" for line in lines)
    if os.environ.get("UPDATE"):
        KNOWN.write_text(differences)
    assert differences == KNOWN.read_text()
