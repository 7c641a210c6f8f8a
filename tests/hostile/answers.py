"""What a broker can answer to an attack, and how tests say which answer they expect.

`by_broker` is the only place where the two brokers may differ: `rabbitmq` is what RabbitMQ 4.3 was observed to do,
`leveret` what Leveret has decided to do instead (usually: say why before hanging up).
"""

from dataclasses import dataclass

import wire

CODE_NAMES = {
    311: "CONTENT_TOO_LARGE", 312: "NO_ROUTE", 313: "NO_CONSUMERS", 320: "CONNECTION_FORCED", 402: "INVALID_PATH",
    403: "ACCESS_REFUSED", 404: "NOT_FOUND", 405: "RESOURCE_LOCKED", 406: "PRECONDITION_FAILED", 501: "FRAME_ERROR",
    502: "SYNTAX_ERROR", 503: "COMMAND_INVALID", 504: "CHANNEL_ERROR", 505: "UNEXPECTED_FRAME", 506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED", 540: "NOT_IMPLEMENTED", 541: "INTERNAL_ERROR",
}

_broker = None  # set once by the test runner, before any test module is imported


def set_broker(kind):
    global _broker
    _broker = kind


def by_broker(rabbitmq, leveret):
    """The expectation for the broker under test."""
    return {"rabbitmq": rabbitmq, "leveret": leveret}[_broker]


class Any:
    """Equal to everything: for what a rule leaves open."""

    def __eq__(self, other):
        return True

    def __repr__(self):
        return "ANY"


ANY = Any()


@dataclass(frozen=True)
class BeginsWith:
    """A reply text of which only the beginning is a promise (the rest is Erlang's layout of long terms)."""

    text: str

    def __eq__(self, other):
        return isinstance(other, str) and other.startswith(self.text)


@dataclass(frozen=True)
class Closed:
    """The broker closed a connection or a channel with a frame."""

    scope: str
    code: int
    text: object
    method: object


@dataclass(frozen=True)
class Dropped:
    """The broker closed the socket without connection.close or channel.close."""


@dataclass(frozen=True)
class Unharmed:
    """The broker closed nothing: the connection went on as if the attack were ordinary traffic."""


DROPPED = Dropped()
UNHARMED = Unharmed()


class OneOf:
    """Where the rule itself allows several answers."""

    def __init__(self, *answers):
        self.answers = answers

    def __eq__(self, other):
        return any(other == answer for answer in self.answers)

    def __repr__(self):
        return " or ".join(map(repr, self.answers))


def one_of(*answers):
    return OneOf(*answers)


def _closed(scope, code, text, method):
    if text is None:
        text = BeginsWith(CODE_NAMES[code])
    elif isinstance(text, BeginsWith):
        text = BeginsWith(f"{CODE_NAMES[code]} - {text.text}")
    elif text == "":
        text = CODE_NAMES[code]
    else:
        text = truncated(f"{CODE_NAMES[code]} - {text}")
    return Closed(scope, code, text, wire.METHOD_IDS[method] if isinstance(method, str) else method)


def connection_closed(code, text=None, method=(0, 0)):
    """connection.close. `text` is what follows the code's name (None: anything, "": nothing); `method` is the failing
    method by name or ids, (0, 0) for errors of frames."""
    return _closed("connection", code, text, method)


def channel_closed(code, text=None, method=ANY):
    """channel.close, with the same arguments."""
    return _closed("channel", code, text, method)


def truncated(text):
    """A reply text as it arrives when it is longer than a short string: 255 characters, the last three dots."""
    return text if len(text) <= 255 else text[:252] + "..."
