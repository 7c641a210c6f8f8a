"""The beginning of a machine, inside its namespaces: mounts and the network; then systemd."""

import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import subprocess
import sys

SET_FLAGS = 0x8914
UP_AND_RUNNING = 0x41
DETACHED = 2

DEVICES = ["null", "zero", "full", "random", "urandom", "tty"]


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def start_network():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", b"lo", UP_AND_RUNNING))


def main(root):
    mount("--make-rprivate", "/")
    mount("--bind", root, root)
    for name in ("proc", "sys", "dev", "run", "tmp", "srv"):
        (root / name).mkdir(exist_ok=True)
    mount("--types", "proc", "proc", root / "proc")
    # Settings of the kernel belong to the machine outside.
    mount("--bind", root / "proc/sys", root / "proc/sys")
    mount("--options", "remount,bind,ro", root / "proc/sys")
    # A systemd that finds /sys read-only takes itself for one in a container, and leaves devices alone.
    mount("--types", "sysfs", "--options", "ro", "sysfs", root / "sys")
    mount("--types", "cgroup2", "cgroup2", root / "sys/fs/cgroup")
    mount("--types", "tmpfs", "--options", "mode=755", "tmpfs", root / "dev")
    for device in DEVICES:
        (root / "dev" / device).touch()
        mount("--bind", f"/dev/{device}", root / "dev" / device)
    for folder in ("pts", "shm"):
        (root / "dev" / folder).mkdir()
    mount("--types", "devpts", "--options", "newinstance,ptmxmode=0666", "devpts", root / "dev/pts")
    (root / "dev/ptmx").symlink_to("pts/ptmx")
    mount("--types", "tmpfs", "--options", "mode=755", "tmpfs", root / "run")
    mount("--types", "tmpfs", "tmpfs", root / "tmp")
    start_network()
    socket.sethostname("machine")
    (root / "outside").mkdir(exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "outside"], check=True)
    os.chroot(".")
    assert libc.umount2(b"/outside", DETACHED) == 0, os.strerror(ctypes.get_errno())
    words = ["/lib/systemd/systemd", "--system", "--log-target=journal", "systemd.unit=multi-user.target"]
    os.execve(words[0], words, {"container": "leveret-test", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})


main(pathlib.Path(sys.argv[1]))
