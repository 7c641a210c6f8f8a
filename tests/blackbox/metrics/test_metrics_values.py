"""Metrics: after known traffic every count has just this value."""

import time

import pytest

from definitions import Policy
from metrics import Metrics
from patience import becomes


@pytest.fixture
def fetch(under, metrics_url):
    """`fetch("/metrics")`: what that tells now."""
    under.shared()
    return lambda path: Metrics.fetch(metrics_url + path)


@pytest.fixture
def own(under):
    """A test of families that RabbitMQ does not have."""
    if under.name == "rabbitmq":
        pytest.skip("RabbitMQ does not tell this")


def eventually(ch, get, expected):
    """Wait until `get` gives what is expected, while the connection of `ch` is served."""
    becomes(get, expected, ch.pause)


def of_queue(fetch, queue, *families):
    """The values of some families of a queue, by name, with a series per queue."""
    metrics = fetch("/metrics/per-object")
    return {name: metrics.value("rabbitmq_queue_" + name, queue=queue) for name in families}


def used(ch, kind):
    """A queue with 5 messages published, 4 got or delivered, 3 acknowledged, and one ready again."""
    q = ch.queue(kind)
    ch.publish(q, *"abcde")
    assert ch.get(q).body == "a"  # needs no acknowledgement
    ch.ack(ch.get_unacked(q))
    consumer = ch.consume(q, prefetch=2)
    b, c = consumer.next(), consumer.next()
    ch.ack(b)
    ch.ack(c)
    ch.nack(consumer.next(), requeue=True)  # and comes again
    assert consumer.next().redelivered
    ch.sync()
    return q


def test_deliveries_are_counted_by_queue(ch, kind, fetch):
    q = used(ch, kind)
    expected = {
        "get_total": 1, "get_ack_total": 1, "messages_delivered_ack_total": 4, "messages_delivered_total": 0,
        "messages_redelivered_total": 1, "messages_acked_total": 3, "get_empty_total": 0,
        "messages_published_total": 5, "messages": 1, "messages_unacked": 1, "messages_ready": 0, "consumers": 1,
    }
    eventually(ch, lambda: of_queue(fetch, q, *expected), expected)


def test_deliveries_without_acknowledgement_are_counted_apart(ch, kind, fetch):
    q = ch.queue(kind)
    assert ch.get(q) is None
    consumer = ch.consume(q, auto_ack=True)
    ch.publish(q, "a", "b")
    assert consumer.next_bodies(2) == ["a", "b"]
    expected = {
        "messages_delivered_total": 2, "messages_delivered_ack_total": 0, "messages_acked_total": 0,
        "get_empty_total": 1, "messages_published_total": 2, "messages": 0,
    }
    eventually(ch, lambda: of_queue(fetch, q, *expected), expected)


def test_bytes_and_the_timestamp_of_the_head(ch, fetch):
    q = ch.queue()
    ch.publish(q, "x" * 50, timestamp=1_700_000_000)
    ch.publish(q, "x" * 30, timestamp=1_700_000_099)
    expected = {"messages_bytes": 80, "messages_ready_bytes": 80, "messages_unacked_bytes": 0}
    eventually(ch, lambda: of_queue(fetch, q, *expected), expected)
    head = {"head_message_timestamp": 1_700_000_000}
    eventually(ch, lambda: of_queue(fetch, q, *head), head)
    ch.get_unacked(q)
    expected = {"messages_bytes": 80, "messages_ready_bytes": 30, "messages_unacked_bytes": 50}
    eventually(ch, lambda: of_queue(fetch, q, *expected), expected)


GLOBAL = (
    "messages_received_total", "messages_received_confirm_total", "messages_routed_total", "messages_confirmed_total",
    "messages_unroutable_dropped_total", "messages_unroutable_returned_total",
)


