"""leveret-perf, run as its users do."""

import json
import subprocess
from dataclasses import dataclass

TIMEOUT_S = 300  # for a program that never ends


@dataclass(frozen=True)
class Ran:
    """The output of the program, and its exit code."""

    out: str
    err: str
    code: int


class Perf:
    """The program, and the broker that it loads."""

    def __init__(self, binary, uri):
        self.binary, self.uri = binary, uri

    def run(self, *words, uri=None):
        """Run it with these words."""
        ran = subprocess.run(self._command(words, uri), capture_output=True, text=True, timeout=TIMEOUT_S)
        return Ran(ran.stdout, ran.stderr, ran.returncode)

    def start(self, *words):
        """The program, which runs on."""
        return subprocess.Popen(self._command(words, None), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _command(self, words, uri):
        return [self.binary, "--uri", uri or self.uri, *(str(word) for word in words)]

    def measure(self, *words, **options):
        """What it has measured, which must be well."""
        ran = self.run(*words, "--json", "--quiet", **options)
        assert (ran.code, ran.err) == (0, ""), f"{words}: {ran}"
        return json.loads(ran.out)
