"""The page that a comparison writes: the differences on purpose with their reasons, and the table of all answers."""

import commands
import endpoints
from verdicts import VERDICTS

TABLE = "docs/reference/compared-with-rabbitmq.md"
BEGIN, END = "<!-- compared: begin -->", "<!-- compared: end -->"


def write(root, parts, on_purpose, version):
    (root / TABLE).write_text(document(parts, on_purpose, version))


def with_reasons(text, on_purpose):
    """The page with the list of differences on purpose."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{reasons(on_purpose)}{END}{behind}"


def reasons(on_purpose):
    of = {}
    for asked, reason in on_purpose.reasons():
        of.setdefault(reason, []).append(asked)
    lines = ["| Asked | Reason of the difference |", "| --- | --- |"]
    for reason, asked in of.items():
        lines.append(f"| {', '.join(f'`{escaped(one)}`' for one in dict.fromkeys(asked))} | {escaped(reason)} |")
    return "\n".join(lines) + "\n"


def printable(text):
    """In one line, without characters that nobody sees."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def escaped(text):
    """The same in a cell of a table."""
    return printable(text).replace("|", "\\|")


def table(title, rows):
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}
    summary = ", ".join(f"{number} {verdict}" for verdict, number in count.items())
    seen = {}
    for row in rows:
        seen.setdefault(row.what, []).append(row)
    equal, different = [], []
    for what, same in seen.items():
        worst = max(same, key=lambda row: VERDICTS.index(row.verdict))
        notes = "; ".join(dict.fromkeys(note for row in same for note in row.notes))
        if worst.verdict == VERDICTS[0] and not notes:
            equal.append(f"`{printable(what)}`")
        else:
            different.append(f"| `{escaped(what)}` | {worst.verdict} | {escaped(notes)} |")
    out = [f"## {title}", "", f"{len(rows)} asked: {summary}.", "", "| Asked | | Difference |", "| --- | --- | --- |"]
    out += different
    if equal:
        out += ["", "Equal: " + ",\n".join(equal) + "."]
    return "\n".join(out) + "\n"


def document(parts, on_purpose, version):
    left_out = "; ".join(f"`{path}` ({why})" for path, why in endpoints.LEFT_OUT)
    tables = "\n".join(table(title, rows) for title, rows in parts.items())
    return "\n".join([
        "# Compared with RabbitMQ", "",
        f"`cargo xtask compare` writes this page. It sends the same requests to Leveret and to RabbitMQ {version}, and",
        "compares fields and types of JSON, reasons of refusals, what is shown after an odd value, and exit codes, output",
        "and JSON of commands, except names of nodes, addresses, process ids and what only Erlang has. \"without\" is a field",
        "that only RabbitMQ has, \"more\" one that only Leveret has.",
        "[Differences on purpose](#differences-on-purpose) has the reason of each difference.", "",
        "## Differences on purpose", "",
        "A test compares in every run. What differs has one of these reasons",
        "([`on_purpose.toml`](../../tests/compare/on_purpose.toml)); in what is asked, `*` stands for anything.", "",
        with_reasons(f"{BEGIN}{END}", on_purpose), "",
        tables,
        f"Not asked for, because Leveret has no such part: {left_out}.", "",
        f"Commands that are not asked for: {commands.LEFT_OUT}.", "",
    ])
