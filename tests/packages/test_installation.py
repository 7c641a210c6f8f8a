"""The Debian package in a small Debian: installed, used, upgraded, removed, purged."""

import os
import pwd
import signal
import socket
import stat
import subprocess

import pika
import pytest

from debian_root import DebianRoot

WITHIN_S = 60

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may install packages and change the root folder")

TOOLS = ["rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-plugins", "rabbitmq-queues", "rabbitmq-streams", "rabbitmq-upgrade"]
LINKS = [f"usr/bin/{name}" for name in TOOLS]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A Debian without Leveret, to be copied."""
    return DebianRoot(tmp_path_factory.mktemp("base") / "root")


@pytest.fixture
def debian(base, tmp_path):
    """A Debian of its own for a test."""
    copy = DebianRoot.__new__(DebianRoot)
    copy.path = tmp_path / "root"
    subprocess.run(["cp", "--archive", base.path, copy.path], check=True)
    return copy


class Service:
    """The broker inside the folder, as the unit starts it; ports are those of the system's choice."""

    def __init__(self, debian):
        (debian / "run/notify").unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # The path of a socket is short.
        folder = os.open(debian / "run", os.O_RDONLY)
        self._socket.bind(f"/proc/self/fd/{folder}/notify")
        os.close(folder)
        (debian / "run/notify").chmod(0o777)
        self._socket.settimeout(WITHIN_S)
        unit = (debian / "lib/systemd/system/leveret.service").read_text()
        settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and line[0] != "#")
        command = [*settings["ExecStart"].split(), "--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        user = f"--userspec={settings['User']}:{settings['Group']}"
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET": "/run/notify"}
        self.process = subprocess.Popen(["chroot", user, debian.path, *command], env=environment,
                                        stderr=subprocess.DEVNULL, umask=0o077)
        while "READY=1" not in (message := self._socket.recv(65536).decode()):
            pass
        self.amqp = int(message.split("AMQP on 127.0.0.1:")[1].split(",")[0])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WITHIN_S) == 0


@pytest.fixture
def service():
    services = []

    def service(debian):
        services.append(Service(debian))
        return services[-1]

    yield service
    for one in services:
        one.process.kill()
        one.process.wait(WITHIN_S)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def users(debian):
    return {line.split(":")[0]: line.split(":") for line in (debian / "etc/passwd").read_text().splitlines()}


def connection(port):
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))


def test_installation_gives_a_service_and_the_names_of_the_tools(debian, service, deb):
    told = debian.dpkg("--install", deb)
    assert "warning" not in told.lower(), told
    user = users(debian)["leveret"]
    assert user[5:] == ["/var/lib/leveret", "/usr/sbin/nologin"]
    for data in (debian / "var/lib/leveret", debian / "var/lib/leveret-backups"):
        assert (mode(data), data.stat().st_uid) == (0o700, int(user[2]))
    assert (mode(debian / "etc/leveret"), (debian / "etc/leveret").stat().st_gid) == (0o750, int(user[3]))
    assert [os.readlink(debian / link) for link in LINKS] == ["leveretctl"] * len(LINKS)
    # Enabled for the next start of the machine.
    assert (debian / "etc/systemd/system/multi-user.target.wants/leveret.service").is_symlink()
    running = service(debian)
    # Root finds the node without options, under both names.
    assert "Runtime" in debian.run("leveretctl", "status")
    assert "Runtime" in debian.run("rabbitmqctl", "status")
    running.stop()


def test_upgrade_keeps_data_configuration_and_links(debian, service, old_deb, deb):
    debian.dpkg("--install", old_deb)
    running = service(debian)
    with connection(running.amqp) as client:
        channel = client.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        channel.basic_publish("", "kept", b"body", pika.BasicProperties(delivery_mode=2))
    running.stop()
    (debian / "etc/leveret/conf.d/10-own.conf").write_text("heartbeat = 33\n")
    changed = (debian / "etc/leveret/leveret.conf").read_text() + "channel_max = 77\n"
    (debian / "etc/leveret/leveret.conf").write_text(changed)
    (debian / "etc/leveret").chmod(0o755)
    debian.dpkg("--install", deb)
    assert (debian / "etc/leveret/leveret.conf").read_text() == changed
    assert mode(debian / "etc/leveret") == 0o755, "the choice of the administrator"
    assert [os.readlink(debian / link) for link in LINKS] == ["leveretctl"] * len(LINKS)
    running = service(debian)
    with connection(running.amqp) as client:
        assert client.channel().basic_get("kept", auto_ack=True)[2] == b"body"
    keys = debian.run("leveret", "--config", "/etc/leveret/leveret.conf", "--config", "/etc/leveret/conf.d", "--print-config")
    assert "heartbeat = 33 " in keys and "channel_max = 77 " in keys
    running.stop()


