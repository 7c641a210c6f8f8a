"""RabbitMQ's command line tools, which leveretctl is when it is called by their names."""

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 300  # for a program that never ends


@dataclass(frozen=True)
class Ran:
    """The output of a command, and its exit code."""

    out: str
    err: str
    code: int


class Ctl:
    """The tools, installed into a folder, and the node they are about.

    A Leveret is found by its data directory and the token in it, a RabbitMQ by the address of its API.
    """

    def __init__(self, binary, folder, environment):
        self.folder = folder
        subprocess.run([binary, "install_links", folder, "--bat"], check=True, stdout=subprocess.DEVNULL)
        own = folder / "leveretctl"  # which `install_links` does not make
        if not own.is_symlink():
            own.symlink_to(Path(binary).resolve())
        # Nothing of the surroundings is to decide what is tested.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEVERET_", "LC_", "LANG"))}
        path = f"{folder}:{kept.get('PATH', '')}"
        self.environment = kept | {"PATH": path, "LC_ALL": "C"} | environment

    def run(self, *words, tool="rabbitmqctl", **options):
        """Run a tool with these words."""
        return self._ran([self.folder / tool, *words], **options)

    def shell(self, line):
        """Run a line as a shell does."""
        return self._ran(["/bin/sh", "-c", line])

    def _ran(self, command, stdin="", environment=()):
        ran = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S,
                             env=self.environment | dict(environment), cwd=self.folder)
        return Ran(ran.stdout, ran.stderr, ran.returncode)

    def do(self, *words, **options):
        """Run rabbitmqctl, which must be well; its lines."""
        ran = self.run(*words, **options)
        assert (ran.code, ran.err) == (0, ""), f"{words}: {ran}"
        return ran.out.splitlines()


@dataclass(frozen=True)
class Command:
    """A line of a transcript, and the output of RabbitMQ's tool."""

    words: list
    tool: str
    expected: Ran


def transcript(path):
    """The commands of a transcript.

    `$ ` begins the words of a command (behind `diag`, of rabbitmq-diagnostics), `| ` a line of its standard output,
    `! ` one of its standard error, `= ` the code that it ended with. NODE is the name of the node.
    """
    commands = []
    for block in re.split(r"^\$ ", Path(path).read_text(), flags=re.M)[1:]:
        first, *rest = block.splitlines()
        words = shlex.split(first)
        tool = "rabbitmqctl"
        if words[0] == "diag":
            tool, words = "rabbitmq-diagnostics", words[1:]
        lines = {mark: [line[2:] for line in rest if line.startswith(mark)] for mark in "|!="}
        expected = Ran("\n".join(lines["|"]), "\n".join(lines["!"]), int(lines["="][0]))
        commands.append(Command(words, tool, expected))
    return commands
