"""A long queue is purged or deleted while nothing else happens in its vhost: the vhost goes on."""

import pika
import pytest

QUEUE, OTHER = "long", "other"
COUNT = 3000
WITHIN_S = 60.0
# Whatever can be on disk alone is.
LONG = "vm_memory_high_watermark_paging_ratio = 0\n"
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def purge(cluster, channel):
    channel.queue_purge(QUEUE)


def delete(cluster, channel):
    channel.queue_delete(QUEUE)


def purge_over_http(cluster, channel):
    cluster.request("b", "DELETE", f"/api/queues/%2F/{QUEUE}/contents")


def has_pages(cluster):
    node = cluster.nodes[cluster.leader]
    return any(path.stat().st_size for path in node.data.glob("vhosts/*/pages/*.page"))


@pytest.mark.parametrize("end", (purge, delete, purge_over_http))
def test_vhost_confirms_after_the_end_of_a_long_queue(make, end):
    cluster = make(LONG)
    channel = cluster.connect().channel()
    channel.confirm_delivery()
    channel.queue_declare(OTHER, durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_declare(QUEUE, durable=True)
    for number in range(COUNT):
        channel.basic_publish("", QUEUE, b"x" * 1000, PERSISTENT)
    leader = cluster.nodes[cluster.leader]
    assert leader.wait_until(lambda: has_pages(cluster), WITHIN_S)
    end(cluster, channel)
    # The ends of its messages come to the log late, page by page.
    for _ in range(40):
        channel.connection.sleep(0.05)
        channel.basic_publish("", OTHER, b"y", PERSISTENT)
    assert channel.queue_declare(OTHER, passive=True).method.message_count == 40
