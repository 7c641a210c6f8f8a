"""What comes back from a broker: messages, and refusals."""

import re
from dataclasses import dataclass

import pika

CODE_NAMES = {
    311: "CONTENT_TOO_LARGE", 312: "NO_ROUTE", 313: "NO_CONSUMERS", 320: "CONNECTION_FORCED", 402: "INVALID_PATH",
    403: "ACCESS_REFUSED", 404: "NOT_FOUND", 405: "RESOURCE_LOCKED", 406: "PRECONDITION_FAILED", 501: "FRAME_ERROR",
    502: "SYNTAX_ERROR", 503: "COMMAND_INVALID", 504: "CHANNEL_ERROR", 505: "UNEXPECTED_FRAME", 506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED", 540: "NOT_IMPLEMENTED", 541: "INTERNAL_ERROR",
}
CHANNEL_CODES = {311, 312, 313, 403, 404, 405, 406}


class Closed(Exception):
    """The broker closed a channel or a connection."""

    def __init__(self, scope, code, text):
        super().__init__(f"{scope} closed by the broker: {code} {text}")
        self.scope, self.code, self.text = scope, code, text

    @classmethod
    def by(cls, scope, reason):
        """From pika's reason. Where RabbitMQ breaks a long Erlang term into lines, the breaks are left out."""
        text = getattr(reason, "reply_text", repr(reason))
        return cls(scope, getattr(reason, "reply_code", None), re.sub(r"\n\s+", "", text))

    @property
    def said(self):
        """What a refusal is compared by."""
        return self.scope, self.code, self.text


@dataclass(frozen=True)
class Refusal:
    """What the broker must answer: the code decides whether the channel or the connection closes."""

    code: int
    explanation: str

    @property
    def said(self):
        scope = "channel" if self.code in CHANNEL_CODES else "connection"
        return scope, self.code, f"{CODE_NAMES[self.code]} - {self.explanation}"


@dataclass
class Message:
    """A message from basic.deliver, basic.get-ok or basic.return."""

    body: str
    exchange: str
    routing_key: str
    properties: pika.BasicProperties
    redelivered: bool = False
    tag: int = 0
    consumer_tag: str = ""
    message_count: int = -1
    reply: tuple = ()

    @property
    def headers(self):
        return self.properties.headers or {}

    @property
    def deaths(self):
        """x-death as a list of (queue, reason, count), newest first."""
        return [(d["queue"], d["reason"], d["count"]) for d in self.headers.get("x-death", [])]
