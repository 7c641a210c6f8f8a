"""Redrives of a cluster go on when the leader of their vhost changes, and move each message once."""

import threading
import time
import urllib.error

import pika
import pytest

from cluster_processes import NAMES

PERSISTENT = pika.BasicProperties(delivery_mode=2)
WITHIN_S = 120.0
MESSAGES, RATE = 1500, 300
PAUSE_S = 0.02  # between two questions to a node


def dead_letters(cluster):
    """Messages that died in `work`, and wait in `dead`."""
    channel = cluster.connect().channel()
    channel.queue_declare("dead", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_declare("work", durable=True, arguments={
        "x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    channel.tx_select()
    for number in range(MESSAGES):
        channel.basic_publish("", "work", str(number).encode(), PERSISTENT)
    channel.tx_commit()
    for _ in range(MESSAGES):
        last = channel.basic_get("work")[0].delivery_tag
    channel.basic_nack(last, multiple=True, requeue=False)
    channel.tx_commit()
    deadline = time.monotonic() + WITHIN_S
    while channel.queue_declare("dead", passive=True).method.message_count < MESSAGES:
        assert time.monotonic() < deadline
    channel.connection.close()


def jobs(cluster):
    """The jobs as a node lists them: each node asks the others."""
    return cluster.request(cluster.running()[0], "GET", "/api/redrives")


def wait_for(cluster, job, holds):
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            found = [one for one in jobs(cluster) if one["id"] == job["id"]]
        except (urllib.error.URLError, OSError):
            found = []
        # No node lists the job while no node leads.
        if len(found) == 1 and holds(found[0]):
            return found[0]
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


class Asked:
    """All nodes are asked for a job, over and over: none may say that there is none."""

    def __init__(self, cluster, job):
        self.unknown, self.is_over = [], threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(cluster, name, job), daemon=True) for name in NAMES]
        for thread in self.threads:
            thread.start()

    def ask(self, cluster, name, job):
        while not self.is_over.is_set():
            try:
                cluster.request(name, "GET", f"/api/redrives/{job['id']}")
            except urllib.error.HTTPError as refused:
                if refused.code == 404:
                    self.unknown.append((name, time.monotonic()))
            except OSError:
                pass  # the node is killed
            self.is_over.wait(PAUSE_S)

    def check(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        assert self.unknown == []


def bodies(cluster, queue):
    channel = cluster.connect().channel()
    found = []
    while (got := channel.basic_get(queue, auto_ack=True))[0]:
        found.append(int(got[2]))
    channel.connection.close()
    return sorted(found)


def kill(cluster):
    cluster.nodes[cluster.leader].kill()
    cluster.leader = None


def transfer(cluster):
    """To a node whose replica may have to catch up first."""
    cluster.transfer_when_possible(next(name for name in NAMES if name != cluster.leader), WITHIN_S)


@pytest.mark.parametrize("change", (kill, transfer), ids=("kill", "transfer"))
def test_job_goes_on_at_the_next_leader(make, change):
    cluster = make()
    dead_letters(cluster)
    # Any node takes the request.
    follower = next(name for name in NAMES if name != cluster.leader)
    job = cluster.request(follower, "POST", "/api/queues/%2F/dead/redrive", {"rate": RATE})
    asked = Asked(cluster, job)
    wait_for(cluster, job, lambda now: now["moved"] >= 2 * RATE)
    change(cluster)
    ended = wait_for(cluster, job, lambda now: now["state"] != "running")
    assert (ended["state"], ended["reason"], ended["moved"] <= MESSAGES) == ("finished", None, True)
    assert bodies(cluster, "work") == list(range(MESSAGES)) and bodies(cluster, "dead") == []
    assert [one["id"] for one in jobs(cluster)] == [job["id"]]
    # A second change: what has ended does not begin again, and is still told.
    cluster.start()
    cluster.transfer_when_possible(next(name for name in NAMES if name != cluster.leader), WITHIN_S)
    assert wait_for(cluster, job, lambda now: now["state"] == "finished") == ended
    asked.check()


def test_limit_holds_over_changes_and_a_cancelled_job_stays_so(make):
    cluster = make()
    dead_letters(cluster)
    limited = cluster.request(
        cluster.leader, "POST", "/api/queues/%2F/dead/redrive", {"rate": RATE, "limit": 3 * RATE})
    wait_for(cluster, limited, lambda now: now["moved"] >= RATE)
    kill(cluster)
    ended = wait_for(cluster, limited, lambda now: now["state"] == "finished")
    cluster.start()
    moved = len(bodies(cluster, "work"))
    # What was reserved, and not moved before the kill, is not moved any more.
    assert RATE <= moved <= 3 * RATE and ended["moved"] <= 3 * RATE
    job = cluster.request(cluster.leader, "POST", "/api/queues/%2F/dead/redrive", {"rate": 10})
    wait_for(cluster, job, lambda now: now["moved"] >= 1)
    follower = next(name for name in NAMES if name != cluster.leader)
    cluster.request(follower, "DELETE", f"/api/redrives/{job['id']}")
    before = len(bodies(cluster, "work"))
    kill(cluster)
    assert wait_for(cluster, job, lambda now: now["state"] == "cancelled")["moved"] <= before
    time.sleep(1.0)
    assert bodies(cluster, "work") == []
