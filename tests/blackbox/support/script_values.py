"""Values of field tables as scripts write them, in both directions, and messages as scripts show them.

`crates/broker/tests/core/script/values.rs` and `render.rs` say what the letters mean.
"""

import re
from decimal import Decimal

from field_table import Pairs, Wire

LETTERS = {"b": "b", "B": "B", "s": "s", "u": "u", "i": "i", "l": "l"}  # integers: the script's letter and the wire's
TYPED = re.compile(r"^([bBsuilfdDTx]):", re.DOTALL)
FALSE_TRUE_VOID = {"false": Wire("t", False), "true": Wire("t", True), "void": Wire("V")}
NAMED_PROPERTIES = (
    "expiration", "reply-to", "correlation-id", "user-id", "message-id", "content-type", "content-encoding", "type", "app-id",
)
DEATH_HEADERS = ("x-death", "x-first-death-", "x-last-death-")
SHOWN_BYTES = 40


def parse(text):
    """The value that `text` means."""
    if (typed := TYPED.match(text)) is not None:
        return _typed(typed[1], text[2:])
    if text.startswith("[") and text.endswith("]"):
        return Wire("A", [parse(item) for item in _split(text[1:-1], ",")])
    if text.startswith("{") and text.endswith("}"):
        return Wire("F", table(field.split("=", 1) for field in _split(text[1:-1], ";")))
    if text in FALSE_TRUE_VOID:
        return FALSE_TRUE_VOID[text]
    if re.fullmatch(r"[+-]?\d+", text) and -(2**63) <= int(text) < 2**63:
        return Wire("I" if -(2**31) <= int(text) < 2**31 else "l", int(text))
    return Wire("S", text.replace('"', ""))


def table(pairs):
    """A table of `key=value`."""
    return Pairs((key, parse(value)) for key, value in pairs)


def _typed(letter, text):
    if letter in LETTERS:
        return Wire(LETTERS[letter], int(text))
    if letter in "fd":
        return Wire(letter, float(text))
    if letter == "T":
        return Wire("T", int(text))
    if letter == "x":
        return Wire("x", text)
    scale, value = text.split("/")
    return Wire("D", Decimal(int(value)).scaleb(-int(scale)))


def _split(text, separator):
    """The parts of `text` between separators that stand outside all brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts if parts[-1] else parts[:-1]


def shown_table(fields):
    """A received table, given as its fields, as a script shows it."""
    return "{" + " ".join(f"{name}={shown(kind, value)}" for name, kind, value in fields) + "}"


def shown(kind, value):
    """A received value as a script shows it."""
    if kind == "t":
        return str(value).lower()
    if kind == "I":
        return str(value)
    if kind in LETTERS.values() or kind in "T":
        return f"{kind}:{value}"
    if kind in "fd":
        return f"{kind}:{value:g}"
    if kind == "D":
        sign, digits, exponent = value.as_tuple()
        return f"D:{-exponent}/{'-' if sign else ''}{''.join(map(str, digits))}"
    if kind == "V":
        return "void"
    if kind == "F":
        return shown_table(value.fields)
    if kind == "A":
        return "[" + ",".join(shown(*member) for member in value) + "]"
    text = value if isinstance(value, str) else value.decode(errors="replace")
    if kind == "x":
        return "x:" + text
    looks_typed = TYPED.match(text) or re.fullmatch(r"[+-]?\d+", text) or text in FALSE_TRUE_VOID
    return f'"{text}"' if looks_typed else text


def shown_message(exchange, routing_key, properties, body, shows_deaths):
    """A message as a script shows it; the counts of a quorum queue stand in front."""
    text = f"{len(body)}xB" if len(body) > SHOWN_BYTES else body.decode(errors="replace")
    out = [f'"{text}" from {exchange or "-"}/{routing_key}']
    if properties.delivery_mode is not None:
        out.append("persistent" if properties.delivery_mode == 2 else f"mode={properties.delivery_mode}")
    for name in NAMED_PROPERTIES:
        if (value := getattr(properties, name.replace("-", "_"))) is not None:
            out.append(f"{name}={value}")
    if properties.priority is not None:
        out.append(f"priority={properties.priority}")
    if properties.timestamp is not None:
        out.append(f"timestamp={properties.timestamp}")
    counts, headers = _counts(properties.headers)
    if headers is not None:
        out.append(_shown_headers(headers, shows_deaths))
    return " ".join(counts + out)


def _counts(headers):
    """The counts of a quorum queue, and the fields of the other headers; None if there is no table but for them."""
    if headers is None:
        return [], None
    fields = {name: value for name, _, value in headers.fields}
    if "x-acquired-count" not in fields:
        return [], headers.fields
    counts = [f"acquired={fields['x-acquired-count']}", f"delivery={fields.get('x-delivery-count', 0)}"]
    others = [field for field in headers.fields if field[0] not in ("x-acquired-count", "x-delivery-count")]
    return counts, others or None


def _shown_headers(fields, shows_deaths):
    by_name = {name: value for name, _, value in fields}
    deaths = by_name.get("x-death")
    if shows_deaths or not isinstance(deaths, list) or "x-first-death-queue" not in by_name:
        return shown_table(fields)
    list_ = ", ".join(f"{death['queue']} {death['reason']} {death['count']}" for _, death in deaths)
    others = [field for field in fields if not field[0].startswith(DEATH_HEADERS)]
    return f"died=[{list_}]" + (" " + shown_table(others) if others else "")