def test_global_counters_count_publishes(ch, fetch, under):
    """Sums over all clients: on a RabbitMQ with other clients they grow by at least this much."""
    told = lambda: {name: fetch("/metrics").value("rabbitmq_global_" + name, protocol="amqp091") for name in GLOBAL}
    before = told()
    x = ch.exchange("fanout")
    for queue in (ch.queue(), ch.queue()):
        ch.bind(queue, x)
    ch.publish("", "a", "b", exchange=x)
    ch.publish("nowhere", "c")
    ch.publish("nowhere", "d", mandatory=True)
    plain = ch.connection.channel()
    plain.publish("", "e", exchange=x)
    plain.sync()
    expected = dict(zip(GLOBAL, (5, 4, 6, 4, 1, 1)))
    grown = {name: value - before[name] for name, value in told().items()}
    if under.name == "leveret":
        assert grown == expected
    assert all(grown[name] >= expected[name] for name in GLOBAL), grown


def test_deliveries_are_counted_by_type_of_queue_and_outlive_it(ch, kind, fetch, under):
    names = {
        "messages_delivered_total": 6, "messages_delivered_consume_manual_ack_total": 4,
        "messages_delivered_consume_auto_ack_total": 0, "messages_delivered_get_manual_ack_total": 1,
        "messages_delivered_get_auto_ack_total": 1, "messages_redelivered_total": 1, "messages_acknowledged_total": 3,
    }
    labels = {"protocol": "amqp091", "queue_type": f"rabbit_{kind}_queue"}
    told = lambda: {name: fetch("/metrics").value("rabbitmq_global_" + name, **labels) for name in names}
    before = told()
    ch.delete(used(ch, kind))
    grown = {name: value - before[name] for name, value in told().items()}
    if under.name == "leveret":
        assert grown == names
    assert all(grown[name] >= names[name] for name in names), grown


def test_sizes_of_messages_are_counted_in_buckets(ch, fetch, under):
    told = lambda: [fetch("/metrics").value("rabbitmq_message_size_bytes_bucket", le=bound)
                    for bound in ("100", "1000", "10000", "+Inf")]
    before = told()
    q = ch.queue()
    for size in (100, 101, 1000, 5000, 200_000):
        ch.publish(q, "x" * size)
    grown = [now - then for now, then in zip(told(), before)]
    assert grown == [1, 3, 4, 5] or under.name == "rabbitmq" and grown >= [1, 3, 4, 5]


def die_of(reason, ch, kind, **dead_letter):
    """A queue in which one message has died of it."""
    if reason == "expired":
        q = ch.queue(kind, message_ttl=20, **dead_letter)
        ch.publish(q, "m")
        ch.reaches(q, 0)
    elif reason == "rejected":
        q = ch.queue(kind, **dead_letter)
        ch.kill(q)
        ch.sync()
    elif reason == "maxlen":
        q = ch.queue(kind, max_length=1, **dead_letter)
        ch.publish(q, "m", "n")
        ch.reaches(q, 1)
    else:
        q = ch.queue("quorum", delivery_limit=0, **dead_letter)
        ch.publish(q, "m")
        ch.reject(ch.get_unacked(q), requeue=True)
        ch.sync()
        ch.reaches(q, 0)
    return q


REASONS = ("expired", "rejected", "maxlen", "delivery_limit")


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("strategy", ["disabled", "at_most_once"])
def test_deaths_are_counted_by_reason_type_and_strategy(ch, kind, reason, strategy, fetch, under, dlq):
    type = "quorum" if reason == "delivery_limit" else kind
    labels = {"queue_type": f"rabbit_{type}_queue", "dead_letter_strategy": strategy}
    told = lambda: fetch("/metrics").value(f"rabbitmq_global_messages_dead_lettered_{reason}_total", **labels)
    before = told()
    routed = {"dead_letter_exchange": "", "dead_letter_routing_key": dlq} if strategy == "at_most_once" else {}
    die_of(reason, ch, kind, **routed)
    if routed:
        ch.reaches(dlq, 1)
    eventually(ch, lambda: told() - before >= 1, True)
    assert told() - before == 1 or under.name == "rabbitmq"


