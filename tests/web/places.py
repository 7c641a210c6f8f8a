"""Every page of the program, from its own table of routes: an example of each, and what shows that it is there."""

import pathlib
import re

from browsing import segment

CODE = pathlib.Path(__file__).parents[2] / "crates" / "management" / "web" / "js"
ROUTE = re.compile(r'^  \["([^"]*)", \w+, "[^"]+"(?:, "(\w+)")?\],$', re.MULTILINE)
TAB = re.compile(r'^  \["(\w+)", "[^"]+", \w+\],$', re.MULTILINE)

# Names of what an example is about; a test that has other names replaces them.
NAMES = {
    "vhost": "/", "queue": "kept", "exchange": "kept", "policy": "kept", "user": "guest", "node": "NODE",
    "connection": "CONNECTION", "channel": "CHANNEL", "redrive": "REDRIVE",
}
# For each route what its parameters are, and the page's `data-test`.
SIGNS = {
    "": ([], "overview"),
    "connections": ([], "connections"),
    "connections/:name": (["connection"], "connection"),
    "channels": ([], "channels"),
    "channels/:name": (["channel"], "channel"),
    "exchanges": ([], "exchanges"),
    "exchanges/:vhost/:name": (["vhost", "exchange"], "exchange"),
    "queues": ([], "queues"),
    "queues/:vhost/:name/:tab?": (["vhost", "queue"], "queue"),
    "scheduled": ([], "scheduled"),
    "dead-letters": ([], "dead-letters"),
    "dead-letters/queues": ([], "dead-letter-queues"),
    "dead-letters/history": ([], "dead-letter-history"),
    "redrives": ([], "redrives"),
    "redrives/:id": (["redrive"], "redrive"),
    "nodes": ([], "nodes"),
    "nodes/:name": (["node"], "node"),
    "replicas": ([], "replicas"),
    "health": ([], "health"),
    "admin/users": ([], "page-users"),
    "admin/users/:name": (["user"], "page-user"),
    "admin/vhosts": ([], "page-vhosts"),
    "admin/vhosts/:name": (["vhost"], "page-vhost"),
    "admin/policies": ([], "page-policies"),
    "admin/policies/new": ([], "page-policy"),
    "admin/policies/:kind/:vhost/:name": (["policies", "vhost", "policy"], "page-policy"),
    "admin/limits": ([], "page-limits"),
    "admin/definitions": ([], "page-definitions"),
    "admin/parameters": ([], "page-parameters"),
    "admin/features": ([], "page-features"),
    "admin/logins": ([], "page-logins"),
}


def routes():
    """Each route of the program with the tag that it needs, or None."""
    found = [(pattern, tag or None) for pattern, tag in ROUTE.findall((CODE / "routes.js").read_text())]
    assert len(found) > 20, "routes.js looks different: mend ROUTE"
    missing = [pattern for pattern, _ in found if pattern not in SIGNS]
    assert not missing, f"pages without a line in SIGNS: {missing}"
    return found


def tabs():
    """The tabs of a queue."""
    found = TAB.findall((CODE / "pages" / "queue" / "index.js").read_text())
    assert len(found) > 3, "pages/queue/index.js looks different: mend TAB"
    return found


def example(pattern, **names):
    """An address that the route matches; of a queue without the tab."""
    parameters = iter(SIGNS[pattern][0])
    given = lambda: (lambda key: {**NAMES, **names}.get(key, key))(next(parameters))
    parts = [part for part in pattern.split("/") if not part.endswith("?")]
    return "/".join(segment(given()) if part.startswith(":") else part for part in parts)


def pages(**names):
    """The address of every page, each tab of a queue among them, with the page's `data-test`."""
    for pattern, _ in routes():
        at, sign = example(pattern, **names), SIGNS[pattern][1]
        if pattern.endswith(":tab?"):
            yield from ((f"{at}/{tab}", sign) for tab in tabs())
        else:
            yield at, sign


def named_pages(**names):
    """The same with a name for each, made of its route."""
    patterns = []
    for pattern, _ in routes():
        all_tabs = tabs() if pattern.endswith(":tab?") else [""]
        patterns += [re.sub(r"[/:?]+", "-", pattern.replace(":tab?", tab)).strip("-") for tab in all_tabs]
    return [(name, at, sign) for name, (at, sign) in zip(patterns, pages(**names), strict=True)]
