"""The commands of the documents, as they stand there."""

import pathlib
import re
import shutil

INSTALL = "start/install.md"
DOCUMENTS = pathlib.Path(__file__).parents[2] / "docs"


def blocks(page, section):
    """The blocks of commands of a section, each a list of commands with their continuations."""
    text = re.split(rf"^#+ {re.escape(section)}\n", (DOCUMENTS / page).read_text(), maxsplit=1, flags=re.MULTILINE)[1]
    text = re.split(r"^#+ ", text, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block.replace("\\\n", " ").strip().splitlines() for block in found]


def follow(machine, commands):
    """Runs commands in a machine, as they are; returns all that they print."""
    return "".join(machine.run("sh", "-c", command) for command in commands)


def install(machine, file, section):
    """Gives the file to root of the machine, and runs the three commands of a section of install.md."""
    shutil.copy(file, machine.debian / "srv")
    three = blocks(INSTALL, section)[0]
    assert len(three) == 3 and any(file.name in one for one in three), three
    follow(machine, three)
    return machine
