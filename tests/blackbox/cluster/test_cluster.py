"""Links between the nodes of a cluster: nodes that meet, end, are suspended, come back, or are refused."""

import re
import shutil
import subprocess
import time

import pika
import pytest

from brokers import Leveret
from certificates import Authority
from documented_metrics import documented_of_clusters
from patience import PATIENCE_S, Patience, eventually
from processor import time_s
from test_ctl import tools

pytestmark = [pytest.mark.better]

A, B, C = ("a@127.0.0.1", "b@127.0.0.1", "c@127.0.0.1")
# More than a connection may hold back for a majority, several times.
MEGABYTES = 40


def test_every_node_lists_all_nodes(make_cluster):
    cluster = make_cluster()
    first = cluster.start(A)
    assert cluster.seen(A) == {A: True, B: False, C: False}
    for name in (B, C):
        cluster.start(name)
    for name in cluster.names:
        cluster.await_seen(name, {A, B, C})
        assert set(cluster.seen(name)) == set(cluster.names)
    eventually(lambda: "the cluster is founded" in cluster.log(A))
    peer = eventually(lambda: first.api.do("GET", f"/api/nodes/{B}") if "mem_used" in first.api.do("GET", f"/api/nodes/{B}") else None)
    assert peer["os_pid"] == str(cluster.nodes[B].process.pid)
    assert peer["rabbitmq_version"] and peer["uptime"] > 0 and peer["mem_used"] > 0 and peer["disk_free"] > 0
    assert first.api.do("GET", f"/api/nodes/{B}/memory")["memory"]["total"]["rss"] > 0
    assert first.api.request("GET", "/api/nodes/x@y")[0] == 404
    links = first.api.do("GET", f"/api/nodes/{A}")["cluster_links"]
    assert {link["name"] for link in links} == {B, C} and all(link["recv_bytes"] > 0 for link in links)
    shown = first.api.do("GET", "/api/overview")["listeners"]
    listeners = {one["protocol"]: one["port"] for one in shown if one["node"] == A}
    assert listeners["clustering"] == cluster.ports[A]


def test_killed_node_is_seen_and_comes_back(make_cluster):
    cluster = make_cluster()
    for name in cluster.names:
        cluster.start(name)
    for name in cluster.names:
        cluster.await_seen(name, {A, B, C})
    cluster.nodes[B].kill()
    for name in (A, C):
        cluster.await_seen(name, {A, C})
    down = cluster.nodes[A].api.do("GET", f"/api/nodes/{B}")
    assert (down["running"], "mem_used" in down) == (False, False)
    metrics = cluster.nodes[A].api.ask("/metrics").text.decode()
    assert "\nrabbitmq_unreachable_cluster_peers_count 1\n" in metrics
    assert f'leveret_link_up{{peer="{B}"}} 0' in metrics and f'leveret_link_up{{peer="{C}"}} 1' in metrics
    assert f'leveret_link_lost_total{{peer="{B}"}} 1' in metrics
    # Names are for those who log in.
    assert "leveret_link" not in cluster.nodes[A].api.ask("/metrics", user=None).text.decode()
    cluster.nodes[B].start_again()
    for name in cluster.names:
        cluster.await_seen(name, {A, B, C})


def test_metrics_of_a_node_of_a_cluster_are_documented(make_cluster):
    first = make_cluster(letters="ab").start_all()
    text = first.api.ask("/metrics").text.decode()
    told = dict(re.findall(r"^# TYPE (leveret_\w+) (\w+)$", text, re.M))
    assert told == {name: kind for name, (kind, _) in documented_of_clusters().items()}
    labels = {}
    for name, told in re.findall(r"^(leveret_\w+)(.*) \S+$", text, re.M):
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="', told))
    # Only the replica of users, vhosts and parameters has a group, of which a node that does not lead tells no lag.
    assert {name: had | {"group"} for name, had in labels.items()} == {
        name: documented_of_clusters()[name][1] | {"group"} for name in labels}
    assert "group" in labels["leveret_replica_state"]


def test_vhost_may_be_called_as_the_metadata(make_cluster):
    first = make_cluster(letters="ab").start_all()
    first.api.do("PUT", "/api/vhosts/metadata", {})

    def groups():
        told = first.api.do("GET", "/api/replicas")
        return sorted((replica["node"], replica["group"]) for replica in told if replica["vhost"] == "metadata")

    eventually(lambda: groups() == [(A, "metadata"), (A, "vhost"), (B, "metadata"), (B, "vhost")])
    series = re.findall(r"^(leveret_\w+\{.*\}) \S+$", first.api.ask("/metrics").text.decode(), re.M)
    assert len(series) == len(set(series))


def test_suspended_node_is_lost_after_a_second_of_silence(make_cluster):
    cluster = make_cluster()
    for name in cluster.names:
        cluster.start(name)
    cluster.await_seen(A, {A, B, C})
    cluster.suspend(C)
    cluster.await_seen(A, {A, B})
    assert "link is lost: nothing was heard for 1000 ms" in cluster.log(A)
    cluster.resume(C)
    for name in cluster.names:
        cluster.await_seen(name, {A, B, C})


