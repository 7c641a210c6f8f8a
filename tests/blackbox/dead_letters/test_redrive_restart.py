"""Redrive jobs survive restarts and kills of the broker; kept dead letters are redriven to another place."""

import time

import pytest

from brokers import quoted
from client import Client
from expectations import no_access
from patience import Patience
from redrives import Redrives

pytestmark = pytest.mark.better

COUNT = 400


@pytest.fixture
def own(defined, by_broker):
    """A channel to a broker of its own, which can redrive and be killed."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such thing")
    ch = defined()
    ch.client.redrives = Redrives(defined.client.broker.api)
    return ch


def filled(ch, count=COUNT):
    """Two durable queues, and messages in the first of them."""
    q, other = ch.queue("quorum", name="q"), ch.queue("quorum", name="other")
    ch.publish(q, *map(str, range(count)), delivery_mode=2)
    return q, other


def moved(redrives, job, count):
    """Wait until the job has moved so many messages."""
    patience = Patience()
    while (now := redrives.job(job["id"]))["moved"] < count:
        assert now["state"] == "running" and not patience.is_over(), now
        time.sleep(0.02)
    return now


@pytest.mark.parametrize("again", ["kill_and_start_again", "stop_and_start_again"])
def test_a_job_goes_on_after_the_broker(own, again, prefix):
    q, other = filled(own)
    redrives, broker = own.client.redrives, own.client.broker
    job = redrives.begin(q, to={"queue": other}, rate=100)
    before = moved(redrives, job, 150)
    getattr(broker, again)()
    redrives = Redrives(broker.api)
    [listed] = redrives.api.ask("/api/redrives").json
    assert (listed["id"], listed["started_ms"], listed["user"]) == (job["id"], job["started_ms"], "guest")
    if again == "stop_and_start_again":
        assert listed["moved"] >= before["moved"]
    job = redrives.end(job)
    assert (job["state"], job["reason"], job["unacked_left"]) == ("finished", None, 0)
    # Those that were moved after the last write of the progress and before the kill count as gone.
    assert job["moved"] + job["gone"] == job["scanned"] == job["messages_total"] == COUNT, job
    if again == "stop_and_start_again":
        assert job["gone"] == 0, job
    ch = Client(broker, prefix).channel()
    assert (ch.drain(other), ch.count(q)) == (list(map(str, range(COUNT))), 0)
    # The result survives, too.
    broker.kill_and_start_again()
    [listed] = Redrives(broker.api).api.ask("/api/redrives").json
    assert listed == job


def test_a_limit_holds_over_a_kill(own, prefix):
    q, other = filled(own)
    redrives, broker = own.client.redrives, own.client.broker
    job = redrives.begin(q, to={"queue": other}, rate=100, limit=200)
    moved(redrives, job, 50)
    broker.kill_and_start_again()
    job = Redrives(broker.api).end(job)
    assert (job["state"], job["moved"]) == ("finished", 200)
    ch = Client(broker, prefix).channel()
    # What may have been moved before the kill counts as moved.
    there = ch.count(other)
    assert 100 <= there <= 200 and ch.count(q) == COUNT - there


def test_messages_that_arrive_after_the_kill_stay(own, prefix):
    q, other = filled(own, 100)
    redrives, broker = own.client.redrives, own.client.broker
    job = redrives.begin(q, to={"queue": other}, rate=20)
    moved(redrives, job, 5)
    broker.kill_and_start_again()
    ch = Client(broker, prefix).channel().confirm_select()
    ch.publish(q, "new", delivery_mode=2)
    job = Redrives(broker.api).end(job)
    assert job["state"] == "finished"
    assert (ch.drain(other), ch.drain(q)) == (list(map(str, range(100))), ["new"])


def test_a_cancelled_job_stays_cancelled(own, prefix):
    q, other = filled(own)
    redrives, broker = own.client.redrives, own.client.broker
    job = redrives.begin(q, to={"queue": other}, rate=100)
    running = redrives.begin(q, to={"queue": other}, rate=1)
    assert redrives.cancel(job["id"]) == 204
    broker.kill_and_start_again()
    redrives = Redrives(broker.api)
    ended = redrives.job(job["id"])
    assert ended["state"] == "cancelled" and ended["ended_ms"] is not None
    assert redrives.cancel(job["id"]) == 409
    # A job that went on is cancelled as any other.
    assert redrives.cancel(running["id"]) == 204
    ended = redrives.end(running)
    assert ended["state"] == "cancelled"
    ch = Client(broker, prefix).channel()
    there = ch.count(other)
    assert there < COUNT and ch.count(q) == COUNT - there


@pytest.mark.parametrize("what", ["queue", "target"])
def test_a_job_without_its_queues_ends_with_a_reason(own, what):
    durable = own.queue("quorum", name="durable")
    transient = own.queue("classic", name="transient", durable=False)
    q, other = (transient, durable) if what == "queue" else (durable, transient)
    own.publish(q, *["m"] * 100, delivery_mode=2)
    job = own.client.redrives.begin(q, to={"queue": other}, rate=1)
    own.client.broker.kill_and_start_again()
    job = Redrives(own.client.broker.api).end(job)
    reason = {"queue": "the queue is gone", "target": f"no queue '{other}'"}[what]
    assert job["state"] == "failed" and reason in job["reason"], job
    assert job["ended_ms"] is not None


def test_a_slow_filter_keeps_its_counts(own, prefix):
    q, other = own.queue("quorum", name="q"), own.queue("quorum", name="other")
    for number in range(300):
        own.publish(q, str(number), delivery_mode=2, headers={"odd": number % 2})
    redrives, broker = own.client.redrives, own.client.broker
    job = redrives.begin(q, to={"queue": other}, rate=40, filter={"headers": {"odd": "1"}})
    moved(redrives, job, 60)
    broker.stop_and_start_again()
    job = Redrives(broker.api).end(job)
    assert (job["state"], job["moved"], job["skipped"], job["gone"]) == ("finished", 150, 150, 0)
    ch = Client(broker, prefix).channel()
    assert ch.drain(other) == [str(number) for number in range(300) if number % 2]


def test_redriven_messages_have_a_rate(own):
    q, other = filled(own)
    own.client.redrives.run(q, to={"queue": other}, limit=100)
    api = own.client.broker.api

    def told(path):
        stats = api.do("GET", path)["message_stats"]
        return stats["redriven"], "rate" in stats["redriven_details"]

    paths = ["/api/queues/" + quoted("/", q), "/api/vhosts/" + quoted("/"), "/api/overview"]
    own.poll(lambda: [told(path) for path in paths] == [(100, True)] * 3)
    sampled = lambda: api.do("GET", paths[0] + "?msg_rates_age=60&msg_rates_incr=5")["message_stats"]  # noqa: E731
    own.poll(lambda: [one["sample"] for one in sampled()["redriven_details"]["samples"]][:1] == [100])
    assert {"avg", "avg_rate", "rate", "samples"} <= set(sampled()["redriven_details"])


# --- what a redrive left alone until now


def test_unacknowledged_messages_are_counted(own):
    q, other = filled(own, 10)
    own.get_unacked(q, 4)
    redrives = own.client.redrives
    assert redrives.dry_run(q, to={"queue": other})["unacked_left"] == 4
    job = redrives.run(q, to={"queue": other})
    assert (job["moved"], job["unacked_left"]) == (6, 4)


def test_kept_dead_letters_go_elsewhere(own, prefix):
    other = own.queue("quorum", name="other")
    q = own.queue("quorum", name="q", dead_letter_strategy="at-least-once", overflow="reject-publish",
                  dead_letter_exchange="", dead_letter_routing_key="nowhere")
    own.publish(q, *map(str, range(500)), "waits", delivery_mode=2)
    for message in own.get_unacked(q, 500):
        own.reject(message)
    own.sync()
    redrives, broker = own.client.redrives, own.client.broker
    assert redrives.dry_run(q, to={"queue": other}, kept=True)["would_move"] == 500
    job = redrives.run(q, to={"queue": other}, kept=True, limit=100)
    assert (job["kept"], job["moved"], job["not_examined"]) == (True, 100, 400)
    job = redrives.begin(q, to={"queue": other}, kept=True, rate=100)
    moved(redrives, job, 50)
    broker.kill_and_start_again()
    job = Redrives(broker.api).end(job)
    assert (job["state"], job["moved"] + job["gone"]) == ("finished", 400)
    ch = Client(broker, prefix).channel()
    assert ch.count(q) == 1
    first = ch.get(other)
    [redrive] = first.headers["x-redrives"]
    assert [(d["queue"], d["reason"]) for d in redrive["x-death"]] == [(q, "rejected")]
    assert [first.body, *ch.drain(other)] == list(map(str, range(500)))


def test_a_kept_dead_letter_goes_back_to_its_queue(own):
    q = own.queue("quorum", name="q", dead_letter_strategy="at-least-once", overflow="reject-publish",
                  dead_letter_exchange="", dead_letter_routing_key="nowhere")
    own.publish(q, "m", delivery_mode=2)
    own.reject(own.get_unacked(q))
    own.sync()
    assert own.client.redrives.moved(q) == 0
    assert own.client.redrives.moved(q, kept=True) == 1
    message = own.get(q)
    assert (message.body, message.routing_key, message.headers["x-redrive-count"]) == ("m", q, 1)


# --- what is gone between a kill and the next start


def brought_back(broker, redrives, job, change):
    """Another process has the job's file as it was while the job ran, and a broker changed meanwhile."""
    path = broker.data_dir / "redrives" / f"{job['id']}.json"
    running = path.read_bytes()
    assert redrives.cancel(job["id"]) == 204
    change()
    broker.kill()
    path.write_bytes(running)
    broker.start_again()
    return Redrives(broker.api).end(job)


