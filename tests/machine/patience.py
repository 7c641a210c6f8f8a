"""How long a test waits: until what it waits for is there.

The bound is for what never comes. It does not follow the clock: between two looks, only so much counts as a look and its
pause need when the process can run. A machine that is busy, or stands still for a minute, makes a test slower, not red.
"""

import time

PATIENCE_S = 60.0
LOOK_S = 0.1
PAUSE_S = 0.02


class Patience:
    """A bound, and what of it is spent."""

    def __init__(self, seconds=PATIENCE_S):
        self.spent_s, self._bound_s, self._looked = 0.0, seconds, time.monotonic()

    def is_over(self):
        """Whether the bound is reached; to be asked once for each look."""
        now = time.monotonic()
        self.spent_s += min(now - self._looked, LOOK_S)
        self._looked = now
        return self.spent_s >= self._bound_s


def eventually(look, within_s=PATIENCE_S, what="it"):
    """Looks until something true is found; that."""
    patience = Patience(within_s)
    while not (found := look()):
        assert not patience.is_over(), f"{what() if callable(what) else what} did not come"
        time.sleep(PAUSE_S)
    return found


def becomes(get, expected, pause=time.sleep):
    """Looks until what `get` gives is as expected, for numbers that lag behind; `pause(seconds)` lies between the looks."""
    patience = Patience()
    while (found := get()) != expected and not patience.is_over():
        pause(LOOK_S)
    assert found == expected
