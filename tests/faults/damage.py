"""Kinds of damage to a data directory, and where in its files they can strike."""

import struct
from dataclasses import dataclass
from pathlib import Path

from octets import NODE_JSON

BLOCK = 4096
FIRST_BATCH = 4096
BATCH = struct.Struct("<4sIIIQQQII")
RECORD_HEADER = 32
MANIFEST_HEADER, MANIFEST_ENTRY = 48, 40


@dataclass(frozen=True)
class Region:
    """A part of a file that means one thing."""

    what: str
    start: int
    end: int


def regions(path, octets):
    """All parts of a file, from its beginning to its end."""
    if path.name == "manifest":
        return [Region("header", 0, MANIFEST_HEADER), Region("entries", MANIFEST_HEADER, len(octets))]
    if path.suffix == ".log":
        return list(log_regions(octets))
    return [Region("text", 0, len(octets))] if octets else []


def log_regions(octets):
    if not any(octets[:64]):
        yield Region("slack", 0, len(octets))  # a file that was made ahead
        return
    yield Region("header", 0, 64)
    yield Region("slack", 64, FIRST_BATCH)
    at = FIRST_BATCH
    while octets[at:at + 4] == b"BTCH":
        _, _, length, count, *_ = BATCH.unpack_from(octets, at)
        yield Region("batch header", at, at + BATCH.size)
        end = at + BATCH.size + length
        record = at + BATCH.size
        for _ in range(count):
            payload = record + RECORD_HEADER + int.from_bytes(octets[record:record + 4], "little")
            yield Region("record header", record, record + RECORD_HEADER)
            if payload > record + RECORD_HEADER:
                yield Region("payload", record + RECORD_HEADER, payload)
            record = payload
        at = (end + 7) // 8 * 8
        if at > end:
            yield Region("padding", end, at)
    if at < len(octets):
        yield Region("slack", at, len(octets))


@dataclass(frozen=True)
class Damage:
    """What is done to a file, or to two."""

    kind: str
    path: Path  # below the data directory
    at: int = 0
    other: Path | None = None

    def __str__(self):
        return f"{self.kind} {self.path} at {self.at}" + (f" with {self.other}" if self.other else "")

    def do(self, data):
        path = data / self.path
        octets = bytearray(path.read_bytes())
        match self.kind:
            case "flip":
                octets[self.at // 8] ^= 1 << self.at % 8
            case "truncate":
                del octets[self.at:]
            case "zero":
                octets[self.at:self.at + BLOCK] = bytes(len(octets[self.at:self.at + BLOCK]))
            case "append":
                octets += bytes(number % 251 for number in range(5000))
            case "delete":
                path.unlink()
                return
            case "swap":
                octets = bytearray((data / self.other).read_bytes())
                (data / self.other).write_bytes(path.read_bytes())
        path.write_bytes(octets)

    def offset(self):
        """The byte where it begins."""
        return self.at // 8 if self.kind == "flip" else self.at


def flips(files, rng, per_region):
    """Single bits: of every kind of region of every file so many, or all of them."""
    for path, octets in files.items():
        by_kind = {}
        for region in regions(path, octets):
            by_kind.setdefault(region.what, []).append(region)
        for kind in by_kind.values():
            if per_region is None:
                bits = [bit for region in kind for bit in range(8 * region.start, 8 * region.end)]
            else:
                chosen = [rng.choice(kind) for _ in range(per_region)]
                bits = [rng.randrange(8 * region.start, 8 * region.end) for region in chosen]
            yield from (Damage("flip", path, bit) for bit in bits)


def others(files, rng, count):
    """Everything else that happens to files."""
    names = [path for path in files if path.name != "lock"]
    logs = [path for path in names if path.suffix == ".log"]
    for path in names:
        size = len(files[path])
        for kind in ("delete", "append"):
            yield Damage(kind, path)
        for _ in range(count):
            yield Damage("truncate", path, rng.randrange(size))
            yield Damage("zero", path, rng.randrange(size) // BLOCK * BLOCK)
        used = max((region.end for region in regions(path, files[path]) if region.what != "slack"), default=0)
        yield Damage("truncate", path, max(used - 1, 0))
        yield Damage("zero", path, max(used - 1, 0) // BLOCK * BLOCK)
    for path in logs:
        yield Damage("swap", path, other=rng.choice([other for other in logs if other != path]))
    yield Damage("swap", Path("vhosts/1/manifest"), other=Path("vhosts/2/manifest"))
    yield Damage("swap", Path("vhosts/1/manifest"), other=Path(NODE_JSON))
