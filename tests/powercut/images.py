"""A disk whose power can be cut: an ext4 image inside an XFS image, both mounted through loop devices.

A reflink copy of the inner image is what the disk held at one instant, as after a cut: XFS makes it as one operation,
and what the inner file system has not sent to its disk yet is not in it. Mounting the copy replays its journal.
"""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

PROGRAMS = {"mkfs.xfs": "xfsprogs", "mkfs.ext4": "e2fsprogs", "mount": "mount", "losetup": "mount"}
HOST_BYTES = 3 << 30
DISK_BYTES = 384 << 20


class Unavailable(Exception):
    """This machine cannot do it, and why."""


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{words[0]} failed: {done.stderr.strip() or done.returncode}")


def assert_available():
    if os.geteuid() != 0:
        raise Unavailable("it takes root to mount file systems")
    missing = [f"{name} (package {package})" for name, package in PROGRAMS.items() if not shutil.which(name)]
    if missing:
        raise Unavailable(f"missing: {', '.join(missing)}")
    if not Path("/dev/loop-control").exists():
        raise Unavailable("there are no loop devices")


def mount(image, at):
    at.mkdir(exist_ok=True)
    run("mount", "-o", "loop", image, at)


def unmount(at):
    subprocess.run(["umount", str(at)], check=True, capture_output=True)


class Images:
    """The two images, and copies of the inner one."""

    def __init__(self, folder):
        assert_available()
        self.folder = folder
        self.host, self.disk = folder / "host", folder / "disk"
        self.mounted = []
        self.image = self.host / "disk.img"
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self):
        image = self.folder / "host.img"
        self._make(image, HOST_BYTES, "mkfs.xfs", "-q", "-m", "reflink=1")
        self._mount(image, self.host)
        self._make(self.image, DISK_BYTES, "mkfs.ext4", "-q", "-F")
        self._mount(self.image, self.disk)

    def _make(self, image, size, *program):
        with open(image, "wb") as file:
            file.truncate(size)
        run(*program, image)

    def _mount(self, image, at):
        mount(image, at)
        self.mounted.append(at)

    def cut(self, name, of=None):
        """A copy of the disk as it is at this instant; of a copy that is mounted, with `of`."""
        copy = self.host / f"{name}.img"
        subprocess.run(["cp", "--reflink=always", str(of or self.image), str(copy)], check=True)
        return copy

    @contextlib.contextmanager
    def power_on(self, copy):
        """The copy, mounted."""
        at = self.folder / copy.stem
        mount(copy, at)
        self.mounted.append(at)
        try:
            yield at
        finally:
            unmount(at)
            self.mounted.remove(at)
            at.rmdir()
            copy.unlink()

    def close(self):
        for at in reversed(self.mounted):
            unmount(at)
