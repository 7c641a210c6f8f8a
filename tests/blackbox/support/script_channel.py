"""One channel of a script over a socket: what it was told, as a script shows it."""

import re

import pika
from pika import spec

from script_methods import CLOSES, shown_content, shown_method

ABSENT, OPEN, CLOSING = "absent", "open", "closing"


class Confirms:
    """Which publishes are acked and nacked, whatever number of frames has said it."""

    def __init__(self):
        self.by_tag = {}

    def take(self, word, tag, is_multiple):
        """Notes a confirm; the tags that it covers."""
        tags = [each for each in range(1, tag + 1) if each not in self.by_tag] if is_multiple else [tag]
        self.by_tag.update({each: word for each in tags} if is_multiple else {tag: self._once(tag, word)})
        return tags

    def _once(self, tag, word):
        return f"{self.by_tag[tag]}, then {word}" if tag in self.by_tag else word

    def expect(self, effect):
        """Notes the confirm of an effect such as `confirm ack 5 and below`."""
        word, tag, below = re.fullmatch(r"confirm (ack|nack) (\d+)( and below)?", effect).groups()
        return self.take(word, int(tag), bool(below))


class ScriptChannel:
    """A channel that pika knows nothing of: every frame for it comes here, and stops here."""

    def __init__(self, connection, number, translate):
        self.connection, self.number, self._translate = connection, number, translate
        self.state = ABSENT
        self.lines = []  # what was told, without confirms
        self.compared = 0  # how much of it was expected
        self.confirms, self.expected_confirms = Confirms(), Confirms()
        self.order = []  # lines and confirmed tags as they came, for those that belong together
        self.shows_deaths = False
        self._silent = []  # answers that a script does not see
        self._content = None
        connection.pika.taps[number] = self._on_frame

    def send(self, method, content=None):
        """Sends a method; it is lost if the connection has ended."""
        if self.connection.closed is not None:
            return
        if isinstance(method, spec.Channel.CloseOk):
            self.state = ABSENT
        self.connection.pika._send_method(self.number, method, content)

    def open(self):
        """Opens the channel as a client does before its first command."""
        self.state = OPEN
        self.confirms, self.expected_confirms = Confirms(), Confirms()
        self._silent.append(spec.Channel.OpenOk)
        self.send(spec.Channel.Open())

    def ask(self):
        """Sends a question whose answer comes after everything that was sent before."""
        self._silent.append(spec.Channel.FlowOk)
        self.send(spec.Channel.Flow(active=True))

    @property
    def is_answered(self):
        """Whether no silent answer is outstanding, or none will come."""
        return not self._silent or self.state != OPEN or self.connection.closed is not None

    def _on_frame(self, frame):
        if isinstance(frame, pika.frame.Method):
            method = frame.method
            if isinstance(method, (spec.Basic.Deliver, spec.Basic.GetOk, spec.Basic.Return)):
                self._content = (method, None, [])
            else:
                self._on_method(method)
            return False
        method, header, chunks = self._content
        if isinstance(frame, pika.frame.Header):
            header = frame
            self._content = (method, header, chunks)
        else:
            chunks.append(frame.fragment)
        if sum(map(len, chunks)) == header.body_size:
            self._content = None
            self._tell(shown_content(method, header.properties, b"".join(chunks), self.shows_deaths))
        return False

    def _on_method(self, method):
        if self._silent and isinstance(method, self._silent[0]):
            self._silent.pop(0)
        elif isinstance(method, (spec.Basic.Ack, spec.Basic.Nack)):
            word = "ack" if isinstance(method, spec.Basic.Ack) else "nack"
            self.order += self.confirms.take(word, method.delivery_tag, method.multiple)
        else:
            if isinstance(method, spec.Channel.Close):
                self.state, self._silent = CLOSING, []
            elif isinstance(method, spec.Channel.CloseOk) and self.state != CLOSING:
                self.state, self._silent = ABSENT, []
            elif isinstance(method, spec.Channel.OpenOk):
                self.state = OPEN
                self.confirms, self.expected_confirms = Confirms(), Confirms()
            self._tell(shown_method(method))

    def _tell(self, line):
        line = self._translate(line)
        self.lines.append(line)
        self.order.append(line)


class ScriptConnection:
    """A client of a script: its connection and channels."""

    def __init__(self, connection, translate):
        self.connection, self.translate = connection, translate
        self.channels = {}
        self.told = ScriptLines()
        passes = connection.pika.taps[0]

        def tap(frame):
            if isinstance(frame, pika.frame.Method) and type(frame.method) in CLOSES:
                self.told.lines.append(translate(shown_method(frame.method)))
            return passes(frame)

        connection.pika.taps[0] = tap

    def channel(self, number):
        if number == 0:
            return self.told
        if number not in self.channels:
            self.channels[number] = ScriptChannel(self.connection, number, self.translate)
        return self.channels[number]


class ScriptLines:
    """What a connection itself was told."""

    def __init__(self):
        self.lines, self.compared = [], 0
        self.confirms, self.expected_confirms = Confirms(), Confirms()
        self.order = []
