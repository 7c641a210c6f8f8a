"""A disk of 256 MiB where one may be mounted (root), else the shared memory of the system, which is larger."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

MIB = 1 << 20
SIZE_BYTES = 256 * MIB
SHARED_MEMORY = Path("/dev/shm")


class Disk:
    def __init__(self, folder, is_small):
        self.folder, self.is_small = folder, is_small

    def free_bytes(self):
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize


@contextlib.contextmanager
def small_disk():
    shared = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="leveret-internal-", dir=shared))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(folder)]
    is_small = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield Disk(folder, is_small)
    finally:
        if is_small:
            subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(folder)
