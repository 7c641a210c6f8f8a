"""Holds Leveret beside RabbitMQ: every endpoint of the HTTP API, odd values of every field, every command of rabbitmqctl.

    compare.py --leveret BIN --leveretctl BIN [--write FOLDER]
               [--amqp HOST:PORT --http URL [--rabbitmqctl COMMAND] [--rabbitmq-diagnostics COMMAND] ...]

Starts a Leveret, asks it what RabbitMQ was asked, and compares. RabbitMQ's answers are in `rabbitmq/`; with the
addresses of one, it is asked first and the files are written. It needs the user guest and nothing else of value in it: what has
a name that begins with `compared` is made and removed, and its application is stopped and started. `--write` is the folder of the
project, whose pages are written. The exit code is 1 if a difference has no reason in `on_purpose.toml`.
"""

import argparse
import json
import pathlib
import shlex
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "blackbox" / "support"))

from brokers import Leveret, RabbitMq  # noqa: E402

import asking  # noqa: E402
import pages  # noqa: E402
import verdicts  # noqa: E402

RECORDED = HERE / "rabbitmq"


def our_tools(ctl, broker, folder):
    """leveretctl under RabbitMQ's names; the data directory says which node, and is the login."""
    tools = {}
    for tool, name in asking.NAMES.items():
        (folder / name).symlink_to(ctl.resolve())
        tools[tool] = ["env", f"LEVERET_DATA_DIR={broker.data_dir}", str(folder / name)]
    return tools


def ask_leveret(leveret, ctl):
    """Answers of a Leveret of its own."""
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        broker = Leveret(leveret, folder)
        try:
            return asking.everything(asking.Side(broker, our_tools(pathlib.Path(ctl), broker, folder), folder))
        finally:
            broker.stop()


def ask_rabbitmq(options):
    """The version of the RabbitMQ that is given, and its answers."""
    tools = {tool: getattr(options, name.replace("-", "_")) for tool, name in asking.NAMES.items()}
    broker = RabbitMq(options.amqp, options.http)
    with tempfile.TemporaryDirectory() as directory:
        side = asking.Side(broker, {tool: shlex.split(line) for tool, line in tools.items()}, pathlib.Path(directory))
        version = broker.api.do("GET", "/api/overview")["rabbitmq_version"]
        return version, asking.everything(side)


def compared(recorded, ours, on_purpose):
    """The rows by part of the page."""
    return {part: verdicts.rows(theirs, ours[part], on_purpose) for part, theirs in recorded["answers"].items()}


def recorded():
    """RabbitMQ's answers by part, and its version."""
    files = [json.loads(file.read_text()) for file in sorted(RECORDED.iterdir())]
    return {"version": files[0]["version"], "answers": {file["part"]: file["answers"] for file in files}}


def record(version, parts):
    """Keeps RabbitMQ's answers: a file for each part, a line for each answer."""
    for number, (part, answers) in enumerate(parts.items(), 1):
        lines = ",\n".join(f"{json.dumps(asked)}: {json.dumps(answer)}" for asked, answer in answers.items())
        head = f'"part": {json.dumps(part)}, "version": {json.dumps(version)}'
        name = f"{number}-{part.lower().replace(' ', '-')}.json"
        (RECORDED / name).write_text(f'{{{head}, "answers": {{\n{lines}\n}}}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leveret", required=True, help="the broker's binary")
    parser.add_argument("--leveretctl", required=True, help="leveretctl's binary")
    parser.add_argument("--amqp", help="RabbitMQ's AMQP address")
    parser.add_argument("--http", help="the URL of RabbitMQ's API")
    for name in asking.NAMES.values():
        parser.add_argument(f"--{name}", default=name, help=f"the command that runs RabbitMQ's {name}")
    parser.add_argument("--write", type=pathlib.Path, help="the folder of the project, whose pages are written")
    options = parser.parse_args()
    if options.http:
        record(*ask_rabbitmq(options))
    on_purpose = verdicts.OnPurpose()
    known = recorded()
    parts = compared(known, ask_leveret(options.leveret, options.leveretctl), on_purpose)
    if options.write:
        pages.write(options.write, parts, on_purpose, known["version"])
    every = [row for rows in parts.values() for row in rows]
    for row in every:
        for note, reason in row.notes.items():
            if reason is None:
                print(f"{row.asked}: {note}")
        if row.is_missing:
            print(f"{row.asked}: missing")
    for asked, note in on_purpose.unused():
        print(f"on_purpose.toml: there is no such difference any more: {asked}: {note.pattern}")
    counts = ", ".join(f"{sum(row.verdict == one for row in every)} {one}" for one in verdicts.VERDICTS)
    print(f"{len(every)} asked: {counts}", file=sys.stderr)
    return 1 if any(row.verdict in ("different", "missing") for row in every) or on_purpose.unused() else 0


if __name__ == "__main__":
    sys.exit(main())
