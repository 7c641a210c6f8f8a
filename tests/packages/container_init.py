"""The beginning of a container, inside its namespaces: mounts, network, user; then the program of the image."""

import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys

SET_FLAGS, SET_ADDRESS = 0x8914, 0x8916
UP_AND_RUNNING = 0x41

# Devices that every runtime provides; static programs read random numbers from one.
DEVICES = ["null", "zero", "full", "random", "urandom"]


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def start_network(outside):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", b"lo", UP_AND_RUNNING))
        address = struct.pack("16sHH4s16x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(outside))
        fcntl.ioctl(control, SET_ADDRESS, address)


def main(spec):
    root = pathlib.Path(spec["root"])
    mount("--make-rprivate", "/")
    mount("--bind", root, root)
    for outside, inside in spec["volumes"]:
        target = root / inside.lstrip("/")
        # What a runtime does: the place of a mount is made.
        if pathlib.Path(outside).is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        mount("--bind", outside, target)
    mount("--types", "proc", "proc", root / "proc")
    mount("--types", "tmpfs", "--options", "mode=755", "tmpfs", root / "dev")
    for device in DEVICES:
        (root / "dev" / device).touch()
        mount("--bind", f"/dev/{device}", root / "dev" / device)
    mount("--options", "remount,bind,ro", root)
    start_network(spec["outside"])
    socket.sethostname("container")
    os.chroot(root)
    os.chdir(spec["folder"])
    uid, gid = spec["user"]
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    os.execvpe(spec["command"][0], spec["command"], spec["environment"])


main(json.loads(sys.argv[1]))
