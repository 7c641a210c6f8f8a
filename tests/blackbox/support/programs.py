"""Where the programs of a build are."""

from pathlib import Path


def tool(name, broker):
    """A tool beside the broker; else, as the test command builds it, in the folder `debug` of the same target folder."""
    folder = Path(broker).resolve().parent
    beside = folder / name
    return str(beside if beside.exists() else folder.parent / "debug" / name)
