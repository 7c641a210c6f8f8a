"""The service, started and watched by a systemd that runs as process number 1 of a machine in namespaces."""

import shutil
import socket

import pika
import pytest

from debian_root import MACHINE_PACKAGES, DebianRoot
from machine import WITHIN_S, Machine, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "systemd can be started")

UNIT = "leveret.service"
OWN_FILE = "etc/leveret/conf.d/50-test.conf"
KEPT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    return DebianRoot(tmp_path_factory.mktemp("machine") / "root", MACHINE_PACKAGES)


@pytest.fixture(scope="module")
def machine(debian, tmp_path_factory):
    one = Machine(debian, tmp_path_factory.mktemp("log") / "log")
    yield one
    one.end()


@pytest.fixture(scope="module")
def installed(machine, debian, deb, old_deb):
    """The machine with the package."""
    for package in (deb, old_deb):
        shutil.copy(package, debian / "srv")
    machine.run("apt-get", "install", f"./{deb.name}")
    return machine


@pytest.fixture
def service(installed):
    """The machine, whose service runs with the installed settings and without data."""
    yield installed
    shutil.rmtree(installed.debian / f"etc/systemd/system/{UNIT}.d", ignore_errors=True)
    (installed.debian / OWN_FILE).unlink(missing_ok=True)
    clean = f"systemctl daemon-reload; systemctl stop {UNIT}; systemctl reset-failed; rm -rf /var/lib/leveret/*"
    installed.run("sh", "-c", f"{clean}; systemctl start {UNIT}")


def adjust(machine, *lines):
    """Changes settings of the unit as `systemctl edit` does."""
    folder = machine.debian / "etc/systemd/system/leveret.service.d"
    folder.mkdir(exist_ok=True)
    (folder / "override.conf").write_text("\n".join(["[Service]", *lines, ""]))
    machine.run("systemctl", "daemon-reload")


def configure(machine, text):
    """Writes a file of the configuration, for the service to read."""
    (machine.debian / OWN_FILE).write_text(text)


def connection():
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", 5672, heartbeat=0))


def publish():
    with connection() as client:
        channel = client.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        channel.basic_publish("", "kept", b"body", KEPT)


def take():
    with connection() as client:
        return client.channel().basic_get("kept", auto_ack=True)[2]


def state(machine):
    return machine.show("ActiveState"), machine.show("SubState")


def pid(machine):
    return int(machine.show("MainPID"))


def test_installation_starts_a_service_that_is_ready(service):
    # The installation has waited for READY=1: at once a client is served.
    service.inside(publish)
    assert state(service) == ("active", "running")
    assert service.show("Type") == "notify" and service.show("WatchdogUSec") == "1min"
    assert "AMQP on" in service.show("StatusText")
    assert service.run("systemctl", "is-enabled", UNIT).strip() == "enabled"
    assert "Server startup complete" in service.journal()
    assert "Runtime" in service.run("leveretctl", "status")


def test_service_is_confined(service):
    text = service.run("cat", f"/proc/{pid(service)}/status")
    status = dict(line.split(":", 1) for line in text.splitlines())
    number = service.run("id", "--user", "leveret").strip()
    assert status["Uid"].split() == [number] * 4
    assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    inside = ["nsenter", f"--target={pid(service)}", "--mount", "--"]
    for folder in ("/etc", "/usr", "/var", "/var/lib"):
        assert "Read-only file system" in service.run(*inside, "touch", f"{folder}/file", fails=True)
    service.run(*inside, "touch", "/var/lib/leveret/file")


def test_killed_broker_is_started_again_with_its_data(service):
    service.inside(publish)
    before = pid(service)
    adjust(service, "RestartSec=100ms")
    service.signal("KILL")
    service.wait("a second start", lambda: service.show("NRestarts") == "1" and state(service) == ("active", "running"))
    assert pid(service) != before
    assert service.inside(take) == b"body"


