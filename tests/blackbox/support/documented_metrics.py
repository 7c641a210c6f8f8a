"""The families that docs/reference/metrics.md names: rows of tables with a name, a type, labels and a meaning."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"\| `([a-z_]+)` \| (\w+) \|([^|]*)\| (.+) \|$")


def documented():
    """By name: the type and the set of labels."""
    rows = (ROW.match(line) for line in DOCUMENT.read_text(encoding="utf-8").splitlines())
    return {row[1]: (row[2], set(re.findall(r"`(\w+)`", row[3]))) for row in rows if row}


OF_CLUSTERS = re.compile(r"\| (`leveret_[^|]+`) \| (counter|gauge) \| [^|]+ \|$")
NAME = re.compile(r"`(leveret_\w+)(?:\{([\w,]+)\})?`")


def documented_of_clusters():
    """The same for the families of a node of a cluster."""
    rows = (OF_CLUSTERS.match(line) for line in DOCUMENT.read_text(encoding="utf-8").splitlines())
    return {name: (row[2], set(filter(None, labels.split(","))))
            for row in rows if row for name, labels in NAME.findall(row[1])}
