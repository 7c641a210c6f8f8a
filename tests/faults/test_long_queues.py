"""Queues longer than memory, with a budget of nothing: every message that can be paged out is, in small pages."""

import time
import urllib.request

import pika
import pytest

import disk

EXIT_DISK = 74
WITHIN_S = 120.0
COUNT = 6000
FREE_FILES_MAX = 64
PAGE_MESSAGES = 64
QUEUE, DEAD = "long", "long.dead"
PAGE = ".page"
# Longer than any run.
ALWAYS = 10**9
EVER_MS = 3_600_000


@pytest.fixture
def broker(leveret_bin, library, tmp_path):
    broker = disk.FaultyBroker(leveret_bin, tmp_path, library, "vm_memory_high_watermark_paging_ratio = 0\n")
    yield broker
    if broker.process and broker.process.poll() is None:
        broker.kill()


def pages(broker):
    return sorted(broker.data.glob(f"vhosts/1/pages/*{PAGE}"))


def written_pages(broker):
    """All of them, once they are written: that happens beside everything else."""
    def are_written():
        sizes = [page.stat().st_size for page in pages(broker)]
        return len(sizes) * PAGE_MESSAGES >= paged_out(broker) and all(sizes)

    assert broker.wait_until(are_written, WITHIN_S)
    return pages(broker)


def fill(broker, expirations=None, arguments=None, delivery_mode=2):
    """Messages with their numbers as bodies, all of them confirmed."""
    connection = broker.connect()
    channel = connection.channel()
    channel.queue_declare(QUEUE, durable=True, arguments=arguments)
    confirmed = 0

    def on_confirm(frame):
        nonlocal confirmed
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        confirmed = max(confirmed, frame.method.delivery_tag)

    channel._impl.confirm_delivery(on_confirm)
    channel.connection.process_data_events(0.01)
    count = len(expirations) if expirations else COUNT
    for number in range(count):
        expiration = str(expirations[number]) if expirations else None
        properties = pika.BasicProperties(delivery_mode=delivery_mode, expiration=expiration)
        channel._impl.basic_publish("", QUEUE, str(number).encode() + b" " * 100, properties)
    while confirmed < count:
        connection.process_data_events(0.01)
    connection.close()


def consume(broker, queue, count, ack=True):
    """The numbers of so many messages, in the order in which they come."""
    connection = broker.connect()
    channel = connection.channel()
    channel.basic_qos(prefetch_count=100)
    numbers = []
    for method, _, body in channel.consume(queue, auto_ack=not ack):
        numbers.append(int(body))
        if ack:
            channel.basic_ack(method.delivery_tag)
        if len(numbers) == count:
            break
    channel.cancel()
    channel.basic_qos(prefetch_count=0)
    connection.close()
    return numbers


def paged_out(broker):
    with urllib.request.urlopen(f"http://{broker.http_address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith("rabbitmq_queue_messages_paged_out ")]
    return int(value)


@pytest.mark.parametrize("delivery_mode", [1, 2])
def test_paged_messages_are_delivered_in_order(broker, delivery_mode):
    broker.start_with()
    fill(broker, delivery_mode=delivery_mode)
    assert len(written_pages(broker)) > FREE_FILES_MAX
    assert COUNT // 2 < paged_out(broker) < COUNT
    assert consume(broker, QUEUE, COUNT) == list(range(COUNT))
    assert paged_out(broker) == 0
    assert len(pages(broker)) <= FREE_FILES_MAX
    broker.assert_no_panic()


def test_a_get_waits_for_what_is_on_disk(broker):
    broker.start_with()
    fill(broker)
    # `basic.get` is faster than the disk.
    broker.rules(("open", 0, ALWAYS, "delay:5", PAGE))
    connection = broker.connect()
    channel = connection.channel()
    for number in range(COUNT):
        method, _, body = channel.basic_get(QUEUE, auto_ack=True)
        assert method, f"nothing instead of message {number}"
        assert int(body) == number
        assert method.message_count == COUNT - number - 1
    assert channel.basic_get(QUEUE) == (None, None, None)
    connection.close()


def test_a_killed_broker_brings_all_of_it_back(broker):
    broker.start_with()
    fill(broker)
    assert consume(broker, QUEUE, 500) == list(range(500))
    for _ in range(2):
        broker.kill()
        broker.start_with()
        assert len(written_pages(broker)) > 10
    assert consume(broker, QUEUE, COUNT - 500) == list(range(500, COUNT))


def test_messages_on_disk_expire_by_their_own_deadlines(broker):
    broker.start_with()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD}
    began = time.monotonic()
    fill(broker, [EVER_MS] * 1500, arguments)
    assert len(written_pages(broker)) > 5
    # So that none expires before all are on the disk, however busy the machine is.
    step_ms = max(1000, round(3000 * (time.monotonic() - began)))
    connection = broker.connect()
    channel = connection.channel()
    channel.queue_purge(QUEUE)
    channel.queue_declare(DEAD, durable=True)
    connection.close()
    # Those that stand first live longest.
    expirations = [steps * step_ms for steps in (4, 3, 2) for _ in range(500)]
    fill(broker, expirations, arguments)
    assert len(written_pages(broker)) > 5
    died = consume(broker, DEAD, len(expirations))
    assert sorted(died) == list(range(len(expirations)))
    lives = [expirations[number] for number in died]
    assert lives == sorted(lives)
    assert paged_out(broker) == 0