def test_node_that_lost_its_data_is_refused(make_cluster):
    cluster = make_cluster()
    for name in cluster.names:
        cluster.start(name)
    for name in cluster.names:
        eventually(lambda name=name: "the cluster is founded" in cluster.log(name))
    cluster.nodes[C].kill()
    shutil.rmtree(cluster.nodes[C].data_dir)
    cluster.nodes[C].start_again()
    eventually(lambda: "this node has lost its data, and takes no part" in cluster.log(C))
    eventually(lambda: f"node '{C}' has another disk than this node remembers" in cluster.log(A) + cluster.log(B))
    cluster.await_seen(A, {A, B})
    # A node without a configuration of its cluster does not go on alone.
    cluster.nodes[B].kill()
    alone = subprocess.run([*cluster.nodes[B].command[:7]], capture_output=True, text=True, timeout=PATIENCE_S)
    assert alone.returncode in (1, 78)
    assert "the links of a cluster need a secret" in alone.stderr or "the data directory belongs to node" in alone.stderr


def test_wrong_secret_is_told_on_both_sides(make_cluster):
    cluster = make_cluster(letters="ab")
    cluster.start(A)
    cluster.start(B, cluster__secret="another secret of another cluster")
    logs = lambda: cluster.log(A) + cluster.log(B)
    eventually(lambda: "the peer has another secret" in logs() and "it has another secret" in logs())
    assert cluster.seen(A) == {A: True, B: False}
    metrics = cluster.nodes[A].api.ask("/metrics").text.decode()
    assert 'leveret_link_refused_total{reason="secret"}' in metrics
    assert "another secret of another cluster" not in logs()


def test_links_are_encrypted_with_certificates_of_both_sides(make_cluster, tmp_path):
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    pairs = {name: authority.sign(name.split("@")[0]) for name in (A, B)}

    def files(pair, authority=authority):
        return {"cluster__tls__certfile": pair.certificate, "cluster__tls__keyfile": pair.key,
                "cluster__tls__cacertfile": authority.file, "cluster__tls__required": "true"}

    cluster = make_cluster(letters="ab")
    cluster.start(A, **files(pairs[A]))
    cluster.start(B, **files(pairs[B]))
    for name in (A, B):
        cluster.await_seen(name, {A, B})
    cluster.nodes[B].stop()
    cluster.await_seen(A, {A})
    # A certificate of another authority, and no TLS at all.
    cluster.start(B, **files(stranger.sign("other"), stranger))
    eventually(lambda: "TLS: " in cluster.log(A) + cluster.log(B))
    cluster.nodes[B].stop()
    cluster.start(B)
    eventually(lambda: "speaks TLS" in cluster.log(B) or "TLS: " in cluster.log(A))
    assert cluster.seen(A) == {A: True, B: False}


def test_messages_of_a_lone_node_are_not_taken_into_a_cluster(make_cluster):
    cluster = make_cluster()
    (cluster.directory / A).mkdir()
    alone = lambda: Leveret(cluster.binary, cluster.directory / A, f"nodename = {A}\n")
    node = alone()
    node.api.do("PUT", "/api/queues/%2F/kept", {"durable": True})
    node.stop()
    with pytest.raises(RuntimeError, match="that this node wrote without a cluster"):
        cluster.start(A)
    # Nothing in the vhost has changed: the node serves it again.
    for file in cluster.directory.rglob("cluster.json"):
        file.unlink()
    node = alone()
    assert node.api.do("GET", "/api/queues/%2F/kept")["durable"]
    node.stop()


def test_long_quorum_queue_is_drained(make_cluster):
    """Deliveries wait for a majority and for the socket, at the same time."""
    cluster = make_cluster()
    for name in cluster.names:
        cluster.start(name)
    # On a busy machine another node may come to lead meanwhile, of which clients are told; then that one is asked.
    for queue in "abcde":
        try:
            return check_drain(cluster, queue)
        except pika.exceptions.ConnectionClosedByBroker as moved:
            assert moved.reply_text == "CONNECTION_FORCED - the leader of vhost '/' has changed"
    raise AssertionError("no leader stays")


def check_drain(cluster, queue):
    leader = eventually(lambda: cluster.nodes[A].api.do("GET", "/api/vhosts/%2F").get("leader"))
    node = cluster.nodes[leader]
    # The node may still be about to serve: `connection.open` waits for that.
    with pika.BlockingConnection(pika.ConnectionParameters(*node.amqp)) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
        for _ in range(MEGABYTES * 10):
            channel.basic_publish("", queue, bytes(100_000), pika.BasicProperties(delivery_mode=2))
        counted = lambda: channel.queue_declare(queue, passive=True).method.message_count == MEGABYTES * 10
        eventually(counted)
        got = []
        channel.basic_consume(queue, lambda *delivery: got.append(delivery[1].delivery_tag), auto_ack=True)
        patience = Patience()
        while len(got) < MEGABYTES * 10 and not patience.is_over():
            connection.process_data_events(0.1)
        assert got == list(range(1, MEGABYTES * 10 + 1))
        channel.queue_delete(queue)


