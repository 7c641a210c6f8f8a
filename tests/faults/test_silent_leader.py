"""A leader that is silent: clients that came before the others noticed go on by the next leader."""

import signal
import threading

import pytest

from test_lost_disk import in_time
from test_membership import FOUNDERS, is_well


@pytest.mark.parametrize("which", [0, 1])
def test_client_that_came_before_the_silence_was_noticed_gets_the_next_leader(make, which):
    cluster = make()
    in_time(cluster, "a", lambda: is_well(cluster))
    leader = cluster.request("a", "GET", "/api/vhosts/%2F")["leader"].split("@")[0]
    entry = [name for name in FOUNDERS if name != leader][which]
    opened = []

    def connect():
        opened.append(cluster.nodes[entry].connect())

    client = threading.Thread(target=connect, daemon=True)
    cluster.nodes[leader].process.send_signal(signal.SIGSTOP)
    try:
        client.start()
        in_time(cluster, entry, lambda: opened)
    finally:
        cluster.nodes[leader].process.send_signal(signal.SIGCONT)
    opened[0].channel().queue_declare("after")
    opened[0].close()
    # The client has not waited for the end of a handshake with the silent node.
    assert "the handshake took too long" not in cluster.nodes[entry].said()
