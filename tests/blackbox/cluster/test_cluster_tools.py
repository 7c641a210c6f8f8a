"""Commands on a cluster of three nodes: those that tell the state of one node, and those that tell that of all."""

import json

import pika
import pytest

from patience import eventually
from test_cluster_membership import A, B, C, D, connected, has_replicas
from test_ctl import tools

pytestmark = [pytest.mark.better, pytest.mark.tools]

PERSISTENT = pika.BasicProperties(delivery_mode=2)
STATUS = "/api/queues/quorum/%2F/{}/status"


@pytest.fixture
def three(run_cluster, pytestconfig, tmp_path):
    """A cluster, and the tools of each node."""
    cluster = run_cluster(**{"cluster_formation.target_cluster_size_hint": 3})
    eventually(lambda: has_replicas(cluster.nodes[A], 3))
    return cluster, {name: tools(node, pytestconfig, tmp_path) for name, node in cluster.nodes.items()}


def told(ctl, *words, **options):
    """The JSON that a command prints."""
    return json.loads("".join(ctl.do(*words, "--formatter", "json", "--quiet", **options)))


def leader_of(node, vhost="%2F"):
    return node.api.do("GET", f"/api/vhosts/{vhost}").get("leader")


def test_each_node_has_a_maintenance_status_and_listeners_of_its_own(three):
    cluster, ctl = three
    diagnostics = lambda name, *words: ctl[name].run(*words, tool="rabbitmq-diagnostics")
    ctl[B].do("drain", tool="rabbitmq-upgrade")
    maintained = {A: "not under maintenance", B: "marked for maintenance", C: "not under maintenance"}
    for name in (A, B):
        eventually(lambda name=name: told(ctl[name], "cluster_status")["maintenance_status"] == maintained)
        status = told(ctl[name], "cluster_status")
        assert f"Node: {B}, status: marked for maintenance" in ctl[name].do("cluster_status")
        assert sorted(status["listeners"]) == [A, B, C]
        for node, listeners in status["listeners"].items():
            ports = {listener["port"] for listener in listeners}
            assert {listener["node"] for listener in listeners} == {node}
            assert cluster.ports[node] in ports and cluster.nodes[node].amqp[1] in ports
    drained = lambda: {node["name"]: node["being_drained"] for node in cluster.nodes[A].api.do("GET", "/api/nodes")}
    eventually(lambda: drained() == {A: False, B: True, C: False})

    # What is asked of a node is about its own listeners.
    own, other = (str(cluster.nodes[name].amqp[1]) for name in (A, C))
    listeners = told(ctl[A], "listeners", tool="rabbitmq-diagnostics")["listeners"]
    assert {listener["node"] for listener in listeners} == {A}
    assert diagnostics(A, "check_port_listener", own).code == 0
    refused = diagnostics(A, "check_port_listener", other)
    assert refused.code == 69 and f"No listener for port {other} is active on node {A}" in refused.err
    assert other not in diagnostics(A, "check_port_connectivity").out
    assert f"port: {other}," not in "\n".join(ctl[A].do("status"))

    # As a probe of readiness asks.
    for check in ("check_if_is_in_service", "check_if_ready_to_serve_clients"):
        assert diagnostics(A, check).code == 0
        refused = diagnostics(B, check)
        assert refused.code == 69 and "node is in maintenance mode" in refused.err
    ctl[B].do("revive", tool="rabbitmq-upgrade")
    eventually(lambda: diagnostics(B, "check_if_is_in_service").code == 0)

    cluster.nodes[C].kill()
    left = lambda status: (status["running_nodes"], status["maintenance_status"], sorted(status["listeners"]))
    states = {A: "not under maintenance", B: "not under maintenance", C: "unknown"}
    eventually(lambda: left(told(ctl[A], "cluster_status")) == ([A, B], states, [A, B]))


