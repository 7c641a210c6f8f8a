"""How large a run is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    seconds: int  # of everything that goes on for a while
    connections: int  # that are idle
    channels: int  # of a connection that has many
    channel_connections: int  # with so many channels
    queues: int  # that are idle
    strangers: int  # that do not get through the handshake
    deaf: int  # consumers that do not read
    backlog: int  # messages that they do not read
    heartbeat_s: int  # of consumers that do not read
    handshake_timeout_s: int
    watermark_mb: int  # of memory
    slack: int  # factor of the bounds of time: rates, latencies, shares


LARGE = Scale(
    seconds=10, connections=20_000, channels=2000, channel_connections=100, queues=20_000, strangers=10_000, deaf=50,
    backlog=100_000, heartbeat_s=5, handshake_timeout_s=10, watermark_mb=128,
    slack=1)
# It runs beside other suites and compilers: a slow answer is no fault of the broker, a missing one is.
SMALL = Scale(
    seconds=2, connections=2000, channels=1000, channel_connections=10, queues=4000, strangers=1000, deaf=10,
    backlog=20_000, heartbeat_s=1, handshake_timeout_s=3, watermark_mb=128,
    slack=10)
