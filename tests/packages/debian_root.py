"""A small Debian in a folder: the packages of this machine that dpkg and maintainer scripts need, copied.

Nothing is fetched, and the machine itself is not changed: dpkg works on the folder, and runs scripts inside it.
"""

import os
import pathlib
import re
import shutil
import subprocess

# Every Debian has these; the dependencies of both the scripts and of Leveret's programs follow from them.
PACKAGES = ["base-files", "base-passwd", "coreutils", "dash", "debconf", "debianutils", "diffutils", "dpkg", "findutils", "grep",
            "gzip", "hostname", "init-system-helpers", "libc-bin", "perl-base", "sed", "tar", "adduser", "passwd",
            "libc6", "libgcc-s1", "login", "libpam-modules", "libpam-runtime"]

# A machine for administrators has these, too.
MACHINE_PACKAGES = [*PACKAGES, "apt", "bash", "mount", "procps", "sudo", "systemd", "systemd-sysv", "util-linux"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def with_dependencies(names):
    """The installed packages that these need, and themselves."""
    form = "${Package}\t${Pre-Depends}, ${Depends}\t${Provides}\t${db:Status-Status}\n"
    needs, provided = {}, {}
    for line in output("dpkg-query", "--show", "--showformat", form).splitlines():
        name, depends, provides, status = line.split("\t")
        if status == "installed":
            needs[name] = [[word.split(" ")[0].split(":")[0] for word in choice.split("|")]
                           for choice in re.split(r",\s*", depends.replace("| ", "|").replace(" |", "|")) if choice]
            for virtual in re.split(r",\s*", provides):
                provided.setdefault(virtual.split(" ")[0], name)
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        name = name if name in needs else provided.get(name)
        if name is None or name in found:
            continue
        found.add(name)
        for choices in needs[name]:
            waiting += [one for one in choices if one in needs or one in provided][:1]
    return sorted(found)


def copied(path, root):
    target = root / path.lstrip("/")
    if target.is_symlink() or target.exists():
        return
    if os.path.islink(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.readlink(path))
    elif os.path.isdir(path):
        target.mkdir(parents=True, exist_ok=True)
    elif os.path.exists(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


class DebianRoot:
    """The folder, and the commands in it."""

    def __init__(self, folder, packages=()):
        self.path = pathlib.Path(folder)
        # Programs are found in /bin and in /usr/bin.
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.path / "usr" / name).mkdir(parents=True)
            if os.path.islink(f"/{name}"):
                (self.path / name).symlink_to(f"usr/{name}")
        names = with_dependencies(packages or PACKAGES)
        for file in output("dpkg-query", "--listfiles", *names).splitlines():
            if file.startswith("/") and not file.startswith(("/usr/share/doc", "/usr/share/man", "/usr/share/locale")):
                copied(file, self.path)
        # The usual users, and not those of this machine.
        for name in ("passwd", "group"):
            shutil.copy(f"/usr/share/base-passwd/{name}.master", self.path / "etc" / name)
        # Scripts of the machine make these.
        shutil.copytree("/etc/pam.d", self.path / "etc/pam.d", dirs_exist_ok=True)
        (self.path / "etc/shadow").touch(mode=0o640)
        (self.path / "etc/gshadow").touch(mode=0o640)
        for name in ("tmp", "dev", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log", "run", "proc"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        # Good enough for scripts that write to it, where devices cannot be made.
        (self.path / "dev/null").touch(mode=0o666)
        (self.path / "dev/null").chmod(0o666)
        (self.path / "var/lib/dpkg/status").write_text(output("dpkg-query", "--status", *names))
        (self.path / "var/lib/dpkg/available").touch()
        for name in names:
            (self.path / f"var/lib/dpkg/info/{name}.list").touch()
        self.run("/sbin/ldconfig")

    def dpkg(self, *words, fails=False):
        """Runs dpkg on the folder; returns what it has printed."""
        return self._run(["dpkg", f"--root={self.path}", "--force-not-root", "--force-unsafe-io", *words], fails)

    def run(self, *words, fails=False):
        """Runs a command inside the folder; returns what it has printed."""
        return self._run(["chroot", str(self.path), *words], fails)

    def answer(self, selection):
        """Answers a question of a package in advance."""
        (self.path / "root-selections").write_text(selection + "\n")
        self.run("debconf-set-selections", "/root-selections")

    def _run(self, command, fails):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment,
                             timeout=300, check=False)
        assert (ran.returncode != 0) == fails, f"{command}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout + ran.stderr

    def __truediv__(self, path):
        return self.path / path.lstrip("/")
