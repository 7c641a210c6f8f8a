"""The matrix as a page of the documentation."""

MARKS = {"ok": "yes", "failed": "**no**", "without": "–"}

HEAD = """# Clients

`cargo xtask interop` writes this page. It installs every client from its registry or from Debian, and runs the same
scenarios against a `leveret` process over TCP; [tests/interop](../../tests/interop/README.md) describes them. “–” means
that the client lacks the feature of the scenario; the reasons are below the tables.
"""


def page(runs):
    """The text of the page."""
    passed = sum(result.state == "ok" for run in runs for result in run.results.values())
    failed = sum(result.state == "failed" for run in runs for result in run.results.values())
    lines = [HEAD, f"{len(runs)} clients: {passed} scenarios passed, {failed} failed.\n"]
    for scenarios in dict.fromkeys(run.client.scenarios for run in runs):
        lines += table(scenarios, [run for run in runs if run.client.scenarios == scenarios])
    lines += listed("Measured", [(run.client.name, figure) for run in runs for figure in run.figures])
    lines += listed("Failed", told(runs, "failed"))
    lines += listed("Not offered by the client", told(runs, "without"))
    return "\n".join(lines)


def table(scenarios, runs):
    """The clients that go through the same scenarios."""
    head = ["client", "version", "language", "from", *scenarios, "passed"]
    rows = [head, ["---"] * len(head)]
    for run in runs:
        states = [run.results[name].state for name in scenarios]
        score = f"{states.count('ok')} of {len(states) - states.count('without')}"
        rows.append([run.client.name, run.version, run.client.language, run.client.source,
                     *(MARKS[state] for state in states), score])
    return ["| " + " | ".join(row) + " |" for row in rows] + [""]


def told(runs, state):
    """The reasons that clients gave for scenarios with this result."""
    results = [(run.client.name, name, result) for run in runs for name, result in run.results.items()]
    return [(f"{client}, {name}", result.text) for client, name, result in results if result.state == state]


def listed(title, pairs):
    """A section, if there is something to say."""
    return [f"## {title}", "", *(f"- {name}: {text}" for name, text in pairs), ""] if pairs else []
