"""Policies that are set and cleared while queues live, over the HTTP API."""

import contextlib

import brokers
from definitions import Policy


@contextlib.contextmanager
def live_policy(api, client, definition, on="q", operator=False, name="live", **options):
    """A policy on the test's queues whose names begin with `on`, for as long as the block lasts.

    Gives a function that replaces its definition.
    """
    element = Policy(definition, on=on, name=name, **options).element(client.prefix)
    path = ("/api/operator-policies/" if operator else "/api/policies/") + brokers.quoted("/", element.pop("name"))

    def change(definition):
        api.do("PUT", path, element | {"definition": definition})

    change(definition)
    try:
        yield change
    finally:
        api.do("DELETE", path)


def until_ttl_policy_acts(ch, kind):
    """Wait until a policy with a message TTL of 200 ms or so has reached a queue made for this purpose."""
    witness = ch.queue(kind, name="q-witness")

    def acts():
        ch.publish(witness, "?")
        ch.pause(0.4)
        return ch.count(witness) == 0

    ch.poll(acts, what="the policy to act")


def until_dead_letter_policy_acts(ch, kind, dlq):
    """Wait until a policy that dead-letters to `dlq` has reached a queue made for this purpose; empties `dlq`."""
    witness = ch.queue(kind, name="q-witness")

    def acts():
        ch.publish(witness, "?")
        ch.reaches(witness, 1)
        ch.nack(ch.get_unacked(witness))
        ch.pause(0.05)
        return ch.drain(dlq)

    ch.poll(acts, what="the policy to act")
