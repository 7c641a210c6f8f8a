"""What every program of this folder does around its scenarios."""

import os
import secrets
import sys
import time
import traceback

HOST = os.environ["AMQP_HOST"]
PORT = int(os.environ["AMQP_PORT"])
TLS_PORT = int(os.environ.get("AMQPS_PORT", 0))
CA_FILE = os.environ.get("CA_FILE")

GONE_WITHIN_S = 60.0
RECOVERED_WITHIN_S = 60.0  # clients wait between their attempts to connect again
LARGE = bytes(range(250)) * 80_000  # 20,000,000 bytes


class Without(Exception):
    """The client does not offer what a scenario needs."""


def unique():
    """A unique name."""
    return f"interop-{secrets.token_hex(6)}"


def eventually(holds, what):
    """Wait until it holds."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {GONE_WITHIN_S:.0f} s: {what}"
        time.sleep(0.01)


def restart_broker():
    """Have the broker killed and started again."""
    print("restart", flush=True)
    assert sys.stdin.readline() == "restarted\n"


def run(version, scenarios):
    """Run the scenarios that the command line names; `scenarios` are functions by name."""
    print(f"version {version}", flush=True)
    failed = False
    for name in sys.argv[1:]:
        try:
            scenarios[name]()
            print(f"ok {name}", flush=True)
        except Without as why:
            print(f"without {name}: {why}", flush=True)
        except Exception as error:  # noqa: BLE001 - told, and the next scenario is tried
            failed = True
            traceback.print_exc()
            print(f"failed {name}: {error!r}".replace("\n", " "), flush=True)
    sys.exit(failed)
