"""Where the judges are; the tests here need no broker."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "crash"))


def pytest_addoption(parser):
    parser.addoption("--broker", choices=("leveret",), default="leveret", help="no test here starts it")