@pytest.mark.parametrize("dead_letter, strategy", [
    ({}, "disabled"),
    ({"dead_letter_exchange": "nowhere"}, "disabled"),
    ({"dead_letter_exchange": ""}, "at_most_once"),
])
def test_deaths_of_refused_messages_and_into_missing_exchanges_are_counted(ch, dead_letter, strategy, fetch):
    labels = {"queue_type": "rabbit_classic_queue", "dead_letter_strategy": strategy}
    told = lambda reason: fetch("/metrics").value(f"rabbitmq_global_messages_dead_lettered_{reason}_total", **labels)
    rejected, refused = told("rejected"), told("maxlen")
    die_of("rejected", ch, "classic", **dead_letter)
    q = ch.queue("classic", max_length=1, overflow="reject-publish-dlx", **dead_letter)
    assert ch.publish(q, "a", "b", "c") == "aNN"
    eventually(ch, lambda: (told("rejected") - rejected >= 1, told("maxlen") - refused >= 2), (True, True))


def test_deaths_that_a_queue_keeps_are_counted_once(ch, fetch):
    labels = {"queue_type": "rabbit_quorum_queue", "dead_letter_strategy": "at_least_once"}
    told = lambda what: fetch("/metrics").value(f"rabbitmq_global_messages_dead_lettered_{what}_total", **labels)
    rejected, confirmed = told("rejected"), told("confirmed")
    exchange = ch.exchange("fanout")
    q = ch.queue("quorum", dead_letter_exchange=exchange, dead_letter_strategy="at-least-once",
                 overflow="reject-publish")
    ch.publish(q, "m")
    ch.reject(ch.get_unacked(q), requeue=False)
    eventually(ch, lambda: (told("rejected") - rejected, told("confirmed") - confirmed), (1, 0))
    target = ch.queue("classic")
    ch.bind(target, exchange)
    ch.reaches(target, 1)
    eventually(ch, lambda: (told("rejected") - rejected, told("confirmed") - confirmed), (1, 1))


@pytest.mark.parametrize("reason", REASONS)
def test_deaths_are_counted_by_queue(ch, kind, reason, fetch, own, dlq):
    expired = 1 if reason == "expired" else 0
    q = die_of(reason, ch, kind, dead_letter_exchange="", dead_letter_routing_key=dlq)
    told = fetch("/metrics/per-object")
    assert told.value("rabbitmq_queue_messages_dead_lettered_total", queue=q, reason=reason) == 1
    assert told.value("rabbitmq_queue_messages_dead_lettered_total", queue=q) == 1
    assert told.value("rabbitmq_queue_messages_expired_total", queue=q) == expired
    assert told.value("rabbitmq_queue_messages_dropped_total", queue=q) is None
    dropped = lambda: fetch("/metrics").value(
        "rabbitmq_queue_messages_dropped_total", vhost="/", reason=reason, cause="no_dead_letter_exchange")
    before = dropped()
    q = die_of(reason, ch, kind)
    told = fetch("/metrics/per-object")
    assert told.value("rabbitmq_queue_messages_dropped_total", queue=q, reason=reason) == 1
    assert told.value("rabbitmq_queue_messages_expired_total", queue=q) == expired
    ch.delete(q)
    assert dropped() - before == 1  # though the queue is gone


@pytest.mark.parametrize("cause, dead_letter", [
    ("no_dead_letter_exchange", {}),
    ("exchange_missing", {"dead_letter_exchange": "nowhere"}),
    ("unroutable", {"dead_letter_exchange": "amq.topic", "dead_letter_routing_key": "nobody-wants-this"}),
])
def test_drops_are_counted_by_cause(ch, kind, cause, dead_letter, fetch, own):
    q = die_of("maxlen", ch, kind, **dead_letter)
    labels = {"queue": q, "reason": "maxlen", "cause": cause}
    assert fetch("/metrics/per-object").value("rabbitmq_queue_messages_dropped_total", **labels) == 1


