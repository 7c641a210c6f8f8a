"""Programs that read a data directory: they leave no trace, work where nothing can be written, and tell whose file the
system refuses."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ledger import Ledger
from workload import Workload

#: A user without rights, on every Linux.
NOBODY = 65534
WITHIN_S = 120
CLEAN = "nothing is wrong\n"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to another user and run programs as one")


@pytest.fixture
def public():
    """A folder that every user may enter: that of pytest belongs to one user."""
    folder = Path(tempfile.mkdtemp(prefix="leveret-reading-"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "--recursive", "u+rwX", folder], check=True)
    shutil.rmtree(folder)


@pytest.fixture
def program(leveret_bin, public):
    """The program, where every user finds it."""
    return shutil.copy(leveret_bin, public / "leveret")


@pytest.fixture
def data(broker, rng, public):
    """The data directory of a broker that was killed, copied as `cp -a` does, without a lock."""
    ledger = Ledger()
    broker.start()
    workload = Workload(broker, ledger, rng)
    broker.wait_until(lambda: len(ledger.messages) > 100, WITHIN_S)
    workload.end()
    broker.kill()
    subprocess.run(["cp", "--archive", broker.data, public / "data"], check=True)
    (public / "data/lock").unlink()
    return public / "data"


def trace(folder):
    """All that a program could leave, path by path; times of reading are not kept."""
    def of(path):
        found = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        return found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, found.st_ctime_ns, content

    return {path: of(path) for path in [folder, *folder.rglob("*")]}


def run(program, data, *words, user=None, before=()):
    """Runs the program on a directory; exit code and all that it said."""
    command = [*before, str(program), *words, "--data-dir", str(data)]
    who = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False, cwd="/", **who)
    return ran.returncode, ran.stdout + ran.stderr


def test_check_leaves_no_trace(program, data):
    before = trace(data)
    code, said = run(program, data, "check")
    assert code == 0 and said.endswith(CLEAN), said
    assert trace(data) == before
    (data / "lock").touch(mode=0o600)
    before = trace(data)
    assert run(program, data, "check")[0] == 0
    assert trace(data) == before


def test_print_config_leaves_no_trace(program, data):
    before = trace(data)
    assert run(program, data, "--print-config")[0] == 0
    assert trace(data) == before
    shutil.rmtree(data)
    assert run(program, data, "--print-config")[0] == 0
    assert not data.exists()


def test_check_of_a_directory_that_is_used_leaves_no_trace(broker):
    broker.start()
    lock = broker.data / "lock"
    before = (lock.stat(), broker.data.stat().st_mtime_ns)
    assert broker.check() == (1, f"data directory {broker.data} is in use by another process\n")
    after = (lock.stat(), broker.data.stat().st_mtime_ns)
    assert after[0].st_mtime_ns == before[0].st_mtime_ns and after[1] == before[1]
    assert broker.stop() == 0


@as_root
@pytest.mark.parametrize("lock", [None, 0, NOBODY])
def test_check_needs_no_right_to_write(program, data, lock):
    if lock is not None:
        (data / "lock").touch(mode=0o600)
    for path in [data, *data.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
        path.chmod(path.stat().st_mode & 0o555)
    if lock is not None:
        os.chown(data / "lock", lock, lock)
    before = trace(data)
    code, said = run(program, data, "check", user=NOBODY)
    # The broker could not start either.
    if lock == 0:
        assert code == 1 and "data/lock belongs to root, with mode 0400: run this as root" in said
    else:
        assert code == 0 and said.endswith(CLEAN), said
    assert trace(data) == before


@as_root
def test_check_works_on_a_read_only_mount(program, data):
    mount = 'mount --bind "$0" "$0" && mount --options remount,bind,ro "$0" && ! touch "$0/file" 2>/dev/null && exec "$@"'
    inside = ["unshare", "--mount", "sh", "-c", mount, str(data)]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    before = trace(data)
    code, said = run(program, data, "check", before=inside)
    assert code == 0 and said.endswith(CLEAN), said
    assert trace(data) == before


@as_root
def test_check_as_a_user_who_may_not_read_tells_the_owner(program, data):
    code, said = run(program, data, "check", user=NOBODY)
    assert code == 1
    assert said == (f"cannot read {data}: leveret runs as nobody, and {data} belongs to root, with mode 0700: "
                    "run this as root\n")


START = ["--amqp", "127.0.0.1:0", "--http", "127.0.0.1:0"]


@as_root
@pytest.mark.parametrize("name", [".", "lock", "node.json", "vhosts", "vhosts/1/manifest"])
def test_start_tells_the_file_its_owner_and_the_command_that_mends_it(program, data, name):
    """As after a restore in which `root` copied the files."""
    (data / "lock").touch(mode=0o600)
    for path in [data, *data.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    os.chown(data / name, 0, 0)
    code, said = run(program, data, *START, user=NOBODY)
    assert code == 1
    mode = (data / name).stat().st_mode & 0o7777
    assert "Permission denied" in said
    told = f"leveret runs as nobody, and {data / name} belongs to root, with mode {mode:04o}: as root, "
    assert told in said, said
    command = said.split(told)[1].strip()
    assert command == f"chown -R nobody:nogroup {data}"
    subprocess.run(command, shell=True, check=True)
    assert all(path.stat().st_uid == NOBODY for path in [data, *data.rglob("*")])


@as_root
def test_start_tells_the_directory_that_it_may_not_enter(program, data, public):
    above = public / "above"
    above.mkdir(mode=0o700)
    shutil.move(data, above / "data")
    code, said = run(program, above / "data", *START, user=NOBODY)
    assert code == 1
    assert f"{above} belongs to root, with mode 0700: nobody may not enter it" in said