@pytest.mark.parametrize("gone", ["user", "permissions", "read", "vhost", "vhost made again"])
def test_a_job_whose_user_or_vhost_is_gone_ends_with_a_reason(defined, by_broker, prefix, gone):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such thing")
    ch = defined()
    broker = defined.client.broker
    admin, user, vhost = Redrives(broker.api), prefix + "bob", "/"
    permissions = {"configure": ".*", "write": ".*", "read": ".*"}

    def permit():
        for name in ("guest", user):
            broker.api.do("PUT", "/api/permissions/" + quoted(vhost, name), permissions)

    # Not by definitions, which each start would load again.
    broker.api.do("PUT", "/api/users/" + quoted(user), {"password": user, "tags": "management"})
    if gone.startswith("vhost"):
        vhost = prefix + "v"
        broker.api.do("PUT", "/api/vhosts/" + quoted(vhost), {})
    permit()
    if gone.startswith("vhost"):
        ch = defined.client.connect(vhost=vhost).channel().confirm_select()
    q, other = filled(ch, 20)
    job = Redrives(broker.api, vhost, user).begin(q, to={"queue": other}, rate=1)

    def change():
        api = broker.api
        if gone == "user":
            api.do("DELETE", "/api/users/" + quoted(user))
        elif gone == "permissions":
            api.do("DELETE", "/api/permissions/" + quoted(vhost, user))
        elif gone == "read":
            api.do("PUT", "/api/permissions/" + quoted(vhost, user), permissions | {"read": "^$"})
        else:
            api.do("DELETE", "/api/vhosts/" + quoted(vhost))
            if gone == "vhost made again":
                api.do("PUT", "/api/vhosts/" + quoted(vhost), {})
                permit()
                for queue in (q, other):
                    api.do("PUT", "/api/queues/" + quoted(vhost, queue), {"durable": True, "arguments": {"x-queue-type": "quorum"}})
                defined.client.connect(vhost=vhost).channel().confirm_select().publish(q, *"abc", delivery_mode=2)

    before = ch.count(other) if vhost == "/" else 0
    ended = brought_back(broker, admin, job, change)
    reason = {
        "user": f"user '{user}' does not exist any more",
        "permissions": f"user '{user}' has no permissions in vhost '/' any more",
        "read": no_access("read", "queue", q, user),
        "vhost": f"vhost '{vhost}' does not exist any more",
        "vhost made again": f"vhost '{vhost}' was deleted and made again",
    }[gone]
    assert ended["state"] == "failed" and reason in ended["reason"], ended
    if vhost == "/":
        # The job moved nothing after the start. It may have moved one between the count and its cancellation.
        ch = Client(broker, prefix).channel()
        assert before <= ch.count(other) <= before + 2 and ch.count(q) + ch.count(other) == 20
    # The result survives the next start.
    broker.kill_and_start_again()
    assert Redrives(broker.api).job(job["id"]) == ended


def test_a_target_refuses_messages_that_are_too_long_also_after_a_kill(own, prefix):
    q = own.queue("quorum", name="q")
    other = own.queue(name="other", max_length_bytes=1000, overflow="reject-publish")
    bodies = [("x" * 2000 if number % 2 else "short") + str(number) for number in range(100)]
    own.publish(q, *bodies, delivery_mode=2)
    redrives, broker = own.client.redrives, own.client.broker
    job = redrives.begin(q, to={"queue": other}, rate=40)
    moved(redrives, job, 10)
    broker.kill_and_start_again()
    job = Redrives(broker.api).end(job)
    # Short messages that were moved before the kill are gone; long ones stay, and are examined again.
    assert (job["state"], job["unroutable"], job["moved"] + job["gone"]) == ("finished", 50, 50), job
    ch = Client(broker, prefix).channel()
    assert (ch.drain(other), ch.drain(q)) == (bodies[::2], bodies[1::2])
