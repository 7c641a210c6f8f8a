"""Runs the program of a page in docs/frameworks, and compares what it prints with the page.

A block of code whose first line is a comment with a file name is that file. The block `sh` that follows builds and runs
it, in a folder with these files, and the block `text` behind that is the output: the same lines, in any order, because
the messages of an example do not wait for each other.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "frameworks"
FENCE = re.compile(r"^```(\w+)(?: skip)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:<\?php )?(?://!?|#) (?:.*: )?([\w.-]+\.\w+)$")
SCHEDULED = re.compile(r"^rabbitmq_global_messages_scheduled_total\{.*\} (\d+)$", re.MULTILINE)
DEFAULT_ADDRESS = "localhost:5672"  # as it stands in the programs
WITHIN_S = 120


def main():
    options = arguments()
    print(f"version {version(*options.version)}", flush=True)
    fault = run(options)
    print(f"failed page: {fault}" if fault else "ok page", flush=True)
    raise SystemExit(1 if fault else 0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", help="its name in docs/frameworks")
    parser.add_argument("--version", nargs=2, metavar=("KIND", "OF"), required=True,
                        help="pip NAME, deb NAME, npm FOLDER/OF/THE/PACKAGE, or cargo NAME, of clients/rust")
    parser.add_argument("--link", type=Path, action="append", default=[], help="is linked into the folder of the program")
    parser.add_argument("--built", nargs=2, type=Path, metavar=("SOURCE", "PROGRAM"),
                        help="the program was made of this source, which must be that of the page")
    parser.add_argument("scenario", help="is `page`")
    return parser.parse_args()


def version(kind, of):
    """The version of the client."""
    if kind == "pip":
        return metadata.version(of)
    if kind == "npm":
        return json.loads((Path(of) / "package.json").read_text())["version"]
    if kind == "deb":
        return subprocess.run(["dpkg-query", "--show", "--showformat", "${source:Upstream-Version}", of], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    dependencies = tomllib.loads((Path(__file__).resolve().parent / "clients/rust/Cargo.toml").read_text())["dependencies"]
    return dependencies[of]["version"].lstrip("=")


def blocks(text):
    """The files of a page by name, the commands that run them, and the lines that are printed."""
    files, commands = {}, None
    for language, source in FENCE.findall(text):
        if named := FILE.match(source.partition("\n")[0]):
            files[named[1]] = source
        elif language == "sh" and files:
            commands = source
        elif language == "text" and commands:
            return files, commands, source.splitlines()
    raise SystemExit("the page has no program with commands and their output")


def run(options):
    """Run the program of the page; the difference between what it prints and the page, or None."""
    files, commands, shown = blocks((FOLDER / options.page).read_text(encoding="utf-8"))
    address = f"{os.environ['AMQP_HOST']}:{os.environ['AMQP_PORT']}"
    # Commands of Python are those of the environment that has the client.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "AMQP_URL": f"amqp://guest:guest@{address}/%2f"}
    with tempfile.TemporaryDirectory(prefix="leveret-page-") as folder:
        for name, source in files.items():
            (Path(folder) / name).write_text(source.replace(DEFAULT_ADDRESS, address), encoding="utf-8")
        for target in options.link:
            (Path(folder) / target.name).symlink_to(target)
        if options.built:
            source, commands = options.built
            if source.read_text(encoding="utf-8") not in files.values():
                return f"{source.name} is not the program of the page"
        done = subprocess.run(["bash", "-e", "-c", str(commands)], cwd=folder, env=environment, text=True, timeout=WITHIN_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode == 0 and sorted(done.stdout.splitlines()) == sorted(shown):
        delayed = has_delayed_a_message()
        return None if delayed else "no message has waited for its delivery time"
    print(done.stdout, done.stderr, sep="")
    return f"status {done.returncode}, printed {done.stdout.splitlines()} instead of {shown}"


def has_delayed_a_message():
    """Whether a message of the program had a delivery time that the broker understood, as each page promises.

    Only the node that leads the vhost has counted it.
    """
    counted = 0
    for url in os.environ["HTTP_URLS"].split():
        with urllib.request.urlopen(url + "/metrics") as metrics:
            counted += sum(map(int, SCHEDULED.findall(metrics.read().decode())))
    return counted > 0


if __name__ == "__main__":
    main()
