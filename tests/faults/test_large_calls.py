"""One call that moves more than a batch of the log holds, and a broker that is killed between two of its batches."""

import collections
import zlib

import pika
import pytest

from ledger import number_of

COUNT = 40
MIB = 1 << 20
DURABLE = pika.BasicProperties(delivery_mode=2)
DEAD_LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def connect(broker):
    return pika.BlockingConnection(pika.ConnectionParameters(*broker.address, heartbeat=0))


def contents(broker):
    """Numbers of the messages in both queues, which stay there."""
    found = collections.Counter()
    with connect(broker) as connection:
        channel = connection.channel()
        for queue in ("work", "dead"):
            while (got := channel.basic_get(queue))[0] is not None:
                found[number_of(got[2])] += 1
    return found


@pytest.mark.parametrize("life", range(3))
def test_a_kill_between_two_batches_of_a_call_loses_and_doubles_nothing(broker, rng, life):
    """40 MiB of unacknowledged messages are rejected at once, into a dead-letter queue, on a slow disk."""
    broker.start()
    with connect(broker) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("dead", durable=True)
        channel.queue_declare("work", durable=True, arguments=DEAD_LETTERS)
        payload = rng.randbytes(MIB)
        head = f":{zlib.crc32(payload):08x}:".encode()
        for number in range(COUNT):
            channel.basic_publish("", "work", str(number).encode() + head + payload, DURABLE)
    assert broker.stop() == 0
    broker.start_with(("fsync", 0, 1_000_000, "delay:60", ".log"))
    connection = connect(broker)
    channel = connection.channel()
    for _ in range(COUNT):
        method, _, _ = channel.basic_get("work")
    before = len(broker.injected())
    channel.basic_nack(method.delivery_tag, multiple=True, requeue=False)
    connection.process_data_events(0)
    batches = 1 + life
    assert broker.wait_until(lambda: len(broker.injected()) >= before + batches, 120), broker.injected()
    broker.kill()
    code, text = broker.check()
    assert code == 0 and "nothing is wrong" in text, text
    broker.start()
    assert contents(broker) == collections.Counter(range(COUNT))
    broker.assert_no_panic()
    assert broker.errors() == []
