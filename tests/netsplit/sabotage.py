"""Faults that a broker could have, made by hand at the end of a real run: the judges must see each."""

import time
import zlib

import pika

import pairs
import probes
from delays import SCHEDULED
from ledger import HOLD, WORK

PERSISTENT = pika.BasicProperties(delivery_mode=2)


def lose(cluster, channel, books):
    """Somebody takes a confirmed message."""
    number = 0
    while not number or not books.ledgers["/"].messages[number].confirmed:
        _, _, body = channel.basic_get(HOLD, auto_ack=True)
        number = int(body.split(b":")[0])


def double(cluster, channel, books):
    """A message is there twice."""
    method, properties, body = channel.basic_get(HOLD)
    channel.basic_publish("", HOLD, body, properties)
    channel.basic_nack(method.delivery_tag)


def reorder(cluster, channel, books):
    """The first message becomes the last."""
    _, properties, body = channel.basic_get(HOLD, auto_ack=True)
    channel.basic_publish("", HOLD, body, properties)


def bring_back(cluster, channel, books):
    """A message is there after its acknowledgement was durable."""
    number = next(number for number, message in books.ledgers["/"].messages.items() if message.settled == "ack")
    channel.basic_publish("", WORK, f"{number}:{zlib.crc32(b''):08x}:".encode(), PERSISTENT)


def hurry(cluster, channel, books):
    """A message comes before its delivery time."""
    queue = SCHEDULED[1]
    number, _ = books.delays.new((queue,), 60_000)
    channel.basic_publish("", queue, f"{number}:0:".encode(), PERSISTENT)


def halve(cluster, channel, books):
    """A message reaches one of two queues."""
    channel.basic_get(pairs.LEFT, auto_ack=True)


def confirm(cluster, channel, books):
    """Nodes that should reach no majority confirm."""
    silence = probes.Silence(cluster, list(cluster.nodes))
    silence.begin()
    time.sleep(1.0)
    silence.end()


SABOTAGES = {one.__name__.replace("_", "-"): one for one in (lose, double, reorder, bring_back, hurry, halve, confirm)}
