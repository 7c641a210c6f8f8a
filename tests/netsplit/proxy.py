"""A process that stands between nodes: every connection that one node dials to another goes through it.

It reads one command of JSON a line from stdin and answers each with one line:

| Command | Effect |
| --- | --- |
| `{"open": [dialer, dialed, port]}` | listens for the dialer, passes on to the port; the answer is the port to dial |
| `{"rules": {"a>b": {..}}, "reset": bool}` | the rules of all directions from now on, none for those that are missing |

With `reset`, connections that were held are reset.

| Rule | Effect on octets from `a` to `b` |
| --- | --- |
| `hold` | they stay where they are, as those that a network loses and TCP sends again |
| `delay_ms`, `jitter_ms` | they arrive later, in their order |
| `rate` | so many octets a second |
| `cut` | connections that `a` dials to `b` are reset, and refused |
"""

import asyncio
import collections
import contextlib
import json
import random
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "machine"))

from ports import free_port  # noqa: E402 - needs the path

READ_MAX = 64 * 1024
# Octets under way in one direction of a connection, as those in the buffers of a network.
UNDER_WAY_MAX = 4 * 1024 * 1024
THROTTLED_WRITE = 4 * 1024
RESET = struct.pack("ii", 1, 0)


class Directions:
    """The rules that hold now."""

    def __init__(self):
        self.rules = {}
        self.changed = asyncio.Condition()

    def of(self, source, target):
        return self.rules.get(f"{source}>{target}", {})

    async def set(self, rules):
        async with self.changed:
            self.rules = rules
            self.changed.notify_all()

    def is_held(self, source, target):
        return self.of(source, target).get("hold", False)

    async def until_free(self, source, target):
        """Waits while this direction is held."""
        if self.is_held(source, target):
            async with self.changed:
                await self.changed.wait_for(lambda: not self.is_held(source, target))


class Passage:
    """One direction of one connection."""

    def __init__(self, directions, source, target, reader, writer):
        self.directions, self.source, self.target = directions, source, target
        self.reader, self.writer = reader, writer
        self.under_way, self.octets, self.last_due = collections.deque(), 0, 0.0
        self.arrived, self.left = asyncio.Event(), asyncio.Event()
        self.waits = False  # with octets, or for some
        self.jitter = random.Random(f"{source}>{target}")

    async def read(self):
        while True:
            await self.free()
            while self.octets >= UNDER_WAY_MAX:
                self.left.clear()
                await self.left.wait()
            try:
                data = await self.reader.read(READ_MAX)
            except OSError:
                # A reset takes the way of the octets.
                await self.free()
                raise
            rule = self.directions.of(self.source, self.target)
            delay_ms = rule.get("delay_ms", 0) + self.jitter.uniform(0, rule.get("jitter_ms", 0))
            self.last_due = max(self.last_due, time.monotonic() + delay_ms / 1000)
            self.under_way.append((self.last_due, data))
            self.octets += len(data)
            self.arrived.set()
            if not data:
                return

    async def write(self):
        while True:
            while not self.under_way:
                self.arrived.clear()
                await self.arrived.wait()
            due, data = self.under_way.popleft()
            if (pause := due - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            if not data:
                await self.free()
                self.writer.write_eof()
                return
            while data:
                await self.free()
                rate = self.directions.of(self.source, self.target).get("rate")
                part = data[:THROTTLED_WRITE] if rate else data
                try:
                    self.writer.write(part)
                    await self.writer.drain()
                except OSError:
                    # The other side has reset it, and says so on its own way.
                    await self.directions.until_free(self.target, self.source)
                    raise
                data = data[len(part):]
                self.octets -= len(part)
                self.left.set()
                if rate:
                    await asyncio.sleep(len(part) / rate)

    async def free(self):
        self.waits = True
        await self.directions.until_free(self.source, self.target)
        self.waits = False


class Link:
    """All connections that one node dials to another one."""

    def __init__(self, directions, dialer, dialed, port):
        self.directions, self.dialer, self.dialed, self.port = directions, dialer, dialed, port
        self.connections = {}  # task of a connection: its two passages
        self.server = None
        self.dialed_port = free_port()
        self.reserve()

    def reserve(self):
        """Keeps the port and refuses connections."""
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved.bind(("127.0.0.1", self.dialed_port))

    async def listen(self):
        if self.server is None:
            self.server = await asyncio.start_server(self.accept, sock=self.reserved)

    async def refuse(self):
        if self.server is not None:
            self.server.close()
            self.server = None
            self.reserve()
        for task in list(self.connections):
            task.cancel()

    def reset_held(self):
        for task, passages in list(self.connections.items()):
            if any(passage.waits for passage in passages):
                task.cancel()

    async def obey(self):
        """Does what the rules say about new connections."""
        if self.directions.of(self.dialer, self.dialed).get("cut"):
            await self.refuse()
        else:
            await self.listen()

    async def accept(self, reader, writer):
        writers, task = [writer], asyncio.current_task()
        try:
            self.connections[task] = ()
            onwards, back = await asyncio.open_connection("127.0.0.1", self.port)
            writers.append(back)
            there = Passage(self.directions, self.dialer, self.dialed, reader, back)
            again = Passage(self.directions, self.dialed, self.dialer, onwards, writer)
            self.connections[task] = (there, again)
            await gathered(there.read(), there.write(), again.read(), again.write())
            for one in writers:
                one.close()
        except (OSError, asyncio.CancelledError):
            # A reset, here or there, reaches the other side as a reset.
            for one in writers:
                with contextlib.suppress(OSError):
                    one.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                one.transport.abort()
        finally:
            del self.connections[task]


async def gathered(*parts):
    """Runs all; the first failure, or a cancellation, ends the others."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def obey_commands():
    directions, links = Directions(), []
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        command = json.loads(line)
        answer = None
        if "open" in command:
            links.append(Link(directions, *command["open"]))
            answer = links[-1].dialed_port
            await links[-1].obey()
        else:
            if command.get("reset"):
                for link in links:
                    link.reset_held()
            await directions.set(command["rules"])
            for link in links:
                await link.obey()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(obey_commands())
