"""Where the judges are; the tests here need no broker."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / one) for one in ("crash", "faults", "hostile", "blackbox/support")]


def pytest_addoption(parser):
    parser.addoption("--broker", choices=("leveret",), default="leveret", help="no test here starts it")
