"""A container of the image without a daemon: the files of its layer and the settings of its configuration, in namespaces.

Root can do the same with unshare and mount: the root folder is read-only, the process is number 1, and the network is a
loopback interface of its own with a second address, which stands for other machines.
"""

import concurrent.futures
import ctypes
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

WITHIN_S = 120

# An address of the container that is not loopback.
OUTSIDE = "10.9.8.7"

CLONE_NEWNET = 0x40000000


def in_network(pid, work):
    """Runs a function in the network of a process: in a thread, which a network belongs to. Returns its value."""
    def entered():
        with open(f"/proc/{pid}/ns/net", "rb") as network:
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.setns(network.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        return work()

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(entered).result(WITHIN_S)


def libraries(folder):
    """The libraries of this machine that the programs in a folder need; none of static ones."""
    told = [subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout for program in folder.iterdir()]
    return sorted({library for one in told for library in re.findall(r"(/\S+) \(0x", one)})


class Image:
    """The tar file, read as `docker load` and as tools for OCI layouts do; `blobs` by digest."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.members = tar.getmembers()
            self._files = {member.name: tar.extractfile(member).read() for member in self.members if member.isfile()}
        self.index = json.loads(self._files["index.json"])
        self.of_docker = json.loads(self._files["manifest.json"])
        self.layout = json.loads(self._files["oci-layout"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        (layer,) = self.manifest["layers"]
        self.layer = gzip.decompress(self.blob(layer))

    def blob(self, described):
        """The bytes that an entry describes."""
        algorithm, digest = described["digest"].split(":")
        content = self._files[f"blobs/{algorithm}/{digest}"]
        assert (algorithm, hashlib.sha256(content).hexdigest(), len(content)) == ("sha256", digest, described["size"])
        return content

    def docker_file(self, name):
        """The bytes of a file that the list for Docker names."""
        return self._files[name]

    def open_layer(self):
        return tarfile.open(fileobj=io.BytesIO(self.layer))

    def unpack(self, folder):
        """Writes the files with their owners; adds the libraries of programs that are not static, as those of tests."""
        with self.open_layer() as tar:
            tar.extractall(folder, numeric_owner=True, filter="fully_trusted")
        for library in libraries(folder / "usr/bin"):
            target = folder / library.lstrip("/")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, target)


class Container:
    """A running container; its log goes to a file."""

    def __init__(self, image, root, log, volumes, variables=(), words=None, user=None):
        settings = image.config["config"]
        self.user = [int(number) for number in (user or settings["User"]).split(":")]
        self.environment = dict(one.split("=", 1) for one in settings["Env"]) | dict(variables)
        command = [*settings.get("Entrypoint", []), *(words or settings["Cmd"])]
        spec = {"root": str(root), "volumes": [[str(outside), inside] for outside, inside in volumes], "user": self.user,
                "environment": self.environment, "command": command, "folder": settings["WorkingDir"],
                "outside": OUTSIDE}
        self.log = log
        # Mounts and processes end with the namespaces, also if the test is killed.
        namespaces = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child"]
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [*namespaces, sys.executable, "-B", pathlib.Path(__file__).parent / "container_init.py", json.dumps(spec)],
                stdout=file, stderr=subprocess.STDOUT)

    def pid(self):
        """The number of its first process outside, as soon as that runs the program of the image."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        deadline = time.monotonic() + WITHIN_S
        while True:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            pids = children.read_text().split()
            if pids and os.path.basename(os.readlink(f"/proc/{pids[0]}/exe")) == "leveret":
                return int(pids[0])
            time.sleep(0.02)

    def started(self):
        """Waits as Testcontainers does: for a line of the log."""
        deadline = time.monotonic() + WITHIN_S
        while "Server startup complete" not in self.log.read_text():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)
        return self

    def run(self, *words, user=None):
        """Runs a program inside, as `docker exec` does; returns exit code and output."""
        uid, gid = user or self.user
        enter = ["/usr/bin/nsenter", f"--target={self.pid()}", "--mount", "--pid", "--net", "--uts", "--ipc", "--root",
                 "--wd", f"--setgid={gid}", f"--setuid={uid}", "--"]
        ran = subprocess.run([*enter, *words], capture_output=True, text=True, env=self.environment, timeout=WITHIN_S,
                             check=False)
        return ran.returncode, ran.stdout + ran.stderr

    def inside(self, work):
        """Runs a function in the network of the container."""
        return in_network(self.pid(), work)

    def stop(self):
        """Stops as `docker stop` does; returns the exit code."""
        os.kill(self.pid(), signal.SIGTERM)
        return self.process.wait(WITHIN_S)

    def end(self):
        self.process.kill()
        self.process.wait(WITHIN_S)
