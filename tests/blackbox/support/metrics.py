"""Metrics in Prometheus' text format, read with Prometheus' own parser, and the families that they are."""

import urllib.request
from collections import Counter
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from patience import PATIENCE_S

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


@dataclass
class Family:
    """A family of a scrape: its type, its samples, and the names of all their labels."""

    name: str
    type: str
    samples: list = field(default_factory=list)

    @property
    def labels(self):
        """The names of its labels in order; None without a sample, which says nothing."""
        names = {name for sample in self.samples for name in sample.labels}
        return sorted(names) if self.samples else None


class Metrics:
    """What an endpoint tells at one moment."""

    def __init__(self, text):
        self.text = text
        self.types = [line.split(" ")[2:4] for line in text.splitlines() if line.startswith("# TYPE ")]
        self.families = {name: Family(name, type) for name, type in self.types}
        for parsed in text_string_to_metric_families(text):
            for sample in parsed.samples:
                self._family_of(sample.name).samples.append(sample)

    @classmethod
    def fetch(cls, url):
        """The metrics at `url`."""
        request = urllib.request.Request(url, headers={"authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return cls(answer.read().decode())

    def _family_of(self, sample):
        """The parser removes suffixes; the scraped names have them."""
        for name in (sample, *(sample.removesuffix(end) for ends in SUFFIXES.values() for end in ends)):
            if name in self.families:
                return self.families[name]
        raise AssertionError(f"{sample} has no type")

    def faults(self):
        """What the parser lets pass though it is wrong."""
        told = Counter(name for name, _ in self.types)
        faults = [f"{name} is told {count} times" for name, count in told.items() if count > 1]
        helped = {line.split(" ")[2] for line in self.text.splitlines() if line.startswith("# HELP ")}
        faults += [f"{name} has no help" for name in self.families if name not in helped]
        for family in self.families.values():
            samples = Counter((one.name, *sorted(one.labels.items())) for one in family.samples)
            faults += [f"{sample} stands there {count} times" for sample, count in samples.items() if count > 1]
        return faults

    def value(self, name, **labels):
        """The sum of all samples with this name that have these labels; None if there are none."""
        family = self._family_of(name)
        chosen = [one.value for one in family.samples if one.name == name and one.labels.items() >= labels.items()]
        return sum(chosen) if chosen else None
