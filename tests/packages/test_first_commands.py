"""The commands of docs/start/install.md, as they stand there, on a fresh system: three lead to a broker with a user of
one's own."""

import os
import shlex
import shutil
import subprocess

import pika
import pytest

from conftest import only
from container import Image, libraries
from debian_root import MACHINE_PACKAGES, DebianRoot
from guide import INSTALL, blocks, install
from machine import WITHIN_S, Machine, why_not

needs_systemd = pytest.mark.skipif(bool(why_not()), reason=why_not() or "systemd can be started")


@pytest.fixture
def machine(tmp_path):
    one = Machine(DebianRoot(tmp_path / "root", MACHINE_PACKAGES), tmp_path / "log")
    yield one
    one.end()
    shutil.rmtree(tmp_path / "root")


def logged_in(user, password):
    """True if the user may log in and declare, publish and get."""
    try:
        with pika.BlockingConnection(pika.ConnectionParameters(credentials=pika.PlainCredentials(user, password))) as client:
            channel = client.channel()
            channel.confirm_delivery()
            channel.queue_declare("first", durable=True)
            channel.basic_publish("", "first", b"body")
            return channel.basic_get("first", auto_ack=True)[2] == b"body"
    except pika.exceptions.ProbableAuthenticationError:
        return False


@needs_systemd
def test_three_commands_install_the_debian_package(machine, deb, archive):
    install(machine, deb, "Debian package")
    assert machine.inside(lambda: (logged_in("app", "secret"), logged_in("guest", "guest"))) == (True, False)
    assert machine.show("ActiveState") == "active"
    assert "app\t[administrator]" in machine.run("rabbitmqctl", "list_users")
    # An archive leaves the package alone.
    shutil.copy(archive, machine.debian / "srv")
    machine.run("tar", "-xf", archive.name)
    assert "use apt-get" in machine.run(f"{archive.name.removesuffix('.tar.gz')}/install.sh", fails=True)
    assert machine.inside(lambda: logged_in("app", "secret"))


@needs_systemd
def test_three_commands_install_the_archive(machine, archive):
    install(machine, archive, "Archive")
    assert machine.inside(lambda: logged_in("app", "secret"))
    assert machine.show("ActiveState") == "active"
    assert "app\t[administrator]" in machine.run("rabbitmqctl", "list_users")
    folder = archive.name.removesuffix(".tar.gz")
    own = machine.debian / "etc/leveret/conf.d/10-own.conf"
    own.write_text("heartbeat = 33\n")
    before = machine.show("MainPID")
    # The script of a newer archive: it restarts the service, and keeps users and configuration.
    machine.run(f"/srv/{folder}/install.sh", folder="/")
    assert machine.show("MainPID") not in ("0", before) and machine.inside(lambda: logged_in("app", "secret"))
    assert own.exists()
    assert "stays in /etc/leveret" in machine.run(f"/srv/{folder}/install.sh", "--remove")
    assert machine.show("LoadState") == "not-found"
    left = [path for path in machine.debian.path.rglob("*leveret*") if path.relative_to(machine.debian.path).parts[0] == "usr"]
    assert left == []
    assert (machine.debian / "var/lib/leveret/node.json").exists() and own.exists()


# In a network and mounts of its own, so that nothing of it is left.
PODMAN = """
set -e
ip link set lo up
umount --recursive /sys/fs/cgroup
mount --types cgroup2 cgroup2 /sys/fs/cgroup
mount --types tmpfs tmpfs /mnt
cd "$1"
export PATH="$1/bin:$PATH"
shift
for command in "$@"; do eval "$command"; done
"""

DOCKER = """#!/bin/sh
store="--root /mnt/store --runroot /mnt/run --storage-driver=vfs --cgroup-manager=cgroupfs --events-backend=file"
first=$1
shift
if [ "$first" = run ]; then
    set -- --network=host --cgroups=disabled --ulimit nofile={files}:{files} --ulimit nproc=1000:1000 {libraries} "$@"
fi
exec podman $store "$first" "$@"
"""


def test_three_commands_run_the_image(packages, tmp_path):
    if os.geteuid() != 0 or not shutil.which("podman"):
        pytest.skip("only root may run podman as this test does, and podman must be installed")
    image = only(packages / "one", "*-image-*.tar")
    shutil.copy(image, tmp_path)
    (tmp_path / "bin").mkdir()
    files = int(subprocess.run(["sh", "-c", "ulimit -Hn"], capture_output=True, text=True, check=True).stdout)
    # Programs of a test are not static.
    Image(image).unpack(tmp_path / "content")
    mounts = " ".join(f"--volume {path}:{path}:ro" for path in libraries(tmp_path / "content/usr/bin"))
    (tmp_path / "bin/docker").write_text(DOCKER.format(files=min(files, 500_000), libraries=mounts))
    (tmp_path / "bin/docker").chmod(0o755)
    three = blocks(INSTALL, "Container image")[0]
    assert len(three) == 3 and image.name in three[0], three
    asked = ["docker exec broker leveretctl authenticate_user app secret", "docker exec broker leveretctl list_users"]
    ran = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", PODMAN,
                          "sh", str(tmp_path), *three, *asked], capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert ran.returncode == 0, shlex.join(three) + "\n" + ran.stdout + ran.stderr
    assert "Success" in ran.stdout and "app\t[administrator]" in ran.stdout and "guest" not in ran.stdout