@pytest.mark.tools
def test_cluster_status_names_nodes_that_run(make_cluster, pytestconfig, tmp_path):
    cluster = make_cluster()
    for name in (A, B):
        cluster.start(name)
    cluster.await_seen(A, {A, B})
    ctl = tools(cluster.nodes[A], pytestconfig, tmp_path)
    eventually(lambda: "mem_used" in cluster.nodes[A].api.do("GET", f"/api/nodes/{B}"))
    lines = ctl.do("cluster_status")
    chapter = lambda title: lines[lines.index(title) + 2:][:3]
    assert chapter("Disk Nodes") == [A, B, C]
    assert chapter("Running Nodes")[:2] == [A, B] and C not in chapter("Running Nodes")
    assert any(line.startswith(f"{B}: RabbitMQ 4.") for line in lines)
    # Of a cluster that is not founded.
    assert "Level of record kinds: 1" in lines
    ctl.do("await_online_nodes", "2")
    assert ctl.run("await_online_nodes", "3", "--timeout", "1").code != 0


def test_node_that_waits_for_the_others_sleeps(make_cluster):
    """The replicator looked at its replicas without a pause until all nodes had met."""
    node = make_cluster().start(A)
    time.sleep(1)
    before = time_s(node.process.pid)
    time.sleep(4)
    assert time_s(node.process.pid) - before < 2


@pytest.mark.parametrize(("instead", "problem"), [
    ({"nodename": "x@127.0.0.1"}, "must list this node, 'x@127.0.0.1'"),
    ({"cluster__secret_file": "/nowhere"}, "cluster.secret_file must be a file that can be read"),
    ({"cluster_formation__peer_discovery_backend": "k8s"}, "must be classic_config"),
    ({"cluster_formation__peer_discovery_backend": "dns"}, "dns needs cluster_formation.dns.hostname"),
    ({"cluster__tls__required": "true"}, "links with TLS need cluster.tls.certfile"),
])
def test_bad_configuration_is_refused(make_cluster, instead, problem):
    cluster = make_cluster()
    with pytest.raises(RuntimeError, match=problem.replace(".", r"\.")):
        cluster.start(A, **instead)


def rates_below_zero(overview):
    told = overview["message_stats"] | overview["churn_rates"]
    return {name: one for name, one in told.items() if name.endswith("_details") and (one["rate"] < 0 or one["avg_rate"] < 0)}


def test_overview_has_the_samples_of_all_nodes_and_no_rate_below_zero(make_cluster):
    cluster = make_cluster(collect_statistics_interval=500)
    cluster.start_all()
    node = cluster.nodes[A]
    leader = eventually(lambda: node.api.request("GET", "/api/vhosts/%2F")[1].get("leader"))
    asked = next(one for name, one in cluster.nodes.items() if name != leader)
    other = next(name for name, one in cluster.nodes.items() if one is asked)
    node.api.do("PUT", "/api/vhosts/v", {})
    leader_of = lambda: asked.api.request("GET", "/api/vhosts/v")[1].get("leader")
    if eventually(leader_of) != other:
        node.api.do("POST", "/api/vhosts/v/leader", {"node": other})
    eventually(lambda: leader_of() == other)
    for vhost in ("/", "v"):
        connection = pika.BlockingConnection(pika.ConnectionParameters(*asked.amqp, virtual_host=vhost))
        channel = connection.channel()
        channel.queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
        channel.confirm_delivery()
        for _ in range(10):
            channel.basic_publish("", "q", b"x", pika.BasicProperties(delivery_mode=2))
        connection.close()

    def overview():
        return asked.api.do("GET", "/api/overview?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5")

    eventually(lambda: overview()["queue_totals"]["messages_details"]["samples"][0]["sample"] == 20)
    cluster.nodes[leader].kill()
    eventually(lambda: asked.api.request("GET", "/api/vhosts/%2F")[1].get("leader") not in (None, leader))
    until = time.monotonic() + 4
    while time.monotonic() < until:
        assert rates_below_zero(overview()) == {}
        time.sleep(0.1)
    eventually(lambda: overview()["queue_totals"]["messages_details"]["samples"][0]["sample"] == 20)


def test_reset_discards_the_samples_of_all_nodes(make_cluster):
    cluster = make_cluster(collect_statistics_interval=200)
    node = cluster.start_all()

    def oldest_ms():
        """The time of the oldest sample of each node; none of a node without samples."""
        details = [one.api.do("GET", f"/api/nodes/{name}?node_stats_age=60&node_stats_incr=1")["mem_used_details"]
                   for name, one in cluster.nodes.items()]
        return [min((sample["timestamp"] for sample in one.get("samples", [])), default=None) for one in details]

    eventually(lambda: all(oldest_ms()))
    reset_ms = time.time() * 1000
    assert node.api.request("DELETE", "/api/reset")[0] == 204
    assert all(oldest is None or oldest >= reset_ms for oldest in oldest_ms())
