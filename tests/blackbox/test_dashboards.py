"""docs/grafana: the dashboard and the alert rules ask for what the broker tells, with the labels that it has."""

import json
import re

import pytest

from documented_metrics import ROOT, documented

GRAFANA = ROOT / "docs" / "grafana"
NAME = re.compile(r"\b((?:rabbitmq|process)_\w+)(?:\{([^}]*)\})?")
LISTS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right) ?\(([^)]*)\)")
OF_PROMETHEUS = {"instance", "job", "le"}
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def strings(value, key):
    """Every text below `key`, wherever it stands."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key and isinstance(inner, str):
                yield inner
            yield from strings(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner, key)


def expressions(path):
    if path.suffix == ".json":
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        return [*strings(dashboard, "expr"), *strings(dashboard["templating"], "definition")]
    return re.findall(r"^ +expr: (.+)$", path.read_text(encoding="utf-8"), re.M)


@pytest.fixture(scope="module")
def families():
    """As the document tells them, which is held to what the broker tells."""
    return documented()


def faults(expression, families):
    """What no answer could be found for."""
    chosen, found = set(OF_PROMETHEUS), []
    lists = [label.strip() for labels in LISTS.findall(expression) for label in labels.split(",") if label.strip()]
    bare = LISTS.sub("", expression)
    for name, selectors in NAME.findall(bare):
        if name in ("rabbitmq_cluster", "rabbitmq_node"):
            continue  # labels
        plain = name.replace("rabbitmq_detailed_", "rabbitmq_", 1)
        family = families.get(plain) or families.get(SUFFIX.sub("", plain))
        if family is None:
            found.append(f"{name} is not told")
            continue
        chosen |= family[1]
        wanted = set(re.findall(r"(\w+) *[=!]~?", selectors))
        found += [f"{name} has no label {label}" for label in wanted - family[1] - OF_PROMETHEUS]
    return found + [f"nothing has the label {label}" for label in lists if label not in chosen]


@pytest.mark.parametrize("name", ["leveret-expiry-and-dead-lettering.json", "leveret-alerts.yml"])
def test_every_query_asks_for_what_is_told(families, name):
    asked = expressions(GRAFANA / name)
    assert len(asked) > 9
    assert {one: fault for one in asked if (fault := faults(one, families))} == {}


def test_a_query_for_something_else_is_found_out(families):
    assert faults("sum by (nobody) (rabbitmq_nothing)", families) == [
        "rabbitmq_nothing is not told", "nothing has the label nobody"]
    wrong = 'rate(rabbitmq_queue_messages_dropped_total{reasons="x"}[5m])'
    assert faults(wrong, families) == ["rabbitmq_queue_messages_dropped_total has no label reasons"]