def test_refusals_and_purges_are_counted(ch, kind, fetch, own):
    q = ch.queue(kind, max_length=2, overflow="reject-publish")
    assert ch.publish(q, "a", "b", "c") == "aaN"
    ch.purge(q)
    expected = {"messages_refused_total": 1, "messages_purged_total": 2, "messages_published_total": 3}
    assert of_queue(fetch, q, *expected) == expected


def test_refusals_are_counted_by_channel_and_exchange(ch, fetch, own):
    q = ch.queue(max_length=1, overflow="reject-publish")
    exchange = ch.exchange("fanout")
    ch.bind(q, exchange)
    total = fetch("/metrics").value("rabbitmq_channel_messages_refused_total")
    assert ch.publish("", "a", "b", "c", exchange=exchange) == "aNN"
    each = fetch("/metrics/per-object")
    assert each.value("rabbitmq_exchange_messages_refused_total", exchange=exchange) == 2
    of_channels = each.families["rabbitmq_channel_messages_refused_total"].samples
    assert 2 in [sample.value for sample in of_channels]
    assert fetch("/metrics").value("rabbitmq_channel_messages_refused_total") >= total + 2


def test_syncs_have_a_histogram_of_their_durations(ch, fetch, own):
    q = ch.queue()
    before = fetch("/metrics").value("rabbitmq_io_sync_ops_total")
    ch.publish(q, "a", delivery_mode=2)
    metrics = fetch("/metrics")
    syncs = metrics.value("rabbitmq_io_sync_ops_total")
    samples = metrics.families["rabbitmq_io_sync_duration_seconds"].samples
    buckets = [sample.value for sample in samples if sample.name.endswith("_bucket")]
    assert syncs > before and buckets == sorted(buckets) and buckets[-1] >= syncs
    assert metrics.value("rabbitmq_clock_steps_total") >= 0


def is_ahead(moment, seconds, since):
    """Whether a moment is so many seconds after another one that lies between `since` and now."""
    return since + seconds - 1 <= moment <= time.time() + seconds + 1


def test_the_next_deadline_is_that_of_a_message_that_waits(ch, kind, fetch, own):
    q = ch.queue(kind)
    deadline = lambda: of_queue(fetch, q, "next_deadline_timestamp_seconds")["next_deadline_timestamp_seconds"]
    ch.publish(q, "never")
    assert deadline() is None
    since = time.time()
    for body, seconds in (("late", 3600), ("early", 600), ("later", 7200)):
        ch.publish(q, body, expiration=str(seconds * 1000))
    assert is_ahead(deadline(), 600, since)
    unacked = ch.get_unacked(q, 3)  # also the early one
    assert [message.body for message in unacked] == ["never", "late", "early"]
    assert is_ahead(deadline(), 7200, since)
    ch.nack(unacked[1], requeue=True)
    ch.sync()
    assert is_ahead(deadline(), 3600, since)


def test_the_next_deadline_follows_policies(defined, own, prefix):
    ch = defined(policies=[Policy({"message-ttl": 600_000})])
    url = defined.client.broker.api.url
    since = time.time()
    q = ch.queue(expires=900_000)
    ch.publish(q, "m", expiration="3600000")
    told = Metrics.fetch(url + "/metrics/detailed?family=queue_time_metrics")
    name = "rabbitmq_detailed_queue_{}_timestamp_seconds"
    assert is_ahead(told.value(name.format("next_deadline"), queue=q), 600, since)
    assert is_ahead(told.value(name.format("lease_ends"), queue=q), 900, since)


def test_the_oldest_message_has_an_age(ch, kind, fetch, own):
    q = ch.queue(kind)
    age = lambda: of_queue(fetch, q, "oldest_message_age_seconds")["oldest_message_age_seconds"]
    assert age() is None
    began = time.monotonic()
    ch.publish(q, "old")
    ch.pause(0.3)
    ch.publish(q, "new")
    of_the_old = age()
    assert 0.3 <= of_the_old <= time.monotonic() - began + 1
    ch.get(q)
    of_the_new = age()
    ch.publish(q, "newest")
    assert of_the_new <= age()  # of the same message
    ch.drain(q)
    assert age() is None


