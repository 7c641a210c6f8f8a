"""Definitions as RabbitMQ exports and imports them: what a test needs that AMQP cannot make (users, policies, vhosts).

Leveret reads them at start-up (`load_definitions`), RabbitMQ takes the same JSON over HTTP.
"""

import base64
import hashlib
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """A policy. `on`: an expression that must match behind the test's prefix; `pattern`: all of the expression."""

    definition: dict
    on: str = ""
    apply_to: str | None = "queues"
    priority: float = 0
    name: str = "policy"
    pattern: str | None = None
    vhost: str = "/"

    def element(self, prefix):
        pattern = self.pattern or "^" + re.escape(prefix) + self.on
        element = {"name": prefix + self.name, "pattern": pattern, "definition": self.definition}
        element["priority"] = self.priority
        return element | ({"apply-to": self.apply_to} if self.apply_to else {})


@dataclass(frozen=True)
class User:
    """A user. The permissions are regular expressions; None is no permission in the vhost at all.

    The password is the user's name. `plain_password` sends it as it is, else its salted hash is sent.
    """

    name: str
    configure: str | None = ".*"
    write: str = ".*"
    read: str = ".*"
    tags: tuple = ()
    plain_password: bool = False
    vhost: str = "/"

    def element(self, prefix):
        name = prefix + self.name
        if self.plain_password:
            secret = {"password": name}
        else:
            secret = {"password_hash": hash_of(name), "hashing_algorithm": "rabbit_password_hashing_sha256"}
        return {"name": name, "tags": list(self.tags), "limits": {}} | secret


def hash_of(password):
    """RabbitMQ's salted hash: four bytes of salt, then SHA-256 of salt and password, in base64."""
    salt = b"salt"
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def document(prefix, policies=(), operator_policies=(), users=(), vhosts=(), permissions=(), topic_permissions=(),
             queues=(), exchanges=(), bindings=()):
    """The definitions as a JSON object. Operator policies are runtime parameters, as in RabbitMQ."""
    granted = [user for user in users if user.configure is not None]
    return {
        "users": [user.element(prefix) for user in users],
        "vhosts": [{"name": vhost} for vhost in vhosts],
        "permissions": [
            {"user": prefix + user.name, "vhost": user.vhost, "configure": user.configure, "write": user.write,
             "read": user.read} for user in granted
        ] + list(permissions),
        "topic_permissions": list(topic_permissions),
        "parameters": [
            {"vhost": "/", "component": "operator_policy", "name": element.pop("name"), "value": element}
            for element in (policy.element(prefix) for policy in operator_policies)
        ],
        "policies": [{"vhost": policy.vhost} | policy.element(prefix) for policy in policies],
        "queues": list(queues),
        "exchanges": list(exchanges),
        "bindings": list(bindings),
    }


def with_guest(definitions):
    """The definitions, and what a broker that starts from them needs besides: the vhost `/` and the user guest."""
    guest = {
        "name": "guest", "password_hash": hash_of("guest"), "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": ["administrator"], "limits": {},
    }
    vhosts = [{"name": "/"}, *definitions["vhosts"]]
    grants = [{"user": "guest", "vhost": v["name"], "configure": ".*", "write": ".*", "read": ".*"} for v in vhosts]
    return definitions | {
        "users": [guest, *definitions["users"]],
        "vhosts": vhosts,
        "permissions": grants + definitions["permissions"],
    }
