"""The scripts of the core as text: sections, blocks, words and values.

`crates/broker/tests/core/script` is the first reader of this language; what a line means is written there. This one also
says which sections a socket can play: `why_not`.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from script_time import CLOCK, why_time_matters

SCRIPTS = Path(__file__).resolve().parents[3] / "crates/broker/tests/scripts"

DIFFERS = "# RabbitMQ differs: "
MAY_DIFFER = "# RabbitMQ may differ: "

COMMANDS = frozenset(
    "open close-channel flow access-request close-ok tx-select commit rollback publish ack nack reject declare exchange delete "
    "delete-exchange purge bind unbind bind-exchange unbind-exchange qos consume cancel get recover confirm-select disconnect "
    "raw batch end show at user policy operator-policy clear-policy clear-operator-policy set".split()
)
LOG, NODE, REPLICA = "the log of the core", "a state of the whole node", "a replica"
REDRIVES, SETTING, INSIDE = "redrives", "a setting of the node", "the inside of the core"
SOCKET, OPERATOR, SESSION = "what waits for a socket", "a command of operators", "the session's part"
AT_ONCE, CHANCE = "how much is done at once", "what the core draws"
NO_METHOD = "queue.unbind always has an answer"
CANNOT = {  # why a verb keeps its section from a socket; a verb that is nowhere shows the inside of the core
    "late": CLOCK, "tick": CLOCK,
    "durable": LOG, "digest": LOG, "set hold-log": LOG,
    "alarm": NODE, "stop": NODE, "node": NODE, "tracing": NODE,
    "set consumers-max": SETTING, "set queues-max": SETTING, "set no-global-qos": SETTING, "set default-queue-type": SETTING,
    "backlog": SOCKET, "force-close": OPERATOR, "refused": SESSION,
    "transfer": REPLICA, "failover": REPLICA, "set replicated": REPLICA,
    "redrive": REDRIVES, "set-redrive": REDRIVES, "clear-redrive": REDRIVES, "redrives": REDRIVES,
    "set resident": AT_ONCE,
}
TEXTS = (  # why a text in a command or an effect keeps its section from a socket
    (re.compile(r"^(invalid:|no such policy|\S+ is (stalled|asked))"), INSIDE),
    (re.compile(r"x-local-random"), CHANCE),
    (re.compile(r"^(\S+: )?unbind .* nowait"), NO_METHOD),
)
REASONS = (CLOCK, LOG, NODE, SETTING, SOCKET, OPERATOR, SESSION, REPLICA, REDRIVES, INSIDE, AT_ONCE, CHANCE, NO_METHOD)
TIME = re.compile(r"^\d+(\.\d+)?ms ")  # when an effect comes
DRAWN = re.compile(r"amq\.(?:gen-|ctag-|rabbitmq\.reply-to\.)[\w.+/=-]+")  # names that a broker makes up
NEWS = ("! ", "log ")  # effects that go to logs


@dataclass
class Block:
    """A command and the effects below it."""

    line: str
    effects: list = field(default_factory=list)


@dataclass
class Section:
    """A scenario."""

    file: str
    title: str
    blocks: list = field(default_factory=list)
    differs: str = ""  # why RabbitMQ does something else, if it does
    may_differ: str = ""  # why RabbitMQ may do something else, if it may

    @property
    def lines(self):
        return [block.line for block in self.blocks]

    def why_not(self):
        """Why this section cannot be played over a socket; None if it can."""
        verbs = [verb_of(line) for line in self.lines]
        for verb in verbs:
            if verb in CANNOT:
                return CANNOT[verb]
            if verb.split(" ")[0] not in COMMANDS:
                return INSIDE
        texts = self.lines + [effect for block in self.blocks for effect in block.effects]
        for pattern, reason in TEXTS:
            if any(map(pattern.search, texts)):
                return reason
        if self._uses_unseen_names():
            return CHANCE
        return why_time_matters(self.blocks)

    def _uses_unseen_names(self):
        """Whether a command has a name that was drawn, and that no effect has shown."""
        seen = set()
        for block in self.blocks:
            if not seen.issuperset(DRAWN.findall(block.line)):
                return True
            seen.update(name for effect in block.effects for name in DRAWN.findall(effect))
        return False


def verb_of(line):
    """The verb of a command; for `set` with what is set."""
    words = Words(line)
    words.actor()
    verb = words.next()
    if verb == "raw":
        verb = words.next()
    return f"{verb} {words.next()}" if verb == "set" else verb


def sections(folder=SCRIPTS):
    """All sections of all scripts."""
    return [section for path in sorted(folder.glob("*.txt")) for section in read(path.stem, path.read_text())]


def read(file, text):
    """The sections of one script."""
    found = []
    for line in text.splitlines():
        if line.startswith("== "):
            found.append(Section(file, line[3:]))
        elif line.startswith(DIFFERS):
            found[-1].differs = line.removeprefix(DIFFERS)
        elif line.startswith(MAY_DIFFER):
            found[-1].may_differ = line.removeprefix(MAY_DIFFER)
        elif line.startswith("  "):
            effect = TIME.sub("", line[2:])
            if not effect.startswith(NEWS):
                found[-1].blocks[-1].effects.append(effect)
        elif line and not line.startswith("#"):
            found[-1].blocks.append(Block(line))
    return found


class Words:
    """The words of a line; `"..."` quotes, `-` is the empty string, `\\r` and `\\n` are line ends."""

    def __init__(self, line):
        line = line.replace("\\r", "\r").replace("\\n", "\n")
        self.left = re.findall(r'(?:"[^"]*"|[^ "])+', line)

    def actor(self):
        """The client and the channel that act."""
        if not (self.left and self.left[0].endswith(":")):
            return "c", 1
        name, _, channel = self.left.pop(0)[:-1].partition(".")
        return name, int(channel or 1)

    def next(self, default=None):
        """The next word; without `default` there must be one."""
        if not self.left:
            assert default is not None, "another word is missing"
            return default
        word = self.left.pop(0)
        return "" if word == "-" else word.replace('"', "")

    def flag(self, name):
        """Takes the word `name`; whether it was there."""
        found = name in self.left
        if found:
            self.left.remove(name)
        return found

    def named(self, name):
        """The value of `name=value`, or None."""
        for word in self.left:
            if word.startswith(name + "="):
                self.left.remove(word)
                return word[len(name) + 1:].replace('"', "")
        return None

    def pairs(self):
        """All words left that are `key=value`."""
        found = [word for word in self.left if "=" in word]
        self.left = [word for word in self.left if "=" not in word]
        return [word.split("=", 1) for word in found]


if __name__ == "__main__":
    for reason, count in Counter(section.why_not() for section in sections()).most_common():
        print(f"{count:5} {reason or 'played'}")
