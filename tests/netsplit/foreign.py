"""Programs with clients of other languages, which connect over TLS and recover by themselves.

A program is started with the name of a queue. `NODES` has the addresses of all nodes in an order of its own, `CA_FILE` the
certificate to trust. It publishes persistent messages with the bodies 0, 1, 2 and so on, each until it is confirmed, and
consumes the same queue over another connection. It prints `sent N` before the first attempt, `confirmed N`, and `got N` for
each delivery. After `stop` on its standard input it ends the message at hand and prints `done`; at the end of the input it
ends.
"""

import os
import pathlib
import subprocess
import threading
import time

import certificates
from ledger import Fault

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
INTEROP = PROGRAMS.parent.parent / "interop" / "clients"
JARS = ":".join(f"/usr/share/java/{jar}.jar" for jar in ("amqp-client", "slf4j-api", "slf4j-nop"))
FOLDER = "netsplit"
PREPARED_WITHIN_S = 600
READ_WITHIN_S = 60


def prepare(work):
    """Installs what the programs need and Debian does not have; quick when it is there. The clients of the interop matrix
    have a folder of their own: they may be installed at the same time."""
    folder = work / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([INTEROP / "node" / "prepare"], env={**os.environ, "WORK": str(folder)}, cwd=INTEROP / "node",
                   check=True, stdout=subprocess.DEVNULL, timeout=PREPARED_WITHIN_S)


def commands(work):
    """The command of each program, by its language."""
    return {
        "java": ["java", "-cp", JARS, str(PROGRAMS / "Recovering.java")],
        "javascript": ["env", f"NODE_PATH={work / FOLDER / 'node_modules'}", "node", str(PROGRAMS / "recovering.js")],
        "ruby": ["ruby", str(PROGRAMS / "recovering.rb")],
    }


class Tls:
    """The listeners for TLS: one port for each node, in all of its lives."""

    def __init__(self, folder, ports):
        self.authority, self.ports = certificates.Authority(folder), ports
        self.pair = self.authority.sign("localhost")

    def config(self, name):
        """What a node is told."""
        settings = self.authority.listener(self.pair, self.ports[name])
        return "".join(f"{key} = {value}\n" for key, value in settings.items())


def queue_of(language):
    return f"split.{language}"


class Program:
    """A running program, and what it has said."""

    def __init__(self, language, command, tls, rng):
        self.language = language
        ports = list(tls.ports.values())
        rng.shuffle(ports)
        nodes = ",".join(f"localhost:{port}" for port in ports)
        self.process = subprocess.Popen([*command, queue_of(language)], text=True, errors="replace",
                                        env={**os.environ, "NODES": nodes, "CA_FILE": str(tls.authority.file)},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.sent, self.confirmed, self.got, self.is_done, self.rest = set(), set(), set(), False, []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        books = {"sent": self.sent, "confirmed": self.confirmed, "got": self.got}
        for line in self.process.stdout:
            word, _, number = line.strip().partition(" ")
            if word == "done":
                self.is_done = True
            elif word in books and number.isdecimal():
                books[word].add(int(number))
            else:
                self.rest.append(line)

    def check(self):
        """A program that ends by itself is a fault. The reader may be behind the end, and is waited for."""
        if self.process.poll() is not None:
            self.reader.join(READ_WITHIN_S)
            raise Fault(f"the program in {self.language} has ended: {''.join(self.rest)[-2000:]}")

    def ask_to_stop(self):
        self.process.stdin.write("stop\n")
        self.process.stdin.flush()

    def judge(self, deadline):
        """Waits for the last confirm and for all deliveries; the number of confirmed messages."""
        while not (self.is_done and self.confirmed <= self.got):
            self.check()
            if time.monotonic() > deadline:
                lost = sorted(self.confirmed - self.got)
                said = "".join(self.rest)[-2000:]
                raise Fault(f"the program in {self.language}: done {self.is_done}, confirmed and not delivered {lost[:20]} "
                            f"of {len(lost)}, {len(self.confirmed)} confirmed; it said: {said}")
            time.sleep(0.05)
        if invented := self.got - self.sent:
            raise Fault(f"the program in {self.language} got messages that it never sent: {sorted(invented)[:20]}")
        return len(self.confirmed)

    def end(self):
        """Ends it."""
        try:
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Programs:
    """Those with these commands, which use listeners for TLS."""

    def __init__(self, commands):
        self.commands, self.all = commands, []

    def declare(self, channel):
        """Declares their queues."""
        for language in self.commands:
            channel.queue_declare(queue_of(language), durable=True)

    def start(self, tls, rng):
        self.all = [Program(language, command, tls, rng) for language, command in self.commands.items()]

    def check(self):
        for program in self.all:
            program.check()

    def judge(self, within_s):
        """The number of messages that were confirmed."""
        for program in self.all:
            program.ask_to_stop()
        deadline = time.monotonic() + within_s
        return sum(program.judge(deadline) for program in self.all)

    def end(self):
        for program in self.all:
            program.end()
