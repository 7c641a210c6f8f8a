"""The container image in namespaces: its own command as its own user, with a read-only root folder and a volume."""

import base64
import json
import os
import pathlib
import subprocess
import urllib.error
import urllib.request

import pika
import pytest

from conftest import only
from container import OUTSIDE, Container, Image


def can_make_namespaces():
    made = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "true"], capture_output=True, check=False)
    return os.geteuid() == 0 and made.returncode == 0


pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="only root may make namespaces, and not everywhere")

KEPT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture(scope="module")
def image(packages):
    return Image(only(packages / "one", "*-image-*.tar"))


@pytest.fixture
def container(image, tmp_path):
    """Starts containers, with a volume at the place of the data, each with a root folder of its own."""
    started = []

    def container(*mounts, variables=(), words=None, user=None, data="/var/lib/leveret"):
        number = len(started)
        root = tmp_path / f"root{number}"
        root.mkdir()
        image.unpack(root)
        volume = tmp_path / "volume"
        if not volume.exists():
            volume.mkdir()
            os.chown(volume, *[int(number) for number in (user or image.config["config"]["User"]).split(":")])
        log = tmp_path / f"log{number}"
        started.append(Container(image, root, log, [(volume, data), *mounts], variables, words, user))
        return started[-1]

    yield container
    for one in started:
        one.end()


@pytest.fixture
def file(tmp_path):
    """Makes a file that everybody may read, for a mount."""
    def file(name, text):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    return file


def connection(address="127.0.0.1", user="guest", password="guest", vhost="/", port=5672):
    credentials = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(pika.ConnectionParameters(address, port, vhost, credentials))


def enters(container, address, user, password, vhost="/"):
    """True if the user may log in."""
    def attempt():
        try:
            connection(address, user, password, vhost).close()
            return True
        except pika.exceptions.ProbableAuthenticationError:
            return False

    return container.inside(attempt)


def answer(container, path, user="guest", password="guest", port=15672):
    """The document at a path of the HTTP API, asked for inside."""
    login = base64.b64encode(f"{user}:{password}".encode()).decode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Basic {login}"})
    return container.inside(lambda: urllib.request.urlopen(request, timeout=60).read())


def test_container_serves_as_its_user_and_keeps_data(container):
    one = container().started()
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{one.pid()}/status").read_text().splitlines())
    assert status["Uid"].split() == ["999"] * 4 and status["Gid"].split() == ["999"] * 4
    assert status["NSpid"].split()[-1] == "1", "the broker is the first process: signals reach it"

    def publish():
        with connection() as client:
            channel = client.channel()
            channel.confirm_delivery()
            channel.queue_declare("kept", durable=True)
            channel.basic_publish("", "kept", b"body", KEPT)

    def take():
        with connection() as client:
            return client.channel().basic_get("kept", auto_ack=True)[2]

    one.inside(publish)
    assert one.stop() == 0, one.log.read_text()
    # Another container, with another root folder and the same volume.
    two = container().started()
    assert two.inside(take) == b"body"
    assert two.stop() == 0


def test_commands_of_compose_files_work_inside(container, image):
    one = container(words=["rabbitmq-server"])
    # Before the start is over.
    code, told = one.run("rabbitmqctl", "await_startup")
    assert code == 0, told
    health = image.config["config"]["Healthcheck"]["Test"]
    assert health[0] == "CMD"
    for words in (health[1:], ["rabbitmq-diagnostics", "-q", "ping"], ["rabbitmq-diagnostics", "-q", "check_running"],
                  ["rabbitmq-diagnostics", "-q", "check_local_alarms"],
                  ["rabbitmq-diagnostics", "-q", "check_port_connectivity"], ["rabbitmq-diagnostics", "check_port_listener", "5672"],
                  ["rabbitmqctl", "wait", "--pid", "1"], ["rabbitmqctl", "status"], ["leveretctl", "list_queues"],
                  ["rabbitmqctl", "add_user", "carol", "secret"]):
        code, told = one.run(*words)
        assert code == 0, (words, told)
    # As `docker exec --user root`, whose root may read the files of others.
    assert one.run("rabbitmqctl", "list_users", user=(0, 0))[0] == 0
    assert one.run("rabbitmqctl", "stop_app")[0] == 0
    assert one.run(*health[1:])[0] != 0, "a stopped node is not healthy"
    assert one.run("rabbitmqctl", "start_app")[0] == 0
    assert one.run(*health[1:])[0] == 0
    assert one.stop() == 0


