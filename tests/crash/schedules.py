"""Messages with names that are cancelled, rescheduled, replaced and delivered early, across kills of the broker."""

import time

import pika
from pika.exceptions import UnroutableError

EXCHANGE = "crash.named.later"
HELD = "crash.named.held"
NAMED = ("crash.named.classic", "crash.named.quorum", HELD)
DELAYS_MS = (30, 200, 1000, 3000)
WAITING_MAX = 20
PERIOD_S = 0.002


def declare(channel):
    """Declare the exchange and bind its queue, which exists."""
    channel.exchange_declare(EXCHANGE, "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"})
    channel.queue_bind(HELD, EXCHANGE, HELD)


def operate(channel, delays, rng, stop, period_s=PERIOD_S):
    """Publish messages with names, and change some that wait; wait for the confirm of each."""
    channel.confirm_delivery()
    waiting = []
    while not stop.is_set():
        queue = rng.choice(NAMED)
        old = rng.choice(waiting) if waiting and rng.random() < 0.2 else None
        if old is None:
            waiting.append(publish(channel, delays, queue, None, rng.choice(DELAYS_MS)))
        elif old in waiting:
            waiting.remove(old)
            waiting.append(replace(channel, delays, old, rng.choice(DELAYS_MS)))
        if len(waiting) > WAITING_MAX or rng.random() < 0.5:
            operation = rng.choice((cancel, cancel, reschedule, deliver_now))
            operation(channel, delays, waiting.pop(rng.randrange(len(waiting))), rng.choice(DELAYS_MS))
        time.sleep(period_s)


def publish(channel, delays, queue, name, delay_ms):
    """Publish a message; its queue, name and place."""
    number, [place] = delays.new((queue,), delay_ms)
    name = name or f"name-{number}"
    is_held = queue == HELD
    headers = {"x-delay" if is_held else "x-opt-delivery-delay": delay_ms, "x-schedule-id": name}
    properties = pika.BasicProperties(delivery_mode=2, headers=headers)
    channel.basic_publish(EXCHANGE if is_held else "", queue, f"{number}:{delay_ms}:", properties)
    place.confirmed = True
    return queue, name, place


def replace(channel, delays, old, delay_ms):
    """Publish a message with the name of one that waits, which is gone then unless it was delivered before."""
    queue, name, place = old
    place.may_be_gone = True
    new = publish(channel, delays, queue, name, delay_ms)
    if time.time_ns() < place.not_before_ns:
        place.is_cancelled = True
        delays.operations["replaced"] += 1
    return new


def cancel(channel, delays, message, _):
    """Cancel a message: once that is confirmed, the message never comes."""
    place = message[2]
    place.may_be_gone = True
    if does(channel, message, "cancel"):
        place.is_cancelled = True
        delays.operations["cancelled"] += 1
    else:
        place.may_be_gone = False


def reschedule(channel, delays, message, delay_ms):
    """Give a message another delivery time: once that is confirmed, it does not come before."""
    place = message[2]
    not_before_ns = time.time_ns() + delay_ms * 1_000_000
    place.not_before_ns = min(place.not_before_ns, not_before_ns)
    place.ever_before_ns = min(place.ever_before_ns, not_before_ns)
    if does(channel, message, "reschedule", **{"x-opt-delivery-delay": delay_ms}):
        place.not_before_ns = not_before_ns
        delays.operations["rescheduled"] += 1


def deliver_now(channel, delays, message, _):
    """Deliver a message at once."""
    message[2].not_before_ns = message[2].ever_before_ns = 0
    delays.operations["delivered"] += does(channel, message, "deliver-now")


def does(channel, message, operation, **headers):
    """True if the operation is confirmed; False if no such message waits, as the broker says."""
    queue, name, _ = message
    target = f"exchange/{EXCHANGE}" if queue == HELD else f"queue/{queue}"
    headers |= {"x-schedule-op": operation, "x-schedule-target": target, "x-schedule-id": name}
    try:
        channel.basic_publish("amq.schedule", "", b"", pika.BasicProperties(headers=headers), mandatory=True)
    except UnroutableError:
        return False
    return True
