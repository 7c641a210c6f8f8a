"""The fields of the management API: each has its meaning in the documentation, in the tables of fields."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "http-api-endpoints.md"
ROW = re.compile(r"\| `(\w+)` \| (.*) \|$")
# Objects whose keys are chosen by users, or are values: reasons, causes, parts.
OPEN = {
    "arguments", "client_properties", "effective_policy_definition", "dead_lettered_by_reason", "dropped_by_reason",
    "from_count_by_reason", "count_by_reason", "rate_by_reason", "source", "garbage_collection", "ra_open_file_metrics", "vm_memory_high_watermark_setting", "exchange_types",
    "auth_mechanisms", "sample_retention_policies", "cluster_tags", "node_tags", "metrics_gc_queue_length", "to",
}


def meanings():
    rows = PAGE.read_text(encoding="utf-8").split("\n## Fields\n")[1].splitlines()
    return dict(row.groups() for row in map(ROW.match, rows) if row)


def fields(value):
    """The names of all fields in an answer."""
    if isinstance(value, list):
        return {name for one in value for name in fields(one)}
    if not isinstance(value, dict):
        return set()
    below = {name for key, one in value.items() if key not in OPEN and not key.endswith("_details") for name in fields(one)}
    return below | {key.removesuffix("_details") if key.removesuffix("_details") in value else key for key in value}


def test_fields_of_the_reference_have_a_meaning():
    text = PAGE.read_text(encoding="utf-8")
    lists = re.findall(r"^Fields: (.*?)\n\n", text, flags=re.MULTILINE | re.DOTALL)
    named = {name for one in lists if not one.startswith("as of")
             for name in re.findall(r"`([a-z_0-9]+)`", re.sub(r"\([^()]*\)", "", one))}
    assert len(named) > 200
    known = meanings()
    assert {name for name in named if len(known.get(name, "")) < 3} == set()


@pytest.mark.parametrize("path", [
    "overview", "nodes", "queues", "connections", "channels", "exchanges", "consumers", "dead-letter-queues", "redrives",
    "health/findings", "scheduled", "scheduled-counts", "dead-letter-map",
])
def test_fields_of_an_answer_have_a_meaning(under, ch, path):
    if under.name == "rabbitmq":
        pytest.skip("Leveret's documentation")
    api = under.shared().api
    dead = ch.queue(name="dead")
    queues = [ch.queue(kind, dead_letter_exchange="", dead_letter_routing_key=dead) for kind in ("classic", "quorum")]
    queues.append(ch.queue(exclusive=True, dead_letter_exchange="nobody-declared-it"))
    ch.queue(name="retries", delayed_retry_type="all", delayed_retry_schedule="1s,5s")
    for queue in queues:
        ch.publish(queue, "a")
    ch.publish(queues[0], "later", headers={"x-opt-delivery-delay": 3_600_000, "x-schedule-id": "s"})
    ch.consume(queues[0])
    api.do("POST", f"/api/queues/%2F/{dead}/redrive", {"to": "origin"})
    found = fields(api.ask(f"/api/{path}").json)
    assert len(found) > 5 and found - meanings().keys() == set()
