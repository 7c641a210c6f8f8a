"""An archive after the Debian package and the reverse: each goes on with the configuration and the data of the other."""

import shutil

import pika
import pytest

from debian_root import MACHINE_PACKAGES, DebianRoot
from machine import Machine, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "systemd can be started")

KEPT = pika.BasicProperties(delivery_mode=2)
OWN_UNIT = "etc/systemd/system/leveret.service"


@pytest.fixture
def machine(tmp_path, deb, archive):
    one = Machine(DebianRoot(tmp_path / "root", MACHINE_PACKAGES), tmp_path / "log")
    for file in (deb, archive):
        shutil.copy(file, one.debian / "srv")
    one.run("tar", "-xf", archive.name)
    yield one
    one.end()
    shutil.rmtree(tmp_path / "root")


@pytest.fixture
def install_sh(archive):
    return f"/srv/{archive.name.removesuffix('.tar.gz')}/install.sh"


def publish():
    with pika.BlockingConnection() as client:
        channel = client.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        channel.basic_publish("", "kept", b"body", KEPT)


def waiting():
    with pika.BlockingConnection() as client:
        return client.channel().queue_declare("kept", passive=True).method.message_count


def is_running(machine, messages):
    """True if the service runs, is enabled and has the messages."""
    state = machine.show("ActiveState"), machine.run("systemctl", "is-enabled", "leveret", fails=None).strip()
    return (*state, machine.inside(waiting)) == ("active", "enabled", messages)


def test_archive_after_the_package(machine, deb, install_sh):
    machine.run("apt-get", "install", f"./{deb.name}")
    machine.inside(publish)
    machine.run("apt-get", "--yes", "remove", "leveret")
    machine.run(install_sh)
    assert is_running(machine, 1)
    assert (machine.debian / "etc/leveret/conf.d").is_dir()
    # A purge of what is left of the package must not harm the archive.
    told = machine.run("apt-get", "--yes", "purge", "leveret")
    assert "An archive of Leveret was installed since: its data stays" in told
    assert is_running(machine, 1)
    machine.run(install_sh)
    assert is_running(machine, 1)
    machine.run(install_sh, "--remove")
    assert (machine.debian / "var/lib/leveret-backups").is_dir()
    machine.run("apt-get", "install", f"./{deb.name}")
    assert is_running(machine, 1)


def test_package_after_the_archive(machine, deb, install_sh):
    machine.run(install_sh)
    machine.inside(publish)
    own = machine.debian / "etc/leveret/conf.d/10-own.conf"
    own.write_text("heartbeat = 33\n")
    told = machine.run("apt-get", "install", f"./{deb.name}")
    assert f"The unit of the archive is now /{OWN_UNIT}.dpkg-old" in told
    assert machine.show("FragmentPath").endswith("lib/systemd/system/leveret.service")
    assert is_running(machine, 1) and own.read_text() == "heartbeat = 33\n"
    machine.run("apt-get", "--yes", "remove", "leveret")
    assert machine.show("ActiveState") == "inactive"
    machine.run("apt-get", "install", f"./{deb.name}")
    assert is_running(machine, 1)


def test_unit_of_the_administrator_stays(machine, deb):
    machine.run("apt-get", "install", f"./{deb.name}")
    # As `systemctl edit --full` does.
    text = (machine.debian / "lib/systemd/system/leveret.service").read_text().replace("WatchdogSec=60", "WatchdogSec=77")
    (machine.debian / OWN_UNIT).write_text(text)
    machine.run("dpkg", "--install", f"/srv/{deb.name}")
    assert machine.show("WatchdogUSec") == "1min 17s"


@pytest.mark.parametrize("way", ["package", "archive"])
def test_missing_folder_of_configuration_is_no_error(machine, deb, install_sh, way):
    install = ["apt-get", "install", f"./{deb.name}"] if way == "package" else [install_sh]
    machine.run(*install)
    machine.inside(publish)
    (machine.debian / "etc/leveret/conf.d").rmdir()
    machine.run("systemctl", "restart", "leveret")
    assert is_running(machine, 1)
    (machine.debian / "etc/leveret/leveret.conf").rename(machine.debian / "etc/leveret/aside.conf")
    machine.run("systemctl", "restart", "leveret", fails=True)
    assert "cannot read configuration file /etc/leveret/leveret.conf" in machine.journal()
    if way == "archive":
        machine.run(install_sh)
        assert is_running(machine, 1) and (machine.debian / "etc/leveret/conf.d").is_dir()
