"""Sections in which time matters: which of them a socket can play.

Over a socket time passes also between commands, so nothing can be looked at that a deadline changes, while the deadline is
near. What can be played is later than a deadline: `at` waits for so long after the command that began it.
"""

import re

WAIT_MAX_MS = 300
FAR_MS = 30_000  # a deadline that far away does not come in a section
CLOCK = "the clock of the core"

# TTLs of messages and queues; every other time span is left to the core.
_SPANS = re.compile(r"(?:^| )(x-message-ttl|message-ttl|expiration|x-expires|expires)=\"?(?:[a-zA-Z]:)?\+?(\d+)")
_OTHER_SPANS = re.compile(r"(?:timeout|x-delay|delayed-retry-\w+|delivery-delay|delivery-time|delivery-interval)=(?:[a-zA-Z]:)?(\d+)")
# Commands that begin no time span, whatever waits where.
_BEGINS_NOTHING = re.compile(r"^(?:\S+: )?(get|show|confirm-select|tx-select|qos|consume|set|user)\b")
_PUBLISHES = re.compile(r"^(?:\S+: )?publish ")
# Effects that are the same whether or not a deadline has come.
_SAFE = re.compile(
    r"^(?:\S+: )?(confirm ack|queue\.bind-ok|exchange\.|basic\.consume-ok|basic\.qos-ok|confirm\.select-ok|tx\.select-ok)")
_DECLARED = re.compile(r"^(?:\S+: )?queue\.declare-ok (\S+) ")


def milliseconds(word):
    """`250ms`, `2s` or `100.5ms` as a number."""
    return float(word[:-2]) if word.endswith("ms") else float(word[:-1]) * 1000


def why_time_matters(blocks):
    """Why the times of a section cannot be had over a socket; None if they can."""
    lines = [block.line for block in blocks]
    waits = any(line.startswith("at ") for line in lines)
    others = [int(span) for line in lines for span in _OTHER_SPANS.findall(line)]
    if any(0 < span < FAR_MS for span in others) or waits and others:
        return CLOCK
    near = _near_spans(lines)
    if not near and not waits:
        return None
    if len({span for _, span in near}) > 1:
        return CLOCK
    # The longest way of a message: through every queue with a TTL, and its own one in front.
    of_messages = [span for key, span in near if key == "expiration"]
    longest = sum(span for key, span in near if key != "expiration") + max(of_messages, default=0)
    return None if _looks_away_from(blocks, longest, any("expires" in key for key, _ in near)) else CLOCK


def _near_spans(lines):
    """The spans that may end while the section is played, each with its key. Without messages only queues have any."""
    found = [(key, int(span)) for line in lines for key, span in _SPANS.findall(line) if 0 < int(span) < FAR_MS]
    has_messages = any(map(_PUBLISHES.match, lines))
    return [(key, span) for key, span in found if has_messages or "expires" in key]


def _looks_away_from(blocks, longest, is_of_queues):
    """Whether no block shows what a span changes before the script has waited for all of it."""
    now, began, known = 0, None, set()
    for block in blocks:
        if block.line.startswith("at "):
            then = milliseconds(block.line.split()[1])
            if then - now > WAIT_MAX_MS:
                return False
            now = then
            if began is not None and now - began < longest:
                if block.effects:
                    return False
            else:
                began = None
            continue
        if began is not None and not all(_SAFE.match(effect) or _is_new(effect, known) for effect in block.effects):
            return False
        known.update(found[1] for found in map(_DECLARED.match, block.effects) if found)
        declares = re.match(r"^(?:\S+: )?declare ", block.line)
        if longest and not _BEGINS_NOTHING.match(block.line) and (is_of_queues or not declares):
            began = now
    return True


def _is_new(effect, known):
    """Whether this is the answer to the first declaration of a queue."""
    found = _DECLARED.match(effect)
    return found is not None and found[1] not in known and effect.endswith("messages=0 consumers=0")
