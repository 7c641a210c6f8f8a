"""Cancellations of many scheduled messages while the leader of their vhost changes: a request that is cut off is asked again,
and nothing whose cancellation was confirmed is delivered."""

import threading
import time
import urllib.error

import pika
import pytest

from test_redrives_move import kill

MESSAGES = 6000
DELAY_MS = 20_000
# The half that is not cancelled comes later.
LATER_MS = 40_000
CHANGES = 3
WITHIN_S = 60.0


def publish(cluster):
    """Messages that wait, of which every second one comes later; a time between both halves, in ms."""
    between_ms = int(time.time() * 1000) + (DELAY_MS + LATER_MS) // 2
    channel = cluster.connect().channel()
    channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    channel.tx_select()
    for number in range(MESSAGES):
        delay = LATER_MS if number % 2 else DELAY_MS
        properties = pika.BasicProperties(delivery_mode=2, headers={"x-opt-delivery-delay": delay})
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


@pytest.mark.parametrize("change", (kill, lambda cluster: cluster.transfer()), ids=("kill", "transfer"))
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
    found = set()
    deadline = time.monotonic() + LATER_MS / 1000 + WITHIN_S
    while len(found) < MESSAGES // 2 and time.monotonic() < deadline:
        connection = cluster.connect()
        channel = connection.channel()
        for method, _, body in channel.consume("q", inactivity_timeout=1.0):
            if method is None:
                break
            found.add(int(body))
            channel.basic_ack(method.delivery_tag)
        connection.close()
    assert found == set(range(1, MESSAGES, 2))
