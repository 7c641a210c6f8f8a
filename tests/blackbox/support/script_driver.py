"""Plays a section of a script of the core over sockets, against a real broker.

Each section has a vhost of its own, so names are the script's own, and what a broker says of its vhost is said of `/`.
Effects are compared for each channel: a socket gives no order between channels. After each command its channel is asked a
question, so all that the command does on this channel has come; effects elsewhere are waited for. At the end every channel
is asked: none may have been told more than the script says.

Confirms are compared as what they say of each publish, not as frames. Of `show` the ready messages are compared.
"""

import re

from brokers import quoted
from expectations import NOTHING
from patience import PATIENCE_S, Patience
from script_channel import ABSENT, CLOSING, OPEN, ScriptConnection
from script_lines import DRAWN, Words
from script_methods import method_of
from script_time import milliseconds

HELPER = 2000  # the number of a channel for questions
CLOCKS = re.compile(r"time=T:\d+")  # when a message died
DATES = re.compile(r"(?<=x-scheduled-for=l:)\d+")
ADDRESS = re.compile(r"^(?:(?:(\w+) )?(connection): |(\w+)(?:\.(\d+))?: )")
NO_CANCEL_NOTIFY = {"basic.nack": True, "publisher_confirms": True}


class ScriptDriver:
    """One section that is played."""

    def __init__(self, client, made, patience_s=PATIENCE_S):
        self.client, self.made, self.patience_s = client, made, patience_s
        self.api, self.is_leveret = client.broker.api, client.broker.name == "leveret"
        self.connections, self.users = {}, {}
        self.drawn = {}  # names that the script has, and what this broker has made up instead
        self.now_ms, self.shows_deaths = 0, False
        self.late = False  # effects may come later than answers
        self.capabilities = None
        self.names_users = False

    def play(self, section):
        """Plays all blocks; the first that differs fails."""
        self.vhost = self.made.vhost("script")
        texts = [text for block in section.blocks for text in (block.line, *block.effects)]
        self.names_users = any(re.search(r"user '|user-id=", text) for text in texts)
        batch = None
        for block in section.blocks:
            if block.line == "batch":
                batch = []
            elif block.line == "end":
                self._expect(block, batch)
                batch = None
            elif batch is not None:
                batch.append(self._send(block.line))
                assert len({id(channel.connection) for channel in batch}) == 1, "sockets give no order between clients"
            else:
                self._play(block)
        self._nothing_more()

    # --- commands

    def _play(self, block):
        words = Words(block.line)
        client, _ = words.actor()
        verb = words.next()
        play = {"at": self._wait, "show": self._show, "set": self._set, "user": self._user,
                "disconnect": self._disconnect}.get(verb)
        if play is not None:
            play(block, client, words)
        elif verb.endswith("policy"):
            self._policy(verb, words)
            self._expect(block, [])
        else:
            self._expect(block, [self._send(block.line)])

    def _send(self, line):
        """Sends the command of a line; its channel."""
        words = Words(line)
        client, number = words.actor()
        connection = self._connection(client)
        channel = connection.channel(number)
        channel.shows_deaths = self.shows_deaths
        verb = words.next()
        if channel.state == ABSENT and verb not in ("open", "raw"):
            channel.open()
        if verb == "raw":
            verb = words.next()
        times = int(words.named("times") or 1)
        method, content = method_of(verb, words)
        self._use_real_names(method, content)
        for _ in range(times):
            channel.send(method, content)
        return channel

    def _use_real_names(self, method, content):
        """What this broker has made up stands for what the script has, and the users of this test for the script's."""
        for part in [method, *(content or ())[:1]]:
            for name, value in vars(part).items():
                if isinstance(value, str):
                    setattr(part, name, DRAWN.sub(lambda drawn: self.drawn.get(drawn[0], drawn[0]), value))
        if content is not None and content[0].user_id is not None:
            content[0].user_id = self.users.get(content[0].user_id, content[0].user_id)

    def _connection(self, name):
        if name not in self.connections:
            if self.names_users and name not in self.users:
                self._make_user(name, {})
            options = {"capabilities": self.capabilities} if self.capabilities is not None else {}
            user = self.users.get(name, "guest")
            connection = self.client.connect(user=user, vhost=self.vhost, **options)
            self.connections[name] = ScriptConnection(connection, self._translate)
        return self.connections[name]

    def _translate(self, text):
        for name, real in self.users.items():
            text = text.replace(real, name)
        return without_times(text.replace(f"'{self.vhost}'", "'/'"))

    def _disconnect(self, block, name, _words):
        connection = self.connections.pop(name)
        self._compare(connection.channels.values())
        connection.connection.close()
        self._expect(block, [])

    def _set(self, block, _client, words):
        what = words.next()
        if what == "show-deaths":
            self.shows_deaths = True
        elif what != "show-log":
            self.capabilities = NO_CANCEL_NOTIFY | {"consumer_cancel_notify": what == "cancel-notify"}

    def _user(self, block, _client, words):
        name = words.next()
        patterns = dict(zip(("configure", "write", "read"), [words.next() or NOTHING for _ in range(3)]))
        tags, topics = "", []
        while words.left:
            word = words.next()
            if word == "impersonator":
                tags = word
            else:
                topics.append({"exchange": words.next(), "write": words.next(), "read": words.next()})
        self._make_user(name, patterns, tags)
        for topic in topics:
            self.api.do("PUT", "/api/topic-permissions/" + quoted(self.vhost, self.users[name]), topic)
        self._expect(block, [])

    def _make_user(self, name, patterns, tags=""):
        if name not in self.users:
            self.users[name] = self.made.user(name, tags)
        self.made.permit(self.users[name], self.vhost, **patterns)

    def _policy(self, verb, words):
        self.late = True  # it acts on many messages in slices
        kind = "operator-policies" if "operator" in verb else "policies"
        path = f"/api/{kind}/" + quoted(self.vhost, words.next())
        if verb.startswith("clear"):
            return self.api.do("DELETE", path)
        body = {"pattern": words.next(), "definition": {}, "priority": 0}
        for key, value in words.pairs():
            if key == "apply-to":
                body[key] = value
            elif key == "priority":
                body[key] = float(value) if "." in value else int(value)
            else:
                body["definition"][key] = int(value) if re.fullmatch(r"-?\d+", value) else value.replace('"', "")
        return self.api.do("PUT", path, body)

    # --- the state

    def _wait(self, block, _client, words):
        then_ms = milliseconds(words.next())
        self.client.run_for((then_ms - self.now_ms) / 1000, lambda: False)
        self.now_ms, self.late = then_ms, True
        self._expect(block, [])

    def _show(self, block, _client, words):
        queue = self.drawn.get(name := words.next(), name)
        expected = re.match(r".*?(is gone|ready=\d+)", block.effects[0])[1]
        if expected == "is gone":
            look = lambda: "is gone" if self._is_gone(queue) else "is there"  # noqa: E731
        else:
            look = lambda: self._ready(queue)  # noqa: E731
        found = look()
        if self.late or not self.is_leveret:
            self.client.run_until(lambda: look() == expected, self.patience_s)
            found = look()
        assert found == expected, f"`{block.line}`: {queue} {found}, not {expected}"

    def _is_gone(self, queue):
        return self.api.request("GET", "/api/queues/" + quoted(self.vhost, queue))[0] == 404

    def _ready(self, queue):
        """Asks by a passive declaration; of an exclusive queue on the connection that may."""
        for name in ["show", *(name for name in self.connections if name != "show")]:
            channel = self._connection(name).channel(HELPER)
            if channel.state == CLOSING:
                channel.send(method_of("close-ok", Words(""))[0])
            if channel.state == ABSENT:
                channel.open()
            channel.send(*method_of("declare", Words(f'"{queue}" passive')))
            self.client.run_until(lambda: len(channel.lines) > channel.compared, PATIENCE_S)
            channel.compared = len(channel.lines)
            if " 405 " not in (answer := channel.lines[-1]):
                break
        found = re.search(r"messages=(\d+)", answer)
        return f"ready={found[1]}" if found else answer

    # --- comparing

    def _expect(self, block, channels):
        """Waits for the effects of a block, and for answers to questions on the channels that acted."""
        expected = {}
        for effect in block.effects:
            client, number, line = addressed(without_times(effect))
            channel = self._connection(client).channel(number)
            lines = expected.setdefault(id(channel), (channel, [], []))
            if line.startswith("confirm "):
                lines[2].extend(channel.expected_confirms.expect(line))
            else:
                lines[1].append(line)
        for channel, lines, _ in expected.values():
            self.client.run_until(lambda: self._is_told(channel, lines), self.patience_s)
            self._get_again(block, channel, lines)
        for channel in channels:
            self._ask(channel)
        for channel, lines, tags in expected.values():
            told = self._named(channel, lines)
            assert told == lines, f"`{block.line}`:\n" + difference(lines, told)
            self._compare_returns(block, channel, lines, tags)
            channel.compared += len(lines)
        self._compare(channels, block.line)

    def _get_again(self, block, channel, lines):
        """Where the broker moves messages later than it answers: polls until there is a message."""
        patience = Patience(self.patience_s)
        while (self.late or not self.is_leveret) and len(lines) == 1 and lines[0].startswith("get-ok") and (
                channel.lines[channel.compared:] == ["get-empty"]) and not patience.is_over():
            channel.lines.pop()
            self._send(block.line)
            self.client.run_until(lambda: self._is_told(channel, lines), self.patience_s)

    def _is_told(self, channel, lines):
        """Whether as much came as was expected, or something else."""
        told = self._named(channel, lines)
        if told != lines[:len(told)]:
            return True
        confirms = channel.expected_confirms.by_tag
        return len(told) == len(lines) and confirms.keys() <= channel.confirms.by_tag.keys()

    def _named(self, channel, lines):
        """What came where these lines are expected, with the names that the script has for those that were drawn."""
        told = channel.lines[channel.compared:channel.compared + len(lines)]
        for expected, line in zip(lines, told):
            for name, real in zip(DRAWN.findall(expected), DRAWN.findall(line)):
                self.drawn.setdefault(name, real)
        if not self.is_leveret:
            told = [as_leveret(line) for line in told]
        names = {real: name for name, real in self.drawn.items()}
        return [DRAWN.sub(lambda real: names.get(real[0], real[0]), line) for line in told]

    def _ask(self, channel):
        """Asks on this channel; if it is closed, on another one of its connection."""
        if channel.connection.closed is not None:
            return
        if channel.state != OPEN:
            connection = next(each for each in self.connections.values() if each.connection is channel.connection)
            channel = connection.channel(HELPER + 1)
            if channel.state == ABSENT:
                channel.open()
        channel.ask()
        self.client.run_until(lambda: channel.is_answered, self.patience_s)
        assert channel.is_answered, f"channel {channel.number} does not answer"

    def _compare(self, channels, line="the end"):
        """These channels were told just what was expected."""
        for channel in channels:
            more = channel.lines[channel.compared:]
            assert not more, f"`{line}`: channel {channel.number} was told more:\n" + difference([], more)
            told, expected = channel.confirms.by_tag, channel.expected_confirms.by_tag
            assert told == expected, f"`{line}`: channel {channel.number}: confirms {told}, not {expected}"

    def _compare_returns(self, block, channel, lines, tags):
        """Messages come back before they are confirmed."""
        if tags and lines and lines[-1].startswith("return "):
            order = channel.order[::-1]
            assert order.index(max(tags)) < order.index(lines[-1]), f"`{block.line}`: a confirm came before its return"

    def _nothing_more(self):
        """Asks every channel that is open."""
        for connection in self.connections.values():
            for channel in list(connection.channels.values()):
                if channel.state == OPEN:
                    self._ask(channel)
            self._compare(connection.channels.values())
            assert connection.told.lines[connection.told.compared:] == []


def as_leveret(line):
    """What RabbitMQ has sent without the differences in the first delivery of a dead letter: it is marked as redelivered, and
    it has the counts of the queue where it died."""
    if "died=[" in line or "x-death=[" in line:
        line = re.sub(r"^(.*?#\d+) redelivered(?: acquired=\d+ delivery=\d+)? ", r"\1 ", line)
    return line


def without_times(text):
    """The text without what a clock decides."""
    return DATES.sub("_", CLOCKS.sub("time=T:_", text))


def addressed(effect):
    """The client and the channel that an effect is for (0 for the connection), and what it is told."""
    found = ADDRESS.match(effect)
    if found is None:
        return "c", 1, effect
    of_connection, connection, client, number = found.groups()
    rest = effect[found.end():]
    return (of_connection or "c", 0, rest) if connection else (client, int(number or 1), rest)


def difference(expected, told):
    """Two lists of lines, one below the other."""
    return "\n".join([f"  -{line}" for line in expected] + [f"  +{line}" for line in told])