def test_broker_that_hangs_is_killed_by_the_watchdog(service):
    adjust(service, "WatchdogSec=2", "RestartSec=100ms")
    service.run("systemctl", "restart", UNIT)
    service.inside(publish)
    service.signal("STOP")
    service.wait("a second start", lambda: service.show("NRestarts") == "1" and state(service) == ("active", "running"))
    assert "Watchdog timeout" in service.journal()
    assert service.inside(take) == b"body"


def test_reload_reaches_the_same_process(service):
    logs = service.debian / "var/log/leveret"
    configure(service, "log.file = /var/log/leveret/leveret.log\n")
    service.run("systemctl", "restart", UNIT)
    before = pid(service)
    (logs / "leveret.log").rename(logs / "old.log")
    service.run("systemctl", "reload", UNIT)
    service.wait("a new log file", (logs / "leveret.log").exists)
    assert (pid(service), state(service)) == (before, ("active", "running"))


def closed_by(machine, work):
    """Opens a connection, does some work outside, and returns code and text that the broker closed it with."""
    def client():
        one = connection()
        one.channel().queue_declare("kept", durable=True)
        work()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            one.sleep(WITHIN_S)
        return closed.value.reply_code, closed.value.reply_text

    return machine.inside(client)


def test_stop_closes_clients_and_ends_with_success(service):
    service.inside(publish)
    code, text = closed_by(service, lambda: service.run("systemctl", "stop", "--no-block", UNIT))
    assert code == 320 and text.startswith("CONNECTION_FORCED")
    service.wait("the end", lambda: state(service) == ("inactive", "dead"))
    assert (service.show("Result"), service.show("ExecMainStatus")) == ("success", "0")
    service.run("systemctl", "start", UNIT)
    assert service.inside(take) == b"body"


def test_wrong_configuration_fails_once_with_its_code(service):
    configure(service, "heartbeat = soon\n")
    service.run("systemctl", "restart", UNIT, fails=True)
    assert state(service) == ("failed", "failed")
    assert (service.show("ExecMainStatus"), service.show("NRestarts")) == ("78", "0")
    assert "/etc/leveret/conf.d/50-test.conf, line 1: heartbeat must be a number" in service.journal()


def test_service_waits_for_a_port_that_is_taken(service):
    service.run("systemctl", "stop", UNIT)
    adjust(service, "RestartSec=100ms", "StartLimitIntervalSec=0")
    with service.inside(lambda: socket.create_server(("0.0.0.0", 5672))):
        service.run("systemctl", "start", "--no-block", UNIT)
        service.wait("two attempts", lambda: int(service.show("NRestarts")) >= 2)
        assert "Address already in use" in service.journal()
    service.wait("a start", lambda: state(service) == ("active", "running"))
    service.inside(publish)


def test_upgrade_restarts_the_service_and_closes_its_clients(service, old_deb, deb):
    service.run("apt-get", "--yes", "remove", "leveret")
    service.run("apt-get", "install", f"./{old_deb.name}")
    service.inside(publish)
    before = pid(service)
    upgrade = ["systemd-run", "--unit=upgrade", "--no-block", "dpkg", "--install", f"/srv/{deb.name}"]
    code, text = closed_by(service, lambda: service.run(*upgrade))
    assert code == 320 and text.startswith("CONNECTION_FORCED")
    service.wait("the new broker", lambda: pid(service) not in (0, before) and state(service) == ("active", "running"))
    assert service.inside(take) == b"body"


def test_removal_stops_the_service_and_keeps_its_data(service, deb):
    service.inside(publish)
    service.run("apt-get", "--yes", "remove", "leveret")
    assert pid(service) == 0 and state(service)[0] == "inactive"
    assert (service.debian / "var/lib/leveret/node.json").exists()
    service.run("apt-get", "install", f"./{deb.name}")
    assert service.inside(take) == b"body"
