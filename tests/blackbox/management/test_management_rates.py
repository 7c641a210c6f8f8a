"""The management API: rates, and what was the case before."""

import time

import pytest

from brokers import quoted
from patience import Patience

FAST = "collect_statistics_interval = 200"


def busy_until(ch, work, look, wanted):
    """Repeat `work` until `look()` gives what is `wanted`; what it gave last."""
    patience = Patience()
    while True:
        work()
        found = look()
        if wanted(found) or patience.is_over():
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


def history(api, queue, age, step):
    """The answer about a queue with samples of a range of time."""
    query = f"?msg_rates_age={age}&msg_rates_incr={step}&lengths_age={age}&lengths_incr={step}"
    return api.ask("/api/queues/" + quoted("/", queue) + query).json


def samples_of(queue, name):
    return queue.get("message_stats", {}).get(name, {}).get("samples", [])


@pytest.mark.better
def test_history_has_samples_only_where_some_were_taken(defined, by_broker):
    began_ms = time.time() * 1000
    ch = defined(settings=FAST)
    api = defined.client.broker.api
    q = ch.queue(durable=True)
    ch.publish(q, "a")

    def has_samples(queue):
        values = [sample["sample"] for sample in samples_of(queue, "publish_details")]
        return values[:2] == [1, 1]

    queue = busy_until(ch, lambda: None, lambda: history(api, q, 60, 1), has_samples)
    published, lengths = queue["message_stats"]["publish_details"], queue["messages_details"]
    assert published.keys() == {"rate", "samples", "avg", "avg_rate"} == lengths.keys()
    samples = published["samples"]
    moments, values = [one["timestamp"] for one in samples], [one["sample"] for one in samples]
    assert moments == sorted(moments, reverse=True) and values == sorted(values, reverse=True)
    assert values[:2] == [1, 1]
    if by_broker(rabbitmq=True, leveret=False):
        assert len(moments) == 61 and all(moment % 1000 == 0 for moment in moments)
        return
    assert 2 <= len(moments) <= 61 and moments[-1] > began_ms - 1000, "nothing from before the start"
    elapsed_s = (moments[0] - moments[-1]) / 1000
    assert published["avg_rate"] == pytest.approx((values[0] - values[-1]) / elapsed_s)


def test_history_begins_anew_with_the_broker(defined, under):
    if under.name != "leveret":
        pytest.skip("needs a broker of its own")
    ch = defined(settings=FAST)
    broker = defined.client.broker
    q = ch.queue(durable=True)
    ch.publish(q, "a", delivery_mode=2)
    broker.stop_and_start_again()
    began_ms = time.time() * 1000
    patience = Patience()
    while len(samples := history(broker.api, q, 3600, 60).get("messages_details", {}).get("samples", [])) < 1:
        assert not patience.is_over()
        time.sleep(0.05)
    assert all(one["sample"] == 1 for one in samples), "the message was there all the time"
    assert all(one["timestamp"] > began_ms - 10_000 for one in samples) and len(samples) <= 2


def test_answers_tell_the_time_of_the_broker(defined, under):
    if under.name != "leveret":
        pytest.skip("RabbitMQ tells it in seconds")
    defined()
    for path in ("/api/overview", "/api/queues/%2F/none"):
        answer = defined.client.broker.api.ask(path)
        assert abs(int(answer.headers["leveret-time-ms"]) - time.time() * 1000) < 60_000, path


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
    for node in api.ask("/api/nodes?disable_stats=true").json:
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