@pytest.mark.alone
def test_logins_are_counted_by_protocol(ch, client, fetch, under):
    told = lambda: [fetch("/metrics").value(f"rabbitmq_auth_attempts_{what}", protocol="amqp091") or 0
                    for what in ("total", "succeeded_total", "failed_total")]
    before = told()
    client.channel()
    with pytest.raises(Exception):
        client.connect(password="wrong")
    grown = [now - then for now, then in zip(told(), before)]
    assert grown == [2, 1, 1] or under.name == "rabbitmq" and all(now >= then for now, then in zip(grown, [2, 1, 1]))


def test_opened_and_closed_objects_are_counted(client, fetch, under):
    names = ("connections_opened_total", "connections_closed_total", "channels_opened_total", "channels_closed_total",
             "queues_declared_total", "queues_created_total", "queues_deleted_total")
    told = lambda: [fetch("/metrics").value("rabbitmq_" + name) for name in names]
    before = told()
    connection = client.connect()
    ch = connection.channel()
    ch.declare(name=ch.queue())  # twice, made once
    ch.delete(ch.queue())
    connection.close()
    expected = [1, 1, 1, 1, 3, 2, 1]
    grown = lambda: [now - then for now, then in zip(told(), before)]
    other = client.channel()
    eventually(other, lambda: grown()[1] >= 1 and grown()[3] >= 1, True)
    # The connection that waits for it counts, too.
    at_least = [2, 1, 2, 1, 3, 2, 1]
    assert grown() == at_least or under.name == "rabbitmq" and all(map(int.__ge__, map(int, grown()), expected))


def test_channels_and_connections_have_their_own_series(ch, fetch, own):
    q = used(ch, "classic")
    ch.publish("nowhere", "m")
    ch.publish("nowhere", "m", mandatory=True)
    told = fetch("/metrics/per-object")
    assert told.value("rabbitmq_channel_messages_published_total", vhost="/") >= 7
    mine = [one.labels["channel"] for one in told.families["rabbitmq_channel_messages_published_total"].samples
            if one.value == 7]
    assert len(mine) == 1, f"{q}: {mine}"
    values = {name: told.value("rabbitmq_channel_" + name, channel=mine[0]) for name in (
        "messages_confirmed_total", "messages_unroutable_returned_total", "messages_unroutable_dropped_total",
        "get_total", "get_ack_total", "messages_delivered_ack_total", "messages_redelivered_total",
        "messages_acked_total", "messages_unacked", "consumers")}
    assert list(values.values()) == [7, 1, 1, 1, 1, 4, 1, 3, 1, 1]
    connection = mine[0].rsplit(".", 1)[0] + ".0>"
    assert told.value("rabbitmq_connection_incoming_bytes_total", channel=connection) > 100
    assert told.value("rabbitmq_connection_channels", channel=connection) == 1


def test_sums_do_not_shrink_when_things_go(ch, client, fetch, own):
    connection = client.connect()
    other = connection.channel()
    used(other, "classic")
    counters = lambda: {name: fetch("/metrics").value(name) for name, family in fetch("/metrics").families.items()
                        if family.type == "counter"}
    before = counters()
    for queue in list(client.queues):
        other.delete(queue)
    client.queues.clear()
    connection.close()
    after = counters()
    shrunk = {name for name, value in before.items() if value is not None and after[name] < value}
    assert shrunk == set()


def test_exchanges_have_their_own_series(ch, fetch, under):
    x = ch.exchange("topic")
    ch.bind(ch.queue(), x, "a")
    ch.bind(ch.queue(), x, "#")
    ch.publish("a", "m", exchange=x)
    ch.publish("b", "m", exchange=x)
    told = lambda: fetch("/metrics/per-object").value("rabbitmq_exchange_messages_published_total", exchange=x)
    eventually(ch, told, 2)
    clustered = fetch("/metrics/detailed?family=exchange_bindings&family=exchange_names&family=vhost_status")
    assert clustered.value("rabbitmq_cluster_exchange_bindings", exchange=x, type="topic") == 2
    assert clustered.value("rabbitmq_cluster_exchange_name", exchange=x, type="topic") == 1
    assert clustered.value("rabbitmq_cluster_vhost_status", vhost="/") == 1


