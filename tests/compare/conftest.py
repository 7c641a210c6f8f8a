"""The options of the other suites, as far as they matter here."""

import os


def pytest_addoption(parser):
    parser.addoption("--broker", choices=["leveret"], default="leveret", help="what is tested")
    parser.addoption("--leveret-bin", default=os.environ.get("LEVERET_BIN"), help="path of the binary (or LEVERET_BIN)")