def test_default_user_of_the_environment_enters_from_other_machines(container):
    variables = {"RABBITMQ_DEFAULT_USER": "bob", "RABBITMQ_DEFAULT_PASS": "secret", "RABBITMQ_DEFAULT_VHOST": "orders",
                 "RABBITMQ_NODENAME": "rabbit@there"}
    one = container(variables=variables).started()
    assert enters(one, OUTSIDE, "bob", "secret", "orders")
    assert not enters(one, "127.0.0.1", "guest", "guest", "orders")
    overview = json.loads(answer(one, "/api/overview", "bob", "secret"))
    assert overview["node"] == "rabbit@there"
    assert b"rabbitmq_build_info" in answer(one, "/metrics", port=15692)


def test_well_known_password_is_for_the_container_itself(container):
    one = container().started()
    assert enters(one, "127.0.0.1", "guest", "guest")
    assert not enters(one, OUTSIDE, "guest", "guest")
    assert "user 'guest' may log in from this machine only" in one.log.read_text()
    assert one.stop() == 0
    # The user exists, so that the variables have no effect on its password.
    two = container(variables={"RABBITMQ_DEFAULT_PASS": "secret"}).started()
    assert enters(two, "127.0.0.1", "guest", "guest")
    assert not enters(two, OUTSIDE, "guest", "guest")
    assert "the user has another one" in two.log.read_text()
    assert two.stop() == 0
    # Somebody has written the password down: as Testcontainers does.
    three = container(variables={"RABBITMQ_DEFAULT_USER": "guest", "RABBITMQ_DEFAULT_PASS": "guest"}).started()
    assert enters(three, OUTSIDE, "guest", "guest")


def test_user_without_a_chosen_password_stays_inside(container):
    one = container(variables={"RABBITMQ_DEFAULT_USER": "bob"}).started()
    assert enters(one, "127.0.0.1", "bob", "guest")
    assert not enters(one, OUTSIDE, "bob", "guest")


def test_mounted_configuration_and_definitions_are_read(container, file, tmp_path):
    definitions = {"vhosts": [{"name": "/"}], "users": [{"name": "ann", "password": "pw", "tags": "administrator"}],
                   "permissions": [{"user": "ann", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
                   "queues": [{"name": "made", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}]}
    more = tmp_path / "conf.d"
    more.mkdir()
    (more / "20-own.conf").write_text("heartbeat = 33\n")
    main = "load_definitions = /etc/rabbitmq/definitions.json\nloopback_users = none\nchannel_max = 77\n"
    one = container((file("rabbitmq.conf", main), "/etc/rabbitmq/rabbitmq.conf"), (more, "/etc/rabbitmq/conf.d"),
                    (file("definitions.json", json.dumps(definitions)), "/etc/rabbitmq/definitions.json")).started()

    def seen():
        with connection(OUTSIDE, "ann", "pw") as client:
            client.channel().queue_declare("made", passive=True)
            return client._impl.params.heartbeat, client._impl.params.channel_max

    assert one.inside(seen) == (33, 77)
    code, keys = one.run("leveret", "--print-config")
    assert code == 0 and "heartbeat = 33 " in keys and "# container image" in keys


def test_volume_of_a_compose_file_for_rabbitmq_is_used(container, tmp_path):
    one = container(data="/var/lib/rabbitmq").started()
    assert (tmp_path / "volume/leveret/node.json").exists()
    assert one.run("rabbitmq-diagnostics", "-q", "ping")[0] == 0
    assert one.stop() == 0


def test_any_user_may_run_the_container(container, tmp_path):
    one = container(user="12345:0").started()
    assert (tmp_path / "volume/data").stat().st_mode & 0o777 == 0o700
    assert "other users" not in one.log.read_text()
    assert one.run("rabbitmq-diagnostics", "-q", "ping")[0] == 0


def test_terms_of_erlang_keep_the_container_from_starting(container, file):
    advanced = file("advanced.config", "[{rabbit, []}].\n")
    one = container((advanced, "/etc/rabbitmq/advanced.config"))
    assert one.process.wait(60) == 78
    assert "/etc/rabbitmq/advanced.config, line 1: Erlang terms" in one.log.read_text()
    empty = container((file("empty.config", "[].\n"), "/etc/rabbitmq/advanced.config")).started()
    assert empty.stop() == 0


def test_volume_that_cannot_be_written_is_named(container, tmp_path):
    (tmp_path / "volume").mkdir(mode=0o755)
    one = container()
    assert one.process.wait(60) == 1
    assert "cannot make data directory /var/lib/leveret/data: Permission denied" in one.log.read_text()
