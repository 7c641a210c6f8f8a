"""What the answers of two brokers say: equal, different on purpose, different, or missing."""

import fnmatch
import pathlib
import re
import tomllib
from dataclasses import dataclass, field

from differences import differences

ON_PURPOSE = pathlib.Path(__file__).resolve().parent / "on_purpose.toml"
VERDICTS = ("equal", "on purpose", "different", "missing")


@dataclass
class Row:
    """What came of one question: differences, each with the reason why it is on purpose, or none."""

    asked: str
    what: str
    is_missing: bool = False
    notes: dict = field(default_factory=dict)

    @property
    def verdict(self):
        if self.is_missing:
            return "missing"
        if not self.notes:
            return "equal"
        return "on purpose" if all(self.notes.values()) else "different"


class OnPurpose:
    """The differences that stay, with their reasons."""

    def __init__(self, text=None):
        known = tomllib.loads(ON_PURPOSE.read_text() if text is None else text)
        self.known = [(one["asked"], re.compile(one["note"], re.DOTALL), one["reason"]) for one in known["difference"]]
        self.used = set()

    def reason(self, asked, note):
        """The reason of a difference, or None."""
        for place, (pattern, expected, reason) in enumerate(self.known):
            if fnmatch.fnmatchcase(asked, pattern) and expected.fullmatch(note):
                self.used.add(place)
                return reason
        return None

    def unused(self):
        return [self.known[place][:2] for place in range(len(self.known)) if place not in self.used]

    def reasons(self):
        """(what is asked, reason) of all, in order, each once."""
        return list(dict.fromkeys((asked, reason) for asked, _, reason in self.known))


def rows(theirs, ours, on_purpose):
    """The rows of a part of the page."""
    found = []
    for asked, their in theirs.items():
        row = Row(asked, their["what"])
        our = ours.get(asked)
        if our is None:
            row.is_missing = True
        elif "exit" in their:
            row.is_missing = our["exit"] == 64 and their["exit"] != 64
            row.notes = {note: None for note in of_command(our, their)}
        else:
            row.is_missing = our["status"] in (404, 405) and their["status"] not in (404, 405)
            row.notes = {note: None for note in of_answer(our, their)}
        row.notes = {note: on_purpose.reason(asked, note) for note in row.notes}
        if row.is_missing and (reason := on_purpose.reason(asked, "missing")):
            row.is_missing, row.notes = False, {"missing": reason}
        found.append(row)
    return found


def of_answer(ours, theirs):
    """The differences of two answers over HTTP, one by one."""
    if ours["status"] != theirs["status"]:
        return [f"status {ours['status']}, not {theirs['status']}"]
    notes = []
    if ours.get("reason") != theirs.get("reason"):
        notes.append(f"{ours['status']}: `{ours.get('reason')}`, not `{theirs.get('reason')}`")
    if ours.get("kind") != theirs.get("kind"):
        notes.append(f"content type {ours.get('kind')}, not {theirs.get('kind')}")
    if ours.get("shown") != theirs.get("shown"):
        notes.append(f"shows {said(ours['shown'])}, not {said(theirs['shown'])}")
    return notes + of_shapes(ours, theirs)


def said(shown):
    return str(shown["value"]) if "value" in shown else f"status {shown['status']}"


def of_shapes(ours, theirs):
    if "shape" not in ours or "shape" not in theirs:
        return []
    missing, more, other = differences(theirs["shape"], ours["shape"])
    return [f"{word}: {path}" for word, paths in (("without", missing), ("more", more), ("type of", other)) for path in paths]


def of_command(ours, theirs):
    """The differences of what two commands did."""
    notes = [] if ours["exit"] == theirs["exit"] else [f"exit code {ours['exit']}, not {theirs['exit']}"]
    for stream in ("stdout", "stderr"):
        if (mine := ours.get(stream)) != (their := theirs.get(stream)):
            notes.append(f"{stream}: {first_difference(mine or [], their or [])}")
    if ours.get("stream") != theirs.get("stream"):
        notes.append(f"on {ours.get('stream')}, not {theirs.get('stream')}")
    return notes + of_shapes(ours, theirs)


def first_difference(ours, theirs):
    only_ours = [line for line in ours if line not in theirs]
    only_theirs = [line for line in theirs if line not in ours]
    return f"`{(only_ours or ['nothing'])[0][:160]}`, not `{(only_theirs or ['nothing'])[0][:160]}`"