def test_removal_keeps_data_and_purge_asks(debian, service, deb):
    debian.dpkg("--install", deb)
    service(debian).stop()
    debian.dpkg("--remove", "leveret")
    assert not (debian / "usr/bin/leveret").exists()
    assert not [link for link in LINKS if os.path.lexists(debian / link)]
    assert (debian / "var/lib/leveret/node.json").exists() and (debian / "etc/leveret/leveret.conf").exists()
    # Installed again, the service has its data.
    debian.dpkg("--install", deb)
    assert (debian / "var/lib/leveret/node.json").exists()
    # No one answers, so that the data stays.
    assert "data of Leveret stays in /var/lib/leveret" in debian.dpkg("--purge", "leveret")
    assert (debian / "var/lib/leveret/node.json").exists() and not (debian / "etc/leveret").exists()
    debian.dpkg("--install", deb)
    service(debian).stop()
    backup = debian / "var/lib/leveret-backups/monday"
    backup.mkdir()
    debian.answer("leveret leveret/delete_data boolean true")
    assert "The backups of Leveret stay in /var/lib/leveret-backups" in debian.dpkg("--purge", "leveret")
    assert not (debian / "var/lib/leveret").exists() and backup.exists()
    backup.rmdir()
    debian.dpkg("--install", deb)
    service(debian).stop()
    debian.answer("leveret leveret/delete_data boolean true")
    assert "stay" not in debian.dpkg("--purge", "leveret")
    assert not (debian / "var/lib/leveret").exists() and not (debian / "etc/leveret").exists()
    assert "leveret" in users(debian), "its number must not be given to another user"
    left = [path for path in debian.path.rglob("*leveret*") if "var/log" not in str(path) and "proc" not in str(path)]
    assert left == []


def test_service_is_started_restarted_and_stopped_where_systemd_runs(debian, old_deb, deb):
    (debian / "run/systemd/system").mkdir(parents=True)
    for name in ("systemctl", "deb-systemd-invoke"):
        (debian / f"usr/bin/{name}").write_text(f'#!/bin/sh\necho "{name} $*" >>/var/log/calls\n')
        (debian / f"usr/bin/{name}").chmod(0o755)

    def calls(*words):
        (debian / "var/log/calls").write_text("")
        debian.dpkg(*words)
        return [call for call in (debian / "var/log/calls").read_text().splitlines() if call.startswith("deb-")]

    assert calls("--install", old_deb) == ["deb-systemd-invoke start leveret.service"]
    # Once, so that the old broker serves until the new one takes over.
    assert calls("--install", deb) == ["deb-systemd-invoke restart leveret.service"]
    assert calls("--remove", "leveret") == ["deb-systemd-invoke stop leveret.service"]


def test_names_of_an_installed_rabbitmq_are_left_alone(debian, deb):
    for name in TOOLS:
        (debian / f"usr/sbin/{name}").write_text("RabbitMQ's")
    debian.dpkg("--install", deb)
    assert not [link for link in LINKS if os.path.lexists(debian / link)]
    debian.dpkg("--remove", "leveret")
    assert (debian / "usr/sbin/rabbitmqctl").read_text() == "RabbitMQ's"


def test_file_of_the_administrator_with_the_name_of_a_tool_stays(debian, deb):
    (debian / LINKS[0]).write_text("own")
    debian.dpkg("--install", deb)
    assert os.readlink(debian / LINKS[1]) == "leveretctl"
    debian.dpkg("--purge", "leveret")
    assert (debian / LINKS[0]).read_text() == "own"


def test_user_that_exists_is_used(debian, deb):
    debian.run("adduser", "--quiet", "--system", "--group", "--no-create-home", "leveret")
    before = users(debian)["leveret"]
    debian.dpkg("--install", deb)
    assert users(debian)["leveret"] == before
    assert (debian / "var/lib/leveret").stat().st_uid == int(before[2])
    assert "leveret" not in {user.pw_name for user in pwd.getpwall()}, "this machine has not changed"
