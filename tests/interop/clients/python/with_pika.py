"""pika, through every scenario; ../../README.md says what each does."""

import pika

import runner


def connect():
    parameters = pika.ConnectionParameters(runner.HOST, runner.PORT)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"hello")
        _, _, body = channel.basic_get(queue, auto_ack=True)
        assert body == b"hello", body


runner.run(pika.__version__, {"connect": connect})
