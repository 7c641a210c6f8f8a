"""What the broker would make by itself waits while an alarm is on, survives a kill, and is made once afterwards."""

import collections
import time

from work_broker import count, declare, publish, wait_until

MESSAGES = 2000


def bodies(channel, queue):
    """Everything in a queue, acknowledged: bodies with how often each came."""
    seen = collections.Counter()
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return seen
        seen[body] += 1


def all_of(count):
    return collections.Counter(b"%d" % number for number in range(count))


def fill(broker, queue):
    """Publishes without waiting for each confirm."""
    channel = broker.channel()
    channel.tx_select()
    for number in range(MESSAGES):
        publish(channel, queue, b"%d" % number)
    channel.tx_commit()
    channel.connection.close()


def fill_held(broker, queue):
    """Fills a queue whose messages expire: a consumer has them until the returned connection is closed, so that none dies
    before the alarm is on."""
    channel, seen = broker.channel(), []
    channel.basic_consume(queue, lambda *_: seen.append(None))
    fill(broker, queue)

    def has_all():
        channel.connection.process_data_events(0)
        return len(seen) == MESSAGES

    wait_until(has_all, "the consumer of all messages")
    return channel.connection


def dying(broker):
    return broker.metric("rabbitmq_global_messages_dying")


def test_a_mass_expiry_waits_and_survives_a_kill(broker):
    channel = broker.channel()
    declare(channel, "dlq")
    declare(channel, "q", 500, "", "dlq")
    holder = fill_held(broker, "q")
    with broker.alarm():
        holder.close()
        wait_until(lambda: dying(broker) == MESSAGES, "all deaths")
        assert channel.basic_get("q")[0] is None
        assert count(channel, "dlq") == 0
        broker.kill()
        broker.config.write_text("disk_free_limit.absolute = 1TB\n")
        broker.start()
        # It starts with the alarm on: what is due waits again.
        channel = broker.channel()
        wait_until(lambda: dying(broker) == MESSAGES, "all deaths again")
        assert channel.basic_get("q")[0] is None
        assert count(channel, "dlq") == 0
    wait_until(lambda: count(channel, "dlq") == MESSAGES, "the dead letters")
    assert bodies(channel, "dlq") == all_of(MESSAGES)
    broker.assert_well()


def test_expiry_without_dead_letters_goes_on(broker):
    channel = broker.channel()
    declare(channel, "q", 500)
    holder = fill_held(broker, "q")
    with broker.alarm():
        assert count(channel, "q") == 0
        holder.close()
        wait_until(lambda: count(channel, "q") == 0, "the expiry")
        assert dying(broker) == 0
    broker.assert_well()


def test_rejects_wait_and_consumers_go_on(broker):
    channel = broker.channel()
    declare(channel, "dlq")
    declare(channel, "q", None, "", "dlq")
    fill(broker, "q")
    rejected = MESSAGES // 2
    with broker.alarm():
        for _ in range(rejected):
            method, _, _ = channel.basic_get("q")
        channel.basic_nack(method.delivery_tag, multiple=True, requeue=False)
        acknowledged = 0
        while True:
            method, _, _ = channel.basic_get("q")
            if method is None:
                break
            channel.basic_ack(method.delivery_tag)
            acknowledged += 1
        assert acknowledged == MESSAGES - rejected
        assert (dying(broker), count(channel, "dlq")) == (rejected, 0)
    wait_until(lambda: count(channel, "dlq") == rejected, "the dead letters")
    assert bodies(channel, "dlq") == all_of(rejected)
    broker.assert_well()


