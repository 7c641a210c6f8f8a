"""Which clients there are: every folder below `clients` says so in its `clients.toml`."""

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from scenarios import COMMON

FOLDER = Path(__file__).resolve().parent / "clients"


@dataclass(frozen=True)
class Client:
    """A client library, or a program that uses one, and how to run it through its scenarios."""

    name: str
    language: str
    source: str
    command: tuple
    scenarios: tuple
    group: "Group"


@dataclass(frozen=True)
class Group:
    """The clients of one folder, which are prepared together."""

    folder: Path
    work: Path

    @property
    def name(self):
        return self.folder.name

    @property
    def prepare(self):
        """The script that builds or installs what its clients need, or None."""
        script = self.folder / "prepare"
        return script if script.exists() else None


def read(work):
    """All clients; what they need is prepared in folders below `work`."""
    clients = []
    for file in sorted(FOLDER.glob("*/clients.toml")):
        group = Group(file.parent, work / file.parent.name)
        fill = {"here": group.folder, "work": group.work, "python": sys.executable}
        for entry in tomllib.loads(file.read_text())["client"]:
            command = tuple(word.format(**fill) for word in entry["command"])
            scenarios = tuple(entry.get("scenarios", COMMON))
            clients.append(Client(entry["name"], entry["language"], entry["source"], command, scenarios, group))
    return clients
