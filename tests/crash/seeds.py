"""Seeds of loops and of tests that draw: the one of the test command, and those that found something once."""

from pathlib import Path

# What the test command plays: the same in every run.
FIXED = 1

# Lines `NAME SEED`, which `cargo xtask explore` adds.
FILE = Path(__file__).resolve().parent.parent / "seeds.txt"


def kept(name, text=None):
    """The seeds with which this loop or test found something."""
    lines = (line.partition("#")[0].split() for line in (FILE.read_text() if text is None else text).splitlines())
    return [int(line[1]) for line in lines if line and line[0] == name]


def of(name, given=None):
    """The seeds to play: the given one, or those of the test command."""
    return [FIXED, *kept(name)] if given is None else [given]


def play(name, arguments, run):
    """Plays the given seed, or all of the test command: `run(arguments, seed)` gives the number of things that passed, none
    after a fault. The exit code of the loop."""
    passed = 0
    for seed in of(name, arguments.seed):
        found = run(arguments, seed)
        if found is None:
            return 1
        passed += found
    print(f"{passed} passed")
    return 0


def parametrize(metafunc, suite):
    """Gives a test of pytest that asks for `seed` its seeds: that of the option `--seed`, or those of the test command."""
    if "seed" in metafunc.fixturenames:
        name = f"{suite}/{metafunc.function.__name__}"
        metafunc.parametrize("seed", of(name, metafunc.config.getoption("--seed")))


def add_options(parser):
    """The options of a suite of pytest that draws."""
    parser.addoption("--seed", type=int, help="what is drawn, instead of what the test command draws")
    parser.addoption("--drawn", action="store_true", help="only the tests that draw something")


def keep_drawn(config, items):
    """Leaves only the tests that draw, if the option `--drawn` says so."""
    if config.getoption("--drawn"):
        others = [item for item in items if "seed" not in item.fixturenames]
        items[:] = [item for item in items if "seed" in item.fixturenames]
        config.hook.pytest_deselected(items=others)
