"""The worst day: a backup by the guide, its check as root, and its restore on a machine that has never seen the broker."""

import shutil
import subprocess

import pika
import pytest

from debian_root import MACHINE_PACKAGES, DebianRoot
from guide import blocks, follow, install
from machine import Machine, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "systemd can be started")

PAGE = "guides/back-up.md"
BACKUPS = "var/lib/leveret-backups"
KEPT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """`machine(name, *commands)`: a machine, on which these commands have run before the package comes."""
    folder, made = tmp_path_factory.mktemp("machines"), []

    def machine(name, *commands):
        debian = DebianRoot(folder / name, MACHINE_PACKAGES)
        for command in commands:
            debian.run("sh", "-c", command)
        made.append(Machine(debian, folder / f"{name}.log"))
        return made[-1]

    yield machine
    for one in made:
        one.end()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def first(machines, deb):
    """A machine with the package, a user and messages."""
    machine = install(machines("first"), deb, "Debian package")
    machine.inside(publish)
    return machine


def connection():
    return pika.BlockingConnection(pika.ConnectionParameters(credentials=pika.PlainCredentials("app", "secret")))


def publish():
    with connection() as client:
        channel = client.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        for number in range(100):
            channel.basic_publish("", "kept", b"%d" % number, KEPT)


def take():
    with connection() as client:
        channel = client.channel()
        return [channel.basic_get("kept", auto_ack=True)[2] for _ in range(100)]


def trace(folder):
    """Modes, owners, times and contents of all that is there."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        found[path] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, path.is_file() and path.read_bytes())
    return found


def test_backup_by_the_guide_is_restored_on_another_machine(first, machines, deb, tmp_path):
    backup, then = blocks(PAGE, "Back up a running broker")
    follow(first, backup)
    monday = first.debian / BACKUPS / "monday"
    owner = (first.debian / BACKUPS).stat()
    assert owner.st_mode & 0o7777 == 0o700 and owner.st_uid == monday.stat().st_uid != 0
    before = trace(monday)
    assert "nothing is wrong" in follow(first, then)
    assert trace(monday) == before
    copy = first.debian / "srv/monday.tar.gz"
    # There the user of the service has another number.
    second = install(machines("second", "adduser --quiet --system --group one", "adduser --quiet --system --group two"), deb, "Debian package")
    assert second.run("id", "--user", "leveret") != first.run("id", "--user", "leveret")
    subprocess.run(["tar", "--extract", "--directory", second.debian / "srv", "--file", copy], check=True)
    [restore] = blocks(PAGE, "Restore")
    follow(second, restore)
    assert second.inside(take) == [b"%d" % number for number in range(100)]
    assert second.show("NRestarts") == "0"


def test_restore_without_chown_tells_what_to_do(first, machines, deb):
    folder = first.debian / "var/lib/leveret"
    first.run("systemctl", "stop", "leveret")
    lock = folder / "lock"
    owner = lock.stat().st_uid
    try:
        shutil.chown(lock, 0, 0)
        first.run("systemctl", "start", "leveret", fails=True)
        told = "leveret runs as leveret, and /var/lib/leveret/lock belongs to root, with mode 0600: as root, "
        line = next(line for line in first.journal().splitlines() if told in line)
        first.run("systemctl", "stop", "leveret")
        first.run("sh", "-c", line.split(told)[1])
        assert lock.stat().st_uid == owner
    finally:
        first.run("systemctl", "reset-failed")
        first.run("systemctl", "start", "leveret")


@pytest.mark.parametrize("place, told", [
    ("/srv", "the service may not write in {} unless `systemctl edit leveret` permits it"),
    ("/home", "the service does not see {}"),
    ("/tmp", "the service has a private directory at {}, which is removed when it stops"),
    ("/var/lib/leveret", "{} is inside the data directory"),
])
def test_place_that_the_sandbox_takes_away_is_told(first, place, told):
    monday = f"{place}/monday"
    said = first.run("leveretctl", "backup", monday, fails=True)
    assert told.format(monday) in said, said
    assert "inside" in told or "the packaged service may write in /var/lib/leveret-backups" in said


def test_another_place_by_the_guide(first):
    [commands] = blocks(PAGE, "Another place for backups")
    permit, backup = commands[:-1], commands[-1:]
    follow(first, permit[1:2])
    (first.debian / "srv/backups").mkdir()
    drop_in = first.debian / "etc/systemd/system/leveret.service.d/backups.conf"
    # The permission alone is not enough: the directory belongs to root.
    follow(first, permit[2:])
    said = first.run("sh", "-c", backup[0], fails=True)
    assert "leveret runs as leveret, and /srv/backups belongs to root, with mode 0755" in said, said
    follow(first, [*permit, *backup])
    assert (first.debian / "srv/backups/monday/backup.json").exists()
    drop_in.unlink()
    first.run("systemctl", "daemon-reload")
    first.run("systemctl", "restart", "leveret")


def test_data_directory_that_the_sandbox_takes_away_is_told(first):
    own = first.debian / "etc/leveret/conf.d/50-data.conf"
    own.write_text("data_dir = /srv/data\n")
    first.run("systemctl", "restart", "leveret", fails=True)
    told = "cannot make data directory /srv/data: Read-only file system (os error 30); the service may not write in /srv/data unless"
    assert told in first.journal()
    own.unlink()
    first.run("systemctl", "reset-failed")
    first.run("systemctl", "restart", "leveret")
