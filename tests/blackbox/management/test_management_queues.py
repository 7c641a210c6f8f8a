"""The management API: queues, what is in them, who sees them, and how lists are cut into pages."""

import time

import pytest

from brokers import quoted
from client import Client
from definitions import Policy, User
from patience import becomes

NOT_FOUND_REASON = "Not Found"


@pytest.fixture
def http(under):
    """The HTTP API of the shared broker."""
    return under.shared().api


def chosen(object, *names):
    return {name: object.get(name) for name in names}


def path_of(queue, vhost="/"):
    return "/api/queues/" + quoted(vhost, queue)


def leader_and_members(http):
    """The nodes that have the queues of the default vhost. Only Leveret tells of a vhost; the other broker is one node."""
    vhost, node = http.ask("/api/vhosts/%2F").json, http.ask("/api/overview").json["node"]
    return vhost.get("leader", node), vhost.get("members", [node])


def test_a_queue_is_as_it_was_declared(http, ch, kind):
    q = ch.queue(kind, message_ttl=60000, expires=3600000, dead_letter_exchange="dlx")
    shown = http.ask(path_of(q)).json
    expected = {"name": q, "vhost": "/", "type": kind, "durable": True, "auto_delete": False, "exclusive": False}
    assert chosen(shown, *expected) == expected
    assert shown["arguments"] == {
        "x-queue-type": kind, "x-message-ttl": 60000, "x-expires": 3600000, "x-dead-letter-exchange": "dlx",
    }
    assert type(shown["arguments"]["x-message-ttl"]) is int
    assert shown["node"] == leader_and_members(http)[0]
    # RabbitMQ knows the rest when it has gathered statistics.
    rest = {
        "policy": None, "operator_policy": None, "effective_policy_definition": {}, "state": "running", "messages": 0,
        "consumers": 0, "consumer_details": [],
    }
    becomes(lambda: chosen(http.ask(path_of(q)).json, *rest), rest)


def test_arguments_of_all_kinds_are_shown(http, ch):
    q = ch.queue(arguments={"list": [1, "two", [3]], "table": {"on": True}, "big": 2**62, "small": -1, "text": "é"})
    assert http.ask(path_of(q)).json["arguments"] == {
        "x-queue-type": "classic", "list": [1, "two", [3]], "table": {"on": True}, "big": 2**62, "small": -1,
        "text": "é",
    }


def test_a_transient_queue_says_so(http, ch):
    q = ch.queue(durable=False, exclusive=True, auto_delete=True)
    expected = {"durable": False, "exclusive": True, "auto_delete": True}
    becomes(lambda: chosen(http.ask(path_of(q)).json, *expected), expected)


def test_a_queue_says_what_delays_its_messages_and_until_when(http, ch):
    q = ch.queue("quorum", delayed_retry_type="failed", delayed_retry_min=60_000, delayed_retry_max=120_000)
    shown = lambda: chosen(http.ask(path_of(q)).json, "delayed_retry", "messages_delayed")
    becomes(shown, {"delayed_retry": "failed (min: 60000ms, max: 120000ms)", "messages_delayed": 0})
    assert not {"next_delayed_at", "last_delayed_at"} & set(http.ask(path_of(q)).json)
    ch.publish(q, "a", "b")
    before_ms = time.time() * 1000
    for _ in range(2):
        ch.reject(ch.get_unacked(q), requeue=True)
    ch.sync()
    after_ms = time.time() * 1000
    becomes(lambda: shown()["messages_delayed"], 2)
    queue = http.ask(path_of(q)).json
    # Whole milliseconds, each a delay of 60 s after its message came back.
    times = [queue["next_delayed_at"], queue["last_delayed_at"]]
    assert before_ms - 1 <= times[0] - 60_000 <= times[1] - 60_000 <= after_ms + 1
    assert all(type(time) is int for time in times)


@pytest.mark.better
def test_a_queue_says_by_which_rule_of_leveret_its_messages_are_delayed(http, ch, by_broker):
    if by_broker(rabbitmq=True, leveret=False):
        pytest.skip("RabbitMQ has one rule")
    shown = lambda *kind, **rule: http.ask(path_of(ch.queue(*kind, delayed_retry_type="all", **rule))).json["delayed_retry"]
    assert shown("classic", delayed_retry_schedule="1s,5s") == "all (schedule: 1s,5s)"
    growing = {"delayed_retry_min": 5, "delayed_retry_max": 9, "delayed_retry_multiplier": 2, "delayed_retry_jitter": 0.5}
    assert shown("quorum", **growing) == "all (min: 5ms, max: 9ms, multiplier: 2, jitter: 0.5)"


