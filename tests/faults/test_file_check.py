"""Octets rot in files that are in use: the check of files finds them, and the replica is made anew from another node."""

import pytest

from test_rebuild import Published, WITHIN_S, rebuilt, vhost_directory, votes


def rot(node):
    """Flips a bit in the records of a log; its octets before."""
    directory = vhost_directory(node)
    log = max(directory.glob("*.log"), key=lambda file: len(file.read_bytes().rstrip(b"\0")))
    octets = log.read_bytes()
    at = len(octets.rstrip(b"\0")) // 2
    assert any(octets[at:at + 100]), "there is nothing"
    with log.open("r+b") as file:
        file.seek(at)
        file.write(bytes([octets[at] ^ 0x10]))


def checked(cluster, name):
    """What a check of the files of a node has found."""
    cluster.request(name, "POST", "/api/file-check")
    assert cluster.nodes[name].wait_until(lambda: not cluster.request(name, "GET", "/api/file-check")["running"], WITHIN_S)
    return cluster.request(name, "GET", "/api/file-check")


@pytest.mark.parametrize("leads", (False, True))
def test_rotten_file_in_use_is_replaced_by_that_of_another_node(make, leads):
    cluster = make("file_check.bytes_per_second = 1GiB\n")
    published = Published(cluster)
    published.publish(400)
    name = cluster.leader if leads else next(one for one in cluster.nodes if one != cluster.leader)
    assert checked(cluster, name)["damaged"] == []
    rot(cluster.nodes[name])
    [damaged] = checked(cluster, name)["damaged"]
    assert (damaged["vhost"], damaged["repair"], damaged["reason"]) == ("/", "rebuilt", None)
    rebuilt(cluster, name)
    cluster.connect().close()
    assert cluster.leader != name
    votes(cluster, name)
    published.publish()
    cluster.start()
    published.check()
    # The new files are whole.
    assert len(checked(cluster, name)["damaged"]) == 1


def test_rotten_replica_stays_while_another_node_is_away(make):
    """Without it there would be no majority."""
    cluster = make("file_check.bytes_per_second = 1GiB\n")
    published = Published(cluster)
    published.publish(400)
    first, second = (one for one in cluster.nodes if one != cluster.leader)
    cluster.nodes[second].kill()
    rot(cluster.nodes[first])
    [damaged] = checked(cluster, first)["damaged"]
    assert (damaged["repair"], damaged["reason"]) == ("none", "not all nodes that have the log are connected")
    published.publish()
    cluster.start()
    assert cluster.nodes[first].wait_until(
        lambda: [one["repair"] for one in checked(cluster, first)["damaged"]] == ["rebuilt"], WITHIN_S)
    rebuilt(cluster, first)
    published.check()