def test_rejected_messages_that_wait_come_back_after_a_kill(broker):
    channel = broker.channel()
    declare(channel, "dlq")
    declare(channel, "q", None, "", "dlq")
    fill(broker, "q")
    with broker.alarm():
        for _ in range(100):
            method, _, _ = channel.basic_get("q")
        channel.basic_nack(method.delivery_tag, multiple=True, requeue=False)
        # The count is behind the nack on its channel, the metric is not.
        assert (count(channel, "q"), dying(broker)) == (MESSAGES - 100, 100)
        broker.kill()
        broker.start()
    channel = broker.channel()
    method, _, _ = channel.basic_get("q")
    assert method.redelivered
    channel.basic_nack(method.delivery_tag, requeue=True)
    found = bodies(channel, "q") + bodies(channel, "dlq")
    assert found == all_of(MESSAGES)
    broker.assert_well()


def test_a_cycle_by_rejects_stops(broker):
    channel = broker.channel()
    declare(channel, "a", None, "", "a")
    publish(channel, "a")
    consumer = broker.channel()
    seen = []

    def reject(_, method, properties, body):
        seen.append(method.delivery_tag)
        consumer.basic_reject(method.delivery_tag, requeue=False)

    consumer.basic_consume("a", reject)

    def has_rejected(messages):
        consumer.connection.process_data_events(0.05)
        return len(seen) >= messages

    wait_until(lambda: has_rejected(50), "the cycle")
    with broker.alarm():
        # What was on its way when the alarm came is rejected, too.
        wait_until(lambda: not has_rejected(len(seen) + 1) and dying(broker) == 1, "a death that waits")
        before = len(seen)
        for _ in range(5):
            consumer.connection.process_data_events(0.05)
        assert len(seen) == before and dying(broker) == 1
    wait_until(lambda: has_rejected(before + 1), "the cycle after the alarm")
    broker.assert_well()


def test_a_redrive_waits(broker):
    channel = broker.channel()
    declare(channel, "dlq")
    declare(channel, "q", 1, "", "dlq")
    declare(channel, "target")
    fill(broker, "q")
    wait_until(lambda: count(channel, "dlq") == MESSAGES, "the dead letters")
    with broker.alarm():
        answer = broker.http("POST", "/api/queues/%2F/dlq/redrive", {"to": {"queue": "target"}})
        time.sleep(0.4)
        assert (count(channel, "dlq"), count(channel, "target")) == (MESSAGES, 0)
    wait_until(lambda: count(channel, "target") == MESSAGES, f"the redrive {answer}")
    assert bodies(channel, "target") == all_of(MESSAGES)
    broker.assert_well()


def test_a_policy_that_shortens_a_queue_waits(broker):
    channel = broker.channel()
    declare(channel, "dlq")
    declare(channel, "q", None, "", "dlq")
    fill(broker, "q")
    with broker.alarm():
        broker.http("PUT", "/api/policies/%2F/short", {"pattern": "^q$", "definition": {"max-length": 10}})
        wait_until(lambda: count(channel, "q") == 10, "the limit")
        assert (dying(broker), count(channel, "dlq")) == (MESSAGES - 10, 0)
        browsed = broker.http("GET", "/api/queues/%2F/q/messages")
        assert len(browsed["messages"] if isinstance(browsed, dict) else browsed) == 10
    wait_until(lambda: count(channel, "dlq") == MESSAGES - 10, "the dead letters")
    broker.assert_well()


def test_a_purge_and_a_deletion_remove_what_waits(broker):
    channel = broker.channel()
    declare(channel, "dlq")
    holders = []
    for name in ("purged", "deleted"):
        declare(channel, name, 500, "", "dlq")
        holders.append(fill_held(broker, name))
    with broker.alarm():
        for holder in holders:
            holder.close()
        wait_until(lambda: dying(broker) == 2 * MESSAGES, "all deaths")
        assert channel.queue_purge("purged").method.message_count == MESSAGES
        assert channel.queue_delete("deleted").method.message_count == MESSAGES
        assert dying(broker) == 0
    time.sleep(0.2)
    assert count(channel, "dlq") == 0
    broker.kill()
    broker.start()
    channel = broker.channel()
    assert (count(channel, "dlq"), count(channel, "purged")) == (0, 0)
    broker.assert_well()