def test_lateness_has_a_histogram_for_each_kind(ch, kind, fetch, own):
    kinds = ("message_expiry", "scheduled_delivery", "retry")
    count = lambda metrics, name: metrics.value(f"rabbitmq_{name}_lateness_seconds_count", vhost="/")
    counts = lambda metrics: {name: count(metrics, name) for name in kinds}
    before = counts(fetch("/metrics"))
    q = ch.queue(kind, name="retries", delayed_retry_type="all", delayed_retry_min=1, delayed_retry_max=1)
    dying = ch.queue(kind, name="dying", message_ttl=1)
    x = ch.exchange("x-delayed-message", arguments={"x-delayed-type": "fanout"})
    ch.bind(q, x)
    ch.publish(dying, "m")
    ch.publish(q, "m", headers={"x-opt-delivery-delay": 1})
    ch.publish("", "m", exchange=x, headers={"x-delay": 1})
    ch.reaches(q, 2)
    for _ in range(3):
        ch.nack(ch.get_unacked(q), requeue=True)
        ch.reaches(q, 2)
    expected = {"message_expiry": 1, "scheduled_delivery": 2, "retry": 3}
    added = lambda now: {name: now[name] - before[name] for name in kinds}
    eventually(ch, lambda: added(counts(fetch("/metrics"))), expected)


def test_scheduled_messages_are_counted(ch, kind, api, fetch, own):
    names = ("scheduled", "released", "cancelled", "rescheduled", "replaced", "kept", "ignored")
    family = lambda name: "rabbitmq_global_messages_scheduled" + ("" if name == "scheduled" else "_" + name) + "_total"
    counts = lambda metrics: {name: metrics.value(family(name)) for name in names}
    of_vhost = lambda: api.do("GET", "/api/vhosts/%2F")["schedule_totals"]
    total = lambda: api.do("GET", "/api/overview")["schedule_totals"]
    before = counts(fetch("/metrics")), of_vhost(), total()
    q = ch.queue(kind)
    x = ch.exchange("x-delayed-message", arguments={"x-delayed-type": "direct"})
    next_delivery = lambda: of_queue(fetch, q, "next_delivery_timestamp_seconds")["next_delivery_timestamp_seconds"]
    assert next_delivery() is None
    since = time.time()

    def schedule(id, delay_ms, mode="replace"):
        headers = {"x-opt-delivery-delay": delay_ms, "x-schedule-id": id, "x-schedule-mode": mode}
        assert ch.publish(q, "m", headers=headers) == "a"

    schedule("a", 3_600_000)
    schedule("a", 1_800_000)
    schedule("a", 60_000, "keep")
    schedule("b", 3_600_000)
    ch.publish("k", "m", exchange=x, headers={"x-delay": 600_000})
    assert is_ahead(next_delivery(), 1800, since)
    of_exchange = fetch("/metrics/per-object").value("rabbitmq_exchange_next_delivery_timestamp_seconds", exchange=x)
    assert is_ahead(of_exchange, 600, since)
    # The types of these headers name no time: the messages are delivered at once.
    ch.publish(q, "m", headers={"x-opt-delivery-delay": "600000"})
    ch.publish("k", "m", exchange=x, headers={"x-delay": True})
    assert ch.take(q).body == "m"
    api.do("POST", f"/api/scheduled/%2F/queue/{q}/a/deliver")
    assert ch.take(q).body == "m"
    api.do("DELETE", f"/api/scheduled/%2F/queue/{q}/b")
    expected = {"scheduled": 4, "released": 1, "cancelled": 1, "rescheduled": 1, "replaced": 1, "kept": 1, "ignored": 2}
    difference = lambda now, then: {name: now[name] - then[name] for name in names}
    assert difference(counts(fetch("/metrics")), before[0]) == expected
    assert difference(of_vhost(), before[1]) == expected
    assert difference(total(), before[2]) == expected
