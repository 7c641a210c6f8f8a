"""Odd values of every field of every body, one at a time, and what there is afterwards.

A family is an object that can be made: the method, the path as RabbitMQ's documentation writes it, the path with `{name}`
for a new name, a body that is right, and the path that shows what was made. Each field of the body, and each of
`more`, gets each of the odd values.
"""

import urllib.parse
from dataclasses import dataclass

V = "compared-odd"
USER = "compared-odd-user"
MISSING = object()

# Every type of JSON, empty and not, numbers and words as text, and more than a name may have.
VALUES = {
    "missing": MISSING, "null": None, "empty": "", "text": "a b", "number as text": "1", "true as text": "true", "long": "x" * 300,
    "zero": 0, "one": 1, "negative": -1, "fraction": 1.5, "large": 2**40, "false": False, "true": True,
    "empty list": [], "list": ["a"], "nested list": [["a"]], "empty object": {}, "object": {"a": "b"},
}


@dataclass
class Family:
    """Objects that are made with a body."""

    method: str
    what: str
    path: str
    body: dict
    shown: str = ""
    removed: str = ""
    more: tuple = ()


MESSAGE = {"properties": {}, "routing_key": "q", "payload": "one", "payload_encoding": "string"}
POLICY = {"pattern": "^nothing$", "definition": {"max-length": 10}, "priority": 1, "apply-to": "queues"}
TAKEN = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 5}

FAMILIES = [
    Family("PUT", "vhosts/name", "vhosts/{name}", {"description": "d", "tags": "one", "default_queue_type": "classic"},
           "vhosts/{name}", "vhosts/{name}", ("tracing", "protected_from_deletion", "unknown")),
    Family("PUT", "users/name", "users/{name}", {"password": "secret", "tags": "monitoring"},
           "users/{name}", "users/{name}", ("password_hash", "hashing_algorithm", "administrator", "unknown")),
    Family("PUT", "permissions/vhost/user", f"permissions/{V}/{USER}", {"configure": ".*", "write": ".*", "read": ".*"},
           f"permissions/{V}/{USER}"),
    Family("PUT", "topic-permissions/vhost/user", f"topic-permissions/{V}/{USER}",
           {"exchange": "amq.topic", "write": "^a", "read": ".*"}, f"topic-permissions/{V}/{USER}",
           f"topic-permissions/{V}/{USER}"),
    Family("PUT", "vhost-limits/vhost/name", f"vhost-limits/{V}/max-queues", {"value": 9999}, f"vhost-limits/{V}",
           f"vhost-limits/{V}/max-queues"),
    Family("PUT", "user-limits/user/name", f"user-limits/{USER}/max-channels", {"value": 9999}, f"user-limits/{USER}",
           f"user-limits/{USER}/max-channels"),
    Family("PUT", "exchanges/vhost/name", f"exchanges/{V}/{{name}}",
           {"type": "topic", "durable": True, "auto_delete": False, "internal": False, "arguments": {}},
           f"exchanges/{V}/{{name}}", more=("unknown",)),
    Family("PUT", "queues/vhost/name", f"queues/{V}/{{name}}",
           {"durable": True, "auto_delete": False, "arguments": {}}, f"queues/{V}/{{name}}", more=("node", "unknown")),
    Family("POST", "bindings/vhost/e/exchange/q/queue", f"bindings/{V}/e/amq.topic/q/q",
           {"routing_key": "key", "arguments": {}}, f"bindings/{V}/e/amq.topic/q/q", more=("unknown",)),
    Family("PUT", "policies/vhost/name", f"policies/{V}/{{name}}", POLICY, f"policies/{V}/{{name}}",
           f"policies/{V}/{{name}}", ("unknown",)),
    Family("PUT", "operator-policies/vhost/name", f"operator-policies/{V}/{{name}}", POLICY,
           f"operator-policies/{V}/{{name}}", f"operator-policies/{V}/{{name}}"),
    Family("PUT", "global-parameters/name", "global-parameters/{name}", {"value": 1}, "global-parameters/{name}",
           "global-parameters/{name}"),
    Family("PUT", "cluster-name", "cluster-name", {"name": "compared"}, "cluster-name"),
    Family("POST", "exchanges/vhost/name/publish", f"exchanges/{V}/amq.default/publish", MESSAGE),
    Family("POST", "queues/vhost/name/get", f"queues/{V}/held/get", TAKEN),
    Family("POST", "queues/vhost/name/actions", f"queues/{V}/q/actions", {"action": "sync"}),
    Family("POST", "users/bulk-delete", "users/bulk-delete", {"users": ["compared-nobody"]}),
]

# What must be there before.
PREPARED = [
    ("PUT", f"vhosts/{V}", {}),
    ("PUT", f"users/{USER}", {"password": "secret", "tags": ""}),
    ("PUT", f"permissions/{V}/guest", {"configure": ".*", "write": ".*", "read": ".*"}),
    ("PUT", f"queues/{V}/q", {"durable": True}),
    ("PUT", f"queues/{V}/held", {"durable": True}),
    ("POST", f"exchanges/{V}/amq.default/publish", MESSAGE | {"routing_key": "held"}),
]

# What is removed at the end.
REMOVED = [f"vhosts/{V}", f"users/{USER}"]


@dataclass
class Question:
    """A request with an odd value."""

    method: str
    what: str
    field: str
    value: str
    path: str
    body: dict
    shown: str
    removed_path: str

    def removed(self, shown):
        """The paths of what was made."""
        if self.what.startswith("bindings/"):
            keys = [one["properties_key"] for one in shown if one.get("source")] if isinstance(shown, list) else []
            return [f"{self.path}/{urllib.parse.quote(key, safe='')}" for key in keys]
        return [self.removed_path] if self.removed_path else []


def questions():
    """All of them, in order."""
    for family in FAMILIES:
        for name in (*family.body, *family.more):
            for value_name, value in VALUES.items():
                body = {key: one for key, one in family.body.items() if key != name}
                if value is not MISSING:
                    body[name] = value
                made = f"compared-{name}-{value_name}".replace(" ", "-").replace("_", "-")
                paths = [path.replace("{name}", made) for path in (family.path, family.shown, family.removed)]
                yield Question(family.method, family.what, name, value_name, paths[0], body, *paths[1:])
