"""What a run has measured: printed as it comes, held against bounds, and written as a table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One number of one broker, with the bound that Leveret is held to."""

    scenario: str
    what: str
    text: str
    bound: str
    holds: bool


def number(value):
    """With as many digits as say something."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"


class Figures:
    """The figures of one broker.

    `slack` is the factor by which bounds of time are wider than the constants of the scenarios.
    """

    def __init__(self, subject, slack=1):
        self.subject, self.slack, self.all, self.scenario = subject, slack, [], ""

    def begin(self, scenario):
        self.scenario = scenario
        print(f"{self.subject.name}: {scenario}", flush=True)

    def add(self, what, value, unit="", at_most=None, at_least=None):
        """Of a broker that is not ours nothing is asked. None is what cannot be known of this broker."""
        if at_most is not None and unit in ("s", "ms", "MB/s"):
            at_most *= self.slack
        if at_least is not None and unit == "/s":
            at_least /= self.slack
        holds = value is None or not (at_most is not None and value > at_most
                                      or at_least is not None and value < at_least)
        bound = f"≤ {number(at_most)}" if at_most is not None else ""
        bound = f"≥ {number(at_least)}" if at_least is not None else bound
        text = "-" if value is None else f"{number(value)} {unit}".strip()
        holds = holds or not self.subject.is_ours
        self.all.append(Figure(self.scenario, what, text, f"{bound} {unit}".strip() if bound else "", holds))
        print(f"    {what}: {text}{'' if holds else f'  FAULT: {bound}'}", flush=True)

    def waits(self, whom, took_s, p99_max_ms, longest_max_ms):
        """The percentiles of waiting times."""
        took_ms = sorted(1000 * took for took in took_s)
        self.add(f"{whom}: median", took_ms[len(took_ms) // 2], "ms")
        self.add(f"{whom}: 99 %", took_ms[int(len(took_ms) * 0.99)], "ms", at_most=p99_max_ms)
        self.add(f"{whom}: longest", took_ms[-1], "ms", at_most=longest_max_ms)

    def shares(self, who, counts, seconds, unit, spread_max=None):
        """The evenness of shares: the largest against the smallest."""
        counts = sorted(counts)
        least, median, most = counts[0], counts[len(counts) // 2], counts[-1]
        self.add(f"{who}, all together", sum(counts) / seconds, unit)
        self.add(f"{who}, least of one", least / seconds, unit)
        self.add(f"{who}, median", median / seconds, unit)
        self.add(f"{who}, most of one", most / seconds, unit)
        self.add(f"{who}, most against least", most / max(least, 1), "times", spread_max and spread_max * self.slack)

    @property
    def faults(self):
        return [figure for figure in self.all if not figure.holds]


def table(all_figures):
    """Markdown: scenarios one below the other, brokers side by side."""
    lines = []
    names = [figures.subject.name for figures in all_figures]
    rows = {}
    for figures in all_figures:
        for figure in figures.all:
            rows.setdefault(figure.scenario, {}).setdefault(figure.what, {})[figures.subject.name] = figure
    for scenario, whats in rows.items():
        lines += ["", f"## {scenario}", "", f"| | {' | '.join(names)} | Bound of Leveret |",
                  f"| --- |{' ---: |' * len(names)} ---: |"]
        for what, by_name in whats.items():
            texts = [by_name[name].text if name in by_name else "-" for name in names]
            bounds = [figure.bound for figure in by_name.values() if figure.bound]
            lines.append(f"| {what} | {' | '.join(texts)} | {bounds[0] if bounds else ''} |")
    return "\n".join(lines) + "\n"
