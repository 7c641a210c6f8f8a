"""One message that becomes many: chains and fan-outs of queues, beside a bystander in another vhost."""

import time

from memory_of import peak_bytes
from work_broker import LIMIT_BYTES, Bystander, count, declare, publish, wait_until

MIB = 1 << 20
# By the stopwatch. Some hundredths of a second are the rule; the rest is for a busy disk.
STALL_MAX_S = 2.0
CHAIN = 200
LAYER = 100


def chain(channel, length, ttl_ms=0):
    """Queues that hand on what they get, with all its keys."""
    for number in range(length):
        channel.exchange_declare(f"x{number}", "fanout", durable=True)
    for number in range(length):
        is_last = number == length - 1
        declare(channel, f"chain-{number}", None if is_last else ttl_ms, None if is_last else f"x{number + 1}")
        channel.queue_bind(f"chain-{number}", f"x{number}")
    return "x0", f"chain-{length - 1}"


def fares(bystander, what):
    latencies_s = bystander.latencies_s()
    worst, p99 = latencies_s[-1], latencies_s[len(latencies_s) * 99 // 100]
    print(f"{what}: the bystander's worst {worst * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms")
    assert bystander.worst_s < STALL_MAX_S


def test_a_message_with_many_keys_goes_through_a_chain(broker):
    bystander = Bystander(broker)
    channel = broker.channel()
    first, last = chain(channel, CHAIN)
    before = peak_bytes(broker.process.pid)
    bystander.latencies_s()
    began = time.monotonic()
    publish(channel, "k", headers={"CC": [f"{number:0>110}" for number in range(1000)]}, exchange=first)
    wait_until(lambda: count(channel, last) == 1, "the end of the chain")
    grown = peak_bytes(broker.process.pid) - before
    print(f"{time.monotonic() - began:.2f} s, {grown / MIB:.0f} MiB")
    fares(bystander, "a chain with many keys")
    assert grown < 250 * MIB
    # pika has negotiated frames of 131072 bytes; a header that is longer would end its connection.
    _, properties, _ = channel.basic_get(last)
    headers = properties.headers
    assert headers["x-death"][0]["queue"] == f"chain-{CHAIN - 2}"
    assert headers["x-death"][-1]["queue"] == "chain-0"
    assert len(headers["x-death"]) + headers["x-death-omitted"] == CHAIN - 1
    assert broker.metric("rabbitmq_global_messages_death_headers_cut_total") == CHAIN - 1
    bystander.stop()
    broker.assert_well()


def test_a_large_message_goes_through_a_chain(broker):
    bystander = Bystander(broker)
    channel = broker.channel()
    first, last = chain(channel, 60)
    before = peak_bytes(broker.process.pid)
    bystander.latencies_s()
    publish(channel, "", b"." * (8 * MIB), exchange=first)
    wait_until(lambda: count(channel, last) == 1, "the end of the chain")
    grown = peak_bytes(broker.process.pid) - before
    print(f"{grown / MIB:.0f} MiB")
    fares(bystander, "a chain with a large message")
    assert grown < 250 * MIB
    bystander.stop()
    broker.assert_well()


def layers(channel):
    """Three layers of queues: what expires in one goes to all of the next."""
    for layer in range(3):
        channel.exchange_declare(f"layer-{layer}", "fanout", durable=True)
    for layer in range(3):
        for number in range(LAYER):
            name = f"q-{layer}-{number}"
            if layer < 2:
                declare(channel, name, 0, f"layer-{layer + 1}")
            else:
                declare(channel, name)
            channel.queue_bind(name, f"layer-{layer}")


def test_fan_outs_wait_for_the_end_of_an_alarm(broker):
    channel = broker.channel()
    layers(channel)
    publisher = broker.channel()
    publisher.confirm_delivery()
    declare(publisher, "start", exchange="layer-0")
    publish(publisher, "start", b"." * 30_000)
    with broker.alarm():
        # A rejection, not a deadline: the deadline could come before the alarm.
        delivery, _, _ = channel.basic_get("start")
        channel.basic_reject(delivery.delivery_tag, requeue=False)
        wait_until(lambda: broker.metric("rabbitmq_global_messages_dying") == 1, "a death that waits")
        free = broker.disk.free_bytes()
        time.sleep(0.3)
        assert count(channel, "q-2-0") == 0
        if broker.disk.is_small:
            assert free - broker.disk.free_bytes() < MIB
    wait_until(lambda: broker.metric("rabbitmq_global_messages_dying") != 1, "the fan-out")
    broker.assert_well()


def test_fan_outs_do_not_fill_the_disk(broker):
    """Ten thousand dead letters of 30 kB are more than the disk holds: they wait when it is nearly full, others live on,
    a start works, and a deletion is a way out."""
    if not broker.disk.is_small:
        broker.set_disk_limit(max(broker.disk.free_bytes() - 64 * MIB, 0))
    bystander = Bystander(broker)
    channel = broker.channel()
    layers(channel)
    declare(channel, "start", 0, "layer-0")
    publish(channel, "start", b"." * 30_000)
    wait_until(lambda: "alarm on" in broker.said(), "the alarm")
    wait_until(lambda: broker.metric("rabbitmq_global_messages_dying") > 0, "deaths that wait")
    time.sleep(0.5)
    broker.assert_well()
    # Pages of long queues may take what is above the reserve; nothing takes that.
    assert (broker.data / "reserve").exists()
    assert broker.disk.free_bytes() > 2 * MIB, f"{broker.disk.free_bytes()} octets are free"
    bystander.stop()
    if not broker.disk.is_small:
        return
    broker.kill()
    took_s = broker.start()
    print(f"started in {took_s:.2f} s with {broker.disk.free_bytes() / MIB:.0f} MiB free")
    channel = broker.channel()
    for layer in range(3):
        for number in range(LAYER):
            channel.queue_delete(f"q-{layer}-{number}")
    wait_until(lambda: broker.disk.free_bytes() > LIMIT_BYTES, "room after the deletion")
    wait_until(lambda: not broker.http("GET", "/api/nodes")[0]["disk_free_alarm"], "the end of the alarm")
    broker.assert_well()
