"""The packages that `cargo xtask test --only dist` has made: folders `one` and `two` of the same programs, and `old`."""

import json
import os
import pathlib
import subprocess

import pytest


def pytest_addoption(parser):
    parser.addoption("--broker", choices=["leveret"], default="leveret", help="what is tested")
    parser.addoption("--packages", type=pathlib.Path, required=True, help="folder with one, two and old")


@pytest.fixture(scope="session")
def packages(pytestconfig):
    return pytestconfig.getoption("--packages")


def only(folder, pattern):
    found = list(folder.glob(pattern))
    assert len(found) == 1, (folder, pattern, found)
    return found[0]


@pytest.fixture(scope="session")
def deb(packages):
    return only(packages / "one", "*.deb")


@pytest.fixture(scope="session")
def old_deb(packages):
    return only(packages / "old", "*.deb")


@pytest.fixture(scope="session")
def archive(packages):
    return only(packages / "one", "*.tar.gz")


@pytest.fixture(scope="session")
def sbom(packages):
    return json.loads(only(packages / "one", "*.cdx.json").read_text())


@pytest.fixture(scope="session")
def unpacked(deb, tmp_path_factory):
    """The files of the Debian package."""
    folder = tmp_path_factory.mktemp("deb")
    run("dpkg-deb", "--extract", deb, folder)
    return folder


def run(*command, **options):
    """Runs a command to its success; returns what it has printed."""
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False,
                         env=os.environ | {"LC_ALL": "C.UTF-8"}, **options)
    assert ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout + ran.stderr
