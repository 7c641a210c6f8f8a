"""Clients of a node that does not lead their vhost: the node passes on their octets to the leader."""

import hashlib
import hmac
import json
import os
import random
import socket
import ssl
import struct
import time

import pika
import pytest

from certificates import Authority
from patience import PATIENCE_S, Patience, eventually

pytestmark = [pytest.mark.better]

CROWD = 200
LARGE_BYTES = 12 * 1024 * 1024
# Far less than a heartbeat takes, and than an election.
AT_ONCE_S = 2.0
HEARTBEAT_S = 2


def leader_of(cluster):
    """The name of the node that leads the vhost /, as all running nodes say."""
    running = [node for node in cluster.nodes.values() if node.alive]
    names = {node.api.do("GET", "/api/vhosts/%2F").get("leader") for node in running}
    return names.pop() if len(names) == 1 else None


def placed(cluster):
    """The leader's name, and those of the others."""
    leader = eventually(lambda: leader_of(cluster))
    return leader, [name for name in cluster.names if name != leader]


def connect(node, **options):
    return pika.BlockingConnection(pika.ConnectionParameters(*node.amqp, **({"heartbeat": 0} | options)))


def closed(connection):
    """Wait until the broker closes a connection; code, text, and the seconds in which this process could run."""
    patience = Patience()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as told:
        while not patience.is_over():
            connection.process_data_events(0.1)
    return told.value.reply_code, told.value.reply_text, patience.spent_s


