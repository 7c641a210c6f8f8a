"""Ports of 127.0.0.1 that belong to one test process, for servers that listen there now, or again after a restart.

A process owns a port as long as it has a socket bound to this port of 127.0.0.2, where no server listens. Of all
processes of the machine one can have it, and the system frees it when the process ends. Ports that the system gives to
outgoing connections are left out: one of them can be in use whenever a server is down.
"""

import contextlib
import os
import socket
from pathlib import Path

OWNER, SERVER = "127.0.0.2", "127.0.0.1"
FIRST, LAST = 10_000, 32_767
STRIDE = 61  # ports between processes that start one after the other
DEFAULTS = (15_672, 15_692, 25_672)  # of a RabbitMQ that starts meanwhile

_owned = {}
_last = None


def candidates():
    """All ports that may be drawn, below those of outgoing connections."""
    outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    last = outgoing - 1 if outgoing > 2 * FIRST else LAST
    return [port for port in range(FIRST, last + 1) if port not in DEFAULTS]


def free_ports(count):
    """Ports that this process owns until it gives them back, and that nobody else uses."""
    global _last
    ports = candidates()
    begin = os.getpid() * STRIDE if _last is None else ports.index(_last) + 1
    found = []
    for at in range(begin, begin + len(ports)):
        if len(found) == count:
            break
        port = ports[at % len(ports)]
        if owns(port):
            found.append(port)
            _last = port
    assert len(found) == count, f"{len(found)} of {count} ports are free"
    return found


def free_port():
    """One of them."""
    return free_ports(1)[0]


def owns(port):
    """Whether this process has come to own a port, and no other program uses it."""
    owner = socket.socket()
    try:
        owner.bind((OWNER, port))
        with contextlib.closing(socket.socket()) as server:
            server.bind((SERVER, port))
    except OSError:
        owner.close()
        return False
    _owned[port] = owner
    return True


def owns_all(ports):
    """The same of several ports; of none if one of them is not to be had."""
    taken = [port for port in ports if owns(port)]
    if len(taken) < len(ports):
        give_back(taken)
    return len(taken) == len(ports)


def give_back(ports):
    """Let other processes have these ports; those that this one does not own do not matter."""
    for port in ports:
        if port in _owned:
            _owned.pop(port).close()
