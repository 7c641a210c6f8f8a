"""What a user must read from the broker, whichever library has decoded it."""

import re
from datetime import datetime, timedelta, timezone

HEADERS = {
    "text": "grün",
    "small": 42,
    "long": 2**40,
    "negative": -7,
    "yes": True,
    "no": False,
    "nothing": None,
    "when": datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
    "table": {"inner": {"deep": [1, "two", {"three": 3}]}},
    "list": [1, "two", False, None],
}
RECENT = timedelta(minutes=1)
WITHIN_S = 60.0  # the longest that anything may take that is waited for


def utc(moment):
    """A library's timestamp, which may leave out that it is UTC."""
    assert isinstance(moment, datetime), f"a timestamp is a datetime, not {moment!r}"
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def check_headers(headers):
    """The headers of HEADERS, as they were sent: values and types."""
    read = {**headers, "when": utc(headers["when"])}
    assert read == HEADERS, read
    for name, value in HEADERS.items():
        assert isinstance(read[name], type(value)), f"{name}: {read[name]!r}"


def check_death(death, reason, queue, exchange, routing_key, count=1):
    """One table of `x-death`."""
    told = {key: death[key] for key in ("count", "reason", "queue", "exchange", "routing-keys")}
    assert told == {"count": count, "reason": reason, "queue": queue, "exchange": exchange,
                    "routing-keys": [routing_key]}, death
    assert isinstance(death["count"], int), death
    assert abs(datetime.now(timezone.utc) - utc(death["time"])) <= RECENT, death


def check_first_death(headers, reason, queue, exchange, routing_key, original_expiration=None):
    """The headers of a message that has died once."""
    (death,) = headers["x-death"]
    check_death(death, reason, queue, exchange, routing_key)
    assert death.get("original-expiration") == original_expiration, death
    first = {key: headers[f"x-first-death-{key}"] for key in ("reason", "queue", "exchange")}
    assert first == {"reason": reason, "queue": queue, "exchange": exchange}, headers


def check_retries(headers, work, wait, count):
    """`x-death` of a message that goes round between a work queue, which rejects it, and a wait queue."""
    deaths = {(death["queue"], death["reason"]): death for death in headers["x-death"]}
    assert len(headers["x-death"]) == len(deaths) == 2, headers
    check_death(deaths[work, "rejected"], "rejected", work, "", work, count)
    check_death(deaths[wait, "expired"], "expired", wait, "", wait, count)


# A refusal is a code and how its text begins, or all of the text where the broker has no more to say.

def no_queue(name):
    return 404, re.escape(f"NOT_FOUND - no queue '{name}' in vhost '/'") + "$"


def inequivalent(name):
    return 406, re.escape(f"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '{name}' in vhost '/': ")


def invalid_expiration():
    return 406, re.escape("PRECONDITION_FAILED - invalid expiration 'abc': ")


def locked(name):
    return 405, re.escape(f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{name}' in vhost '/'. ")


def wrong_password():
    return 403, re.escape("ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
                          "For details see the broker logfile.") + "$"


def no_vhost():
    return 530, re.escape("NOT_ALLOWED - vhost nope not found") + "$"


def check_refusal(refusal, code, text):
    """The code and the text of an exception against one of the above."""
    wanted_code, wanted_text = refusal
    assert code == wanted_code and re.match(wanted_text, text), (code, text)
