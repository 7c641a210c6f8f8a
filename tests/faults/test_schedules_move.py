"""Cancellations of many scheduled messages while the leader of their vhost changes: a request that is cut off is asked again,
and nothing whose cancellation was confirmed is delivered."""

import threading
import time
import urllib.error

import pika
import pytest

from test_redrives_move import kill, transfer

MESSAGES = 6000
# Longer than any run. The half that is not cancelled comes later.
DELAY_MS = 3_600_000
LATER_MS = 2 * DELAY_MS
# So many have the same name.
NAMED = 500
CHANGES = 3
WITHIN_S = 120.0


def name_of(number):
    """Every second message has one of other names."""
    return f"{'stays' if number % 2 else 'goes'}-{number // (2 * NAMED)}"


def publish(cluster):
    """Messages that wait, of which every second one comes later; a time between both halves, in ms."""
    between_ms = int(time.time() * 1000) + (DELAY_MS + LATER_MS) // 2
    channel = cluster.connect().channel()
    channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    channel.tx_select()
    for number in range(MESSAGES):
        delay = LATER_MS if number % 2 else DELAY_MS
        headers = {"x-opt-delivery-delay": delay, "x-schedule-id": name_of(number), "x-schedule-mode": "add"}
        properties = pika.BasicProperties(delivery_mode=2, headers=headers)
        channel.basic_publish("", "q", str(number).encode(), properties)
    channel.tx_commit()
    channel.connection.close()
    return between_ms


def cancel(cluster, before_ms, answers):
    """Cancels the earlier half, through whichever node answers."""
    while True:
        try:
            path = f"/api/scheduled/%2F?target=queue/q&before={before_ms}"
            answer = cluster.request(cluster.running()[-1], "DELETE", path)
        except urllib.error.HTTPError as refused:
            assert refused.code == 503, refused.read()
        except OSError:
            pass
        else:
            answers.append(answer)
            if answer["complete"] and answer["cancelled"] == 0:
                return
        time.sleep(0.01)


def deliver(cluster, name):
    """Delivers what waits under a name now: how many messages."""
    try:
        return cluster.request(cluster.leader, "POST", f"/api/scheduled/%2F/queue/q/{name}/deliver")["delivered"]
    except urllib.error.HTTPError as refused:
        assert refused.code == 404, refused.read()
        return 0


@pytest.mark.parametrize("change", (kill, transfer), ids=("kill", "transfer"))
def test_cancellations_survive_changes_of_the_leader(make, change):
    cluster = make()
    before_ms = publish(cluster)
    answers = []
    cancels = threading.Thread(target=cancel, args=(cluster, before_ms, answers))
    cancels.start()
    for _ in range(CHANGES):
        cluster.served()
        try:
            change(cluster)
        except urllib.error.HTTPError as refused:
            assert refused.code == 503
        cluster.served()
        cluster.launch_all_but()
        cluster.listen()
    cancels.join(WITHIN_S)
    assert not cancels.is_alive()
    print([answer["cancelled"] for answer in answers])
    # A cancellation of a request that was cut off is not in an answer.
    assert sum(answer["cancelled"] for answer in answers) <= MESSAGES / 2
    channel = cluster.connect().channel()
    for name in sorted({name_of(number) for number in range(MESSAGES)}):
        assert deliver(cluster, name) == (NAMED if name.startswith("stays") else 0), name
    found = []
    while (got := channel.basic_get("q", auto_ack=True))[0]:
        found.append(int(got[2]))
    assert sorted(found) == list(range(1, MESSAGES, 2))
