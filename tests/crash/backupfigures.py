"""What a backup of a long queue costs under full load: its time, its room on the disk, and the latency of a bystander.

    python backupfigures.py --programs ../../target/release --messages 10000000

The bystander publishes 500 persistent messages a second into a vhost of its own. Its latencies are measured in windows of
one length: beside the load alone, beside the load and a backup by links, and by copies (in a second file system). Prints
one JSON line for each window. It needs room for the messages three times, and pika.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

from broker_process import Broker

WINDOW_S = 50
BACKUP_AT_S = 3
BODY_BYTES = 100


def room(*folders):
    """Bytes that folders take on the disk, with every linked file once."""
    told = subprocess.run(["du", "--summarize", "--total", "--block-size=1", *map(str, folders)], capture_output=True,
                          text=True, check=True)
    return int(told.stdout.splitlines()[-1].split("\t")[0])


class Figures:
    """The broker, and the programs beside it."""

    def __init__(self, programs, folder):
        self.programs = programs
        self.broker = Broker(programs / "leveret", folder, "vm_memory_high_watermark.absolute = 4GB\n")
        self.broker.start()

    def ctl(self, *words):
        ran = subprocess.run([self.programs / "leveretctl", "--data-dir", self.broker.data, "--quiet", *words],
                             capture_output=True, text=True, check=True)
        return ran.stdout

    def perf(self, name, *options, vhost="%2f", seconds=3600):
        host, port = self.broker.address
        command = [self.programs / "leveret-perf", "throughput", "--name", name, "--persistent", "--json", "--quiet",
                   "--uri", f"amqp://guest:guest@{host}:{port}/{vhost}", "--time", str(seconds), *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ready(self, prefix):
        """Messages in the queues whose names begin so; none before they exist."""
        lines = self.ctl("list_queues", "name", "messages", "--no-table-headers").splitlines()
        return sum(int(line.split("\t")[1]) for line in lines if line.startswith(prefix))

    def fill(self, messages):
        """Leaves a queue of so many messages: the program that fills it is killed before it deletes the queue."""
        filling = self.perf("fill", "-y", "0", "--in-flight", "0", "--confirm", "5000", "--size", str(BODY_BYTES))
        while self.ready("fill") < messages and filling.poll() is None:
            time.sleep(0.5)
        filling.kill()
        filling.wait()
        return self.ready("fill")

    def window(self, backup=None):
        """A window of the bystander's latencies, perhaps with a backup that begins within."""
        bystander = self.perf("bystander", "--rate", "500", "--confirm", "100", vhost="bystander", seconds=WINDOW_S)
        figures = {}
        if backup:
            time.sleep(BACKUP_AT_S)
            before, began = room(self.broker.data), time.monotonic()
            self.ctl("backup", str(backup))
            figures["backup_s"] = round(time.monotonic() - began, 2)
            both = room(self.broker.data, backup)
            figures["data_bytes"], figures["extra_bytes"] = before, both - room(self.broker.data)
            told = json.loads(self.ctl("backup_status", "--formatter", "json"))
            figures |= {key: told[key] for key in ("files_linked", "bytes_linked", "bytes_copied")}
        (report,) = json.loads(bystander.communicate()[0])
        for kind in ("latency_us", "confirm_latency_us"):
            figures[kind] = {key: round(report[kind][key]) for key in ("p50", "p99", "max")}
        # The seconds of the backup alone, and all of a window without one.
        end = BACKUP_AT_S + figures["backup_s"] + 1 if backup else WINDOW_S
        figures["p99_of_seconds_us"] = [round(one["latency_us"][1]) for one in report["seconds"] if one["latency_us"]
                                          and (not backup or BACKUP_AT_S <= one["at_s"] <= end)]
        return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--work", type=pathlib.Path, help="folder for the data")
    parser.add_argument("--other", type=pathlib.Path, default=pathlib.Path("/dev/shm"), help="folder of another file system")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="backup-figures-", dir=options.work))
    other = pathlib.Path(tempfile.mkdtemp(prefix="backup-figures-", dir=options.other))
    figures = Figures(options.programs.resolve(), folder)
    try:
        figures.ctl("add_vhost", "bystander")
        figures.ctl("set_permissions", "-p", "bystander", "guest", ".*", ".*", ".*")
        print(json.dumps({"messages": figures.fill(options.messages), "data_bytes": room(figures.broker.data)}), flush=True)
        print(json.dumps({"window": "idle", **figures.window()}), flush=True)
        load = figures.perf("load", "--confirm", "1000", "--size", str(BODY_BYTES))
        for number in range(options.rounds):
            for name, backup in (("load", None), ("links", folder / f"links{number}"), ("copies", other / f"copies{number}")):
                print(json.dumps({"window": name, **figures.window(backup)}), flush=True)
                if backup:
                    shutil.rmtree(backup)
        load.terminate()
        load.communicate()
    finally:
        figures.broker.kill()
        shutil.rmtree(folder)
        shutil.rmtree(other)


if __name__ == "__main__":
    main()