def test_members_of_a_quorum_queue_are_told_by_every_node(three):
    cluster, ctl = three
    node = cluster.nodes[A]
    for name, queue_type in (("q", "quorum"), ("classic", "classic")):
        node.api.do("PUT", f"/api/queues/%2F/{name}", {"durable": True, "arguments": {"x-queue-type": queue_type}})
    for name, tool in ctl.items():
        eventually(lambda name=name: cluster.nodes[name].api.ask("/api/queues/%2F/q").status == 200)
        members = eventually(lambda tool=tool: members_with_a_leader(node, tool))
        assert [member["Node Name"] for member in members] == [A, B, C]
        assert {member["Membership"] for member in members} == {"voter"}
        assert cluster.nodes[name].api.do("GET", STATUS.format("q"))
        missing = tool.run("quorum_status", "missing", tool="rabbitmq-queues")
        assert missing.code == 65 and "was not found" in missing.err
        refused = tool.run("quorum_status", "classic", tool="rabbitmq-queues")
        assert refused.code == 69 and "{:unsupported, :rabbit_classic_queue}" in refused.err
        assert cluster.nodes[name].api.ask(STATUS.format("classic")).status == 503
    cluster.nodes[C].kill()
    states = lambda: {member["Node Name"]: member["Raft State"]
                      for member in told(ctl[A], "quorum_status", "q", tool="rabbitmq-queues")}
    eventually(lambda: states() in ({A: "leader", B: "follower", C: "nodedown"}, {A: "follower", B: "leader", C: "nodedown"}))


def members_with_a_leader(node, tool):
    """The members of the queue q, once those who follow and the one that leads are as another node says."""
    leader, members = leader_of(node), told(tool, "quorum_status", "q", tool="rabbitmq-queues")
    states = {one: "leader" if one == leader else "follower" for one in (A, B, C)}
    return members if {member["Node Name"]: member["Raft State"] for member in members} == states else None


def test_rebalance_moves_the_vhosts_whose_names_match(three):
    cluster, ctl = three
    queues = lambda *words: ctl[A].run("rebalance", *words, tool="rabbitmq-queues")
    names = [f"{kind}{number}" for kind in ("moved", "stays") for number in range(3)]
    for name in names:
        ctl[A].do("add_vhost", name)
    leaders = lambda: {name: leader_of(cluster.nodes[A], name) for name in names}

    def lead_from_b():
        """True once B leads all of them; it is asked to, where another node does."""
        elsewhere = [name for name, leader in leaders().items() if leader != B]
        for name in elsewhere:
            ctl[A].run("transfer_leader", name, B)
        return not elsewhere

    eventually(lead_from_b)
    for words, said in (
            (("streams",), "type streams is not supported. Try one of: all, classic, quorum, stream"),
            (("all", "--queue-pattern", "q.*"), "--queue-pattern 'q.*' is not supported"),
            (("all", "--vhost-pattern", "("), "--vhost-pattern '(' is no regular expression: Invalid pattern: ")):
        refused = queues(*words)
        assert refused.code == 64 and said in refused.err, refused
    eventually(lead_from_b)

    ran = queues("quorum", "--vhost-pattern", "^moved", "--queue-pattern", ".*")
    assert (ran.code, ran.err) == (0, ""), ran
    assert "Node name" in ran.out and "Number of vhosts led" in ran.out and A in ran.out
    eventually(lambda: {leaders()[f"moved{number}"] for number in range(3)} == {A, B, C})
    eventually(lambda: {leaders()[f"stays{number}"] for number in range(3)} == {B})
    # A node that does not take a lead in time is passed over, until the next time.
    table = lambda: {row["Node name"]: row["Number of vhosts led"]
                     for row in told(ctl[A], "rebalance", "all", tool="rabbitmq-queues")["value"]}
    eventually(lambda: (led := table()).keys() == {A, B, C} and set(led.values()) <= {2, 3})

    for name in (B, C):
        cluster.nodes[name].kill()
    eventually(lambda: not any(vhost.get("leader") for vhost in cluster.nodes[A].api.do("GET", "/api/vhosts")))
    refused = queues("all")
    assert refused.code == 69 and "No vhost has a leader" in refused.err, refused


