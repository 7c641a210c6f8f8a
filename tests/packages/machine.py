"""A Debian that systemd starts as process number 1, in namespaces: a machine for services, without a virtual one.

systemd has process numbers, mounts, a network, a host name and a tree of control groups of its own. Root can make all of
this where the kernel has control groups of version 2, also beside those of version 1 (then without controllers: limits
of memory do not count). `why_not` tells what is missing elsewhere.
"""

import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

from container import in_network

WITHIN_S = 120

NAMESPACES = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"]

# Units that want devices or a console, which namespaces do not have, or that would set up the kernel, which belongs to
# the machine outside, too.
MASKED = ["systemd-sysctl.service", "systemd-modules-load.service", "kmod-static-nodes.service",
          "systemd-remount-fs.service", "systemd-journald-audit.socket", "systemd-random-seed.service",
          "systemd-firstboot.service", "dev-hugepages.mount", "dev-mqueue.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
          "sys-fs-fuse-connections.mount", "console-getty.service", "getty.target", "systemd-networkd.service",
          "systemd-networkd.socket", "systemd-networkd-wait-online.service", "systemd-resolved.service",
          "systemd-timesyncd.service", "systemd-logind.service", "systemd-udevd.service", "apt-daily.timer",
          "apt-daily-upgrade.timer", "systemd-journal-flush.service"]


def _groups():
    """The folder of the control groups of version 2; none if they are not mounted."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        words, kind = line.split(" - ")
        if kind.startswith("cgroup2 "):
            return pathlib.Path(words.split(" ")[4])
    return None


def why_not():
    """The reason why systemd cannot be started here; empty if it can."""
    if os.geteuid() != 0:
        return "only root may start a systemd in namespaces"
    if not os.path.exists("/lib/systemd/systemd"):
        return "systemd is not installed"
    groups = _groups()
    if groups is None:
        return "the kernel has no mounted control groups of version 2 for a systemd in namespaces"
    if not os.access(groups, os.W_OK):
        return f"{groups} is read-only: a systemd in namespaces needs a control group of its own"
    made = subprocess.run(["unshare", *NAMESPACES, "--fork", "true"], capture_output=True, text=True, check=False)
    return f"namespaces for a systemd cannot be made: {made.stderr.strip()}" if made.returncode else ""


class Machine:
    """A running machine of a Debian root folder; what is printed before systemd runs goes to a file."""

    def __init__(self, debian, log):
        self.debian, self.log = debian, log
        for unit in MASKED:
            mask = debian / f"etc/systemd/system/{unit}"
            mask.unlink(missing_ok=True)
            mask.symlink_to("/dev/null")
        (debian / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
        (debian / "etc/hosts").write_text("127.0.0.1 localhost machine\n")
        self.group = _groups() / f"leveret-test-{os.getpid()}-{id(self)}"
        self.group.mkdir()
        init = [sys.executable, "-B", str(pathlib.Path(__file__).parent / "machine_init.py"), str(debian.path)]
        # The namespaces see the group of their first process as the root of all.
        start = f"echo $$ >{shlex.quote(str(self.group))}/cgroup.procs && exec \"$@\""
        with log.open("wb") as file:
            self.process = subprocess.Popen(["sh", "-c", start, "sh", "unshare", *NAMESPACES, "--fork", "--kill-child", *init],
                                            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        self.wait("the start of the machine",
                  lambda: self._pid() and self.run("systemctl", "is-active", "multi-user.target", fails=None).strip() == "active")

    def _pid(self):
        """The number of systemd outside; none before it runs."""
        assert self.process.poll() is None, self.log.read_text()
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        with contextlib.suppress(FileNotFoundError):
            if children and os.path.basename(os.readlink(f"/proc/{children[0]}/exe")) == "systemd":
                return children[0]
        return None

    def wait(self, name, holds):
        """Waits until a condition holds; returns its value."""
        deadline = time.monotonic() + WITHIN_S
        while not (value := holds()):
            assert time.monotonic() < deadline, f"{name}\n{self.log.read_text()}\n{self.journal()}"
            time.sleep(0.05)
        return value

    def run(self, *words, fails=False, folder="/srv", variables=()):
        """Runs a command in the machine as root; returns what it has printed. With `fails=None` it may fail."""
        enter = ["nsenter", f"--target={self._pid()}", *NAMESPACES, "--root", "--"]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8",
                       "HOME": "/root", **dict(variables)}
        change = ["sh", "-c", 'cd "$0" && exec "$@"', folder]
        ran = subprocess.run([*enter, *change, *words], capture_output=True, text=True, env=environment, timeout=WITHIN_S,
                             stdin=subprocess.DEVNULL, check=False)
        told = ran.stdout + ran.stderr
        assert fails is None or (ran.returncode != 0) == fails, f"{words}: {ran.returncode}\n{told}\n{self.journal()}"
        return told

    def inside(self, work):
        """Runs a function in the network of the machine."""
        return in_network(self._pid(), work)

    def show(self, name, unit="leveret.service"):
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def journal(self, unit="leveret.service"):
        """The log of a unit."""
        return self.run("journalctl", "--quiet", "--no-pager", "--output=cat", f"--unit={unit}", fails=None)

    def signal(self, number):
        """Sends a signal to the broker."""
        self.run("systemctl", "kill", "--kill-whom=main", f"--signal={number}", "leveret.service")

    def end(self):
        """Ends every process of the machine, and removes its control groups."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(WITHIN_S)
        deadline = time.monotonic() + WITHIN_S
        while "populated 1" in (self.group / "cgroup.events").read_text():
            assert time.monotonic() < deadline, self.group
            time.sleep(0.05)
        for folder, _, _ in os.walk(self.group, topdown=False):
            os.rmdir(folder)
