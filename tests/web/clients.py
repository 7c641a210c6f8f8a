"""Clients of the brokers whose pages are used."""

import pika


def connect(broker, **options):
    """A client that is silent while a page is used, for as long as that takes: no heartbeats."""
    return pika.BlockingConnection(pika.ConnectionParameters(*broker.amqp, heartbeat=0, **options))
