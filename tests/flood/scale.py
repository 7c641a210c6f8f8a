"""How large a run is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    seconds: int  # duration of each sustained load
    connections: int  # idle ones
    channels: int  # per connection
    channel_connections: int  # connections with that many channels
    queues: int  # idle ones
    handshakes: int  # sockets that never complete one
    stuck: int  # consumers that do not read
    backlog: int  # messages in their queue
    heartbeat_s: int  # of consumers that do not read
    handshake_timeout_s: int
    watermark_mb: int  # of memory
    slack: int  # factor of the bounds of time: rates, latencies, shares


LARGE = Scale(
    seconds=10, connections=20_000, channels=2000, channel_connections=100, queues=20_000, handshakes=10_000, stuck=50,
    backlog=100_000, heartbeat_s=5, handshake_timeout_s=10, watermark_mb=128,
    slack=1)
# It runs beside other suites and compilers: a slow answer is no fault of the broker, a missing one is.
SMALL = Scale(
    seconds=1, connections=2000, channels=1000, channel_connections=10, queues=4000, handshakes=1000, stuck=10,
    backlog=20_000, heartbeat_s=1, handshake_timeout_s=3, watermark_mb=128,
    slack=10)
