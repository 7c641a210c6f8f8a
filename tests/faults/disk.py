"""A broker whose disk does what a test says, through the library that is made of `faults.c`."""

import os
import struct
import subprocess
from pathlib import Path

import damage
from broker_process import Broker

def compile_library(name, folder):
    """The library to preload that is made of the source of this name."""
    source, library = Path(__file__).with_name(f"{name}.c"), folder / f"{name}.so"
    subprocess.run(
        [os.environ.get("CC", "cc"), "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source,
         "-ldl", "-lpthread"], check=True)
    return library


def environment(library, folder, rules_file):
    """The variables with which a process obeys the rules of a file for what it does to this folder."""
    return {"LD_PRELOAD": str(library), "FAULTS_FOLDER": str(folder), "FAULTS_RULES": str(rules_file)}


class FaultyBroker(Broker):
    """Obeys the rules of `rules`, see `faults.c`, while it is started by `start_with`."""

    def __init__(self, binary, folder, library, config=""):
        super().__init__(binary, folder, config)
        self.rules_file = folder / "rules"
        self.environment = environment(library, self.data, self.rules_file)

    def rules(self, *rules):
        """From now on these hold: (call, how many to skip, how many times, action, end of the file's name)."""
        new = self.folder / "rules.new"
        new.write_text("".join(f"{number} {' '.join(map(str, rule))}\n" for number, rule in enumerate(rules)))
        new.rename(self.rules_file)

    def start_with(self, *rules, **options):
        self.rules(*rules)
        return self.start(self.environment, **options)

    def launch_with(self, *rules, **options):
        self.rules(*rules)
        self.launch(self.environment, **options)

    def active_file(self):
        """The name of the log file of the first vhost that is being written."""
        entries = (self.data / "vhosts/1/manifest").read_bytes()[damage.MANIFEST_HEADER:]
        number, _, end, *_ = struct.unpack("<5Q", entries[-damage.MANIFEST_ENTRY:])
        assert end == 0
        return f"{number:016x}.log"

    def injected(self):
        """What was done to it."""
        told = Path(f"{self.rules_file}.log")
        return told.read_text().splitlines() if told.exists() else []

    def assert_no_panic(self):
        assert "panicked" not in self.said(), self.said()[-4000:]

    def files(self):
        """Every file of the data directory with its bytes, without reserved ones."""
        files = (path for path in sorted(self.data.rglob("*")) if path.is_file() and path.name != "reserve")
        return {path: path.read_bytes() for path in files}