def test_every_node_serves_every_client(run_cluster):
    cluster = run_cluster()
    leader, followers = placed(cluster)
    far, near = connect(cluster.nodes[followers[0]]), connect(cluster.nodes[leader])
    channel, there = far.channel(), near.channel()
    channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    channel.confirm_delivery()
    for at in range(100):
        channel.basic_publish("", "q", str(at).encode(), pika.BasicProperties(delivery_mode=2))
    assert there.queue_declare("q", passive=True).method.message_count == 100
    # Get, consume, return, transact.
    assert channel.basic_get("q", auto_ack=True)[2] == b"0"
    got = []
    for method, _, body in channel.consume("q", inactivity_timeout=PATIENCE_S):
        got.append(int(body))
        channel.basic_ack(method.delivery_tag)
        if len(got) == 99:
            break
    channel.cancel()
    assert got == list(range(1, 100))
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("", "nowhere", b"x", mandatory=True)
    transacting = far.channel()
    transacting.tx_select()
    transacting.basic_publish("", "q", b"rolled back")
    transacting.tx_rollback()
    transacting.basic_publish("", "q", b"committed")
    transacting.tx_commit()
    assert there.basic_get("q", auto_ack=True)[2] == b"committed"
    # An error of a channel leaves the connection as it is.
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as told:
        channel.queue_declare("nothing", passive=True)
    assert told.value.reply_code == 404
    # Queues and answers of this connection only.
    mine = far.channel()
    mine.queue_declare("mine", exclusive=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as told:
        there.queue_declare("mine", passive=True)
    assert told.value.reply_code == 405
    answers = []
    mine.basic_consume("amq.rabbitmq.reply-to", lambda *delivery: answers.append(delivery[3]), auto_ack=True)
    mine.basic_publish("", "q", b"question", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    with connect(cluster.nodes[followers[1]]) as server:
        serving = server.channel()
        _, properties, _ = serving.basic_get("q", auto_ack=True)
        serving.basic_publish("", properties.reply_to, b"answer")
        patience = Patience()
        while not answers and not patience.is_over():
            far.process_data_events(0.1)
    assert answers == [b"answer"]
    far.close()
    again = near.channel()
    eventually(lambda: "mine" not in [queue["name"] for queue in cluster.nodes[leader].api.do("GET", "/api/queues")])
    assert again.queue_declare("q", passive=True).method.message_count == 0
    near.close()


def test_large_messages_pass_in_both_directions(run_cluster):
    cluster = run_cluster()
    _, followers = placed(cluster)
    body = random.Random(1).randbytes(LARGE_BYTES)
    with connect(cluster.nodes[followers[0]]) as far:
        channel = far.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        for _ in range(3):
            channel.basic_publish("", "q", body, pika.BasicProperties(delivery_mode=2))
        for _ in range(3):
            assert channel.basic_get("q", auto_ack=True)[2] == body


def test_leader_shows_the_real_client(run_cluster):
    cluster = run_cluster()
    leader, (follower, _) = placed(cluster)
    far = connect(cluster.nodes[follower], client_properties={"connection_name": "shop", "number": 7}, heartbeat=37,
                  frame_max=8192, channel_max=5)
    api = cluster.nodes[leader].api
    shown, = eventually(lambda: [one for one in api.do("GET", "/api/connections") if one["user_provided_name"] == "shop"])
    assert (shown["node"], shown["leader_node"]) == (follower, leader)
    ours = far._impl._transport._sock.getsockname() if hasattr(far._impl._transport, "_sock") else None
    assert (shown["host"], shown["port"]) == cluster.nodes[follower].amqp
    assert shown["peer_host"] == "127.0.0.1" and (ours is None or shown["peer_port"] == ours[1])
    assert shown["name"] == f"127.0.0.1:{shown['peer_port']} -> 127.0.0.1:{shown['port']}"
    assert (shown["timeout"], shown["frame_max"], shown["channel_max"]) == (37, 8192, 5)
    assert shown["client_properties"]["number"] == 7
    assert (shown["auth_mechanism"], shown["user"], shown["ssl"]) == ("PLAIN", "guest", False)
    # Any node tells, and counts the client once.
    assert [one["name"] for one in cluster.nodes[follower].api.do("GET", "/api/connections")] == [shown["name"]]
    # An operator closes it.
    api.do("DELETE", f"/api/connections/{shown['name'].replace(' ', '%20').replace('>', '%3E')}")
    code, text, _ = closed(far)
    assert code == 320 and text.startswith("CONNECTION_FORCED")
    eventually(lambda: api.do("GET", "/api/connections") == [])


def test_tls_ends_at_the_entry_node(run_cluster, tmp_path):
    authority = Authority(tmp_path)
    server, anna = authority.sign("server"), authority.sign("anna")
    link = {"cluster.tls.certfile": server.certificate, "cluster.tls.keyfile": server.key,
            "cluster.tls.cacertfile": authority.file, "cluster.tls.required": "true"}
    cluster = run_cluster(**link, **authority.listener(server), **{"ssl_options.verify": "verify_peer"})
    leader, (follower, _) = placed(cluster)
    for version, name in ((ssl.TLSVersion.TLSv1_2, "tlsv1.2"), (ssl.TLSVersion.TLSv1_3, "tlsv1.3")):
        options = pika.SSLOptions(authority.context(anna, version), "localhost")
        with pika.BlockingConnection(pika.ConnectionParameters(
                "127.0.0.1", cluster.nodes[follower].port("AMQPS"), ssl_options=options)) as far:
            channel = far.channel()
            channel.queue_declare("q")
            body = random.Random(name).randbytes(1_000_000)
            channel.basic_publish("", "q", body)
            assert channel.basic_get("q", auto_ack=True)[2] == body
            shown, = cluster.nodes[leader].api.do("GET", "/api/connections")
            assert (shown["ssl"], shown["ssl_protocol"], shown["node"]) == (True, name, follower)
            assert "anna" in shown["peer_cert_subject"] and shown["ssl_cipher"]


def test_heartbeats_are_between_client_and_leader(run_cluster):
    cluster = run_cluster()
    leader, (follower, _) = placed(cluster)
    far = connect(cluster.nodes[follower], heartbeat=HEARTBEAT_S)
    until = time.monotonic() + 3 * HEARTBEAT_S
    while time.monotonic() < until:
        far.process_data_events(0.2)
    assert far.is_open
    # The client sends none.
    api = cluster.nodes[leader].api
    eventually(lambda: api.do("GET", "/api/connections") == [])


def test_crowd_at_one_follower(run_cluster):
    cluster = run_cluster()
    leader, (follower, _) = placed(cluster)
    crowd = [connect(cluster.nodes[follower], heartbeat=0) for _ in range(CROWD)]
    assert len(cluster.nodes[leader].api.do("GET", "/api/connections")) == CROWD
    channels = [one.channel() for one in crowd]
    channels[0].queue_declare("q")
    for channel in channels:
        channel.basic_publish("", "q", b"x")
    eventually(lambda: channels[0].queue_declare("q", passive=True).method.message_count == CROWD)
    for one in crowd:
        one.close()
    eventually(lambda: cluster.nodes[leader].api.do("GET", "/api/connections") == [])


def test_limits_of_both_nodes_hold(run_cluster):
    cluster = run_cluster(connection_max=3)
    leader, (follower, other) = placed(cluster)
    for node in cluster.nodes.values():
        node.api.do("PUT", "/api/vhost-limits/%2F/max-connections", {"value": 4})
    here = [connect(cluster.nodes[follower], heartbeat=0) for _ in range(3)]
    # The slots of a node are those of its own sockets.
    with pytest.raises(pika.exceptions.AMQPConnectionError, match=r"530.*node connection limit \(3\) is reached"):
        connect(cluster.nodes[follower])
    here.append(connect(cluster.nodes[other], heartbeat=0))
    for name in (leader, other):
        with pytest.raises(pika.exceptions.AMQPConnectionError, match=r"530.*: connection limit \(4\) is reached"):
            connect(cluster.nodes[name])
    for one in here:
        one.close()


def test_killed_leader_is_told_at_once(run_cluster):
    cluster = run_cluster()
    leader, (follower, _) = placed(cluster)
    far = connect(cluster.nodes[follower], heartbeat=0)
    channel = far.channel()
    channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"kept", pika.BasicProperties(delivery_mode=2))
    cluster.nodes[leader].kill()
    code, text, took_s = closed(far)
    assert (code, text) == (320, "CONNECTION_FORCED - leader of vhost '/' is lost")
    assert took_s < AT_ONCE_S
    # The open is held until there is a new leader.
    with connect(cluster.nodes[follower], heartbeat=0) as again:
        assert again.channel().basic_get("q", auto_ack=True)[2] == b"kept"


def test_suspended_leader_is_told_after_the_election(run_cluster):
    cluster = run_cluster()
    leader, (follower, _) = placed(cluster)
    far = connect(cluster.nodes[follower], heartbeat=0)
    cluster.suspend(leader)
    code, text, _ = closed(far)
    assert (code, text) == (320, "CONNECTION_FORCED - leader of vhost '/' is lost")
    with connect(cluster.nodes[follower], heartbeat=0) as again:
        again.channel()
    cluster.resume(leader)


def test_nodes_that_stop_close_relayed_clients(run_cluster):
    cluster = run_cluster()
    leader, (follower, other) = placed(cluster)
    stopped = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
    far = connect(cluster.nodes[follower], heartbeat=0)
    os.kill(cluster.nodes[follower].process.pid, 15)
    assert closed(far)[:2] == (320, stopped)
    cluster.nodes[follower].process.wait(PATIENCE_S)
    far = connect(cluster.nodes[other], heartbeat=0)
    os.kill(cluster.nodes[leader].process.pid, 15)
    # The lead is transferred first, if the other node takes it in time.
    assert closed(far)[:2] in ((320, stopped), (320, "CONNECTION_FORCED - the leader of vhost '/' has changed"))
    cluster.nodes[leader].process.wait(PATIENCE_S)


def test_client_that_vanishes_is_gone_at_the_leader(run_cluster):
    cluster = run_cluster()
    leader, (follower, _) = placed(cluster)
    far = socket.create_connection(cluster.nodes[follower].amqp)
    api = cluster.nodes[leader].api
    far.sendall(b"AMQP\0\0\x09\x01")

    def frame(payload):
        return b"\x01\0\0" + len(payload).to_bytes(4, "big") + payload + b"\xce"

    def hear(method):
        header = far.recv(7, socket.MSG_WAITALL)
        payload = far.recv(int.from_bytes(header[3:], "big") + 1, socket.MSG_WAITALL)
        assert payload[:4] == method, payload

    hear(b"\0\x0a\0\x0a")
    response = b"\0guest\0guest"
    far.sendall(frame(b"\0\x0a\0\x0b" + bytes(4) + b"\x05PLAIN" + len(response).to_bytes(4, "big") + response + b"\x05en_US"))
    hear(b"\0\x0a\0\x1e")
    # The tuning, the vhost, and a channel that is opened before the answer.
    opening = frame(b"\0\x0a\0\x1f" + b"\x07\xff\0\x02\0\0\0\0") + frame(b"\0\x0a\0\x28\x01/\0\0")
    channel = b"\x01\0\x01\0\0\0\x05\0\x14\0\x0a\0\xce"
    far.sendall(opening + channel)
    hear(b"\0\x0a\0\x29")
    hear(b"\0\x14\0\x0b")
    assert len(api.do("GET", "/api/connections")) == 1
    far.close()
    eventually(lambda: api.do("GET", "/api/connections") == [])


def test_no_majority_is_told_after_a_while(run_cluster):
    cluster = run_cluster()
    leader, (follower, other) = placed(cluster)
    # In this order nobody is elected meanwhile.
    cluster.nodes[other].kill()
    cluster.nodes[leader].kill()
    with pytest.raises(pika.exceptions.AMQPConnectionError, match="541.*vhost '/' has no leader"):
        connect(cluster.nodes[follower], heartbeat=0, socket_timeout=30)


class FormerNode:
    """Speaks as a node of the cluster whose process has ended."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        record = json.loads((cluster.nodes[name].data_dir / "cluster.json").read_text())
        self.disk = bytes.fromhex(record["disk"])[::-1]

    def dial(self, other, purpose=1, protocol=(2, 2)):
        """A proved stream to another node."""
        host, port = other.split("@")[1], self.cluster.ports[other]
        stream = socket.create_connection((host, port), timeout=PATIENCE_S)
        node = hashlib.sha256(self.name.encode()).digest()[:6]
        names = "".join(f"{name}\n" for name in sorted(self.cluster.names))
        text = lambda value: bytes([len(value)]) + value.encode()
        hello = (b"LVRTLINK" + struct.pack("<HHBB", *protocol, purpose, 1) + hashlib.sha256(names.encode()).digest()[:8][::-1]
                 + node[::-1] + bytes(2) + self.disk + struct.pack("<IH", 3, 2) + random.Random(3).randbytes(32) + text(self.name) + text("0"))
        stream.sendall(struct.pack("<BH", 1, len(hello)) + hello)
        kind, theirs = self.message(stream)
        assert kind == 1, theirs
        signed = b"".join(struct.pack("<I", len(part)) + part for part in (hello, theirs)) + bytes(33)
        secret = self.cluster.secret.read_text().strip().encode()
        proof = hmac.digest(secret, b"leveret link proof of the dialer\0" + signed, "sha256")
        stream.sendall(struct.pack("<BH", 2, len(proof)) + proof)
        return self.message(stream), stream

    @staticmethod
    def message(stream):
        kind, length = struct.unpack("<BH", stream.recv(3, socket.MSG_WAITALL))
        return kind, stream.recv(length, socket.MSG_WAITALL)


def adopt(user="guest", vhost="/", mechanism="PLAIN"):
    """The frame that asks a node to adopt a client."""
    octets = lambda value: struct.pack("<I", len(value)) + value
    address = bytes(10) + b"\xff\xff" + bytes([10, 1, 2, 3]) + struct.pack("<H", 4567)
    return (octets(user.encode()) + octets(vhost.encode()) + address * 2 + octets(mechanism.encode())
            + struct.pack("<IHH", 131072, 2047, 0) + octets(b"") + b"\0")


def test_clients_that_cannot_be_adopted_are_refused(run_cluster):
    cluster = run_cluster()
    leader, (gone, follower) = placed(cluster)
    eventually(lambda: "the cluster is founded" in cluster.log(leader))
    cluster.nodes[gone].kill()
    former = FormerNode(cluster, gone)

    def answer(node, frame):
        (kind, content), stream = former.dial(node)
        assert (kind, len(content)) == (2, 32)
        with stream:
            stream.sendall(frame)
            length = stream.recv(4, socket.MSG_WAITALL)
            return stream.recv(struct.unpack("<I", length)[0], socket.MSG_WAITALL) if length else b""

    framed = lambda content: struct.pack("<I", len(content)) + content
    assert answer(leader, framed(adopt())) == b"\1"
    # A follower names the leader.
    told = answer(follower, framed(adopt()))
    assert told == b"\2" + struct.pack("<I", len(leader)) + leader.encode()
    assert answer(leader, framed(adopt(vhost="nowhere"))) == b"\3"
    assert answer(leader, framed(adopt(user="nobody"))) == b"\3"
    # Frames that are none, or too long: the stream is closed.
    for wrong in (adopt(mechanism="MAGIC"), adopt()[:-1], b"", random.Random(4).randbytes(100)):
        assert answer(leader, framed(wrong)) == b""
    assert answer(leader, b"\xff\xff\xff\xff") == b""
    # A disk that the cluster does not remember.
    former.disk = bytes(8)
    (kind, _), stream = former.dial(leader)
    stream.close()
    assert kind == 3
    with connect(cluster.nodes[leader]) as near:
        near.channel()
