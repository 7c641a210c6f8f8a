"""The program of the bystander, in a given vhost."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hostile"))

from bystander import BystanderClient, BystanderPeer  # noqa: E402 - needs the path


class InVhost(BystanderPeer):
    def connect(self):
        return super().connect(vhost=sys.argv[3])


if __name__ == "__main__":
    client = BystanderClient(InVhost((sys.argv[1], int(sys.argv[2]))), pid=int(sys.argv[4]))
    for _ in sys.stdin:
        print(json.dumps(client.fares()), flush=True)