def test_a_quorum_queue_says_what_is_in_force(http, ch):
    q = ch.queue("quorum", delivery_limit=3)
    leader, members = leader_and_members(http)
    expected = {
        "delivery_limit": 3, "leader": leader, "members": members, "online": members, "delayed_retry": "disabled",
        "messages_delayed": 0, "messages_dlx": 0,
    }
    becomes(lambda: chosen(http.ask(path_of(q)).json, *expected), expected)
    unlimited = ch.queue("quorum", name="u", delivery_limit=-1)
    becomes(lambda: http.ask(path_of(unlimited)).json.get("delivery_limit"), "unlimited")
    default = ch.queue("quorum", name="d")
    becomes(lambda: http.ask(path_of(default)).json.get("delivery_limit"), 20)


def test_messages_and_bytes_are_counted(http, ch):
    q = ch.queue()
    ch.publish(q, "12345", "12345", "12345")
    ch.get_unacked(q, 1)
    expected = {
        "messages": 3, "messages_ready": 2, "messages_unacknowledged": 1, "message_bytes": 15,
        "message_bytes_ready": 10, "message_bytes_unacknowledged": 5, "consumers": 0,
    }
    becomes(lambda: chosen(http.ask(path_of(q)).json, *expected), expected)
    [listed] = [one for one in http.ask("/api/queues/%2F").json if one["name"] == q]
    assert chosen(listed, *expected) == expected


def amounts(http, queue, *names):
    return chosen(http.ask(path_of(queue)).json, *names)


def test_messages_that_outlive_a_restart_are_counted(http, ch):
    q, transient, exclusive = ch.queue(), ch.queue(name="t", durable=False), ch.queue(name="e", exclusive=True)
    quorum = ch.queue("quorum", name="qq")
    for queue in (q, transient, exclusive, quorum):
        ch.publish(queue, "12345", "1234567", delivery_mode=2)
        ch.publish(queue, "123", delivery_mode=1)
        ch.publish(queue, "1")
    in_q = [ch.get_unacked(q), ch.get_unacked(q)]
    ch.get_unacked(quorum)
    names = ("messages", "messages_persistent", "message_bytes_persistent")
    becomes(lambda: amounts(http, q, *names), dict(zip(names, (4, 2, 12))))
    for queue in (transient, exclusive):
        becomes(lambda queue=queue: amounts(http, queue, *names), dict(zip(names, (4, 0, 0))))
    becomes(lambda: amounts(http, quorum, *names[:2]), dict(zip(names, (4, 4))))
    shown = http.ask(path_of(quorum)).json
    assert shown["message_bytes_persistent"] == shown["message_bytes"]
    ch.ack(in_q[0])
    ch.nack(in_q[1], requeue=True)
    becomes(lambda: amounts(http, q, *names), dict(zip(names, (3, 1, 7))))
    ch.purge(q)
    becomes(lambda: amounts(http, q, *names), dict(zip(names, (0, 0, 0))))


