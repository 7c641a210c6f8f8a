"""The management API: rates, and what was the case before."""

import time

import pytest

from brokers import quoted

WITHIN_S = 30.0  # RabbitMQ's samples are five seconds apart
FAST = "collect_statistics_interval = 200"


def busy_until(ch, work, look, wanted):
    """Repeat `work` until `look()` gives what is `wanted`; what it gave last."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        work()
        found = look()
        if wanted(found) or time.monotonic() > deadline:
            return found
        ch.pause(0.05)


def test_rates_show_what_goes_on(defined):
    ch = defined(settings=FAST)
    api = defined.client.broker.api
    x, q = ch.exchange(), ch.queue(durable=True)
    ch.bind(q, x, "k")
    ch.consume(q, auto_ack=True)
    queue, exchange = "/api/queues/" + quoted("/", q), "/api/exchanges/" + quoted("/", x)

    def rates():
        stats = [api.ask(queue).json.get("message_stats", {}), api.ask(exchange).json.get("message_stats", {}),
                 api.ask("/api/overview").json["message_stats"]]
        found = [("publish", 0), ("deliver_no_ack", 0), ("deliver_get", 0), ("publish_in", 1), ("publish_out", 1),
                 ("publish", 2), ("deliver_get", 2)]
        return [stats[at].get(name + "_details", {}).get("rate", 0) for name, at in found]

    found = busy_until(ch, lambda: ch.publish("k", "a", exchange=x), rates, lambda all: all and min(all) > 0)
    assert min(found) > 0, found
    eventual = busy_until(ch, lambda: None, rates, lambda all: max(all[:5]) == 0)
    assert max(eventual[:5]) == 0, "nothing happens any more"


def test_the_past_has_as_many_samples_as_were_asked_for(defined):
    ch = defined(settings=FAST)
    api = defined.client.broker.api
    q = ch.queue(durable=True)
    ch.publish(q, "a")
    query = "?msg_rates_age=60&msg_rates_incr=5&lengths_age=600&lengths_incr=60"

    def found():
        return api.ask("/api/queues/" + quoted("/", q) + query).json

    def has_samples(queue):
        samples = queue.get("message_stats", {}).get("publish_details", {}).get("samples", [])
        return bool(samples) and samples[0]["sample"] == 1

    queue = busy_until(ch, lambda: None, found, has_samples)
    published, lengths = queue["message_stats"]["publish_details"], queue["messages_details"]
    assert published.keys() == {"rate", "samples", "avg", "avg_rate"} == lengths.keys()
    assert (len(published["samples"]), len(lengths["samples"])) == (13, 11)
    moments = [sample["timestamp"] for sample in published["samples"]]
    assert all(moment % 5000 == 0 for moment in moments) and moments == sorted(moments, reverse=True)
    assert moments[0] - moments[-1] == 60_000
    assert published["samples"][-1] == {"sample": 0, "timestamp": moments[-1]}
    assert published["avg_rate"] == pytest.approx(1 / 60)
    values = [sample["sample"] for sample in published["samples"]]
    assert published["avg"] == pytest.approx(sum(values) / 13)


def test_invalid_span_of_time_is_ignored(api):
    for query in ("lengths_age=60", "lengths_age=x&lengths_incr=5", "lengths_age=60&lengths_incr=x"):
        answer = api.ask("/api/overview?" + query)
        assert answer.status == 200, query
        assert "samples" not in answer.json["queue_totals"].get("messages_details", {}), query


def test_statistics_can_be_left_out(api, client):
    q = client.channel().queue()
    queue = api.ask("/api/queues/" + quoted("/", q) + "?disable_stats=true").json
    assert "message_stats" not in queue and "messages" not in queue
    overview = api.ask("/api/overview?disable_stats=true").json
    assert overview["disable_stats"] is True
    assert not {"message_stats", "queue_totals", "churn_rates"} & overview.keys()
    [node] = api.ask("/api/nodes?disable_stats=true").json
    assert node.keys() == {"name", "type", "running", "being_drained"}
    assert all("messages" not in vhost for vhost in api.ask("/api/vhosts?disable_stats=true").json)


def test_churn_is_counted(defined):
    ch = defined()
    api = defined.client.broker.api
    names = ("connection_created", "connection_closed", "channel_created", "channel_closed", "queue_declared",
             "queue_created", "queue_deleted")

    def churn():
        churn = api.ask("/api/overview").json["churn_rates"]
        [node] = api.ask("/api/nodes").json
        return [churn[name] for name in names] + [node[name] for name in names]

    before = churn()
    connection = defined.client.connect()
    other = connection.channel()
    q = other.queue()
    other.declare(name=q)
    other.delete(q)
    connection.close()

    def has_grown(now):
        return all(new > old for new, old in zip(now, before))

    now = busy_until(ch, lambda: None, churn, has_grown)
    assert has_grown(now), (before, now)


def test_a_reset_forgets_samples(defined):
    ch = defined(settings=FAST)
    api = defined.client.broker.api
    node = api.ask("/api/overview").json["node"]
    q = ch.queue(durable=True)
    ch.publish(q, "a")
    assert api.ask("/api/reset/" + quoted(node), method="DELETE").status == 204
    assert api.ask("/api/reset", method="DELETE").status == 204
    assert api.ask("/api/reset/nope@nowhere", method="DELETE").status == 404
    messages = busy_until(ch, lambda: None, lambda: api.ask("/api/queues/" + quoted("/", q)).json.get("messages"),
                          lambda count: count == 1)
    assert messages == 1, "what is there is there"
