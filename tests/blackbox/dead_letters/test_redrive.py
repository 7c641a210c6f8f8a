"""Redrive: dead messages are sent back, which RabbitMQ leaves to shovels and scripts."""

import time

import pytest

from brokers import quoted
from client import Client
from redrives import Redrives

pytestmark = pytest.mark.better


@pytest.fixture
def redrives(under, by_broker):
    """A broker that can redrive."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such thing")
    return Redrives(under.shared().api)


@pytest.fixture
def work(ch, dlq, kind):
    """A queue of either type whose dead letters go to `dlq`."""
    return ch.queue(kind, name="work", dead_letter_exchange="", dead_letter_routing_key=dlq)


def die(ch, queue, *bodies, **properties):
    """Messages that are published to the queue and rejected there."""
    ch.publish(queue, *bodies, **properties)
    for message in [ch.get_unacked(queue) for _ in bodies]:
        ch.reject(message)
    ch.sync()


def messages(api, queue):
    answer = api.ask("/api/queues/" + quoted("/", queue) + "/messages?count=500")
    assert answer.status == 200, answer
    return answer.json["messages"]


# --- where they go, and as what


def test_dead_messages_go_back_where_they_died(redrives, ch, dlq, work):
    die(ch, work, "a", "b", "c", expiration="60000", headers={"h": 1}, delivery_mode=2, message_id="m")
    job = redrives.run(dlq)
    expected = {"vhost": "/", "queue": dlq, "to": "origin", "user": "guest", "state": "finished", "reason": None,
                "messages_total": 3, "scanned": 3, "moved": 3, "skipped": 0, "unroutable": 0,
                "no_origin": 0, "gone": 0, "not_examined": 0}
    assert {key: job[key] for key in expected} == expected
    assert job["started_ms"] <= job["ended_ms"]
    assert ch.count(dlq) == 0
    for body in "abc":
        message = ch.get(work)
        assert (message.body, message.routing_key, message.redelivered) == (body, work, False)
        properties = message.properties
        assert (properties.expiration, properties.message_id, properties.delivery_mode) == ("60000", "m", 2)
        assert sorted(message.headers) == ["h", "x-redrive-count", "x-redrives"]


def test_headers_tell_what_a_message_has_been_through(redrives, ch, dlq, work):
    die(ch, work, "m")
    redrives.run(dlq)
    died_again = ch.get_unacked(work)
    ch.reject(died_again)
    # A reject has no answer: the redrive, which goes over HTTP, could overtake it.
    ch.reaches(dlq, 1)
    redrives.run(dlq)
    headers = ch.get(work).headers
    assert headers["x-redrive-count"] == 2
    assert [entry["queue"] for entry in headers["x-redrives"]] == [dlq, dlq]
    newest = headers["x-redrives"][0]
    assert newest["user"] == "guest" and abs(newest["time"] - time.time()) < 60
    # The count of each life begins at one.
    assert [(d["queue"], d["reason"], d["count"]) for d in newest["x-death"]] == [(work, "rejected", 1)]


def test_redriven_message_is_shown_where_it_waits(redrives, ch, dlq, work):
    die(ch, work, "m")
    redrives.run(dlq)
    [message] = messages(redrives.api, work)
    assert message["deaths"] == []
    assert [(one["queue"], one["user"]) for one in message["redrives"]] == [(dlq, "guest")]


def test_every_target(redrives, ch, dlq, work):
    parked = ch.queue(name="parked")
    other, bound, x = ch.queue(name="other"), ch.queue(name="bound"), ch.exchange("topic")
    ch.bind(bound, x, "orders.#")
    die(ch, work, "origin", "queue", "exchange", "key")
    # They die a second time, in `middle`.
    middle = ch.queue(name="middle", dead_letter_exchange="", dead_letter_routing_key=parked)
    assert redrives.moved(dlq, to={"queue": middle}) == 4
    for message in ch.get_unacked(middle, 4):
        ch.reject(message)
    ch.reaches(parked, 4)
    assert redrives.moved(parked, to="first", limit=1) == 1
    assert ch.drain(middle) == ["origin"]
    assert redrives.moved(parked, to={"queue": other}, limit=1) == 1
    assert ch.drain(other) == ["queue"]
    # Its own key is no topic that anything is bound by.
    job = redrives.run(parked, to={"exchange": x})
    assert (job["moved"], job["unroutable"]) == (0, 2)
    assert redrives.moved(parked, to={"exchange": x, "routing_key": "orders.new"}, limit=1) == 1
    message = ch.get(bound)
    assert (message.body, message.exchange, message.routing_key) == ("exchange", x, "orders.new")
    assert redrives.moved(parked, to={"exchange": "amq.default", "routing_key": other}) == 1
    assert ch.drain(other) == ["key"]


def test_unroutable_messages_stay(redrives, ch, dlq, work):
    die(ch, work, "m")
    ch.publish(dlq, "never died")
    ch.delete(work)
    job = redrives.run(dlq)
    assert (job["moved"], job["unroutable"], job["no_origin"], job["state"]) == (0, 1, 1, "finished")
    assert ch.count(dlq) == 2
    full = ch.queue(name="full", max_length=1, overflow="reject-publish")
    assert redrives.run(dlq, to={"queue": full})["unroutable"] == 1
    assert (ch.count(dlq), ch.count(full)) == (1, 1)


def test_a_cycle_is_none_after_a_redrive(redrives, ch):
    a = ch.queue(name="a", message_ttl=50, dead_letter_exchange="", dead_letter_routing_key=ch.client.name("b"))
    b = ch.queue(name="b", message_ttl=50, dead_letter_exchange="", dead_letter_routing_key=ch.client.name("end"))
    end = ch.queue(name="end")
    ch.publish(a, "m")
    ch.reaches(end, 1)
    assert redrives.moved(end, to={"queue": a}) == 1
    assert ch.take(end).deaths == [(b, "expired", 1), (a, "expired", 1)]


# --- which of them


def test_a_filter_chooses(redrives, ch, dlq, work):
    brief = ch.queue(name="brief", message_ttl=1, dead_letter_exchange="", dead_letter_routing_key=dlq)
    die(ch, work, "acme 1", "acme 2", headers={"customer": "acme", "tries": 3})
    die(ch, work, "other 1", headers={"customer": "other"})
    ch.publish(brief, "late", headers={"customer": "acme"})
    ch.reaches(dlq, 4)
    would = lambda **filter: redrives.dry_run(dlq, filter=filter)["matched"]  # noqa: E731
    assert would() == 4
    assert (would(reason="expired"), would(reason="rejected"), would(reason="maxlen")) == (1, 3, 0)
    assert (would(first_queue=brief), would(first_queue=work)) == (1, 3)
    assert (would(headers={"customer": "acme"}), would(headers={"customer": "acme", "tries": "3"})) == (3, 2)
    assert (would(headers={"customer": None}), would(headers={"nothing": None})) == (4, 0)
    assert (would(text="acme"), would(older_than_ms=0), would(older_than_ms=3600000)) == (2, 4, 0)
    job = redrives.run(dlq, filter={"headers": {"customer": "acme"}, "reason": "rejected", "text": "2"})
    assert (job["moved"], job["skipped"]) == (1, 3)
    assert ch.drain(work) == ["acme 2"]


def test_messages_are_named_as_they_were_seen(redrives, ch, dlq, work):
    die(ch, work, *"abcde")
    ids = [message["id"] for message in messages(redrives.api, dlq) if message["payload"] in "bd"]
    job = redrives.run(dlq, ids=ids)
    assert (job["moved"], job["gone"]) == (2, 0)
    assert ch.drain(work) == ["b", "d"]
    # They are there no more, under any name.
    assert redrives.moved(dlq, ids=ids) == 0
    assert ch.drain(dlq) == ["a", "c", "e"]


def test_messages_above_max_redrives_stay(redrives, ch, dlq, work):
    die(ch, work, "again")
    redrives.run(dlq)
    ch.reject(ch.get_unacked(work))
    die(ch, work, "first")
    assert redrives.moved(dlq, max_redrives=1) == 1
    assert (ch.drain(work), ch.drain(dlq)) == (["first"], ["again"])


def test_a_dry_run_moves_nothing(redrives, ch, dlq, work):
    die(ch, work, "a", "b")
    ch.publish(dlq, "never died")
    told = redrives.dry_run(dlq)
    assert (told["scanned"], told["matched"], told["would_move"], told["unroutable"]) == (3, 3, 2, 0)
    assert (told["messages_total"], told["skipped"], told["no_origin"], told["not_examined"]) == (3, 0, 1, 0)
    assert told["targets"] == [{"queue": work, "messages": 2}] and told["complete"]
    assert [message["payload"] for message in told["sample"]] == ["never died", "a", "b"] or \
        sorted(message["payload"] for message in told["sample"]) == ["a", "b", "never died"]
    assert told["sample"][0]["deaths"][0]["queue"] == work
    told = redrives.dry_run(dlq, limit=1)
    assert told["would_move"] == 1 and told["scanned"] + told["not_examined"] == 3
    assert (ch.count(dlq), ch.count(work)) == (3, 0)
    assert redrives.api.ask("/api/queues/" + quoted("/", dlq) + "/redrives").json == []


# --- how they go


def test_new_messages_are_left_alone(redrives, ch, dlq):
    """Even if all of them come back at once."""
    mirror = ch.queue(name="mirror", message_ttl=0, dead_letter_exchange="", dead_letter_routing_key=dlq)
    ch.publish(dlq, *map(str, range(500)))
    job = redrives.run(dlq, to={"queue": mirror})
    assert (job["moved"], job["messages_total"]) == (500, 500)
    assert sorted(map(int, ch.drain(dlq))) == list(range(500))


def test_consumers_on_both_sides(redrives, client, ch, dlq, work):
    """Each message is delivered once to one of them."""
    bodies = [str(number) for number in range(2000)]
    ch.publish(dlq, *bodies, delivery_mode=2)
    there = client.channel().consume(work, auto_ack=True)
    here = client.channel().consume(dlq, prefetch=5)
    job = redrives.begin(dlq, to={"queue": work})
    taken = []
    client.run_until(lambda: len(there.messages) + len(taken) == 2000 or _ack(here, taken), 20.0)
    assert sorted(there.bodies + taken, key=int) == bodies
    job = redrives.end(job)
    assert job["moved"] == len(there.bodies)


def _ack(consumer, taken):
    """Acknowledges what has come; one at a time, so that the others wait."""
    while consumer.taken < len(consumer.messages):
        message = consumer.messages[consumer.taken]
        consumer.taken += 1
        taken.append(message.body)
        consumer.channel.ack(message)
    return False


def test_a_rate_is_kept_and_a_job_can_be_ended(redrives, ch, dlq):
    other = ch.queue(name="other")
    ch.publish(dlq, *["m"] * 1000)
    began = time.monotonic()
    job = redrives.begin(dlq, to={"queue": other}, rate=100)
    ch.poll(lambda: redrives.job(job["id"])["moved"] >= 50)
    took = time.monotonic() - began
    assert redrives.cancel(job["id"]) == 204
    job = redrives.end(job)
    assert job["state"] == "cancelled"
    # A slice of a tenth of a second may be ahead.
    assert 50 <= job["moved"] <= 100 * (time.monotonic() - began) + 20 and took > 0.3
    assert ch.count(other) == job["moved"] and ch.count(dlq) == 1000 - job["moved"]
    assert redrives.cancel(job["id"]) == 409
    assert redrives.cancel("12345") == 404
    ch.pause(0.3)
    assert ch.count(other) == job["moved"]


def test_a_slow_job_ends_at_once(redrives, ch, dlq):
    other = ch.queue(name="other")
    ch.publish(dlq, *["m"] * 100)
    job = redrives.begin(dlq, to={"queue": other}, rate=1)
    ch.poll(lambda: redrives.job(job["id"])["moved"] >= 1)
    assert redrives.cancel(job["id"]) == 204
    moved = redrives.job(job["id"])["moved"]
    assert redrives.end(job, within=0.8)["moved"] <= moved + 1


def test_a_job_ends_with_its_queue_and_with_its_target(redrives, ch, dlq):
    other = ch.queue(name="other")
    ch.publish(dlq, *["m"] * 100)
    job = redrives.begin(dlq, to={"queue": other}, rate=20)
    ch.delete(other)
    job = redrives.end(job)
    assert job["state"] == "failed" and f"no queue '{other}'" in job["reason"]
    left = ch.count(dlq)
    assert left == 100 - job["moved"]
    other = ch.queue(name="another")
    job = redrives.begin(dlq, to={"queue": other}, rate=20)
    ch.delete(dlq)
    job = redrives.end(job)
    assert (job["state"], job["reason"]) == ("failed", "the queue is gone")
    assert ch.count(other) == job["moved"]


@pytest.mark.alone
def test_a_job_ends_with_its_vhost(redrives, client, made):
    vhost = made.vhost()
    ch = client.connect(vhost=vhost).channel().confirm_select()
    a, b = ch.queue(name="a"), ch.queue(name="b")
    ch.publish(a, *["m"] * 100)
    there = Redrives(redrives.api, vhost)
    job = there.begin(a, to={"queue": b}, rate=20)
    client.close()
    client.queues.clear()
    redrives.api.do("DELETE", "/api/vhosts/" + quoted(vhost))
    job = there.end(job)
    assert job["state"] == "failed" and vhost in job["reason"]


def test_an_exchange_that_multiplies(redrives, ch, dlq):
    x = ch.exchange("fanout")
    queues = [ch.queue(name="copy") for _ in range(3)]
    for queue in queues:
        ch.bind(queue, x)
    ch.publish(dlq, *map(str, range(300)), delivery_mode=2)
    assert redrives.moved(dlq, to={"exchange": x}) == 300
    assert [ch.drain(queue) for queue in queues] == [[str(number) for number in range(300)]] * 3


@pytest.mark.parametrize("settings", ["", "vm_memory_high_watermark_paging_ratio = 0\n"])
def test_a_long_queue(defined, settings, by_broker, prefix):
    """From memory and from pages; nothing is lost, doubled or out of order, and a restart finds it so."""
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such thing")
    ch = defined(settings)
    broker = defined.client.broker
    redrives = Redrives(broker.api)
    q, other, rest = ch.queue(name="long"), ch.queue(name="other"), ch.queue(name="rest")
    count = 12_000
    for first in range(0, count, 1000):
        bodies = [f"{number:06}" + 500 * "x" for number in range(first, first + 1000)]
        ch.publish(q, *bodies, delivery_mode=2, headers={"third": first // 1000 % 3})
    if settings:
        assert broker.api.do("GET", "/api/queues/" + quoted("/", q))["messages_paged_out"] > count / 2
    job = redrives.run(q, to={"queue": other}, filter={"headers": {"third": "1"}})
    assert (job["moved"], job["skipped"], job["gone"]) == (4000, 8000, 0)
    assert redrives.run(q, to={"queue": rest}, limit=1000)["moved"] == 1000
    broker.kill_and_start_again()
    ch = Client(broker, prefix).channel()
    number = lambda body: int(body[:6])  # noqa: E731
    thirds = [number for number in range(count) if number // 1000 % 3 == 1]
    others = [number for number in range(count) if number // 1000 % 3 != 1]
    assert [number(body) for body in ch.drain(other)] == thirds
    assert [number(body) for body in ch.drain(rest)] == others[:1000]
    assert [number(body) for body in ch.drain(q)] == others[1000:]
    ch.client.close()


def test_counters_tell_of_it(redrives, api, under, ch, dlq, work):
    die(ch, work, "a", "b")
    redrives.run(dlq, limit=1)
    stats = lambda queue: api.do("GET", "/api/queues/" + quoted("/", queue))["message_stats"]  # noqa: E731
    assert (stats(dlq)["redriven"], stats(work)["redriven"]) == (1, 0)
    # It is neither acknowledged nor dropped.
    assert (stats(dlq).get("ack", 0), stats(dlq)["dropped"], stats(dlq)["dead_lettered"]) == (0, 0, 0)
    detailed = under.leader().api.ask("/metrics/per-object").text.decode()
    [line] = [line for line in detailed.splitlines() if "queue_messages_redriven_total{" in line and dlq in line]
    assert line.endswith(" 1")


# --- who may


def refused(answer):
    return answer[0], answer[1]["reason"]


def test_reading_and_writing_are_asked_for(redrives, ch, dlq, made):
    other, x = ch.queue(name="other"), ch.exchange("topic")
    ch.publish(dlq, "m")
    user = made.user(tags="management")
    his = Redrives(redrives.api, user=user)
    assert his.ask(dlq)[0] == 404  # he may not enter the vhost
    made.permit(user, "/", read="^nothing$")
    read = f"ACCESS_REFUSED - read access to queue '{dlq}' in vhost '/' refused for user '{user}'"
    assert refused(his.ask(dlq)) == (401, read)
    assert refused(his.ask(dlq, dry_run=True)) == (401, read)
    made.permit(user, "/", write="^nothing$")
    write = f"ACCESS_REFUSED - write access to exchange '%s' in vhost '/' refused for user '{user}'"
    for to in ("origin", "first", {"queue": other}):
        assert refused(his.ask(dlq, to=to)) == (401, write % "amq.default")
    assert refused(his.ask(dlq, to={"exchange": x})) == (401, write % x)
    internal = ch.exchange("fanout", internal=True)
    made.permit(user, "/")
    assert his.ask(dlq, to={"exchange": internal})[0] == 401
    assert his.moved(dlq, to={"queue": other}) == 1


def test_a_permission_that_goes_ends_the_job(redrives, ch, dlq, made):
    other = ch.queue(name="other")
    ch.publish(dlq, *["m"] * 100)
    user = made.user(tags="management")
    made.permit(user, "/")
    his = Redrives(redrives.api, user=user)
    job = his.begin(dlq, to={"queue": other}, rate=20)
    made.permit(user, "/", write="^nothing$")
    job = redrives.end(job)
    assert job["state"] == "failed" and "write access" in job["reason"]
    assert ch.count(other) == job["moved"] and ch.count(dlq) == 100 - job["moved"]


def test_a_user_who_goes_ends_his_jobs(redrives, api, ch, dlq, made):
    other = ch.queue(name="other")
    ch.publish(dlq, *["m"] * 100)
    user = made.user(tags="management")
    made.permit(user, "/")
    job = Redrives(api, user=user).begin(dlq, to={"queue": other}, rate=20)
    api.do("DELETE", "/api/users/" + quoted(user))
    assert redrives.end(job)["state"] == "failed"


def test_topic_permissions_count_for_every_key(redrives, api, ch, dlq, made):
    x = ch.exchange("topic")
    q = ch.queue()
    ch.bind(q, x, "#")
    ch.publish(dlq, "m")
    user = made.user(tags="management")
    made.permit(user, "/")
    limit = {"exchange": x, "write": "^mine\\.", "read": ".*"}
    api.do("PUT", "/api/topic-permissions/" + quoted("/", user), limit)
    his = Redrives(api, user=user)
    job = his.end(his.begin(dlq, to={"exchange": x, "routing_key": "yours.a"}))
    assert job["state"] == "failed" and "topic 'yours.a'" in job["reason"]
    assert ch.count(dlq) == 1
    assert his.moved(dlq, to={"exchange": x, "routing_key": "mine.a"}) == 1


def test_jobs_of_others(redrives, api, ch, dlq, made):
    other = ch.queue(name="other")
    ch.publish(dlq, *["m"] * 100)
    job = redrives.begin(dlq, to={"queue": other}, rate=10)
    stranger, colleague = made.user("stranger", tags="management"), made.user("colleague", tags="management")
    made.permit(colleague, "/")
    ask = lambda user, path, method="GET": api.ask(path, user=user, method=method)  # noqa: E731
    mine = "/api/redrives/" + job["id"]
    assert ask(stranger, mine).status == 404
    assert job["id"] not in [one["id"] for one in ask(stranger, "/api/redrives").json]
    assert ask(stranger, "/api/queues/" + quoted("/", dlq) + "/redrives").status == 404
    assert ask(colleague, mine).status == 200
    of_queue = ask(colleague, "/api/queues/" + quoted("/", dlq) + "/redrives").json
    assert [one["id"] for one in of_queue] == [job["id"]]
    assert ask(colleague, mine, "DELETE").status == 401
    assert ask("guest", mine, "DELETE").status == 204
    assert redrives.end(job)["state"] == "cancelled"


def test_an_exclusive_queue_is_its_owners(redrives, client):
    ch = client.channel()
    q = ch.queue(exclusive=True, durable=False)
    assert refused(redrives.ask(q))[0] == 400


# --- what is refused


@pytest.mark.parametrize("fields, status, reason", [
    ({"to": "elsewhere"}, 400, "to should be"),
    ({"to": {"queue": "no-such-queue"}}, 404, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'"),
    ({"to": {"exchange": "no-such-exchange"}}, 404, "NOT_FOUND - no exchange 'no-such-exchange' in vhost '/'"),
    ({"filter": {"reason": "bored"}}, 400, "filter.reason should be one of"),
    ({"filtre": {}}, 400, "filtre is not known"),
    ({"limit": 0}, 400, "limit should be more than 0"),
    ({"rate": -1}, 400, "rate should be"),
    ({"ids": ["x"]}, 400, '"x" is not the id of a message'),
    ({"dry_run": "yes"}, 400, "dry_run should be"),
])
def test_invalid_requests_are_refused(redrives, ch, dlq, fields, status, reason):
    ch.publish(dlq, "m")
    answer = refused(redrives.ask(dlq, **fields))
    assert answer[0] == status and answer[1].startswith(reason), answer
    assert ch.count(dlq) == 1


def test_absent_queues_and_jobs_are_404(redrives):
    assert refused(redrives.ask("no-such-queue")) == (404, "queue_not_found")
    assert redrives.api.ask("/api/queues/nowhere/q/redrive", method="POST", body={}).status == 404
    assert redrives.api.ask("/api/redrives/1").status == 404
    assert redrives.api.ask("/api/redrives/x").status == 404
    assert redrives.api.ask("/api/queues/%2F/no-such-queue/redrives").status == 404


def test_running_jobs_are_limited(redrives, ch, dlq):
    other = ch.queue(name="other")
    ch.publish(dlq, *["m"] * 100)
    jobs = []
    while (answer := redrives.ask(dlq, to={"queue": other}, rate=1))[0] == 201:
        jobs.append(answer[1])
        assert len(jobs) <= 16
    assert answer[0] == 429 and answer[1]["reason"].endswith("redrives run already")
    for job in jobs:
        assert redrives.cancel(job["id"]) == 204
    ended = [redrives.end(job) for job in jobs]
    assert ch.count(other) == sum(job["moved"] for job in ended)


def test_the_log_tells_who_did_it(redrives, under, ch, dlq, work):
    die(ch, work, "m")
    job = redrives.run(dlq)
    said = lambda: [line for line in under.leader().log if f"id={job['id']}" in line]  # noqa: E731
    begun, ended = ch.poll(lambda: len(said()) == 2 and said())
    assert "messages are redriven" in begun and 'user="guest" to=origin' in begun
    assert "messages have been redriven" in ended and "moved=1 " in ended


def test_numbers_of_a_limited_job_add_up(redrives, ch, dlq, work):
    die(ch, work, *[f"{number % 10}" for number in range(40)])
    job = redrives.run(dlq, filter={"text": "0"}, limit=1)
    assert (job["messages_total"], job["moved"]) == (40, 1)
    assert job["skipped"] + job["not_examined"] == 39 and job["not_examined"] >= 3
    told = redrives.dry_run(dlq, filter={"text": "0"}, limit=2)
    assert (told["would_move"], told["messages_total"]) == (2, 39)
    assert told["skipped"] + told["matched"] + told["not_examined"] == 39


def test_rest_of_a_job_for_named_messages_is_not_chosen(redrives, ch, dlq, work):
    die(ch, work, *"abcde")
    id = redrives.dry_run(dlq, filter={"text": "a"})["sample"][0]["id"]
    job = redrives.run(dlq, ids=[id])
    assert (job["moved"], job["skipped"], job["not_examined"]) == (1, 4, 0)
