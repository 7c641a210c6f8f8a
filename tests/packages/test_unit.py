"""The unit for systemd: valid, hardened, and with the commands that the package installs."""

import pathlib
import shutil

import pytest

from conftest import run

pytestmark = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")

# The exposure that `systemd-analyze security` computes, times ten: a service with network, but hardly more.
EXPOSURE_MAX = 20


@pytest.fixture
def unit(unpacked):
    return unpacked / "lib/systemd/system/leveret.service"


def test_unit_is_valid(unit, unpacked, tmp_path):
    # systemd-analyze looks for the program where the unit names it.
    text = unit.read_text().replace("ExecStart=/usr/bin/leveret ", f"ExecStart={unpacked}/usr/bin/leveret ")
    (tmp_path / "leveret.service").write_text(text)
    assert run("systemd-analyze", "verify", "--man=no", tmp_path / "leveret.service").strip() == ""


def test_unit_is_hardened(unit):
    run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", unit)


def test_unit_names_what_the_package_installs(unit, unpacked):
    settings = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line and line[0] != "#")
    program, *words = settings["ExecStart"].split()
    for path in [program, *[word for word in words if word.startswith("/")]]:
        assert (unpacked / path.lstrip("/")).exists(), path
    assert settings["Type"] == "notify" and settings["RestartPreventExitStatus"].split() == ["2", "78"]
    assert pathlib.PurePath(settings["WorkingDirectory"]) == pathlib.PurePath("/var/lib", settings["StateDirectory"].split()[0])
