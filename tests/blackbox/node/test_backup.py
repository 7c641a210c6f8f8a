"""A backup of a running broker: under traffic, restored by a second broker, refused with a sentence."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import pytest

from brokers import Leveret
from client import Client
from patience import PATIENCE_S, Patience
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

BODY_BYTES = 3000


@pytest.fixture
def own(defined, by_broker):
    """A channel to a broker of its own."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such thing")
    return defined()


@pytest.fixture
def ctl(own, pytestconfig, tmp_path):
    return tools(own.client.broker, pytestconfig, tmp_path)


def ended(api, meanwhile=lambda: None):
    patience = Patience()
    while (job := api.ask("/api/backup").json)["ended_ms"] is None:
        assert not patience.is_over(), job
        meanwhile()
        time.sleep(0.01)
    return job


def open_if_read(pipe):
    """Opens the other end of a named pipe, if a reader waits for that."""
    with contextlib.suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


def begin(api, directory):
    return api.ask("/api/backup", method="POST", body={"directory": str(directory)})


def checked(binary, directory):
    return subprocess.run([binary, "check", "--data-dir", directory], capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("crosses", [False, True], ids=["linked", "copied"])
def test_backup_under_traffic_has_what_was_confirmed_before(own, ctl, tmp_path, prefix, pytestconfig, crosses):
    broker, q = own.client.broker, own.queue("quorum", name="q")
    folder = tmp_path
    if crosses:
        folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
        if os.stat(folder).st_dev == os.stat(broker.data_dir).st_dev:
            pytest.skip("one file system")
    own.confirm_select()
    own.publish(q, *[f"{n:06}".ljust(BODY_BYTES) for n in range(1000)], delivery_mode=2)
    ends, sent = threading.Event(), [1000]

    def publish():
        client = Client(broker, prefix)
        ch = client.channel().confirm_select()
        while not ends.is_set():
            ch.publish(q, f"{sent[0]:06}".ljust(BODY_BYTES), delivery_mode=2)
            sent[0] += 1
        client.close()

    load = threading.Thread(target=publish)
    load.start()
    try:
        while sent[0] < 1020:
            time.sleep(0.01)
        confirmed = sent[0]
        ran = ctl.run("backup", str(folder / "backup"))
    finally:
        ends.set()
        load.join()
    assert ran.code == 0, ran
    assert "vhost '/' as of " in ran.out and "finished, 1 of 1 vhosts" in ran.out
    job = ended(broker.api)
    assert job["state"] == "finished" and job["bytes_copied"] > 0
    assert (job["files_linked"] > 0) is not crosses, job
    told = json.loads((folder / "backup/backup.json").read_text())
    assert told["vhosts"] == job["vhosts"] and told["vhosts"][0]["position"] >= confirmed
    found = checked(broker.command[0], folder / "backup")
    assert found.returncode == 0 and "nothing is wrong" in found.stdout, found.stdout
    # A broker of its own on the backup, which takes everything, leaves the first broker's files alone.
    (tmp_path / "second").mkdir()
    os.rename(folder / "backup", tmp_path / "second/data") if not crosses else shutil.copytree(
        folder / "backup", tmp_path / "second/data")
    second = Leveret(broker.command[0], tmp_path / "second")
    try:
        client = Client(second, prefix)
        there = [int(body) for body in client.channel().drain(q)]
        client.close()
    finally:
        second.stop()
        if crosses:
            shutil.rmtree(folder)
    assert there == list(range(len(there))) and confirmed <= len(there) <= sent[0]
    broker.kill_and_start_again()
    client = Client(broker, prefix)
    assert [int(body) for body in client.channel().drain(q)] == list(range(sent[0]))
    client.close()


def test_backup_is_refused_with_a_sentence(own, ctl, tmp_path):
    broker = own.client.broker
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("")
    (tmp_path / "part").mkdir()
    (tmp_path / "part/backup.json.new").write_text("")
    for directory, sentence in [
        ("relative", "is not an absolute path"),
        (tmp_path / "full", "is not empty"),
        (tmp_path / "part", "holds a backup that was not completed"),
        (tmp_path / "full/file", "cannot be read"),
        (tmp_path / "missing/backup", "the parent of"),
        (broker.data_dir / "backup", "is inside the data directory"),
        ("/" + "long/" * 1000, "longer than 4096 bytes"),
    ]:
        answer = begin(broker.api, directory)
        assert answer.status == 400 and sentence in answer.json["reason"], (directory, answer)
    ran = ctl.run("backup", "relative")
    assert ran.code == 65 and "is not an absolute path" in ran.err
    assert broker.api.ask("/api/backup", method="POST", body={"dir": "/x"}).status == 400
    assert broker.api.ask("/api/backup").status == 404
    assert broker.api.ask("/api/backup", method="DELETE").status == 409
    assert ctl.run("cancel_backup").code == 65
    ctl.run("set_disk_free_limit", "900000GB")
    answer = begin(broker.api, tmp_path / "none")
    assert answer.status == 400 and "disk_free_limit" in answer.json["reason"]
    assert not (tmp_path / "none").exists()
    ctl.run("set_disk_free_limit", "0")
    answer = begin(broker.api, "/proc/backup")
    assert answer.status == 400 and "cannot be made" in answer.json["reason"]


def test_one_backup_at_a_time_and_cancelled_without_a_trace(own, ctl, tmp_path):
    broker, q = own.client.broker, own.queue(name="q")
    own.confirm_select()
    own.publish(q, *["x" * 1000] * 100, delivery_mode=2)
    # The backup waits here, as on a disk that does not answer, until the other end is opened.
    (broker.data_dir / "redrives").mkdir(exist_ok=True)
    os.mkfifo(broker.data_dir / "redrives/waits.json")
    assert begin(broker.api, tmp_path / "backup").status == 201
    second = begin(broker.api, tmp_path / "other")
    assert second.status == 409 and "another backup runs" in second.json["reason"]
    assert broker.api.ask("/api/backup", method="DELETE").status == 204
    job = ended(broker.api, meanwhile=lambda: open_if_read(broker.data_dir / "redrives/waits.json"))
    assert job["state"] == "cancelled"
    assert not (tmp_path / "backup").exists()
    assert "cancelled" in ctl.run("backup_status").out
    (broker.data_dir / "redrives/waits.json").unlink()
    assert begin(broker.api, tmp_path / "other").status == 201
    assert ended(broker.api)["state"] == "finished"


def test_incomplete_backup_is_refused_by_check_and_start(own, tmp_path):
    broker = own.client.broker
    assert begin(broker.api, tmp_path / "data").status == 201
    assert ended(broker.api)["state"] == "finished"
    (tmp_path / "data/backup.json").rename(tmp_path / "data/backup.json.new")
    found = checked(broker.command[0], tmp_path / "data")
    assert found.returncode == 1 and "holds a backup that was not completed" in found.stdout
    with pytest.raises(RuntimeError, match="holds a backup that was not completed"):
        Leveret(broker.command[0], tmp_path)
