"""What the suites themselves rely on: ports that belong to one process, and bounds of waits."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import patience
import ports

COMMON = Path(ports.__file__).parent


def another_process(code):
    """What a Python process with the modules of all suites prints."""
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(COMMON)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_port_belongs_to_one_process_until_it_gives_it_back():
    port = ports.free_port()
    try:
        assert another_process(f"import ports; print(ports.owns({port}))") == "False"
        assert not ports.owns(port)
    finally:
        ports.give_back([port])
    # It is free for the next one, and freed by the end of that one.
    assert another_process(f"import ports; print(ports.owns({port}))") == "True"
    assert another_process(f"import ports; print(ports.owns({port}))") == "True"


def test_port_of_another_program_is_not_drawn():
    with socket.create_server((ports.SERVER, 0)) as other:
        assert not ports.owns(other.getsockname()[1])


def test_several_ports_are_owned_together_or_not_at_all():
    first, second = ports.free_ports(2)
    ports.give_back([second])
    assert not ports.owns_all([second, first])
    assert second not in ports._owned  # noqa: SLF001 - another process may have it by now
    ports.give_back([first])


def test_ports_are_different_and_none_of_an_outgoing_connection():
    found = ports.free_ports(50)
    try:
        assert len(set(found)) == 50
        with socket.create_server((ports.SERVER, 0)) as given:
            assert max(found) < given.getsockname()[1]
        assert not set(found) & set(ports.DEFAULTS)
    finally:
        ports.give_back(found)


def test_bound_of_a_wait_is_not_reached_while_the_machine_stands_still():
    waits = patience.Patience(3 * patience.LOOK_S)
    assert not waits.is_over()
    time.sleep(5 * patience.LOOK_S)  # as a process that cannot run
    assert not waits.is_over()
    for _ in range(2):
        time.sleep(patience.LOOK_S)
        is_over = waits.is_over()
    assert is_over


def test_wait_for_what_never_comes_ends():
    looks = []
    try:
        patience.eventually(lambda: looks.append(1), within_s=3 * patience.PAUSE_S, what="the end of the world")
    except AssertionError as failed:
        assert str(failed) == "the end of the world did not come" and 1 <= len(looks) <= 4
    else:
        raise AssertionError("it has come")