@pytest.mark.parametrize("settings", ["", "vm_memory_high_watermark_paging_ratio = 0.00001\n"])
def test_counts_of_messages_in_memory_and_of_persistent_ones(defined, settings, under, prefix):
    """Of a queue that is in memory and of one that is for the most part on disk; Leveret's alone."""
    if under.name != "leveret":
        pytest.skip("RabbitMQ's figures depend on rates")
    ch = defined(settings)
    broker = defined.client.broker
    q = ch.queue()
    size, count, taken = 40_000, 300, 200
    for _ in range(count // 4):
        ch.publish(q, *3 * [size * "x"], delivery_mode=2)
        ch.publish(q, size * "x", delivery_mode=1)

    def check(ready, unacked, persistent):
        shown = broker.api.ask(path_of(q)).json
        found = chosen(shown, "messages_ready", "messages_unacknowledged", "messages_persistent")
        assert tuple(found.values()) == (ready, unacked, persistent)
        paged_out = shown["messages_paged_out"]
        assert (paged_out > 0) == bool(settings)
        assert shown["messages_unacknowledged_ram"] == unacked
        assert shown["messages_ready_ram"] == ready - paged_out
        assert shown["messages_ram"] == ready + unacked - paged_out
        for kind, messages in [("", ready + unacked), ("_persistent", persistent), ("_paged_out", paged_out),
                               ("_ram", ready + unacked - paged_out)]:
            assert shown["message_bytes" + kind] == messages * size, kind
        metrics = broker.api.ask("/metrics/per-object").text.decode()
        for name, value in [("messages_persistent", persistent), ("messages_persistent_bytes", persistent * size)]:
            [line] = [line for line in metrics.splitlines()
                      if line.startswith(f"rabbitmq_queue_{name}{{") and f'queue="{q}"' in line]
            assert float(line.split()[-1]) == value

    check(count, 0, count // 4 * 3)
    messages = ch.get_unacked(q, taken)
    check(count - taken, taken, count // 4 * 3)
    for message in messages[: taken // 2]:
        ch.ack(message)
    ch.sync()
    check(count - taken, taken // 2, (count - taken // 2) // 4 * 3)
    # What is in pages is found there and not counted twice, and what left them is not counted any more.
    broker.stop_and_start_again()
    left = (count - taken // 2) // 4 * 3
    check(left, 0, left)
    client = Client(broker, prefix)
    assert len(client.channel().drain(q)) == left
    client.close()


def test_message_stats_count_events(http, ch):
    q = ch.queue()
    ch.publish(q, *"abcdefg")
    ch.ack(ch.get_unacked(q))
    ch.nack(ch.get_unacked(q), requeue=True)
    ch.get(q)
    consumer = ch.consume(q, prefetch=2)
    ch.ack(consumer.next())
    consumer.next_bodies(2)
    expected = {
        "publish": 7, "deliver": 3, "deliver_no_ack": 0, "get": 2, "get_no_ack": 1, "deliver_get": 6, "ack": 2,
        "redeliver": 1,
    }
    becomes(lambda: chosen(http.ask(path_of(q)).json.get("message_stats", {}), *expected), expected)


@pytest.mark.better
def test_deaths_are_counted_by_reason(http, ch, dlq, by_broker):
    q = ch.queue(dead_letter_exchange="", dead_letter_routing_key=dlq)
    lost = ch.queue(name="lost")
    ch.publish(q, "a", expiration="1")
    ch.reaches(dlq, 1)
    ch.publish(q, "b")
    ch.nack(ch.get_unacked(q))
    ch.publish(lost, "c", expiration="1")
    ch.reaches(dlq, 2)
    ch.reaches(lost, 0)
    nothing = {"rejected": 0, "expired": 0, "maxlen": 0, "delivery_limit": 0}
    names = ("expired", "dead_lettered", "dead_lettered_by_reason", "dropped", "dropped_by_reason")
    empty = {reason: {} for reason in nothing}
    for queue, counts in (
        (q, (1, 2, nothing | {"expired": 1, "rejected": 1}, 0, empty)),
        (lost, (1, 0, nothing, 1, empty | {"expired": {"no_dead_letter_exchange": 1}})),
    ):
        expected = by_broker(rabbitmq=dict.fromkeys(names), leveret=dict(zip(names, counts, strict=True)))
        becomes(lambda q=queue: chosen(http.ask(path_of(q)).json.get("message_stats", {}), *names), expected)


@pytest.mark.better
def test_refused_publishes_are_counted_where_they_were_published_and_where_refused(http, ch, by_broker):
    q = ch.queue(name="full", max_length=2, overflow="reject-publish")
    exchange = ch.exchange("fanout")
    ch.bind(q, exchange)
    of_leveret = lambda **fields: by_broker(rabbitmq=dict.fromkeys(fields), leveret=fields)

    def stats(path, *names):
        return lambda: chosen(http.ask(path).json.get("message_stats", {}), *names)

    assert ch.publish("k", "a", exchange=exchange) == "a"
    assert chosen(http.ask(path_of(q)).json, "refuses_publishes") == of_leveret(refuses_publishes=False)
    assert ch.publish("k", *"bcde", exchange=exchange) == "aNNN"
    assert chosen(http.ask(path_of(q)).json, "refuses_publishes") == of_leveret(refuses_publishes=True)
    becomes(stats(path_of(q), "publish", "refused", "dropped"), {"publish": 5} | of_leveret(refused=3, dropped=0))
    at = "/api/exchanges/" + quoted("/", exchange)
    becomes(stats(at, "publish_in", "publish_out", "refused"), {"publish_in": 5, "publish_out": 5} | of_leveret(refused=3))
    own = {"publish": 5, "confirm": 2} | of_leveret(refused=3)

    def on_channels():
        counted = [one.get("message_stats", {}) for one in http.ask("/api/channels").json]
        return own in [chosen(one, *own) for one in counted]

    becomes(on_channels, True)


@pytest.mark.better
def test_lost_dead_letters_are_told_from_deaths_without_a_dead_letter_exchange(http, ch, by_broker):
    meant = ch.queue(name="meant")
    lost = ch.queue(name="lost", dead_letter_exchange="", dead_letter_routing_key="nowhere")
    for q in (meant, lost):
        ch.publish(q, "a", "b", expiration="1")
        ch.reaches(q, 0)
    names = ("dropped", "dropped_without_dlx", "dead_letters_lost", "dead_lettered")
    for q, counts in ((meant, (2, 2, 0, 0)), (lost, (2, 0, 2, 0))):
        expected = by_broker(rabbitmq=dict.fromkeys(names), leveret=dict(zip(names, counts, strict=True)))
        becomes(lambda q=q: chosen(http.ask(path_of(q)).json.get("message_stats", {}), *names), expected)


def test_consumer_capacity_falls_while_consumers_are_at_their_limit(http, ch):
    q = ch.queue()
    becomes(lambda: http.ask(path_of(q)).json.get("consumer_capacity"), 0)
    ch.consume(q, prefetch=1)
    ch.publish(q, "a", "b")
    shares = []

    def is_low():
        shown = http.ask(path_of(q)).json
        shares.append(shown.get("consumer_capacity"))
        return shares[-1] is not None and shares[-1] < 0.8 and shares[-1] == shown["consumer_utilisation"]

    becomes(is_low, True)


def test_a_queue_tells_of_its_consumers(http, ch):
    q = ch.queue()
    ch.consume(q, prefetch=7, tag="first", arguments={"x-priority": 5})
    ch.consume(q, prefetch=7, tag="second", auto_ack=True)
    names = ("consumer_tag", "ack_required", "active", "exclusive", "prefetch_count", "arguments", "queue")

    def consumers():
        found = http.ask(path_of(q)).json.get("consumer_details", [])
        return sorted((chosen(one, *names) for one in found), key=lambda one: one["consumer_tag"])

    common = {"active": True, "exclusive": False, "queue": {"name": q, "vhost": "/"}}
    becomes(consumers, [
        {"consumer_tag": "first", "ack_required": True, "arguments": {"x-priority": 5}, "prefetch_count": 7} | common,
        {"consumer_tag": "second", "ack_required": False, "arguments": {}, "prefetch_count": 7} | common,
    ])
    becomes(lambda: http.ask(path_of(q)).json["consumers"], 2)
    [details] = {one["channel_details"]["user"] for one in http.ask(path_of(q)).json["consumer_details"]}
    assert details == "guest"
    assert "consumer_details" not in http.ask("/api/queues/%2F").json[0]


def test_the_single_active_consumer_is_named(http, ch):
    q = ch.queue(single_active_consumer=True)
    ch.consume(q, tag="first")
    ch.consume(q, tag="second")
    becomes(lambda: http.ask(path_of(q)).json.get("single_active_consumer_tag"), "first")
    alone = ch.queue(name="alone")
    ch.consume(alone, tag="mine", exclusive=True)
    becomes(lambda: http.ask(path_of(alone)).json.get("exclusive_consumer_tag"), "mine")

    def active():
        details = http.ask(path_of(q)).json.get("consumer_details", [])
        return {one["consumer_tag"]: one["active"] for one in details}

    becomes(active, {"first": True, "second": False})


def test_policies_are_shown_with_what_they_make_together(defined, prefix):
    ch = defined(
        policies=[Policy({"max-length": 10, "message-ttl": 5000}, name="p")],
        operator_policies=[Policy({"max-length": 5}, name="o")],
    )
    q = ch.queue()
    api = defined.client.broker.api
    expected = {
        "policy": prefix + "p", "operator_policy": prefix + "o",
        "effective_policy_definition": {"max-length": 5, "message-ttl": 5000},
    }
    becomes(lambda: chosen(api.ask(path_of(q)).json, *expected), expected)


@pytest.mark.parametrize("path", ["/api/queues/nope", "/api/queues/%2F/nope", "/api/queues/nope/nope", "/api/queues/%FF"])
def test_absent_queues_are_404(http, path):
    answer = http.ask(path)
    assert (answer.status, answer.json) == (404, {"error": "Object Not Found", "reason": "Not Found"})


@pytest.mark.parametrize("tag, sees", [("management", False), ("monitoring", False), ("administrator", True)])
def test_queues_are_for_those_who_have_permissions(defined, prefix, tag, sees):
    vhost = prefix + "v"
    ch = defined(vhosts=[vhost], users=[User("bob", vhost=vhost, tags=(tag,))])
    q = ch.queue()
    bob, api = prefix + "bob", defined.client.broker.api
    names = [one["name"] for one in api.ask("/api/queues", user=bob).json]
    assert (q in names) is sees
    assert api.ask("/api/queues/" + quoted(vhost), user=bob).json == []
    for path in ("/api/queues/%2F", path_of(q)):
        answer = api.ask(path, user=bob)
        assert answer.status == (200 if sees else 404)
        if not sees:
            assert answer.json["reason"] == NOT_FOUND_REASON


@pytest.fixture
def five(http, ch, prefix):
    """`five(query)`: the answer about five queues of this test, unless the query has a filter of its own."""
    for name in ("a1", "a2", "b1", "B2", "c.3"):
        ch.queue(name=name)

    def ask(query):
        return http.ask(f"/api/queues?{query}" + ("" if "name=" in query else f"&name={prefix}"))

    return ask


def test_a_list_comes_in_pages(five):
    page = five("page=2&page_size=2&columns=name&sort=name").json
    assert len(page.pop("items")) == 2
    assert page.pop("total_count") >= 5
    assert page == {"filtered_count": 5, "item_count": 2, "page": 2, "page_count": 3, "page_size": 2}
    last = five("page=3&page_size=2&sort=name").json
    assert (last["item_count"], len(last["items"])) == (1, 1)
    assert five("page=1").json["page_size"] == 100


def test_a_page_is_filtered_by_name(five, prefix):
    names = [five(f"page=1&sort=name&columns=name&{query}").json["items"] for query in (
        f"name={prefix}A", f"name={prefix}a.", f"name={prefix}.*[ab]1&use_regex=true", f"name=^{prefix}[AB]&use_regex=true",
        f"name={prefix}(&use_regex=true", f"name={prefix}nothing", f"name={prefix}.*%5C.3&use_regex=true",
    )]
    found = [len(items) for items in names]
    assert found == [2, 0, 2, 4, 0, 0, 1]


def test_a_list_is_sorted(five, prefix):
    names = [{"name": prefix + name} for name in ("B2", "a1", "a2", "b1", "c.3")]
    assert five("page=1&columns=name").json["items"] == names
    assert five("page=1&sort=name&columns=name").json["items"] == names
    assert five("page=1&sort_reverse=true&columns=name").json["items"] == names[::-1]
    assert five("page=1&sort=name&sort_reverse=true&columns=name").json["items"] == names[::-1]


def test_a_list_is_sorted_by_what_lies_deeper(http, ch, prefix):
    for name, limit in (("x", 5), ("y", 30), ("z", 7)):
        ch.queue("quorum", name=name, delivery_limit=limit)
    page = http.ask(f"/api/queues?page=1&name={prefix}&sort=arguments.x-delivery-limit&columns=arguments").json
    limits = [one["arguments"]["x-delivery-limit"] for one in page["items"]]
    assert limits == [5, 7, 30]


def paths_of(value, path=""):
    """The paths with dots of all that lies in an object."""
    for name, below in value.items():
        yield path + name
        if isinstance(below, dict):
            yield from paths_of(below, f"{path}{name}.")


@pytest.mark.parametrize("resource", ["queues", "exchanges", "connections", "channels", "consumers"])
def test_a_page_is_sorted_as_the_whole_list(under, http, ch, prefix, resource):
    """A page formats its own rows only; each field of a row puts all rows in the order of the whole list."""
    if under.name == "rabbitmq" and resource == "consumers":
        pytest.skip("RabbitMQ's list of consumers has no pages")
    for number, kind in enumerate(("classic", "quorum", "classic")):
        queue = ch.queue(kind, name=f"{kind}{number}")
        ch.publish(queue, *"abc"[number:])
        ch.consume(queue, tag=f"{prefix}{number}")
    # Samples go on: rates and times of others may change between two requests.
    shown = {resource: "name,vhost,number,consumer_tag,arguments"}
    whole = http.ask(f"/api/{resource}?msg_rates_age=60&msg_rates_incr=5").json
    paths = sorted({path for row in whole for path in paths_of(row)} | {"nope", "message_stats.nope"})
    moving = ("_details", "idle_since", "_cnt", "_oct", "reductions", "capacity", "utilisation", "send_pend")
    assert len(paths) > 10
    for path in paths:
        if any(part in path for part in moving):
            page = http.ask(f"/api/{resource}?page=1&page_size=500&sort={path}")
            assert page.status == 200
            continue
        order = f"sort={path}&sort_reverse=true&columns={shown[resource]}"
        items = http.ask(f"/api/{resource}?page=1&page_size=500&{order}").json["items"]
        assert items == http.ask(f"/api/{resource}?{order}").json[:500], path


def test_columns_are_chosen(http, ch):
    q = ch.queue(message_ttl=60000)
    ch.publish(q, "a")
    becomes(lambda: http.ask(path_of(q) + "?columns=name,message_stats.publish").json,
               {"name": q, "message_stats": {"publish": 1}})
    arguments = {"x-queue-type": "classic", "x-message-ttl": 60000}
    assert http.ask(path_of(q) + "?columns=name,arguments.x-message-ttl").json == {"name": q, "arguments": arguments}


def test_statistics_can_be_left_out(http, ch, kind):
    q = ch.queue(kind)
    ch.publish(q, "a", "b")
    fields = {"name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments", "node", "state", "policy",
              "operator_policy", "effective_policy_definition"}
    statistics = {"message_bytes", "consumers", "message_stats", "consumer_details"}
    [listed] = [one for one in http.ask("/api/queues/%2F?disable_stats=true").json if one["name"] == q]
    assert fields <= listed.keys() and not (statistics | {"messages"}) & listed.keys()
    query = "?disable_stats=true&enable_queue_totals=true"
    expected = {"messages": 2, "messages_ready": 2, "messages_unacknowledged": 0}

    def totals():
        [listed] = [one for one in http.ask("/api/queues/%2F" + query).json if one["name"] == q]
        assert not statistics & listed.keys()
        return chosen(listed, *expected)

    becomes(totals, expected)


@pytest.mark.parametrize("query, error, reason", [
    ("page=0&page_size=2", "invalid_pagination_parameters", "Invalid pagination parameters: page number 0, page size 2"),
    ("page=-1", "invalid_pagination_parameters", "Invalid pagination parameters: page number -1, page size undefined"),
    ("page=1&page_size=501", "invalid_pagination_parameters",
     "Invalid pagination parameters: page number 1, page size 501"),
    ("page=1&page_size=0", "invalid_pagination_parameters", "Invalid pagination parameters: page number 1, page size 0"),
    ("page=x", "bad_request", "Pagination parameters are invalid"),
    ("page=1.5", "bad_request", "Pagination parameters are invalid"),
    ("page=1&page_size=", "bad_request", "Pagination parameters are invalid"),
    ("page_size=abc", "bad_request", "Pagination parameters are invalid"),
    ("page=2&name=no-queue-has-this", "page_out_of_range", "Page out of range, page: 2 page size: 100, len: 0"),
])
def test_pages_that_are_not_there_are_refused(http, query, error, reason):
    answer = http.ask("/api/queues?" + query)
    assert (answer.status, answer.json) == (400, {"error": error, "reason": reason})


def test_the_detailed_list_has_every_queue(ch, api):
    q = ch.queue()
    queues = api.ask("/api/queues/detailed").json
    assert [queue["vhost"] for queue in queues if queue["name"] == q] == ["/"]
    page = api.ask("/api/queues/detailed?page=1&name=" + q).json
    assert [queue["name"] for queue in page["items"]] == [q]
