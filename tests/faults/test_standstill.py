"""A process that stood still itself, as in a virtual machine that was paused: nobody else is to blame for that time."""

import json
import re
import signal
import time

import pika

from test_lost_contact import leader_and_others
from test_lost_disk import in_time
from test_membership import is_well
from test_transfers import Load, leads, transferred

STANDSTILL_S = 5.0
ROUNDS = 3
BLAMES = ("the disk does not answer", "the disk or the processors are too slow", "timed out", "does not read")


def is_of_the_machine(said):
    """True for a write that took seconds by itself: one that has the standstill in it is longer than that."""
    took_s = [int(ms) / 1000 for ms in re.findall(r"longest_write_ms=(\d+)", said)]
    took_s += [float(seconds) for seconds in re.findall(r"a write took ([0-9.]+) ", said)]
    return bool(took_s) and max(took_s) < STANDSTILL_S


def test_leader_that_stood_still_blames_nobody_and_keeps_the_leads_that_it_gets(make):
    cluster = make()
    leader, others = leader_and_others(cluster)
    node = cluster.nodes[leader]
    loads = [Load(cluster, f"load-{number}", "quorum") for number in range(4)]
    for _ in range(ROUNDS):
        before = [len(load.confirmed) for load in loads]
        in_time(cluster, leader, lambda before=before: all(
            len(load.confirmed) > count + 50 for load, count in zip(loads, before)))
        node.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(STANDSTILL_S)
        finally:
            node.process.send_signal(signal.SIGCONT)
        in_time(cluster, leader, lambda: leads(cluster, leader) in others)
        in_time(cluster, leader, lambda: is_well(cluster))
        in_time(cluster, leader, lambda: transferred(cluster, leader))
        before = [len(load.confirmed) for load in loads]
        in_time(cluster, leader, lambda before=before: all(
            len(load.confirmed) > count + 50 for load, count in zip(loads, before)))
        assert leads(cluster, others[0]) == leader
    for load in loads:
        load.check()
    said = node.said()
    assert not [line for line in said.splitlines() if any(blame in line for blame in BLAMES) and not is_of_the_machine(line)]
    assert said.count("this process stood still") == ROUNDS
    assert cluster.errors() == []
    found = json.dumps(cluster.request(leader, "GET", "/api/health/findings"))
    assert "disk" not in found or is_of_the_machine(found), found


def test_clients_of_a_node_that_stood_still_beyond_their_heartbeats_are_still_its_clients(make):
    """A client sends heartbeats all the time; the broker finds them when it goes on."""
    cluster = make(names=("a",))
    node = cluster.nodes["a"]
    host, port = node.address
    client = pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=2))
    # This client sends nothing meanwhile: as if it stood still on the same machine.
    silent = pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=4))
    node.process.send_signal(signal.SIGSTOP)
    try:
        # Its own library would give up the broker after two heartbeats.
        client.sleep(3.0)
        time.sleep(STANDSTILL_S)
    finally:
        node.process.send_signal(signal.SIGCONT)
    silent.channel().queue_declare("silent")
    in_time(cluster, "a", lambda: "this process stood still" in node.said())
    assert "timed out" not in node.said()
