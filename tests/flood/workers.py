"""Processes that make the load: each does the same, in steps that all begin together.

What they do is a generator, called with `told` and its number. It says `yield` with what it has found out when a step
is done and goes on when all are told to. `told()` is whether that is the case already: so they learn that a step that
has no end of its own is over.
"""

import multiprocessing
import time
import traceback

COUNT = 2
STEP_TIMEOUT_S = 600.0


class Failed(Exception):
    """A worker could not do its work."""


def _run(pipe, work, number, arguments):
    try:
        began, busy = time.monotonic(), time.process_time()
        for result in work(pipe.poll, number, *arguments):
            passed = max(time.monotonic() - began, 1e-9)
            pipe.send((result, (time.process_time() - busy) / passed))
            pipe.recv()
            began, busy = time.monotonic(), time.process_time()
    except (EOFError, BrokenPipeError):
        pass  # nobody waits for it any more
    except BaseException:  # noqa: BLE001 - handed to whoever waits
        pipe.send((Failed(traceback.format_exc()), 0.0))


class Workers:
    """Runs `work(told, number, *arguments)` so many times at once."""

    def __init__(self, work, *arguments):
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for number in range(COUNT):
            mine, theirs = context.Pipe()
            process = context.Process(target=_run, args=(theirs, work, number, arguments), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)
        # The share of a processor that the busiest of them took in the last step.
        self.busiest = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.terminate()
            process.join()

    def results(self):
        """What each has found out in this step, when all are done with it."""
        results, shares = zip(*(self._result(pipe) for pipe in self.pipes))
        self.busiest = max(shares)
        return results

    def go_on(self):
        """To the next step."""
        for pipe in self.pipes:
            pipe.send(None)

    def step(self):
        """The next step, from beginning to end: what each has found out."""
        self.go_on()
        return self.results()

    @staticmethod
    def _result(pipe):
        if not pipe.poll(STEP_TIMEOUT_S):
            raise Failed("a worker takes too long")
        try:
            result, share = pipe.recv()
        except EOFError:
            raise Failed("a worker has died") from None
        if isinstance(result, Failed):
            raise result
        return result, share
