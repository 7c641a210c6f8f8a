#!/usr/bin/env python3
"""Compare a broker's metrics with those recorded of RabbitMQ: python support/compare_metrics.py http://127.0.0.1:15672

Lists what is equal, what has another type or other labels, and what is missing, with the reason. With --record, writes
the record instead: of a RabbitMQ with connections, channels, consumers, and messages of both queue types.
"""

import argparse
import pathlib

from metrics import Metrics
from metrics_decisions import OTHER_LABELS, plain, reason_for_missing

RECORD = pathlib.Path(__file__).resolve().parents[1] / "recorded" / "metrics_of_rabbitmq.txt"

GROUPS = (
    "connection_churn_metrics", "node_coarse_metrics", "node_metrics", "node_persister_metrics", "ra_metrics",
    "auth_attempt_metrics", "auth_attempt_detailed_metrics", "queue_coarse_metrics", "queue_metrics",
    "connection_coarse_metrics", "connection_metrics", "channel_metrics", "channel_process_metrics",
    "channel_exchange_metrics", "channel_queue_metrics", "channel_queue_exchange_metrics", "queue_delivery_metrics",
    "queue_exchange_metrics", "exchange_metrics", "stream_consumer_metrics", "vhost_status", "exchange_names",
    "exchange_bindings",
)
ENDPOINTS = {
    "aggregated": "/metrics",
    "per-object": "/metrics/per-object",
    "detailed": "/metrics/detailed?" + "&".join("family=" + group for group in GROUPS),
    "memory-breakdown": "/metrics/memory-breakdown",
}


def shape(url, endpoint):
    """Of every family its type, and the names of its labels if it has samples."""
    families = Metrics.fetch(url + ENDPOINTS[endpoint]).families
    return {name: [family.type, family.labels] for name, family in sorted(families.items())}


def recorded(endpoint):
    """The same of RabbitMQ."""
    families, here = {}, None
    for line in RECORD.read_text().splitlines():
        if line.endswith(":"):
            here = line[:-1]
        elif here == endpoint:
            name, type, *labels = line.split(" ")
            families[name] = [type, None if labels == ["?"] else labels]
    return families


def verdict(name, expected, found):
    """What a family is: "equal", "different: ..." or "missing: ..."."""
    if found is None:
        return f"missing: {reason_for_missing(name) or 'nobody knows why'}"
    (type, labels), (found_type, found_labels) = expected, found
    if type != found_type:
        return f"different: {found_type} instead of {type}"
    if labels is None or found_labels is None or labels == found_labels:
        return "equal"
    left_out, added = set(labels) - set(found_labels), set(found_labels) - set(labels)
    decided = OTHER_LABELS.get(plain(name))
    if decided and decided[:2] == (left_out, added):
        return f"different: without {sorted(left_out)}, with {sorted(added)}: {decided[2]}"
    return f"different: without {sorted(left_out)}, with {sorted(added)}: nobody knows why"


def verdicts(url, endpoint):
    """What every family of RabbitMQ's endpoint is."""
    found = shape(url, endpoint)
    expected = recorded(endpoint)
    return {name: verdict(name, one, found.get(name)) for name, one in expected.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="of the endpoint, without /metrics")
    parser.add_argument("--record", action="store_true", help="record it instead of comparing it")
    options = parser.parse_args()
    if options.record:
        lines = []
        for endpoint in ENDPOINTS:
            lines.append(f"{endpoint}:")
            for name, (type, labels) in shape(options.url, endpoint).items():
                lines.append(" ".join([name, type, *(["?"] if labels is None else labels)]))
        RECORD.write_text("\n".join(lines) + "\n")
        return
    for endpoint in ENDPOINTS:
        found = verdicts(options.url, endpoint)
        counts = {word: sum(one.startswith(word) for one in found.values()) for word in ("equal", "different", "missing")}
        print(f"{endpoint}: {counts}")
        for name, one in found.items():
            if one != "equal":
                print(f"  {name}: {one}")


if __name__ == "__main__":
    main()
