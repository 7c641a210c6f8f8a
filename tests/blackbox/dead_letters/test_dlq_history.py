"""The history of dead letters (`/api/dead-letter-history`): when, where, why and by whom a message died. RabbitMQ has none."""

import time
from urllib.parse import urlencode

import pytest
from brokers import quoted
from client import Client
from definitions import User
from expectations import NOTHING, dead_letters_to
from patience import Patience

pytestmark = pytest.mark.better


@pytest.fixture(autouse=True)
def only_leveret(by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has no such path")


class History:
    """The deaths that a broker knows."""

    def __init__(self, api, user="guest"):
        self.api, self.user = api, user

    def ask(self, vhost="/", **query):
        """The whole answer."""
        query = urlencode(query, doseq=True)
        return self.api.ask("/api/dead-letter-history/" + quoted(vhost) + (query and "?" + query), user=self.user)

    def __call__(self, **query):
        answer = self.ask(**query)
        assert answer.status == 200, answer.text
        return answer.json

    def deaths(self, **query):
        """The deaths, the latest first."""
        return self(**query)["deaths"]


@pytest.fixture
def history(under):
    return History(under.shared().api)


@pytest.fixture
def id(client):
    """A message id that no other test uses."""
    return client.fresh_name("id")


def test_a_reject_names_consumer_user_connection_and_reason(history, ch, kind, id):
    dead = ch.queue(name="dead")
    q = ch.queue(kind, **dead_letters_to(dead))
    before_ms = time.time() * 1000
    ch.publish(q, "m", message_id=id, headers={"order": 7})
    consumer = ch.consume(q, tag="worker-1")
    message = consumer.next()
    ch.publish("", "", exchange="amq.settle", headers={"x-delivery-tag": message.tag, "x-reason": "no stock"})
    ch.reject(message)
    ch.sync()
    [death] = history.deaths(message_id=id)
    assert before_ms - 1000 <= death["time_ms"] <= time.time() * 1000 + 1000
    by = death["settled_by"]
    assert (by["user"], by["consumer_tag"]) == ("guest", "worker-1")
    assert " -> " in by["connection"] and by["channel"] == by["connection"] + " (1)"
    assert {name: death[name] for name in death if name not in ("id", "time_ms", "settled_by", "properties")} == {
        "queue": q, "reason": "rejected", "exchange": "", "routing_key": q, "outcome": "dead_lettered", "cause": None,
        "dead_letter_exchange": "", "dead_letter_routing_key": dead, "targets": [dead], "targets_total": 1,
        "copies_dropped": 0, "policy": None, "operator_policy": None, "reason_given": "no stock", "message_id": id,
        "headers_complete": True,
    }
    assert death["properties"]["headers"]["order"] == 7


def test_a_chain_of_deaths_outlives_the_message(history, ch, kind, id):
    second = ch.queue(kind, name="second", max_length=0)
    first = ch.queue(kind, name="first", message_ttl=1, **dead_letters_to(second))
    ch.publish(first, "m", message_id=id)
    deaths = ch.poll(lambda: len(found := history.deaths(message_id=id)) == 2 and found, what="both deaths")
    assert [(death["queue"], death["reason"], death["outcome"], death["cause"]) for death in deaths] == [
        (second, "maxlen", "dropped", "no_dead_letter_exchange"), (first, "expired", "dead_lettered", None)]
    assert deaths[0]["id"] > deaths[1]["id"]
    assert [death["settled_by"] for death in deaths] == [None, None]
    assert deaths[0]["exchange"] == "" and deaths[0]["routing_key"] == second


def test_the_delivery_limit_names_the_last_consumer(history, ch, id):
    dead = ch.queue(name="dead")
    q = ch.queue("quorum", delivery_limit=1, **dead_letters_to(dead))
    ch.publish(q, "m", message_id=id)
    consumer = ch.consume(q, tag="worker")
    for _ in range(2):
        ch.reject(consumer.next(), requeue=True)
    ch.sync()
    [death] = history.deaths(message_id=id)
    assert (death["reason"], death["targets"]) == ("delivery_limit", [dead])
    assert death["settled_by"]["consumer_tag"] == "worker"


def test_deaths_are_found_by_header_queue_and_reason(history, ch, client):
    order = client.fresh_name("order")
    dead = ch.queue(name="dead")
    q = ch.queue(name="q", **dead_letters_to(dead))
    for number in range(5):
        ch.publish(q, "m", headers={"order": order, "number": number})
        ch.reject(ch.get_unacked(q))
    ch.sync()
    numbers = lambda **query: [death["properties"]["headers"]["number"] for death in history.deaths(**query)]
    assert numbers(header="order=" + order) == [4, 3, 2, 1, 0]
    assert numbers(header=["order=" + order, "number=3"]) == [3]
    assert numbers(header="order=" + order + "x") == []
    assert numbers(queue=q, reason="rejected", header="number") == [4, 3, 2, 1, 0]
    assert numbers(queue=q, reason="expired") == [] and numbers(queue=dead) == []
    page = history(queue=q, count=2)
    more = history(queue=q, count=2, cursor=page["cursor"])
    rest = history(queue=q, count=2, cursor=more["cursor"])
    assert [death["properties"]["headers"]["number"] for death in page["deaths"] + more["deaths"] + rest["deaths"]] == [
        4, 3, 2, 1, 0]
    assert rest["cursor"] is None


def test_a_policy_is_named(history, defined_by_policy, id):
    ch, name = defined_by_policy
    q = ch.queue(name="q")
    ch.publish(q, "m", message_id=id)
    [death] = ch.poll(lambda: history.deaths(message_id=id), what="the death")
    assert (death["reason"], death["policy"], death["outcome"]) == ("expired", name, "dropped")


@pytest.fixture
def defined_by_policy(history, ch, client):
    """A channel whose queues have the TTL of a policy, and its name."""
    name = client.fresh_name("policy")
    path = "/api/policies/" + quoted("/", name)
    body = {"pattern": "^" + client.prefix, "definition": {"message-ttl": 1}, "apply-to": "queues"}
    assert history.api.ask(path, method="PUT", body=body).status == 201
    yield ch, name
    history.api.ask(path, method="DELETE")


def test_only_readers_of_the_queue_see_its_deaths(defined, prefix, id):
    ch = defined(users=[User("bob", read=NOTHING, tags=["management"]), User("eve", configure=None, tags=["management"]),
                        User("ann", configure=NOTHING, write=NOTHING, tags=["management"])])
    api = defined.client.broker.api
    q = ch.queue(name="q", max_length=0)
    ch.publish(q, "m", message_id=id)
    ch.sync()

    def answer(user, **query):
        return History(api, prefix + user if user else None).ask(message_id=id, **query)

    seen, hidden = answer("ann").json, answer("bob").json
    assert (len(seen["deaths"]), seen["hidden"]) == (1, 0)
    assert (hidden["deaths"], hidden["hidden"]) == ([], 1)
    assert answer("eve").status == 404 and answer(None).status == 401
    assert answer("ann", vhost="nope").status == 404
    assert answer("ann", reason="gone").status == 400


@pytest.fixture
def small(under):
    """A broker that keeps three deaths."""
    if under.name == "rabbitmq":
        pytest.skip("a RabbitMQ that somebody else runs is not stopped")
    broker = under.start("dead_letter_history.max_entries = 3\n")
    yield broker
    broker.stop()


@pytest.fixture
def off(under):
    broker = under.start("dead_letter_history.max_entries = 0\n")
    yield broker
    broker.stop()


def drop(broker, prefix, *ids):
    """Messages that die at once."""
    client = Client(broker, prefix)
    ch = client.connect().channel()
    q = ch.queue(name="dropped", max_length=0)
    for id in ids:
        ch.publish(q, "m", message_id=id)
    ch.sync()
    client.close()


def test_the_answer_says_what_was_forgotten(small, prefix):
    history = History(small.api)
    before = history()
    assert (before["enabled"], before["forgotten"], before["deaths"]) == (True, 0, [])
    drop(small, prefix, "a", "b", "c", "d", "e")
    after = history()
    assert [death["message_id"] for death in after["deaths"]] == ["e", "d", "c"]
    assert after["forgotten"] == 2 and after["kept_since_ms"] >= before["kept_since_ms"]


def test_the_history_can_be_off(off, prefix):
    drop(off, prefix, "a")
    answer = History(off.api)()
    assert (answer["enabled"], answer["forgotten"], answer["deaths"]) == (False, 0, [])


@pytest.fixture
def own(under):
    """A broker that is stopped and killed."""
    broker = under.start()
    yield broker
    broker.stop()


def test_the_history_outlives_a_stop_with_every_fact(own, prefix):
    client = Client(own, prefix)
    ch = client.connect().channel()
    dead = ch.queue(name="dead")
    q = ch.queue(name="q", **dead_letters_to(dead))
    for id in ("a", "b"):
        ch.publish(q, "m", message_id=id, headers={"order": id, "reason": "\u00e4"})
        consumer = ch.consume(q, tag="worker-" + id)
        ch.reject(consumer.next())
        consumer.cancel()
    drop(own, prefix, "c")
    ch.sync()
    client.close()
    before = History(own.api)()
    own.stop_and_start_again()
    after = History(own.api)()
    assert [death["message_id"] for death in after["deaths"]] == ["c", "b", "a"]
    assert after["deaths"] == before["deaths"]
    assert after["forgotten"] == 0 and after["kept_since_ms"] == after["deaths"][-1]["time_ms"]
    # A second time, with a death more.
    drop(own, prefix, "d")
    own.stop_and_start_again()
    assert [death["message_id"] for death in History(own.api).deaths()] == ["d", "c", "b", "a"]


def test_the_history_outlives_a_kill(own, prefix):
    drop(own, prefix, "a", "b")
    patience = Patience()
    while sum(file.read_text().count("\n") for file in own.data_dir.glob("vhosts/*/deaths/new.jsonl")) < 2:
        assert not patience.is_over(), "the deaths are written soon"
        time.sleep(0.05)
    own.kill_and_start_again()
    assert [death["message_id"] for death in History(own.api).deaths()] == ["b", "a"]


def test_files_of_the_history_are_bounded(under, prefix):
    broker = under.start("dead_letter_history.max_entries = 5\n")
    try:
        for run in range(4):
            drop(broker, prefix, *[f"{run}-{number}" for number in range(6)])
            broker.stop_and_start_again()
            deaths = History(broker.api).deaths()
            assert [death["message_id"] for death in deaths] == [f"{run}-{number}" for number in (5, 4, 3, 2, 1)]
            lines = [file.read_text().count("\n") for file in broker.data_dir.glob("vhosts/*/deaths/*.jsonl")]
            assert sum(lines) <= 5 + 6 + 6 + 2
    finally:
        broker.stop()