def test_transfer_is_over_for_all_nodes_when_it_is_answered(three):
    cluster, _ = three
    named = lambda: [leader_of(node, "moved") for node in cluster.nodes.values()]
    cluster.nodes[A].api.do("PUT", "/api/vhosts/moved", {})
    eventually(lambda: len(set(named())) == 1 and None not in named())
    for number in range(24):
        # Each node transfers to each other one, and by way of each.
        to, asked = (A, B, C)[number % 3], (A, B, C)[number // 3 % 3]
        path = "/api/vhosts/moved/leader"
        eventually(lambda: cluster.nodes[asked].api.ask(path, method="POST", body={"node": to}).status == 200)
        seen = [named() for _ in range(20)]
        assert all(names == [to] * 3 for names in seen), seen


def test_checks_before_a_restart_name_what_they_wait_for(three):
    cluster, ctl = three
    size = lambda: ctl[A].run("has_reached_target_cluster_size")
    complete = lambda: ctl[A].run("check_if_new_quorum_queue_replicas_have_finished_initial_sync", tool="rabbitmq-queues")
    awaits = lambda: ctl[A].run("await_online_quorum_plus_one", "-t", "1", tool="rabbitmq-upgrade")
    eventually(lambda: size().code == 0 and complete().code == 0)
    eventually(lambda: awaits().code == 0)
    cluster.nodes[C].kill()
    eventually(lambda: size().code == 69)
    assert "has not been reached: 2 of 3 nodes are online" in size().err
    answer = cluster.nodes[A].api.ask("/api/health/checks/reached-target-cluster-size")
    assert (answer.status, answer.json["online"], answer.json["target"]) == (503, 2, 3)
    # The node that is down has finished.
    assert complete().code == 0
    waited = eventually(lambda: (ran := awaits()).code and "vhost '/'" in ran.err and ran)
    assert waited.code == 69 and "for 1 seconds..." in waited.out
    critical = lambda: ctl[A].run("check_if_node_is_quorum_critical", tool="rabbitmq-diagnostics")
    refused = eventually(lambda: (ran := critical()).code and "vhost '/'" in ran.err and ran)
    assert refused.code == 69


def test_new_replicas_are_named_until_they_vote(run_cluster, pytestconfig, tmp_path):
    cluster = run_cluster(**{"raft.shipment_bandwidth": "2MiB"})
    eventually(lambda: has_replicas(cluster.nodes[A], 3))
    connection = eventually(lambda: connected(cluster.nodes[A]))
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    for _ in range(24):
        channel.basic_publish("", "q", bytes(1_000_000), PERSISTENT)
    connection.close()
    cluster.start_alone(D)
    ctl = {name: tools(cluster.nodes[name], pytestconfig, tmp_path) for name in (A, D)}
    ctl[D].do("add_user", "of-d", "secret")
    ctl[D].do("join_cluster", f"{A}:{cluster.ports[A]}")
    check = lambda name: ctl[name].run(
        "check_if_new_quorum_queue_replicas_have_finished_initial_sync", tool="rabbitmq-diagnostics")
    # Users and vhosts are named, too, as long as their replica is not complete, and before a vhost is.
    unfinished = f"vhost '/' hasn't finished synchronization with {D}."
    for name in (A, D):
        refused = eventually(lambda name=name: unfinished in (ran := check(name)).err and ran)
        assert refused.code == 69, refused
    eventually(lambda: check(A).code == 0)
    eventually(lambda: has_replicas(cluster.nodes[A], 4))
    # The users are those of the cluster.
    assert [user["user"] for user in told(ctl[D], "list_users")] == ["guest"]


def test_node_starts_at_once_after_its_shutdown(three):
    cluster, ctl = three
    for _ in range(5):
        ctl[B].do("shutdown")
        cluster.nodes[B].start_again()
    eventually(lambda: connected(cluster.nodes[B])).close()


def test_node_that_is_stopped_forgets_no_other_one(three):
    _, ctl = three
    refused = ctl[A].run("forget_cluster_node", "--offline", B)
    assert refused.code == 64
    assert "'forget_cluster_node --offline' is not available" in refused.err
    assert "force_standalone_khepri_boot" in refused.err and "***" not in refused.err