def test_messages_due_while_the_broker_was_down_expire_before_clients_connect(broker):
    broker.start_with()
    connection = broker.connect()
    connection.channel().queue_declare(DEAD, durable=True)
    connection.close()
    expirations = [1500 - number for number in range(1500)]
    fill(broker, expirations, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD})
    broker.kill()
    time.sleep(max(expirations) / 1000)
    broker.start_with()
    connection = broker.connect()
    channel = connection.channel()
    assert channel.queue_declare(QUEUE, passive=True).method.message_count == 0
    assert channel.queue_declare(DEAD, passive=True).method.message_count == len(expirations)
    connection.close()


def test_a_page_that_the_disk_does_not_take_stays_in_memory(broker):
    broker.start_with(("write", 3, ALWAYS, "ENOSPC", PAGE))
    fill(broker)
    assert broker.wait_until(lambda: len(broker.said().split("a page stays in memory")) > 10, WITHIN_S)
    assert consume(broker, QUEUE, COUNT) == list(range(COUNT))
    assert broker.stop() == 0
    # Before it is stopped a page may be on its way.
    assert len(pages(broker)) == 3


def test_a_damaged_page_is_never_served(broker):
    broker.start_with()
    fill(broker)
    for page in written_pages(broker):
        octets = bytearray(page.read_bytes())
        octets[len(octets) // 2] ^= 1
        page.write_bytes(octets)
    with pytest.raises(pika.exceptions.AMQPError):
        consume(broker, QUEUE, COUNT)
    assert broker.end() == EXIT_DISK
    (line,) = broker.errors()
    assert "cannot be read" in line and PAGE in line and "bytes have changed" in line, line
    broker.start_with()
    came = consume(broker, QUEUE, COUNT - consumed(broker))
    assert came == list(range(COUNT - len(came), COUNT))


def consumed(broker):
    connection = broker.connect()
    left = connection.channel().queue_declare(QUEUE, passive=True).method.message_count
    connection.close()
    return COUNT - left


@pytest.mark.parametrize("how", ["purge", "delete"])
def test_a_purge_gives_the_space_back(broker, how):
    broker.start_with()
    fill(broker)
    assert len(written_pages(broker)) > FREE_FILES_MAX
    connection = broker.connect()
    channel = connection.channel()
    if how == "purge":
        assert channel.queue_purge(QUEUE).method.message_count == COUNT
    else:
        assert channel.queue_delete(QUEUE).method.message_count == COUNT
    connection.close()
    assert broker.wait_until(lambda: len(pages(broker)) <= FREE_FILES_MAX, WITHIN_S)
    broker.kill()
    broker.start_with()
    connection = broker.connect()
    declared = connection.channel().queue_declare(QUEUE, durable=True)
    assert declared.method.message_count == 0
    connection.close()
    assert paged_out(broker) == 0
