"""Every case of the battery is either marked on a test or left out with a reason, and never both."""

import re
from pathlib import Path

import battery
import report


def marked_cases():
    marked = set()
    for module in Path(__file__).parent.glob("*.py"):
        for part, numbers in re.findall(r"pytest\.mark\.(hb|ht)\(([\d, ]+)\)", module.read_text()):
            marked.update(f"{part.upper()}-{number.strip()}" for number in numbers.split(","))
    return marked


def test_every_case_is_covered_or_left_out():
    every = {f"{part}-{number}" for part, (_, catalogue) in report.PARTS.items() for number in catalogue}
    marked = marked_cases()
    assert marked | set(battery.LEFT_OUT) == every
    assert not marked & set(battery.LEFT_OUT)


def test_the_amqp_part_has_no_gaps():
    assert list(battery.AMQP) == list(range(1, 105))
